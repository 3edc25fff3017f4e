"""Weighted quantiles: the published oracle, the range that is charged, and bad input."""

import numpy as np
import pytest

from collegium.accounting import Neighbours, PureAccountant
from collegium.errors import BudgetExceededError, InputError
from collegium.mechanisms import SeededNoise, choose, weighted_quantile
from collegium.mechanisms.quantiles import STEP, quantile_range, quantile_scores
from collegium.noise.grid import GRID

VALUES, BUDGETS = np.arange(1.0, 6.0), np.array([0.1, 0.1, 1.0, 1.0, 0.5])
ADD, REPLACE = Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE


def log_chances(values, weights, candidates, q=0.5):
    steps = np.floor(np.asarray(weights) / STEP).astype(np.int64)
    below = (steps * (values < candidates[:, None])).sum(axis=1)
    above = (steps * (values > candidates[:, None])).sum(axis=1)
    scores, unit = quantile_scores(below, above, q, STEP)
    logs = scores * unit
    return logs - np.logaddexp.reduce(logs)


def test_the_published_oracle():
    chances = np.exp(log_chances(VALUES, BUDGETS, VALUES))
    assert chances.round(6).tolist() == [0.127749, 0.141185, 0.244709, 0.330323, 0.156033]


def test_dropping_each_person_moves_the_logarithms_by_less_than_their_budget():
    everybody = log_chances(VALUES, BUDGETS, VALUES)
    largest = []
    for person in range(5):
        rest = np.delete(np.arange(5), person)
        largest.append(np.abs(everybody - log_chances(VALUES[rest], BUDGETS[rest], VALUES)).max())
    assert np.round(largest, 4).tolist() == [0.0561, 0.0694, 0.2992, 0.3608, 0.3203]
    assert (largest <= BUDGETS).all()


def test_what_is_drawn_is_the_oracle():
    # 4,000 draws: that one of five frequencies is off by 5 standard deviations has a chance below 1e-5.
    drawn = [
        weighted_quantile(VALUES, BUDGETS, VALUES, noise=SeededNoise(4), query=query).value
        for query in range(4000)
    ]
    chances = np.exp(log_chances(VALUES, BUDGETS, VALUES))
    seen = np.bincount(np.array(drawn, dtype=int) - 1, minlength=5) / 4000
    assert (np.abs(seen - chances) < 5 * np.sqrt(chances * (1 - chances) / 4000)).all()


@pytest.mark.parametrize("q", [0.5, 0.1, 0.75, 0.99])
@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_the_range_is_an_upper_bound_and_nothing_smaller_is(q, neighbours):
    rng = np.random.default_rng(1)
    candidates, worst = np.arange(0.0, 12.0), 0.0
    for trial in range(200):
        values = rng.integers(0, 12, rng.integers(0, 20)).astype(float)
        weights = rng.choice([0.25, 1.0, 3.0], len(values))
        before, after = rng.integers(0, 12, 2).astype(float)
        if trial < 2:  # one heavy record, and somebody at either end: the worst case
            values, weights, before, after = (
                np.array([6.0]),
                np.array([200.0]),
                11 * trial,
                11 - 11 * trial,
            )
        one = log_chances(np.append(values, before), np.append(weights, 1.0), candidates, q)
        if neighbours is REPLACE:
            values, weights = np.append(values, after), np.append(weights, 1.0)
        worst = max(worst, np.ptp(one - log_chances(values, weights, candidates, q)))
    bound = float(quantile_range([1.0], q, neighbours)[0])
    assert bound * (1 - 1e-12) < worst <= bound * (1 + 1e-12)


def test_q_is_a_fraction_and_its_scores_are_whole():
    scores, unit = quantile_scores([9 * 2**20], [2**20], 0.9)
    assert scores.tolist() == [0]  # nine tenths lie below, exactly
    assert unit <= GRID / 18


def test_an_account_is_asked_first():
    account = PureAccountant([1.0, 2.0], neighbours=ADD)
    weighted_quantile([1, 2], [0.5, 1.0], [1, 2], noise=SeededNoise(0), account=account)
    assert account.epsilon_spent().round(12).tolist() == [0.5, 1.0]

    class Silent:
        def words(self, **options):
            raise AssertionError("nothing may be drawn")

    account = PureAccountant([0.4, 1.0], neighbours=ADD)
    with pytest.raises(BudgetExceededError):
        weighted_quantile([1, 2], [0.5, 1.0], [1, 2], noise=Silent(), account=account)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, np.nan], [1, 1], [1]), "one is not"),
        (([1.0], [-1.0], [1]), "at least 0"),
        (([1.0], [1.0, 2.0], [1]), "one of each"),
        ((["a"], [1.0], [1]), "must be numbers"),
        (([1.0], [1.0], []), "list of numbers"),
        (([1.0], [1.0], [1], 1.0), "level q"),
        (([1.0], [1e12], [1]), "at most"),
    ],
)
def test_bad_input_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        weighted_quantile(*arguments)
    assert "\n" not in str(caught.value)


def test_groups_are_drawn_side_by_side():
    drawn = choose([[0, 0, 5000], [5000, 0, 0]], unit=0.01, noise=SeededNoise(0), draws=3)
    assert drawn.tolist() == [[2, 2, 2], [0, 0, 0]]
    with pytest.raises(InputError, match="whole numbers"):
        choose([0.5, 1.0])
