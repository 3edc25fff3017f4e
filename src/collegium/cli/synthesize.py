"""Synthetic tables from the command line: one of a private table, and more rows of one that was published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.console import hush, out
from collegium.cli.options import (
    GUARANTEE,
    ON_LEDGER,
    PATH_OPTION,
    WHOSE_ROWS,
    Levels,
    NeighboursOption,
    NoiseSeed,
    Owner,
    PrivateTable,
    Quiet,
    SchemaFile,
)
from collegium.cli.outputs import (
    refuse_among_a_studys_files,
    refuse_no_folder,
    refuse_taken,
    write_named,
)
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.data.engines.sources import Source
    from collegium.study.config import StudyConfig

_WHAT = "What is made"
_BESIDE = "Public records"
_FIRST_LINE = "# Written by `collegium synthesize`; `collegium run` goes on with it."


def _table(flag: str, meaning: str) -> Any:
    return typer.Option(flag, help=meaning, rich_help_panel=_BESIDE, metavar="TABLE")


def synthesize(
    table: PrivateTable,
    schema: SchemaFile = Path("schema.toml"),
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The study's file; its folder lies beside it. Default: TABLE-synthetic.toml, in this "
            "folder.",
            show_default=False,
            **PATH_OPTION,
        ),
    ] = None,
    privacy: Annotated[
        str | None,
        typer.Option(
            help="Column with each row's privacy level (or, without --levels, its ε).",
            metavar="COLUMN",
            rich_help_panel=WHOSE_ROWS,
        ),
    ] = None,
    levels: Levels = None,
    delta: Annotated[float, typer.Option(help="Everybody's δ.", rich_help_panel=WHOSE_ROWS)] = 1e-5,
    owner: Owner = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Column that others are to predict.", metavar="COLUMN", rich_help_panel=_WHAT
        ),
    ] = None,
    goal: Annotated[
        str,
        typer.Option(
            help="What rows are to be good for: target, fidelity, both or auto.",
            rich_help_panel=_WHAT,
        ),
    ] = "auto",
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            help='Known to hold for every row: "age >= 18 or not married". May be repeated.',
            metavar="CONDITION",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help="How many are published. Default: as many as there are people.",
            min=1,
            rich_help_panel=_WHAT,
        ),
    ] = None,
    calibrated: Annotated[
        bool,
        typer.Option(
            "--calibrated",
            help="Measure, too, in what people of each level differ from all, and correct for it.",
            rich_help_panel=_WHAT,
        ),
    ] = False,
    public: Annotated[
        str | None,
        _table("--public", "Public records of the same columns: bins, and a rehearsal."),
    ] = None,
    test: Annotated[
        str | None, _table("--test", "Public records by which the result is judged.")
    ] = None,
    neighbours: NeighboursOption = None,
    spend: Annotated[
        float | None,
        typer.Option(
            help="On a ledger: share of what people have left. Default: half.",
            rich_help_panel=GUARANTEE,
        ),
    ] = None,
    noise_seed: NoiseSeed = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="A file, postgresql://USER@HOST/DATABASE, or none. Default: COLLEGIUM_LEDGER, else "
            "one beside the table, named after it.",
            rich_help_panel=ON_LEDGER,
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Show what it will do, and what to expect. Spends nothing."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Quiet = False,
) -> None:
    """Make a synthetic table of a private one: rows of nobody, in which columns go together as they do there.

    Writes a study's file and runs it, so that whatever is interrupted goes on with the same command.

    Example: collegium synthesize patients.csv --privacy consent --levels high=1,low=3 --target readmitted
    """
    from collegium.cli.studies import plan as plan_file
    from collegium.cli.studies import run as run_file
    from collegium.data.engines.sources import source_of

    hush(quiet)
    source = source_of(table)
    file = Path(f"{_stem(source)}-synthetic.toml") if out_file is None else out_file
    if file.suffix != ".toml":
        raise InputError(
            f"--out must end in .toml, the study's file, got {file}: its folder lies beside it"
        )
    refuse_no_folder(file)
    refuse_among_a_studys_files(file)
    sections = _sections(
        {
            "data": {
                "private": _beside(source, file),
                "public": _beside(None if public is None else source_of(public), file),
                "test": _beside(None if test is None else source_of(test), file),
                "target": target,
                "owner": owner,
            },
            "privacy": {
                "column": privacy,
                "levels": _levels(levels),
                "delta": delta,
                "spend": spend,
            },
            "method": {"kind": "synthesis"},
            "synthesis": {
                "schema": _beside(schema, file),
                "goal": goal if goal != "auto" else None,
                "constraints": constraint,
                "rows": rows,
                "calibrated": calibrated or None,
                "neighbours": neighbours,
                "noise_seed": noise_seed,
            },
            "ledger": {"url": ledger},
        }
    )
    _write(file, sections)
    if plan:
        return plan_file(file, as_json=as_json, quiet=quiet)
    run_file(file, as_json=as_json, quiet=quiet)


def _levels(levels: str | None) -> dict[str, float] | None:
    from collegium.study.first_steps.levels import read_levels

    if levels is None:
        return None
    found: dict[str, float] | None = read_levels(levels).get("levels")
    return found


def _stem(source: Source) -> str:
    """Name a table without what a file's name ends in."""
    name = source.name.partition(".")[0]
    table = getattr(source, "table", "")  # of a database, which has many
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in table) or name


