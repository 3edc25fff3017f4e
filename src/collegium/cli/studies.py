"""Commands about studies: demo, plan, run, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.console import hush, last_line, out, print_json
from collegium.cli.options import PATH_OPTION, Quiet, complete_study
from collegium.cli.outputs import (
    folder_of,
    refuse_among_a_studys_files,
    refuse_no_folder,
    refuse_taken,
    write_named,
)
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.planner.recommend import Recommendation
    from collegium.report.sections import Banner, Block, Table
    from collegium.study.config import StudyConfig
    from collegium.study.folder import StudyFolder
    from collegium.study.kept_rehearsals import KeptRehearsals

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
StudyFile = Annotated[
    Path,
    typer.Argument(
        help="The study's TOML file.", show_default=False, autocompletion=complete_study
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="The study's folder. Default: beside the TOML file, without .toml.",
        **PATH_OPTION,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder with named data sets. Default: COLLEGIUM_DATA.",
        **PATH_OPTION,
    ),
]

Spend = Annotated[
    float | None,
    typer.Option(
        "--spend",
        help="On a ledger: share of what people have left that this release may use, above 0 and at most 1. "
        "Default: the file's privacy.spend.",
    ),
]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Where teachers are trained: local, dask, ray, or another joblib backend. Default: the "
        "file's run.engine.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="An existing cluster: tcp://host:8786, tls://host:8786 or a scheduler file (dask), "
        "head:6379 or ray://host:10001 (ray).",
    ),
]


def plan(
    study: StudyFile,
    data_dir: DataDir = None,
    optimise: Annotated[
        str | None,
        typer.Option(
            "--optimise",
            help="What the model is for, instead of the file's student.goal: accuracy, balanced, auc; or "
            "labels, which only votes release.",
        ),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if", help="LEVEL=EPSILON: what if a level meant this? May be repeated."
        ),
    ] = None,
    spend: Spend = None,
    out_folder: Out = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write it as a page.", **PATH_OPTION)
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose what the file leaves open, predict what comes of it, show what budgets buy. Spends nothing.

    Example: collegium plan study.toml

    Example: collegium plan study.toml --what-if high=1.5
    """
    from collegium.cli.blocks import show
    from collegium.cli.progress import NoteObserver
    from collegium.report.plan_page import render_plan
    from collegium.report.sections import Points
    from collegium.study.config import read_config
    from collegium.study.folder import StudyFolder
    from collegium.study.kept_rehearsals import KeptRehearsals
    from collegium.study.planned_settings import settled_method, with_sections
    from collegium.study.runner import FINISHED, plan_study

    hush(quiet)
    config = with_data_dir(read_config(study), data_dir)
    folder = StudyFolder(out_folder or study.with_suffix(""))
    if folder.is_finished():
        raise InputError(f"{FINISHED.format(folder.path)} (`collegium report` shows this one)")
    config = with_spend(config, spend, folder)
    observer = NoteObserver()
    rehearsals = KeptRehearsals.beside(study, observer, anew=True)
    choice: _Choice | None = None
    if html is not None:
        refuse_taken(html)
        refuse_no_folder(html)
    if config.is_open and not folder.is_begun():
        choice = _choose(config, optimise, what_if or [], rehearsals)
        config = with_sections(config, choice.found.sections)
    elif config.is_open:
        if optimise is not None or what_if:
            raise InputError(
                f"{folder.path} was begun, and what its file leaves open was chosen then: leave out "
                "--optimise and --what-if"
            )
        config = settled_method(config, folder, observer)
    elif optimise is not None or what_if:
        raise InputError(
            "--optimise and --what-if are for studies that leave open how they are learnt, and this one says "
            f"(method.kind is {config.method.kind!r}): leave them out"
        )
    made = plan_study(config, folder, observer, rehearsals=rehearsals)
    planned, ledger = made.plan, made.ledger
    if planned.columns:
        planned.rehearse()  # refuses what the run would; seeing images may take minutes
    for line in planned.warnings():
        observer.note(line)
    protected = [planned.arrangement.in_short]
    if ledger is not None:
        protected.append(f"{ledger.in_words[0].upper()}{ledger.in_words[1:]}.")
    if html is not None:
        sections: list[tuple[str, list[Block | Banner]]] = []
        if choice is not None:
            sections.append(("What was chosen", [*choice.blocks()]))
        sections.append(("What everybody pays", [*planned.blocks(), Points(protected)]))
        write_named(html, render_plan(config.study.name, sections, folder.is_begun()).encode())
    if as_json:
        print_json(
            {
                "method": config.kind.name,
                "neighbours": planned.arrangement.sentence,
                **planned.numbers(),
                "columns": dict(planned.columns),
                "ledger": None if ledger is None else str(ledger.place),
                **({} if choice is None else {"chosen": choice.told()}),
            }
        )
        return
    if choice is not None:
        choice.show()
    show(planned.blocks())
    for line in protected:
        out.print(line, soft_wrap=True)
    if choice is not None and choice.found.verdict:
        said = choice.found.verdict.partition(" (")[0]
        out.print(
            f"{said[:1].upper()}{said[1:]}: `collegium run` stops unless told --anyway.",
            soft_wrap=True,
        )
    last_line(None, planned.in_short() or "planned, and nothing is spent")


