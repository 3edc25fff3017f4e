"""No owner moves a noisy sum by more than is charged: in whole numbers, for every question and relation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium import Schema
from collegium.accounting import Neighbours
from collegium.mechanisms import SeededNoise
from collegium.noise.grid import GRID
from collegium.statistics.features import Features, features_of
from collegium.statistics.language import parse_question
from collegium.weighted_sums.sums import Sums
from collegium.weighted_sums.weighing import Batch, Weighing

BLANKED, REPLACED = Neighbours.ADD_OR_REMOVE, Neighbours.ANY_CHANGE
COLUMNS: dict[str, Any] = {
    "age": {"kind": "whole", "bounds": [17, 90], "bins": [17, 40, 90]},
    "income": {"kind": "number", "bounds": [-5, 10]},
    "weight": {"kind": "number", "bounds": [0.1, 7.3], "missing": True},
    "sex": {"kind": "category", "categories": ["F", "M", "X"]},
    "smokes": {"kind": "flag"},
}
QUESTIONS = (
    "count where age >= 40 and sex = 'F'",
    "count by sex, smokes",
    "histogram age",
    "crosstab sex, smokes",
    "mean income",
    "mean income by sex",
    "mean weight",
    "sum income",
    "sum income where smokes",
    "sum age by sex",
    "var income",
    "std weight by sex",
    "cov age, income, weight",
    "corr age, smokes",
    "ridge income on age, smokes, weight",
    "share where age >= 40",
    "share where smokes by sex among age >= 40",
    "share of sex by smokes",
    "top 2 of sex",
    "difference of mean income by sex between 'F' and 'M'",
    "count people where smokes",
    "count people by sex, smokes",
)
ROW = st.fixed_dictionaries(
    {
        "age": st.one_of(st.integers(-10, 200), st.none(), st.just("n/a")),
        "income": st.one_of(
            st.sampled_from([-5.0, 10.0, -1e300, np.inf, np.nan]), st.floats(-6, 11)
        ),
        "weight": st.one_of(st.none(), st.floats(0, 8)),
        "sex": st.sampled_from(["F", "M", "X", "unheard of", None]),
        "smokes": st.sampled_from([True, False, "yes", None, "perhaps"]),
    }
)
ROWS = st.lists(ROW, min_size=0, max_size=7)


def summed(
    rows: list[dict[str, Any]],
    owner_rows: list[int],
    schema: Schema,
    features: Features,
    weighing: Weighing,
) -> np.ndarray:
    sums = Sums(features, weighing)
    if rows:
        frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype(object)
        group = np.repeat(np.arange(len(owner_rows)), owner_rows).astype(np.intp)
        each = np.repeat(owner_rows, owner_rows).astype(np.int64)
        owner = group if features.distinct else None
        halves = (slice(0, len(rows) // 2), slice(len(rows) // 2, None))
        arrays = schema.arrays(frame)
        for part in halves if features.distinct else (slice(None),):  # batches know of each other
            some = {name: values[part] for name, values in arrays.items()}
            if len(group[part]):
                its = None if owner is None else owner[part]
                sums.add(Batch(some, group[part], each[part], its))
    return sums.sensitive_steps.copy()


@given(
    st.sampled_from(QUESTIONS),
    st.booleans(),
    st.booleans(),
    st.sampled_from([BLANKED, REPLACED]),
    st.integers(1, 3),
    st.lists(st.floats(1e-4, 3.0), min_size=2, max_size=2),
    ROWS,
    ROWS,
)
def test_nobody_moves_a_sum_by_more_than_is_charged(
    question: str,
    laplace: bool,
    spread: float,
    neighbours: Neighbours,
    most: int,
    prices: list[float],
    before: list[dict[str, Any]],
    after: list[dict[str, Any]],
) -> None:
    schema = Schema(COLUMNS, rows_per_owner=most)
    asked = parse_question(question, schema)
    features = features_of(asked, schema, laplace, spread, most == 1, named=True)
    most = 1 if features.distinct else most
    diameter = features.diameter(neighbours, laplace)
    weighing = Weighing.of(np.array(prices), laplace, most, diameter)
    event = weighing.event(diameter, neighbours)
    other = [] if neighbours is BLANKED else after
    # The owner is the only member of the second group; everybody else's rows add the same to both sums.
    one = summed(before, [0, len(before)], schema, features, weighing)
    two = summed(other, [0, len(other)], schema, features, weighing)
    moved = [int(x) for x in (one - two).ravel()]
    allowed = Fraction(float(event.sensitivity[1])) / Fraction(GRID)  # of the event, in steps
    if laplace:
        assert sum(map(abs, moved)) <= allowed
    else:
        assert sum(x * x for x in moved) <= allowed**2
    # And what it is charged is no more than the price.
    paid = event.pure_epsilon if laplace else np.sqrt(event.mu_squared)
    assert (paid <= np.array(prices)).all()
    assert paid.max() >= max(prices) * (1 - 1e-5)


def extreme_rows(schema: Schema, n: int) -> dict[str, Any]:
    """Rows at corners, where sums move most, and some between."""
    rng = np.random.default_rng(5)
    inner = rng.random(n) < 0.2
    income = np.where(inner, rng.uniform(-5, 10, n), rng.choice([-5.0, 10.0], n))
    frame = pd.DataFrame(
        {
            "age": rng.choice([17, 40, 90], n),
            "income": income,
            "weight": np.where(inner, rng.uniform(0.1, 7.3, n), rng.choice([0.1, 7.3], n)),
            "sex": rng.choice(["F", "M", "X"], n),
            "smokes": rng.choice([True, False], n),
        }
    )
    return schema.arrays(frame)


@pytest.mark.parametrize("neighbours", [BLANKED, REPLACED])
@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("spread", [0.0, 0.05])
@pytest.mark.parametrize("question", QUESTIONS)
def test_not_at_corners_and_not_by_rounding(
    question: str, spread: float, laplace: bool, neighbours: Neighbours
) -> None:
    schema, n = Schema(COLUMNS, rows_per_owner=2), 240
    arrays = extreme_rows(schema, n)
    # At corners means and sums have their largest norm; so few steps that rounding is a part of them.
    for once in (True, False):
        features = features_of(parse_question(question, schema), schema, laplace, spread, once)
        diameter = features.diameter(neighbours, laplace)
        cells, values = features.read(arrays)
        for price in (1.0, 2e-5):
            weighing = Weighing.of(np.array([1.0, price]), laplace, 2, diameter)
            event = weighing.event(diameter, neighbours)
            allowed = Fraction(float(event.sensitivity[1])) / Fraction(GRID)
            owners = []
            for first, last in [(i, i + 1 + i % 4) for i in range(0, n, 6)]:
                sums, rows = Sums(features, weighing), last - first
                batch = Batch({}, np.ones(rows, np.intp), np.full(rows, rows, np.int64))
                sums.add(batch, (cells[first:last], values[first:last]))
                owners.append(sums.sensitive_steps.ravel())
            others = (
                np.zeros((1, owners[0].size), int) if neighbours is BLANKED else np.array(owners)
            )
            apart = np.array(owners)[:, None, :] - others
            if laplace:
                assert int(np.abs(apart).sum(axis=2).max()) <= allowed
            else:
                assert int((apart**2).sum(axis=2).max()) <= allowed**2


@pytest.mark.parametrize(
    ("question", "row", "other", "laplace"),
    [
        ("mean income", {"income": 10.0}, {"income": -5.0}, False),
        ("mean income by sex", {"income": 10.0, "sex": "F"}, {"income": 3.0, "sex": "M"}, True),
        ("count by sex", {"sex": "F"}, {"sex": "M"}, False),
        ("count where smokes", {"smokes": True}, {"smokes": False}, False),
        ("var income", {"income": 10.0}, {"income": -5.0}, False),
        ("count people where smokes", {"smokes": True}, {"smokes": False}, True),
    ],
)
def test_the_bound_is_reached(
    question: str, row: dict[str, Any], other: dict[str, Any], laplace: bool
) -> None:
    schema = Schema(COLUMNS)
    features = features_of(parse_question(question, schema), schema, laplace, 0.0, True)
    blank = dict.fromkeys(COLUMNS)
    for neighbours, rows in ((BLANKED, []), (REPLACED, [{**blank, **other}])):
        diameter = features.diameter(neighbours, laplace)
        weighing = Weighing.of(np.array([1.0]), laplace, 1, diameter)
        moved = summed([{**blank, **row}], [1], schema, features, weighing) - summed(
            rows, [len(rows)], schema, features, weighing
        )
        norm = float(np.linalg.norm(moved.ravel(), 1 if laplace else 2)) * GRID
        assert norm == pytest.approx(diameter, rel=1e-5)


def test_noise_is_that_of_the_source_on_the_grid() -> None:
    schema = Schema(COLUMNS)
    features = features_of(parse_question("count by sex", schema), schema, False, 0.0, True)
    weighing = Weighing.of(np.array([0.01]), False, 1, 1.0)
    sums = Sums(features, weighing)
    noisy = sums.noisy(SeededNoise(1), 0, "sums 0")
    drawn = SeededNoise(1).gaussian(weighing.scale, 3, query=0, purpose="sums 0")
    assert (noisy.ravel() == drawn).all()
    assert weighing.scale == pytest.approx(100.0)
