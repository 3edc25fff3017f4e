"""Awkward values, which an engine must read and add up as it is done here: asked whenever a session opens.

Engines differ in what they call infinite, in whether NaN equals itself, in how they round halves and in what
they make of blanks; and so may their next version. Each value goes through the very expressions that
questions are made of, and one that comes back different ends the session before anybody pays for it.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from collegium.data.engines.columns import InTable, Number, OfExpressions, real
from collegium.data.engines.connections import Connection
from collegium.data.schema import Schema
from collegium.data.schema_arrays import values_of
from collegium.errors import InputError
from collegium.weighted_sums.reading import ARRAYS, Grid, rounded
from collegium.weighted_sums.weighing import Weighing

_WIDE = {"kind": "number", "bounds": [-1e6, 1e6]}
_WHOLE = {"kind": "whole", "bounds": [-(2**53), 2**53]}
_FEW = {"kind": "whole", "bounds": [0, 20]}
_BINS = {"kind": "number", "bounds": [0, 1], "bins": [0, 0.1, 0.3, 1]}
_NAMES = {"kind": "category", "categories": ["a", "A ", "o'b", "\\n", "é"]}
_CODES = {"kind": "category", "categories": ["0", "1", "-7"]}
_TRUE = {"kind": "category", "categories": ["True", "False"]}
_FLAG = {"kind": "flag"}
_DAYS = {"kind": "date", "bounds": ["1960-01-01", "2024-12-31"]}
_NAN, _INF = float("nan"), float("inf")

# What the schema says; the type in the database, and the values.
VALUES: tuple[tuple[dict[str, Any], str, tuple[Any, ...]], ...] = (
    (_WIDE, "float64", (None, _NAN, _INF, -_INF, -0.0, 5e-324, 0.1, 1.7976931348623157e308)),
    (_WIDE, "float32", (_NAN, -_INF, 0.1)),
    (_WIDE, "decimal(12, 2)", (None, Decimal("0.10"), Decimal("-1234567890.12"))),
    (_WIDE, "boolean", (None, True, False)),
    (_WHOLE, "int64", (None, 2**53 + 1, -(2**63))),
    (_FEW, "float64", (0.5, 1.5, 0.49999999999999994, -0.5, _NAN, 1e300)),
    (_BINS, "float64", (None, 0.1, 0.30000000000000004, 0.29999999999999999, 1.0, _NAN)),
    (_NAMES, "string", (None, "a", "A", "A ", "", "o'b", "\\n", "\n", "é", "e\u0301")),
    (_CODES, "int64", (None, 0, -7, 2)),
    (_CODES, "float64", (-0.0, 1.5, _NAN, _INF)),
    (_TRUE, "string", (None, "TRUE", "true", "tRue")),
    (_TRUE, "boolean", (None, True, False)),
    (_FLAG, "string", (None, "", " Yes", "NO\t", "SÍ", "on", "y\u00a0", "01", "1.00", "1e0", "-0")),
    (_FLAG, "int64", (None, 0, 1, 2)),
    (_FLAG, "float64", (-0.0, 0.5, _NAN)),
    (_FLAG, "boolean", (None, True, False)),
    (_DAYS, "date", (None, date(1959, 12, 31), date(1969, 12, 31), date(9999, 12, 31))),
    (_DAYS, "timestamp", (datetime(1969, 12, 31, 23, 59, 59), datetime(1, 1, 1))),
    (_DAYS, "timestamp('UTC')", ("2000-02-28 23:30:00-05:00", "2000-03-01 00:30:00+05:30")),
)
# At which coordinates, caps and steps are computed: of x within [0, 7], which no double ends exactly.
_POINTS = (0.1, 1 / 3, 3.5, 6.999999999999999, 5e-324)
_HALVES = (0.5, 2.5, -0.5, -2.5)
_CAPS = ((1_048_576, 1), (699_051, 7), (3, 1_000_000))


def refuse_other_answers(engine: Connection) -> None:
    """Refuse an engine that reads, rounds or adds up a value differently: InputError, with the value."""
    for name, (what, found, expected) in {
        **_values(engine),
        **_steps(engine),
        **_sums(engine),
    }.items():
        if found != expected:
            raise InputError(
                f"{engine.name} makes {found!r} of {what}, and here it is {expected!r} ({name}): answers "
                "would not be the same; use another version of it, or read the table into memory"
            )


Compared = dict[str, tuple[str, Any, Any]]
"""By name: what was given, what the engine makes of it, and what is made of it here."""


def _one_row(**columns: Any) -> Any:
    import ibis

    return ibis.literal(1).name("one").as_table().select(**columns)


class _Row(dict[str, Any]):
    """Expressions of one row, in place of a table's columns."""

    def schema(self) -> dict[str, Any]:
        """Their types."""
        return {name: one.type() for name, one in self.items()}


