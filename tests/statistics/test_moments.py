"""Covariances, correlations and regressions: exact without noise, gradients, and intervals that hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from collegium import Schema, Statistics
from collegium.accounting import gdp_mu
from collegium.statistics import moments
from collegium.statistics.estimates import Heard
from collegium.statistics.features import Features, features_of
from collegium.statistics.language import parse_question
from collegium.statistics.moments import Found, Moments
from collegium.weighted_sums.weighing import Weighing

N, SIZES = 1000, np.array([540, 370, 90])
SCHEMA = Schema(
    {
        "x": {"kind": "number", "bounds": [-1, 3], "missing": False},
        "y": {"kind": "number", "bounds": [0, 10], "missing": False},
        "z": {"kind": "number", "bounds": [0, 1], "missing": False},
        "f": {"kind": "flag", "missing": False},
    }
)
NAMES = ["y", "x", "z"]
COLUMNS = [SCHEMA[name] for name in NAMES]
PENALTY = 3.0


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, z = rng.normal(1, 0.6, N).clip(-1, 3), rng.beta(2, 3, N)
    y = (2 + 1.5 * x + 3 * z + rng.normal(0, 1, N)).clip(0, 10)
    return pd.DataFrame({"x": x, "y": y, "z": z, "f": rng.random(N) < 0.7})


def read(question: str, laplace: bool) -> tuple[Features, np.ndarray, np.ndarray]:
    """How rows are read, their coordinates, and which of them it is about."""
    asked, arrays = parse_question(question, SCHEMA), SCHEMA.arrays(people())
    features = features_of(asked, SCHEMA, laplace, 0.0, True)
    cells, values = features.read(arrays)
    return features, np.where((cells >= 0)[:, None], values, 0.0), cells >= 0


def heard(weights: np.ndarray, scale: float, laplace: bool) -> Heard:
    steps = np.floor(weights / weights.max() * 2**20).astype(np.int64)
    return Heard.of(Weighing(steps, scale, laplace, 1), SIZES, 0.95)


def all_found(sums: np.ndarray, how: Heard, features: Features) -> list[Found]:
    own = Moments.of(sums, how, features, len(NAMES))
    assert own is not None
    return [
        moments.covariances(own, COLUMNS),
        moments.correlations(own),
        moments.ridge(own, COLUMNS, PENALTY),
    ]


def exact(which: np.ndarray) -> list[np.ndarray]:
    """By numpy, in the columns' units; the penalty is for as many rows as all of a table has."""
    rows = people()[NAMES].to_numpy()[which]
    half = np.array([column.width / 2 for column in COLUMNS])
    centred = (rows - rows.mean(0)) / half
    inner = centred[:, 1:].T @ centred[:, 1:] / len(rows) + np.eye(2) * PENALTY / N
    slopes = np.linalg.solve(inner, centred[:, 1:].T @ centred[:, 0] / len(rows))
    slopes = slopes * half[0] / half[1:]
    intercept = rows[:, 0].mean() - slopes @ rows[:, 1:].mean(0)
    return [
        np.cov(rows.T, bias=True),
        np.corrcoef(rows.T),
        np.concatenate([[intercept], slopes]),
    ]


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("question", ["cov y, x, z", "cov y, x, z where f"])
def test_without_noise_they_are_exact(question: str, laplace: bool) -> None:
    features, phi, which = read(question, laplace)
    found = all_found(phi.sum(axis=0), heard(np.ones(3), 1e-9, laplace), features)
    for one, expected in zip(found, exact(which), strict=True):
        np.testing.assert_allclose(one.value, expected, atol=1e-6)
        np.testing.assert_allclose(one.lower, expected, atol=1e-6)
        np.testing.assert_allclose(one.upper, expected, atol=1e-6)


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("question", ["cov y, x, z", "cov y, x, z where f"])
def test_errors_are_those_of_the_gradient(question: str, laplace: bool) -> None:
    """Of noise alone: what each coordinate moves values by, found by moving it."""
    features, phi, _ = read(question, laplace)
    sums, how, step = phi.sum(axis=0), heard(np.ones(3), 1.0, laplace), 1e-3
    found = all_found(sums, how, features)
    moved = [
        (
            all_found(sums + side, how, features),
            all_found(sums - side, how, features),
        )
        for side in np.eye(len(sums)) * step
    ]
    for kind, one in enumerate(found):
        slopes = np.stack([(up[kind].value - down[kind].value) / (2 * step) for up, down in moved])
        expected = np.sqrt(how.noise * (slopes**2).sum(axis=0))
        np.testing.assert_allclose(one.error, expected, rtol=2e-3, atol=1e-9)


@pytest.mark.parametrize(
    ("question", "laplace", "levels", "scale"),
    [
        ("cov y, x, z", False, (1, 2, 3), 1.0),
        ("cov y, x, z", False, (0.5, 0.5, 0.5), 1.0),
        ("cov y, x, z where f", True, (1, 2, 3), 1.0),
    ],
)
def test_intervals_hold(
    question: str, laplace: bool, levels: tuple[float, ...], scale: float
) -> None:
    """1,500 repetitions, seeded: a coverage is off by more than 1.6 points, 2.8 standard errors, once in 200.

    Beside that one point of what is not normal about values; Laplace noise of several coordinates is taken
    for one, so that intervals may be too wide.
    """
    features, phi, which = read(question, laplace)
    weights = np.array(levels if laplace else [float(gdp_mu(one, 1e-5)) for one in levels])
    how = heard(weights, scale / weights.max(), laplace)
    rng, expected = np.random.default_rng(0), exact(which)
    each = np.repeat(weights / weights.max(), SIZES)
    inside = [np.zeros(one.shape) for one in expected]
    for _ in range(1500):
        shape, spread = phi.shape[1], scale / weights.max()
        noise = rng.laplace(0, spread, shape) if laplace else rng.normal(0, spread, shape)
        for kind, one in enumerate(all_found(rng.permutation(each) @ phi + noise, how, features)):
            inside[kind] += (one.lower <= expected[kind] + 1e-12) & (
                expected[kind] - 1e-12 <= one.upper
            )
    for held in inside:
        assert (held / 1500 > 0.95 - 0.016 - 0.01).all()
        if not laplace:
            assert (held[held < 1500] / 1500 < 0.95 + 0.016 + 0.01).all()


def test_noise_that_drowns_them_is_not_taken_for_an_answer() -> None:
    frame = people().head(60)
    ask = Statistics(frame, 0.05, schema=SCHEMA, noise_seed=0, questions=3)
    correlated, regressed = ask.corr(["x", "y"]), ask.ridge("y", ["x"])
    assert correlated.cells["lower"].iloc[1] == -1 and correlated.cells["upper"].iloc[1] == 1
    assert (
        np.isneginf(regressed.cells["lower"]).all() and np.isposinf(regressed.cells["upper"]).all()
    )
    assert "it could be any number" in str(regressed)
    for answer in (correlated, regressed):
        assert "2 of " in answer.notes[0] and "values tell nothing" in answer.notes[0]
    assert regressed.to_dict()["cells"][0]["lower"] is None
