"""The database below a ledger: where it is, one writer at a time, and failures in one line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from collegium.checks import shown
from collegium.errors import InputError, LedgerError
from collegium.passwords import password_refusal, refuse_passwords

_WAIT_S = 600.0
# Of each transaction, whatever the role, the database and the server have as defaults. Who holds the lock and
# is not heard of any more (a machine that is gone) is ended by the server, so that others can go on.
_POSTGRESQL = "; ".join(
    f"SET LOCAL {name} = {value}"
    for name, value in {
        "synchronous_commit": "on",
        "statement_timeout": 0,
        "lock_timeout": int(_WAIT_S * 1000),
        "idle_in_transaction_session_timeout": int(_WAIT_S * 1000),
    }.items()
)
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
_ALLOWED = "give a file, sqlite:///FILE, or postgresql://USER@HOST/DATABASE"


class Database:
    """SQLite file or PostgreSQL database.

    Parameters
    ----------
    place : str or Path
        A file, or a URL.

    Raises
    ------
    InputError
        If there is no driver for such a URL.
    """

    def __init__(self, place: str | Path) -> None:
        self.url = _url_of(place)
        self.file = (
            Path(self.url.database or "") if self.url.get_backend_name() == "sqlite" else None
        )
        try:
            self.engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise InputError(
                f"no driver for a ledger at {self}: {error}; {_ALLOWED} (the latter needs `pip install "
                "'collegium[postgres]'`)"
            ) from None
        if self.file is not None:
            sa.event.listen(self.engine, "connect", _prepare_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)

    def __str__(self) -> str:
        return str(self.file) if self.file else self.url.render_as_string()

    @property
    def exists(self) -> bool:
        """Whether there is a ledger, as far as can be told without a password prompt."""
        if self.file is not None:
            try:
                return self.file.is_file()
            except OSError as error:
                raise LedgerError(
                    f"{shown(str(self.file))} cannot be a ledger's file ({error.strerror}): give another"
                ) from None
        with self.reading() as connection:
            return bool(sa.inspect(connection).has_table("alembic_version"))

    @property
    def is_blank(self) -> bool:
        """Whether nothing is in it: it is not there, or somebody was cut off who made it."""
        if self.file is None or not self.file.is_file():
            return not self.exists
        with self.reading() as connection:
            return not connection.scalar(sa.text("SELECT count(*) FROM sqlite_master"))

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """See one state of everything."""
        with self._connected("REPEATABLE READ") as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Write alone, all or nothing; durable when the block has ended."""
        # Each statement sees what was committed before it, so what follows the lock of `head` sees all.
        with self._connected("READ COMMITTED", writes=True) as connection:
            yield connection

    @contextlib.contextmanager
    def _connected(self, isolation: Any, writes: bool = False) -> Iterator[sa.Connection]:
        with self._failures_in_one_line(), self.engine.connect() as connection:
            if self.file is not None:
                connection = connection.execution_options(collegium_writes=writes)
            else:
                connection = connection.execution_options(
                    isolation_level=isolation, postgresql_readonly=not writes
                )
            with connection.begin():
                if self.file is None:
                    connection.exec_driver_sql(_POSTGRESQL)
                yield connection

    def require_plain(self, connection: sa.Connection) -> None:
        """Refuse a database whose tables were taught to do something else. Raises LedgerError."""
        if self.file is not None:
            odd = "SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')"
        else:
            odd = (
                "SELECT (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN "
                "('entry'::regclass, 'head'::regclass, 'owner'::regclass)) + (SELECT count(*) FROM pg_class "
                "WHERE oid IN ('entry'::regclass, 'head'::regclass, 'owner'::regclass) AND relkind <> 'r')"
            )
        if connection.scalar(sa.text(odd)):
            raise LedgerError(
                f"the ledger at {self} has triggers or views, which Collegium does not make: remove "
                "them, or restore its newest backup; nothing was released"
            )

    def make_private(self) -> None:
        """Make a SQLite file for its owner's eyes only."""
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600))
            self.file.chmod(0o600)

    @contextlib.contextmanager
    def _failures_in_one_line(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise LedgerError(
                f"the ledger at {self} cannot be used ({_in_short(error)}): nothing is released "
                "without an entry there; mend that, and run again"
            ) from None


def _url_of(place: str | Path) -> sa.URL:
    text = str(place)
    if not text.strip():
        raise InputError(f"the place of the ledger is empty: {_ALLOWED}")
    refuse_passwords([text])
    if isinstance(place, Path) or "://" not in text:
        return sa.URL.create("sqlite", database=str(Path(text).expanduser().absolute()))
    try:
        url = sa.make_url(text)
    except ArgumentError:
        raise InputError(f"{text!r} cannot be the place of a ledger: {_ALLOWED}") from None
    if url.password is not None or any("password" in name.lower() for name in url.query):
        raise password_refusal(text)  # in whatever spelling
    url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputError(f"a ledger cannot be kept in {url.get_backend_name()}: {_ALLOWED}")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise InputError(
            f"a ledger in memory would forget everything when the program ends: {_ALLOWED}"
        )
    return url


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # BEGIN is said below, COMMIT by SQLAlchemy
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(_WAIT_S * 1000)}")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA fullfsync = ON")  # where fsync alone does not reach the disk: macOS
    cursor.execute("PRAGMA trusted_schema = OFF")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("collegium_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _in_short(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())[:200] or type(error).__name__
