"""How a beginner is asked: on a terminal, or by naming the options that answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import typer

from collegium.cli.console import out, say
from collegium.errors import InputError
from collegium.plain_text import harmless

if TYPE_CHECKING:
    from collegium.study.first_steps.prompts import Question

T = TypeVar("T")

_HOW_MANY = ("", "One option is", "Two options are", "Three options are", "Four options are")


def somebody_is_there() -> bool:
    """Tell whether questions can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Terminal:
    """Asks, and asks again where an answer means nothing."""

    def __init__(self) -> None:
        self._has_asked = False

    def tell(self, sentence: str) -> None:
        """Show what was inferred."""
        out.print(f"• {sentence}", soft_wrap=True)

    def ask(self, question: Question[T]) -> T | None:
        """Return the answer; None to what is asked beside other questions only, where there were none."""
        if question.is_extra and not self._has_asked:
            return None
        self._has_asked = True
        proposal = question.proposal
        text = f"? {question.text}" + f" [{proposal}]" * bool(proposal)
        shown = " ".join(harmless(text).split())
        while True:
            answer = typer.prompt(shown, default=proposal, show_default=False, err=True)
            try:
                return question.read(str(answer).strip())
            except InputError as error:
                say("error:", "red", str(error))

    def require_answers(self) -> None:
        """Do nothing: every question was answered."""

    def finish(self) -> None:
        """Do nothing: everything was shown."""


class Unattended:
    """Asks nobody: one line refuses all that is missing, and names the options that answer it."""

    def __init__(self) -> None:
        self._missing: list[str] = []
        self._inferred: list[str] = []

    def tell(self, sentence: str) -> None:
        """Keep what was inferred until there is a study."""
        self._inferred.append(sentence)

    def ask(self, question: Question[T]) -> None:
        """Remember the option that answers it."""
        if question.is_needed:
            self._missing.append(question.option)

    def require_answers(self) -> None:
        """Refuse if an option is missing."""
        if self._missing:
            raise InputError(f"{_HOW_MANY[len(self._missing)]} missing: {'; '.join(self._missing)}")

    def finish(self) -> None:
        """Show what was inferred."""
        for sentence in self._inferred:
            out.print(f"• {sentence}", soft_wrap=True)
