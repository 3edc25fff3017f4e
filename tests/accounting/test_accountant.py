"""Accountants: each keeps the promises of all, then what each promises besides."""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from amounts import Amounts
from conformance import Conformance, charge_while_affordable
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.accounting import (
    DEFAULT_ORDERS,
    Gaussian,
    GaussianAccountant,
    Laplace,
    Neighbours,
    PoissonGaussian,
    PureAccountant,
    PureNoise,
    RenyiAccountant,
    gdp_mu,
    pure_to_gdp,
)
from collegium.accounting.events import SensitiveCurve
from collegium.accounting.renyi import SEED_ORDERS, affordable_rdp
from collegium.errors import InputError

ANY_CHANGE = Neighbours.ANY_CHANGE


class TestGaussianAccountWithGaussianCosts(Conformance):
    def new(self, epsilon, delta=1e-5, names=None, neighbours=ANY_CHANGE):
        return GaussianAccountant(epsilon, delta, names, neighbours)

    def cost(self, strength):
        return Amounts(0.01 * strength**2, np.where(strength > 0, np.inf, 0.0))

    def broken_costs(self):
        good = np.full(3, 0.1)
        for bad in (np.array([0.1, np.nan, 0.1]), np.array([0.1, -0.1, 0.1]), good[:2], good[None]):
            yield Amounts(bad, good)
            yield Amounts(good if len(bad) == 3 else bad, bad)


class TestGaussianAccountWithPureCosts(Conformance):
    def new(self, epsilon, delta=1e-5, names=None, neighbours=ANY_CHANGE):
        return GaussianAccountant(epsilon, delta, names, neighbours)

    def cost(self, strength):
        pure = 0.1 * strength
        return Amounts(np.array([pure_to_gdp(float(value)) ** 2 for value in pure]), pure)

    def broken_costs(self):
        yield Amounts(np.full(2, 0.1), np.full(2, 0.1))
        yield Amounts(np.full(3, np.nan), np.full(3, 0.1))
        yield Amounts(np.full(3, 0.1), np.array([0.1, 0.1, -1e-300]))


class TestPureAccount(Conformance):
    has_delta = False

    def new(self, epsilon, delta=1e-5, names=None, neighbours=ANY_CHANGE):
        return PureAccountant(epsilon, names, neighbours)

    def cost(self, strength):
        return PureNoise(0.1 * strength)

    def broken_costs(self):
        yield PureNoise(np.full(2, 0.1))
        yield Amounts(np.zeros(3), np.array([0.1, np.nan, 0.1]))
        yield Amounts(np.zeros(3), np.array([0.1, -1e-300, 0.1]))


class TestPublicRenyiAccount(Conformance):
    def new(self, epsilon, delta=1e-5, names=None, neighbours=ANY_CHANGE):
        return RenyiAccountant(epsilon, delta, names=names, neighbours=neighbours)

    def cost(self, strength):
        return Gaussian(strength, scale=10.0)

    def broken_costs(self):
        yield Gaussian(np.ones(2), scale=10.0)
        yield Amounts(np.array([0.1, np.nan, 0.1]), np.zeros(3))
        yield Amounts(np.array([0.1, -1e-300, 0.1]), np.zeros(3))
        yield SensitiveCurve(np.zeros((3, DEFAULT_ORDERS.size)), DEFAULT_ORDERS)


class SensitiveConformance(Conformance):
    conversion = ""

    def new(self, epsilon, delta=1e-5, names=None, neighbours=ANY_CHANGE):
        return RenyiAccountant(
            epsilon, delta, DEFAULT_ORDERS, self.conversion, names, neighbours, sensitive=True
        )

    def cost(self, strength):
        return SensitiveCurve(0.005 * strength[:, None] ** 2 * DEFAULT_ORDERS, DEFAULT_ORDERS)

    def broken_costs(self):
        good = self.cost(np.full(3, 0.1)).sensitive_rdp
        for bad in (np.nan, -1e-300):
            cost = good.copy()
            cost[1, 7] = bad
            yield SensitiveCurve(cost, DEFAULT_ORDERS)
        yield SensitiveCurve(good[:2], DEFAULT_ORDERS)
        yield SensitiveCurve(good[:, :-1], DEFAULT_ORDERS[:-1])
        yield good


