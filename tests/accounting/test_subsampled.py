"""Poisson samples: both accounts against references, exact where nobody is left out, and solved for."""

import math

import mpmath
import numpy as np
import pytest

from collegium.accounting import gdp_epsilon, gdp_mu
from collegium.accounting.calibration import noise_for, rates_and_noise
from collegium.accounting.subsampled import poisson_gaussian_epsilon, rough_epsilon
from collegium.errors import InputError

pytest.importorskip("dp_accounting")


def test_one_step_of_losses_lies_just_above_the_closed_form():
    """One step: delta(eps) = q delta_mu(log(1 + (e^eps - 1)/q)) in the worse direction.

    B. Balle, G. Barthe, M. Gaboardi. Privacy Amplification by Subsampling. NeurIPS 2018, Theorem 8.
    """
    rate, delta = 0.1, 1e-5
    ours = poisson_gaussian_epsilon(rate, 2.0, 1, delta)
    assert one_step(rate, 2, ours) <= delta < one_step(rate, 2, ours * 0.999)


def one_step(rate, noise, epsilon):
    """Compute the smallest δ of one step, to 40 digits."""
    with mpmath.workdps(40):
        mu, inner = 1 / mpmath.mpf(noise), mpmath.log1p(mpmath.expm1(epsilon) / rate)
        likely = mpmath.ncdf(mu / 2 - inner / mu)
        return rate * (likely - mpmath.exp(inner) * mpmath.ncdf(-mu / 2 - inner / mu))


@pytest.mark.filterwarnings("error")
def test_losses_too_large_to_be_shown_have_no_finite_epsilon():
    shown, not_shown = (
        poisson_gaussian_epsilon(0.1, noise, 1, 1e-5, interval=0.01) for noise in (0.035, 0.031)
    )
    assert 500 < shown < 600
    assert one_step(0.1, 0.035, shown) <= 1e-5 < one_step(0.1, 0.035, shown * 0.999)
    assert one_step(0.1, 0.031, 600) > 1e-5
    assert not_shown == math.inf


def test_renyi_is_the_moments_accountant_at_the_best_integer_order():
    rate, noise, steps, delta = 0.02, 1.3, 400, 1e-6
    with mpmath.workdps(30):
        bounds = []
        for order in range(2, 40):
            moment = mpmath.fsum(
                mpmath.binomial(order, k)
                * (1 - mpmath.mpf(rate)) ** (order - k)
                * mpmath.mpf(rate) ** k
                * mpmath.exp(k * (k - 1) / (2 * mpmath.mpf(noise) ** 2))
                for k in range(order + 1)
            )
            tail = mpmath.log1p(-1 / mpmath.mpf(order))
            tail -= (mpmath.log(delta) + mpmath.log(order)) / (order - 1)
            bounds.append(steps * mpmath.log(moment) / (order - 1) + tail)
        exact = float(min(bounds))
    assert exact <= poisson_gaussian_epsilon(rate, noise, steps, delta, "rdp")
    assert poisson_gaussian_epsilon(rate, noise, steps, delta, "rdp") == pytest.approx(exact, 1e-7)


@pytest.mark.parametrize("account", ["pld", "rdp"])
def test_who_always_takes_part_pays_exactly_and_who_never_does_nothing(account):
    exact = gdp_epsilon(math.sqrt(50) / 30, 1e-5)
    assert poisson_gaussian_epsilon(1, 30.0, 50, 1e-5, account) == pytest.approx(exact, rel=1e-12)
    assert poisson_gaussian_epsilon(0.0, 30.0, 50, 1e-5, account) == 0
    assert poisson_gaussian_epsilon(0.5, 30.0, 0, 1e-5, account) == 0


def test_loss_distributions_are_sharper_than_renyi_and_coarser_grids_are_above():
    point = (0.05, 2.0, 200, 1e-5)
    fine, coarse = (poisson_gaussian_epsilon(*point, interval=h) for h in (5e-4, 2e-3))
    assert fine < coarse < poisson_gaussian_epsilon(*point, account="rdp")


def test_the_slopes_to_search_with_are_those_of_the_rough_account():
    for rate, noise, steps in [(0.01, 1.2, 1000), (0.3, 5.0, 40), (1e-3, 0.6, 50)]:
        here = rough_epsilon(rate, noise, steps, 1e-5)
        up = 1 + 1e-6
        there = rough_epsilon(rate * up, noise, steps, 1e-5).log_epsilon
        assert (there - here.log_epsilon) / 1e-6 == pytest.approx(here.by_log_rate, rel=1e-3)
        there = rough_epsilon(rate, noise * up, steps, 1e-5).log_epsilon
        assert (there - here.log_epsilon) / 1e-6 == pytest.approx(here.by_log_noise, rel=1e-3)


@pytest.mark.parametrize(
    ("account", "epsilon", "rate", "steps"),
    [
        ("rdp", 1.0, 0.01, 1000),
        ("rdp", 0.1, 0.3, 7),
        ("rdp", 8.0, 1e-3, 100),
        ("pld", 2.0, 0.1, 30),
    ],
)
def test_noise_uses_a_budget_and_no_more(account, epsilon, rate, steps):
    noise = noise_for(epsilon, 1e-5, rate, steps, account)
    spent = poisson_gaussian_epsilon(rate, noise, steps, 1e-5, account)
    assert epsilon * (1 - 2e-7) <= spent <= epsilon


def test_rate_1_is_in_closed_form_and_the_largest_there_is():
    mu = gdp_mu(1.0, 1e-5)
    noise = noise_for(1.0, 1e-5, 1, 64)
    assert noise == pytest.approx(8 / mu, rel=1e-12)
    assert poisson_gaussian_epsilon(1, noise, 64, 1e-5) <= 1.0


@pytest.mark.filterwarnings("error")
def test_noise_for_more_than_losses_show_is_that_of_another_account():
    noise = noise_for(1000.0, 1e-5, 0.01, 1000, "rdp")
    assert poisson_gaussian_epsilon(0.01, noise, 1000, 1e-5, "rdp") == pytest.approx(1000, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: poisson_gaussian_epsilon(1.1, 1.0, 1, 1e-5), "rate must lie"),
        (lambda: poisson_gaussian_epsilon(np.nan, 1.0, 1, 1e-5), "NaN"),
        (lambda: poisson_gaussian_epsilon(0.1, 0.0, 1, 1e-5), "noise_multiplier"),
        (lambda: poisson_gaussian_epsilon(0.1, 1.0, 1.5, 1e-5), "steps"),
        (lambda: poisson_gaussian_epsilon(0.1, 1.0, 1, 1e-5, "hope"), "account"),
        (lambda: poisson_gaussian_epsilon(0.1, 1.0, 1, 1e-12), "use 'rdp', or take everybody"),
        (lambda: noise_for(1.0, 1e-5, 0.0, 1), "rate"),
        (lambda: noise_for(-1.0, 1e-5, 0.1, 1), "epsilon"),
        (lambda: noise_for(1e-6, 1e-9, 0.1, 1, "rdp"), "found no rates and noise"),
        (lambda: noise_for(1000.0, 1e-5, 0.01, 1000), "below 600 .* got 1000: use .* 'rdp'"),
        (lambda: rates_and_noise([1, 600], [1e-5] * 2, [0.5] * 2, 0.01, 9), "below 600"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
