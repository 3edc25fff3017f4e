"""The languages of pages for people: their messages (gettext), and how numbers and dates are written there.

A message is written in English where it is needed, and marked there by :func:`message` or :func:`plural`; its
translations stand in ``locale/LANGUAGE/LC_MESSAGES/collegium.po`` (CONTRIBUTING.md says how they are kept).
"""

from __future__ import annotations

import gettext
import io
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.resources import files

from collegium.checks import check_choice

LANGUAGES = ("en", "de", "es", "fr", "pl")
_LOCALES = {"en": "en_GB"}  # where the names differ
_PER_CENT = {"en": "#,##0.0 %", "pl": "#,##0.0%"}
_OTHERS_PER_CENT = "#,##0.0\xa0%"


def message(text: str) -> str:
    """Mark a text that is translated where it is said (:meth:`Language.say`)."""
    return text


def plural(one: str, many: str) -> tuple[str, str]:
    """Mark a text about a number, ``{n}``, of things (:meth:`Language.count`)."""
    return one, many


@dataclass(frozen=True)
class Language:
    """A language that pages are written in.

    Attributes
    ----------
    code : {"en", "de", "es", "fr", "pl"}
        As HTML names it.

    Raises
    ------
    InputError
        If there are no pages in it.

    Examples
    --------
    >>> german = Language("de")
    >>> german.number("1234.5"), german.day("2026-11-24"), german.percent("3.1 %").split()
    ('1.234,5', '24. November 2026', ['3,1', '%'])
    """

    code: str = "en"

    def __post_init__(self) -> None:
        check_choice("language", self.code, LANGUAGES)

    def say(self, text: str, **slots: str) -> str:
        """Translate a marked text, and fill its slots."""
        return _catalogue(self.code).gettext(text).format(**slots)

    def count(self, forms: tuple[str, str], n: int, **slots: str) -> str:
        """Say it of ``n`` things, in the form that the language has for so many."""
        said = _catalogue(self.code).ngettext(*forms, n)
        return said.format(n=self.number(str(n)), **slots)

    def number(self, written: str) -> str:
        """Write a number that was rounded already; powers of ten, 1e-5, are the same everywhere."""
        from babel.numbers import format_decimal, get_decimal_symbol

        if not written.replace(".", "").isdecimal():
            return written.replace(".", get_decimal_symbol(self._locale))
        return str(
            format_decimal(Decimal(written), locale=self._locale, decimal_quantization=False)
        )

    def percent(self, written: str) -> str:
        """Write a percentage with one decimal that was rounded already, such as "3.1 %"; "—" stays."""
        from babel.numbers import format_percent

        if not written.endswith(" %"):
            return written
        form = _PER_CENT.get(self.code, _OTHERS_PER_CENT)
        share = Decimal(written.removesuffix(" %")) / 100
        return str(format_percent(share, format=form, locale=self._locale))

    def day(self, written: str) -> str:
        """Write a day that is given as 2026-11-24."""
        from babel.dates import format_date

        return str(format_date(date.fromisoformat(written), "long", locale=self._locale))

    @property
    def _locale(self) -> str:
        return _LOCALES.get(self.code, self.code)


ENGLISH = Language()


@cache
def _catalogue(code: str) -> gettext.NullTranslations:
    """Read the messages of a language: English ones stand in the code."""
    if code == LANGUAGES[0]:
        return gettext.NullTranslations()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    place = files("collegium.report").joinpath("locale", code, "LC_MESSAGES", "collegium.po")
    with place.open("rb") as file:
        messages = read_po(file, locale=code)
    compiled = io.BytesIO()
    write_mo(compiled, messages)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)
