"""The tables of an evaluation, checked as they enter: nothing is compared with itself or silently misread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import listed, nearest, shown
from collegium.data.cells import Cells
from collegium.data.column_types import TEXT as OF_TEXT
from collegium.data.column_types import kind_of, typed_cells
from collegium.data.schema import Schema
from collegium.data.schema_arrays import n_rows, series_of, values_of
from collegium.data.schema_column import TEXT, Column
from collegium.errors import InputError
from collegium.evaluation.synthetic_learning import MOST_TRAINING
from collegium.evaluation.synthetic_marginals import Measured
from collegium.evaluation.synthetic_quality import PUBLIC, REAL, SYNTHETIC

Codes = NDArray[np.int64]

LEAST_HELD_OUT = 50
_HANDFUL = 5
_MOST_SHARED = 0.5  # of the held-out records
IN_WORDS = {
    SYNTHETIC: "the synthetic table",
    "held_out": "held_out",
    REAL: "real",
    PUBLIC: "public",
}


def check_tables(tables: Mapping[str, Any], held_out: Any) -> None:
    """Refuse tables that are empty, too small, or given twice."""
    for name, table in tables.items():
        if table is held_out:
            raise InputError(
                f"{IN_WORDS[name]} is the same table as held_out: hold out records that took no part in it"
            )
        if n_rows(table) == 0:
            raise InputError(f"{IN_WORDS[name]} has no rows: there is nothing to judge")
    if n_rows(held_out) < LEAST_HELD_OUT:
        raise InputError(
            f"held_out has {n_rows(held_out):,} rows, and at least {LEAST_HELD_OUT} are needed: hold out more"
        )


def check_names(schema: Schema, target: str | None, by: str | None, held_out: Any) -> None:
    """Refuse names of columns that are not there."""
    names = [name for name, column in schema.items() if column.kind != TEXT]
    if target is not None and target not in names:
        raise InputError(
            f"target must be a column of the schema, and not text, got {shown(target)}: "
            f"{nearest(str(target), names)}"
        )
    if by is not None and by not in names:
        if not isinstance(by, str):
            raise InputError(f"by must be the name of a column, got {shown(by)}")
        if by in schema:
            raise InputError(f"by must be a column with cells, got {by!r}, which is free text")
        series_of(held_out, by)  # which says what there is


def with_missing(schema: Schema) -> Schema:
    """Give each column a cell for what is missing, so that what cannot be read is never taken for a value."""
    columns = {
        name: column if column.missing or column.kind == TEXT else replace(column, missing=True)
        for name, column in schema.items()
    }
    return Schema(columns, schema.rows_per_owner)


def cells_of(schema: Schema, held_out: Any) -> Cells:
    """Place cells, at quantiles of the held-out records where the schema has no bins."""
    try:
        edges = Cells(_as_it_stands(schema, held_out), held_out).edges
        return Cells.with_edges(schema, edges)
    except InputError as error:
        raise InputError(f"held_out: {error}") from None


def arrays_of(cells: Cells, table: Any, name: str) -> dict[str, NDArray[Any]]:
    """Read a table; messages say which one."""
    try:
        arrays = _as_it_stands(cells.schema, table).arrays(table, list(cells.names))
    except InputError as error:
        raise InputError(f"{IN_WORDS[name]}: {error}") from None
    for column, values in arrays.items():
        absent = np.isnan(values) if values.dtype.kind == "f" else values < 0
        if name != SYNTHETIC and absent.all() and column in cells.schema.columns:
            given = series_of(table, column).dropna()
            if len(given):
                raise InputError(
                    f"{IN_WORDS[name]}: the schema reads no value of column {column!r}, such as "
                    f"{shown(given.iloc[0])}: give the table's own schema, which says how it is written"
                )
    return arrays


def _as_it_stands(schema: Schema, table: Any) -> Schema:
    """Read numbers and dates that a table has as such, or as our own tables write them."""
    columns = dict(schema.columns)
    for name, column in schema.items():
        if column.written is None:
            continue
        series = series_of(table, name)
        given = series[series.notna().to_numpy()]
        plain = replace(column, written=None)
        if not len(given):
            continue
        try:
            typed = kind_of(given.dtype) != OF_TEXT or bool(typed_cells(given))
            read = np.nan if typed else readable_share(given, name, column)
            other = readable_share(given, name, plain)
        except InputError:
            typed, read, other = True, 0.0, 1.0
        if typed or other > read:
            columns[name] = plain
    return Schema(columns, schema.rows_per_owner)


def readable_share(series: pd.Series, name: str, column: Column) -> float:
    """Share of a column's cells that are read as values."""
    values = values_of(series, name, column)
    return float((~np.isnan(values) if values.dtype.kind == "f" else values >= 0).mean())


