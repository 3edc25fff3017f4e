"""One transaction: a whole, proven chain of entries, the table of owners that it proves, what is added."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from collegium.errors import LedgerError, LedgerWarning
from collegium.ledger import tables
from collegium.ledger.chain import Entry, Key
from collegium.ledger.entries import Books, Changes, as_text, members_sum

_AT_ONCE = 10_000
_FEW_OWNERS, _FEW_COHORTS = 50_000, 5_000  # others are looked up in the whole table
_cohort = tables.owner.c.cohort


class Proven:
    """Entries that were proven, and what they say.

    Attributes
    ----------
    ledger : str
        Which one this is.
    entries : list of Entry
        All of them, oldest first.
    books : Books
        What they say.
    """

    def __init__(self, ledger: str) -> None:
        self.ledger = ledger
        self.entries: list[Entry] = []
        self.books = Books()

    @property
    def last_mac(self) -> str:
        """What the next entry builds upon."""
        return self.entries[-1].mac if self.entries else self.ledger

    def take(self, entry: Entry) -> None:
        """Take in the next entry."""
        self.entries.append(entry)
        self.books.take(entry)


class Transaction:
    """What one transaction sees, and may write.

    Attributes
    ----------
    proven : Proven
        All entries, and what they say.

    Parameters
    ----------
    proven : Proven, optional
        The first entries, as they were proven before: where the ledger goes on from there, only later ones
        are read. Belongs to this transaction from now on.
    """

    def __init__(
        self,
        connection: sa.Connection,
        key: Key,
        place: str,
        writes: bool,
        proven: Proven | None = None,
    ) -> None:
        self._connection, self._key, self._place = connection, key, place
        chosen = sa.select(tables.head)
        row = connection.execute(chosen.with_for_update() if writes else chosen).one_or_none()
        if row is None:
            raise LedgerError(f"there is no ledger at {place} any more: restore its newest backup")
        goes_on = proven is not None and self._goes_on(proven, row.ledger)
        self.proven = proven if goes_on and proven is not None else Proven(row.ledger)
        self._prove_entries(row.entries or 0)
        self.changes = Changes(self.books, self.next_number, self._key)

    @property
    def ledger(self) -> str:
        """Which one this is."""
        return self.proven.ledger

    @property
    def entries(self) -> list[Entry]:
        """All of them, oldest first; each is proven."""
        return self.proven.entries

    @property
    def books(self) -> Books:
        """What they say."""
        return self.proven.books

    @property
    def next_number(self) -> int:
        """Number of the entry that would be written next."""
        return len(self.entries) + 1

    @property
    def last(self) -> Entry | None:
        """The last entry, if there is any."""
        return self.entries[-1] if self.entries else None

    def _goes_on(self, proven: Proven, ledger: str) -> bool:
        """Whether the last entry that was proven is where it was: its HMAC proves all before it."""
        its = tables.entry.c
        mac = self._connection.scalar(sa.select(its.mac).where(its.number == len(proven.entries)))
        return (proven.ledger, proven.last_mac) == (ledger, mac)

    def _prove_entries(self, expected: int) -> None:
        chosen = sa.select(tables.entry).order_by(tables.entry.c.number)
        if self.entries:
            chosen = chosen.where(tables.entry.c.number >= self.next_number)
        for row in self._connection.execute(chosen):
            number, mac = self.next_number, self.proven.last_mac
            proof = self._key.entry(mac, number, row.at, row.kind, row.body)
            if row.number != number or proof != row.mac:
                raise LedgerError(
                    f"entry {number} of the ledger at {self._place} was not written with this key, or was "
                    "changed: give the ledger's own key, or restore its newest backup; nothing was released"
                )
            self.proven.take(Entry(number, row.at, row.kind, row.body, proof))
        if len(self.entries) != expected:
            raise LedgerError(
                f"the ledger at {self._place} ends at entry {len(self.entries)}, not {expected}: "
                "restore its newest backup; nothing was released"
            )

    def require_entry(self, number: int, mac: str, whose: str) -> None:
        """Refuse a ledger that lacks an entry which is known to have been there."""
        if not any(one.mac == mac for one in self.entries[number - 1 : number]):
            raise LedgerError(
                f"{self._place} is an older copy of the ledger, or one that went another way (it ends "
                f"at entry {self.next_number - 1}, and entry {number} was {whose}): put the newest "
                "copy back; nothing was released"
            )

    def cohorts_of(self, ids: Sequence[bytes]) -> list[int]:
        """Look up the cohort of every owner, 0 for who is not known, and prove that nobody was moved.

        Where somebody is not known, that nobody was taken out: who is new has a whole budget. One statement
        reads the rows that are looked up and proved: a database may answer two from different places. What
        another says about who may be in it only spares reading the rest.
        """
        if len(ids) <= _FEW_OWNERS:
            cohorts = self._cohorts_that_hold(ids)
            if len(cohorts) <= _FEW_COHORTS:
                owners = self._owners(sa.select(tables.owner).where(_cohort.in_(cohorts)))
                found = [owners.get(one, 0) for one in ids]
                if 0 not in found:
                    self._prove(set(found), owners)
                    return found
        owners = self._owners(sa.select(tables.owner))
        found = [owners.get(one, 0) for one in ids]
        self._prove(set(self.books.cohorts) if 0 in found else set(found), owners)
        return found

    def prove_everybody(self) -> None:
        """Refuse a table of owners that is not what the entries prove."""
        owners = self._owners(sa.select(tables.owner))
        self._prove(set(self.books.cohorts) | set(owners.values()), owners)

    def _cohorts_that_hold(self, ids: Sequence[bytes]) -> list[int]:
        found: set[int] = set()
        for some in _in_parts(ids):
            chosen = sa.select(_cohort).distinct().where(tables.owner.c.id.in_(some))
            found.update(self._connection.scalars(chosen))
        return sorted(found)

    def _owners(self, chosen: sa.Select[Any]) -> dict[bytes, int]:
        # As the driver has them: a million rows in a third of the time.
        cursor: Any = self._connection.execute(chosen).cursor
        return dict(cursor.fetchall())

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
                    f"another program changed who is in the ledger at {self._place}: restore its "
                    "newest backup; nothing was released"
                )

    def write(self, kind: str, body: dict[str, Any]) -> Entry:
        """Write the next entry, with all changes of cohorts."""
        text = as_text({**body, "cohorts": self.changes.as_json()})
        number, at = self.next_number, self._now()
        mac = self._key.entry(self.proven.last_mac, number, at, kind, text)
        row = {"number": number, "at": at, "kind": kind, "body": text, "mac": mac}
        self._connection.execute(sa.insert(tables.entry), [row])
        self._connection.execute(sa.update(tables.head).values(entries=number))
        self._write_owners()
        self._require_written(number, mac)
        entry = Entry(number, at, kind, text, mac)
        self.proven.take(entry)
        self.changes = Changes(self.books, self.next_number, self._key)
        return entry

    def _require_written(self, number: int, mac: str) -> None:
        """See that the database did what it was told: a trigger may have it ignored without a word."""
        joined = sa.select(tables.head.c.entries, tables.entry.c.mac).join(
            tables.entry, tables.head.c.entries == tables.entry.c.number
        )
        if tuple(self._connection.execute(joined).one_or_none() or ()) != (number, mac):
            raise LedgerError(
                f"the database at {self._place} did not keep what was written into it: look for "
                "triggers; nothing was released"
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
        """The time, or that of the last entry where the clock runs backwards.

        A wrong clock is told of, and refuses nothing: what is released must be accounted for, and no sum
        depends on times. Entries follow by number; times are for people, whose receipts list them in order.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if self.last is None or now >= self.last.at:
            return now
        warnings.warn(
            f"the clock shows {now}, but the ledger's last entry is from {self.last.at}: the new entry "
            "gets that later time; set the clock right",
            LedgerWarning,
            stacklevel=4,
        )
        return self.last.at


def _in_parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[first : first + _AT_ONCE] for first in range(0, len(values), _AT_ONCE))
