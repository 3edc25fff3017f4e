"""The oldest version that is read: those before were in no release, and promised something else."""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "entry",
        sa.Column("number", sa.Integer, autoincrement=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("mac", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_entry")),
        sqlite_strict=True,
    )
    op.create_table(
        "head",
        sa.Column("one", sa.Integer, autoincrement=False),
        sa.Column("ledger", sa.Text, nullable=False),
        sa.Column("entries", sa.Integer),
        sa.CheckConstraint("one = 1", name=op.f("ck_head_one_row")),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_head")),
        sa.ForeignKeyConstraint(["entries"], ["entry.number"], name=op.f("fk_head_entries_entry")),
        sqlite_strict=True,
    )
    op.create_table(
        "owner",
        sa.Column("id", sa.LargeBinary, nullable=False),
        sa.Column("cohort", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_owner")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
