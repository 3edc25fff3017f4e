"""Commands about studies: demo, plan, run, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.console import (
    columns_sentence,
    hush,
    last_line,
    out,
    plan_sentence,
    plan_table,
    print_cautions,
    print_json,
    print_statement,
    privacy_table,
)
from collegium.cli.options import PATH_OPTION, Quiet, complete_study
from collegium.cli.outputs import refuse_among_a_studys_files
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.accounting.statement import PrivacyStatement
    from collegium.evaluation.quality import Quality
    from collegium.study.config import StudyConfig
    from collegium.study.dpsgd_result import DPSGDResult
    from collegium.study.result import StudyResult

_STYLES = {"good": "bold green", "caution": "bold yellow", "plain": "bold"}
"""Of a verdict about the student, by its tone."""

_OF_LABELS = {"statement": [str], "labels_released": int, "queries_asked": int, "stopped_by": str}
_OF_STEPS = {"statement": [str], "steps": int, "steps_lost": int}
_OF_QUESTIONS = {"statement": [str], "questions": int, "questions_lost": int}
"""What a release says of itself, by how it was learnt."""

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
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose what the file leaves open, predict what comes of it, show what budgets buy. Spends nothing.

    Example: collegium plan study.toml

    Example: collegium plan study.toml --what-if high=1.5
    """
    from collegium.cli import asking_studies as asking
    from collegium.cli.account import affordable_answers
    from collegium.cli.dpsgd import show_plan
    from collegium.cli.progress import NoteObserver
    from collegium.pate.voting.affordable import MOST
    from collegium.study.config import read_config
    from collegium.study.methods.votes import VotesPlan
    from collegium.study.runner import plan_study
    from collegium.study.study_data import StudyData

    hush(quiet)
    config = with_data_dir(read_config(study), data_dir)
    observer = NoteObserver()
    choice, show_first = None, _nothing
    if config.is_open:
        choice, config, show_first = _choose(config, optimise, what_if or [])
    elif optimise is not None or what_if:
        raise InputError(
            "--optimise and --what-if are for studies that leave open how they are learnt, and this one says "
            f"(method.kind is {config.method.kind!r}): leave them out"
        )
    if config.is_direct:
        show_plan(config, as_json, choice, show_first)
        return
    if config.only_asks:
        asking.show_plan(config, as_json)
        return
    made_plan = plan_study(config, observer=observer)
    assert isinstance(made_plan.plan, VotesPlan)
    planned, ledger = made_plan.plan.run, made_plan.ledger
    made, aggregator, data = planned.plan, planned.aggregator, planned.records
    assert isinstance(data, StudyData)
    columns = data.inputs.get("columns", [])
    if columns:
        planned.rehearse(data.X_test)  # refuses what the run would; seeing images may take minutes
    most = (
        affordable_answers(aggregator, made, planned.price.name, config.study.seed)
        if config.privacy.guarantee == "worst-case"
        else None
    )
    if as_json:
        print_json(
            {
                "personalisation": made.personalisation,
                "rule": made.rule,
                "teachers": made.n_teachers,
                "efficiency": made.efficiency,
                "answers_affordable": most,
                "price": None if most is None else planned.price.name,
                "columns": dict(columns),
                "ledger": None if ledger is None else str(ledger.place),
                "takes_whole_budgets": ledger is not None and ledger.spending.allowance.whole,
                "groups": {
                    name: {
                        "people": group.owners,
                        "epsilon": group.budget.epsilon,
                        "delta": group.budget.delta,
                        "teachers": group.teachers,
                        "teachers_per_person": group.duplicates,
                        "weight": group.weight,
                        "frequency": group.frequency,
                        "sensitivity": group.sensitivity,
                        "utilisation": group.utilisation,
                    }
                    for name, group in made.groups.items()
                },
                **({} if choice is None else {"chosen": choice}),
            }
        )
        return
    show_first()
    out.print(plan_table(made))
    out.print(plan_sentence(made))
    out.print(
        f"{len(data.X):,} private records of {data.budgets.n_owners:,} people, "
        f"{len(data.X_public):,} public records, {len(data.classes)} classes; {aggregator}"
    )
    if columns:
        out.print(columns_sentence(columns), soft_wrap=True)
    bought = plan_sentence(made)
    if most is not None:
        bound = "at least " if most == MOST else ""
        bought = f"The budgets pay for {bound}{most:,} answers if every query is answered."
        out.print(bought)
    last_line(None, bought.removesuffix("."))
    if planned.price.why and (ledger is None or ledger.spending.allowance.whole):
        out.print(planned.price.why, soft_wrap=True)
    if ledger is not None:
        out.print(ledger.in_words, soft_wrap=True)


