"""A person's receipt: one page about one account, in words that are theorems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from collegium.ledger.books import Account, Charge, Grant
from collegium.ledger.limits import Cost, Limit, right_guesses
from collegium.report.numbers import clean, down, up_of_down
from collegium.report.page import environment

WHAT_IT_MEANS = (
    "Imagine somebody who knows the records of everybody else and sees everything that was published, and "
    "who must decide: do these results hold your records, or blanks in their place? Guessing is right 50 "
    "times in 100."
)
NOTHING_YET = "Nothing has been learnt from your records. So nobody can do better than guessing."
NOT_KNOWN = "There is no account under this name: nothing was learnt from records under it."


@dataclass(frozen=True)
class Receipt:
    """What a receipt says, in words.

    ``chosen``: which level, when. ``used``: one (name, day, share) for each release.
    ``meaning``: what the best test can do. ``right``: how often it is right, of 100; 50 is guessing.
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


def receipt_of(owner: str, account: Account | None) -> Receipt:
    """Write a person's receipt; an unknown name gets that of somebody without records."""
    owner = clean(owner)
    if account is None:
        return Receipt(owner, NOT_KNOWN, [], [], "", _meaning(Cost(0.0, 0.0)), 50)
    spent, limit = account.standing.spent, account.standing.limit
    used = [_used(charge, limit.mu_squared) for charge in account.charges]
    if account.standing.budget.is_unlimited:
        left = "You set no limit: nothing that was learnt from your records is private."
    elif account.standing.has_left:
        left = "You have left: nothing more will be learnt from your records."
    elif not limit.allows(spent):
        left = "More was used than you grant now: nothing more will be learnt from your records."
    else:
        share = account.standing.left.mu_squared / limit.mu_squared
        left = f"Left of your budget: {_percent_down(share)}."
    heading = (
        f"{len(used)} release{'s' * (len(used) != 1)} used your records: together ε = "
        f"{up_of_down(account.standing.epsilon_spent, account.standing.budget.epsilon)} that you grant (δ = "
        f"{account.standing.budget.delta:g})."
        if used
        else "Nothing has used your records yet."
    )
    return Receipt(
        owner,
        heading,
        [_chosen(grant) for grant in account.grants],
        used,
        left,
        _meaning(spent, None if account.standing.has_left else limit),
        _of_100(right_guesses(spent)),
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


def _used(charge: Charge, limit: float) -> tuple[str, str, str]:
    release = charge.release
    day = release.opened.at[:10]
    share = 0.0 if math.isinf(limit) else charge.cost.mu_squared / limit
    much = "—" if math.isinf(limit) or math.isinf(share) else _percent_up(share)
    return clean(release.name), day, much if release.is_settled else f"up to {much}"


def _meaning(spent: Cost, limit: Limit | None = None) -> list[str]:
    if spent.is_nothing:
        lines = [NOTHING_YET]
    else:
        lines = [
            WHAT_IT_MEANS,
            f"With all that was published, nobody can be right more than {_of_100(right_guesses(spent))} "
            "times in 100, whatever is computed from it.",
        ]
    if limit is not None and limit.allows(spent) and math.isfinite(limit.mu_squared):
        most = _of_100(limit.right_guesses(spent))
        lines.append(
            f"If all of your budget is used one day, it will be at most {most} times in 100."
        )
    return lines


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
