"""Entries and owners in the database: one transaction sees one whole, proven chain."""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from collegium.errors import LedgerError, LedgerWarning
from collegium.ledger import tables
from collegium.ledger.books import BEGIN, Books, Changes, as_text, members_sum
from collegium.ledger.chain import Anchor, Entry, Key
from collegium.ledger.database import Database

_AT_ONCE = 10_000


class Transaction:
    """What one transaction sees, and may write.

    Attributes
    ----------
    ledger : str
        Which one this is.
    entries : list of Entry
        All of them, oldest first; each is proven.
    books : Books
        What they say.
    """

    def __init__(self, connection: sa.Connection, key: Key, place: str, writes: bool) -> None:
        self._connection, self._key, self._place = connection, key, place
        chosen = sa.select(tables.head)
        row = connection.execute(chosen.with_for_update() if writes else chosen).one_or_none()
        if row is None:
            raise LedgerError(f"{place} holds no ledger any more: restore its newest backup")
        self.ledger: str = row.ledger
        self.entries: list[Entry] = []
        self.books = Books()
        for one in self._proven_entries(row.entries or 0):
            self._take(one)
        self.changes = Changes(self.books, self.next_number, self._key)

    @property
    def next_number(self) -> int:
        """Number of the entry that would be written next."""
        return len(self.entries) + 1

    @property
    def last(self) -> Entry | None:
        """The last entry, if there is any."""
        return self.entries[-1] if self.entries else None

    def _take(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.books.take(entry)

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
        if not any(one.mac == mac for one in self.entries[number - 1 : number]):
            raise LedgerError(
                f"{self._place} is an older copy, or another branch, of the ledger (entry {number} was "
                f"{whose}; it ends at {self.next_number - 1}): put the newest one back; nothing was released"
            )

    def cohorts_of(self, ids: Sequence[bytes]) -> dict[bytes, int]:
        """Look up the cohort of every owner who is known, and prove that nobody was moved.

        Where somebody is not known, that nobody was taken out: who is new has a whole budget. One statement
        reads the rows that are looked up and proved: a database may answer two from different places.
        """
        owners = self._owners()
        known = {one: owners[one] for one in ids if one in owners}
        everybody = len(known) < len(ids)
        self._prove(set(self.books.cohorts) if everybody else set(known.values()), owners)
        return known

    def prove_everybody(self) -> None:
        """Refuse a table of owners that is not what the entries prove."""
        owners = self._owners()
        self._prove(set(self.books.cohorts) | set(owners.values()), owners)

    def _owners(self) -> dict[bytes, int]:
        chosen = sa.select(tables.owner.c.id, tables.owner.c.cohort)
        return {bytes(id): cohort for id, cohort in self._connection.execute(chosen)}

    def _prove(self, cohorts: set[int], owners: dict[bytes, int]) -> None:
        found: dict[int, list[bytes]] = {number: [] for number in cohorts}
        for one, number in owners.items():
            if number in found:
                found[number].append(one)
        for number, ids in found.items():
            its = self.books.cohorts.get(number)
            if its is None or (len(ids), self._key.members(ids)) != (
                its.members,
                members_sum(its, self._key),
            ):
                raise LedgerError(
                    f"owners were moved, added or taken out of the ledger at {self._place} by something "
                    "else: restore its newest backup; nothing was released"
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
        self._require_written(number, mac)
        entry = Entry(number, at, kind, json.loads(text), mac)
        self._take(entry)
        self.changes = Changes(self.books, self.next_number, self._key)
        return entry

    def _require_written(self, number: int, mac: str) -> None:
        """See that the database did what it was told: a trigger may have it ignored without a word."""
        joined = sa.select(tables.head.c.entries, tables.entry.c.mac).join(
            tables.entry, tables.head.c.entries == tables.entry.c.number
        )
        if tuple(self._connection.execute(joined).one_or_none() or ()) != (number, mac):
            raise LedgerError(
                f"the database at {self._place} did not take what was written into it: look for triggers; "
                "nothing was released"
            )

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

    def begin(self, about: dict[str, Any], make_tables: Callable[[sa.Connection], None]) -> None:
        """Make the tables and write the first entry, in one transaction."""
        with self._anchor.held(), self.database.writing() as connection:
            make_tables(connection)
            row = {"one": 1, "ledger": secrets.token_hex(16), "entries": None}
            connection.execute(sa.insert(tables.head), [row])
            transaction = Transaction(connection, self.key, str(self.database), writes=True)
            transaction.write(BEGIN, about)
        self._remember(transaction)

    def reading(self) -> AbstractContextManager[Transaction]:
        """See one state of everything."""
        return self._open(self.database.reading, writes=False)

    def writing(self) -> AbstractContextManager[Transaction]:
        """Write alone, all or nothing; durable when the block has ended."""
        return self._open(self.database.writing, writes=True)

    @contextmanager
    def _open(
        self, connected: Callable[[], AbstractContextManager[sa.Connection]], writes: bool
    ) -> Iterator[Transaction]:
        with self._anchor.held():
            # Before the state is read: an entry that comes in between makes it no older copy.
            seen = self._anchor.read()
        with connected() as connection:
            transaction = self._transaction(connection, seen, writes)
            yield transaction
        self._remember(transaction)

    def _remember(self, transaction: Transaction) -> None:
        last = transaction.last
        if last is None:
            return
        try:
            with self._anchor.held():
                self._anchor.advance(transaction.ledger, last.number, last.mac)
        except (OSError, LedgerError) as error:  # it was committed all the same
            warnings.warn(
                f"{self._anchor.path} cannot be written ({getattr(error, 'strerror', error)}): an older copy "
                "of the ledger would not be noticed",
                LedgerWarning,
                stacklevel=5,
            )

    def _transaction(
        self, connection: sa.Connection, seen: tuple[str, int, str] | None, writes: bool
    ) -> Transaction:
        place = str(self.database)
        self.database.require_plain(connection)
        transaction = Transaction(connection, self.key, place, writes)
        if transaction.last is None:
            raise LedgerError(f"the ledger at {place} was emptied: restore its newest backup")
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
