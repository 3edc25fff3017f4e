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
    MEASURES,
    NOTHING_YET,
    SMALL_PRINT,
    Promise,
    game,
    key,
    paragraph,
    promise,
    spoken,
)
from collegium.report.languages import ENGLISH, Language, message, plural
from collegium.report.numbers import clean, down
from collegium.report.page import environment

_TITLE = message("The privacy account of {name}")
_NOT_KNOWN = message(
    "There is no account under this name, so no release that is entered here has used records under "
    "it. Check that the name is spelt exactly as in the records."
)
_UP_TO_MEANS = message(
    "“Up to” means that a release has not ended yet; what it does not use returns to your budget."
)
_USED_BY = plural("{n} release has used your records.", "{n} releases have used your records.")
NOT_USED = message("No release has used your records yet.")
_NO_MORE = message("No further release will use your records.")
_HAS_LEFT = message("You have left.")
_NO_LIMIT = message("You have set no limit.")
_TOO_MUCH = message("More was used than you allow now.")
_ALL_REMAINS = message("All of your budget remains.")
_SHARE = message("So far, {spent} of your budget was used; {left} remains.")
_SHARE_UP_TO = message("So far, up to {spent} of your budget was used; at least {left} remains.")
_CHOSEN = message("{day}: {choice}")
_LEFT = message("you left")
_UP_TO = message("up to {share}")
_NUMBERS = message("In numbers, your budget is ε = {epsilon} at δ = {delta}.")
_NUMBERS_PURE = message("In numbers, your budget is ε = {epsilon}.")
_NUMBERS_USED = message("So far, at most ε = {spent} was used.")
_NOT_A_SUM = message("Unlike the percentages, ε does not add up over releases.")
_HEADINGS = {
    "chosen": message("What you chose"),
    "used": message("What used your records"),
    "caption": message("How much of your budget each of them took."),
    "release": message("Release"),
    "day": message("When"),
    "share": message("Of your budget"),
    "meaning": message("What it means"),
}


@dataclass(frozen=True)
class Receipt:
    """What a receipt says, in words.

    ``title``: whose it is. ``heading``: how things stand. ``chosen``: which level, when.
    ``used``: one (name, day, share of the budget) for each release; ``note``: on these.
    ``meaning``: what the promise is about. ``numbers``: for those who know ε.
    """

    title: str
    heading: str
    meaning: tuple[str, ...]
    promise: Promise
    chosen: tuple[str, ...] = ()
    used: tuple[tuple[str, str, str], ...] = ()
    note: str = ""
    numbers: str = ""
    language: Language = ENGLISH

    @property
    def headings(self) -> dict[str, str]:
        """Its headings, by what is below them."""
        return {name: self.language.say(text) for name, text in _HEADINGS.items()}

    @property
    def small_print(self) -> list[str]:
        """What everybody should know."""
        return [self.language.say(text) for text in SMALL_PRINT]

    def as_text(self) -> str:
        """Write it as plain text, in lines that fit on a page."""
        said = self.headings
        lines = [self.title, *paragraph(self.heading)]
        if self.chosen:
            lines += ["", said["chosen"], *(f"- {line}" for line in self.chosen)]
        if self.used:
            lines += ["", said["used"], *paragraph(said["caption"]), *self._rows()]
            lines += paragraph(self.note)
        lines += ["", said["meaning"]]
        for sentence in (*self.meaning, self.promise.words):
            lines += paragraph(sentence)
        lines += ["", *self.promise.chances.letters(), "", *key_in_letters(key(self.language))]
        for sentence in (self.numbers, *self.small_print):
            lines += paragraph(sentence)
        return "\n".join([*lines, ""])

    def _rows(self) -> list[str]:
        names, days, shares = (max(map(len, column)) for column in zip(*self.used, strict=True))
        return [
            f"  {name:<{names}}  {day:>{days}}  {share:>{shares}}" for name, day, share in self.used
        ]

    def as_html(self) -> str:
        """Write it as one page that needs nothing else."""
        template = environment().get_template("receipt.html.j2")
        return template.render(receipt=self, said=self.headings, meanings=key(self.language))


