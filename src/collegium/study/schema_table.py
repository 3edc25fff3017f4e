"""Tables of studies that read them by a public schema: the private one, and public ones beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from collegium.budgets import Budgets, Policy
from collegium.data.headers import header_of
from collegium.data.schema import Schema
from collegium.data.schema_arrays import series_of, take_frame_rows
from collegium.names import as_names
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.query_table import (
    FormOfCsv,
    GrantColumns,
    Names,
    Rows,
    read_column,
    read_rows,
    read_unowned,
)
from collegium.zero_and_public_budgets import has_budget, subset

_CALLED = Names(
    owner="data.owner =", privacy="privacy.column", levels="privacy.levels = { high = 1, low = 3 }"
)


def read_private_rows(
    config: StudyConfig,
    schema: Schema,
    needs: Sequence[str],
    observer: Observer,
    *,
    may_stream: bool,
) -> Rows:
    """Read the rows of those who granted anything.

    ``needs``: columns that are looked at.
    ``may_stream``: whether Parquet files may be read in batches instead.
    """
    path = config.path("data.private")
    assert path is not None, "checked with the settings"
    granted = GrantColumns(
        config.privacy.column,
        config.policy(),
        None,
        config.privacy.delta,
        config.data.owner,
        _CALLED,
    )
    rows = read_rows(path, needs, schema, granted, form_of(config), observer, may_stream=may_stream)
    if isinstance(rows.budgets, Policy):
        return rows
    assert isinstance(rows.budgets, Budgets)
    some = has_budget(rows.budgets)
    if len(some) == len(rows.budgets):
        return rows
    return Rows(take_frame_rows(rows.frame, some), subset(rows.budgets, some))


def read_public_rows(config: StudyConfig, path: Path, schema: Schema, needs: Sequence[str]) -> Any:
    """Read a table of records that nobody's budget protects."""
    return read_unowned(path, needs, schema, form_of(config))


def known_people(config: StudyConfig, path: Path) -> NDArray[Any] | None:
    """Read whose records a table of public records holds; None where it does not say."""
    owner, form = config.data.owner, form_of(config)
    columns = header_of(path, form.separator).columns
    if owner is None or columns is None or owner not in columns:
        return None
    names = series_of(read_column(path, owner, form), owner)
    return as_names(names[names.notna()])


def form_of(config: StudyConfig) -> FormOfCsv:
    """How CSV files of a study are written."""
    return FormOfCsv(config.data.separator, config.data.decimal or ".")
