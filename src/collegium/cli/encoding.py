"""Letters that a terminal or file cannot show because its encoding is not UTF-8."""

from __future__ import annotations

import codecs
import sys
from typing import TextIO

_READ_AS = {
    "ε": "eps", "δ": "delta", "μ": "mu", "σ": "sigma", "Δ": "Delta", "∞": "inf", "√": "sqrt ", "×": "x",
    "−": "-", "–": "-", "—": "-", "…": "...", "•": "*", "≤": "<=", "≥": ">=", "→": "->", "“": '"', "”": '"',
    "‘": "'", "’": "'",
}  # fmt: skip
_HANDLER = "collegium.readable"


def show_what_can_be_shown() -> None:
    """Spell out what cannot be shown: nothing printed may end a command that has spent budgets."""
    codecs.register_error(_HANDLER, _readable)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)


def can_be_shown(text: str, stream: TextIO) -> bool:
    """Tell whether each letter can be written to a stream as it is."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _readable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    spelt = (
        _READ_AS.get(one) or one.encode("ascii", "backslashreplace").decode() for one in letters
    )
    return "".join(spelt), error.end
