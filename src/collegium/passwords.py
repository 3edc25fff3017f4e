"""Passwords in what a user gives: refused, and never repeated. Imports nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from collegium.errors import InputError

_OPTION = r"(?:--?[\w-]+=)?"  # what follows may be its value
_QUOTED = re.compile(r'(?<=[#.])"(?:[^"]|"")*"')  # names of tables
_SCHEME = r"(?:://(?!/)|^" + _OPTION + r"postgres(?:ql)?:/*)"
_IN_ADDRESS = re.compile(
    rf"{_SCHEME}[^/@:]*:[^@]*@|://.*[?&][^=&#]*password[^=&#]*=", re.DOTALL | re.IGNORECASE
)
_WITHOUT_SCHEME = re.compile(
    rf"{_OPTION}[^\s:/\\@\"'=<>]+:[^\s/\\@][^\s@]*@[^\s@/#?]+[/#?].*", re.DOTALL
)
_SETTINGS = re.compile(
    rf"{_OPTION}(?=\s*\w+\s*=).*?(?<![\w-])(?:ssl)?password\s*=", re.DOTALL | re.IGNORECASE
)
_SHOWN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/*")
_WIDTH = 200


def refuse_passwords(given: Iterable[str]) -> None:
    """Refuse texts of which one holds a password: in an address, or in settings as libpq takes them.

    Raises InputError, which does not repeat it.
    """
    for text in given:
        bare = _QUOTED.sub("", text)
        if _IN_ADDRESS.search(bare) or _WITHOUT_SCHEME.fullmatch(bare) or _SETTINGS.match(bare):
            raise password_refusal(text)


def password_refusal(text: str) -> InputError:
    """Say what to do in place of giving a password."""
    return InputError(
        f"{without_secrets(text)} holds a password, which others would see in lists of processes and in "
        "files: leave it out, and set PGPASSWORD, or PGPASSFILE to a file with it"
    )


def without_secrets(text: str) -> str:
    """Show an address without what may be a name and a password in it."""
    scheme = _SHOWN.match(text)
    if scheme is None:
        return "what was given"
    rest = text[scheme.end() :]
    if "@" in rest:
        rest = "…@" + rest.rpartition("@")[2]
    text = scheme[0] + re.sub(r"\?.*", "?…", rest, flags=re.DOTALL)
    return repr(text if len(text) <= _WIDTH else text[:_WIDTH] + "…")


def masked(message: str) -> str:
    """Take passwords out of addresses in a message."""
    return re.sub(r"(://(?!/)[^\s/@:'\"]*:)[^\s@'\"]+@", r"\1…@", message)
