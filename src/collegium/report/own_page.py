"""A person's own page: how their account stands, which level they choose, and how they leave."""

from __future__ import annotations

from dataclasses import dataclass

from collegium.ledger.entries import Account
from collegium.report import in_plain_words as words
from collegium.report.in_plain_words import Promise
from collegium.report.languages import ENGLISH, LANGUAGES, Language, message
from collegium.report.page import environment
from collegium.report.policy_page import Explanation
from collegium.report.receipt import Receipt

ENTERED = message("Your choice has been entered.")
CHANGED_MEANWHILE = message(
    "Nothing was changed: your account has changed since this page was opened. Look at it, and choose again."
)
NOTHING_CHOSEN = message("Nothing was changed: no level was chosen.")
_CHOICE = message("What you can choose")
_CHOOSE = message("Choose this level")
_CHOSEN = message("This is your level now.")
_LEAVE = message("I want to leave")
_SURE = message("Do you want to leave?")
_YES = message("Yes, I leave")
_NO = message("No, I stay")
_GONE = message("If you want to come back, ask whoever sent you the link to this page.")
_CLOSED = message("This link opens nothing")
_CLOSED_WHY = message(
    "It was not copied completely, it is too old, or it has been replaced by another one. Ask whoever sent "
    "it to you for a new one."
)
_LANGUAGE = message("Language")
OWN_NAMES = {"en": "English", "de": "Deutsch", "es": "Español", "fr": "Français", "pl": "Polski"}


@dataclass(frozen=True)
class OwnPage:
    """What a person's own page says.

    ``receipt``: of their account.
    ``levels``: names of what they can choose. ``explained``: what these mean.
    ``account``: None for somebody whom the ledger does not know yet.
    ``told``: what has just happened, one of the messages above; empty for nothing.
    ``leaving``: whether they are asked once more.
    """

    receipt: Receipt
    levels: tuple[str, ...]
    explained: Explanation
    account: Account | None
    told: str = ""
    leaving: bool = False

    @property
    def language(self) -> Language:
        """That it is written in."""
        return self.receipt.language

    @property
    def choices(self) -> list[tuple[str, tuple[str, Promise, str]]]:
        """Each level with what it means."""
        return list(zip(self.levels, self.explained.levels, strict=True))

    @property
    def version(self) -> str:
        """Names the state of the account that the page shows: forms of an older page change nothing."""
        return version_of(self.account)

    @property
    def has_left(self) -> bool:
        """Whether there is nothing to choose any more."""
        return self.account is not None and self.account.standing.has_left

    @property
    def level(self) -> str | None:
        """That the person has chosen."""
        return None if self.account is None else self.account.standing.level

    def as_html(self) -> str:
        """Write it as one page; forms go to ``choice`` and ``leave`` below its address."""
        texts = {
            "choice": _CHOICE,
            "choose": _CHOOSE,
            "now": _CHOSEN,
            "leave": _LEAVE,
            "sure": _SURE,
            "yes": _YES,
            "no": _NO,
            "gone": _GONE,
            "leaving": words.LEAVING,
            "changing": words.CHANGING,
            "language": _LANGUAGE,
        }
        said = {name: self.language.say(text) for name, text in texts.items()}
        return (
            environment()
            .get_template("own_page.html.j2")
            .render(
                page=self,
                receipt=self.receipt,
                explained=self.explained,
                said={**self.receipt.headings, **self.explained.words, **said},
                told=self.language.say(self.told) if self.told else "",
                meanings=words.key(self.language),
                languages=OWN_NAMES,
            )
        )


def version_of(account: Account | None) -> str:
    """Name the state of an account: it is another one after each choice."""
    return "0" if account is None else str(len(account.grants))


def closed_page(language: Language = ENGLISH) -> str:
    """Write what a link says that opens nothing: the same, whatever the reason."""
    template = environment().get_template("closed_link.html.j2")
    return template.render(
        language=language, title=language.say(_CLOSED), why=language.say(_CLOSED_WHY)
    )


def language_among(given: str | None, accepted: str) -> Language:
    """Take the language that was asked for, or the first that a browser accepts and there is, or English.

    Examples
    --------
    >>> language_among("fr", "de"), language_among(None, "nl, de-AT;q=0.8, en;q=0.5")
    (Language(code='fr'), Language(code='de'))
    """
    if given in LANGUAGES:
        return Language(given)
    for one in accepted.split(","):
        code = one.partition(";")[0].strip().lower().partition("-")[0]
        if code in LANGUAGES:
            return Language(code)
    return ENGLISH
