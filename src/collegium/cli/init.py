"""The init command: a study's file, in ten lines about files that are there, or with every key."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.asking import Terminal, Unattended, somebody_is_there
from collegium.cli.console import out
from collegium.cli.options import PATH_OPTION
from collegium.cli.outputs import refuse_taken, write_named
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.study.first_steps.look import Files
    from collegium.study.first_steps.prompts import Answers


def _file(flag: str, meaning: str) -> Any:
    return typer.Option(flag, help=meaning, rich_help_panel="Files", **PATH_OPTION)


def _table(flag: str, meaning: str) -> Any:
    return typer.Option(flag, help=meaning, rich_help_panel="Files", metavar="TABLE")


def _column(flag: str, meaning: str, metavar: str | None = "COLUMN") -> Any:
    panel = "Columns, where the inferred ones are wrong"
    return typer.Option(flag, help=meaning, metavar=metavar, rich_help_panel=panel)


def _privacy(flag: str, meaning: str, metavar: str | None = None) -> Any:
    return typer.Option(flag, help=meaning, metavar=metavar, rich_help_panel="Privacy")


def init(
    path: Annotated[Path, typer.Argument(help="Where to write the study's file.")] = Path(
        "study.toml"
    ),
    private: Annotated[
        str | None,
        _table(
            "--from",
            "The private records: a table (.csv, .parquet, .xlsx, or in a database: "
            "postgresql://USER@HOST/DATABASE#TABLE), an array (.npy, .npz with X and y, IDX), or a folder of "
            "images with one subfolder per class.",
        ),
    ] = None,
    public: Annotated[
        str | None, _table("--public", "Public records with the same features, labelled or not.")
    ] = None,
    test: Annotated[
        str | None, _table("--test", "Labelled public records by which the result is judged.")
    ] = None,
    labels: Annotated[
        Path | None, _file("--labels", "Labels of the private records, where no column holds them.")
    ] = None,
    public_labels: Annotated[
        Path | None, _file("--public-labels", "Labels of the public records, if known.")
    ] = None,
    test_labels: Annotated[
        Path | None, _file("--test-labels", "Labels of the test records.")
    ] = None,
    privacy_file: Annotated[
        Path | None,
        _file(
            "--privacy-file",
            "CSV with one level per private record, in their order (images of a folder: class by class, and "
            "each class by file names), where no column holds them.",
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(
            "--title",
            help="What the study is called, on the report and on people's receipts. Default: what is "
            "predicted, and from which file.",
            metavar="TEXT",
        ),
    ] = None,
    target: Annotated[str | None, _column("--target", "Column to predict.")] = None,
    owner: Annotated[
        str | None,
        _column("--owner", "Column that says whose record it is; none: everybody has one."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        _column("--exclude", "Columns that are not features: A,B; may be repeated."),
    ] = None,
    classes: Annotated[
        str | None,
        _column(
            "--classes",
            "The public list of classes: no,yes. Default: those of public labels.",
            "NAME,…",
        ),
    ] = None,
    separator: Annotated[
        str | None, _column("--separator", "Between the cells of CSV files.", "CHARACTER")
    ] = None,
    privacy: Annotated[
        str | None, _privacy("--privacy", "Column with each record's privacy level.", "COLUMN")
    ] = None,
    levels: Annotated[
        str | None,
        _privacy(
            "--levels",
            "The epsilon of each level: high=1,average=2,low=3.",
            "NAME=EPSILON,…",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        _privacy("--delta", "Well below 1 / number of people. Default: 1e-5."),
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
    """Begin a study: infer what the files show, ask for what only you know, and write its file in ten lines.

    Of the private file only the header is read. What was inferred is shown, and options overrule it.

    Without --from, a template is written. Afterwards, `collegium plan` checks the study.

    Example: collegium init --from private.csv --public public.csv --levels high=1,average=2,low=3

    Example: collegium init study.toml --all-keys --schema
    """
    from collegium.budgets import DEFAULT_DELTA
    from collegium.checks import check_separator
    from collegium.data.engines.sources import source_of
    from collegium.study.first_steps.look import PRIVATE, PUBLIC, TEST, Files
    from collegium.study.first_steps.prompts import Answers

    given = Answers(
        title=title,
        target=target,
        owner=owner,
        column=privacy,
        levels=levels,
        delta=DEFAULT_DELTA if delta is None else delta,
        classes=classes,
        exclude=tuple(filter(None, map(str.strip, ",".join(exclude or ()).split(",")))),
    )
    beside = {PRIVATE: labels, PUBLIC: public_labels, TEST: test_labels}
    found = {role: file for role, file in beside.items() if file is not None}
    if private is None:
        if path.is_file() and path.suffix.lower() != ".toml":
            raise InputError(
                f"{path} would be the study's file, but holds something else: for a study about it, say "
                f"collegium init --from {_quoted(path)} --public FILE"
            )
        if given != Answers() or any((public, test, found, privacy_file, separator)):
            raise InputError(
                "some options describe private records, but none are given: add --from FILE"
            )
        _write_example(path, all_keys, schema)
        return
    if all_keys:
        raise InputError("--all-keys writes an example and reads no file: remove it, or --from")
    if public is None:
        raise InputError(
            "--public FILE is missing: public records with the same features, with labels or without"
        )
    check_separator(separator, "--separator")
    refuse_taken(path)
    others = None if test is None else source_of(test)
    files = Files(source_of(private), source_of(public), others, found, privacy_file, separator)
    _write_study(path, files, given, schema)


def _write_study(path: Path, files: Files, given: Answers, schema: bool) -> None:
    from collegium.study.first_steps.arrays import study_of_arrays
    from collegium.study.first_steps.look import first_look
    from collegium.study.first_steps.prompts import Draft
    from collegium.study.first_steps.tables import study_of_tables

    prompts = Terminal() if somebody_is_there() else Unattended()
    draft = Draft(first_look(files), given, prompts, path.parent)
    study = study_of_tables(draft) if draft.files.is_table else study_of_arrays(draft)
    text = study.as_toml(_schema_of(path).name if schema else None)
    write_named(path, text.encode())
    if schema:
        _write_schema(_schema_of(path))
    prompts.finish()
    _next_steps(path, f"wrote {path}; next:")


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
    _next_steps(path, f"wrote {path}: fill it in; next:")


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