class TestSensitiveCanonne(SensitiveConformance):
    conversion = "canonne"


class TestSensitiveMironov(SensitiveConformance):
    conversion = "mironov"


# -------------------------------------------------------------------------- worst case: the numbers


def exact_delta(mu, epsilon):
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.exp(epsilon) * mpmath.ncdf(
        -epsilon / mu - mu / 2
    )


def gaussian(mu_squared):
    mu_squared = np.atleast_1d(np.asarray(mu_squared, dtype=np.float64))
    return Amounts(mu_squared, np.full(mu_squared.shape, np.inf))


def pure(epsilon):
    return Amounts(np.array([pure_to_gdp(epsilon) ** 2]), np.array([epsilon]))


def confident(n_checks, n_answers, sigma_threshold=150.0, sigma=40.0):
    account = GaussianAccountant([np.inf], 1e-5)
    for _ in range(n_checks):
        account.charge(gaussian(1 / sigma_threshold**2))
    for _ in range(n_answers):
        account.charge(gaussian(2 / sigma**2))
    return float(account.epsilon_spent()[0])


def test_published_mnist_votes_cost_two_and_a_half():
    assert confident(n_checks=640, n_answers=283) == pytest.approx(2.53, abs=0.03)


def test_checks_alone_cost():
    assert confident(n_checks=2000, n_answers=0) == pytest.approx(1.12, abs=0.01)


@settings(max_examples=30, deadline=None)
@given(
    costs=st.lists(st.floats(1e-6, 0.3), min_size=1, max_size=50),
    delta=st.sampled_from([1e-10, 1e-5, 0.01]),
)
def test_epsilon_of_added_squares_is_right_to_nine_digits_and_never_too_small(costs, delta):
    account = GaussianAccountant([np.inf], delta)
    for cost in costs:
        account.charge(gaussian(cost))
    spent = float(account.epsilon_spent()[0])
    with mpmath.workdps(60):
        mu = mpmath.sqrt(mpmath.fsum(mpmath.mpf(cost) for cost in costs))
        assert exact_delta(mu, spent) <= delta
        if spent > 1e-9:
            assert exact_delta(mu, spent * (1 - 1e-9)) > delta


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-300, 1e6)), max_size=60))
def test_sums_of_floats_are_never_below_the_exact_sum(costs):
    account = GaussianAccountant([np.inf], 1e-5)
    for cost in costs:
        account.charge(Amounts(np.array([cost]), np.array([cost])))
    exact = sum(map(Fraction, costs), Fraction(0))
    for total in (account.mu_squared[0], account.pure_epsilon[0]):
        assert exact <= Fraction(float(total)) <= exact * (1 + Fraction(len(costs), 2**50))


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_the_cost_of_two_mechanisms_is_never_below_the_exact_sum(one, other):
    both = gaussian(one) + gaussian(other)
    assert Fraction(float(both.mu_squared[0])) >= Fraction(one) + Fraction(other)


@settings(max_examples=100, deadline=None)
@given(st.floats(-2, 1.7).map(lambda x: 10.0**x), st.sampled_from([1e-10, 1e-5, 0.01]))
def test_the_filter_stops_before_the_true_delta_is_exceeded(epsilon, delta):
    account = GaussianAccountant([epsilon], delta)
    limit = gdp_mu(epsilon, delta) ** 2
    assert account.affords(gaussian(limit * (1 - 1e-9)))
    assert not account.affords(gaussian(limit * (1 + 1e-9)))
    largest = limit
    while not account.affords(gaussian(largest)):
        largest = math.nextafter(largest, 0.0)
    account.charge(gaussian(largest))
    with mpmath.workdps(80):
        assert exact_delta(mpmath.sqrt(mpmath.mpf(float(account.mu_squared[0]))), epsilon) <= delta
    assert account.epsilon_spent()[0] <= epsilon


def test_pure_mechanisms_may_use_the_pure_filter_when_it_allows_more():
    account = GaussianAccountant([1.0], 1e-5)
    done = charge_while_affordable(account, pure(0.09))
    assert done == 11
    assert account.mu_squared[0] > gdp_mu(1.0, 1e-5) ** 2
    assert 0.99 <= account.epsilon_spent()[0] <= 1.0


