"""An engine that reads, rounds or adds up a value differently is refused, with the value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from collegium.data.engines import columns
from collegium.data.engines.connections import opened
from collegium.data.engines.places import place_of
from collegium.errors import InputError
from collegium.weighted_sums.conformance import refuse_other_answers


@pytest.fixture
def duckdb(duckdb_file):
    engine = opened(place_of(f"duckdb:///{duckdb_file(t=pa.table({'x': [1]}))}#t"))
    yield engine
    engine.close()


@pytest.fixture
def postgresql(database):
    import psycopg

    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE t (x int)")
    engine = opened(place_of(f"{database}#t"))
    yield engine
    engine.close()


@pytest.fixture
def in_spark(spark):
    import ibis

    spark.range(1).createOrReplaceTempView("one_row")
    engine = opened(ibis.pyspark.connect(spark).table("one_row"))
    yield engine
    engine.close()


@pytest.mark.parametrize("engine", ["duckdb", "postgresql", "in_spark"])
def test_engines_read_round_and_add_up_as_it_is_done_here(engine, request):
    refuse_other_answers(request.getfixturevalue(engine))


class Another:
    """An engine that returns something else in one place."""

    name = "Another engine"

    def __init__(self, engine: Any, statement: int, place: int, value: Any) -> None:
        self._engine, self._where = engine, (statement, place, value)
        self._asked = 0

    def fetch(self, expression: Any) -> list[tuple[Any, ...]]:
        statement, place, value = self._where
        rows = [list(row) for row in self._engine.fetch(expression)]
        if self._asked == statement:
            rows[0][place] = value
        self._asked += 1
        return [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("statement", "place", "value", "said"),
    [
        (0, 2, 1e6, "float64 inf"),
        (0, 1, 1e6, "float64 nan"),
        (1, 0, 12345.0, "the number 0.1"),
        (2, 1, 2.0**62, "sums of whole numbers"),
    ],
)
def test_one_value_that_differs_is_named(duckdb, statement, place, value, said):
    with pytest.raises(
        InputError, match=r"Another engine makes .* answers would not be the same"
    ) as e:
        refuse_other_answers(Another(duckdb, statement, place, value))
    assert said in str(e.value) and "\n" not in str(e.value)


def test_infinity_by_ibis_own_function_is_noticed_on_spark(in_spark, monkeypatch):
    """As Ibis 12 compiles isinf on Spark, it is false of infinity."""
    import ibis

    def finite(self: Any, name: str) -> Any:
        cell = self._table[name].cast("float64")
        return columns.choice(cell.isinf() | cell.isnan(), ibis.null("float64"), cell)

    monkeypatch.setattr(columns.InTable, "_double", finite)
    with pytest.raises(InputError, match=r"Spark makes .* of the float64 inf"):
        refuse_other_answers(in_spark)


def test_an_engines_own_rounding_is_noticed(duckdb, postgresql, monkeypatch):
    def rounding(self: Any, x: Any) -> columns.Number:
        whole = (columns._expression(x) - columns.real(0.5)).round()
        return columns.Number(whole.cast("float64"))

    monkeypatch.setattr(columns.OfExpressions, "floor", rounding)
    for engine in (duckdb, postgresql):
        with pytest.raises(InputError, match="answers would not be the same"):
            refuse_other_answers(engine)
