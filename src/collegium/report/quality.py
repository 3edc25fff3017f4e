"""What a report says of a published model: is it any good, and beside what."""

from __future__ import annotations

from collegium.distillation.goal import ACCURACY, AUC, BALANCED
from collegium.evaluation.quality import Quality
from collegium.report import words
from collegium.report.numbers import count, interval, share
from collegium.report.sections import Banner, Code, Column, Folded, Headline, Table


def quality_banner(quality: Quality | None, without: tuple[str, str], foretold: str = "") -> Banner:
    """Say whether a model is better than always giving one answer.

    ``without``: heading and text where nothing is known. ``foretold``: what was predicted, and came out.
    """
    if quality is None:
        return Banner("plain", without[0], f"{without[1]} {foretold}".rstrip())
    text = f"{quality.reason} {_sentence(quality.figures())} {foretold}"
    return Banner(quality.tone, quality.verdict, " ".join(text.split()))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'.' * bool(text)}"


def quality_headlines(quality: Quality | None, model: str = "student") -> list[Headline]:
    """Figures of a model, with what guessing and always giving one answer would give beside them."""
    if quality is None:
        return []
    where = f"of {count(quality.n)} {quality.measured_on}"
    known = quality.truth_is_known
    measures = _measures(quality, model)
    first = measures.pop(
        {BALANCED: "Balanced accuracy", AUC: "ROC AUC"}.get(quality.goal, ""), None
    )
    always = Headline(
        f"Always answering “{quality.majority}”",
        share(quality.majority_share),
        f"{where}: a useful {model} must beat this"
        if known and quality.goal == ACCURACY
        else f"{where}: the most frequent one",
    )
    return [
        *([] if first is None else [first]),
        _right(quality, model, where),
        always,
        *measures.values(),
    ]


def threshold_tables(quality: Quality | None) -> list[Folded]:
    """Say what other thresholds than the model's own would find; nothing where that is unknown."""
    if quality is None or not quality.thresholds:
        return []
    name = quality.thresholds[0].name
    never = (
        f" No record reaches {quality.thresholds[0].at:g}: what it learnt from named “{name}” too rarely, or "
        "never."
        if all(row.precision is None for row in quality.thresholds)
        else ""
    )
    table = Table(
        [
            Column(f"answer “{name}” from a probability of"),
            Column(f"finds so many of all “{name}” (recall)"),
            Column("so many of these are right (precision)"),
        ],
        [
            (
                f"{row.at:g}",
                share(row.recall),
                "none is found" if row.precision is None else share(row.precision),
            )
            for row in quality.thresholds
        ],
        (
            f"Of {count(quality.n)} {quality.measured_on}.{never} ",
            Code(f"collegium predict RELEASE TABLE --threshold '{name}=0.2'"),
            " answers so.",
        ),
        "Other thresholds",
    )
    return [Folded(f"If “{name}” were answered more often, or less: other thresholds", [table])]


def _right(quality: Quality, model: str, where: str) -> Headline:
    if not quality.truth_is_known:
        return Headline(
            f"{model.capitalize()} and released answers agree",
            share(quality.accuracy),
            f"{where}, from which it learnt. How often it is right is unknown",
        )
    low, high = interval(quality.accuracy, quality.n)
    return Headline(
        f"{model.capitalize()} accuracy",
        share(quality.accuracy),
        f"{where} (n = {count(quality.n)}; 95 % interval {share(low)} to {share(high)})",
    )


def _measures(quality: Quality, model: str) -> dict[str, Headline]:
    told = {}
    if quality.chance < 1:
        told["Balanced accuracy"] = (
            share(quality.balanced_accuracy),
            f"the {model}'s accuracy if each class counted alike, however frequent it is; guessing gives "
            f"{share(quality.chance)}",
        )
    if quality.auc is not None:
        told["ROC AUC"] = (f"{quality.auc:.3f}", words.AUC)
    if quality.calibration_error is not None:
        told["Calibration error"] = (
            f"{quality.calibration_error:.3f}",
            words.CALIBRATION.format(model),
        )
    beside = "" if quality.truth_is_known else " against released answers"
    return {name: Headline(f"{name}{beside}", value, note) for name, (value, note) in told.items()}
