"""Why voting stops, in words."""

from __future__ import annotations

from collegium.accounting.neighbours import OWNER

_STOPPED = {
    "budget": "voting stopped before the next query, which {somebody} could not have afforded",
    "queries": "all queries were asked: one for each public record, or as many as max_queries",
    "labels": "the wanted number of labels was reached",
}


def stopped(reason: str, unit: str = OWNER) -> str:
    """Say why voting stopped; a reason that is not known stands for itself. ``unit``: whose budgets pay.

    Examples
    --------
    >>> stopped("budget", "teacher")
    "voting stopped before the next query, which some teacher's budget could not have afforded"
    """
    somebody = "somebody" if unit == OWNER else "some teacher's budget"
    return _STOPPED.get(reason, reason).format(somebody=somebody)
