"""Bad input: each a clear error, in one line, before anything is charged."""

import math

import numpy as np
import pytest

from collegium.accounting.accountant import (
    DataDependentAccountant,
    WorstCaseAccountant,
    WorstCaseCost,
)
from collegium.accounting.costs import ANY_CHANGE, RenyiCost
from collegium.accounting.gaussian import gdp_epsilon, gdp_mu
from collegium.accounting.renyi import SEED_ORDERS, gaussian_rdp, rdp_to_epsilon
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    lnmax_log_q,
    lnmax_pure_epsilon,
    threshold_rdp_data_independent,
)
from collegium.accounting.votes.stream import account_votes
from collegium.errors import InputError
from collegium.pate.voting.aggregators import ConfidentGNMax, GNMax, LNMax

REPLACED = "all records of one owner are replaced"
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
        lambda orders: DataDependentAccountant([1.0], 1e-5, orders),
        lambda orders: gaussian_rdp(1.0, 1.0, orders),
        lambda orders: gnmax_rdp([-1.0], [1.0], 1.0, orders),
        lambda orders: rdp_to_epsilon([0.1], orders, 1e-5),
        lambda orders: account_votes([VOTES], [1.0], orders, sigma=40.0),
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
        lambda sigma: account_votes([VOTES], [1.0], [2.0], sigma=sigma),
        lambda sigma: account_votes([VOTES], [1.0], [2.0], gamma=sigma),
        lambda sigma: account_votes(
            [VOTES], [1.0], [2.0], sigma=40.0, threshold=200.0, sigma_threshold=sigma
        ),
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
        lambda weight: account_votes([VOTES], [weight], [2.0], sigma=40.0),
        lambda weight: account_votes([VOTES * weight], [1.0], [2.0], sigma=40.0),
    ],
)
def test_negative_weights_are_refused(use, weight):
    refused(lambda: use(weight))


def test_counts_that_do_not_add_up_to_the_teachers_weight_are_refused_without_their_values():
    wrong = VOTES.copy()
    wrong[1, 0] = 151.25
    message = refused(
        lambda: account_votes([VOTES, wrong], [1.0], [2.0], sigma=40.0, total_weight=250.0),
        "add up",
        "250",
    )
    assert "151" not in message
    spent = account_votes([VOTES], [1.0], [2.0], sigma=40.0, total_weight=250.0)
    assert spent.n_queries == 2


def test_counts_beyond_the_ballots_weight_are_refused_before_anything_is_priced(house):
    from collegium.pate.voting.pricing import DataDependentPricing

    electorate = house.plan("weighting", 100).electorate(0)
    pricing = DataDependentPricing(GNMax(20.0), electorate)
    refused(lambda: pricing.begin(0, [electorate.ballot(0)], np.array([[70.0, 40.0]])), "weight")
    assert (pricing.accountant.epsilon_spent() == 0).all()
    pricing.begin(0, [electorate.ballot(0)], np.array([[60.0, 40.0]]))
    pricing.begin(0, [electorate.ballot(0)], np.array([[60.0, 30.0]]))  # some abstain


@pytest.mark.parametrize("counts", [[[NAN, 1.0]], [[1.0, -1.0]], [[math.inf, 0.0]], [[3.0]], [3.0]])
def test_counts_that_are_no_votes_are_refused(counts):
    refused(lambda: gnmax_log_q(counts, 1.0), "counts")
    refused(lambda: account_votes([counts], [1.0], [2.0], sigma=1.0), "counts")


@pytest.mark.parametrize("delta", [0.0, -1e-5, 1.0, 2.0, NAN])
@pytest.mark.parametrize(
    "use",
    [
        lambda delta: WorstCaseAccountant([1.0], delta),
        lambda delta: DataDependentAccountant([1.0], delta, SEED_ORDERS),
        lambda delta: gdp_mu(1.0, delta),
        lambda delta: gdp_epsilon(1.0, delta),
        lambda delta: rdp_to_epsilon([0.1], [2.0], delta),
    ],
)
def test_delta_zero_is_refused(use, delta):
    refused(lambda: use(delta), "delta")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, NAN])
def test_budgets_without_epsilon_are_refused(epsilon):
    refused(lambda: WorstCaseAccountant([1.0, epsilon], 1e-5), "epsilon")


# ------------------------------------------------------------------------- costs that mean another thing

SMALL = np.full(2, 0.001)
RDP = np.full((2, SEED_ORDERS.size), 0.001)


def accounts():
    return (
        WorstCaseAccountant([1.0, 2.0], 1e-5),
        DataDependentAccountant([1.0, 2.0], 1e-5, SEED_ORDERS),
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


def test_costs_of_another_guarantee_are_refused():
    worst_case, data_dependent = accounts()
    never_charged(worst_case, RDP, "data-dependent cost", "worst-case account")
    never_charged(worst_case, RenyiCost(RDP, SEED_ORDERS), "data-dependent cost")
    never_charged(data_dependent, WorstCaseCost(SMALL, SMALL), "worst-case cost", "data-dependent")


def test_costs_about_other_neighbours_are_refused():
    worst_case, data_dependent = accounts()
    never_charged(worst_case, WorstCaseCost(SMALL, SMALL, REPLACED), REPLACED, ANY_CHANGE)
    never_charged(data_dependent, RenyiCost(RDP, SEED_ORDERS, REPLACED), REPLACED, ANY_CHANGE)
    other = WorstCaseAccountant([1.0, 2.0], 1e-5, adjacency=REPLACED)
    never_charged(other, WorstCaseCost(SMALL, SMALL), REPLACED)
    other.charge(WorstCaseCost(SMALL, SMALL, REPLACED))


def test_costs_at_other_orders_are_refused():
    data_dependent = accounts()[1]
    never_charged(data_dependent, RenyiCost(RDP, SEED_ORDERS + 0.5), "orders")
    never_charged(data_dependent, RenyiCost(RDP[:, 1:], SEED_ORDERS[1:]), "orders")


def test_costs_that_mean_different_things_do_not_add_up():
    cost = WorstCaseCost(SMALL, SMALL)
    refused(lambda: cost + WorstCaseCost(SMALL, SMALL, REPLACED), "neighbours")
    one = RenyiCost(RDP, SEED_ORDERS)
    refused(lambda: one + RenyiCost(RDP, SEED_ORDERS, REPLACED), "neighbours")
    refused(lambda: one + RenyiCost(RDP, SEED_ORDERS + 1), "orders")
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
        pricing = pricing_for(guarantee, GNMax(20.0), electorate, adjacency=REPLACED)
        pricing.begin(0, [electorate.ballot(0)], np.array([[60.0, 40.0]]))
        assert pricing.accountant.adjacency == REPLACED
        pricing.accountant.charge(pricing.answer(0))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sigma": 1.0, "gamma": 1.0},
        {"sigma": 1.0, "threshold": 3.0},
        {"sigma": 1.0, "sigma_threshold": 3.0},
        {"gamma": 1.0, "threshold": 3.0, "sigma_threshold": 1.0},
        {"sigma": 1.0, "threshold": NAN, "sigma_threshold": 1.0},
        {"sigma": 1.0, "total_weight": 0.0},
    ],
)
def test_mechanisms_that_are_not_clear_are_refused(options):
    refused(lambda: account_votes([VOTES], [1.0], [2.0], **options))


@pytest.mark.parametrize("answered", [[True], [1, 0], [[True, False]], [True, False, True]])
def test_answers_that_do_not_fit_the_votes_are_refused(answered):
    refused(lambda: account_votes([(VOTES, answered)], [1.0], [2.0], sigma=1.0), "booleans")
