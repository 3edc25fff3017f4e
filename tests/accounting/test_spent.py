"""What a release has spent, and how it is looked up."""

import math

import pytest

from collegium.accounting import Gaussian, PoissonGaussian
from collegium.accounting.export import uses_of
from collegium.accounting.spent import Spent, mu_of

NOISE = tuple(uses_of(Gaussian([1.0], scale=10.0)))


def test_a_group_that_is_missing_is_an_error_and_never_nothing():
    spent = Spent({"high": NOISE, "idle": ()}, {"high": 0.3, "idle": 0.0}, gaussian=True)
    assert spent.mu("idle") == 0.0
    for look in (spent.mu, spent.uses.__getitem__, spent.epsilon.__getitem__):
        with pytest.raises(KeyError):
            look("low")
    with pytest.raises(ValueError, match="different groups"):
        Spent({"high": NOISE}, {"low": 0.3})


def test_what_is_sensitive_is_not_in_it():
    assert Spent(sensitive=True).sensitive
    with pytest.raises(ValueError, match="sensitive"):
        Spent({"high": NOISE}, {"high": 0.3}, sensitive=True)


def test_mu_adds_in_squares_and_is_rounded_up_and_unknown_of_samples():
    assert 0.1 * math.sqrt(3) <= mu_of(NOISE * 3) <= 0.1 * math.sqrt(3) * (1 + 1e-14)
    sampled = tuple(uses_of(PoissonGaussian([0.1], [2.0], 5)))
    assert Spent({"all": sampled}, {"all": 0.2}).mu("all") is None
