"""The least noise for a number of answers: the real job releases just so many, with any personalisation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Budget, GNMax, Uniform, Upsampling, Vanishing, VoteTable, Weighting
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise
from collegium.pate.voting.labelling import LabellingJob
from collegium.pate.voting.least_noise import least_sigma
from collegium.pate.voting.pricing import WorstCasePricing

KINDS = (Uniform, Upsampling, Weighting, Vanishing)


def answers(electorate, sigma, most):
    votes = VoteTable.from_predictions(
        np.zeros((most, electorate.n_teachers), dtype=int), n_classes=2
    )
    aggregator = GNMax(sigma=sigma)
    pricing = WorstCasePricing(aggregator, electorate)
    job = LabellingJob(votes, electorate, aggregator, pricing, SeededNoise(0), np.arange(most))
    return len(job.run().labels)


@settings(max_examples=25)
@given(
    st.sampled_from(KINDS),
    st.lists(st.floats(0.2, 8), min_size=1, max_size=3, unique=True),
    st.integers(1, 150),
    st.integers(0, 100),
)
def test_budgets_pay_for_just_so_many_answers(kind, epsilons, wanted, seed):
    budgets = {f"g{i}": Budget(epsilon) for i, epsilon in enumerate(epsilons)}
    plan = kind().plan(budgets, dict.fromkeys(budgets, 500), 40)
    electorate = plan.electorate(seed)
    sigma = least_sigma(electorate, wanted)
    assert answers(electorate, sigma, wanted) == wanted
    # With a hundredth less noise somebody could not pay for the last ones.
    assert answers(electorate, sigma * 0.99, wanted) < wanted or wanted == 0


def test_unlimited_budgets_need_no_noise_and_no_answer_is_no_question():
    plan = Uniform().plan({"all": Budget(math.inf)}, {"all": 10}, 5)
    with pytest.raises(InputError, match="no answer needs noise"):
        least_sigma(plan.electorate(0), 100)
    for wrong in (0, 2.5, True):
        with pytest.raises(InputError, match="at least 1"):
            least_sigma(plan.electorate(0), wrong)
