"""Odometer and filter: dry runs, what is left, how many more, and states that go through JSON."""

import json
import math

import numpy as np
import pytest
from amounts import Amounts
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.accounting import (
    DEFAULT_ORDERS,
    GaussianAccountant,
    Laplace,
    PureAccountant,
    PureNoise,
    RenyiAccountant,
    gaussian_rdp,
    gdp_mu,
    pure_to_gdp,
    rdp_to_epsilon,
)
from collegium.accounting.bookkeeping import add_repeatedly, add_up, as_json, from_json
from collegium.accounting.events import SensitiveCurve
from collegium.accounting.renyi import SEED_ORDERS, affordable_rdp
from collegium.errors import BudgetExceededError, InputError

EPSILONS = [1.0, 2.0, math.inf]


def gaussian_cost(strength):
    return Amounts(0.004 * strength**2, np.where(strength > 0, np.inf, 0.0))


def pure_cost(strength):
    pure = 0.07 * strength
    return Amounts(np.array([pure_to_gdp(float(value)) ** 2 for value in pure]), pure)


def renyi_cost(strength):
    return SensitiveCurve(0.002 * strength[:, None] ** 2 * DEFAULT_ORDERS, DEFAULT_ORDERS)


def data_dependent(epsilon=EPSILONS, delta=1e-5):
    return RenyiAccountant(epsilon, delta, DEFAULT_ORDERS, sensitive=True)


KINDS = {
    "gaussian": (lambda: GaussianAccountant(EPSILONS, 1e-5), gaussian_cost),
    "pure": (lambda: GaussianAccountant(EPSILONS, 1e-5), pure_cost),
    "renyi": (data_dependent, renyi_cost),
    "public renyi": (
        lambda: RenyiAccountant(EPSILONS, 1e-5),
        lambda strength: Laplace(strength, inverse_scale=0.04),
    ),
    "only pure": (lambda: PureAccountant(EPSILONS), lambda strength: PureNoise(0.05 * strength)),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def charged(account, cost):
    done = 0
    while account.affords(cost):
        account.charge(cost)
        done += 1
    return done


# ------------------------------------------------------------------------------------- adding often


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)), min_size=1, max_size=4),
    st.integers(0, 400),
)
def test_adding_repeatedly_is_what_a_loop_gives_bit_for_bit(pairs, times):
    total, cost = (np.array(column) for column in zip(*pairs, strict=True))
    expected = total
    for _ in range(times):
        expected = add_up(expected, cost)
    assert add_repeatedly(total, cost, times).tobytes() == expected.tobytes()


@pytest.mark.parametrize("bits", [1, 3, 20, 51, 52, 53, 54, 60])
def test_also_where_the_cost_lies_half_way_between_two_floats(bits):
    """1 + k/2 units in the last place of the total, at every parity of the total."""
    total = 1.0 + np.arange(8) * 2.0**-52
    cost = np.full(8, (2.0**bits + 1) * 2.0**-53)
    expected = total
    for _ in range(3000):
        expected = add_up(expected, cost)
    assert (add_repeatedly(total, cost, 3000) == expected).all()


def test_adding_repeatedly_keeps_infinity_and_nothing():
    total, cost = np.array([0.0, 1.0, np.inf, 2.0]), np.array([np.inf, 0.0, 1.0, 0.0])
    assert add_repeatedly(total, cost, 5).tolist() == [math.inf, 1.0, math.inf, 2.0]


# ---------------------------------------------------------------------------------------- how many


@every_kind
@settings(max_examples=25)
@given(before=st.integers(0, 3), strength=st.floats(0.15, 3.0), tilt=st.floats(0.0, 2.0))
def test_how_many_is_exactly_as_often_as_charging_succeeds(kind, before, strength, tilt):
    new, cost_of = KINDS[kind]
    account = new()
    cost = cost_of(np.array([strength, tilt * strength, strength]))
    for _ in range(before):
        if account.affords(cost):
            account.charge(cost)
    state = account.state()
    predicted = account.how_many(cost)
    assert account.state() == state
    assert charged(account, cost) == predicted


