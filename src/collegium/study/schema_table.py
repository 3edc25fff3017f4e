"""Tables of studies that read them by a public schema: the private one, and public ones beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from collegium.budgets import Budgets, Policy
from collegium.data.engines.sources import Source, header_at
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
    ``may_stream``: whether a table in Parquet files or a database may stay where it lies instead.
    """
    source = config.source("data.private")
    assert source is not None, "checked with the settings"
    granted = GrantColumns(
        config.privacy.column,
        config.policy(),
        None,
        config.privacy.delta,
        config.data.owner,
        _CALLED,
    )
    rows = read_rows(
        source,
        needs,
        schema,
        granted,
        form_of(config),
        observer,
        may_stream=may_stream,
        fingerprinted=True,
    )
    if isinstance(rows.budgets, Policy):
        return rows
    assert isinstance(rows.budgets, Budgets)
    some = has_budget(rows.budgets)
    if len(some) == len(rows.budgets):
        return rows
    left = take_frame_rows(rows.frame, some)
    return Rows(left, subset(rows.budgets, some), fingerprint=rows.fingerprint)


def read_public_rows(
    config: StudyConfig, source: Source, schema: Schema, needs: Sequence[str]
) -> Any:
    """Read a table of records that nobody's budget protects."""
    return read_unowned(source, needs, schema, form_of(config))


def known_people(config: StudyConfig, source: Source) -> NDArray[Any] | None:
    """Read whose records a table of public records holds; None where it does not say."""
    owner, form = config.data.owner, form_of(config)
    columns = header_at(source, form.separator).columns
    if owner is None or columns is None or owner not in columns:
        return None
    names = series_of(read_column(source, owner, form), owner)
    return as_names(names[names.notna()])


def form_of(config: StudyConfig) -> FormOfCsv:
    """How CSV files of a study are written."""
    return FormOfCsv(config.data.separator, config.data.decimal or ".")
