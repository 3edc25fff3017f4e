"""What is in the folder that parties share: who has posted which round of what; for an auditor."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collegium.errors import InputError
from collegium.parties.ciphers import digest, encoded, is_signed
from collegium.parties.members import FORMAT, Member
from collegium.parties.messages import SHAPES, from_text

_FILE = re.compile(r"([a-z]+)-p(\d\d)\.json")
_SIGNED = f"{FORMAT}\n".encode()
_MOST_BYTES = 2**32
BEFORE_SUMS = ("census", "keys")
"""Rounds before the first sum; all others belong to one."""


_OF_ITS_OWN = ("secrets.json", "ended.json")
"""Files that a party's memory has beside messages, and that nobody else sees."""


@dataclass
class Posted:
    """What was posted about one thing: a release as a whole, or one attempt at one sum.

    ``folder``: where it lies in the shared one.
    ``query``, ``purpose``, ``attempt``: of a sum, as its messages say.
    ``rounds``: numbers of the parties, from 1, whose file of a round is there and can be used.
    ``unusable``: names of files, each with what is wrong: half of one, unsigned, or of another.
    ``sums``: digests of the opened sum that parties have posted: one, where all got the same.
    """

    folder: str
    query: int = 0
    purpose: str = ""
    attempt: int = 0
    rounds: dict[str, list[int]] = field(default_factory=dict)
    unusable: dict[str, str] = field(default_factory=dict)
    sums: set[str] = field(default_factory=set)

    def took_part(self, round_: str) -> Sequence[int]:
        """Who has posted a file of a round."""
        return self.rounds.get(round_, ())


@dataclass
class ReleaseSeen:
    """A release, as its folder shows it.

    ``begun``: census and keys. ``sums``: every attempt, in order.
    """

    name: str
    begun: Posted
    sums: list[Posted]


def releases_in(
    folder: Path, members: Sequence[Member] = (), *, is_own: bool = False
) -> list[ReleaseSeen]:
    """Look through a shared folder; nothing is changed, and nothing in it can be told of anybody's records.

    Parameters
    ----------
    folder : Path
        That the parties share.
    members : sequence of Member, optional
        In their order: then signatures are checked, too, which needs the package cryptography.
    is_own : bool, default=False
        Whether it is a party's memory instead, which has secrets, too.

    Raises
    ------
    InputError
        If there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: give the one that the parties share")
    return [
        _release(one, members, is_own)
        for one in sorted(folder.iterdir())
        if one.is_dir() and any(_files(one))
    ]


def _release(folder: Path, members: Sequence[Member], is_own: bool) -> ReleaseSeen:
    inner = sorted(one for one in folder.iterdir() if one.is_dir())
    sums = [
        found for one in inner if (found := _posted(one, members, is_own)).rounds or found.unusable
    ]
    return ReleaseSeen(folder.name, _posted(folder, members, is_own), sums)


def _files(folder: Path) -> Iterator[Path]:
    return (one for one in sorted(folder.iterdir()) if one.is_file() and one.suffix == ".json")


def _posted(folder: Path, members: Sequence[Member], is_own: bool) -> Posted:
    found = Posted(folder.name)
    for path in _files(folder):
        if is_own and path.name in _OF_ITS_OWN:
            continue
        name = _FILE.fullmatch(path.name)
        if name is None or name[1] not in SHAPES:
            found.unusable[path.name] = "is no file of a round"
            continue
        message = _message(path)
        why = "is half a file, or no message" if message is None else _wrong(message, name, members)
        if message is None or why:
            found.unusable[path.name] = why
            continue
        content = message["message"]
        found.rounds.setdefault(name[1], []).append(int(name[2]))
        if name[1] == "opened":
            found.sums.add(digest({"sum": content["sum"], "roster": content["roster"]}))
        if name[1] not in BEFORE_SUMS:
            found.query, found.purpose = content["query"], content["purpose"]
            found.attempt = content["attempt"]
    return found


def _message(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
        found: dict[str, Any] = json.loads(content)
        return found if encoded(found) == content and isinstance(found["message"], dict) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _wrong(file: dict[str, Any], name: re.Match[str], members: Sequence[Member]) -> str:
    """Say what is wrong with a message; empty if nothing is."""
    message = file["message"]
    about = {"round": str, "sender": int, "query": int, "purpose": str, "attempt": int}
    shape = {**about, **SHAPES[name[1]]}
    if any(type(message.get(key)) is not kind for key, kind in shape.items()):
        return "does not hold what it should"
    if (message["round"], message["sender"]) != (name[1], int(name[2])):
        return "is another round's, or another party's"
    if not members:
        return ""
    if not 0 < message["sender"] <= len(members):
        return "is of nobody who is listed"
    try:
        signature = from_text(file.get("signature"))
    except ValueError:
        return "is not signed"
    key = bytes.fromhex(members[message["sender"] - 1].key)
    if not is_signed(key, signature, _SIGNED + encoded(message)):
        return "is not signed with the key that is listed"
    return ""
