"""Whose rows are whose: a table and what was given beside it become rows of people who granted something."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collegium.budgets import Budgets, Policy, as_budgets
from collegium.data.schema import Schema
from collegium.data.schema_arrays import n_rows, series_of, take_frame_rows
from collegium.errors import InputError
from collegium.weighted_sums.tables import InMemory, Table, paths_of
from collegium.zero_and_public_budgets import has_budget, subset


def in_files(
    files: Sequence[Path], budgets: Any, privacy: str | None, owner: str | None, schema: Schema
) -> Table:
    """A table in files, which say themselves what each row's owner granted."""
    from collegium.weighted_sums.streamed import InParquet  # pyarrow's readers come with it

    if not isinstance(budgets, Policy) or privacy is None:
        raise InputError(
            "for tables in files, budgets must be a Policy, and privacy the column with each row's "
            "level: give both, or read the files and give a table"
        )
    return InParquet(files, budgets, privacy, owner, schema)


def table_of(
    frame: Any,
    budgets: Any,
    schema: Schema,
    *,
    privacy: str | None = None,
    owner: str | None = None,
) -> Table:
    """A table in memory, beside its budgets; or in files, which have a column of levels."""
    files = paths_of(frame)
    return (
        in_files(files, budgets, privacy, owner, schema)
        if files
        else InMemory(frame, budgets, schema)
    )


def who_granted(
    frame: Any, budgets: Any, privacy: str | None, owner: str | None, delta: float
) -> tuple[Budgets, Any]:
    """Who granted what, and the rows of those who granted anything."""
    count = n_rows(frame)
    if isinstance(budgets, Policy):
        if privacy is None:
            raise InputError(
                "budgets is a Policy, but the column with each row's level is missing: give "
                "privacy='COLUMN', or policy.assign(levels) as budgets"
            )
        owners = None if owner is None else series_of(frame, owner)
        budgets = budgets.assign(series_of(frame, privacy), owners)
    elif privacy is not None or owner is not None:
        raise InputError(
            "privacy and owner are for budgets that are a Policy: give a Policy, or leave them out"
        )
    granted = as_budgets(budgets, delta, count)
    if len(granted) != count:
        raise InputError(f"{count:,} rows, but {len(granted):,} budgets: give one for each row")
    rows = has_budget(granted)
    if len(rows) < count:
        return subset(granted, rows), take_frame_rows(frame, rows)
    return granted, frame
