"""Which version of its tables a ledger has; making them, and bringing them up to date (Alembic)."""

from __future__ import annotations

import threading
from importlib.resources import files

import sqlalchemy as sa

from collegium.errors import LedgerError

NEWEST = "2"
_ONE_AT_A_TIME = threading.Lock()  # Alembic keeps what it works on in variables of the process


def make_tables(connection: sa.Connection) -> None:
    """Make all tables, or bring them up to date."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files("collegium.ledger") / "migrations"))
    config.attributes["connection"] = connection
    with _ONE_AT_A_TIME:
        command.upgrade(config, "head")


def require_newest(connection: sa.Connection, place: str) -> None:
    """Refuse what is no ledger, and one of another version. Raises LedgerError."""
    if not sa.inspect(connection).has_table("alembic_version"):
        raise LedgerError(f"there is no ledger at {place}: make one with `collegium ledger init`")
    found = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    if found != NEWEST:
        raise LedgerError(
            f"the ledger at {place} has version {found}, and this program knows version {NEWEST}: use "
            "the program that wrote it, or a newer one; nothing was changed"
        )
