"""Intervals of predicted numbers: they hold as often as they say, and say when nothing can be known."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import collegium as cg
from collegium.dpsgd.intervals import around, fewest_records, reach
from collegium.errors import InputError, StudentWarning

BOUNDS = (-4.0, 9.0)
COVERAGES = (0.5, 0.8, 0.9, 0.95)

pytestmark = pytest.mark.filterwarnings("ignore::collegium.PrivacyWarning")


def numbers(n, seed):
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(n, 4))
    return features, features @ [1.0, -1.0, 0.5, 0.0] + generator.standard_t(3, size=n)


@pytest.fixture(scope="module")
def fitted():
    features, target = numbers(500, 0)
    model = cg.DPSGDRegressor(bounds=BOUNDS, noise_seed=1, steps=20)
    return model.fit(features[:400], target[:400], budgets=3.0, X_public=features[400:])


@pytest.fixture
def model(fitted):
    return pickle.loads(pickle.dumps(fitted))


@pytest.mark.parametrize("coverage", COVERAGES)
def test_intervals_hold_as_often_as_they_say(coverage, model):
    """One test record for each calibration, so that hits are independent; false alarm 1e-6 at most."""
    n, repeats = 29, 2000
    features, target = numbers((n + 1) * repeats, 7)
    predicted = model.predict(features).reshape(repeats, n + 1)
    cut = np.clip(target, *BOUNDS).reshape(repeats, n + 1)
    held = 0
    for guess, truth in zip(predicted, cut, strict=True):
        residuals = np.sort(np.abs(truth[:n] - guess[:n]))
        low, high = around(guess[n:], residuals, coverage, BOUNDS)[0]
        held += low <= truth[n] <= high
    exact = math.ceil(30 * coverage - 1e-9) / 30  # of continuous residuals
    assert binom.cdf(held, repeats, coverage) > 1e-6
    assert binom.sf(held - 1, repeats, exact) > 1e-6


def test_a_calibrated_model_holds_within_the_bounds(model):
    features, target = numbers(3000, 3)
    assert model.calibrate(features[:1000], target[:1000]) is model
    before = np.full((2000, 2), np.nan)
    for coverage in COVERAGES:
        ends = model.predict_interval(features[1000:], coverage)
        low, high = ends.T
        assert (low >= BOUNDS[0]).all() and (high <= BOUNDS[1]).all() and (low <= high).all()
        inside = (low <= np.clip(target[1000:], *BOUNDS)) & (
            np.clip(target[1000:], *BOUNDS) <= high
        )
        # both samples vary: false alarm below 1e-6 (5 standard deviations)
        sd = math.sqrt(coverage * (1 - coverage) * (1 / 1000 + 1 / 2000))
        assert abs(inside.mean() - coverage) < 5 * sd
        assert not (low > before[:, 0]).any() and not (high < before[:, 1]).any()  # nested
        before = ends
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_interval(features, 0.7) == model.predict_interval(features, 0.7)).all()


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=60),
    st.floats(0.01, 0.99),
    st.floats(0.01, 0.99),
)
def test_more_coverage_never_reaches_less_far(residuals, one, other):
    ordered = np.sort(residuals)
    low, high = sorted((one, other))
    near, far = reach(ordered, low), reach(ordered, high)
    assert far is None or (near is not None and near <= far)
    needed = fewest_records(high)
    assert (far is None) == (len(ordered) < needed)


def test_equal_residuals_are_held_whatever_rounding_does():
    predicted, truth = 0.1 + 0.2 * np.arange(200) / 7, 0.1 + 0.6 + 0.2 * np.arange(200) / 7
    for guess, true in zip(predicted, truth, strict=True):
        residual = np.full(9, abs(true - guess))
        low, high = around(np.array([guess]), residual, 0.9, (0.0, 9.0))[0]
        assert low <= true <= high


def test_too_few_records_give_the_bounds_and_say_so(model):
    features, target = numbers(60, 4)
    model.calibrate(features[:10], target[:10])
    with pytest.warns(StudentWarning, match=r"10 calibration record\(s\) are too few .*takes 19"):
        ends = model.predict_interval(features[10:], 0.95)
    assert (ends == BOUNDS).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", StudentWarning)
        assert (model.predict_interval(features[10:], 0.9) != BOUNDS).any()


def test_missing_targets_are_left_out(model):
    features, target = numbers(40, 5)
    some = target.copy()
    some[::2] = np.nan
    one = model.calibrate(features, some).residuals_
    assert (
        len(one) == 20 and (one == model.calibrate(features[1::2], target[1::2]).residuals_).all()
    )


def test_what_cannot_be_used_is_said_in_one_line(model, fitted):
    features, target = numbers(40, 6)
    with pytest.raises(InputError, match=r"call calibrate\(X, y\) with public records"):
        fitted.predict_interval(features)
    for given_y, said in (
        (np.full(40, np.nan), "no target is known of 40 records"),
        (target[:39], "40 calibration records, but 39 targets"),
        (["seven"] * 40, "y of calibrate must be numbers"),
    ):
        with pytest.raises(InputError, match=said):
            model.calibrate(features, given_y)
    assert not hasattr(model, "residuals_")
    model.calibrate(features, target)
    for wrong in (0, 1, -0.5, 90, math.nan, "0.9", None):
        with pytest.raises(InputError, match="coverage must"):
            model.predict_interval(features, wrong)
    with pytest.raises(InputError, match="order"):
        model.calibrate(pd.DataFrame(features), pd.Series(target).sample(frac=1, random_state=0))


def test_records_that_fit_was_given_do_not_calibrate(model):
    seen, target = (part[400:] for part in numbers(500, 0))
    with pytest.raises(InputError, match="100 of 100 records were given to fit as X_public"):
        model.calibrate(seen, target)
    others, theirs = numbers(97, 8)
    model.calibrate(np.vstack([seen[:3], others]), np.append(target[:3], theirs))  # by chance


def test_another_fit_forgets(model):
    features, target = numbers(300, 9)
    model.calibrate(features[:50], target[:50])
    model.fit(features[50:], target[50:], budgets=3.0)
    assert not hasattr(model, "residuals_")
    with pytest.raises(InputError, match="call calibrate"):
        model.predict_interval(features)
    model.calibrate(features[:50], target[:50])  # without X_public nothing can be compared


def test_targets_beyond_linear_are_learnt_from_tables():
    """A product of two columns: no sum of functions of single columns tells anything of it."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.uniform(-1, 1, size=(4500, 3)), columns=["a", "b", "c"])
    target = np.sign(table["a"] * table["b"]) + 0.1 * generator.normal(size=len(table))
    private, public, test = slice(0, 3000), slice(3000, 3800), slice(3800, None)

    def score(preprocessing):
        made = cg.DPSGDRegressor(bounds=(-2, 2), preprocessing=preprocessing, noise_seed=1)
        made.fit(table[private], target[private], budgets=3.0, X_public=table[public])
        return made.score(table[test], target[test])

    assert score("auto") > 0.4
    assert score(cg.features.BinnedTable()) < 0.1
