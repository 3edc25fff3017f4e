"""The init command: a study's file, in ten lines about files that are there, or with every key."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.asking import Options, Terminal, somebody_is_there
from collegium.cli.console import out
from collegium.cli.options import PATH_OPTION
from collegium.cli.outputs import refuse_taken, write_named
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.study.first_steps.prompts import Wanted
    from collegium.study.first_steps.short_study import ShortStudy

_FILES, _COLUMNS, _PRIVACY = "Files", "Columns, where guesses are wrong", "Privacy"


def init(
    path: Annotated[Path, typer.Argument(help="Where to write the study's file.")] = Path(
        "study.toml"
    ),
    private: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="The private records: a table (.csv, .parquet) or array (.npy, IDX).",
            rich_help_panel=_FILES,
            **PATH_OPTION,
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            "--public",
            help="Public records with the same features, labelled or not.",
            rich_help_panel=_FILES,
            **PATH_OPTION,
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test",
            help="Labelled public records by which the result is judged.",
            rich_help_panel=_FILES,
            **PATH_OPTION,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="Labels of the private records, where they are in no column.",
            rich_help_panel=_FILES,
            **PATH_OPTION,
        ),
    ] = None,
    public_labels: Annotated[
        Path | None,
        typer.Option(
            "--public-labels",
            help="Labels of the public records, if known.",
            rich_help_panel=_FILES,
            **PATH_OPTION,
        ),
    ] = None,
    test_labels: Annotated[
        Path | None,
        typer.Option(
            "--test-labels",
            help="Labels of the test records.",
            rich_help_panel=_FILES,
            **PATH_OPTION,
        ),
    ] = None,
    privacy_file: Annotated[
        Path | None,
        typer.Option(
            "--privacy-file",
            help="CSV with one level per private record, where they are in no column.",
            rich_help_panel=_FILES,
            **PATH_OPTION,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", help="Column to predict.", metavar="COLUMN", rich_help_panel=_COLUMNS
        ),
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner",
            help="Column that says whose record it is.",
            metavar="COLUMN",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    no_owner: Annotated[
        bool,
        typer.Option(
            "--no-owner", help="Every record is another person's.", rich_help_panel=_COLUMNS
        ),
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            help="Columns that are no features: A,B; may be repeated.",
            metavar="COLUMN",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            help="The public list of classes: no,yes. Default: those of public labels.",
            metavar="NAME,…",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            "--separator",
            help="Between the cells of CSV files.",
            metavar="CHARACTER",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(
            "--decimal",
            help="Before the decimals of numbers in CSV files.",
            metavar="CHARACTER",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    privacy: Annotated[
        str | None,
        typer.Option(
            "--privacy",
            help="Column with each record's privacy level.",
            metavar="COLUMN",
            rich_help_panel=_PRIVACY,
        ),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            "--levels",
            help="What each level means, as epsilon: high=1,average=2,low=3.",
            metavar="NAME=EPSILON,…",
            rich_help_panel=_PRIVACY,
        ),
    ] = None,
    numeric_levels: Annotated[
        bool,
        typer.Option(
            "--numeric-levels",
            help="Epsilon itself stands there, as a number.",
            rich_help_panel=_PRIVACY,
        ),
    ] = False,
    look_at_levels: Annotated[
        bool,
        typer.Option(
            "--look-at-levels",
            help="Read the names of the levels from the private file.",
            rich_help_panel=_PRIVACY,
        ),
    ] = False,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            help="Well below 1 / number of people. Default: 1e-5.",
            rich_help_panel=_PRIVACY,
        ),
    ] = None,
    all_keys: Annotated[
        bool, typer.Option("--all-keys", help="Write a commented example of every key instead.")
    ] = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Write a JSON Schema beside it as well, by which editors complete and check keys.",
        ),
    ] = False,
) -> None:
    """Begin a study: look at public records, ask what only you know, and write its file in ten lines.

    Of the private file only the header is read. What is guessed is said, and may be said otherwise.

    Without --from, a template is written.

    Example: collegium init --from private.csv --public public.csv --levels high=1,average=2,low=3

    Example: collegium init study.toml --all-keys --schema
    """
    files = {
        "--public": public, "--test": test, "--labels": labels, "--public-labels": public_labels,
        "--test-labels": test_labels, "--privacy-file": privacy_file,
    }  # fmt: skip
    said = {
        "--target": target, "--owner": owner, "--no-owner": no_owner, "--exclude": exclude,
        "--classes": classes, "--separator": separator, "--decimal": decimal, "--privacy": privacy,
        "--levels": levels, "--numeric-levels": numeric_levels, "--look-at-levels": look_at_levels,
        "--delta": delta,
    }  # fmt: skip
    if all_keys and private is not None:
        raise InputError(
            "--all-keys writes an example and looks at no file: leave one of the two out"
        )
    if private is None:
        given = [flag for flag, value in {**files, **said}.items() if value]
        if given:
            raise InputError(
                f"{given[0]} says something about files, and none is given: add --from FILE"
            )
        _write_example(path, all_keys, schema)
        return
    refuse_taken(path)
    wanted = _wanted(said)
    talk = Terminal() if somebody_is_there() else Options()
    study = _begun(private, files, wanted, separator, path, talk)
    text = study.as_toml(_schema_of(path).name if schema else None)
    write_named(path, text.encode())
    if schema:
        _write_schema(_schema_of(path))
    talk.done()
    _next_steps(path, f"wrote {path}; then")


def _wanted(said: dict[str, Any]) -> Wanted:
    from collegium.budgets import DEFAULT_DELTA
    from collegium.study.first_steps.prompts import NOBODY, NUMBERS, Wanted

    for one, other in (("--owner", "--no-owner"), ("--levels", "--numeric-levels")):
        if said[one] and said[other]:
            raise InputError(f"{one} and {other} contradict one another: give one of them")
    for flag, value in said.items():
        if isinstance(value, str) and not value.strip() and flag != "--separator":
            raise InputError(f"{flag} is empty: say something, or leave it out")
    return Wanted(
        target=said["--target"],
        owner=NOBODY if said["--no-owner"] else said["--owner"],
        column=said["--privacy"],
        levels=NUMBERS if said["--numeric-levels"] else said["--levels"],
        may_look=said["--look-at-levels"],
        delta=DEFAULT_DELTA if said["--delta"] is None else said["--delta"],
        classes=said["--classes"],
        exclude=tuple(
            name.strip()
            for some in said["--exclude"] or ()
            for name in some.split(",")
            if name.strip()
        ),
        decimal=said["--decimal"],
    )


def _begun(
    private: Path,
    given: dict[str, Path | None],
    wanted: Wanted,
    separator: str | None,
    path: Path,
    talk: Terminal | Options,
) -> ShortStudy:
    from collegium.study.first_steps.arrays import existing, study_of_arrays
    from collegium.study.first_steps.look import PRIVATE, PUBLIC, TEST, Files, first_look
    from collegium.study.first_steps.prompts import Begun
    from collegium.study.first_steps.tables import study_of_tables

    public = given["--public"]
    if not Path(private).exists():
        raise InputError(
            f"{str(private)!r} does not exist: check the name of --from and the folder"
        )
    if public is None:
        raise InputError(
            "--public FILE is missing: public records with the same features, which teachers are asked about "
            "(they need no labels)"
        )
    for flag in ("--labels", "--public-labels", "--test-labels", "--privacy-file"):
        if given[flag] is not None:
            existing(str(given[flag]))
    roles = {PRIVATE: "--labels", PUBLIC: "--public-labels", TEST: "--test-labels"}
    labels = {role: file for role, flag in roles.items() if (file := given[flag]) is not None}
    files = Files(private, public, given["--test"], labels, given["--privacy-file"])
    if TEST in labels and files.test is None:
        raise InputError("--test-labels are labels of no records: add --test FILE")
    if wanted.target is not None and PRIVATE in labels:
        raise InputError("--target names a column and --labels a file of labels: give one of them")
    if wanted.column is not None and files.levels is not None:
        raise InputError("--privacy names a column and --privacy-file a file: give one of them")
    look = first_look(files, separator)
    begun = Begun(look, wanted, talk, path.parent)
    return study_of_tables(begun) if look.is_table else study_of_arrays(begun)


def _write_example(path: Path, all_keys: bool, schema: bool) -> None:
    from collegium.study.example import example_config
    from collegium.study.first_steps.short_study import TEMPLATE

    described = _schema_of(path)
    if schema:
        _write_schema(described)
        if path.exists():
            out.print(
                f"wrote {described}; {path} is left as it is: make its first line", soft_wrap=True
            )
            out.print(f"#:schema {described.name}", soft_wrap=True)
            return
    beside = described.name if schema else None
    example = example_config(path.stem, beside) if all_keys else TEMPLATE.as_toml(beside)
    write_named(path, example.encode())
    _next_steps(path, f"wrote {path}: edit it, then")


def _schema_of(path: Path) -> Path:
    return path.with_suffix(".schema.json")


def _write_schema(path: Path) -> None:
    from collegium.study.json_schema import WRITTEN_BY, study_schema

    is_ours = path.is_file() and WRITTEN_BY in path.read_text(encoding="utf-8", errors="replace")
    schema = json.dumps(study_schema(), indent=2, ensure_ascii=False) + "\n"
    write_named(path, schema.encode(), is_ours=is_ours)


def _next_steps(path: Path, done: str) -> None:
    # One line for each command: a terminal that breaks a line must not break a command.
    for line in (done, f"collegium plan {_quoted(path)}", f"collegium run {_quoted(path)}"):
        out.print(line, soft_wrap=True)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