def _beside(path: Source | None, file: Path) -> str | None:
    """Name a file, or a table, as seen from the study's file."""
    import os

    from collegium.data.engines.places import Place

    if path is None:
        return None
    if isinstance(path, Place):
        return str(path.seen_from(file.parent))
    if path.is_absolute():
        return str(path)
    return Path(os.path.relpath(path, file.parent)).as_posix()


def _sections(given: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Leave out what was not said."""
    said = {
        section: {key: value for key, value in keys.items() if value is not None}
        for section, keys in given.items()
    }
    return {section: keys for section, keys in said.items() if keys}


def _write(file: Path, sections: dict[str, dict[str, Any]]) -> StudyConfig:
    """Write the study's file, unless it is there and says the same."""
    from collegium.study.config import config_from
    from collegium.toml_files import toml_key, toml_text

    config = config_from(sections, file.parent)
    lines = [_FIRST_LINE]
    for section, keys in sections.items():
        lines += ["", f"[{section}]"]
        lines += [f"{toml_key(key)} = {toml_text(value)}" for key, value in keys.items()]
    content = ("\n".join(lines) + "\n").encode()
    if file.exists() and file.stat().st_size:
        before = file.read_bytes()
        is_ours = before.startswith(_FIRST_LINE.encode()) and not file.with_suffix("").exists()
        if before != content and not is_ours:  # nothing was begun: a slip of the pen may be mended
            raise InputError(
                f"{file} exists already, and says something else: run it (collegium run {file}), or give "
                "another name with --out"
            )
        if before == content:
            return config
        write_named(file, content, is_ours=True)
        return config
    write_named(file, content)
    return config


def sample(
    release: Annotated[
        Path,
        typer.Argument(
            help="A release (or a study's folder) with a synthetic table.", show_default=False
        ),
    ],
    out_file: Annotated[
        Path,
        typer.Option(
            "--out",
            help="File to write, which must not exist yet: .parquet, .csv or .csv.gz.",
            show_default=False,
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option(help="How many. Default: as many as there are people.", min=1),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help='A condition that all rows satisfy: "age >= 65 and smoker".'),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="For the same rows again. Default: others each time.", min=0)
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw more rows of a published synthetic table, or rows of one kind. Costs nobody anything.

    Example: collegium sample study/release --rows 100000 --where "age >= 65" --out old.parquet
    """
    from collegium.cli.interrupts import say_if_interrupted
    from collegium.study.methods.synthesis.release import published_table
    from collegium.synthesis.rows_in_files import refuse_ending

    hush(quiet)
    refuse_ending(out_file)
    refuse_taken(out_file)
    refuse_no_folder(out_file)
    table = published_table(release)
    n = table.n_rows_ if rows is None else rows
    say_if_interrupted(lambda _: f"{out_file} was not written")
    table.sample(n, where, random_state=seed, to=out_file)
    out.print(f"Wrote {out_file}: {n:,} rows.", soft_wrap=True)