def test_pure_mechanisms_may_use_the_gaussian_filter_when_it_allows_more():
    account = GaussianAccountant([3.0], 1e-5)
    done = charge_while_affordable(account, pure(0.01))
    assert done == math.floor(gdp_mu(3.0, 1e-5) ** 2 / pure_to_gdp(0.01) ** 2)
    assert done > 3.0 / 0.01
    assert account.pure_epsilon[0] > 3.0
    assert 2.99 <= account.epsilon_spent()[0] <= 3.0


def test_one_gaussian_answer_closes_the_pure_filter():
    account = GaussianAccountant([1.0], 1e-5)
    account.charge(gaussian(1e-9))
    done = charge_while_affordable(account, pure(0.09))
    assert done == math.floor((gdp_mu(1.0, 1e-5) ** 2 - 1e-9) / pure_to_gdp(0.09) ** 2)
    assert account.epsilon_spent()[0] <= 1.0


def test_a_gaussian_answer_is_refused_when_only_the_pure_filter_is_still_open():
    account = GaussianAccountant([1.0], 1e-5)
    charge_while_affordable(account, pure(0.09))
    assert not account.affords(gaussian(1e-12))


# -------------------------------------------------------------------- data-dependent: what is refused


@pytest.mark.parametrize("conversion", ["", "exact", "Canonne"])
def test_unknown_conversions_are_refused_before_anything_is_charged(conversion):
    with pytest.raises(InputError, match="conversion"):
        RenyiAccountant([1.0], 1e-5, SEED_ORDERS, conversion)


def test_the_looser_conversion_never_allows_more():
    spent = {}
    for conversion in ("canonne", "mironov"):
        account = RenyiAccountant([np.inf], 1e-5, SEED_ORDERS, conversion, sensitive=True)
        account.charge(SensitiveCurve(0.02 * SEED_ORDERS[None], SEED_ORDERS))
        spent[conversion] = account.epsilon_spent()[0]
    assert spent["canonne"] < spent["mironov"]


def test_accounts_say_which_guarantee_they_keep():
    for account, guarantee, notion in (
        (GaussianAccountant([1.0], 1e-5), "worst-case", "gaussian"),
        (RenyiAccountant([1.0], 1e-5, sensitive=True), "data-dependent", "renyi"),
    ):
        assert (account.guarantee, account.notion) == (guarantee, notion)
        assert account.sensitive == (guarantee == "data-dependent")
    assert RenyiAccountant([1.0], 1e-5, SEED_ORDERS).guarantee == "worst-case"
    assert PureAccountant([1.0]).guarantee == "worst-case"


def test_25_a_public_renyi_filter_fixes_its_order_before_the_first_charge():
    """The order follows from the budget alone; events that suit another order do not move it."""
    account = RenyiAccountant([1.0, np.inf], 1e-5)
    fixed = account.fixed_order
    alone = RenyiAccountant([1.0], 1e-5, [fixed[0]])
    assert np.isnan(fixed[1]) and RenyiAccountant([1.0], 1e-5).fixed_order[0] == fixed[0]
    for event in (Laplace([1.0], inverse_scale=0.3), Gaussian([1.0], scale=30.0)):
        both = replace(event, sensitivity=np.repeat(event.sensitivity, 2))
        assert account.how_many(both) == alone.how_many(event)
        account.charge(both)
        alone.charge(event)
        assert account.fixed_order[0] == fixed[0]
        assert account.epsilon_spent()[0] == alone.epsilon_spent()[0]


