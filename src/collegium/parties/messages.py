"""Signed files: each says what it is about, is posted once, and is believed only as its party signed it.

A file is JSON that people can read, ``{"message": {...}, "signature": "..."}``, in one way of writing it.
Its name says round, query and party; what counts is what is signed inside. Whatever a party posts it
remembers first, so after a crash it posts the same bytes again, and never another version.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from collegium.errors import InputError
from collegium.parties.ciphers import digest, encoded, is_signed
from collegium.parties.mailbox import Mailbox, versions_of
from collegium.parties.members import FORMAT, Agreement, IdentityKey
from collegium.plain_text import harmless

_SIGNED = f"{FORMAT}\n".encode()
_SMALL = 65_536  # bytes of a message without a vector
_MOST_BYTES = 2**28  # of a message about something else

SHAPES: Mapping[str, Mapping[str, type]] = {
    "census": {"plan": dict, "groups": dict},
    "keys": {"masks": str, "shares": str},
    "masked": {"shape": list, "noise": str, "sum": str, "commitments": list, "shares": list},
    "roster": {"present": list, "digests": list, "opens": bool},
    "confirm": {"roster": str},
    "unmask": {"roster": str, "seeds": dict, "pairs": dict},
    "opened": {"roster": str, "sum": str},
}
"""What a message of each round holds beside what it is about."""


@dataclass(frozen=True)
class Label:
    """What a message is about: a session, and one attempt to open one sum in it.

    ``session``: digest of all that was agreed, and of the keys if there are any yet.
    """

    session: str
    query: int = 0
    purpose: str = ""
    attempt: int = 0

    @property
    def folder(self) -> str:
        """Where its files are: one folder for each attempt; none for what is about the whole session."""
        if not self.attempt:
            return ""
        words = re.sub("[^a-z0-9]+", "-", self.purpose.lower()).strip("-")[:30]
        mark = hashlib.sha256(self.purpose.encode()).hexdigest()[:8]
        return f"{self.folders}{words or 'sum'}-{mark}-{self.attempt}"

    @property
    def folders(self) -> str:
        """How the folders of all sums of this query begin."""
        return f"{self.query:06d}-"

    def about(self, **more: Any) -> dict[str, Any]:
        """Write it down, for a message or a key."""
        mine = {"session": self.session, "query": self.query, "purpose": self.purpose}
        return {"format": FORMAT, **mine, "attempt": self.attempt, **more}


@dataclass(frozen=True)
class Received:
    """A message whose signature holds, and the digest of its file."""

    content: Mapping[str, Any]
    digest: str


class Post:
    """One party's way to the others.

    ``number``: its own, from 1.
    ``memory``: what it alone reads and writes, and never loses.
    """

    def __init__(
        self, agreement: Agreement, key: IdentityKey, mailbox: Mailbox, memory: Mailbox
    ) -> None:
        self.agreement, self.number = agreement, agreement.number_of(key)
        self.memory = memory
        self._key, self._mailbox = key, mailbox
        self._seen: dict[str, Received] = {}

    @property
    def everybody(self) -> range:
        """Numbers of all parties."""
        return range(1, self.agreement.quorum.parties + 1)

    def name_of(self, number: int) -> str:
        """Name of a party."""
        return self.agreement.members[number - 1].name

    def own(self, what: str, label: Label, size: int = 0) -> Received | None:
        """Take what this party has posted, and make sure that it is there; None if it has not."""
        name = _file_name(what, label.folder, self.number)
        if name not in self._seen:
            content = self.memory.read(name, _most_bytes(size))
            if content is None:
                return None
            self._mailbox.post(name, content)
            self._seen[name] = self._verified(name, content, what, label, self.number)
        return self._seen[name]

    def send(self, what: str, label: Label, content: Mapping[str, Any], size: int = 0) -> Received:
        """Sign, remember and post; nothing is posted that this party's memory does not have first."""
        name = _file_name(what, label.folder, self.number)
        message = {**label.about(round=what, sender=self.number), **content}
        signed = self._key.sign(_SIGNED + encoded(message))
        file = encoded({"message": message, "signature": as_text(signed)})
        if self._mailbox.read(name, _most_bytes(size)) is not None:
            raise InputError(
                f"{name} was posted by {self.name_of(self.number)}, whose memory does not know it: use the "
                "memory of then, or a new mailbox"
            )
        self.memory.post(name, file)
        self._mailbox.post(name, file)
        return Received(message, digest(file))

    def received(self, what: str, label: Label, sender: int, size: int = 0) -> Received | None:
        """Read a party's message; None if it is not there, or only a part of it.

        ``size``: of the vector in it.
        Raises InputError if it is signed by nobody or another, about something else, or there in two
        versions.
        """
        if sender == self.number:
            return self.own(what, label, size)
        name = _file_name(what, label.folder, sender)
        if name not in self._seen:
            content = self._mailbox.read(name, _most_bytes(size))
            if content is None or not _is_whole(content):
                return None
            self._seen[name] = self._verified(name, content, what, label, sender)
        for other in versions_of(name, self._mailbox.names(label.folder)):
            self._refuse_version(other, what, label, sender, size, self._seen[name].digest)
        return self._seen[name]

    def refuse_other_sums(self, label: Label, missing: Collection[int]) -> None:
        """Name one of these parties if it sums something else in this query, and is waited for in vain.

        All parties sum the same in the same order: whoever is behind has posted nothing that this party has
        not.
        """
        for folder in sorted(self._mailbox.folders()):
            begun = _file_name("masked", folder, self.number) in self.memory.names(folder)
            if begun or not folder.startswith(label.folders):
                continue
            for number in missing:
                purpose = self._purpose_of(_file_name("masked", folder, number), label, number)
                if purpose is not None:
                    raise InputError(
                        f"{self.name_of(number)} sums “{harmless(purpose)}”, and not “{label.purpose}”: all "
                        "parties ask the same, with the same options and in the same order; what was charged "
                        "stays charged"
                    )

    def forget(self) -> None:
        """Let go of what was read: a sum is opened."""
        self._seen.clear()

    def refuse(self, what: str, label: Label, sender: int, why: str) -> InputError:
        """Name a message that cannot be used, and whose it is."""
        return InputError(
            f"{_file_name(what, label.folder, sender)} of {self.name_of(sender)} {why}"
        )

    def _refuse_version(
        self, name: str, what: str, label: Label, sender: int, size: int, known: str
    ) -> None:
        content = self._mailbox.read(name, _most_bytes(size))
        if content is None or not _is_whole(content) or digest(content) == known:
            return
        try:
            self._verified(name, content, what, label, sender)
        except InputError:
            return  # not what this party signed: somebody else's
        raise self.refuse(
            what,
            label,
            sender,
            f"is there in two versions, the other is {name}: ask which one is right",
        )

    def _verified(
        self, name: str, content: bytes, what: str, label: Label, sender: int
    ) -> Received:
        whose = f"{name} of {self.name_of(sender)}"
        message, shape = self._signed(name, content, sender), SHAPES[what]
        about = label.about(round=what, sender=sender)
        if not message.keys() >= shape.keys() | about.keys():
            raise InputError(f"{whose} is no message of a party: ask for it again")
        if {name: message.get(name) for name in about} != about:
            raise InputError(
                f"{whose} is about another plan, session or sum: all parties need the same plan and list"
            )
        held = {name: value for name, value in message.items() if name not in about}
        if held.keys() != shape.keys() or any(type(held[one]) is not shape[one] for one in shape):
            raise InputError(
                f"{whose} does not hold what it should: ask which version its party runs"
            )
        return Received(message, digest(content))

    def _signed(self, name: str, content: bytes, sender: int) -> dict[str, Any]:
        whose = f"{name} of {self.name_of(sender)}"
        try:
            file = json.loads(content)
            message, signed = file["message"], from_text(file["signature"])
            canonical = encoded(file) == content
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            canonical = False
        if not canonical or not isinstance(message, dict):
            raise InputError(f"{whose} is no message of a party: ask for it again")
        key = bytes.fromhex(self.agreement.members[sender - 1].key)
        if not is_signed(key, signed, _SIGNED + encoded(message)):
            raise InputError(f"{whose} is not signed with the key that is listed: ask who wrote it")
        return message

    def _purpose_of(self, name: str, label: Label, sender: int) -> str | None:
        """Find what a party's sum in this session is for; None where no such file can be used."""
        try:
            content = self._mailbox.read(name, _MOST_BYTES)
            if content is None or not _is_whole(content):
                return None
            message = self._signed(name, content, sender)
        except InputError:
            return None
        about = label.about(round="masked", sender=sender)
        known = [name for name in about if name not in ("purpose", "attempt")]
        if any(message.get(name) != about[name] for name in known):
            return None
        return str(message.get("purpose"))


def as_text(content: bytes) -> str:
    """Write bytes for a message."""
    return base64.b64encode(content).decode()


def from_text(text: Any) -> bytes:
    """Read bytes from a message; ValueError if they are none."""
    if not isinstance(text, str):
        raise ValueError
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError from None


def _is_whole(content: bytes) -> bool:
    """Tell a file from the beginning of one: what closes it comes last."""
    return content.endswith(b"\n}\n")


def _file_name(what: str, folder: str, number: int) -> str:
    file = f"{what}-p{number:02d}.json"
    return f"{folder}/{file}" if folder else file


def _most_bytes(size: int) -> int:
    return _SMALL + 11 * size