@every_kind
def test_a_million_charges_are_counted_without_charging(kind):
    new, cost_of = KINDS[kind]
    cost = cost_of(np.full(3, 5e-3))
    many = new().how_many(cost)
    assert isinstance(many, int)
    assert many > 2000
    assert [new().how_many(cost, most) for most in (1, many, many + 1)] == [
        math.inf,
        math.inf,
        many,
    ]
    full, account = new(), new()
    full._total = add_repeatedly(full._total, full._checked(cost), many)
    assert not full.affords(cost)
    account._total = add_repeatedly(account._total, account._checked(cost), many - 1)
    account.charge(cost)
    with pytest.raises(BudgetExceededError):
        account.charge(cost)


@every_kind
def test_nothing_and_unlimited_budgets_never_refuse(kind):
    new, cost_of = KINDS[kind]
    account = new()
    assert account.how_many(cost_of(np.zeros(3))) == math.inf
    assert account.how_many(cost_of(np.array([0.0, 0.0, 2.0]))) == math.inf
    assert account.how_many(cost_of(np.array([1e9, 0.0, 0.0]))) == 0


# --------------------------------------------------------------------------------- preview and left


@every_kind
def test_a_preview_is_what_is_spent_afterwards_and_changes_nothing(kind):
    new, cost_of = KINDS[kind]
    account = new()
    for strength in (0.5, 0.1, 0.7):
        cost = cost_of(np.array([strength, 0.3, 1.0]))
        before = account.state()
        expected = account.preview(cost)
        assert account.state() == before
        account.charge(cost)
        assert account.epsilon_spent().tolist() == expected.tolist()
    beyond = account.preview(cost_of(np.full(3, 50.0)))
    assert (beyond[:2] > [1.0, 2.0]).all()


@every_kind
def test_what_is_left_shrinks_from_the_whole_budget(kind):
    new, cost_of = KINDS[kind]
    account = new()
    assert account.remaining().epsilon.tolist() == EPSILONS
    last = account.remaining().epsilon
    while account.affords(cost_of(np.ones(3))):
        account.charge(cost_of(np.ones(3)))
        left = account.remaining().epsilon
        assert (left[:2] < last[:2]).all()
        assert (left[:2] + account.epsilon_spent()[:2] <= account.epsilon[:2]).all()
        assert left[2] == math.inf
        last = left
    assert (last >= 0).all()


@settings(max_examples=100)
@given(st.lists(st.floats(1e-6, 0.05), max_size=30), st.floats(0.05, 5.0))
def test_what_is_left_in_mu_can_be_spent_and_not_much_more(costs, epsilon):
    account = GaussianAccountant([epsilon], 1e-5)
    for cost in costs:
        if account.affords(Amounts(np.array([cost]), np.array([np.inf]))):
            account.charge(Amounts(np.array([cost]), np.array([np.inf])))
    mu = account.remaining().mu
    limit = gdp_mu(epsilon, 1e-5) ** 2
    assert account.affords(Amounts(mu**2, np.array([np.inf])))
    more = mu**2 + 1e-11 * limit
    assert not account.affords(Amounts(more, np.array([np.inf])))


def test_a_data_dependent_account_has_no_mu_left():
    assert data_dependent().remaining().mu is None


# --------------------------------------------------------------------------------------------- state


@every_kind
def test_a_state_goes_through_json_without_losing_a_bit(kind):
    new, cost_of = KINDS[kind]
    account = new()
    for strength in (0.1, 1 / 3, 0.7):
        account.charge(cost_of(np.array([strength, 0.0, 0.2])))
    text = json.dumps(account.state(), allow_nan=False)
    other = new()
    other.restore(json.loads(text))
    assert other._total.tobytes() == account._total.tobytes()
    assert json.dumps(other.state()) == text
    assert other.epsilon_spent().tolist() == account.epsilon_spent().tolist()
    cost = cost_of(np.full(3, 0.1))
    assert other.how_many(cost) == account.how_many(cost)


@given(st.lists(st.floats(min_value=0, allow_infinity=True, allow_nan=False), min_size=1))
def test_numbers_survive_json_exactly(values):
    array = np.array(values)
    back = from_json(json.loads(json.dumps(as_json(array), allow_nan=False)), "x", array.shape)
    assert back.tobytes() == (array + 0.0).tobytes()


