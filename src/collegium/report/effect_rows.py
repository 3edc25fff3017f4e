"""Tables of a report about classes and groups: who shaped the votes, and for whom the student is right."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from collegium.evaluation.effects import Effects
from collegium.report.numbers import count, interval, plain, share


def class_rows(effects: Effects) -> list[dict[str, str]]:
    """Write one row per class.

    Returns: ``name``, ``labels``, ``part`` (of all labels), ``public`` (share that the user gave),
        ``right`` (of labels), ``student`` and ``named`` (share of test records that the student
        gives the class).
    """
    total = sum(row.labels for row in effects.classes)
    return [
        {
            "name": row.name,
            "labels": count(row.labels),
            "part": share(row.labels / total if total else math.nan),
            "public": share(row.public_share),
            "right": _rate(row.label_accuracy, row.true_among_labelled or 0),
            "student": _rate(row.student_accuracy, row.test_records),
            "named": share(row.named_by_student),
        }
        for row in effects.classes
    ]


def group_rows(effects: Effects, shown: Collection[str]) -> list[dict[str, str]]:
    """Write one row per group that is shown.

    Returns: ``name``, ``people``, ``owners`` and ``influence`` (shares), ``each`` (influence of one
        person) and ``student``.
    """
    return [
        {
            "name": row.name,
            "people": count(row.owners),
            "owners": share(row.owner_share),
            "influence": share(row.influence_share),
            "each": plain(round(row.influence_per_owner, 3)),
            "student": _rate(row.student_accuracy, row.test_records),
        }
        for row in effects.groups
        if row.name in shown
    ]


def shown_columns(effects: Effects) -> dict[str, bool]:
    """Tell which columns have anything to show."""
    classes, groups = effects.classes, effects.groups
    return {
        "public": any(row.public_share is not None for row in classes),
        "right": any(row.label_accuracy is not None for row in classes),
        "student": any(row.student_accuracy is not None for row in classes),
        "group_student": any(row.student_accuracy is not None for row in groups),
    }


def spread_sentence(effects: Effects) -> str:
    """Say for which class the student is most, and for which it is least often right; may be empty."""
    known = [row for row in effects.classes if row.student_accuracy is not None]
    if len(known) < 2:
        return ""
    known.sort(key=lambda row: row.student_accuracy or 0.0)
    worst, best = known[0], known[-1]
    return (
        f"Of the test records that truly are of class {worst.name} the student gets "
        f"{share(worst.student_accuracy)} right, of those of class {best.name} "
        f"{share(best.student_accuracy)}."
    )


def as_context(effects: Effects, shown: Collection[str]) -> dict[str, Any]:
    """Collect what the template shows, of the groups that are."""
    return {
        "classes": class_rows(effects),
        "groups": group_rows(effects, shown),
        "shown": shown_columns(effects),
        "spread": spread_sentence(effects),
    }


def _rate(rate: float | None, n: int) -> str:
    if rate is None:
        return "—"
    low, high = interval(min(1.0, max(0.0, rate)), n)
    return f"{share(rate)} of {count(n)} ({share(low)} to {share(high)})"
