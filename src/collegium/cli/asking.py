"""How a beginner is asked: on a terminal, or by naming the options that say it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from collegium.cli.console import out, say
from collegium.errors import InputError
from collegium.plain_text import harmless

if TYPE_CHECKING:
    from collegium.study.first_steps.prompts import Question


def somebody_is_there() -> bool:
    """Tell whether questions can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Terminal:
    """Asks, and asks again where an answer means nothing."""

    def tell(self, sentence: str) -> None:
        """Say what was guessed."""
        out.print(f"• {sentence}", soft_wrap=True)

    def ask(self, question: Question) -> Any:
        """Return the answer."""
        proposal = question.proposal
        text = f"? {question.text}" + f" [{proposal}]" * bool(proposal)
        shown = " ".join(harmless(text).split())
        while True:
            answer = typer.prompt(shown, default=proposal, show_default=False, err=True)
            try:
                return question.read(str(answer).strip())
            except InputError as error:
                say("error:", "red", str(error))

    def settle(self) -> None:
        """Do nothing: every question was answered."""

    def done(self) -> None:
        """Do nothing: everything was said."""


class Options:
    """Asks nobody: all that is missing is refused in one line, which names the options that say it."""

    def __init__(self) -> None:
        self._missing: list[str] = []
        self._told: list[str] = []

    def tell(self, sentence: str) -> None:
        """Keep what was guessed until there is a study."""
        self._told.append(sentence)

    def ask(self, question: Question) -> None:
        """Remember the option that says it."""
        if question.is_needed:
            self._missing.append(question.flag)

    def settle(self) -> None:
        """Refuse if something is missing."""
        if self._missing:
            raise InputError(f"what only you know is missing: {'; and '.join(self._missing)}")

    def done(self) -> None:
        """Say what was guessed."""
        for sentence in self._told:
            out.print(f"• {sentence}", soft_wrap=True)
