"""People of one run share its noise: limits of runs hold, limits of independent scores do not."""

import numpy as np
import pytest
from scipy.special import ndtr

from collegium.attacks.clusters import Side, area_of
from collegium.attacks.membership import RATES, judge_membership
from collegium.errors import InputError

MU = 0.5
TRUE_AREA = float(ndtr(MU / np.sqrt(2)))


def shared(runs, people, cell, part, seed):
    """Scores at μ, of which cells of people share a part of the variance within each run."""
    rng = np.random.default_rng(seed)
    common = np.repeat(rng.normal(size=(runs, people // cell)), cell, axis=1)
    is_in = rng.random((runs, people)) < 0.5
    own = np.sqrt(1 - part) * rng.normal(size=(runs, people))
    return np.sqrt(part) * common + own + MU * is_in, is_in


def coverage(times, **shape):
    """How often intervals hold: of the area, and of what is found; and how often a bound is too high."""
    held, areas, too_high, narrow = dict.fromkeys(RATES, 0), 0, 0, 0
    for seed in range(times):
        scores, is_in = shared(**shape, seed=seed)
        [found] = judge_membership(scores, is_in, {"all": MU})
        areas += found.auc.low <= TRUE_AREA <= found.auc.high
        for at in found.rates:
            held[at.alarms] += at.found.low <= at.most <= at.found.high
        too_high += found.lower_mu > MU
        [pooled] = judge_membership(scores.ravel(), is_in.ravel(), {"all": MU})
        narrow += pooled.auc.low <= TRUE_AREA <= pooled.auc.high
    return areas, held, too_high, narrow


@pytest.mark.parametrize(("cell", "part"), [(1, 0.0), (10, 0.9), (60, 0.5)])
def test_intervals_hold_where_people_share_noise(cell, part):
    """200 times 64 runs of 60 people; at 95 %, fewer than 179 hold with probability 4e-4 at most.

    And more than 20 bounds of 95 % are too high with probability 0.001 at most.
    """
    areas, held, too_high, _ = coverage(200, runs=64, people=60, cell=cell, part=part)
    assert areas >= 179
    assert min(held.values()) >= 179
    assert too_high <= 20


def test_pooled_scores_say_too_much():
    """The same where all share: at 95 %, fewer than 179 of 200 hold with probability 4e-4 at most."""
    areas, _, _, narrow = coverage(200, runs=64, people=60, cell=60, part=0.9)
    assert areas >= 179 > 165 > narrow


def test_of_independent_scores_hardly_anything_is_lost():
    scores, is_in = shared(64, 200, 1, 0.0, seed=5)
    [by_runs] = judge_membership(scores, is_in, {"all": MU})
    [pooled] = judge_membership(scores.ravel(), is_in.ravel(), {"all": MU})
    assert by_runs.auc.value == pooled.auc.value
    widths = [one.auc.high - one.auc.low for one in (by_runs, pooled)]
    assert 1 <= widths[0] / widths[1] < 1.2
    assert 0.8 * pooled.lower_mu < by_runs.lower_mu <= pooled.lower_mu


def test_trials_that_are_alike_count_as_one():
    """Everybody of a run has one score: 64 runs are 64 trials, whoever is asked about in them."""
    rng = np.random.default_rng(2)
    of_runs = rng.normal(size=64)
    scores = np.repeat(of_runs[:, None], 50, axis=1)
    side = Side.of(scores, np.ones((64, 50), dtype=bool))
    threshold = float(np.quantile(of_runs, 0.7))
    kept = side.kept(threshold, 0.025)
    assert kept * len(side) == pytest.approx(64 * (1.95996 / 1.99834) ** 2 * 63 / 64, rel=1e-4)


def test_areas_of_0_and_1_have_intervals_of_runs():
    scores = np.where(np.eye(40, 30) > -1, 0.0, 0.0) + (
        is_in := np.indices((40, 30)).sum(axis=0) % 2
    )
    inside, outside = Side.of(scores, is_in == 1), Side.of(scores, is_in == 0)
    best, low = area_of(inside, outside, 0.05)
    assert (best.value, best.high) == (1.0, 1.0)
    assert best.low == pytest.approx(0.025 ** (1 / 40)) and low == pytest.approx(0.05 ** (1 / 40))
    worst, none = area_of(outside, inside, 0.05)
    assert (worst.value, worst.low, none) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("scores", "is_in", "more", "message"),
    [
        (
            np.zeros((4, 6)),
            np.ones((6, 4)),
            {},
            r"is_in has shape \(6, 4\) beside scores of shape \(4, 6\)",
        ),
        (np.zeros((4, 6)), np.ones((4, 6)), {"groups": ["all"] * 4}, r"must have \(6,\)"),
        (
            np.zeros((4, 6)),
            np.eye(4, 6),
            {"right": np.ones((9, 5), bool)},
            r"right has shape \(5,\)",
        ),
        (np.zeros((2, 2, 2)), np.ones((2, 2, 2)), {}, r"must have shape \(n_people,\) or"),
        (np.full((4, 6), np.inf), np.eye(4, 6), {}, "got 0 NaN and 24 infinite of 24"),
    ],
)
def test_what_does_not_fit_is_said_in_a_line(scores, is_in, more, message):
    with pytest.raises(InputError, match=message) as caught:
        judge_membership(scores, is_in, {"all": 1.0}, **more)
    assert "\n" not in str(caught.value)
