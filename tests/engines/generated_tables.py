"""Tables, schemas and questions to ask every engine: made of a seed, with awkward values in every column.

A table is an Arrow table with a column of each type and kind that a schema knows. Each awkward value of a
column is in it at least once. :func:`into_duckdb`, :func:`into_postgresql` and :func:`into_spark` put it into
an engine with the engine's own types; :func:`questions` lists what can be asked about it.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collegium import Policy, Schema
from collegium.conditions.conditions import name_text, quoted
from collegium.data.schema_column import CATEGORY, DATE, FLAG, NUMBER, TEXT, WHOLE

EXACT = 2**53
"""The last whole number up to which floats have all."""
LONG = 2**63
UTC = dt.UTC

WARDS = (
    "A", "a", " A", "B ", "", "O'Neil", 'say "x"', "back\\slash", "50 %_", "na\u00efve", "nai\u0308ve",
    "\N{SLIGHTLY SMILING FACE}", "\N{WOMAN}\u200d\N{WOMAN}\u200d\N{GIRL}", "\u00df", "\u0130", "NULL",
    "tab\there", "line\nbreak", "1", "{}:;--/**/",
)  # fmt: skip
NO_WARDS = (
    "C",
    "A ",
    "  A",
    "B",
    " ",
    "ss",
    "i\u0307",
    "null",
    "nan",
    "O''Neil",
    "\\",
    "1.0",
    "'",
    '"',
)
ANSWERS = (
    " Yes", "NO", "ja", "nein", "y", "N", "TRUE", "False", "1", "0", "1.0", "0.0", "oui", "non", "s\u00ed",
    "S\u00cd", "si", "tak", "nie", "\tyes\n",
)  # fmt: skip
ODD_ANSWERS = (
    "maybe", "", " ", "2", "yes!", "-0", "1e0", "01", "+1", " 1 ", "1.5", "s\u0131", "\u017fi", "NaN",
    "\u00a0yes", "no\u2003", "\uff39\uff25\uff33", "si\u0301", "0x1", "1_0", "inf",
    "1d", "1F", "0x1p0", "\uff11", "\u0661", "1e", ".1e1", "1.", "t\u00a0", "\u2028yes", "\x1fno",
)  # fmt: skip
"""Neither yes nor no, or so only to somebody who folds case, strips and reads numbers as Python does."""
TIMES = (
    dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), dt.datetime(1582, 10, 10, 12),
    dt.datetime(1899, 12, 31, 23, 59, 59), dt.datetime(1900, 1, 1), dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    dt.datetime(2000, 2, 29, 23, 59, 59, 999_999), dt.datetime(2024, 2, 29),
    dt.datetime(2024, 3, 31, 1, 30), dt.datetime(2024, 10, 27, 0, 30),
    dt.datetime(2024, 12, 31, 23, 30), dt.datetime(2025, 1, 1, 0, 30), dt.datetime(2100, 2, 28),
)  # fmt: skip
"""Days before Gregory's calendar and before 1970, leap days, ends of the bounds, hours that clocks skip."""
FIRST_DAY, LAST_DAY = "1990-01-01", "2024-12-31"
LEVELS = {"high": 1.0, "average": 2.0, "o'low": 3.0, "none": 0.0, "gift": math.inf}
"""Level to ε; "none" and "gift" are outside: their rows are in no answer."""
ROW = "row"
"""The table's column that numbers its rows, about which nothing can be asked."""


@dataclass(frozen=True)
class Generated:
    """A table with what has to be said about it.

    ``privacy``: the column with each row's level. ``owner``: the column with whose row it is, if any.
    """

    table: pa.Table
    schema: Schema
    policy: Policy
    privacy: str = "level"
    owner: str | None = "person"

    def only(self, *names: str) -> Generated:
        """Keep some columns of the schema; those of levels and owners stay in the table."""
        others = [self.privacy, ROW, *([self.owner] if self.owner else [])]
        kept = {name: self.schema[name] for name in names}
        table = self.table.select([*others, *names])
        return replace(self, table=table, schema=Schema(kept, self.schema.rows_per_owner))


