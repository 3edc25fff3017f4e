"""Answers on a terminal: a line for each, with what is to be minded beside it, and nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from collegium.cli.console import out


def print_answers(
    answers: Sequence[Mapping[str, Any]],
    print_line: Callable[..., None] = out.print,
    beside: Callable[[Mapping[str, Any]], Iterable[str]] = lambda answer: (),
) -> None:
    """Print answers with their notes; what is to be minded with all that cost anything comes once, last.

    ``answers``: as :meth:`collegium.statistics.answers.Answer.to_dict` writes them, with their *text*.
    ``print_line``: prints a line of an answer. ``beside``: what else is said of each.
    """
    of_all = _notes_of_all(answers)
    for answer in answers:
        for line in answer["text"].splitlines():
            print_line(line, soft_wrap=True)
        for line in beside(answer):
            out.print(f"  {line}", style="dim", soft_wrap=True)
        for note in answer["notes"]:
            if note not in answer["text"] and note not in of_all:
                out.print(f"  • {note}", soft_wrap=True)
    for note in of_all:
        out.print(f"• {note}", soft_wrap=True)


def costs_anything(answer: Mapping[str, Any]) -> bool:
    """Tell whether anybody paid for an answer: how many people there are is public, and free."""
    return any(row["epsilon"] for row in answer.get("paid", ()))


def _notes_of_all(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Notes that each of several answers has for which anybody paid."""
    first, *others = [one["notes"] for one in filter(costs_anything, answers)] or [()]
    return [note for note in first if others and all(note in notes for notes in others)]