@dataclass(frozen=True)
class _Choice:
    """What the planner chose, and what other levels would give, if anybody asked."""

    found: Recommendation
    levels: Mapping[str, float]
    other: Recommendation | None

    def told(self) -> dict[str, Any]:
        """What it says to programs."""
        told = self.found.to_dict()
        if self.other is not None:
            told["what_if"] = {"levels": self.levels, **self.other.to_dict()["expected"]}
        return told

    def show(self) -> None:
        """Print it."""
        from collegium.cli.recommended import show_choice, show_what_if

        show_choice(self.found)
        if self.other is not None:
            show_what_if(self.levels, self.found.expected, self.other.expected)

    def blocks(self) -> list[Block]:
        """What a page says of it."""
        from collegium.cli.recommended import takes_here, what_if_lines
        from collegium.report.plan_page import choice_blocks
        from collegium.report.sections import Points

        blocks = choice_blocks(self.found, takes_here(self.found))
        if self.other is not None:
            lines = what_if_lines(self.levels, self.found.expected, self.other.expected)
            blocks.insert(2, Points(lines))
        return blocks


def _choose(
    config: StudyConfig, optimise: str | None, what_if: list[str], rehearsals: KeptRehearsals
) -> _Choice:
    """Let the planner choose, also beside other levels."""
    from collegium.cli.progress import NoteObserver
    from collegium.cli.recommended import parse_what_if
    from collegium.study.planned_settings import recommended

    levels = parse_what_if(what_if)
    observer = NoteObserver()
    other = recommended(config, observer, optimise, levels) if levels else None
    return _Choice(recommended(config, observer, optimise, rehearsals=rehearsals), levels, other)


