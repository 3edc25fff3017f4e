"""Labels alone, priced as labels: more answers at the same budget, at one order, and no histogram."""

import re

import numpy as np
import pytest

from collegium import (
    Budget,
    ConfidentGNMax,
    GNMax,
    InteractiveGNMax,
    LNMax,
    Uniform,
    Upsampling,
    Vanishing,
    VoteTable,
    Weighting,
)
from collegium.accounting import rdp_to_epsilon
from collegium.accounting.arg_max import gaussian_arg_max_rdp
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.statement import Answers, statement
from collegium.accounting.tradeoff import TradeOff
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise
from collegium.noise.grid import GRID
from collegium.pate.voting.labelling import ANSWERED, LabellingJob, Outcome
from collegium.pate.voting.price_choice import check_price, choose_price
from collegium.pate.voting.pricing import LabelPricing, WorstCasePricing, worst_case_pricing

BUDGETS = {"low": Budget(0.7), "high": Budget(1.5)}


def run(aggregator, electorate, pricing, n_queries=1000, **options):
    agreement = np.random.default_rng(1).random((n_queries, 1))  # from none to all
    others = np.random.default_rng(2).random((n_queries, electorate.n_teachers)) > agreement
    votes = VoteTable.from_predictions(others.astype(int), n_classes=3)
    return LabellingJob(
        votes, electorate, aggregator, pricing, SeededNoise(0), np.arange(n_queries), **options
    ).run()


def test_74_labels_where_57_histograms_are_paid_for():
    electorate = Uniform().plan({"all": Budget(1.0)}, {"all": 60000}, 250).electorate(0)
    aggregator = GNMax(sigma=40)
    counted = {
        kind: len(run(aggregator, electorate, kind(aggregator, electorate)).labels)
        for kind in (WorstCasePricing, LabelPricing)
    }
    assert counted == {WorstCasePricing: 57, LabelPricing: 74}


@pytest.mark.parametrize("aggregator", [GNMax(sigma=40), ConfidentGNMax(60, 60, 40)], ids=str)
@pytest.mark.parametrize("kind", [Uniform, Upsampling, Weighting, Vanishing])
def test_every_personalisation_gains_and_nobody_overspends_at_the_fixed_order(kind, aggregator):
    electorate = kind().plan(BUDGETS, dict.fromkeys(BUDGETS, 3000), 100).electorate(0)
    pricing = LabelPricing(aggregator, electorate)
    order = pricing.accountant.fixed_order
    labels = run(aggregator, electorate, pricing)
    assert labels.stop_reason == "budget"
    assert (pricing.accountant.fixed_order == order).all() and not np.isnan(order).any()
    assert pricing.accountant.guarantee == "worst-case"
    # Once more from the outcomes, at each cohort's own order, by the formulas of the documentation.
    spent, steps, squared = np.zeros(len(order)), range(len(order)), np.zeros(len(order))
    for outcome in [*labels.outcomes, Outcome(labels.n_asked, 0, ANSWERED, 0)]:
        mu = np.sqrt(squared)  # of all noisy values, seen or not
        before = [float(rdp_to_epsilon([spent[i]], [order[i]], 1e-5)[0]) for i in steps]
        ballot = electorate.ballot(outcome.position)
        moved = ballot.sensitivity / ballot.scale
        if aggregator.has_check:
            squared += (moved / aggregator.check_scale) ** 2
            spent += order * moved**2 / (2 * aggregator.check_scale**2)
        if outcome.verdict == ANSWERED:
            squared += 2 * (moved / 40) ** 2
            of_label = gaussian_arg_max_rdp(moved, 40.0, np.unique(order), GRID / ballot.scale)
            spent += of_label[steps, np.searchsorted(np.unique(order), order)]
    granted = [budget.epsilon for budget in electorate.cohort_budgets]
    assert all(np.array(before) <= granted)
    after = [float(rdp_to_epsilon([spent[i]], [order[i]], 1e-5)[0]) for i in steps]
    assert any(np.array(after) > granted), "one more answer would still have been paid for"
    within = pricing.mu_by_name()
    promised = np.array([within[name] for name in electorate.cohort_groups])
    assert (mu <= promised).all() and (mu > 0.8 * promised).any()
    np.testing.assert_allclose(pricing.accountant.epsilon_spent(), before, rtol=1e-9)
    histograms = run(aggregator, electorate, WorstCasePricing(aggregator, electorate))
    assert len(labels.labels) > 1.12 * len(histograms.labels)


def test_checks_are_paid_for_as_before_and_other_noise_gains_nothing():
    electorate = Uniform().plan({"all": Budget(1.0)}, {"all": 60000}, 250).electorate(0)
    aggregator = ConfidentGNMax(200, 150, 40)
    ballot = electorate.ballot(0)
    label, histogram = (
        kind(aggregator, electorate).price(ballot) for kind in (LabelPricing, WorstCasePricing)
    )
    assert label.check == histogram.check and label.answer != histogram.answer
    laplace = LNMax(gamma=0.05)
    assert laplace.label_event(ballot) == laplace.answer_event(ballot)


