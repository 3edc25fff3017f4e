"""Entries and owners in the database: one transaction sees one whole, proven chain."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from collegium.errors import LedgerError, LedgerWarning
from collegium.ledger import tables
from collegium.ledger.books import Books, Changes, as_text
from collegium.ledger.chain import Anchor, Entry, Key, add_members
from collegium.ledger.database import Database

_AT_ONCE = 10_000


class Transaction:
    """What one transaction sees, and may write.

    Attributes
    ----------
    ledger : str
        Which one this is.
    books : Books
        What the entries say.
    last : Entry or None
    """

    def __init__(self, connection: sa.Connection, key: Key, place: str, writes: bool) -> None:
        self._connection, self._key, self._place = connection, key, place
        chosen = sa.select(tables.head)
        row = connection.execute(chosen.with_for_update() if writes else chosen).one()
        self.ledger: str = row.ledger
        self.books = Books()
        self.last: Entry | None = None
        for one in self._proven_entries(row.entries or 0):
            self.books.take(one)
            self.last = one
        self.changes = Changes(self.books, self.next_number)

    @property
    def next_number(self) -> int:
        """Number of the entry that would be written next."""
        return 1 if self.last is None else self.last.number + 1

    def entries(self) -> Iterator[Entry]:
        """Read all entries, oldest first."""
        chosen = sa.select(tables.entry).order_by(tables.entry.c.number)
        for row in self._connection.execute(chosen):
            yield Entry(row.number, row.at, row.kind, json.loads(row.body), row.mac)

    def _proven_entries(self, expected: int) -> Iterator[Entry]:
        mac, number = self.ledger, 0
        chosen = sa.select(tables.entry).order_by(tables.entry.c.number)
        for number, row in enumerate(self._connection.execute(chosen), start=1):
            proof = self._key.entry(mac, number, row.at, row.kind, row.body)
            if row.number != number or proof != row.mac:
                raise LedgerError(
                    f"entry {number} of the ledger at {self._place} was not written with this key, or was "
                    "changed: give the ledger's own key, or restore its newest backup; nothing was released"
                )
            mac = row.mac
            yield Entry(row.number, row.at, row.kind, json.loads(row.body), mac)
        if number != expected:
            raise LedgerError(
                f"the ledger at {self._place} ends at entry {number} instead of {expected}: restore its "
                "newest backup; nothing was released"
            )

    def require_entry(self, number: int, mac: str, whose: str) -> None:
        """Refuse a ledger that lacks an entry which is known to have been there."""
        entry = tables.entry
        chosen = sa.select(entry.c.mac).where(entry.c.number == number)
        if self._connection.scalar(chosen) != mac:
            raise LedgerError(
                f"{self._place} is an older copy, or another branch, of the ledger (entry {number} was "
                f"{whose}; it ends at {self.next_number - 1}): put the newest one back; nothing was released"
            )

    def cohorts_of(self, ids: Sequence[bytes]) -> dict[bytes, int]:
        """Look up the cohort of every owner who is known, and prove that nobody was moved.

        Where somebody is not known, that nobody was taken out: who is new has a whole budget.
        """
        known = self._looked_up(ids)
        self.require_members(
            set(known.values()) if len(known) == len(ids) else set(self.books.cohorts)
        )
        return known

    def _looked_up(self, ids: Sequence[bytes]) -> dict[bytes, int]:
        owner = tables.owner
        chosen = sa.select(owner.c.id, owner.c.cohort)
        known: dict[bytes, int] = {}
        if len(ids) > self.books.n_owners / 10:
            wanted = set(ids)
            for id, cohort in self._connection.execute(chosen):
                if (one := bytes(id)) in wanted:
                    known[one] = cohort
            return known
        for some in _in_parts(ids):
            rows = self._connection.execute(chosen.where(owner.c.id.in_(some)))
            known.update((bytes(id), cohort) for id, cohort in rows)
        return known

    def require_members(self, cohorts: set[int]) -> None:
        """Refuse a table of owners that is not what the entries prove."""
        for number in cohorts:
            chosen = sa.select(tables.owner.c.id).where(tables.owner.c.cohort == number)
            ids = [bytes(one) for one in self._connection.scalars(chosen)]
            its = self.books.cohorts.get(number)
            found = (len(ids), add_members("", self._key.members(ids)))
            if its is None or found != (its.members, its.members_mac):
                raise self._moved()

    def require_nobody_else(self) -> None:
        """Refuse owners whose cohort no entry names."""
        named = set(self.books.cohorts)
        found = set(self._connection.scalars(sa.select(tables.owner.c.cohort).distinct()))
        if not found <= named:
            raise self._moved()

    def _moved(self) -> LedgerError:
        return LedgerError(
            f"owners were moved, added or taken out of the ledger at {self._place} by something else: "
            "restore its newest backup; nothing was released"
        )

    def write(self, kind: str, body: dict[str, Any]) -> Entry:
        """Write the next entry, with all changes of cohorts."""
        text = as_text({**body, "cohorts": self.changes.as_json()})
        number, at = self.next_number, self._now()
        mac = self._key.entry(
            self.ledger if self.last is None else self.last.mac, number, at, kind, text
        )
        row = {"number": number, "at": at, "kind": kind, "body": text, "mac": mac}
        self._connection.execute(sa.insert(tables.entry), [row])
        self._connection.execute(sa.update(tables.head).values(entries=number))
        self._write_owners()
        entry = Entry(number, at, kind, json.loads(text), mac)
        self.books.take(entry)
        self.last = entry
        self.changes = Changes(self.books, self.next_number)
        return entry

    def _write_owners(self) -> None:
        owner = tables.owner
        for cohort, ids in self.changes.joining:
            for some in _in_parts(ids):
                rows = [{"id": one, "cohort": cohort} for one in some]
                self._connection.execute(sa.insert(owner), rows)
        for cohort, ids in self.changes.moving:
            for some in _in_parts(ids):
                move = sa.update(owner).where(owner.c.id.in_(some)).values(cohort=cohort)
                self._connection.execute(move)

    def _now(self) -> str:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if self.last is None or now >= self.last.at:
            return now
        warnings.warn(
            f"the clock says {now}, the ledger's last entry is of {self.last.at}: that time is written again",
            LedgerWarning,
            stacklevel=4,
        )
        return self.last.at


class Storage:
    """A ledger's database, its key and its anchor."""

    def __init__(self, database: Database, key: Key, anchor: Anchor) -> None:
        self.database, self.key, self._anchor = database, key, anchor

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """See one state of everything."""
        with self.database.reading() as connection:
            yield self._transaction(connection, writes=False)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Write alone, all or nothing; durable when the block has ended."""
        with self.database.writing() as connection:
            transaction = self._transaction(connection, writes=True)
            yield transaction
        if transaction.last is not None:
            last = transaction.last
            self._anchor.advance(transaction.ledger, last.number, last.mac)

    def _transaction(self, connection: sa.Connection, writes: bool) -> Transaction:
        place = str(self.database)
        transaction = Transaction(connection, self.key, place, writes)
        seen = self._anchor.read()
        if seen is not None:
            ledger, number, mac = seen
            if ledger != transaction.ledger:
                raise LedgerError(
                    f"{place} is not the ledger that was used with this key before: give that one; nothing "
                    "was released"
                )
            transaction.require_entry(number, mac, "seen here")
        return transaction


def _in_parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[first : first + _AT_ONCE] for first in range(0, len(values), _AT_ONCE))