def refuse_equal(codes: Mapping[str, Codes], held_out: Codes) -> None:
    """Refuse a copy of the held-out records: a score of it would say nothing."""
    ordered = _ordered(held_out)
    for name, found in codes.items():
        if len(found) == len(held_out) and np.array_equal(_ordered(found), ordered):
            raise InputError(
                f"{IN_WORDS[name]} has the same rows as held_out: hold out records that took no part in it"
            )


def _ordered(codes: Codes) -> Codes:
    return codes[np.lexsort(codes.T)]


def shared_row_notes(
    arrays: Mapping[str, Mapping[str, NDArray[Any]]], held_out: Mapping[str, NDArray[Any]]
) -> list[str]:
    """Say how many held-out records stand in a table, too, where that is more than chance explains.

    Chance: how often a record of one half of the held-out ones stands in the other half, for as many rows.
    """
    held = _row_hashes(held_out)
    m, half = len(held), len(held) // 2
    by_chance = float(np.isin(held[:half], held[half:]).mean())
    notes = []
    for name, table in arrays.items():
        rows = _row_hashes(table)
        n_shared = int(np.isin(held, rows).sum())
        expected = min(1.0, by_chance * max(1.0, len(rows) / (m - half))) * m
        if n_shared <= _HANDFUL + 2 * expected:
            continue
        said = f"{n_shared:,} of {m:,} held-out records stand in {IN_WORDS[name]}, too"
        if n_shared > _MOST_SHARED * m:
            raise InputError(f"{said}: hold out records that took no part in it")
        notes.append(
            f"{said}; about {round(expected):,} would by chance. Those that took part flatter it."
        )
    return notes


def _row_hashes(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint64]:
    return np.asarray(
        pd.util.hash_pandas_object(pd.DataFrame(dict(arrays)), index=False), dtype=np.uint64
    )


def unreadable_notes(cells: Cells, codes: Codes, synthetic: Any) -> list[str]:
    """Say how many synthetic cells hold something that the schema does not know; refuse where all do."""
    notes = []
    for place, column in enumerate(cells.columns):
        lost = codes[:, place] == column.n_values
        if not lost.any():
            continue
        series = series_of(synthetic, column.name)
        written = lost & ~pd.isna(series).to_numpy()
        n = int(written.sum())
        if not n:
            continue
        example = shown(series[written].iloc[0])
        if lost.all():
            raise InputError(
                f"the schema knows no value of column {column.name!r} of the synthetic table, such as "
                f"{example}: write it as the schema does ({listed(column.labels[:-1], 5)})"
            )
        notes.append(
            f"{n:,} of {len(codes):,} values of {column.name} in the synthetic table are none that the "
            f"schema knows, such as {example}, and count as missing."
        )
    return notes


def unknown_column_notes(schema: Schema, synthetic: Any) -> list[str]:
    """Name columns that were not judged."""
    columns = getattr(synthetic, "columns", None)
    names = synthetic.column_names if hasattr(synthetic, "column_names") else columns
    more = [str(name) for name in (() if names is None else names) if name not in schema]
    if not more:
        return []
    return [
        f"Columns of the synthetic table that the schema lacks were not judged: {listed(more)}."
    ]


def sampling_notes(measured: Measured, codes: Mapping[str, Codes]) -> list[str]:
    """Say what was measured, or learnt from, in part."""
    notes = [
        f"{len(order):,} of all {n_all:,} marginals of {ways} columns were measured, drawn by lot."
        for ways, (order, n_all) in enumerate(
            zip(measured.cliques, measured.n_all, strict=True), start=1
        )
        if len(order) < n_all
    ]
    large = [IN_WORDS[name] for name, found in codes.items() if len(found) > MOST_TRAINING]
    if large:
        notes.append(f"Of {listed(large)}, models learnt from {MOST_TRAINING:,} rows drawn by lot.")
    return notes
