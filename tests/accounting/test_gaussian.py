"""Gaussian DP against mpmath: right, and rounded in the safe direction."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.accounting import gdp_delta, gdp_epsilon, gdp_log_delta, gdp_mu, pure_to_gdp
from collegium.errors import InputError

ORACLE = [
    (math.log(2), 1e-5, 0.191820564003),
    (1.0, 1e-5, 0.268051123211),
    (2.0, 1e-5, 0.50155168917),
    (3.0, 1e-5, 0.719117435222),
    (math.log(16), 1e-5, 0.670778058012),
    (0.1, 1e-8, 0.0217687737383),
    (10.0, 1e-5, 2.00044562043),
]


def powers_of_ten(low, high):
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


epsilons = powers_of_ten(-7, 2.9)
deltas = powers_of_ten(-16, -0.3)
mus = powers_of_ten(-7, 1.3)


def exact_delta(mu, epsilon):
    """The textbook formula; 50 digits remain after its cancellation."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    shift = epsilon / mu
    gain = mpmath.exp(epsilon) * mpmath.ncdf(-shift - mu / 2)
    return mpmath.ncdf(-shift + mu / 2) - gain


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(110):
        yield


@pytest.mark.parametrize(("epsilon", "delta", "mu"), ORACLE)
def test_published_oracle(epsilon, delta, mu):
    assert gdp_mu(epsilon, delta) == pytest.approx(mu, rel=1e-9)
    assert gdp_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-9)


@settings(max_examples=150)
@given(epsilon=epsilons, delta=deltas)
def test_mu_of_a_budget_is_rounded_down_by_less_than_a_part_in_1e12(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert exact_delta(mu, epsilon) <= mpmath.mpf(delta)
    assert exact_delta(mpmath.mpf(mu) * (1 + mpmath.mpf("1e-12")), epsilon) > mpmath.mpf(delta)


@settings(max_examples=150)
@given(mu=mus, delta=deltas)
def test_epsilon_of_a_loss_is_rounded_up_by_less_than_a_part_in_1e12(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    assert exact_delta(mu, epsilon) <= mpmath.mpf(delta)
    lower = mpmath.mpf(epsilon) * (1 - mpmath.mpf("1e-12")) - mpmath.mpf("1e-14")
    assert lower < 0 or exact_delta(mu, lower) > mpmath.mpf(delta)


@settings(max_examples=150)
@given(mu=mus, epsilon=epsilons)
def test_delta_is_rounded_up_by_less_than_a_part_in_1e12(mu, epsilon):
    exact = mpmath.log(exact_delta(mu, epsilon))
    ours = mpmath.mpf(gdp_log_delta(mu, epsilon))
    assert exact <= ours <= exact + mpmath.mpf("1e-12") * max(1, -exact)
    assert mpmath.exp(exact) <= mpmath.mpf(gdp_delta(mu, epsilon))


@given(epsilon0=powers_of_ten(-13, 1.8))
def test_pure_to_gdp_is_rounded_up_by_less_than_a_part_in_1e12(epsilon0):
    exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(epsilon0) / 2))
    assert exact <= mpmath.mpf(pure_to_gdp(epsilon0)) <= exact * (1 + mpmath.mpf("1e-12"))


@pytest.mark.parametrize("epsilon0", [1e-12, 0.2, 1.0, 5.0])
def test_gaussian_curve_lies_below_the_pure_trade_off_and_touches_it(epsilon0):
    mu, e = mpmath.mpf(pure_to_gdp(epsilon0)), mpmath.exp(mpmath.mpf(epsilon0))

    def gaussian_curve(error):
        quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * error)
        return mpmath.ncdf(quantile - mu)

    with mpmath.workdps(40):
        for error in mpmath.linspace(mpmath.mpf("0.01"), mpmath.mpf("0.99"), 23):
            assert gaussian_curve(error) <= max(1 - e * error, (1 - error) / e)
        touching = 1 / (1 + e)
        assert touching - gaussian_curve(touching) < mpmath.mpf("1e-12") * mu