def _choose(
    config: StudyConfig, optimise: str | None, what_if: list[str]
) -> tuple[dict[str, Any], StudyConfig, Callable[[], None]]:
    """Let the planner choose, also beside other levels.

    Returns: what it says for JSON; the settings; and what shows it, once nothing refuses the plan.
    """
    from collegium.cli.progress import NoteObserver
    from collegium.cli.recommended import parse_what_if, show_choice, show_what_if
    from collegium.study.planned_settings import recommended, with_sections

    levels = parse_what_if(what_if)
    observer = NoteObserver()
    other = recommended(config, observer, optimise, levels) if levels else None
    found = recommended(config, observer, optimise)
    told = found.to_dict()
    if other is not None:
        told["what_if"] = {"levels": levels, **other.to_dict()["expected"]}

    def show() -> None:
        show_choice(found)
        if other is not None:
            show_what_if(levels, found.expected, other.expected)

    return told, with_sections(config, found.sections), show


def _nothing() -> None:
    """Show nothing: the file says how the study is learnt."""


def run(
    study: StudyFile,
    out_folder: Out = None,
    data_dir: DataDir = None,
    engine: EngineName = None,
    address: Address = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a study, or go on with it where it was interrupted.

    What is private lies in the folder's vault/, what may be published in its release/.

    Example: collegium run study.toml
    """
    from collegium.study.config import read_config

    hush(quiet)
    config = with_engine(with_data_dir(read_config(study), data_dir), engine, address)
    folder = out_folder or study.with_suffix("")
    if config.is_open:
        from collegium.cli.progress import NoteObserver
        from collegium.study.folder import StudyFolder
        from collegium.study.planned_settings import settled_method

        refuse_among_a_studys_files(folder)
        config = settled_method(config, StudyFolder(folder), NoteObserver(), keep=True)
    if config.is_direct:
        _show_dpsgd(_run_dpsgd(config, folder, as_json), as_json)
    elif config.only_asks:
        from collegium.cli.asking_studies import run_and_show

        refuse_among_a_studys_files(folder)
        run_and_show(config, folder, as_json)
    else:
        _show(_run(config, folder, as_json), as_json)


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
    from collegium.accounting.neighbours import Neighbours
    from collegium.cli.progress import NoteObserver
    from collegium.study.baselines import measure_baselines
    from collegium.study.config import read_config
    from collegium.study.folder import StudyFolder
    from collegium.study.on_ledger import place_within
    from collegium.study.planned_settings import settled_method

    hush(quiet)
    with as_file(files("collegium.study").joinpath("demo.toml")) as path:
        config = read_config(path)
    levels = ", ".join(f"{name} ε = {eps:g}" for name, eps in (config.privacy.levels or {}).items())
    if not as_json:
        out.print(
            f"Handwritten digits: {config.data.private_records:,} people, an 8 × 8 image each (embedded in "
            f"scikit-learn). Each chose a privacy level: {levels}.",
            soft_wrap=True,
        )
        out.print()
    refuse_among_a_studys_files(out_folder)
    folder = StudyFolder(out_folder)
    place = place_within(folder, Neighbours.ADD_OR_REMOVE)
    # The digits are in every demo's ledger: nobody need be asked who they are.
    config = replace(config, ledger=replace(config.ledger, url=place, allow_new_people=True))
    config = settled_method(config, folder, NoteObserver(), keep=True)
    result = _run_dpsgd(config, out_folder, as_json)
    if quiet and not as_json:  # nobody would see what it is compared with
        return _show_dpsgd(result, as_json)
    baselines = measure_baselines(config)
    comparison = {
        "individual budgets (this study)": result.accuracy,
        "the strictest budget for everybody": baselines.uniform,
        "a tenth of these budgets, individual": baselines.tenth,
        "a tenth of the strictest for everybody": baselines.uniform_tenth,
        "no privacy: the same model without noise": baselines.without_privacy,
    }
    _show_dpsgd(result, as_json, comparison)
    if not as_json and result.ledger is not None:
        out.print(
            f"What one person paid, for instance: collegium receipt 1 --ledger {result.ledger}",
            soft_wrap=True,
        )


def report(
    folder: Annotated[
        Path, typer.Argument(help="A study's folder, or its TOML file.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Say what a finished study released, and where its report is. Spends nothing.

    Example: collegium report study/
    """
    from collegium.json_files import parse_json
    from collegium.study.released_files import released_content
    from collegium.study.stop_reasons import stopped

    if folder.is_file():  # the study's own, whose folder is beside it
        folder = folder.with_suffix("")
    path = folder / "release" / "privacy.json"
    content = released_content(path)
    if content is None:
        raise InputError(
            f"{folder} holds no finished study: there is no {path}; `collegium run` makes one"
        )
    summary = parse_json(content, path, (_OF_QUESTIONS, _OF_STEPS, _OF_LABELS))
    judged = _published_quality(folder)
    page = folder / "release" / "report.html"
    has_page = released_content(page) is not None
    if as_json:
        print_json(summary if judged is None else {**summary, "quality": judged})
        return
    if judged is not None:
        out.print(f"• {judged['verdict']}. {judged['reason']}", soft_wrap=True)
    print_statement(summary["statement"])
    if "questions" in summary:
        out.print(
            f"• {summary['questions']:,} questions were asked; the answers of "
            f"{summary['questions_lost']:,} of them were lost."
        )
        _print_answers(folder)
    elif "steps" in summary:
        out.print(
            f"• {summary['steps']:,} steps were taken, {summary['steps_lost']:,} of them lost."
        )
    else:
        out.print(
            f"• {summary['labels_released']} labels were released after {summary['queries_asked']} queries; "
            f"{stopped(summary['stopped_by'])}."
        )
    if has_page:
        out.print(f"Report: {page}", soft_wrap=True)


def _print_answers(folder: Path) -> None:
    """Print what a release answers."""
    from collegium.json_files import parse_json
    from collegium.study.released_files import released_content

    path = folder / "release" / "answers.json"
    content = released_content(path)
    if content is not None:
        for one in parse_json(content, path, {"answers": [{"text": str}]})["answers"]:
            for line in one["text"].splitlines():
                out.print(line, soft_wrap=True)


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


def _refuse_without_meaning(config: StudyConfig, key: str, why: str) -> None:
    """Refuse an option that puts something over a key of [run] which the method knows nothing of."""
    from collegium.study.sections import OF_OTHER_METHODS

    kind = config.method.kind
    if f"run.{key}" in OF_OTHER_METHODS[kind]:
        raise InputError(
            f"--{key.replace('_', '-')} means nothing to method.kind = {kind!r}, for which {why}: leave it "
            "out"
        )
    if config.is_direct and key != "data_dir" and not config.run.streaming:
        raise InputError(
            f"--{key} means nothing to direct training on records in memory, which takes threads: set "
            "run.streaming = true, or leave it out"
        )


def _run(config: StudyConfig, folder: Path, as_json: bool) -> StudyResult:
    from collegium.cli.progress import watching
    from collegium.study.runner import run_study

    refuse_among_a_studys_files(folder)
    with watching(not as_json) as observer:
        result: StudyResult = run_study(config, folder, observer)
    return result


def _run_dpsgd(config: StudyConfig, folder: Path, as_json: bool) -> DPSGDResult:
    from collegium.cli.progress import watching
    from collegium.study.runner import run_study

    refuse_among_a_studys_files(folder)
    with watching(not as_json) as observer:
        result: DPSGDResult = run_study(config, folder, observer)
    return result


def _show_dpsgd(
    result: DPSGDResult, as_json: bool, comparison: Mapping[str, float | None] | None = None
) -> None:
    quality = result.quality
    if as_json:
        print_json(
            {
                "verdict": None if quality is None else quality.verdict,
                **result.privacy.to_dict(),
                "steps": result.steps,
                "steps_lost": result.lost,
                "accuracy": result.accuracy,
                "quality": None if quality is None else quality.to_dict(),
                "notes": list(result.student_notes),
                **({"foretold": result.foretold} if result.foretold else {}),
                **({} if result.ledger is None else {"ledger": result.ledger}),
                **({} if comparison is None else {"comparison": comparison}),
                "release": str(result.folder.release),
                "report": str(result.report),
            }
        )
        return
    print_cautions(result.privacy)
    if quality is not None:
        _print_quality(result.privacy, quality, result.foretold)
    out.print(privacy_table(result.privacy, result.chosen))
    lost = f", {result.lost:,} of them lost in a crash" if result.lost else ""
    out.print(f"{result.steps:,} steps taken{lost}.")
    if comparison is not None:
        out.print(_comparison_table(comparison, result.n_test))
    _print_places(result)


def _print_quality(privacy: PrivacyStatement, quality: Quality, foretold: str) -> None:
    sound = privacy.noise_is_private and not privacy.large_deltas
    tone = quality.tone if sound else quality.tone.replace("good", "plain")
    out.print(f"{quality.verdict}.", style=_STYLES[tone], soft_wrap=True)
    out.print(f"{quality.reason} {_capitalised(quality.figures())}.", soft_wrap=True)
    if foretold:
        out.print(foretold, soft_wrap=True)


def _print_places(result: StudyResult | DPSGDResult) -> None:
    if result.ledger is not None:
        out.print(
            f"Ledger:    {result.ledger} (`collegium ledger show`, `collegium receipt`)",
            soft_wrap=True,
        )
    out.print(f"Published: {result.folder.release}", soft_wrap=True)
    out.print(f"Report:    {result.report}", soft_wrap=True)
    said = [] if result.quality is None else [result.quality.verdict]
    last_line(result.privacy, *said, f"published: {result.folder.release}")


def _show(result: StudyResult, as_json: bool) -> None:
    from collegium.study.stop_reasons import stopped

    labels, quality = result.labels, result.quality
    if as_json:
        content: dict[str, Any] = {
            "verdict": quality.verdict,
            **result.privacy.to_dict(),
            "queries_asked": labels.n_asked,
            "labels_released": len(labels.labels),
            "stopped_by": labels.stop_reason,
            "label_accuracy": result.label_accuracy,
            "student_accuracy": result.student_accuracy,
            "quality": quality.to_dict(),
            "notes": list(result.student_notes),
            **({"foretold": result.foretold} if result.foretold else {}),
            **({} if result.ledger is None else {"ledger": result.ledger}),
            "release": str(result.folder.release),
            "report": str(result.report),
        }
        print_json(content)
        return
    print_cautions(result.privacy)
    _print_quality(result.privacy, quality, result.foretold)
    out.print(privacy_table(result.privacy, result.chosen))
    out.print(f"{_answers_in_words(result)}; {stopped(labels.stop_reason)}.", soft_wrap=True)
    _print_places(result)


def _answers_in_words(result: StudyResult) -> str:
    """Say how many answers were released, and how many are right, where that says anything."""
    labels, right = result.labels, result.label_accuracy
    if result.privacy.released == "histogram":  # each is faint, and the student pools them
        return f"{len(labels.labels):,} noisy histograms released after {labels.n_asked:,} queries"
    said = f"{len(labels.labels):,} labels released after {labels.n_asked:,} queries"
    return said if right is None else f"{said}, {100 * right:.1f} % of them right"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _comparison_table(comparison: Mapping[str, float | None], n_test: int) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=f"Right on {n_test:,} public test records", title_justify="left", box=SIMPLE_HEAD
    )
    table.add_column("learnt with")
    table.add_column("accuracy", justify="right")
    for name, accuracy in comparison.items():
        table.add_row(name, "—" if accuracy is None else f"{100 * accuracy:.1f} %")
    table.caption = "Baselines: a second use of the same records, on this public data set only."
    table.caption_justify = "left"
    return table
