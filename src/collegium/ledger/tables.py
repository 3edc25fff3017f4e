"""The ledger's tables: what happened, line by line, and which owner has which history."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: All that ever happened, each line with an HMAC over the one before. Lines are only ever added.
entry = Table(
    "entry",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("mac", Text, nullable=False),
    sqlite_strict=True,
)

#: One row: which ledger this is, and its last entry. Whoever writes locks it first.
head = Table(
    "head",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("ledger", Text, nullable=False),
    Column("entries", Integer, ForeignKey("entry.number")),
    CheckConstraint("one = 1", name="one_row"),
    sqlite_strict=True,
)

#: Keyed hash of an owner's name -> the cohort of owners with the same history.
owner = Table(
    "owner",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    Column("cohort", Integer, nullable=False),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
