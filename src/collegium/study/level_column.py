"""A table's column of privacy levels, filled in from a ledger: what each person grants now."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from collegium.checks import nearest
from collegium.data.datasets.raw import open_raw
from collegium.data.datasets.table_files import is_csv, read_table, separator_of
from collegium.errors import InputError
from collegium.ledger.ledger import Ledger
from collegium.names import as_names


def with_levels(rows: pd.DataFrame, owner: str, column: str, ledger: Ledger) -> pd.DataFrame:
    """Take the rows of those who grant a budget, with the level that each has in a ledger now.

    Left out are rows of people whom the ledger does not know, and of those who have left.

    ``owner``: column with people's names. ``column``: where levels go; replaced if it is there.
    Raises InputError if levels would take the place of names or have no column's name, if a row has no
    name, or if there is no row of anybody who grants a budget.
    """
    if not column.strip() or column == owner:
        raise InputError(
            f"levels cannot go to column {column!r}, beside people's names in {owner!r}: give their column a "
            "name of its own"
        )
    names = names_in(rows, owner)
    whose = list(dict.fromkeys(names))
    levels = dict(zip(whose, ledger.levels_of(whose), strict=True))
    level = pd.Series([levels[name] for name in names], index=rows.index, dtype=object)
    takes_part = level.notna()
    if not takes_part.any():
        raise InputError(
            f"nobody in the table has a level in the ledger {ledger}: people choose one first, or theirs is "
            "entered from a table"
        )
    return rows.assign(**{column: level})[takes_part]


def names_in(rows: pd.DataFrame, owner: str) -> list[str]:
    """Read whose each row is. Raises InputError if there is no such column, or a row says nothing."""
    if owner not in rows.columns:
        raise InputError(f"the table has no column {owner!r}: {nearest(owner, rows.columns)}")
    missing = int(rows[owner].isna().sum())
    if missing:
        raise InputError(
            f"{missing:,} of {len(rows):,} rows have no name in column {owner!r}: take them out, or correct "
            "them"
        )
    return [str(name) for name in as_names(rows[owner])]


def granted_table(path: Path, owner: str, column: str, ledger: Ledger) -> tuple[bytes, str]:
    """Read a table, and write it as it was, but for what :func:`with_levels` does to it.

    Returns: the content of the file, and how many people take part, in words.
    """
    rows = read_table(path, as_text=True)
    found = with_levels(rows, owner, column, ledger)
    before, after = names_in(rows, owner), names_in(found, owner)
    told = (
        f"{len(set(after)):,} of {len(set(before)):,} people take part, with {len(after):,} of "
        f"{len(before):,} rows"
    )
    return _content(found, path), told


def _content(rows: pd.DataFrame, source: Path) -> bytes:
    """Write a table down in the form of the file that it was read from."""
    if is_csv(source):
        with open_raw(source) as stream:
            separator = separator_of(stream)
        return str(rows.to_csv(index=False, sep=separator)).encode()
    content = io.BytesIO()
    rows.to_parquet(content, index=False)
    return content.getvalue()
