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
from collegium.report.numbers import clean, down

BUDGET = (
    "A level is a budget, which limits how much can be learnt from your records. Every release that "
    "uses your records is entered in one account in your name, and the limit is for all releases "
    "together."
)
NOTHING_YET = "No release has used your records so far, so nobody can do better than guess."
AT_MOST = (
    "As long as your budget is kept, nobody can be right more than {right} times in 100, whatever "
    "they compute from all releases together, including later ones."
)
LARGEST = (
    "This number belongs to the largest budget that you have ever granted, because what was released "
    "under it stays released."
)
NO_LIMIT = (
    "There is no limit, so nothing is promised. People who see the releases may learn everything in "
    "your records."
)
ONCE_NO_LIMIT = "For a time you set no limit. Nothing is promised about what was released then."
NEXT_TO_NOTHING = (
    "This budget is so large that it promises next to nothing. It allows somebody to be right 100 "
    "times in 100."
)
GIVING = (
    "Your records may then be published as they are, with all that they say about you. Anybody may "
    "read and use them, and nothing in them is private. What is published cannot be taken back."
)
SAYING_NO = "You may say no. Your records are then left out, and not used for anything (ε = 0)."
CHANGING = (
    "You may choose another level later. If it allows more, it counts at once. If it allows less, it "
    "counts for all that comes; what was released stays released, under the budget that you granted "
    "before. If more than the new level allows has been used by then, no further release uses your "
    "records."
)
LEAVING = (
    "You may leave. From then on, no release uses your records. What was released cannot be taken "
    "back. How much of your budget was used is remembered, and if you come back, your account goes on "
    "from there."
)
SMALL_PRINT = (
    "The numbers are proved, not measured, and hold for every way of deciding. They tell what to "
    "expect before anything is released; by chance, a release can reveal more or less.",
    "What is learnt about people in general may also be true of you, whether or not your records are "
    "used. No budget changes that.",
    "The promise is about the contents of your records. It does not hide which level you choose, and "
    "it does not cover releases that are not entered in your account.",
)
BY_RECORD = (
    "Here each record counts by itself. If you have several records, the promise for all of them "
    "together is weaker."
)
MEASURES = (
    "ε (epsilon) and δ (delta) are the usual measures of how much can be learnt; smaller numbers mean "
    "less."
)
KEY = {GUESS: "right by guessing", GAIN: "right beyond that, at most", REST: "wrong"}
_WIDTH = 78


def spoken(level: str, budget: Budget) -> str:
    """Name a level, and say what it allows."""
    much = "no limit: no privacy" if budget.is_unlimited else f"ε = {down(budget.epsilon)}"
    return f"level “{clean(level)}” ({much})"


def game(neighbours: Neighbours) -> str:
    """Say what the best test decides; ``neighbours``: what the promise is about."""
    other = (
        "were there other records in their place"
        if neighbours is Neighbours.REPLACE
        else "was your place left blank"
    )
    return (
        "Imagine that somebody knows everybody else's records and sees everything that is released. "
        f"They must decide: were your records used, or {other}? Both are equally likely beforehand, so "
        "guessing is right 50 times in 100."
    )


@dataclass(frozen=True)
class Promise:
    """What is promised, in words; ``right``: how often the best test is right at most, of 100."""

    words: str
    right: int

    @property
    def chances(self) -> Chances:
        """Draw it."""
        return Chances(self.right)


def promise(budgets: Sequence[Budget], lifetime: Lifetime) -> Promise:
    """Say what is promised under one budget, or several over time.

    ``budgets``: the one that counts now last. Totals stay within the limit of one or another of them,
    whatever came out: so within the largest in each number, about which the promise is.
    ``lifetime``: what the ledger promises everybody. How much of δ it sets aside changes nothing: none leaves
        the best test most, and that is what is said.
    """
    if any(budget.is_unlimited for budget in budgets):
        return Promise(NO_LIMIT if budgets[-1].is_unlimited else ONCE_NO_LIMIT, 100)
    right = right_of_100(budgets, lifetime)
    words = [NEXT_TO_NOTHING if right == 100 else AT_MOST.format(right=right)]
    if right_of_100(budgets[-1:], lifetime) < right:
        words.append(LARGEST)
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