@every_kind
@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        ("guarantee", "best-case", "guarantee"),
        ("neighbours", "replace", "neighbours"),
        ("notion", "best", "notion"),
        ("names", ["a", "b", "c"], "names"),
        ("epsilon", [1.0, 2.0, 3.0], "epsilon"),
        ("delta", [1e-5, 1e-5, 1e-6], "delta"),
        ("spent", None, "damaged"),
        ("spent", [[0.0, 0.0]], "damaged"),
        ("spent", [[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]], "damaged"),
        ("spent", [[0.0, 0.0, math.nan], [0.0, 0.0, 0.0]], "damaged"),
        ("spent", [[0.0, 0.0, "1"], [0.0, 0.0, 0.0]], "damaged"),
        ("spent", [[0.0, 0.0, True], [0.0, 0.0, 0.0]], "damaged"),
    ],
)
def test_the_state_of_another_account_is_refused_in_one_line(kind, entry, value, words):
    new, cost_of = KINDS[kind]
    account = new()
    account.charge(cost_of(np.full(3, 0.2)))
    before = account.state()
    for state in ({**before, entry: value}, {k: v for k, v in before.items() if k != entry}):
        with pytest.raises(InputError) as refusal:
            account.restore(state)
        assert "\n" not in str(refusal.value)
        assert account.state() == before
    with pytest.raises(InputError, match=words):
        account.restore({**before, entry: value})


@pytest.mark.parametrize("state", [None, [], "state", 3])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(InputError, match="nothing was restored"):
        GaussianAccountant([1.0], 1e-5).restore(state)


def test_states_of_other_orders_or_conversions_are_refused():
    account = data_dependent()
    for other in (
        RenyiAccountant(EPSILONS, 1e-5, SEED_ORDERS, sensitive=True),
        RenyiAccountant(EPSILONS, 1e-5, DEFAULT_ORDERS, "mironov", sensitive=True),
        RenyiAccountant(EPSILONS, 1e-5, DEFAULT_ORDERS),
        GaussianAccountant(EPSILONS, 1e-5),
    ):
        with pytest.raises(InputError, match="another account"):
            account.restore(other.state())


# -------------------------------------------------------------------- the filter without conversion


@pytest.mark.parametrize("conversion", ["canonne", "mironov"])
@settings(max_examples=150)
@given(
    epsilon=st.one_of(st.floats(0.01, 20.0), st.just(math.inf)),
    delta=st.sampled_from([1e-10, 1e-5, 0.3]),
    sigma=st.floats(0.05, 1e5),
    factor=st.floats(0.5, 2.0),
)
def test_affordable_costs_decide_exactly_as_the_conversion_does(
    conversion, epsilon, delta, sigma, factor
):
    limits = affordable_rdp(epsilon, DEFAULT_ORDERS, delta, conversion)
    rdp = gaussian_rdp(factor, sigma, DEFAULT_ORDERS)
    within = rdp_to_epsilon(rdp, DEFAULT_ORDERS, delta, conversion)[0] <= epsilon
    assert (rdp <= limits).any() == within


@pytest.mark.parametrize("conversion", ["canonne", "mironov"])
def test_affordable_costs_are_the_largest(conversion):
    limits = affordable_rdp(1.5, SEED_ORDERS, 1e-6, conversion)
    for column, limit in enumerate(limits):
        rdp = np.full(SEED_ORDERS.size, np.inf)
        rdp[column] = limit
        assert rdp_to_epsilon(rdp, SEED_ORDERS, 1e-6, conversion)[0] <= 1.5
        rdp[column] = np.nextafter(limit, np.inf)
        assert rdp_to_epsilon(rdp, SEED_ORDERS, 1e-6, conversion)[0] > 1.5


def test_sensitive_costs_add_up():
    strength = np.array([0.2, 0.1, 0.3])
    one = renyi_cost(strength)
    account, one_by_one = data_dependent(), data_dependent()
    account.charge(one + one)
    total = add_up(one.sensitive_rdp, one.sensitive_rdp)
    one_by_one.charge(SensitiveCurve(total, DEFAULT_ORDERS))
    assert account.state() == one_by_one.state()


def test_nothing_is_charged_more_often_than_floats_can_count():
    account = PureAccountant([math.inf])
    account.charge(PureNoise([0.0]), times=2**53)
    with pytest.raises(InputError, match="times must lie between 0 and 9,007,199,254,740,992"):
        account.charge(PureNoise([0.0]), times=2**53 + 1)
