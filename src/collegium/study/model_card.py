"""The card of a published student: what it is, who granted and paid what, how to use it, where it ends."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from collegium.accounting.statement import PrivacyStatement
from collegium.data.tables import described
from collegium.distillation.goal import ACCURACY, BALANCED
from collegium.evaluation.quality import Quality
from collegium.report.numbers import clean, count
from collegium.study.config import StudyConfig
from collegium.study.dpsgd_result import DPSGDResult
from collegium.study.folder import HISTOGRAMS_FILE, versions
from collegium.study.result import StudyResult
from collegium.study.student_file import STUDENT_FILE
from collegium.study.study_data import StudyData

_SHOWN = 200  # classes or columns


def model_card(result: StudyResult, config: StudyConfig, data: StudyData) -> str:
    """Write the card as Markdown, of what is published anyway.

    ``data``: of which only public records, the class list, the length of the test and how many records of
        public levels there are is used.
    """
    has_student = (result.folder.release / STUDENT_FILE).exists()
    return _card(
        config,
        data,
        result,
        _what(result, config, data, has_student),
        has_student,
        _quality(result),
        "It knows what the released labels say, with the noise that protects people in them: classes that "
        "few people have may never be named.",
    )


def _card(
    config: StudyConfig,
    data: StudyData,
    result: StudyResult | DPSGDResult,
    what: str,
    has_model: bool,
    quality: list[str],
    knows: str,
) -> str:
    parts = [
        f"# {text_of(config.study.name)}",
        what,
        *promises(result.privacy),
        "## What goes in, what comes out",
        *_inputs(data),
        f"Classes: {_listed(data.classes.tolist())}.",
        *(_answers(config) if has_model else ()),
        *(_use(data) if has_model else ()),
        "## How good it is",
        *quality,
        "## Limits",
        *_limits(knows, result.student_notes),
        *made_with(),
    ]
    return "\n\n".join(parts) + "\n"


def promises(privacy: PrivacyStatement) -> list[str]:
    """Say what is promised, and who granted and paid what."""
    return [
        "## What is promised",
        *(text_of(sentence) for sentence in privacy.sentences()),
        "## Who granted and paid what",
        "Per person, for everything in this folder together:",
        table_of(
            ("level", "people", "granted ε", "δ", "spent ε"),
            (
                (row.group, count(row.owners), granted, f"{row.budget.delta:g}", spent)
                for row in privacy.shown
                for granted, spent in [privacy.in_digits(row)]
            ),
        ),
    ]


def made_with() -> list[str]:
    """Name the software."""
    return ["## Made with", ", ".join(f"{name} {number}" for name, number in versions().items())]


def dpsgd_card(result: DPSGDResult, config: StudyConfig, data: StudyData) -> str:
    """Write the card of a directly trained model as Markdown, of what is published anyway.

    ``data``: as for :func:`model_card`.
    """
    has_model = (result.folder.release / STUDENT_FILE).exists()
    steps = (
        f"{count(result.steps)} noisy steps over clipped gradients of the private records "
        "(individual DP-SGD)"
    )
    if not has_model:
        what = f"This folder holds the account of {steps}. There is no model in it (see *Limits*)."
    elif result.is_student:
        what = (
            f"`{STUDENT_FILE}` is a classifier ({text_of(config.student.model)}). It learnt, from public "
            f"records, what a model believes about them that was made in {steps}."
        )
    else:
        what = f"`{STUDENT_FILE}` is a linear classifier, made in {steps}."
    return _card(
        config,
        data,
        result,
        f"{what} `privacy.json` holds all settings, `report.html` the whole story.",
        has_model,
        _quality_in_words(result.quality, result.accuracy is not None),
        "It knows what the noisy steps left of the records: classes that few people have may never be named.",
    )


def _what(result: StudyResult, config: StudyConfig, data: StudyData, has_student: bool) -> str:
    labels = result.labels
    released = (
        f"{count(len(labels.labels))} labels (`labels.csv`), released after {count(labels.n_asked)} "
        "questions about public records"
    )
    if (result.folder.release / HISTOGRAMS_FILE).exists():
        released += f", with the noisy counts behind them (`{HISTOGRAMS_FILE}`)"
    if not has_student:
        return f"This folder holds {released}. There is no student in it (see *Limits*)."
    given = ""
    if data.given is not None:
        given = f", {count(len(data.given.codes))} records that their owners let be published, as they are,"
    return (
        f"`{STUDENT_FILE}` is a classifier ({text_of(config.student.model)}). It learnt from public records"
        f"{given} and {released}. These come from the noisy votes of "
        f"{count(result.plan.n_teachers)} teachers, each trained on some of the private records; neither "
        "teachers nor votes are published. `privacy.json` holds all settings, `report.html` the whole story."
    )


def _inputs(data: StudyData) -> list[str]:
    inputs = described(data.X_public)
    if "columns" not in inputs:
        shape = " × ".join(map(str, inputs["shape"]))
        return [f"A record is an array of {inputs['kind']} of shape {shape}."]
    columns = inputs["columns"]
    more = [f"… and {count(len(columns) - _SHOWN)} more."] if len(columns) > _SHOWN else []
    return ["A record has these columns:", table_of(("column", "holds"), columns[:_SHOWN]), *more]


def _answers(config: StudyConfig) -> list[str]:
    """Say what its answers and probabilities mean, where that is not what one expects."""
    goal, lines = config.student.goal, []
    if goal == BALANCED:
        lines.append(
            "It is to be right about each class alike, however frequent that is: the class that it names "
            "need not be the most probable one."
        )
    if not config.is_direct and goal != ACCURACY and config.student.class_shares is None:
        lines.append(
            "Its probabilities are those of classes that are equally frequent: they put records in order, "
            "and are no chances."
        )
    return [" ".join(lines)] if lines else []


def _use(data: StudyData) -> list[str]:
    is_table = isinstance(data.X_public, pd.DataFrame)
    file, read = (
        (
            "table.csv",
            'collegium.datasets.read_table("table.csv")  # these columns, and no others',
        )
        if is_table
        else ("records.npy", 'numpy.load("records.npy")')
    )
    imports = "import collegium" if is_table else "import collegium, numpy"
    return [
        "## How to use it",
        f"```\ncollegium predict RELEASE {file} --out predictions.csv\n```",
        f"where RELEASE is this folder, or in Python:\n\n```python\n{imports}\n\n"
        f'student = collegium.load_student("RELEASE")\nrecords = {read}\nstudent.predict(records)\n```',
        "The file is read without running anything of it, and nothing but known types is taken out of it.",
    ]


def _quality(result: StudyResult) -> list[str]:
    lines = _quality_in_words(result.quality, result.student_accuracy is not None)
    if result.label_accuracy is not None:
        lines.append(
            f"{result.label_accuracy:.1%} of the released labels are right, where public truth is known."
        )
    return lines


def _quality_in_words(quality: Quality | None, tested: bool) -> list[str]:
    if quality is None:
        return ["No public record has a known class, so nobody knows."]
    lines = [
        f"{text_of(quality.verdict)}.",
        text_of(f"{quality.reason} {quality.figures()}".strip()),
    ]
    return [*lines, *["`effects.json` has it by class and group."] * tested]


def _limits(knows: str, notes: tuple[str, ...]) -> list[str]:
    lines = [
        knows,
        "It was measured, if at all, on the public records of one study. For other people, places or times "
        "nobody knows how good it is.",
        *notes,
    ]
    return [points(lines)]


def points(lines: Iterable[str]) -> str:
    """Write sentences one below the other."""
    return "\n".join(f"- {text_of(line)}" for line in lines)


def table_of(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([text_of(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _listed(names: list[object]) -> str:
    more = f", … ({count(len(names))} in all)" if len(names) > _SHOWN else ""
    return ", ".join(text_of(str(name)) for name in names[:_SHOWN]) + more


def text_of(text: str) -> str:
    """Write a text as Markdown shows it; whatever is a mark there is not one here."""
    return re.sub(r"([\\`*_\[\]<>|#&$~])", r"\\\1", clean(text))