def texts_of(
    owners: Sequence[str],
    accounts: Sequence[Account | None],
    neighbours: Neighbours,
    *,
    html: bool,
    language: Language = ENGLISH,
) -> Iterator[str]:
    """Write many people's receipts: those who have one account are told the same.

    ``html``: whether as pages.
    """
    told: dict[int, list[str]] = {}
    anybody = secrets.token_hex(16)  # in the place of a name: no text can hold it by chance
    for owner, account in zip(owners, accounts, strict=True):
        if id(account) not in told:
            receipt = receipt_of(anybody, account, neighbours, language)
            told[id(account)] = (receipt.as_html() if html else receipt.as_text()).split(anybody)
        name = clean(owner)
        yield (str(escape(name)) if html else name).join(told[id(account)])


def receipt_of(
    owner: str,
    account: Account | None,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    language: Language = ENGLISH,
) -> Receipt:
    """Write a person's receipt; an unknown name gets that of somebody without records.

    ``neighbours``: what the ledger promises something about.
    """
    say = language.say
    title, about = say(_TITLE, name=clean(owner)), game(neighbours, language)
    if account is None:
        said = Promise(say(NOTHING_YET), 50)
        return Receipt(title, say(_NOT_KNOWN), (about,), said, language=language)
    used = tuple(_used(charge, account.standing, language) for charge in account.charges)
    return Receipt(
        title,
        _heading(account, language),
        (about,) if used else (about, say(NOTHING_YET)),
        promise([grant.budget for grant in account.grants], account.lifetime, language),
        chosen=tuple(_chosen(grant, language) for grant in account.grants),
        used=used,
        note="" if account.has_ended else say(_UP_TO_MEANS),
        numbers=_numbers(account.standing, language),
        language=language,
    )


def _heading(account: Account, language: Language) -> str:
    number = len(account.charges)
    used = language.count(_USED_BY, number) if number else language.say(NOT_USED)
    return " ".join([used, *_how_things_stand(account, language)])


def _how_things_stand(account: Account, language: Language) -> list[str]:
    say, standing = language.say, account.standing
    if standing.has_left:
        return [say(_HAS_LEFT), say(_NO_MORE)]
    if standing.budget.is_unlimited:
        return [say(_NO_LIMIT)]
    if not standing.limit.allows(standing.spent):
        return [say(_TOO_MUCH), say(_NO_MORE)]
    if not account.charges:
        return [say(_ALL_REMAINS)]
    share = standing.limit.share_of(standing.spent)
    spent, left = map(language.percent, (percent_spent(share), percent_left(1 - share)))
    return [say(_SHARE if account.has_ended else _SHARE_UP_TO, spent=spent, left=left)]


def _chosen(grant: Grant, language: Language) -> str:
    chose = language.say(_LEFT) if grant.has_left else spoken(grant.level, grant.budget, language)
    return language.say(_CHOSEN, day=language.day(grant.at[:10]), choice=chose)


def _used(charge: Charge, standing: Standing, language: Language) -> tuple[str, str, str]:
    release, limit = charge.release, standing.limit
    share = language.percent(percent_spent(limit.share_of(charge.cost, standing.spent)))
    much = share if release.is_settled else language.say(_UP_TO, share=share)
    day = language.day(release.opened.at[:10])
    return clean(release.name), day, "—" if limit.is_unlimited else much


def _numbers(standing: Standing, language: Language) -> str:
    budget, say = standing.budget, language.say
    if budget.is_unlimited:
        return ""
    granted, spent = map(language.number, budget_and_cost(budget.epsilon, standing.epsilon_spent))
    is_pure = standing.limit.promise is Promised.PURE
    said = [
        say(_NUMBERS_PURE, epsilon=granted)
        if is_pure
        else say(_NUMBERS, epsilon=granted, delta=language.number(down(budget.delta)))
    ]
    if standing.n_releases:
        said.append(say(_NUMBERS_USED, spent=spent))
    said.append(say(MEASURES))
    if standing.n_releases and not is_pure:
        said.append(say(_NOT_A_SUM))
    return " ".join(said)