def generated(
    seed: int,
    n_owners: int = 300,
    *,
    owner: str | None = "text",
    rows_per_owner: int = 1,
    most_rows: int = 12,
) -> Generated:
    """Make a table of some rows of each owner.

    ``owner``: the type of owners' names, ``"text"`` or ``"whole"``; None: each row is somebody else's.
    ``rows_per_owner``: of the schema.
    ``most_rows``: of most owners; three of them have 15 times as many.
    """
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, most_rows + 1, n_owners) if owner else np.ones(n_owners, dtype=np.int64)
    if owner:
        rows[rng.permutation(n_owners)[:3]] *= 15
    n = int(rows.sum())
    of = rng.permutation(np.repeat(np.arange(n_owners), rows))
    levels = np.array(list(LEVELS))[rng.choice(5, n_owners, p=[0.48, 0.33, 0.09, 0.06, 0.04])]
    columns: dict[str, pa.Array] = {
        ROW: pa.array(np.arange(n), pa.int32()),
        "level": pa.array(levels[of].tolist(), pa.string()),
    }
    if owner:
        columns["person"] = _owners(rng, n_owners, owner).take(pa.array(of))
    said: dict[str, dict[str, Any]] = {}
    for name, (cells, one) in {**_numbers(rng, n), **_words(rng, n), **_dates(rng, n)}.items():
        columns[name], said[name] = cells, one
    schema = Schema(said, rows_per_owner)
    policy = Policy(LEVELS, public=["gift"])
    return Generated(pa.table(columns), schema, policy, owner="person" if owner else None)


_Columns = dict[str, tuple[pa.Array, dict[str, Any]]]


def _owners(rng: np.random.Generator, n: int, kind: str) -> pa.Array:
    numbers = rng.permutation(10 * n)[:n] - 5 * n
    if kind == "whole":
        return pa.array(numbers, pa.int64())
    odd = ("O'Hara {}", ' "{}"', "{} \\ ", "\u00c5sa \N{SLIGHTLY SMILING FACE} {}", "{}", "0{}")
    return pa.array([odd[place % 6].format(number) for place, number in enumerate(numbers)])


