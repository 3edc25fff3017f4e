"""What a query is charged: the one rule for asking, replaying, exporting and planning ahead.

A query may be started while the account affords what is *reserved*: in the worst case its check and its
answer, under a data-dependent account its check alone. The check is charged before it is drawn, whatever
comes of it. The answer is charged before it is drawn, too; a query that was lost in a crash is charged as
if it had been answered, as far as anybody can pay for that.
"""

from __future__ import annotations

from typing import NamedTuple

from collegium.accounting.accountant import Accountant, Cost

#: Verdicts on a query; see :class:`~collegium.pate.voting.labelling.Outcome`.
ANSWERED, REJECTED, REINFORCED = "answered", "rejected", "reinforced"
LOST, UNAFFORDABLE = "lost", "unaffordable"


class Price(NamedTuple):
    """What one query may cost."""

    check: Cost
    answer: Cost
    reserve: Cost


class Charge(NamedTuple):
    """What was charged, and for what: "check" or "answer"."""

    purpose: str
    cost: Cost


def may_start(account: Accountant, price: Price) -> bool:
    """Whether a query may be started; changes nothing."""
    return account.affords(price.reserve)


def charge_again(account: Accountant, price: Price, verdict: str) -> list[Charge] | None:
    """Charge a query whose verdict is known already.

    Returns: None, and nothing was charged, if it was lost, but could never have been started.
    """
    if verdict == LOST and not may_start(account, price):
        return None
    charges = [Charge("check", price.check)]
    account.charge(price.check)
    if verdict == ANSWERED or (verdict == LOST and account.affords(price.answer)):
        charges.append(Charge("answer", price.answer))
        account.charge(price.answer)
    return charges