@given(mu=mus, delta=deltas)
def test_epsilon_and_mu_invert_each_other_on_the_safe_side(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    if epsilon > 1e-9:
        back = gdp_mu(epsilon, delta)
        assert back == pytest.approx(mu, rel=1e-9)
        assert gdp_epsilon(back, delta) <= epsilon * (1 + 1e-11)


@given(mu=mus, factor=st.floats(1.001, 10), delta=deltas)
def test_epsilon_grows_with_mu_and_falls_with_delta(mu, factor, delta):
    assert gdp_epsilon(mu, delta) <= gdp_epsilon(mu * factor, delta)
    assert gdp_epsilon(mu, delta / factor) >= gdp_epsilon(mu, delta)


def test_no_work_costs_nothing_and_no_limit_buys_everything():
    assert gdp_epsilon(0.0, 1e-5) == 0.0
    assert gdp_epsilon(1e-9, 1e-5) == 0.0  # indistinguishable up to delta
    assert gdp_epsilon(math.inf, 1e-5) == math.inf
    assert gdp_mu(math.inf, 1e-5) == math.inf
    assert gdp_mu(0.0, 1e-5) == pytest.approx(math.sqrt(2 * math.pi) * 1e-5, rel=1e-9)
    assert gdp_delta(0.0, 0.0) == 0.0
    assert gdp_delta(3.0, math.inf) == 0.0
    assert gdp_delta(math.inf, 3.0) == 1.0
    assert pure_to_gdp(0.0) == 0.0
    assert pure_to_gdp(math.inf) == math.inf


@pytest.mark.parametrize("mu", [1.1717935704527171, 2.4470380732412997, 2.466360346669473])
def test_a_delta_next_below_that_of_epsilon_0_is_not_free(mu):
    """The search ends at epsilon 0 itself here, within its rounding."""
    exact = exact_delta(mu, 0)
    below = math.nextafter(float(exact), 0)
    while mpmath.mpf(below) >= exact:
        below = math.nextafter(below, 0)
    assert 0 < gdp_epsilon(mu, below) < 1e-13


def test_extremes_do_not_break_the_formulas():
    assert gdp_epsilon(1e200, 1e-5) == math.inf
    assert gdp_epsilon(1e-300, 1e-5) == 0.0
    assert gdp_delta(1e-200, 1.0) > 0.0
    assert gdp_log_delta(1e200, 1.0) == 0.0
    assert gdp_mu(1e6, 1e-5) > 1400
    assert gdp_mu(5.0, 1 - 1e-16) > gdp_mu(5.0, 0.999)
    assert 0 < gdp_mu(1.0, 1e-300) < gdp_mu(1.0, 1e-299)


def test_epsilon_accepts_arrays_of_any_shape():
    mu = np.array([[0.0, 0.2], [np.inf, 3.0]])
    epsilon = gdp_epsilon(mu, 1e-5)
    assert epsilon.shape == mu.shape
    assert epsilon[0, 1] == gdp_epsilon(0.2, 1e-5)
    assert epsilon[1, 0] == np.inf
    assert gdp_epsilon(np.array([]), 1e-5).shape == (0,)
    assert isinstance(gdp_epsilon(0.2, 1e-5), float)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gdp_epsilon(-1.0, 1e-5),
        lambda: gdp_epsilon(math.nan, 1e-5),
        lambda: gdp_epsilon(np.array([1.0, math.nan]), 1e-5),
        lambda: gdp_epsilon(1.0, 0.0),
        lambda: gdp_epsilon(1.0, 1.0),
        lambda: gdp_mu(-0.1, 1e-5),
        lambda: gdp_mu(1.0, math.nan),
        lambda: gdp_mu("high", 1e-5),
        lambda: gdp_delta(1.0, -1.0),
        lambda: gdp_log_delta(math.nan, 1.0),
        lambda: pure_to_gdp(-1.0),
    ],
)
def test_bad_input_is_refused_in_one_line(call):
    with pytest.raises(InputError) as refusal:
        call()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.4, 0.6])
@pytest.mark.parametrize("epsilon", [1e15, 9.9e19, 1.01e20, 1e25, 1e30, 1e100, 1e307])
def test_mu_of_a_huge_epsilon(epsilon, delta):
    """exp(epsilon) Phi(-y) is phi(x)/(y + 1/(y + ...)), since phi(y) = phi(x) exp(-epsilon)."""

    def huge_delta(mu):
        x, y = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
        return mpmath.ncdf(-x) - density / (y + 1 / (y + 2 / (y + 3 / y)))

    with mpmath.workdps(340):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(gdp_mu(epsilon, delta))
        assert huge_delta(mu) <= delta < huge_delta(mu * (1 + mpmath.mpf("1e-12")))


def test_mu_does_not_fall_where_epsilon_grows_beyond_all_bounds():
    epsilons = [10.0**power for power in range(0, 308, 3)] + [1.7e308, math.inf]
    mus = [gdp_mu(epsilon, 1e-5) for epsilon in epsilons]
    assert mus == sorted(mus)
    assert mus[0] > 0 and math.isfinite(mus[-2]) and math.isinf(mus[-1])


@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.3, 0.999])
def test_many_budgets_together_buy_what_each_buys_alone(delta):
    rng = np.random.default_rng(3)
    budgets = np.array([[0.0, math.inf, 1e30, 3.0, 3.0], 10 ** rng.uniform(-8, 14, 5)])
    together = gdp_mu(budgets, delta)
    alone = np.array([gdp_mu(epsilon, delta) for epsilon in budgets.ravel().tolist()])
    np.testing.assert_allclose(together.ravel(), alone, rtol=2e-14)
    for mu, epsilon in zip(together[1].tolist(), budgets[1].tolist(), strict=True):
        assert exact_delta(mu, epsilon) <= mpmath.mpf(delta)
    with pytest.raises(InputError, match="at least 0"):
        gdp_mu(np.array([-1.0]), delta)
