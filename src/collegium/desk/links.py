"""Links that open one person's page: random, kept as hashes, and good for some days.

What is kept tells neither a link nor a name. A link's token is 256 random bits; two different hashes of it
are used, one to find the link again, and one as the key that the person's name is encrypted with. So a copy
of this file opens no page, and does not say who was sent one.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collegium.errors import InputError
from collegium.parties.ciphers import sealed, unsealed

TOKEN_BYTES = 32
MOST_DAYS = 366
_ABOUT = {"use": "name of a person"}
_TABLE = """
CREATE TABLE IF NOT EXISTS link (
    hash BLOB PRIMARY KEY, person TEXT NOT NULL, name BLOB NOT NULL,
    made TEXT NOT NULL, expires TEXT NOT NULL, ended TEXT, why TEXT
) WITHOUT ROWID
"""

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class LinkCounts:
    """How many links there are: that open a page, and that do so no more."""

    good: int
    expired: int
    revoked: int


class Links:
    """All links of a desk, in a file of its own.

    Parameters
    ----------
    path : Path
        SQLite file, made if it is not there; nobody else can read it.
    clock : callable
        Tells the time, in UTC.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> links = Links(Path(folder.name, "links.sqlite"))
    >>> (token,) = links.make([("ann", "person 1")], days=30)
    >>> links.name_of(token), links.name_of("something else")
    ('ann', None)
    >>> links.revoke(["person 1"]), links.name_of(token), links.counts()
    (1, None, LinkCounts(good=0, expired=0, revoked=1))
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, clock: Clock = _now) -> None:
        self._path, self._clock = path, clock
        path.touch(mode=0o600)
        with self._writing() as database:
            database.execute(_TABLE)

    def make(self, people: Sequence[tuple[str, str]], days: int) -> list[str]:
        """Make a link for each person, all of them or none, and end those that they had.

        ``people``: name, and how the ledger calls the person (:meth:`Ledger.pseudonym`).
        Returns the tokens, in the same order; they are not kept.
        """
        if not 1 <= days <= MOST_DAYS:
            raise InputError(f"a link is good for 1 to {MOST_DAYS} days, got {days}")
        made = self._clock()
        tokens = [secrets.token_urlsafe(TOKEN_BYTES) for _ in people]
        rows = [
            (
                _hash(token, b"find a link"),
                person,
                sealed(_hash(token, b"read a name"), name.encode(), _ABOUT),
                made.isoformat(timespec="seconds"),
                (made + timedelta(days=days)).isoformat(timespec="seconds"),
            )
            for token, (name, person) in zip(tokens, people, strict=True)
        ]
        with self._writing() as database:
            _end(database, {person for _, person in people}, made, "revoked")
            database.executemany(
                "INSERT INTO link (hash, person, name, made, expires) VALUES (?, ?, ?, ?, ?)", rows
            )
        return tokens

    def name_of(self, token: str) -> str | None:
        """Find whose page a link opens; None if it opens none, or none any more."""
        with self._writing() as database:
            self._expire(database)
            found = database.execute(
                "SELECT name FROM link WHERE hash = ? AND ended IS NULL",
                (_hash(token, b"find a link"),),
            ).fetchone()
        if found is None:
            return None
        name = unsealed(_hash(token, b"read a name"), found[0], _ABOUT)
        return None if name is None else name.decode()

    def revoke(self, persons: Sequence[str]) -> int:
        """End the links of some people; returns how many ended."""
        with self._writing() as database:
            self._expire(database)
            return _end(database, set(persons), self._clock(), "revoked")

    def good(self, persons: Sequence[str]) -> int:
        """Count those of some people who have a link that opens their page."""
        with self._writing() as database:
            self._expire(database)
            found = {
                person
                for (person,) in database.execute("SELECT person FROM link WHERE ended IS NULL")
            }
        return len(found & set(persons))

    def counts(self) -> LinkCounts:
        """Count the links."""
        with self._writing() as database:
            self._expire(database)
            counted = dict(
                database.execute("SELECT coalesce(why, ''), count(*) FROM link GROUP BY why")
            )
        return LinkCounts(*(counted.get(why, 0) for why in ("", "expired", "revoked")))

    def _expire(self, database: sqlite3.Connection) -> None:
        """End what has expired, for good: a clock that is put back opens nothing again."""
        now = self._clock().isoformat(timespec="seconds")
        database.execute(
            "UPDATE link SET ended = ?, why = 'expired' WHERE ended IS NULL AND expires <= ?",
            (now, now),
        )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self._path, timeout=30)
        try:
            database.execute("PRAGMA synchronous = FULL")
            with database:
                yield database
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"{self._path} cannot be used ({error}): restore it from a backup, or move it away and make "
                "new links"
            ) from None
        finally:
            database.close()


def _hash(token: str, use: bytes) -> bytes:
    return hashlib.blake2b(token.encode(), digest_size=32, person=use).digest()


def _end(database: sqlite3.Connection, persons: set[str], now: datetime, why: str) -> int:
    ended = 0
    for person in persons:
        ended += database.execute(
            "UPDATE link SET ended = ?, why = ? WHERE person = ? AND ended IS NULL",
            (now.isoformat(timespec="seconds"), why, person),
        ).rowcount
    return ended