def _cells(
    rng: np.random.Generator, kind: pa.DataType, usual: Sequence[Any], awkward: Sequence[Any]
) -> pa.Array:
    """Mix usual cells with awkward ones, each of these at least once, and with missing ones."""
    n = len(usual)
    cells = list(usual)
    places = rng.permutation(n).tolist()
    n_odd = max(n // 5, len(awkward))
    if n_odd + n // 10 > n:
        raise ValueError(f"{n} rows are too few for {len(awkward)} awkward values")
    for place, value in zip(places[:n_odd], cycle(awkward)):
        cells[place] = value
    for place in places[n_odd : n_odd + n // 10]:
        cells[place] = None
    return pa.array(cells, kind)


def _around(*values: float) -> list[float]:
    """Each value, and its neighbours among floats."""
    return [
        one
        for v in values
        for one in (v, math.nextafter(v, -math.inf), math.nextafter(v, math.inf))
    ]


def _numbers(rng: np.random.Generator, n: int) -> _Columns:
    ends = [
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        0.0,
        5e-324,
        -5e-324,
        2.2e-308,
        1e308,
        -1e308,
        1.7976931348623157e308,
    ]
    halves = [k * 0.5 + 0.25 for k in range(-21, 26, 3)]
    wholes = [EXACT + 1, -EXACT - 1, EXACT, -EXACT, LONG - 1, -LONG, 0]
    made: _Columns = {}
    made["score"] = (
        _cells(
            rng, pa.float64(), rng.normal(0, 6, n).tolist(), [*ends, *_around(-10, 12.5), *halves]
        ),
        {"kind": NUMBER, "bounds": [-10, 12.5], "step": 0.5, "bins": [-10, -2.5, 0, 0.1, 12.5]},
    )
    made["income"] = (
        _cells(rng, pa.float64(), rng.gamma(2, 150, n).tolist(), [*ends, *_around(0.1, 1000.3)]),
        {"kind": NUMBER, "bounds": [0.1, 1000.3], "mean": 290.0, "sd": 200.0, "known_from": 5000},
    )
    made["weight"] = (
        _cells(
            rng,
            pa.float32(),
            rng.normal(70, 20, n).astype(np.float32).tolist(),
            [
                math.nan,
                math.inf,
                -math.inf,
                -0.0,
                1e-45,
                3.4028234663852886e38,
                0.1,
                0.05,
                100,
                70.25,
            ],
        ),
        {"kind": NUMBER, "bounds": [0, 100], "step": 0.1},
    )
    made["price"] = (
        _cells(
            rng,
            pa.decimal128(12, 2),
            [Decimal(one) / 100 for one in rng.integers(-2000, 60_000, n).tolist()],
            [
                Decimal(one)
                for one in (
                    "0.00",
                    "-0.01",
                    "500.55",
                    "500.56",
                    "9999999999.99",
                    "-9999999999.99",
                    "0.25",
                    "0.75",
                )
            ],
        ),
        {"kind": NUMBER, "bounds": [0, 500.55], "step": 0.5, "missing": False},
    )
    made["age"] = (
        _cells(
            rng,
            pa.int32(),
            rng.integers(0, 111, n).tolist(),
            [-1, 0, 18, 40, 64, 65, 110, 111, 2**31 - 1, -(2**31)],
        ),
        {"kind": WHOLE, "bounds": [0, 110], "bins": [0, 18, 40, 65, 110], "missing": False},
    )
    made["stays"] = (
        _cells(rng, pa.int16(), rng.poisson(3, n).tolist(), [-1, 0, 12, 13, 2**15 - 1, -(2**15)]),
        {"kind": WHOLE, "bounds": [0, 12], "mean": 3.0, "sd": 1.7},
    )
    made["balance"] = (
        _cells(
            rng,
            pa.int64(),
            rng.integers(-1500, 1500, n).tolist(),
            [*wholes, 1000, 1001, -1000, -1001],
        ),
        {"kind": WHOLE, "bounds": [-1000, 1000]},
    )
    made["serial"] = (
        _cells(rng, pa.int64(), rng.integers(-EXACT, EXACT, n).tolist(), wholes),
        {"kind": WHOLE, "bounds": [-EXACT, EXACT], "step": 2**40},
    )
    made["grade"] = (
        _cells(
            rng,
            pa.float64(),
            (rng.integers(-8, 22, n) / 2).tolist(),
            [*ends, *_around(0.5, 1.5, 2.5, -0.5, -1.5), 2.0**52 + 0.5, 9.5, -3.5, -3.6],
        ),
        {"kind": WHOLE, "bounds": [-3, 9]},
    )
    made["void"] = (pa.nulls(n, pa.float64()), {"kind": NUMBER, "bounds": [0, 1]})
    made["order"] = (
        _cells(rng, pa.int8(), rng.integers(0, 100, n).tolist(), [-128, 127, 0]),
        {"kind": WHOLE, "bounds": [1, 90], "bins": [1, 31, 61, 90]},
    )
    made['day\'s "dose" \u00e4'] = (
        _cells(rng, pa.float64(), rng.random(n).tolist(), ends),
        {"kind": NUMBER, "bounds": [-0.5, 0.75], "step": 0.05},
    )
    return made


def _words(rng: np.random.Generator, n: int) -> _Columns:
    def some(values: Sequence[Any]) -> list[Any]:
        return [values[place] for place in rng.integers(0, len(values), n)]

    made: _Columns = {}
    numbers = [str(one) for one in (1, 2, 10, -3, 0, EXACT - 1)]
    made["insured"] = (
        _cells(rng, pa.bool_(), some([True, True, False]), [True, False]),
        {"kind": FLAG, "mean": 0.7},
    )
    made["smokes"] = (
        _cells(rng, pa.int8(), some([0, 0, 1]), [2, -1, 0, 1, 127]),
        {"kind": FLAG, "missing": False},
    )
    made["treated"] = (
        _cells(
            rng,
            pa.float64(),
            some([0.0, 1.0]),
            [-0.0, 0.5, math.nan, math.inf, -math.inf, 1.0000000000000002, 5e-324],
        ),
        {"kind": FLAG},
    )
    made["consents"] = (
        _cells(rng, pa.string(), some(ANSWERS), [*ANSWERS, *ODD_ANSWERS]),
        {"kind": FLAG},
    )
    made["ward"] = (
        _cells(rng, pa.string(), some(WARDS), [*WARDS, *NO_WARDS]),
        {"kind": CATEGORY, "categories": list(WARDS)},
    )
    made["sex"] = (
        _cells(rng, pa.string(), some(["F", "M"]), ["f", "M ", "", "x"]),
        {"kind": CATEGORY, "categories": ["F", "M"], "shares": {"F": 0.51}, "missing": False},
    )
    made["code"] = (
        _cells(
            rng,
            pa.int64(),
            some([1, 2, 10, -3]),
            [0, 3, EXACT - 1, EXACT, EXACT + 1, LONG - 1, -LONG],
        ),
        {"kind": CATEGORY, "categories": numbers},
    )
    made["code in floats"] = (
        _cells(
            rng,
            pa.float64(),
            some([1.0, 2.0, 10.0, -3.0]),
            [
                0.0,
                -0.0,
                1.5,
                math.nan,
                math.inf,
                EXACT - 1.0,
                EXACT * 1.0,
                1.0000000000000002,
                1e308,
            ],
        ),
        {"kind": CATEGORY, "categories": numbers},
    )
    made["code in words"] = (
        _cells(
            rng,
            pa.string(),
            some(["1", "2", "10", "-3"]),
            [
                "01",
                " 2",
                "2.0",
                "1e1",
                "+1",
                "-0",
                "",
                "x",
                "1,0",
                str(EXACT - 1),
                str(EXACT),
                "9007199254740993",
                "2d",
                "0x2",
                "1_0",
                "\uff12",
                "nan",
            ],
        ),
        {"kind": CATEGORY, "categories": numbers},
    )
    made["agreed"] = (
        _cells(rng, pa.bool_(), some([True, False]), [True, False]),
        {"kind": CATEGORY, "categories": ["True", "False"]},
    )
    made["agreed in words"] = (
        _cells(
            rng,
            pa.string(),
            some(["True", "False"]),
            ["TRUE", "true", "FALSE", "false", "tRUE", " True", "1", "yes", ""],
        ),
        {"kind": CATEGORY, "categories": ["True", "False"]},
    )
    made["note"] = (
        _cells(rng, pa.string(), some(["x", "y"]), ["'; DROP TABLE people; --", "\\N", "\t", ""]),
        {"kind": TEXT},
    )
    return made


def _dates(rng: np.random.Generator, n: int) -> _Columns:
    first, last = dt.date.fromisoformat(FIRST_DAY), dt.date.fromisoformat(LAST_DAY)
    its = {"kind": DATE, "bounds": [FIRST_DAY, LAST_DAY]}

    def times() -> list[dt.datetime]:
        begin = dt.datetime(first.year - 1, 1, 1)
        spread = ((last - first).days + 700) * 86_400
        return [begin + dt.timedelta(seconds=one) for one in rng.integers(0, spread, n).tolist()]

    born = {"kind": DATE, "bounds": ["1920-01-01", LAST_DAY], "missing": False}
    made: _Columns = {}
    days = [one.date() for one in TIMES]
    made["visit"] = (_cells(rng, pa.date32(), [one.date() for one in times()], days), its)
    long_ago = [one.date() - dt.timedelta(days=10_000) for one in times()]
    made["birth"] = (_cells(rng, pa.date32(), long_ago, days), born)
    made["seen at"] = (_cells(rng, pa.timestamp("us"), times(), TIMES), its)
    aware = [one.replace(tzinfo=UTC) for one in TIMES]
    usual = [one.replace(tzinfo=UTC) for one in times()]
    made["called at"] = (_cells(rng, pa.timestamp("us", "UTC"), usual, aware), its)
    return made


# What can be asked


def conditions(schema: Schema) -> list[str]:
    """List conditions with every operator on every column of a schema, and some on several columns."""
    found: list[str] = []
    for name, column in schema.items():
        its = name_text(name)
        missing = [f"{its} is missing", f"{its} is not missing"]
        if column.kind in (NUMBER, WHOLE, DATE):
            low, high = column.lower, column.upper
            inner = [low + share * (high - low) for share in (0.2, 0.5, 0.75)]
            if column.is_whole:
                inner = [float(round(one)) for one in inner]
            a, b, c = map(column.write, inner)
            found += [f"{its} {sign} {b}" for sign in ("==", "!=", "<", "<=", ">", ">=")]
            found += [
                f"{its} between {a} and {c}",
                f"{its} not between {a} and {c}",
                f"{its} in ({a}, {b}, {c})",
                f"{its} not in ({a}, {b})",
                f"not {its} >= {a} or {its} > {c}",
                *missing,
            ]
            if column.kind != DATE:
                found.append(f"{a} <= {its} < {c}")
        if column.kind == DATE:
            found += [
                f"year({its}) >= 2001",
                f"month({its}) in (2, 12)",
                f"weekday({its}) not in ('Saturday', 'Sunday')",
                f"age({its}, {LAST_DAY}) between 5 and 20",
                f"year({its}) is missing",
            ]
        if column.kind == FLAG:
            found += [its, f"not {its}", f"{its} == yes", f"{its} != yes", *missing]
        if column.kind == CATEGORY:
            names = [quoted(key) for key in column.keys]
            found += [f"{its} {sign} {names[-1]}" for sign in ("==", "!=")]
            found += [*missing, f"not {its} == {names[0]}"]
            if len(names) > 3:
                found += [
                    f"{its} in ({', '.join(names[:3])})",
                    f"{its} not in ({', '.join(names[1:4])})",
                ]
    of_kind = {column.kind: name_text(name) for name, column in schema.items()}
    if {NUMBER, WHOLE, FLAG} <= of_kind.keys():
        number, whole, flag = of_kind[NUMBER], of_kind[WHOLE], of_kind[FLAG]
        found += [
            f"not ({flag} or {number} is missing) and {whole} is not missing",
            f"{flag} and ({whole} is missing or not {number} is missing)",
        ]
    return found


def questions(schema: Schema, every: int = 1) -> list[str]:
    """List questions of every kind: of every column, by every column that has groups, with every condition.

    ``every``: take one in so many, for tests that ask many tables.
    """
    columns = {name: column for name, column in schema.items() if column.kind != TEXT}
    names = {name: name_text(name) for name in columns}
    numbers = [names[name] for name, one in columns.items() if one.kind in (NUMBER, WHOLE)]
    flags = [names[name] for name, one in columns.items() if one.kind == FLAG]
    days = [names[name] for name, one in columns.items() if one.kind == DATE]
    keyed = [names[name] for name, one in columns.items() if one.has_keys]
    chosen = [names[name] for name, one in columns.items() if one.kind == CATEGORY]
    parts = [f"{part}({day})" for day in days for part in ("year", "month", "weekday")]
    parts += [f"age({day}, {LAST_DAY})" for day in days]
    groups, where, number = (
        cycle([*keyed, *parts]),
        cycle(conditions(schema)),
        cycle([*numbers, *flags]),
    )
    found = ["count", "count people"]
    for kind in ("sum", "mean", "var", "std"):
        found += [f"{kind} {one}" for one in (*numbers, *flags)]
        found += [f"{kind} {one} by {next(groups)}" for one in numbers]
        found += [f"{kind} {one} where {next(where)}" for one in numbers]
    found += [f"mean {one}" for one in (*days, *parts) if not one.startswith("weekday")]
    found += [f"mean {one} by {next(groups)} where {next(where)}" for one in (*days, *flags)]
    for head in ("median", "quantile(0.9)", "quantiles(0.1, 0.5, 0.75) of"):
        found += [f"{head} {one}" for one in (*numbers, *days)]
        found += (
            [f"{head} {one} by {next(groups)}" for one in (numbers[0], days[0])]
            if numbers and days
            else []
        )
        found += [f"{head} {one} where {next(where)}" for one in numbers[:3]]
    for one in [*keyed, *parts]:
        found += [f"count by {one}", f"count people by {one} where {next(where)}"]
        found += [f"share where {next(where)} by {one}", f"histogram {one}"]
        found += [f"mean {next(number)} by {one} where {next(where)}"]
    found += [f"histogram {one} where {next(where)}" for one in numbers]
    found += [f"histogram {one} by {next(groups)}" for one in chosen]
    for one in [*chosen, *flags]:
        found += [
            f"share of {one}",
            f"share of {one} by {next(groups)}",
            f"top 2 of {one} where {next(where)}",
        ]
    for one, other in pairwise(keyed):
        found += [f"crosstab {one}, {other}", f"count by {one}, {other} where {next(where)}"]
    found += [f"share where {next(where)} among {condition}" for condition in conditions(schema)]
    found += [f"count where {condition}" for condition in conditions(schema)]
    found += [f"count people where {condition}" for condition in conditions(schema)]
    for one, other in zip(numbers, [*numbers[1:], *flags], strict=False):
        found += [
            f"cov {one}, {other}",
            f"corr {one}, {other} where {next(where)}",
            f"ridge {one} on {other}",
        ]
    if len(numbers) > 3 and flags:
        found += [
            f"cov {', '.join(numbers[:4])}",
            f"ridge {numbers[0]} on {', '.join([*numbers[1:4], flags[0]])}",
        ]
    for name, column in columns.items():
        if column.has_keys and len(column.keys) >= 2:
            ends = f"between {quoted(column.keys[0])} and {quoted(column.keys[-1])}"
            for kind in ("count", "count people", "share", "sum", "mean", "var", "std"):
                of = f" where {next(where)}" if kind == "share" else ""
                about = kind if kind.startswith(("count", "share")) else f"{kind} {next(number)}"
                found.append(
                    " ".join(f"difference of {about} {of} by {names[name]} {ends}".split())
                )
            if numbers:
                found.append(
                    f"difference of median {numbers[0]} by {names[name]} {ends} where {next(where)}"
                )
    return list(dict.fromkeys(found))[::every]


# Into engines


def into_duckdb(table: pa.Table, path: Path, name: str = "people") -> None:
    """Write a table into a DuckDB file, which may have others."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute(f"CREATE TABLE {_quoted(name)} AS SELECT * FROM given")


def into_postgresql(table: pa.Table, url: str, name: str = "people") -> None:
    """Write a table into a PostgreSQL database."""
    import psycopg

    types = {
        column: _postgresql_type(kind)
        for column, kind in zip(table.column_names, table.schema.types, strict=True)
    }
    columns = ", ".join(f"{_quoted(column)} {kind}" for column, kind in types.items())
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {_quoted(name)} ({columns})")
        with cursor.copy(f"COPY {_quoted(name)} FROM STDIN") as copy:
            copy.set_types([kind.partition("(")[0] for kind in types.values()])
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)


def into_spark(table: pa.Table, spark: Any, folder: Path, name: str = "people") -> Any:
    """Write a table to Parquet files, and have Spark read them: a view of that name.

    Returns Spark's frame. (A frame made of an Arrow table would have no times without a zone.)
    """
    folder.mkdir(parents=True, exist_ok=True)
    half = table.num_rows // 2 + 1
    for part, start in enumerate(range(0, table.num_rows, half)):
        pq.write_table(table.slice(start, half), folder / f"part-{part}.parquet")
    frame = spark.read.parquet(str(folder))
    frame.createOrReplaceTempView(name)
    return frame


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _postgresql_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    named = {
        pa.float64(): "float8", pa.float32(): "float4", pa.int8(): "int2", pa.int16(): "int2",
        pa.int32(): "int4", pa.int64(): "int8", pa.bool_(): "bool", pa.string(): "text", pa.date32(): "date",
    }  # fmt: skip
    return named[kind]
