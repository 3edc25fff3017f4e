"""A ledger's database, key and anchor: one way to open a transaction, and what is remembered after it."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from collegium.checks import shown
from collegium.errors import InputError, LedgerError, LedgerWarning
from collegium.ledger import tables
from collegium.ledger.chain import Anchor, Key, Seen
from collegium.ledger.database import Database
from collegium.ledger.entries import BEGIN
from collegium.ledger.transaction import Proven, Transaction
from collegium.ledger.versions import require_newest


class Storage:
    """A ledger's database, its key and its anchor."""

    def __init__(self, database: Database, key: Key, anchor: Anchor) -> None:
        self.database, self.key, self._anchor = database, key, anchor
        self._proven: Proven | None = None  # while nobody uses it

    @classmethod
    def opened(cls, place: str | Path, key: str | Path | None) -> Storage:
        """Open what is there. Raises LedgerError if it is not, or of another version."""
        database, key_file, anchor = parts_of(place, key)
        if not database.exists:
            raise LedgerError(
                f"there is no ledger at {database}: make one with `collegium ledger init`"
            )
        storage = cls(database, Key.read(key_file), anchor)
        with database.reading() as connection:
            require_newest(connection, str(database))
        return storage

    def begin(self, about: dict[str, Any], make_tables: Callable[[sa.Connection], None]) -> None:
        """Make the tables and write the first entry, in one transaction."""
        with self._anchor.held(), self.database.writing() as connection:
            make_tables(connection)
            row = {"one": 1, "ledger": secrets.token_hex(16), "entries": None}
            connection.execute(sa.insert(tables.head), [row])
            transaction = Transaction(connection, self.key, str(self.database), writes=True)
            transaction.write(BEGIN, about)
        self._remember(transaction)

    def reading(self, anew: bool = False) -> AbstractContextManager[Transaction]:
        """See one state of everything.

        ``anew``: prove also what this program has proven before, and keep none of it.
        """
        return self._open(self.database.reading, writes=False, anew=anew)

    def writing(self) -> AbstractContextManager[Transaction]:
        """Write alone, all or nothing; durable when the block has ended."""
        return self._open(self.database.writing, writes=True)

    @contextmanager
    def _open(
        self,
        connected: Callable[[], AbstractContextManager[sa.Connection]],
        writes: bool,
        anew: bool = False,
    ) -> Iterator[Transaction]:
        with self._anchor.held():
            # Before the state is read: an entry that comes in between makes it no older copy.
            seen = self._anchor.read()
        # Taken by one transaction at a time, and put back only where all that it wrote is durable.
        proven, self._proven = (None, self._proven) if anew else (self._proven, None)
        with connected() as connection:
            transaction = self._transaction(connection, seen, writes, proven)
            yield transaction
        self._remember(transaction)
        if not anew:
            self._proven = transaction.proven

    def _remember(self, transaction: Transaction) -> None:
        last = transaction.last
        if last is None:
            return
        try:
            with self._anchor.held():
                place = None if self.database.file is None else str(self.database.file)
                self._anchor.advance(Seen(transaction.ledger, last.number, last.mac, place))
        except (OSError, LedgerError) as error:  # it was committed all the same
            warnings.warn(
                f"{self._anchor.path} cannot be written ({getattr(error, 'strerror', error)}): so an "
                "older copy of the ledger would not be noticed",
                LedgerWarning,
                stacklevel=5,
            )

    def _transaction(
        self,
        connection: sa.Connection,
        seen: Seen | None,
        writes: bool,
        proven: Proven | None,
    ) -> Transaction:
        place = str(self.database)
        self.database.require_plain(connection)
        transaction = Transaction(connection, self.key, place, writes, proven)
        if transaction.last is None:
            raise LedgerError(f"the ledger at {place} is empty: restore its newest backup")
        if seen is not None:
            if seen.ledger != transaction.ledger:
                raise LedgerError(
                    f"{place} is not the ledger that this key belongs to: give that ledger, or another "
                    "key; nothing was released"
                )
            transaction.require_entry(seen.entries, seen.mac, "seen here")
            if writes:
                self._refuse_copy(seen)
        return transaction

    def _refuse_copy(self, seen: Seen) -> None:
        """Of a ledger that was copied with its key and anchor, one may go on: else each has whole budgets."""
        here = self.database.file
        if here is None or seen.place is None or not Path(seen.place).is_file():
            return
        if not here.samefile(seen.place) and _ledger_in(Path(seen.place)) == seen.ledger:
            raise LedgerError(
                f"{here} is a copy of the ledger at {seen.place}, and with both of them budgets would "
                "be spent twice: use that one, or move it away to go on with this one; nothing was "
                "released"
            )


def _ledger_in(file: Path) -> str | None:
    try:
        with Database(file).reading() as connection:
            return connection.scalar(sa.select(tables.head.c.ledger))
    except LedgerError:  # it is something else by now
        return None


def parts_of(place: str | Path, key: str | Path | None) -> tuple[Database, Path, Anchor]:
    """Tell a ledger's database, the file of its key, and its anchor, whether they are there or not."""
    for name, given in (("place", place), ("key", key)):
        if not isinstance(given, (str, Path)) and (name == "place" or given is not None):
            raise InputError(
                f"{name} must be the name of a file (or the address of a server), got "
                f"{shown(given)}"
            )
    database = Database(place)
    if key is None and database.file is None:
        raise InputError(
            "the key of a ledger on a server is a file on this machine, and it is missing: give "
            "key=FILE (--key FILE on the command line, ledger.key in a study)"
        )
    file = (Path(key) if key is not None else Path(f"{database.file}.key")).absolute()
    return database, file, Anchor(file.with_name(f"{file.name}.anchor"))
