"""Accountants: one suite of promises that each of them keeps, then what each promises besides."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collegium.accounting.accountant import (
    DataDependentAccountant,
    WorstCaseAccountant,
    WorstCaseCost,
)
from collegium.accounting.gaussian import gdp_mu, pure_to_gdp
from collegium.accounting.renyi import DEFAULT_ORDERS, SEED_ORDERS
from collegium.errors import BudgetExceededError, InputError

# Each subclass runs the same property on its own accountant, so examples are not kept between them.
for_every_accountant = settings(
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.differing_executors],
)
ONE_LESS = 1 - 1e-13
EPSILONS = np.array([1.0, 2.0, 3.0])
strengths = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 2.0)), min_size=3, max_size=3).map(
    np.array
)
workloads = st.lists(strengths, max_size=12)


def state(account):
    """Every number that an account holds, byte for byte."""
    return {
        name: value.tobytes()
        for name, value in vars(account).items()
        if isinstance(value, np.ndarray)
    }


def rows(account):
    """What is booked on each cohort, byte for byte; readings of ε may wobble in the last digit."""
    names = ("mu_squared", "pure_epsilon", "sensitive_rdp")
    booked = [getattr(account, name) for name in names if hasattr(account, name)]
    return [tuple(part[cohort].tobytes() for part in booked) for cohort in range(len(account))]


def charge_while_affordable(account, cost, most=100_000):
    done = 0
    while done < most and account.affords(cost):
        account.charge(cost)
        done += 1
    return done


class Conformance:
    """What every accountant promises. ``cost(strengths)``: grows with each cohort's strength."""

    def new(self, epsilon, delta=1e-5, names=None):
        raise NotImplementedError

    def cost(self, strength):
        raise NotImplementedError

    def broken_costs(self):
        """Costs for three cohorts that no account may take."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------ nothing asked

    def test_no_work_costs_nothing(self):
        account = self.new(EPSILONS)
        nothing = self.cost(np.zeros(3))
        assert (account.epsilon_spent() == 0).all()
        for _ in range(1000):
            account.charge(nothing)
        assert (account.epsilon_spent() == 0).all()

    def test_no_work_is_affordable_to_whoever_has_nothing_left(self):
        account = self.new(EPSILONS)
        charge_while_affordable(account, self.cost(np.full(3, 0.5)))
        for small in 10.0 ** -np.arange(1, 9):
            charge_while_affordable(account, self.cost(np.full(3, small)), most=200)
        before = state(account)
        assert account.affords(self.cost(np.zeros(3)))
        account.charge(self.cost(np.zeros(3)))
        assert state(account) == before

    # -------------------------------------------------------------------------------- monotonicity

    @for_every_accountant
    @given(first=workloads, more=strengths)
    def test_more_queries_never_cost_less(self, first, more):
        account = self.new(np.full(3, np.inf))
        for strength in first:
            account.charge(self.cost(strength))
        before = account.epsilon_spent()
        account.charge(self.cost(more))
        assert (account.epsilon_spent() >= before * ONE_LESS).all()

    @for_every_accountant
    @given(work=workloads, factor=st.floats(1.0, 5.0))
    def test_more_weight_or_less_noise_never_costs_less(self, work, factor):
        weak, strong = self.new(np.full(3, np.inf)), self.new(np.full(3, np.inf))
        for strength in work:
            weak.charge(self.cost(strength))
            strong.charge(self.cost(strength * factor))
        assert (strong.epsilon_spent() >= weak.epsilon_spent() * ONE_LESS).all()

    def test_twice_the_influence_costs_much_more(self):
        spent = []
        for strength in (0.5, 1.0, 2.0):
            account = self.new(np.full(3, np.inf))
            for _ in range(20):
                account.charge(self.cost(np.full(3, strength)))
            spent.append(account.epsilon_spent()[0])
        assert spent[1] > 1.5 * spent[0]
        assert spent[2] > 1.5 * spent[1]

    @pytest.mark.parametrize("factor", [1.5, 2.0, 4.0])
    def test_a_larger_budget_never_buys_fewer_queries(self, factor):
        cost = self.cost(np.full(3, 0.7))
        few = charge_while_affordable(self.new(EPSILONS), cost)
        many = charge_while_affordable(self.new(EPSILONS * factor), cost)
        assert 0 < few < many

    # ------------------------------------------------------------------------------------ refusals

    def test_a_refusal_leaves_the_account_as_it_was(self):
        account = self.new(EPSILONS, names=["strict", "middle", "generous"])
        cost = self.cost(np.full(3, 0.9))
        charge_while_affordable(account, cost)
        before = state(account)
        assert not account.affords(cost)
        assert account.overspent(cost)[0]
        with pytest.raises(BudgetExceededError, match="'strict'") as refusal:
            account.charge(cost)
        assert "\n" not in str(refusal.value)
        assert state(account) == before

    @pytest.mark.parametrize("cohort", [0, 1, 2])
    def test_nobody_is_charged_if_one_cohort_cannot_pay(self, cohort):
        account = self.new(EPSILONS, names=["first", "second", "third"])
        account.charge(self.cost(np.full(3, 0.1)))
        before = state(account)
        strength = np.full(3, 0.1)
        strength[cohort] = 1e4
        assert account.overspent(self.cost(strength)).tolist() == [i == cohort for i in range(3)]
        with pytest.raises(BudgetExceededError, match=account.names[cohort]):
            account.charge(self.cost(strength))
        assert state(account) == before

    def test_reading_changes_nothing(self):
        account = self.new(EPSILONS)
        for strength in (0.3, 0.2):
            account.charge(self.cost(np.full(3, strength)))
        before = state(account)
        first = account.epsilon_spent()
        for strength in (0.0, 0.1, 1e6):
            account.affords(self.cost(np.full(3, strength)))
            account.overspent(self.cost(np.full(3, strength)))
        account.epsilon_spent()[:] = 0.0  # what is handed out is the caller's own
        assert (account.epsilon_spent() == first).all()
        assert state(account) == before

    def test_costs_that_make_no_sense_are_refused(self):
        account = self.new(EPSILONS)
        account.charge(self.cost(np.full(3, 0.1)))
        before = state(account)
        for cost in self.broken_costs():
            for use in (account.affords, account.overspent, account.charge):
                with pytest.raises(InputError):
                    use(cost)
        assert state(account) == before

    @pytest.mark.parametrize(
        ("epsilon", "delta"),
        [
            ([], 1e-5),
            ([0.0], 1e-5),
            ([-1.0], 1e-5),
            ([math.nan], 1e-5),
            ([1.0], 0.0),
            ([1.0], 1.0),
            ([1.0], math.nan),
            ([[1.0]], 1e-5),
        ],
    )
    def test_budgets_that_make_no_sense_are_refused(self, epsilon, delta):
        with pytest.raises(InputError):
            self.new(epsilon, delta)

    def test_every_cohort_has_one_name(self):
        with pytest.raises(InputError, match="names"):
            self.new(EPSILONS, names=["only", "two"])

    # ------------------------------------------------------------------------------- many cohorts

    @for_every_accountant
    @given(work=workloads, order=st.permutations([0, 1, 2]))
    def test_cohorts_permute_freely(self, work, order):
        order = np.array(order)
        deltas = np.array([1e-5, 1e-6, 1e-5])
        account = self.new(EPSILONS, deltas)
        permuted = self.new(EPSILONS[order], deltas[order])
        for strength in work:
            over = account.overspent(self.cost(strength))
            assert (permuted.overspent(self.cost(strength[order])) == over[order]).all()
            if not over.any():
                account.charge(self.cost(strength))
                permuted.charge(self.cost(strength[order]))
        assert rows(permuted) == [rows(account)[cohort] for cohort in order]
        expected = account.epsilon_spent()[order]
        assert permuted.epsilon_spent() == pytest.approx(expected, rel=1e-13)

    @for_every_accountant
    @given(work=workloads)
    def test_cohorts_are_accounted_as_if_each_was_alone(self, work):
        together = self.new(np.full(3, np.inf))
        alone = [self.new([np.inf]) for _ in range(3)]
        for strength in work:
            together.charge(self.cost(strength))
            for cohort in range(3):
                alone[cohort].charge(self.cost(strength[[cohort]]))
        assert rows(together) == [rows(account)[0] for account in alone]
        separate = [account.epsilon_spent()[0] for account in alone]
        assert together.epsilon_spent() == pytest.approx(separate, rel=1e-13, abs=1e-15)

    @for_every_accountant
    @given(strength=st.floats(1e-6, 2.0), cohort=st.integers(0, 2))
    def test_charging_one_cohort_never_touches_another(self, strength, cohort):
        account = self.new(np.full(3, np.inf))
        account.charge(self.cost(np.array([0.3, 0.2, 0.1])))
        booked, spent = rows(account), account.epsilon_spent()
        only = np.zeros(3)
        only[cohort] = strength
        account.charge(self.cost(only))
        others = np.flatnonzero(np.arange(3) != cohort)
        assert rows(account)[cohort] != booked[cohort]
        assert [rows(account)[other] for other in others] == [booked[other] for other in others]
        assert account.epsilon_spent()[others] == pytest.approx(spent[others], rel=1e-13)

    def test_one_cohort_running_out_does_not_make_the_others_pay(self):
        account = self.new(EPSILONS)
        charge_while_affordable(account, self.cost(np.array([1.0, 0.0, 0.0])))
        assert account.affords(self.cost(np.array([0.0, 1.0, 1.0])))

    # -------------------------------------------------------------------------------------- limits

    def test_infinite_budgets_never_limit(self):
        account = self.new([np.inf, np.inf, 1.0])
        account.charge(self.cost(np.array([1e6, 3.0, 0.01])))
        assert account.affords(self.cost(np.array([1e6, 1e6, 0.01])))
        assert account.overspent(self.cost(np.full(3, 1e6))).tolist() == [False, False, True]
        assert not np.isnan(account.epsilon_spent()).any()

    @for_every_accountant
    @given(
        work=st.lists(strengths, max_size=40),
        epsilon=st.lists(st.floats(0.01, 20.0), min_size=3, max_size=3),
        delta=st.sampled_from([1e-10, 1e-5, 0.01]),
    )
    def test_spending_never_exceeds_the_budget(self, work, epsilon, delta):
        account = self.new(epsilon, delta)
        for strength in work:
            try:
                account.charge(self.cost(strength))
            except BudgetExceededError:
                assert not account.affords(self.cost(strength))
        assert (account.epsilon_spent() <= epsilon).all()

    @pytest.mark.parametrize("epsilon", [0.03, 0.5, 1.0, 2.0, 7.0, 20.0])
    def test_spending_reaches_the_budget_and_no_more(self, epsilon):
        """Fill up with ever smaller costs: what is left at the end is next to nothing."""
        account = self.new([epsilon])
        for step in range(60):
            charge_while_affordable(account, self.cost(np.array([20 * 0.8**step])), most=40)
        assert account.epsilon_spent()[0] <= epsilon
        assert account.epsilon_spent()[0] >= 0.98 * epsilon

    def test_nobody_can_change_a_budget_behind_the_accounts_back(self):
        epsilon, delta = np.full(3, 1.0), np.full(3, 1e-5)
        account = self.new(epsilon, delta)
        epsilon *= 100
        delta *= 100
        assert (account.epsilon == 1.0).all()
        assert (account.delta == 1e-5).all()


class TestWorstCaseWithGaussianCosts(Conformance):
    def new(self, epsilon, delta=1e-5, names=None):
        return WorstCaseAccountant(epsilon, delta, names)

    def cost(self, strength):
        return WorstCaseCost(0.01 * strength**2, np.where(strength > 0, np.inf, 0.0))

    def broken_costs(self):
        good = np.full(3, 0.1)
        for bad in (np.array([0.1, np.nan, 0.1]), np.array([0.1, -0.1, 0.1]), good[:2], good[None]):
            yield WorstCaseCost(bad, good)
            yield WorstCaseCost(good, bad)


class TestWorstCaseWithPureCosts(Conformance):
    def new(self, epsilon, delta=1e-5, names=None):
        return WorstCaseAccountant(epsilon, delta, names)

    def cost(self, strength):
        pure = 0.1 * strength
        return WorstCaseCost(np.array([pure_to_gdp(float(value)) ** 2 for value in pure]), pure)

    def broken_costs(self):
        yield WorstCaseCost(np.full(2, 0.1), np.full(2, 0.1))
        yield WorstCaseCost(np.full(3, np.nan), np.full(3, 0.1))
        yield WorstCaseCost(np.full(3, 0.1), np.array([0.1, 0.1, -1e-300]))


class DataDependentConformance(Conformance):
    conversion = ""

    def new(self, epsilon, delta=1e-5, names=None):
        return DataDependentAccountant(epsilon, delta, DEFAULT_ORDERS, self.conversion, names)

    def cost(self, strength):
        return 0.005 * strength[:, None] ** 2 * DEFAULT_ORDERS

    def broken_costs(self):
        good = self.cost(np.full(3, 0.1))
        for bad in (np.nan, -1e-300):
            cost = good.copy()
            cost[1, 7] = bad
            yield cost
        yield good[:2]
        yield good[:, :-1]
        yield good[0]


class TestDataDependentCanonne(DataDependentConformance):
    conversion = "canonne"


class TestDataDependentMironov(DataDependentConformance):
    conversion = "mironov"


# -------------------------------------------------------------------------- worst case: the numbers


def exact_delta(mu, epsilon):
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.exp(epsilon) * mpmath.ncdf(
        -epsilon / mu - mu / 2
    )


def gaussian(mu_squared):
    mu_squared = np.atleast_1d(np.asarray(mu_squared, dtype=np.float64))
    return WorstCaseCost(mu_squared, np.full(mu_squared.shape, np.inf))


def pure(epsilon):
    return WorstCaseCost(np.array([pure_to_gdp(epsilon) ** 2]), np.array([epsilon]))


def confident(n_checks, n_answers, sigma_threshold=150.0, sigma=40.0):
    account = WorstCaseAccountant([np.inf], 1e-5)
    for _ in range(n_checks):
        account.charge(gaussian(1 / sigma_threshold**2))
    for _ in range(n_answers):
        account.charge(gaussian(2 / sigma**2))
    return float(account.epsilon_spent()[0])


def test_published_mnist_votes_cost_two_and_a_half():
    assert confident(n_checks=640, n_answers=283) == pytest.approx(2.53, abs=0.03)


def test_checks_alone_cost():
    assert confident(n_checks=2000, n_answers=0) == pytest.approx(1.12, abs=0.01)


@settings(max_examples=30)
@given(
    costs=st.lists(st.floats(1e-6, 0.3), min_size=1, max_size=50),
    delta=st.sampled_from([1e-10, 1e-5, 0.01]),
)
def test_epsilon_of_added_squares_is_right_to_nine_digits_and_never_too_small(costs, delta):
    account = WorstCaseAccountant([np.inf], delta)
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
    account = WorstCaseAccountant([np.inf], 1e-5)
    for cost in costs:
        account.charge(WorstCaseCost(np.array([cost]), np.array([cost])))
    exact = sum(map(Fraction, costs), Fraction(0))
    for total in (account.mu_squared[0], account.pure_epsilon[0]):
        assert exact <= Fraction(float(total)) <= exact * (1 + Fraction(len(costs), 2**50))


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_the_cost_of_two_mechanisms_is_never_below_the_exact_sum(one, other):
    both = gaussian(one) + gaussian(other)
    assert Fraction(float(both.mu_squared[0])) >= Fraction(one) + Fraction(other)


@settings(max_examples=100)
@given(st.floats(-2, 1.7).map(lambda x: 10.0**x), st.sampled_from([1e-10, 1e-5, 0.01]))
def test_the_filter_stops_before_the_true_delta_is_exceeded(epsilon, delta):
    account = WorstCaseAccountant([epsilon], delta)
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
    account = WorstCaseAccountant([1.0], 1e-5)
    done = charge_while_affordable(account, pure(0.09))
    assert done == 11
    assert account.mu_squared[0] > gdp_mu(1.0, 1e-5) ** 2
    assert 0.99 <= account.epsilon_spent()[0] <= 1.0


def test_pure_mechanisms_may_use_the_gaussian_filter_when_it_allows_more():
    account = WorstCaseAccountant([3.0], 1e-5)
    done = charge_while_affordable(account, pure(0.01))
    assert done == math.floor(gdp_mu(3.0, 1e-5) ** 2 / pure_to_gdp(0.01) ** 2)
    assert done > 3.0 / 0.01
    assert account.pure_epsilon[0] > 3.0
    assert 2.99 <= account.epsilon_spent()[0] <= 3.0


def test_one_gaussian_answer_closes_the_pure_filter():
    account = WorstCaseAccountant([1.0], 1e-5)
    account.charge(gaussian(1e-9))
    done = charge_while_affordable(account, pure(0.09))
    assert done == math.floor((gdp_mu(1.0, 1e-5) ** 2 - 1e-9) / pure_to_gdp(0.09) ** 2)
    assert account.epsilon_spent()[0] <= 1.0


def test_a_gaussian_answer_is_refused_when_only_the_pure_filter_is_still_open():
    account = WorstCaseAccountant([1.0], 1e-5)
    charge_while_affordable(account, pure(0.09))
    assert not account.affords(gaussian(1e-12))


# -------------------------------------------------------------------- data-dependent: what is refused


@pytest.mark.parametrize("conversion", ["", "exact", "Canonne"])
def test_unknown_conversions_are_refused_before_anything_is_charged(conversion):
    with pytest.raises(InputError, match="conversion"):
        DataDependentAccountant([1.0], 1e-5, SEED_ORDERS, conversion)


def test_the_looser_conversion_never_allows_more():
    spent = {}
    for conversion in ("canonne", "mironov"):
        account = DataDependentAccountant([np.inf], 1e-5, SEED_ORDERS, conversion)
        account.charge(0.02 * SEED_ORDERS[None])
        spent[conversion] = account.epsilon_spent()[0]
    assert spent["canonne"] < spent["mironov"]


def test_accounts_say_which_guarantee_they_keep():
    assert WorstCaseAccountant([1.0], 1e-5).guarantee == "worst-case"
    assert DataDependentAccountant([1.0], 1e-5, SEED_ORDERS).guarantee == "data-dependent"
