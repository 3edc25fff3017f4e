"""Laplace, Gaussian, sparse vector, randomised response: prices, rounding, bad input."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import laplace as laplace_law
from scipy.stats import norm

from collegium.accounting import GaussianAccountant, Neighbours
from collegium.errors import BudgetExceededError, InputError
from collegium.mechanisms import (
    SeededNoise,
    above_threshold,
    gaussian,
    gaussian_sigma,
    laplace,
    randomised_response,
    response_shares,
)
from collegium.noise.grid import GRID


class NoNoise:
    """What is released is what was noised."""

    is_private = False

    def noised(self, total, noise, **options):
        return total


def test_the_published_calibrations():
    assert round(gaussian_sigma(1.0, 1e-5), 6) == 3.730632
    assert round(gaussian_sigma(1.0, 1e-5, rule="classical"), 6) == 4.844805
    with pytest.raises(InputError, match="at most 1"):
        gaussian_sigma(2.0, 1e-5, rule="classical")


def test_the_analytic_noise_gives_its_budget_and_no_more():
    sigma = gaussian_sigma(0.7, 1e-6, 3.0)
    gap = 3.0 / sigma
    delta = norm.cdf(gap / 2 - 0.7 / gap) - np.exp(0.7) * norm.cdf(-gap / 2 - 0.7 / gap)
    assert delta == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("release", [laplace, gaussian])
def test_neighbours_move_what_is_noised_by_no_more_than_is_charged(release):
    rng, norm_of = np.random.default_rng(0), {laplace: 1, gaussian: 2}[release]
    furthest = 0.0
    for _ in range(300):
        before = rng.normal(size=4)
        move = rng.normal(size=4)
        move *= 0.3 / np.linalg.norm(move, norm_of)
        released = [release(value, 0.3, 1.0, noise=NoNoise()) for value in (before, before + move)]
        moved = np.linalg.norm(released[0].value - released[1].value, norm_of)
        assert moved <= released[0].event.sensitivity[0]
        furthest = max(furthest, moved)
    assert furthest > 0.3  # rounding does move it further than the sensitivity that was given


def test_exact_values_pay_for_no_rounding_and_must_be_exact():
    assert laplace([3, 4], 1.0, 2.0, exact=True).event.sensitivity.tolist() == [1.0]
    assert laplace(3.5, [1.0, 0.0], 2.0).event.sensitivity.tolist() == pytest.approx([1 + GRID, 0])
    with pytest.raises(InputError, match="on the grid"):
        laplace(0.1, 1.0, 2.0, exact=True)


def test_huge_values_are_clipped_and_not_refused():
    assert abs(laplace(1e300, 1.0, 1.0).value - 2.0**33) < 100


def test_a_refusal_draws_nothing():
    class Silent:
        def noised(self, *arguments, **options):
            raise AssertionError("nothing may be drawn")

    account = GaussianAccountant([0.1], 1e-5, neighbours=Neighbours.ADD_OR_REMOVE)
    with pytest.raises(BudgetExceededError):
        gaussian(1.0, 1.0, 1.0, noise=Silent(), account=account)
    assert account.epsilon_spent().tolist() == [0.0]


def sparse_chances(values, threshold_scale, value_scale, most):
    """Chances of all answers to some values, by integration over the threshold's noise."""
    line = np.linspace(-60, 60, 6001) * threshold_scale
    density = laplace_law.pdf(line, scale=threshold_scale)
    below = [laplace_law.cdf(line - value, scale=value_scale) for value in values]
    chances = {}
    for answers in product([False, True], repeat=len(values)):
        seen, so_far = [], np.ones_like(line)
        for answer, chance in zip(answers, below, strict=True):
            if sum(seen) < most:
                so_far = so_far * ((1 - chance) if answer else chance)
                seen.append(answer)
        chances[tuple(seen)] = np.trapezoid(so_far * density, line)
    return chances


@pytest.mark.parametrize("monotone", [False, True])
def test_answers_of_the_sparse_vector_differ_by_no_more_than_is_charged(monotone):
    scales, most = (2.0, 5.0), 2
    event = above_threshold(
        [0.0],
        0.0,
        1.0,
        threshold_scale=2.0,
        value_scale=5.0,
        most=most,
        monotone=monotone,
        exact=True,
    ).event
    claim, worst = float(event.epsilon[0]), 0.0
    moves = [[1] * 6 + [0] * 2] if monotone else [[1] * 6 + [-1] * 2, [-1, 1] * 4]
    # In the first, six values pin the threshold from below, and two then reach it: the worst case.
    for values in ([60] * 6 + [-60] * 2, [0] * 8, [8, -8, 3, 1, -5, 0, 0, 9]):
        before = sparse_chances(values, *scales, most)
        for move in moves:
            after = sparse_chances(np.add(values, move), *scales, most)
            worst = max(worst, *(abs(np.log(after[key] / before[key])) for key in before))
    assert 0.98 * claim < worst <= claim * (1 + 1e-3)


def test_the_sparse_vector_stops():
    values = [-500, 500, -500, 500, 500]
    asked = above_threshold(values, 0, 1.0, threshold_scale=1.0, value_scale=1.0, most=2)
    assert asked.value.tolist() == [False, True, False, True]
    seen = above_threshold(values, 0, 1.0, threshold_scale=1.0, value_scale=1.0, most=9)
    assert len(seen.value) == 5 and seen.event.epsilon[0] == pytest.approx(19, rel=1e-5)


def test_responses_have_their_chances_and_shares_are_without_bias():
    answers = np.repeat([0, 1, 2], [4000, 3000, 1000])
    epsilons = np.where(answers == 0, 1.0, 2.0)  # budgets that go with the answers
    reports = randomised_response(answers, epsilons, 3, noise=SeededNoise(3))
    assert reports.event.epsilon.tolist() == [1.0, 2.0]
    assert reports.event.neighbours is Neighbours.REPLACE
    truthful = (reports.value == answers)[answers == 0].mean()
    chance = np.e / (np.e + 2)
    # Five standard deviations: false alarms below 1e-6 (for the shares: 3 times that).
    assert abs(truthful - chance) < 5 * np.sqrt(chance * (1 - chance) / 4000)
    shares = response_shares(reports.value, epsilons, 3)
    assert np.abs(shares - [0.5, 0.375, 0.125]).max() < 0.06
    assert shares.sum() == pytest.approx(1)
    mixed = response_shares(reports.value, epsilons, 3, weighting="information")
    assert mixed[0] < 0.4  # those of small ε, who all say 0, weigh little


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: laplace(np.nan, 1.0, 1.0), "NaN"),
        (lambda: laplace("one", 1.0, 1.0), "must be a number"),
        (lambda: laplace(1.0, -1.0, 1.0), "at least 0"),
        (lambda: laplace(1.0, 1.0, 0.0), "scale"),
        (lambda: gaussian(1.0, 1.0, np.inf), "sigma"),
        (lambda: gaussian_sigma(1.0, 2.0), "delta"),
        (lambda: above_threshold([1], 0, 1, threshold_scale=1, value_scale=1, most=0), "most"),
        (lambda: randomised_response([0, 3], [1.0, 1.0]), "from 0 to 1"),
        (lambda: randomised_response([0, 1], [1.0, 0.0]), "above 0"),
        (lambda: randomised_response([0], [1.0, 1.0]), "one of each"),
    ],
)
def test_bad_input_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
