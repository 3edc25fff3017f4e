"""What each privacy level means for the people who are to choose one: a page for a consent form."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.accounting.neighbours import ROW, Arrangement
from collegium.accounting.promises import Promise as Promised
from collegium.budgets import PUBLIC, Budget, Policy
from collegium.ledger.limits import Lifetime
from collegium.report import in_plain_words as words
from collegium.report.chances import key_in_letters
from collegium.report.in_plain_words import Promise, paragraph
from collegium.report.numbers import clean, down
from collegium.report.page import environment

TITLE = "You choose how much can be learnt from your records"


@dataclass(frozen=True)
class Explanation:
    """What a policy's page says.

    ``levels``: for each what it is called, what it promises, and the same in numbers.
    ``game``: what the promises are about. ``notes``: heading and text of what else there is to choose.
    """

    levels: tuple[tuple[str, Promise, str], ...]
    game: str
    notes: tuple[tuple[str, str], ...]
    small_print: tuple[str, ...]

    def as_text(self) -> str:
        """Write it as plain text, in lines that fit on a page."""
        lines = [TITLE, *paragraph(words.BUDGET), *paragraph(self.game)]
        lines += ["", "In the pictures:", *key_in_letters(words.KEY)]
        for name, promise, numbers in self.levels:
            lines += ["", "", name, *paragraph(promise.words), "", *promise.chances.letters()]
            lines += paragraph(numbers)
        for heading, text in self.notes:
            lines += ["", "", heading, *paragraph(text)]
        lines += ["", "", "What you should know"]
        for text in self.small_print:
            lines += paragraph(text)
        return "\n".join([*lines, ""])

    def as_html(self) -> str:
        """Write it as one page that needs nothing else."""
        template = environment().get_template("policy.html.j2")
        return template.render(title=TITLE, budget=words.BUDGET, meanings=words.KEY, explained=self)


def explain(
    policy: Policy,
    arrangement: Arrangement = Arrangement(),  # noqa: B008
    promise: Promised = Promised.GAUSSIAN,
) -> Explanation:
    """Explain the levels of a policy, to people whose releases are all entered in one ledger.

    ``arrangement``: what is known of owners and their records.
    ``promise``: what the ledger promises.
    """
    lifetime = Lifetime(promise)
    by_record = (words.BY_RECORD,) if arrangement.unit == ROW else ()
    return Explanation(
        levels=tuple(_explained(name, budget, lifetime) for name, budget in policy.levels.items()),
        game=words.game(arrangement.neighbours),
        notes=(
            *(
                (f"If you choose “{clean(name)}”", words.GIVING)
                for name, kind in policy.outside.items()
                if kind == PUBLIC
            ),
            ("If you say no", words.SAYING_NO),
            ("If you change your mind", words.CHANGING),
            ("If you leave", words.LEAVING),
        ),
        small_print=(*words.SMALL_PRINT, *by_record, words.MEASURES),
    )


def _explained(name: str, budget: Budget, lifetime: Lifetime) -> tuple[str, Promise, str]:
    promise = words.promise([budget], lifetime)
    delta = "" if lifetime.promise is Promised.PURE else f", δ = {down(budget.delta)}"
    numbers = "" if budget.is_unlimited else f"ε = {down(budget.epsilon)}{delta}"
    return f"If you choose “{clean(name)}”", promise, numbers