def _values(engine: Connection) -> Compared:
    """How values are read."""
    flat = [
        (f"v{place}_{number}", said, kind, value)
        for place, (said, kind, values) in enumerate(VALUES)
        for number, value in enumerate(values)
    ]
    table = _Row({name: _literal(value, kind) for name, _, kind, value in flat})
    schema = Schema({name: said for name, said, _, _ in flat})
    columns = InTable(table, schema)
    read, here = {}, {}
    for name, said, kind, value in flat:
        coded = said["kind"] in ("category", "flag")
        read[name] = columns.code(name) if coded else columns.number(name).expression
        cell = values_of(_series(value, kind), name, schema[name])
        here[name] = _missing(cell[0])
        if said.get("bins"):
            read[f"{name}b"] = columns.key(name).expression
            here[f"{name}b"] = _missing(schema[name].codes(cell)[0])
    (row,) = engine.fetch(_one_row(**read))
    about = {name: f"the {kind} {value!r}" for name, _, kind, value in flat}
    return {
        f"value {name}": (about[name.rstrip("b")], _missing(found), here[name])
        for name, found in zip(read, row, strict=True)
    }


def _steps(engine: Connection) -> Compared:
    """How numbers become steps."""
    algebra = OfExpressions()
    grid = Grid(0.0, 7 / 1023, 1024)
    asked: dict[str, Number] = {}
    here: dict[str, Any] = {}
    about: dict[str, float] = {}
    for place, point in enumerate(_POINTS):
        for number, (most, rows) in enumerate(_CAPS):
            name = f"step{place}_{number}"
            x, n, k = Number(real(point)), Number(real(most)), Number(real(rows))
            asked[name], about[name] = _step(x, n, k, algebra), point
            here[name] = _step(np.array(point), np.array(float(most)), np.array(rows), ARRAYS)
        name = f"grid{place}"
        asked[name], about[name] = grid.place(Number(real(point)), algebra), point
        here[name] = grid.place(np.array(point))
    for place, half in enumerate(_HALVES):
        name = f"half{place}"
        asked[name], about[name] = rounded(Number(real(half)), algebra), half
        here[name] = rounded(np.array(half))
    (row,) = engine.fetch(_one_row(**{name: one.expression for name, one in asked.items()}))
    return {
        name: (f"the number {about[name]!r}", found, float(here[name]))
        for name, found in zip(asked, row, strict=True)
    }


def _step(x: Any, most: Any, rows: Any, algebra: Any) -> Any:
    weighing = Weighing(np.array([1]), 1.0, False, 2)
    centred = algebra.within(algebra.where(x < 1e-200, 0.0, x) / 7.0 * 2.0 - 1.0, -1.0, 1.0)
    u, v = (1.0 + centred) / 2.0, (1.0 - centred) / 2.0
    cap = weighing.cap_of(most, rows, 3, algebra)
    return rounded(cap * (0.9746794344808963 * u * v), algebra)


def _sums(engine: Connection) -> Compared:
    """How whole numbers are added up, told apart and counted."""
    import ibis

    rows = (("a", 2**61), ("a", 2**61 - 1), ("b", -7), (None, 1))
    tables = [
        _one_row(name=_literal(name, "string"), steps=ibis.literal(steps, type="int64"))
        for name, steps in rows
    ]
    table = tables[0].union(*tables[1:])
    counted = table.mutate(rows=table.count().over(ibis.window(group_by=table.name)))
    found = counted.group_by("name").agg(
        total=counted.steps.sum(),
        apart=counted.steps.nunique(),
        most=counted.rows.max(),
        n=counted.count(),
    )
    answers = {row[0]: tuple(map(int, row[1:])) for row in engine.fetch(found)}
    here = {"a": (2**62 - 1, 2, 2, 2), "b": (-7, 1, 1, 1), None: (1, 1, 1, 1)}
    return {"sum": ("sums of whole numbers by group", answers, here)}


def _literal(value: Any, kind: str) -> Any:
    import ibis

    if value is None:  # not a literal, which is compared otherwise
        return ibis.cases(
            (ibis.literal(1) == ibis.literal(1), ibis.null(kind)), else_=ibis.null(kind)
        )
    if kind == "string":
        return ibis.literal(value)
    if kind == "boolean":
        return ibis.literal(value)
    if kind == "int64":
        return ibis.literal(value, type="int64")
    return ibis.literal(repr(value) if isinstance(value, float) else str(value)).cast(kind)


def _series(value: Any, kind: str) -> pd.Series:
    if value is None:
        return pd.Series([None], dtype=object)
    if kind.startswith("timestamp('"):
        return pd.Series([pd.Timestamp(value).tz_convert("UTC")])
    if kind in ("date", "timestamp"):
        return pd.Series([np.datetime64(value, "s")])
    plain = kind if kind in ("float64", "float32", "int64") else None
    return pd.Series([value], dtype=plain)


def _missing(value: Any) -> float | int | None:
    """What is missing is None, here as in a database."""
    if value is None or value != value or (isinstance(value, np.integer) and value == -1):
        return None
    return float(value)
