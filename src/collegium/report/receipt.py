"""A person's receipt: one page about one account, in words that are theorems."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import escape

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.promises import Promise as Promised
from collegium.accounting.statement import budget_and_cost, percent_left, percent_spent
from collegium.ledger.entries import Account, Charge, Grant, Standing
from collegium.report.chances import key_in_letters
from collegium.report.in_plain_words import (
    KEY,
    MEASURES,
    NOTHING_YET,
    SMALL_PRINT,
    Promise,
    game,
    paragraph,
    promise,
    spoken,
)
from collegium.report.numbers import clean, down
from collegium.report.page import environment

NOT_KNOWN = (
    "There is no account under this name, so no release that is entered here has used records under "
    "it. Check that the name is spelt exactly as in the records."
)
UP_TO = (
    "“Up to” means that a release has not ended yet; what it does not use returns to your budget."
)
NO_MORE = "No further release will use your records."


@dataclass(frozen=True)
class Receipt:
    """What a receipt says, in words.

    ``heading``: how things stand. ``chosen``: which level, when.
    ``used``: one (name, day, share of the budget) for each release; ``note``: on these.
    ``meaning``: what the promise is about. ``numbers``: for those who know ε.
    """

    owner: str
    heading: str
    meaning: tuple[str, ...]
    promise: Promise
    chosen: tuple[str, ...] = ()
    used: tuple[tuple[str, str, str], ...] = ()
    note: str = ""
    numbers: str = ""

    def as_text(self) -> str:
        """Write it as plain text, in lines that fit on a page."""
        lines = [f"The privacy account of {self.owner}", *paragraph(self.heading)]
        if self.chosen:
            lines += ["", "What you chose", *(f"- {line}" for line in self.chosen)]
        if self.used:
            lines += ["", "What used your records, and how much of your budget it took"]
            width = max(len(name) for name, _, _ in self.used)
            lines += [f"  {name:<{width}}  {day}  {share:>13}" for name, day, share in self.used]
            lines += paragraph(self.note)
        lines += ["", "What it means"]
        for sentence in (*self.meaning, self.promise.words):
            lines += paragraph(sentence)
        lines += ["", *self.promise.chances.letters(), "", *key_in_letters(KEY)]
        for sentence in (self.numbers, *SMALL_PRINT):
            lines += paragraph(sentence)
        return "\n".join([*lines, ""])

    def as_html(self) -> str:
        """Write it as one page that needs nothing else."""
        template = environment().get_template("receipt.html.j2")
        return template.render(receipt=self, meanings=KEY, small_print=SMALL_PRINT)


def texts_of(
    owners: Sequence[str],
    accounts: Sequence[Account | None],
    neighbours: Neighbours,
    *,
    html: bool,
) -> Iterator[str]:
    """Write many people's receipts: those who have one account are told the same.

    ``html``: whether as pages.
    """
    told: dict[int, list[str]] = {}
    anybody = secrets.token_hex(16)  # in the place of a name: no text can hold it by chance
    for owner, account in zip(owners, accounts, strict=True):
        if id(account) not in told:
            receipt = receipt_of(anybody, account, neighbours)
            told[id(account)] = (receipt.as_html() if html else receipt.as_text()).split(anybody)
        name = clean(owner)
        yield (str(escape(name)) if html else name).join(told[id(account)])


def receipt_of(
    owner: str, account: Account | None, neighbours: Neighbours = Neighbours.ADD_OR_REMOVE
) -> Receipt:
    """Write a person's receipt; an unknown name gets that of somebody without records.

    ``neighbours``: what the ledger promises something about.
    """
    if account is None:
        said = Promise(NOTHING_YET, 50)
        return Receipt(clean(owner), NOT_KNOWN, (game(neighbours),), said)
    standing = account.standing
    used = tuple(_used(charge, standing) for charge in account.charges)
    meaning = (game(neighbours),) if used else (game(neighbours), NOTHING_YET)
    return Receipt(
        clean(owner),
        _heading(account),
        meaning,
        _promise(account),
        chosen=tuple(_chosen(grant) for grant in account.grants),
        used=used,
        note="" if account.has_ended else UP_TO,
        numbers=_numbers(standing),
    )


def _heading(account: Account) -> str:
    standing, number = account.standing, len(account.charges)
    used = f"{number:,} release{'s have' if number > 1 else ' has'} used your records."
    used = used if number else "No release has used your records yet."
    if standing.has_left:
        return f"{used} You have left. {NO_MORE}"
    if standing.budget.is_unlimited:
        return f"{used} You set no limit."
    if not standing.limit.allows(standing.spent):
        return f"{used} Together they took more than you allow now. {NO_MORE}"
    if not number:
        return f"{used} All of your budget remains."
    share = standing.limit.share_of(standing.spent)
    takes, at_least = ("took", "") if account.has_ended else ("takes up to", "at least ")
    return (
        f"{used} So far that {takes} {percent_spent(share)} of your budget; "
        f"{at_least}{percent_left(1 - share)} remains."
    )


def _chosen(grant: Grant) -> str:
    chose = "you left" if grant.has_left else spoken(grant.level, grant.budget)
    return f"{grant.at[:10]}: {chose}"


def _used(charge: Charge, standing: Standing) -> tuple[str, str, str]:
    release, limit = charge.release, standing.limit
    day = release.opened.at[:10]
    share = limit.share_of(charge.cost, standing.spent)
    much = percent_spent(share) if release.is_settled else f"up to {percent_spent(share)}"
    return clean(release.name), day, "—" if limit.is_unlimited else much


def _promise(account: Account) -> Promise:
    return promise([grant.budget for grant in account.grants], account.lifetime)


def _numbers(standing: Standing) -> str:
    budget = standing.budget
    if budget.is_unlimited:
        return ""
    granted, spent = budget_and_cost(budget.epsilon, standing.epsilon_spent)
    at = "" if standing.limit.promise is Promised.PURE else f" at δ = {down(budget.delta)}"
    said = f"In numbers: your budget is ε = {granted}{at}"
    if not standing.n_releases:
        return f"{said}. {MEASURES}"
    said = f"{said}; so far, at most ε = {spent} has been used. {MEASURES}"
    if standing.limit.promise is Promised.PURE:
        return said
    return f"{said} Unlike the percentages, ε does not add up over releases."
