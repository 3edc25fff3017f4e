"""What a budget means for the person who grants it: sentences that are theorems, and a picture of them.

A receipt says them to one person, ``collegium policy explain`` to everybody who is to choose. The theorems
are in ``docs/ledger.md`` ("What a person is told").
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.tradeoff import of_100
from collegium.budgets import Budget
from collegium.ledger.limits import Lifetime, Limit
from collegium.report.chances import GAIN, GUESS, REST, Chances
from collegium.report.languages import ENGLISH, Language, message
from collegium.report.numbers import clean, down

BUDGET = message(
    "Each level is a budget. It limits how much anybody can find out about your records from everything "
    "that is published with their help: tables of numbers, for instance, or programs that have learnt from "
    "many people's records. Each such release takes a part of your budget. One account in your name adds "
    "these parts up, and when the budget is used up, your records are no longer used."
)
NOTHING_YET = message(
    "No release has used your records so far, so nobody can do better than guess."
)
AT_MOST = message(
    "Anybody who tries to find out whether your records were used is right at most {right} times in 100; "
    "by guessing alone, 50 times."
)
LARGEST = message(
    "This number belongs to the largest budget that you have ever granted, because what was released "
    "under it stays released."
)
NO_LIMIT = message(
    "There is no limit, so nothing is promised. People who see the releases may learn everything in "
    "your records."
)
ONCE_NO_LIMIT = message(
    "For a time you had set no limit. Nothing is promised about what was released then."
)
NEXT_TO_NOTHING = message(
    "This budget is so large that it promises next to nothing: somebody may be right 100 times in 100."
)
GIVING = message(
    "Your records may then be published as they are, with everything that they say about you. Anybody may "
    "read and use them. What has been published cannot be taken back."
)
SAYING_NO = message(
    "You may say no. Your records are then left out and not used for anything (ε = 0)."
)
CHANGING = message(
    "You may choose another level later. If it allows more, that counts at once. If it allows less, that "
    "counts for everything that comes; what was released before stays released, under the budget that you "
    "had granted. If more than the new level allows has been used by then, your records are not used again."
)
LEAVING = message(
    "You may leave. From then on, no release uses your records. What was released cannot be taken back. "
    "The account remembers how much of your budget was used; if you come back, it goes on from there."
)
SMALL_PRINT = (
    message(
        "The numbers are proved, not measured, and hold for every way of deciding. They tell what to "
        "expect before anything is released; by chance, a release can reveal more or less."
    ),
    message(
        "What is learnt about people in general may also be true of you, whether or not your records are "
        "used. No budget changes that."
    ),
    message(
        "The promise is about the contents of your records. It does not hide which level you choose, and "
        "it does not cover releases that are not entered in your account."
    ),
)
BY_RECORD = message(
    "Here each record counts by itself. If you have several records, the promise for all of them "
    "together is weaker."
)
MEASURES = message(
    "ε (epsilon) and δ (delta) are the usual measures of how much can be learnt; smaller numbers mean "
    "less."
)
KEY = {
    GUESS: message("right by guessing"),
    GAIN: message("right beyond that, at most"),
    REST: message("wrong"),
}
_LEVEL = message("level “{level}” (ε = {epsilon})")
_LEVEL_WITHOUT = message("level “{level}” (no limit: no privacy)")
_LEFT_EMPTY = message(
    "Imagine somebody who knows everybody else's records and sees everything that is released. They must "
    "decide: were your records used, or was your place left empty?"
)
_REPLACED = message(
    "Imagine somebody who knows everybody else's records and sees everything that is released. They must "
    "decide: were your records used, or were there other records in their place?"
)
_LIMITED = message(
    "Both are equally likely beforehand, so by guessing alone they are right 50 times in 100. As long as "
    "your budget is kept, it limits how often they are right, whatever they compute from all releases "
    "together, including those still to come."
)
_WIDTH = 78


def spoken(level: str, budget: Budget, language: Language = ENGLISH) -> str:
    """Name a level, and say what it allows."""
    if budget.is_unlimited:
        return language.say(_LEVEL_WITHOUT, level=clean(level))
    epsilon = language.number(down(budget.epsilon))
    return language.say(_LEVEL, level=clean(level), epsilon=epsilon)


def game(neighbours: Neighbours, language: Language = ENGLISH) -> str:
    """Say what the best test decides; ``neighbours``: what the promise is about."""
    decision = _REPLACED if neighbours is Neighbours.REPLACE else _LEFT_EMPTY
    return f"{language.say(decision)} {language.say(_LIMITED)}"


def key(language: Language = ENGLISH) -> dict[str, str]:
    """Say what the marks of the picture mean."""
    return {kind: language.say(meaning) for kind, meaning in KEY.items()}


@dataclass(frozen=True)
class Promise:
    """What is promised, in words; ``right``: how often the best test is right at most, of 100."""

    words: str
    right: int

    @property
    def chances(self) -> Chances:
        """Draw it."""
        return Chances(self.right)


def promise(budgets: Sequence[Budget], lifetime: Lifetime, language: Language = ENGLISH) -> Promise:
    """Say what is promised under one budget, or several over time.

    ``budgets``: the one that counts now last. Totals stay within the limit of one or another of them,
    whatever came out: so within the largest in each number, about which the promise is.
    ``lifetime``: what the ledger promises everybody. How much of δ it sets aside changes nothing: none leaves
        the best test most, and that is what is said.
    """
    if any(budget.is_unlimited for budget in budgets):
        is_now = budgets[-1].is_unlimited
        return Promise(language.say(NO_LIMIT if is_now else ONCE_NO_LIMIT), 100)
    right = right_of_100(budgets, lifetime)
    words = [
        language.say(NEXT_TO_NOTHING)
        if right == 100
        else language.say(AT_MOST, right=language.number(str(right)))
    ]
    if right_of_100(budgets[-1:], lifetime) < right:
        words.append(language.say(LARGEST))
    return Promise(" ".join(words), right)


def right_of_100(budgets: Sequence[Budget], lifetime: Lifetime) -> int:
    """How often of 100 the best test may be right; see :func:`promise`. All of them are finite."""
    right = 0.0
    for kept in (lifetime, replace(lifetime, delta_0_share=0.0)):
        limits = [kept.limit(budget) for budget in budgets]
        largest = Limit(
            kept.promise,
            max(limit.mu_squared for limit in limits),
            max(limit.pure_epsilon for limit in limits),
            max(limit.delta_0 for limit in limits),
        )
        right = max(right, largest.right_guesses)
    return of_100(right)


def paragraph(text: str) -> list[str]:
    """Break a text into lines, after an empty one; no lines if there is no text."""
    return ["", *textwrap.wrap(text, _WIDTH)] if text else []
