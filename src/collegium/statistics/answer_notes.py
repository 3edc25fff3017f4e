"""What is to be minded with answers, each thing once: beside its own answer, or after all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def costs_anything(answer: Mapping[str, Any]) -> bool:
    """Tell whether anybody paid for an answer: how many people there are is public, and free."""
    return any(row["epsilon"] for row in answer.get("paid", ()))


def notes_apart(answers: Sequence[Mapping[str, Any]]) -> tuple[list[list[str]], list[str]]:
    """Part the notes of answers, as :meth:`collegium.statistics.answers.Answer.to_dict` writes these.

    Returns: of each answer those that its text does not hold; and those that each of several answers has
    for which anybody paid.
    """
    first, *others = [one["notes"] for one in filter(costs_anything, answers)] or [()]
    of_all = [note for note in first if others and all(note in notes for notes in others)]
    own = [
        [note for note in one["notes"] if note not in one["text"] and note not in of_all]
        for one in answers
    ]
    return own, of_all
