"""The filter as Algorithm 1 of the thesis prints it is not private: the numbers of docs/dpsgd-proofs.md."""

from __future__ import annotations

import math

import pytest
from scipy.stats import chi2, norm

DELTA = 1e-5


def claimed(sigma: float, full_steps: int) -> float:
    """ε of an owner whose account is worth so many full steps: (α, αρ)-Rényi-DP for all α, ρ = β/(2σ²c²)."""
    rho = full_steps / (2 * sigma**2)
    return rho + 2 * math.sqrt(rho * math.log(1 / DELTA))  # Bun & Steinke 2016, Proposition 1.3


def least_epsilon(there: float, blanked: float) -> float:
    """What ε is at least, if an event has these probabilities with and without an owner."""
    return math.log((there - DELTA) / blanked)


def test_the_variance_tells_whether_a_second_person_is_there_whatever_the_noise():
    within = [
        2 * norm.cdf(math.sqrt(people)) - 1 for people in (2, 1)
    ]  # |g| ≤ σc; variance σ²c²/people
    assert within == pytest.approx([0.8427, 0.6827], abs=5e-5)
    assert least_epsilon(*within) == pytest.approx(0.2105, abs=6e-5)
    assert claimed(100.0, 1) == pytest.approx(0.0480, abs=5e-5)
    assert claimed(1_000.0, 1) == pytest.approx(0.0048, abs=5e-5)


def test_in_many_coordinates_it_tells_almost_surely():
    people, coordinates = 100, 7_850 * 100
    threshold = coordinates * (1 / people + 1 / (people - 1)) / 2
    below = [chi2.cdf(threshold * n, coordinates) for n in (people, people - 1)]
    assert below == pytest.approx([0.9992, 0.00085], abs=2e-5)
    assert least_epsilon(*below) > 7.06
    assert claimed(1_000.0, 100) < 0.0481


def test_the_end_of_the_printed_loop_tells_who_else_is_there():
    def steps_until_the_end(norms: dict[str, float], account: float, most: int) -> int | None:
        paid, active = dict.fromkeys(norms, 0.0), set(norms)
        for step in range(most):
            if not active:
                return step
            for person in sorted(active):
                if paid[person] >= account:
                    active.remove(person)
                paid[person] += min(norms[person], math.sqrt(max(account - paid[person], 0.0))) ** 2
        return None

    assert steps_until_the_end({"ann": 1.0}, 5.0, 10_000) == 6
    assert steps_until_the_end({"ann": 1.0, "bob": 0.0}, 5.0, 10_000) is None