def test_25_a_sensitive_renyi_filter_fixes_its_order_too_unless_it_is_the_papers():
    """A cost that suits small orders: with any order it is charged more often than with one."""
    account = RenyiAccountant([1.0, np.inf], 1e-5, sensitive=True)
    assert account.fixed_order[0] == RenyiAccountant([1.0], 1e-5).fixed_order[0]
    papers = RenyiAccountant([1.0, np.inf], 1e-5, sensitive=True, any_order=True)
    assert np.isnan(papers.fixed_order).all() and np.isnan(account.fixed_order[1])
    steep = np.where(DEFAULT_ORDERS < 9, 1e-4, 0.02) * np.ones((2, 1))
    cost = SensitiveCurve(steep, DEFAULT_ORDERS)
    allowed = affordable_rdp(1.0, account.fixed_order[:1], 1e-5)[0] / 0.02
    assert account.how_many(cost) == int(allowed) < papers.how_many(cost)
    laplace = Laplace([1.0, 1.0], inverse_scale=0.25, coordinates=2)
    suited = RenyiAccountant([1.0, np.inf], 1e-5, sensitive=True, usual=laplace)
    assert suited.fixed_order[0] > account.fixed_order[0]
    assert suited.how_many(laplace) == papers.how_many(laplace) > account.how_many(laplace)
    with pytest.raises(InputError, match="any_order"):
        RenyiAccountant([1.0], 1e-5, any_order=True)


# --------------------------------------------------------------------------- one event, many notions


def test_gaussian_dp_is_never_dearer_than_a_renyi_account_and_not_much_cheaper():
    for count in (1, 30, 1000):
        spent = []
        for account in (
            GaussianAccountant([np.inf], 1e-5),
            RenyiAccountant([np.inf], 1e-5),
        ):
            for _ in range(count):
                account.charge(Gaussian([1.0], scale=40.0, coordinates=2))
            spent.append(float(account.epsilon_spent()[0]))
        assert spent[0] <= spent[1] <= 1.2 * spent[0]


def test_a_pure_account_takes_no_event_with_a_delta():
    account = PureAccountant([1.0])
    assert not account.affords(Gaussian([1e-9], scale=1.0))
    assert account.affords(Gaussian([0.0], scale=1.0))
    assert PureAccountant([np.inf]).preview(Gaussian([1.0], scale=1.0)).tolist() == [np.inf]


def test_sensitive_accounts_take_public_events_at_their_worst_case_price():
    event = Gaussian([1.0, 2.0], scale=20.0)
    public, sensitive = (
        RenyiAccountant([1.0, 1.0], 1e-5, sensitive=sensitive) for sensitive in (False, True)
    )
    for account in (public, sensitive):
        account.charge(event)
    assert (public.sensitive_rdp == sensitive.sensitive_rdp).all()


def test_poisson_samples_are_charged_by_their_renyi_curve_and_refused_by_a_gaussian_account():
    pytest.importorskip("dp_accounting")
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, rdp

    event = PoissonGaussian([0.01, 0.1], [1.0, 5.0], steps=100)
    account = RenyiAccountant([np.inf] * 2, 1e-5, neighbours=Neighbours.ADD_OR_REMOVE)
    account.charge(event)
    for cohort, (rate, noise) in enumerate([(0.01, 1.0), (0.1, 5.0)]):
        step = PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
        theirs = rdp.RdpAccountant(DEFAULT_ORDERS.tolist()).compose(SelfComposedDpEvent(step, 100))
        ours = account.epsilon_spent()[cohort]
        assert ours == pytest.approx(theirs.get_epsilon(1e-5), rel=1e-6)
    gaussian = GaussianAccountant([3.0, 3.0], 1e-5, neighbours=Neighbours.ADD_OR_REMOVE)
    with pytest.raises(InputError, match="δ₀"):
        gaussian.charge(event)
    gaussian.charge(PoissonGaussian([0.0, 1.0], [1.0, 50.0], steps=100))
    assert gaussian.mu_squared == pytest.approx([0.0, 100 / 50**2])


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 2.0, 8.0, 20.0])
def test_a_sum_one_digit_above_the_square_of_mu_is_refused(epsilon):
    """08: what a budget buys is rounded down."""
    exact = Fraction(gdp_mu(epsilon, 1e-5)) ** 2
    above = float(exact)
    while Fraction(above) <= exact:
        above = math.nextafter(above, math.inf)
    account = GaussianAccountant([epsilon], 1e-5)
    assert not account.affords(Amounts([above], [math.inf]))
    assert account.affords(Amounts([above * (1 - 2.0**-50)], [math.inf]))
