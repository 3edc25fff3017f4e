"""Bad input: each a clear error, in one line, before anything is charged."""

import math

import numpy as np
import pytest
from amounts import Amounts

from collegium import ConfidentGNMax, GNMax, LNMax
from collegium.accounting import (
    GaussianAccountant,
    Neighbours,
    RenyiAccountant,
    gaussian_rdp,
    gdp_epsilon,
    gdp_mu,
    rdp_to_epsilon,
)
from collegium.accounting.events import SensitiveCurve
from collegium.accounting.renyi import SEED_ORDERS
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    lnmax_log_q,
    lnmax_pure_epsilon,
    threshold_rdp_data_independent,
)
from collegium.errors import InputError

ANY_CHANGE, REPLACED = Neighbours.ANY_CHANGE, Neighbours.REPLACE
VOTES = np.array([[200.0, 50.0], [150.0, 100.0]])
NAN = math.nan


def refused(call, *words):
    with pytest.raises(InputError) as refusal:
        call()
    message = str(refusal.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


@pytest.mark.parametrize("orders", [[1.0], [0.5, 2.0], [2.0, NAN], [math.inf], [-3.0], [], "many"])
@pytest.mark.parametrize(
    "use",
    [
        lambda orders: RenyiAccountant([1.0], 1e-5, orders),
        lambda orders: gaussian_rdp(1.0, 1.0, orders),
        lambda orders: gnmax_rdp([-1.0], [1.0], 1.0, orders),
        lambda orders: rdp_to_epsilon([0.1], orders, 1e-5),
    ],
)
def test_orders_up_to_one_are_refused(use, orders):
    refused(lambda: use(orders), "orders")


@pytest.mark.parametrize("sigma", [0.0, -1.0, NAN, math.inf, "wide"])
@pytest.mark.parametrize(
    "use",
    [
        lambda sigma: gaussian_rdp(1.0, sigma, [2.0]),
        lambda sigma: gnmax_log_q(VOTES, sigma),
        lambda sigma: gnmax_rdp([-1.0], [1.0], sigma, [2.0]),
        lambda sigma: threshold_rdp_data_independent([1.0], sigma, [2.0]),
        lambda sigma: lnmax_log_q(VOTES, sigma),
        lambda sigma: GNMax(sigma),
        lambda sigma: LNMax(sigma),
        lambda sigma: ConfidentGNMax(200.0, sigma, 40.0),
        lambda sigma: ConfidentGNMax(200.0, 150.0, sigma),
    ],
)
def test_noise_without_width_is_refused(use, sigma):
    refused(lambda: use(sigma))


@pytest.mark.parametrize("weight", [-1.0, -1e-300, NAN, math.inf])
@pytest.mark.parametrize(
    "use",
    [
        lambda weight: gaussian_rdp(weight, 1.0, [2.0]),
        lambda weight: gnmax_rdp([-1.0], [1.0, weight], 1.0, [2.0]),
        lambda weight: lnmax_pure_epsilon([weight], 0.05),
    ],
)
def test_negative_weights_are_refused(use, weight):
    refused(lambda: use(weight))


def test_counts_beyond_the_ballots_weight_are_refused_before_anything_is_priced(house):
    from collegium.pate.voting.pricing import DataDependentPricing

    electorate = house.plan("weighting", 100).electorate(0)
    pricing = DataDependentPricing(GNMax(20.0), electorate)
    refused(lambda: pricing.prices([electorate.ballot(0)], np.array([[70.0, 40.0]])), "weight")
    assert (pricing.accountant.epsilon_spent() == 0).all()
    pricing.prices([electorate.ballot(0)], np.array([[60.0, 40.0]]))
    pricing.prices([electorate.ballot(0)], np.array([[60.0, 30.0]]))  # some abstain


@pytest.mark.parametrize("counts", [[[NAN, 1.0]], [[1.0, -1.0]], [[math.inf, 0.0]], [[3.0]], [3.0]])
def test_counts_that_are_no_votes_are_refused(counts):
    refused(lambda: gnmax_log_q(counts, 1.0), "counts")


@pytest.mark.parametrize("delta", [0.0, -1e-5, 1.0, 2.0, NAN])
@pytest.mark.parametrize(
    "use",
    [
        lambda delta: GaussianAccountant([1.0], delta),
        lambda delta: RenyiAccountant([1.0], delta, SEED_ORDERS),
        lambda delta: gdp_mu(1.0, delta),
        lambda delta: gdp_epsilon(1.0, delta),
        lambda delta: rdp_to_epsilon([0.1], [2.0], delta),
    ],
)
def test_delta_zero_is_refused(use, delta):
    refused(lambda: use(delta), "delta")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, NAN])
