"""What proves a ledger: its key, the chain of its entries, and how far this machine has seen the chain.

Every entry carries an HMAC over itself and the one before, so none can be changed, left out or put
elsewhere. An older copy of everything is a whole chain, too: so beside the key stands an *anchor*, the last
entry that this machine has seen, and every reservation remembers its own entry.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from collegium.durable import check_folder, write_durably
from collegium.errors import LedgerError
from collegium.json_files import read_json
from collegium.names import spelling

KEY_BYTES = 32
_WAIT_S = 120.0  # for another program, which holds the anchor for a moment
_ID_BYTES = 16
_MODULUS: int = 2 ** (8 * _ID_BYTES)


@dataclass(frozen=True)
class Entry:
    """One line of the chain.

    ``number``: from 1. ``at``: UTC, ISO 8601. ``kind``: what happened; ``text``: all about it, in JSON.
    """

    number: int
    at: str
    kind: str
    text: str
    mac: str

    @property
    def body(self) -> dict[str, Any]:
        """All about it: read each time, since a text takes a tenth of the room."""
        content: dict[str, Any] = json.loads(self.text)
        return content


class Key:
    """Names owners, and proves entries. Whoever has it can tell whether somebody is in the ledger."""

    def __init__(self, content: bytes) -> None:
        self._owners, self._members, self._entries, self._masks = (
            hashlib.blake2b(content, digest_size=32, person=person).digest()
            for person in (b"owners", b"members", b"entries", b"masks")
        )

    @classmethod
    def make(cls, path: Path, anchor: Anchor) -> Key:
        """Make a key, and keep it (mode 0600); one that was used is never overwritten. Only while it is held.

        A key without an anchor has never been used here: whoever made it was cut off, and it is taken.
        """
        if path.exists():
            if anchor.path.exists():
                raise LedgerError(
                    f"{path} is the key of another ledger: give another file as the key, or move this "
                    "one away"
                )
            return cls.read(path)
        content = secrets.token_bytes(KEY_BYTES)
        write_durably(path, content, private=True)
        return cls(content)

    @classmethod
    def read(cls, path: Path) -> Key:
        """Read a key. Raises LedgerError if there is none, others could have read it, or it is damaged."""
        try:
            content, mode = path.read_bytes(), path.stat().st_mode
        except OSError as error:
            raise LedgerError(
                f"the ledger's key {path} cannot be read ({error.strerror}): restore it, or give its "
                "place as the key"
            ) from None
        if os.name != "nt" and mode & 0o077:
            raise LedgerError(
                f"{path} can be read by others: if nobody has read it, run `chmod 600` on it"
            )
        if len(content) != KEY_BYTES:
            raise LedgerError(
                f"{path} is damaged, or not the key of a ledger: restore it from a backup"
            )
        return cls(content)

    def owner(self, name: str) -> bytes:
        """Hash an owner's name."""
        return next(self.owners([name]))

    def owners(self, names: Iterable[str]) -> Iterator[bytes]:
        """Hash owners' names."""
        begun = hashlib.blake2b(digest_size=_ID_BYTES, key=self._owners)
        for name in names:
            hashed = begun.copy()
            hashed.update(spelling(name))
            yield hashed.digest()

    def members(self, ids: Iterable[bytes]) -> int:
        """Sum up a set of owners: the sum of a union is that of its parts."""
        begun = hashlib.blake2b(digest_size=_ID_BYTES, key=self._members)
        tags = bytearray()
        for one in ids:
            tag = begun.copy()
            tag.update(one)
            tags += tag.digest()
        words = np.frombuffer(tags, dtype=">u4").reshape(-1, _ID_BYTES // 4)
        total: int = 0
        for sum_of_words in words.sum(axis=0, dtype=np.uint64).tolist():
            total = (total << 32) + sum_of_words
        return total % _MODULUS

    def mask(self, cohort: int, entry: int) -> int:
        """Hide a sum of members in an entry: sums themselves would tell the number of single people."""
        text = f"{cohort} {entry}".encode()
        return int.from_bytes(hmac.new(self._masks, text, "sha256").digest()[:_ID_BYTES], "big")

    def seal(self, text: str) -> str:
        """Prove a text, without telling it."""
        return hmac.new(self._masks, b"seal " + text.encode(), "sha256").hexdigest()

    def entry(self, before: str, number: int, at: str, kind: str, body: str) -> str:
        """Prove an entry, and all before it."""
        text = json.dumps([before, number, at, kind, body]).encode()
        return hmac.new(self._entries, text, "sha256").hexdigest()


def add_members(total: int, change: int) -> int:
    """Add owners to (or, negative, take them from) a sum of :meth:`Key.members`."""
    return (total + change) % _MODULUS


@dataclass(frozen=True)
class Seen:
    """The last entry that a machine has seen; ``place``: the file that it was written into, if it was one."""

    ledger: str
    entries: int
    mac: str
    place: str | None = None


class Anchor:
    """The last entry that this machine has seen: a ledger that ends before it was put back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path.with_name(f"{path.name}.lock"), mode=0o600)

    def read(self) -> Seen | None:
        """None where nothing was seen yet."""
        if not self.path.exists():
            return None
        seen = read_json(
            self.path,
            {"ledger": str, "entries": int, "mac": str},
            "if `collegium ledger verify` finds the ledger whole, delete this file",
            LedgerError,
        )
        place = seen.get("place")
        return Seen(seen["ledger"], seen["entries"], seen["mac"], place and str(place))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it, so that nothing is committed that could not be remembered; more than once is once."""
        try:
            if not Path(self._lock.lock_file).exists():
                check_folder(self.path.parent)  # where no file can be made, a lock waits for ever
            self._lock.acquire(timeout=_WAIT_S)
        except Timeout:
            raise LedgerError(
                f"another program has held {self._lock.lock_file} for {_WAIT_S:g} seconds: wait for it to "
                "end, and run again; nothing was released"
            ) from None
        except OSError as error:
            raise LedgerError(
                f"{self._lock.lock_file} cannot be used ({error.strerror}): nothing is released "
                "without an entry in the ledger; mend that, and run again"
            ) from None
        try:
            yield
        finally:
            self._lock.release()

    def advance(self, last: Seen) -> None:
        """Remember a later entry; an earlier one changes nothing. Only while it is held."""
        seen = self.read()
        if seen is None or seen.entries < last.entries:
            write_durably(self.path, json.dumps(asdict(last)).encode(), private=True)
