"""Errors and intervals hold: answers again and again, with weights dealt out anew and noise drawn anew.

Only post-processing is run, on sums as the mechanism makes them. 4,000 repetitions: a coverage is off by more
than 1.4 points, four standard errors, in one of 1,300 such tests; the formulas have 95 % ± 1.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from collegium import Schema
from collegium.accounting import Neighbours, gdp_mu
from collegium.statistics import estimates
from collegium.statistics.estimates import Estimate, half_width
from collegium.statistics.features import SPREAD_SHARE, features_of
from collegium.statistics.language import parse_question
from collegium.statistics.planned import trade_of
from collegium.weighted_sums.weighing import Weighing

SIZES = np.array([540, 370, 90])
N, REPEATED = 1000, 4000
GAUSSIAN = tuple(float(gdp_mu(epsilon, 1e-5)) for epsilon in (1, 2, 3))
FEW = tuple(one / 10**0.5 for one in GAUSSIAN)  # a tenth of it
LAPLACE = (0.01, 0.2, 1.0)


def people(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": rng.beta(2, 5, N),
            "known": rng.beta(2, 5, N),
            "f": rng.random(N) < 0.3,
            "ends": rng.integers(0, 2, N).astype(float),
            "y": rng.normal(0.3, 0.6, N).clip(-2, 3),
            "m": np.where(rng.random(N) < 0.3, np.nan, rng.normal(0.3, 0.6, N).clip(-2, 3)),
        }
    )


def repeated(
    question: str, prices: tuple[float, ...], laplace: bool, rule: str = "saturating"
) -> tuple[float, float, float, float]:
    """Coverage, RMSE, standard error as said (root mean square), and as planned."""
    rng = np.random.default_rng(0)
    frame = people(rng)
    sd = float(frame["known"].std(ddof=0))
    schema = Schema(
        {
            "x": {"kind": "number", "bounds": [0, 1], "missing": False},
            "known": {"kind": "number", "bounds": [0, 1], "sd": sd, "missing": False},
            "f": {"kind": "flag", "missing": False},
            "ends": {"kind": "number", "bounds": [0, 1], "missing": False},
            "y": {"kind": "number", "bounds": [-2, 3], "missing": False},
            "m": {"kind": "number", "bounds": [-2, 3]},
        }
    )
    asked, arrays = parse_question(question, schema), schema.arrays(frame)
    column = schema[asked.columns[0]] if asked.columns else None
    measured = column is not None and column.sd is None and column.kind != "flag"
    features = features_of(asked, schema, laplace, SPREAD_SHARE * measured, True)
    diameter = features.diameter(Neighbours.ADD_OR_REMOVE, laplace)
    trade = trade_of(asked, schema, features, N, diameter, laplace)
    weights = trade.weights(rule, np.array(prices), SIZES)
    weighing = Weighing.of(weights, laplace, 1, diameter)
    heard = estimates.Heard.of(weighing, SIZES, 0.95, features.spread)
    cells, values = features.read(arrays)
    phi = np.where((cells >= 0)[:, None], values, 0.0)
    rows = np.ones(N, bool) if asked.where.is_everybody else asked.where.mask(arrays)
    own = None if column is None else column.numbers(arrays[asked.columns[0]])[rows]

    def estimate(sums: np.ndarray) -> Estimate:
        if column is None:
            return estimates.count(sums, heard)
        if asked.kind == "sum":
            return estimates.total(sums, heard, features, column)
        return estimates.mean(sums, heard, features, column)

    truth = (
        float(rows.sum())
        if own is None
        else float(np.nanmean(own) if asked.kind == "mean" else np.nansum(own))
    )
    found: list[Estimate] = []
    for _ in range(REPEATED // 500):
        dealt = rng.permuted(np.tile(np.repeat(weighing.weights, SIZES), (500, 1)), axis=1)
        shape, scale = (500, phi.shape[1]), weighing.scale
        noise = rng.laplace(0, scale, shape) if laplace else rng.normal(0, scale, shape)
        found += [estimate(sums) for sums in dealt @ phi + noise]
    within = np.mean([one.lower <= truth <= one.upper for one in found])
    error = np.sqrt(np.mean([(one.value - truth) ** 2 for one in found]))
    said = np.sqrt(np.mean([one.standard_error**2 for one in found]))
    return float(within), float(error), float(said), trade.errors(weights, SIZES).table


@pytest.mark.parametrize(
    ("question", "prices", "laplace"),
    [
        ("count where f", GAUSSIAN, False),
        ("count where f", LAPLACE, True),
        ("mean x", GAUSSIAN, False),
        ("mean x", FEW, False),
        ("mean known", LAPLACE, True),
        ("mean f", LAPLACE, True),
        ("mean y where f", FEW, False),
        ("mean y where f", GAUSSIAN, False),
        ("sum y", FEW, False),
        ("sum y where f", GAUSSIAN, False),
        ("sum f", LAPLACE, True),
        ("mean f where known > 0.2", GAUSSIAN, False),
        ("sum m where f", FEW, False),  # whose readable rows are counted along
        ("sum m", GAUSSIAN, False),
        ("mean m where f", GAUSSIAN, False),
    ],
)
def test_intervals_cover_and_errors_are_as_said(
    question: str, prices: tuple[float, ...], laplace: bool
) -> None:
    within, error, said, _ = repeated(question, prices, laplace)
    assert abs(within - 0.95) < 0.01 + 0.014
    assert said == pytest.approx(error, rel=0.07)


@pytest.mark.parametrize("question", ["sum m where f", "mean m where f", "std m where f"])
@pytest.mark.parametrize("laplace", [False, True])
def test_the_number_of_rows_that_could_be_read_is_as_exact_as_it_says(
    question: str, laplace: bool
) -> None:
    """4,000 repetitions: a root mean square is off by 4.5 %, four errors, in one of 16,000 tests."""
    rng = np.random.default_rng(1)
    frame = people(rng)
    schema = Schema(
        {"m": {"kind": "number", "bounds": [-2, 3]}, "f": {"kind": "flag", "missing": False}}
    )
    asked, arrays = parse_question(question, schema), schema.arrays(frame)
    features = features_of(asked, schema, laplace, 0.0, True)
    scale = 0.5 if laplace else 4.0
    weighing = Weighing(np.array([1 << 18, 1 << 19, 1 << 20]), scale, laplace, 1)
    heard = estimates.Heard.of(weighing, SIZES, 0.95)
    cells, values = features.read(arrays)
    phi = np.where((cells >= 0)[:, None], values, 0.0)
    truth = int((frame["f"] & frame["m"].notna()).sum())
    column, found = schema["m"], []
    of = {"sum": estimates.total, "mean": estimates.mean}.get(asked.kind)
    for _ in range(REPEATED // 500):
        dealt = rng.permuted(np.tile(np.repeat(weighing.weights, SIZES), (500, 1)), axis=1)
        shape = (500, phi.shape[1])
        noise = rng.laplace(0, scale, shape) if laplace else rng.normal(0, scale, shape)
        for sums in dealt @ phi + noise:
            if of is None:
                one = estimates.variance(sums, heard, features, column, laplace, True)
            else:
                one = of(sums, heard, features, column)
            assert one.readable is not None
            found.append(one.readable)
    value, error = np.array(found).T
    assert np.sqrt(np.mean((value - truth) ** 2)) == pytest.approx(
        np.sqrt(np.mean(error**2)), rel=0.045
    )


def test_where_the_spread_is_hard_to_measure_intervals_are_too_wide_and_never_too_narrow() -> None:
    for question, rule in (("mean x", "saturating"), ("sum y where f", "proportional")):
        within, error, said, _ = repeated(question, LAPLACE, True, rule)
        assert within > 0.95 - 0.014
        assert said > error
    # Where values are as far apart as bounds allow, and nothing says so.
    for rule in ("saturating", "proportional"):
        assert repeated("mean ends", LAPLACE, True, rule)[0] > 0.94 - 0.014


def test_saturating_weights_err_no_more_than_others_and_as_planned() -> None:
    for question, prices, laplace in (
        ("mean f", LAPLACE, True),
        ("count where f", GAUSSIAN, False),
    ):
        errors = {
            rule: repeated(question, prices, laplace, rule)
            for rule in ("saturating", "proportional", "uniform")
        }
        _, error, _, planned = errors["saturating"]
        # Errors of 4,000 repetitions are off by 1.1 %: three times that, and what is not known of the share.
        assert all(error < other[1] * 1.035 for other in errors.values())
        assert error == pytest.approx(planned, rel=0.1)


@pytest.mark.parametrize(
    ("laplace", "normal"), [(1.0, 1.0), (4.0, 0.01), (0.01, 4.0), (0.0, 1.0), (1.0, 0.0)]
)
def test_the_tail_of_laplace_and_normal_noise_together(laplace: float, normal: float) -> None:
    rng = np.random.default_rng(1)
    drawn = rng.laplace(0, (laplace / 2) ** 0.5, 400_000) + rng.normal(0, normal**0.5, 400_000)
    margin = half_width(0.025, laplace, normal)
    assert float((np.abs(drawn) > margin).mean()) == pytest.approx(
        0.05, abs=0.0015
    )  # 4 standard errors