def test_budgets_without_epsilon_are_refused(epsilon):
    refused(lambda: GaussianAccountant([1.0, epsilon], 1e-5), "epsilon")


# ------------------------------------------------------------------------- costs that mean another thing

SMALL = np.full(2, 0.001)
RDP = np.full((2, SEED_ORDERS.size), 0.001)


def accounts():
    return (
        GaussianAccountant([1.0, 2.0], 1e-5),
        RenyiAccountant([1.0, 2.0], 1e-5, SEED_ORDERS, sensitive=True),
    )


def never_charged(account, cost, *words):
    before = account.state()
    for use in (
        account.affords,
        account.overspent,
        account.preview,
        account.how_many,
        account.charge,
    ):
        refused(lambda use=use: use(cost), *words)
    assert account.state() == before


def test_sensitive_costs_never_enter_a_public_account():
    for account in (accounts()[0], RenyiAccountant([1.0, 2.0], 1e-5, SEED_ORDERS)):
        cost = SensitiveCurve(RDP, SEED_ORDERS)
        never_charged(account, cost, "data-dependent cost", "worst-case account")


def test_bare_numbers_are_no_costs():
    for account in accounts():
        never_charged(account, RDP, "no cost")


def test_costs_about_other_neighbours_are_refused():
    public, sensitive = accounts()
    words = (REPLACED.in_words, ANY_CHANGE.in_words)
    never_charged(public, Amounts(SMALL, SMALL, neighbours=REPLACED), *words)
    never_charged(sensitive, SensitiveCurve(RDP, SEED_ORDERS, REPLACED), *words)
    other = GaussianAccountant([1.0, 2.0], 1e-5, neighbours=REPLACED)
    never_charged(other, Amounts(SMALL, SMALL, neighbours=Neighbours.ADD_OR_REMOVE), words[0])
    other.charge(Amounts(SMALL, SMALL, neighbours=REPLACED))
    other.charge(Amounts(SMALL, SMALL))


def test_costs_at_other_orders_are_refused():
    sensitive = accounts()[1]
    never_charged(sensitive, SensitiveCurve(RDP, SEED_ORDERS + 0.5), "orders")
    never_charged(sensitive, SensitiveCurve(RDP[:, 1:], SEED_ORDERS[1:]), "orders")


def test_costs_that_mean_different_things_do_not_add_up():
    cost = Amounts(SMALL, SMALL, neighbours=Neighbours.ADD_OR_REMOVE)
    refused(lambda: cost + Amounts(SMALL, SMALL, neighbours=REPLACED), "neighbours")
    one = SensitiveCurve(RDP, SEED_ORDERS, Neighbours.ADD_OR_REMOVE)
    refused(lambda: one + SensitiveCurve(RDP, SEED_ORDERS, REPLACED), "neighbours")
    refused(lambda: one + SensitiveCurve(RDP, SEED_ORDERS + 1), "orders")
    for left, right in ((cost, one), (one, cost), (cost, 1.0)):
        with pytest.raises(TypeError):
            left + right


@pytest.mark.parametrize("cost", [None, 0.1, [0.1, 0.1], "cheap"])
def test_what_is_no_cost_is_refused(cost):
    for account in accounts():
        never_charged(account, cost)


def test_every_job_prices_for_the_neighbours_of_its_account(house):
    from collegium.pate.voting.pricing import pricing_for

    electorate = house.plan("weighting", 100).electorate(0)
    for guarantee in ("worst-case", "data-dependent"):
        pricing = pricing_for(guarantee, GNMax(20.0), electorate, neighbours=REPLACED)
        price = pricing.prices([electorate.ballot(0)], np.array([[60.0, 40.0]]))[0]
        assert pricing.accountant.neighbours is price.answer.neighbours is REPLACED
        pricing.accountant.charge(price.answer)
