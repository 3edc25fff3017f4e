"""The quality report of SDMetrics, an optional extra, beside the one that columns without relations get.

SDMetrics gives every table a score from 0 to 1, and no line to compare it with. Held-out records whose
columns were shuffled, each by itself, teach nothing, and score high all the same: that score stands beside.

References
----------
SDMetrics 0.32, DataCebo, Inc.: the report's properties "Column Shapes" (single columns) and "Column Pair
Trends" (pairs).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from collegium.checks import check_is, check_whole
from collegium.data.schema import Schema
from collegium.data.schema_arrays import n_rows
from collegium.data.schema_column import CATEGORY, DATE, FLAG, TEXT
from collegium.errors import InputError

_TYPES = {CATEGORY: "categorical", FLAG: "boolean", DATE: "datetime"}
_TABLE = "table"


@dataclass(frozen=True)
class SDMetricsScores:
    """Scores of SDMetrics, from 0 to 1.

    ``overall``, ``columns``, ``pairs``: of the synthetic table.
    ``overall_without_relations``, ``pairs_without_relations``: of held-out records whose columns were
    shuffled, each by itself: a table whose score is not above this one teaches nothing.
    """

    overall: float
    columns: float
    pairs: float
    overall_without_relations: float
    pairs_without_relations: float


def sdmetrics_report(
    synthetic: Any, held_out: Any, *, schema: Schema, seed: int = 0
) -> SDMetricsScores:
    """Score a synthetic table with SDMetrics, beside columns that have nothing to do with one another.

    Parameters
    ----------
    synthetic, held_out : table
        As in :func:`~collegium.evaluation.synthetic.evaluate_synthetic`, which says what looking at held-out
        records costs.
    schema : Schema
        How both are read; text is left out.
    seed : int, default=0
        Of the shuffling.

    Raises
    ------
    InputError
        If SDMetrics is not installed, or a table is empty or lacks a column.
    """
    check_is("schema", schema, Schema, "read one with collegium.Schema.read, or draft one")
    check_whole("seed", seed, least=0)
    for name, table in (("the synthetic table", synthetic), ("held_out", held_out)):
        if not n_rows(table):
            raise InputError(f"{name} has no rows: there is nothing to judge")
    try:
        reports = import_module("sdmetrics.reports")
    except ImportError:
        raise InputError(
            "SDMetrics is not installed: pip install 'collegium[sdmetrics]' (it needs pandas 2)"
        ) from None
    real, made = _frame(schema, held_out), _frame(schema, synthetic)
    rng = np.random.default_rng(seed)
    shuffled = pd.DataFrame({name: rng.permutation(real[name].array) for name in real})
    own, without = (_scores(reports, schema, real, table) for table in (made, shuffled))
    return SDMetricsScores(*own, without[0], without[2])


def _scores(
    reports: Any, schema: Schema, real: pd.DataFrame, made: pd.DataFrame
) -> tuple[float, float, float]:
    report = reports.QualityReport()
    columns: dict[str, dict[str, str]] = {}
    for name in real:
        columns[name] = {"sdtype": _TYPES.get(schema[name].kind, "numerical")}
        if schema[name].kind == DATE:
            columns[name]["datetime_format"] = "%Y-%m-%d"
    metadata = {"tables": {_TABLE: {"columns": columns}}, "relationships": []}
    report.generate({_TABLE: real}, {_TABLE: made}, metadata, verbose=False)
    found = report.get_properties().set_index("Property")["Score"]
    return (
        float(report.get_score()),
        float(found["Column Shapes"]),
        float(found["Column Pair Trends"]),
    )


def _frame(schema: Schema, table: Any) -> pd.DataFrame:
    """Read a table as the schema says: numbers within their bounds, and only categories that it knows."""
    names = [name for name, column in schema.items() if column.kind != TEXT]
    columns = {}
    for name, values in schema.arrays(table, names).items():
        column = schema[name]
        if column.kind == CATEGORY:
            columns[name] = pd.Series(np.array([*column.keys, None], dtype=object)[values])
        elif column.kind == FLAG:
            columns[name] = pd.Series(np.array([False, True, None], dtype=object)[values])
        elif column.kind == DATE:
            columns[name] = pd.Series(pd.to_datetime(values, unit="D", origin="unix"))
        else:
            columns[name] = pd.Series(values)
    return pd.DataFrame(columns)
