"""A person's receipt: one page about one account, in words that are theorems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from collegium.accounting.neighbours import Neighbours
from collegium.ledger.books import Account, Charge, Grant
from collegium.ledger.limits import Limit
from collegium.report.numbers import clean, down, up_of_down
from collegium.report.page import environment

WHAT_IT_MEANS = (
    "Imagine somebody who knows the records of everybody else and sees everything that is published, and who "
    "must decide: do these results hold your records, or {others} in their place? Guessing is right 50 times "
    "in 100. As long as your budget is kept, nobody can be right more than {right} times in 100, whatever is "
    "computed from all that may ever be published."
)
NOTHING_YET = "Nothing has been learnt from your records. So nobody can do better than guessing."
NOT_KNOWN = "There is no account under this name: nothing was learnt from records under it."


@dataclass(frozen=True)
class Receipt:
    """What a receipt says, in words.

    ``chosen``: which level, when. ``used``: one (name, day, share) for each release.
    ``meaning``: what the best test can do. ``right``: how often it is right at most, of 100; 50 is guessing.
    """

    owner: str
    heading: str
    chosen: list[str]
    used: list[tuple[str, str, str]]
    left: str
    meaning: list[str]
    right: int

    def as_text(self) -> str:
        """Write it as plain text."""
        lines = [f"The privacy account of {self.owner}", "", self.heading, ""]
        lines += [f"- {line}" for line in self.chosen]
        if self.used:
            lines += ["", "What used your records, and how much of your budget it took:"]
            width = max(len(name) for name, _, _ in self.used)
            lines += [f"  {name:<{width}}  {day}  {share:>8}" for name, day, share in self.used]
        lines += ["", self.left] if self.left else []
        lines += ["", "What it means", *self.meaning, ""]
        return "\n".join(lines)

    def as_html(self) -> str:
        """Write it as one page that needs nothing else."""
        return environment().get_template("receipt.html.j2").render(receipt=self, dots=dots)


def receipt_of(
    owner: str, account: Account | None, neighbours: Neighbours = Neighbours.ADD_OR_REMOVE
) -> Receipt:
    """Write a person's receipt; an unknown name gets that of somebody without records.

    ``neighbours``: what the ledger promises something about.
    """
    owner = clean(owner)
    if account is None:
        return Receipt(owner, NOT_KNOWN, [], [], "", [NOTHING_YET], 50)
    standing = account.standing
    spent, limit = standing.spent, standing.limit
    used = [_used(charge, limit) for charge in account.charges]
    if standing.budget.is_unlimited:
        left = "You set no limit: nothing that was learnt from your records is private."
    elif standing.has_left:
        left = "You have left: nothing more will be learnt from your records."
    elif not limit.allows(spent):
        left = "More was used than you grant now: nothing more will be learnt from your records."
    else:
        left = f"Left of your budget: {_percent_down(1 - limit.share_of(spent))}."
    heading = (
        f"{len(used)} release{'s' * (len(used) != 1)} used your records: together ε = "
        f"{up_of_down(standing.epsilon_spent, standing.budget.epsilon)} that you grant (δ = "
        f"{standing.budget.delta:g}) is booked so far."
        if used
        else "Nothing has used your records yet."
    )
    # What was released under a larger budget keeps the promise under which it was made.
    right = max(_of_100(promised.right_guesses(spent)) for promised in account.limits)
    others = "others" if neighbours is Neighbours.REPLACE else "blanks"
    meaning = [WHAT_IT_MEANS.format(others=others, right=right)]
    chosen = [_chosen(grant) for grant in account.grants]
    return Receipt(
        owner, heading, chosen, used, left, [*([] if used else [NOTHING_YET]), *meaning], right
    )


def _chosen(grant: Grant) -> str:
    day = grant.at[:10]
    if grant.has_left:
        return f"{day}: you left."
    much = (
        "no limit (no privacy)"
        if grant.budget.is_unlimited
        else f"ε = {down(grant.budget.epsilon)}"
    )
    return f"{day}: level “{clean(grant.level)}”, that is {much}."


def _used(charge: Charge, limit: Limit) -> tuple[str, str, str]:
    release = charge.release
    day = release.opened.at[:10]
    much = "—" if math.isinf(limit.mu_squared) else _percent_up(limit.share_of(charge.cost))
    return clean(release.name), day, much if release.is_settled else f"up to {much}"


def _of_100(right: float) -> int:
    return math.ceil(100 * right)


def _percent_up(share: float) -> str:
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f} %"


def _percent_down(share: float) -> str:
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f} %"


def dots(right: int) -> list[dict[str, Any]]:
    """Place a hundred dots: 50 that guessing gets right, what the best test gains, and the rest."""
    kinds = ["guess"] * 50 + ["gain"] * (right - 50) + ["rest"] * (100 - right)
    return [
        {"x": 8 + 16 * (place % 20), "y": 8 + 16 * (place // 20), "kind": kind}
        for place, kind in enumerate(kinds)
    ]
