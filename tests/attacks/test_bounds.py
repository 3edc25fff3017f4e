"""Bounds against enumeration, published numbers and randomized response."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from collegium.attacks.bounds import (
    Guesses,
    binomial_bounds,
    epsilon_from_rates,
    mu_from_rates,
    one_run_epsilon,
    one_run_p_value,
)
from collegium.errors import InputError


@pytest.mark.parametrize("chance", [0.01, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("error", [0.05, 1e-3])
def test_binomial_bounds_fail_as_rarely_as_they_say(chance, error):
    """Exactly, by summing over all outcomes."""
    counts = np.arange(61)
    lower, upper = binomial_bounds(counts, 60, error)
    probability = binom.pmf(counts, 60, chance)
    assert probability[lower > chance].sum() <= error
    assert probability[upper < chance].sum() <= error
    assert (lower[0], upper[-1]) == (0.0, 1.0)
    assert (lower <= counts / 60).all() and (counts / 60 <= upper).all()


def test_rates_of_a_known_mechanism_give_its_epsilon_and_mu():
    """At exact rates: randomized response has its ε, the Gaussian mechanism its μ at any threshold."""
    sure = math.exp(1.5) / (1 + math.exp(1.5))
    assert epsilon_from_rates(sure, 1 - sure, 0.0) == pytest.approx(1.5)
    thresholds = np.linspace(-2, 3, 11)
    assert mu_from_rates(norm.sf(thresholds - 0.7), norm.sf(thresholds)) == pytest.approx(0.7)
    assert epsilon_from_rates(0.3, 0.4, 0.0) == 0.0
    assert mu_from_rates(0.3, 0.4) == 0.0
    assert epsilon_from_rates(1.0, 0.5, 1e-5) == math.inf
    assert epsilon_from_rates(0.0, 1.0, 1e-5) == mu_from_rates(0.0, 1.0) == 0.0


def test_the_complement_of_an_event_counts_as_well():
    assert epsilon_from_rates(0.99, 0.5, 0.0) == pytest.approx(math.log(0.5 / 0.01))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_one_run_p_value_is_exact_for_randomized_response(epsilon):
    """m people answer truthfully with probability e^ε/(1+e^ε): summed over all outcomes."""
    m, truth = 25, 1 / (1 + math.exp(-epsilon))
    for right in range(m + 1):
        exact = binom.pmf(np.arange(right, m + 1), m, truth).sum()
        assert one_run_p_value(Guesses(m, m, right), epsilon, 0.0) == pytest.approx(exact)


def test_one_run_bounds_of_simulated_randomized_response_hold_and_bite():
    """2,000 audits of ε = 1 at error 0.05: too high at most as often as claimed (5 σ above 5 %)."""
    generator = np.random.default_rng(1)
    m, truth = 200, 1 / (1 + math.exp(-1))
    coins = generator.integers(0, 2, (2000, m))
    said = np.where(generator.random(coins.shape) < truth, coins, 1 - coins)
    right = (said == coins).sum(axis=1)
    bound = {v: one_run_epsilon(Guesses(m, m, v), 0.0, 0.05) for v in set(right.tolist())}
    bounds = np.array([bound[v] for v in right.tolist()])
    assert (bounds > 1).mean() <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / 2000)
    assert 0.6 < np.median(bounds) < 1


def test_one_run_bounds_of_randomized_response_that_fails_with_probability_delta():
    """With δ each answer is the truth, marked as such; the δ term must pay for it, exactly.

    Guessing is right with probability δ + (1 − δ) e^ε/(1 + e^ε), which is (ε, δ)-DP.
    """
    m, epsilon, delta = 50, 1.0, 1e-3
    truth = delta + (1 - delta) / (1 + math.exp(-epsilon))
    for right in range(m + 1):
        exact = binom.sf(right - 1, m, truth)
        assert exact <= one_run_p_value(Guesses(m, m, right), epsilon, delta) + 1e-12
    # A catastrophe that gives everybody away with probability δ must be paid for as well.
    everything = delta + (1 - delta) * binom.sf(m - 1, m, 1 / (1 + math.exp(-epsilon)))
    assert everything <= one_run_p_value(Guesses(m, m, m), epsilon, delta)


def test_one_run_bound_is_tight_at_its_error_and_monotone():
    bounds = [one_run_epsilon(Guesses(100, 80, v), 1e-5, 0.05) for v in range(40, 81)]
    assert bounds == sorted(bounds) and bounds[0] == 0.0 < bounds[-1]
    found = one_run_epsilon(Guesses(100, 80, 70), 1e-5, 0.05)
    assert one_run_p_value(Guesses(100, 80, 70), found, 1e-5) == pytest.approx(0.05, rel=1e-6)
    assert one_run_epsilon(Guesses(100, 80, 70), 1e-2, 0.05) < found


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: binomial_bounds(3, 2, 0.1),
        lambda: binomial_bounds(0, 0, 0.1),
        lambda: binomial_bounds(1, 2, 0.0),
        lambda: Guesses(10, 11, 3),
        lambda: Guesses(10, 5, 6),
        lambda: Guesses(0, 0, 0),
        lambda: one_run_epsilon(Guesses(10, 5, 5), 1e-5, 1.0),
    ],
)
def test_bad_input_is_one_clear_line(wrong):
    with pytest.raises(InputError) as error:
        wrong()
    assert "\n" not in str(error.value)