def run(
    study: StudyFile,
    out_folder: Out = None,
    data_dir: DataDir = None,
    engine: EngineName = None,
    address: Address = None,
    spend: Spend = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            help="Run even if the model is expected to be no better than always giving one answer.",
        ),
    ] = False,
    progress: Annotated[
        Path | None,
        typer.Option(
            "--progress",
            help="Keep in this file how far it has come, as JSON, for programs that show it.",
            **PATH_OPTION,
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a study, or go on with it where it was interrupted.

    What is private lies in the folder's vault/, what may be published in its release/.

    Example: collegium run study.toml
    """
    from collegium.cli.blocks import show_result
    from collegium.cli.progress import NoteObserver, begin_progress
    from collegium.study.config import read_config
    from collegium.study.folder import StudyFolder
    from collegium.study.kept_rehearsals import KeptRehearsals
    from collegium.study.planned_settings import settled_method

    hush(quiet)
    config = with_engine(with_data_dir(read_config(study), data_dir), engine, address)
    folder = StudyFolder(out_folder or study.with_suffix(""))
    config = with_spend(config, spend, folder)
    if anyway:
        _refuse_anyway(config, folder)
    if progress is not None:
        begin_progress(progress)
    refuse_among_a_studys_files(folder.path)
    rehearsals = KeptRehearsals.beside(study, NoteObserver())
    config = settled_method(
        config,
        folder,
        NoteObserver(),
        keep=True,
        refuse_useless=not anyway,
        rehearsals=rehearsals,
    )
    show_result(_run(config, folder.path, as_json, rehearsals, progress), as_json)


def _refuse_anyway(config: StudyConfig, folder: StudyFolder) -> None:
    """Refuse --anyway where no plan is made that would stop a run."""
    if not config.is_open:
        raise InputError(
            "--anyway is for studies that leave open how they are learnt, and this one says "
            f"(method.kind is {config.method.kind!r}): leave it out"
        )
    if folder.is_begun():
        raise InputError(f"{folder.path} was begun, and goes on without --anyway: leave it out")


def demo(
    out_folder: Annotated[
        Path, typer.Option("--out", help="The demo's folder.", **PATH_OPTION)
    ] = Path("collegium-demo"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the main job on embedded data (handwritten digits), with three privacy levels.

    Example: collegium demo
    """
    hush(quiet)
    file = files("collegium.study").joinpath("demo.toml")
    if not as_json:
        _tell_of_demo(file.read_text(encoding="utf-8"))  # before imports that take seconds

    from collegium.accounting.neighbours import Neighbours
    from collegium.cli.blocks import show_result
    from collegium.cli.progress import NoteObserver
    from collegium.study.config import read_config
    from collegium.study.folder import StudyFolder
    from collegium.study.methods.dpsgd.baselines import measure_baselines
    from collegium.study.on_ledger import place_within
    from collegium.study.planned_settings import settled_method

    with as_file(file) as path:
        config = read_config(path)
    refuse_among_a_studys_files(out_folder)
    folder = StudyFolder(out_folder)
    place = place_within(folder, Neighbours.ADD_OR_REMOVE)
    # The digits are in every demo's ledger: nobody need be asked who they are.
    config = replace(config, ledger=replace(config.ledger, url=place, allow_new_people=True))
    config = with_spend(config, 1.0)  # all of it, as what it is compared with below
    config = settled_method(config, folder, NoteObserver(), keep=True)
    result = _run(config, out_folder, as_json)
    if quiet and not as_json:  # nobody would see what it is compared with
        return show_result(result, as_json)
    NoteObserver().note("learning the same with other budgets, for comparison")
    baselines = measure_baselines(config)
    comparison = {
        "this study": result.accuracy,
        "individual budgets": baselines.individual,
        "the strictest budget for everybody": baselines.uniform,
        "ten times these budgets, individual": baselines.tenfold,
        "ten times the strictest for everybody": baselines.uniform_tenfold,
        "no privacy: the same model without noise": baselines.without_privacy,
    }
    table = _comparison_table(comparison, result.n_test)
    show_result(result, as_json, {"comparison": comparison}, [table])
    if not as_json and result.ledger is not None:
        out.print(
            f"What one person paid, for instance: collegium receipt 1 --ledger {result.ledger}",
            soft_wrap=True,
        )


def _tell_of_demo(text: str) -> None:
    """Say whose records the demo learns from, and what they granted."""
    import tomllib

    study = tomllib.loads(text)
    levels = ", ".join(f"{name} ε = {eps:g}" for name, eps in study["privacy"]["levels"].items())
    out.print(
        f"Handwritten digits of {study['data']['private_records']:,} people, an 8 × 8 image each (they come "
        f"with scikit-learn). Each person chose a privacy level: {levels}; smaller protects more.",
        soft_wrap=True,
    )
    out.print()


def report(
    folder: Annotated[
        Path, typer.Argument(help="A study's folder, or its TOML file.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Say what a finished study released, and where its report is. Spends nothing.

    Example: collegium report study/
    """
    from collegium.cli.blocks import show
    from collegium.report.sections import Points
    from collegium.study.released_files import released_content
    from collegium.study.terms import read_release

    folder = folder_of(folder)
    told, terms = read_release(folder)
    judged = _published_quality(folder)
    page = folder / "release" / "report.html"
    has_page = released_content(page) is not None
    blocks = terms.released_blocks(told, folder)  # all is checked before anything is shown
    if as_json:
        print_json(told if judged is None else {**told, "quality": judged})
        return
    if judged is not None:
        out.print(f"• {judged['verdict']}. {judged['reason']}", soft_wrap=True)
    show([Points(told["statement"]), *blocks])
    if has_page:
        out.print(f"Report: {page}", soft_wrap=True)


def _published_quality(folder: Path) -> dict[str, Any] | None:
    """Read what a release says of its student; None where it has none."""
    from collegium.json_files import parse_json
    from collegium.study.released_files import released_content

    path = folder / "release" / "quality.json"
    content = released_content(path)
    if content is None:
        return None
    judged: dict[str, Any] = parse_json(content, path, {"verdict": str, "reason": str})
    return judged


def with_data_dir(config: StudyConfig, data_dir: Path | None) -> StudyConfig:
    """Put the option --data-dir over the configuration's folder.

    Raises InputError if it means nothing to how the study goes about.
    """
    if data_dir is None:
        return config
    _refuse_without_meaning(config, "data_dir", "no named data set is read")
    return replace(config, run=replace(config.run, data_dir=str(data_dir.resolve())))


def with_engine(config: StudyConfig, engine: str | None, address: str | None) -> StudyConfig:
    """Put the options --engine and --address over the configuration's.

    Raises InputError if there is no such engine, the address means nothing to it, or they mean nothing to how
        the study goes about.
    """
    if engine is None and address is None:
        return config
    for key in [name for name, given in (("engine", engine), ("address", address)) if given]:
        _refuse_without_meaning(config, key, "nothing is trained")
    run_section = config.run
    if engine is not None:
        run_section = replace(run_section, engine=engine, address=None)
    if address is not None:
        path = Path(address)
        resolved = str(path.resolve()) if path.suffix == ".json" else address
        run_section = replace(run_section, address=resolved)
    changed = replace(config, run=run_section)
    changed.engine()
    return changed


def with_spend(
    config: StudyConfig, spend: float | None, folder: StudyFolder | None = None
) -> StudyConfig:
    """Put the option --spend over the configuration's.

    ``folder``: where the study is, or will be, kept.
    Raises InputError if it is no share, means nothing to how the study goes about, or comes too late.
    """
    if spend is None:
        return config
    if folder is not None and folder.is_begun():
        raise InputError(
            f"{folder.path} was begun, and how much of people's budgets it takes was decided then: leave "
            "--spend out; for another release about the same people, copy the settings to a file of another "
            "name"
        )
    if "privacy.spend" in config.unused:
        raise InputError(
            f"--spend means nothing to method.kind = {config.method.kind!r}: leave it out"
        )
    given = {**config.given, "privacy": {**config.given.get("privacy", {}), "spend": spend}}
    return replace(config, privacy=replace(config.privacy, spend=spend), given=given)


def _refuse_without_meaning(config: StudyConfig, key: str, why: str) -> None:
    """Refuse an option that puts something over a key of [run] which the method knows nothing of."""
    kind = config.method.kind
    if f"run.{key}" in config.unused:
        raise InputError(
            f"--{key.replace('_', '-')} means nothing to method.kind = {kind!r}, for which {why}: leave it "
            "out"
        )
    if config.kind.takes_threads and key != "data_dir" and not config.run.streaming:
        raise InputError(
            f"--{key} means nothing to direct training on records in memory, which takes threads: set "
            "run.streaming = true, or leave it out"
        )


def _run(
    config: StudyConfig,
    folder: Path,
    as_json: bool,
    rehearsals: KeptRehearsals | None = None,
    progress: Path | None = None,
) -> Any:
    """Run a study; returns what its method published."""
    from collegium.cli.progress import watching
    from collegium.study.runner import run_study

    refuse_among_a_studys_files(folder)
    with watching(not as_json, progress) as observer:
        return run_study(config, folder, observer, rehearsals)


def _comparison_table(comparison: Mapping[str, float | None], n_test: int) -> Table:
    from collegium.report.numbers import share
    from collegium.report.sections import Column, Table

    return Table(
        [Column("learnt with", is_number=False), Column("accuracy")],
        [(name, share(accuracy)) for name, accuracy in comparison.items()],
        "Each run has other noise, so budgets are compared by means of five runs. These use the same "
        "records again, which only public data like these allow.",
        f"Right on {n_test:,} public test records",
    )
