"""One suite of promises that every accountant keeps; a test of an accountant inherits it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collegium.accounting import BoundedRange, Composition, Laplace, Neighbours, PureNoise
from collegium.accounting.events import Nothing
from collegium.errors import BudgetExceededError, InputError

# Each subclass runs the same property on its own accountant, so examples are not kept between them.
for_every_accountant = settings(
    max_examples=60,
    deadline=None,
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

    has_delta = True

    def new(self, epsilon, delta=1e-5, names=None, neighbours=Neighbours.ANY_CHANGE):
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

    def test_many_charges_at_once_are_those_in_a_row_to_the_last_bit(self):
        in_a_row, at_once = self.new(np.full(3, np.inf)), self.new(np.full(3, np.inf))
        for amount, times in ((0.013, 0), (0.013, 1), (0.2, 77), (1e-7, 300)):
            cost = self.cost(amount * np.array([1.0, 0.5, 0.0]))
            for _ in range(times):
                in_a_row.charge(cost)
            at_once.charge(cost, times=times)
            assert state(at_once) == state(in_a_row)
        with pytest.raises(InputError, match="times must lie between 0 and"):
            at_once.charge(cost, times=-1)
        limited = self.new(EPSILONS)
        before = state(limited)
        with pytest.raises(BudgetExceededError):
            limited.charge(self.cost(np.full(3, 0.5)), times=10**9)
        assert state(limited) == before

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
        for cost in (*self.broken_costs(), None, 0.1, [0.1, 0.1, 0.1], np.full(3, 0.1), "cheap"):
            for use in (account.affords, account.overspent, account.charge):
                with pytest.raises(InputError):
                    use(cost)
        assert state(account) == before

    @pytest.mark.parametrize("epsilon", [[], [0.0], [-1.0], [math.nan], [[1.0]]])
    def test_budgets_that_make_no_sense_are_refused(self, epsilon):
        with pytest.raises(InputError):
            self.new(epsilon)

    @pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
    def test_deltas_that_make_no_sense_are_refused(self, delta):
        if not self.has_delta:
            pytest.skip("an account without any δ")
        with pytest.raises(InputError):
            self.new([1.0], delta)

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
        assert (account.delta == (1e-5 if self.has_delta else 0.0)).all()

    # --------------------------------------------------------------------- neighbours and events

    def test_what_holds_about_any_change_holds_about_each_kind_and_not_the_reverse(self):
        nothing = Nothing(3)
        any_change, each = Neighbours.ANY_CHANGE, (Neighbours.REPLACE, Neighbours.ADD_OR_REMOVE)
        for kind in each:
            narrow = self.new(EPSILONS, neighbours=kind)
            narrow.charge(replace(nothing, neighbours=kind))
            narrow.charge(replace(self.cost(np.full(3, 0.1)), neighbours=any_change))
            before = state(narrow)
            (other,) = set(each) - {kind}
            for account, cost in ((narrow, other), (self.new(EPSILONS), kind)):
                for use in (account.affords, account.preview, account.how_many, account.charge):
                    with pytest.raises(InputError, match="other neighbours"):
                        use(replace(self.cost(np.full(3, 0.1)), neighbours=cost))
            assert state(narrow) == before

    @pytest.mark.parametrize(
        "event",
        [
            Laplace([1.0, 0.5, 0.0], 0.01),
            PureNoise([0.01, 0.02, 0.0]),
            BoundedRange([0.01, 0.02, 0.0]),
        ],
        ids=lambda event: type(event).__name__,
    )
    def test_pure_events_are_charged_to_any_account_and_composed_as_one_by_one(self, event):
        one_by_one, at_once = self.new(EPSILONS), self.new(EPSILONS)
        for _ in range(7):
            one_by_one.charge(event)
        at_once.charge(Composition([event], [7]))
        spent = one_by_one.epsilon_spent()
        assert spent[2] == 0 and (spent[:2] > 0).all()
        assert at_once.epsilon_spent() == pytest.approx(spent, rel=1e-12)

    def test_a_refusal_names_the_event_and_the_group(self):
        account = self.new(EPSILONS, names=["strict", "middle", "generous"])
        with pytest.raises(
            BudgetExceededError, match="Laplace noise would overspend group 'middle'"
        ):
            account.charge(Laplace([0.0, 1e3, 0.0], 1.0))
        assert (account.epsilon_spent() == 0).all()