def test_no_histogram_is_released_at_the_price_of_a_label():
    electorate = Uniform().plan({"all": Budget(1.0)}, {"all": 60000}, 250).electorate(0)
    aggregator = GNMax(sigma=40)
    with pytest.raises(InputError, match="price of a label"):
        run(aggregator, electorate, LabelPricing(aggregator, electorate), release="histogram")


ALL, SOME = {"all": Budget(1.0)}, {"some": Budget(1.0), "others": Budget(3.0)}


@pytest.mark.parametrize(
    ("aggregator", "most", "price", "release", "chosen", "why"),
    [
        (GNMax(40), 9000, None, "labels", "labels", "pay for 74 answers, and for 57 if"),
        (GNMax(40), 60, None, "labels", "labels", "pay for all 60 answers, and for 57 if"),
        (GNMax(40), 57, None, "labels", "histogram", "no more of the 57"),
        (GNMax(4), 9000, None, "labels", "histogram", "no more of the 9,000"),
        (ConfidentGNMax(200, 10, 40), 9000, None, "labels", "histogram", "would pay for fewer"),
        (InteractiveGNMax(100, 150, 40), 9000, None, "labels", "labels", "alone"),
        (GNMax(40), 9000, "histogram", "labels", "histogram", "noisy counts, as set"),
        (GNMax(40), 10, "labels", "labels", "labels", "label alone, as set"),
        (GNMax(40), 9000, None, "histogram", "histogram", ""),
        (LNMax(0.05), 9000, None, "labels", "histogram", ""),
    ],
)
def test_the_price_that_pays_for_more_answers_stands(aggregator, most, price, release, chosen, why):
    electorate = Uniform().plan(ALL, {"all": 60000}, 250).electorate(0)
    found = choose_price(price, release, aggregator, electorate, "worst-case", most)
    assert found.name == chosen and why in found.why and bool(found.why) == bool(why)


@pytest.mark.parametrize("kind", [Uniform, Upsampling, Weighting, Vanishing])
def test_what_is_chosen_releases_more_whoever_votes_how(kind):
    electorate = kind().plan(SOME, dict.fromkeys(SOME, 3000), 100).electorate(3)
    aggregator = GNMax(sigma=40)
    chosen = choose_price(None, "labels", aggregator, electorate, "worst-case", 1000)
    foreseen = [int(number) for number in re.findall(r"for (\d+)", chosen.why)]
    released = [
        len(run(aggregator, electorate, worst_case_pricing(name, aggregator, electorate)).labels)
        for name in ("labels", "histogram")
    ]
    assert chosen.name == "labels" and released == foreseen and released[0] > released[1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("labels", "histogram", GNMax(40), "worst-case"), "noisy counts are released"),
        (("labels", "labels", LNMax(0.05), "worst-case"), "no price of labels alone is known"),
        (("labels", "labels", GNMax(40), "data-dependent"), "one of the worst-case guarantee"),
    ],
)
def test_a_price_that_does_not_cover_the_release_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        check_price(*given)


@pytest.mark.parametrize("name", ["histogram", "labels"])
def test_an_odometer_counts_as_the_account_does_and_beyond(name):
    aggregator, electorate = GNMax(40), Uniform().plan(ALL, {"all": 60000}, 250).electorate(0)
    pricing = worst_case_pricing(name, aggregator, electorate)
    cost = pricing.price(electorate.ballot(0)).reserve
    odometer = pricing.accountant.without_limits()
    for account in (pricing.accountant, odometer):
        account.charge(cost, times=50)
    assert odometer.epsilon_spent() == pricing.accountant.epsilon_spent()
    odometer.charge(cost, times=50)
    assert odometer.epsilon_spent() > 1 > pricing.accountant.epsilon_spent()


def test_an_account_of_labels_says_nearly_what_one_of_noisy_counts_says_of_an_attacker():
    electorate = Uniform().plan({"all": Budget(3.0)}, {"all": 60000}, 250).electorate(0)
    account = LabelPricing(GNMax(40), electorate).accountant
    mu = LabelPricing(GNMax(40), electorate).mu_by_name()
    said = statement(
        account,
        {"all": 9},
        dict(electorate.groups),
        Arrangement(),
        True,
        Answers.LABELS,
        "labels",
        mu,
    )
    blunt, labels, counts = (
        100 * curve.most_found(0.05)
        for curve in (
            TradeOff(Budget(3.0)),
            said.trade_off(said.groups[0]),
            TradeOff(Budget(3.0), gaussian=True),
        )
    )
    assert (round(blunt, 1), round(labels, 1), round(counts, 1)) == (95.3, 20.9, 17.7)
