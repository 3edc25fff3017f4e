"""Tables about levels and classes: who shaped what was learnt, and for whom a model is right."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from collegium.evaluation.effects import ClassEffect, Effects
from collegium.report.numbers import count, interval, plain, share
from collegium.report.sections import Column, Table


def influence_table(effects: Effects, shown: Collection[str], model: str, influence: str) -> Table:
    """Tabulate people and influence of the levels that are shown.

    ``model``: what the published model is called. ``influence``: what its share is of.
    """
    judged = any(row.student_accuracy is not None for row in effects.groups)
    caption = (
        f"Share of the influence: {influence}. Influence of one person: compared with equal budgets, where "
        "it is 1. "
    )
    caption += (
        f"The {model} on public test records of people of each level, with 95 % intervals."
        if judged
        else f"How often the {model} is right for people of each level is unknown: no public test record "
        "carries a level."
    )
    columns = [
        Column("Level", is_number=False),
        *map(
            Column,
            ("People", "Share of the people", "Share of the influence", "Influence of one person"),
        ),
        *([Column(f"{model.capitalize()} right")] if judged else []),
    ]
    rows = [
        (
            row.name,
            count(row.owners),
            share(row.owner_share),
            share(row.influence_share),
            plain(round(row.influence_per_owner, 3)),
            *([_rate(row.student_accuracy, row.test_records)] if judged else []),
        )
        for row in effects.groups
        if row.name in shown
    ]
    return Table(columns, rows, caption)


def class_table(
    effects: Effects, model: str, more: Sequence[tuple[str, Sequence[str]]] = ()
) -> Table:
    """Tabulate the classes.

    ``more``: further columns, after the public share: their names and values.
    """
    classes = effects.classes
    told: list[tuple[str, Sequence[str]]] = []
    if any(row.public_share is not None for row in classes):
        told.append(("Public share", [share(row.public_share) for row in classes]))
    told += more
    judged = any(row.student_accuracy is not None for row in classes)
    if judged:
        right = [_rate(row.student_accuracy, row.test_records) for row in classes]
        told.append((f"{model.capitalize()} right", right))
        told.append((f"Named by the {model}", [share(row.named_by_student) for row in classes]))
    caption = "Classes in the order of the public class list."
    if judged or labels_right(effects):
        caption += (
            " Right: of the records that truly are of the class, with 95 % intervals; — where there is "
            "none."
        )
    columns = [Column("Class", is_number=False), *(Column(name) for name, _ in told)]
    rows = [
        (row.name, *(values[number] for _, values in told)) for number, row in enumerate(classes)
    ]
    return Table(columns, rows, caption)


def labels_right(effects: Effects) -> list[str]:
    """Write how many labels of each class are right; empty where that is not known."""
    classes = effects.classes
    if all(row.label_accuracy is None for row in classes):
        return []
    return [_rate(row.label_accuracy, row.true_among_labelled or 0) for row in classes]


def spread_sentence(effects: Effects, model: str = "student") -> str:
    """Say for which class the model is most, and for which it is least often right; may be empty."""
    known: list[tuple[float, ClassEffect]] = [
        (row.student_accuracy, row) for row in effects.classes if row.student_accuracy is not None
    ]
    if len(known) < 2:
        return ""
    known.sort(key=lambda pair: pair[0])
    (least, worst), (most, best) = known[0], known[-1]
    return (
        f"The {model} is right on {share(least)} of the test records of class “{worst.name}”, and on "
        f"{share(most)} of those of class “{best.name}”."
    )


def _rate(rate: float | None, n: int) -> str:
    if rate is None:
        return "—"
    low, high = interval(min(1.0, max(0.0, rate)), n)
    return f"{share(rate)} of {count(n)} ({share(low)} to {share(high)})"
