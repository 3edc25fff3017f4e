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
from collegium.report.languages import ENGLISH, Language, message
from collegium.report.numbers import clean, down
from collegium.report.page import environment

_TITLE = message("You choose how much can be learnt from your records")
_PICTURES = message("In the pictures:")
_TO_KNOW = message("What you should know")
_CHOOSING = message("If you choose “{level}”")
_NO = message("If you say no")
_CHANGING = message("If you change your mind")
_LEAVING = message("If you leave")


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
    language: Language = ENGLISH

    @property
    def words(self) -> dict[str, str]:
        """What every such page says."""
        said = {"title": _TITLE, "budget": words.BUDGET, "pictures": _PICTURES, "to_know": _TO_KNOW}
        return {name: self.language.say(text) for name, text in said.items()}

    def as_text(self) -> str:
        """Write it as plain text, in lines that fit on a page."""
        said = self.words
        lines = [said["title"], *paragraph(said["budget"]), *paragraph(self.game)]
        lines += ["", said["pictures"], *key_in_letters(words.key(self.language))]
        for name, promise, numbers in self.levels:
            lines += ["", "", name, *paragraph(promise.words), "", *promise.chances.letters()]
            lines += paragraph(numbers)
        for heading, text in self.notes:
            lines += ["", "", heading, *paragraph(text)]
        lines += ["", "", said["to_know"]]
        for text in self.small_print:
            lines += paragraph(text)
        return "\n".join([*lines, ""])

    def as_html(self) -> str:
        """Write it as one page that needs nothing else."""
        template = environment().get_template("policy.html.j2")
        return template.render(said=self.words, meanings=words.key(self.language), explained=self)


def explain(
    policy: Policy,
    arrangement: Arrangement = Arrangement(),  # noqa: B008
    promise: Promised = Promised.GAUSSIAN,
    language: Language = ENGLISH,
) -> Explanation:
    """Explain the levels of a policy, to people whose releases are all entered in one ledger.

    ``arrangement``: what is known of owners and their records.
    ``promise``: what the ledger promises.
    """
    lifetime, say = Lifetime(promise), language.say
    by_record = (words.BY_RECORD,) if arrangement.unit == ROW else ()
    return Explanation(
        levels=tuple(
            _explained(name, budget, lifetime, language) for name, budget in policy.levels.items()
        ),
        game=words.game(arrangement.neighbours, language),
        notes=(
            *(
                (say(_CHOOSING, level=clean(name)), say(words.GIVING))
                for name, kind in policy.outside.items()
                if kind == PUBLIC
            ),
            (say(_NO), say(words.SAYING_NO)),
            (say(_CHANGING), say(words.CHANGING)),
            (say(_LEAVING), say(words.LEAVING)),
        ),
        small_print=tuple(map(say, (*words.SMALL_PRINT, *by_record, words.MEASURES))),
        language=language,
    )


def _explained(
    name: str, budget: Budget, lifetime: Lifetime, language: Language
) -> tuple[str, Promise, str]:
    promise = words.promise([budget], lifetime, language)
    write = language.number
    delta = "" if lifetime.promise is Promised.PURE else f", δ = {write(down(budget.delta))}"
    numbers = "" if budget.is_unlimited else f"ε = {write(down(budget.epsilon))}{delta}"
    return language.say(_CHOOSING, level=clean(name)), promise, numbers
