"""Names that somebody else chose (levels, classes, columns), made harmless where people look at them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: Marks that reorder the text around them, and what no text may hold.
_UNWANTED = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufffe\uffff"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def harmless(text: str) -> str:
    """Take out what a terminal or a page would obey instead of showing it: control and direction marks.

    Examples
    --------
    >>> harmless("high\\x1b[2J\\n\\u202eprivacy")
    'high [2J privacy'
    """
    return "".join(
        " " if unicodedata.category(letter) in ("Cc", "Cs") else letter
        for letter in text
        if letter not in _UNWANTED
    )


def among_others(name: str) -> str:
    """Write a name as one of several: in quotes where its comma or colon could be taken for the list's.

    Intervals, such as bins, need none.

    Examples
    --------
    >>> among_others("Paris"), among_others("Paris, France"), among_others("[17, 40)")
    ('Paris', "'Paris, France'", '[17, 40)')
    """
    if not re.search("[,;:]", name) or re.fullmatch(r"\[[^],;:]+, [^],;:]+[\])]", name):
        return name
    return "'" + name.replace("'", "''") + "'"


def in_a_row(names: Sequence[Any]) -> str:
    """Write names in one line: one as it is, several with commas between them, as :func:`among_others`.

    Examples
    --------
    >>> in_a_row(["Paris, France"]), in_a_row(["Paris, France", "F"])
    ('Paris, France', "'Paris, France', F")
    """
    texts = [str(name) for name in names]
    return ", ".join(map(among_others, texts)) if len(texts) > 1 else "".join(texts)


def csv_for_people(table: pd.DataFrame, *, index: bool = False) -> bytes:
    """Write a table as CSV whose texts no spreadsheet takes for formulas, and no terminal obeys.

    A text that would be a formula has an apostrophe before it, as in spreadsheets; a program that reads the
    file back takes off the first apostrophe of a text that is one without it. Control characters become
    blanks. Numbers, also those that are written as text, stay as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> csv_for_people(pd.DataFrame({"label": ["=1+1", "'=1+1", "-1", "cat", "\\x1b[2Jdog"]}))
    b"label\\n'=1+1\\n''=1+1\\n-1\\ncat\\n [2Jdog\\n"
    """
    safe = table.rename(columns=_as_cell)
    for place, kind in enumerate(safe.dtypes):
        if kind.kind not in "biuf":
            safe.isetitem(place, safe.iloc[:, place].map(_as_cell))
    if index:
        safe = safe.rename(index=_as_cell)
    content: str = safe.to_csv(index=index)
    return content.encode()


def _as_cell(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    shown = harmless(cell)
    if not cell.lstrip(" '").startswith(_FORMULA) and not shown.lstrip(" '").startswith(_FORMULA):
        return shown
    try:
        float(shown)
    except ValueError:
        return "'" + shown
    return shown
