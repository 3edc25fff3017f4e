"""Labels alone, priced as labels: more answers at the same budget, at one order, and no histogram."""

import numpy as np
import pytest

from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.noise.sources import SeededNoise
from collegium.pate.voting.aggregators import ConfidentGNMax, GNMax, LNMax
from collegium.pate.voting.labelling import LabellingJob
from collegium.pate.voting.pricing import LabelPricing, WorstCasePricing
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation import Uniform, Upsampling, Vanishing, Weighting

BUDGETS = {"low": Budget(0.7), "high": Budget(1.5)}


def run(aggregator, electorate, pricing, n_queries=400, **options):
    votes = VoteTable.from_predictions(
        np.zeros((n_queries, electorate.n_teachers), dtype=int), n_classes=3
    )
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


@pytest.mark.parametrize("kind", [Uniform, Upsampling, Weighting, Vanishing])
def test_every_personalisation_gains_and_nobody_overspends_at_the_fixed_order(kind):
    electorate = kind().plan(BUDGETS, dict.fromkeys(BUDGETS, 3000), 100).electorate(0)
    aggregator = GNMax(sigma=40)
    pricing = LabelPricing(aggregator, electorate)
    fixed = pricing.accountant.fixed_order
    labels = run(aggregator, electorate, pricing)
    assert labels.stop_reason == "budget"
    assert (pricing.accountant.epsilon_spent() <= pricing.accountant.epsilon).all()
    assert (pricing.accountant.fixed_order == fixed).all() and not np.isnan(fixed).any()
    assert pricing.accountant.guarantee == "worst-case"
    histograms = run(aggregator, electorate, WorstCasePricing(aggregator, electorate))
    assert len(labels.labels) > 1.15 * len(histograms.labels)


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
