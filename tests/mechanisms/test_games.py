"""A distinguishing game for every mechanism: the attack works, and stays below what is charged.

Each is really run thousands of times on two neighbouring data sets. The best event is learnt on half of the
runs and judged on the others by Clopper-Pearson limits that fail with probability 1e-4 each: for a sound
mechanism and other seeds, each comparison would raise a false alarm with probability 4e-4 at most.
"""

import warnings

import numpy as np
import pytest

from collegium import Budget, Budgets, PrivacyWarning
from collegium.accounting import Neighbours
from collegium.attacks.bounds import binomial_bounds, epsilon_from_rates, mu_from_rates
from collegium.mechanisms import (
    SeededNoise,
    above_threshold,
    choose,
    count_distances,
    exponential,
    gaussian,
    laplace,
    median_distances,
    permute_and_flip,
    personalised_exponential,
    privacy_aware,
    randomised_response,
    report_noisy_max,
    sample,
    sampled_count,
    stretching,
    utility_aware,
    weighted_quantile,
)

ERROR, RUNS = 1e-4, 1500


def played(run):
    """Outcomes of a mechanism on the first and on the second data set; noise is fresh on each."""
    return [
        np.array([run(data, SeededNoise(side), query) for query in range(RUNS)])
        for side, data in enumerate(("with", "without"))
    ]


def shown(outcomes, limits=epsilon_from_rates):
    """Largest loss that the better of the two directions shows: one number per outcome, in order."""
    return max(_shown(one, other, limits) for one, other in (outcomes, outcomes[::-1]))


def _shown(hits, alarms, limits):
    half, values = len(hits) // 2, np.unique(np.concatenate([hits, alarms]))
    if len(values) > 60:  # numbers: whatever is above a threshold, or below
        edges = np.quantile(np.concatenate([hits, alarms]), np.linspace(0, 1, 40))
        orders = [np.arange(41), np.arange(41)[::-1]]
    places = [
        np.searchsorted(edges if len(values) > 60 else values, side) for side in (hits, alarms)
    ]
    learnt = [np.bincount(side[:half], minlength=41) for side in places]
    if len(values) <= 60:  # results: those whose ratio is the largest
        orders = [np.argsort(-(learnt[0] + 0.5) / (learnt[1] + 0.5))]
    events = [order[:size] for order in orders for size in range(1, 41)]
    found = [bound(*(side[event].sum() for side in learnt), half, limits) for event in events]
    best = events[int(np.argmax(found))]
    judged = [np.isin(side[half:], best).sum() for side in places]
    return bound(*judged, len(hits) - half, limits)


def bound(hits, alarms, runs, limits):
    low, high = binomial_bounds(hits, runs, ERROR)[0], binomial_bounds(alarms, runs, ERROR)[1]
    return float(limits(low, high) if limits is mu_from_rates else limits(low, high, 0.0))


def test_laplace_and_gaussian_noise():
    # A vector of values noised independently is as many runs of one value.
    zeros = {"with": np.zeros(40_000), "without": np.ones(40_000)}
    seen = [
        laplace(zeros[s], 1.0, 1.0, exact=True, noise=SeededNoise(i)).value
        for i, s in enumerate(zeros)
    ]
    claim = float(laplace(0.0, 1.0, 1.0, exact=True).event.pure_epsilon[0])
    assert 0.9 < shown(seen) <= claim
    seen = [
        gaussian(zeros[s], 1.0, 1.0, exact=True, noise=SeededNoise(i)).value
        for i, s in enumerate(zeros)
    ]
    assert 0.9 < shown(seen, mu_from_rates) <= 1.0


SCORES = {"with": [1.0, 0.0], "without": [0.0, 1.0]}


@pytest.mark.parametrize("release", [exponential, permute_and_flip, report_noisy_max])
def test_choices(release):
    outcomes = played(
        lambda side, n, q: release(SCORES[side], 1.0, 1.0, exact=True, noise=n, query=q).value
    )
    event = release(SCORES["with"], 1.0, 1.0, exact=True).event
    assert 0.5 < shown(outcomes) <= event.pure_epsilon[0]


def test_the_sparse_vector():
    values = {"with": [1.0, 1.0, -1.0], "without": [0.0, 0.0, 0.0]}
    scales = {"threshold_scale": 1.0, "value_scale": 2.0, "exact": True}

    def run(side, noise, query):
        asked = above_threshold(values[side], 0.5, 1.0, **scales, noise=noise, query=query)
        return len(asked.value) if asked.value[-1] else 4

    claim = above_threshold([0.0], 0.0, 1.0, **scales).event.epsilon[0]
    assert 0.1 < shown(played(run)) <= claim


def test_randomised_responses():
    answers = {"with": np.zeros(RUNS, dtype=int), "without": np.ones(RUNS, dtype=int)}
    seen = [
        randomised_response(answers[side], np.full(RUNS, 1.5), 3, noise=SeededNoise(number)).value
        for number, side in enumerate(answers)
    ]
    assert 1.0 < shown(seen) <= 1.5


EPSILONS = np.array([0.5, 0.5, 1.0, 2.0])
GENEROUS = 3


def someone(side, present, absent):
    return np.array([*[absent] * GENEROUS, present if side == "with" else absent])


def test_the_stretching_mechanism_towards_each_kind_of_person():
    for person, epsilon in ((0, 0.5), (GENEROUS, 2.0)):

        def run(side, noise, query, person=person):
            values = np.zeros(4)
            values[person] = side == "with"
            return stretching(values, EPSILONS, 0.0, 1.0, noise=noise, query=query).value

        assert 0.2 * epsilon < shown(played(run)) <= epsilon


def test_the_personalised_exponential_and_the_corrected_score():
    for change in (0.0, 0.5):

        def run(side, noise, query, change=change):
            having = someone(side, True, False)
            near = count_distances(having, EPSILONS)
            if not change:
                return personalised_exponential(
                    near, EPSILONS, exact=True, noise=noise, query=query
                ).value
            off = np.abs(np.arange(5) - having.sum())
            return utility_aware(
                near, off, EPSILONS, 1.0, share=change, noise=noise, query=query
            ).value

        claim = 2.0 if not change else 0.5 * 2.0 + 0.5 * 0.5
        assert 0.2 < shown(played(run)) <= claim


def test_the_game_refutes_the_printed_score():
    # What the thesis prints, for ten people at 0.1 each: exp(-0.1·|c - r| - |c - r|).
    steps = np.abs(np.subtract.outer([0, 1], np.arange(11)))
    outcomes = [
        choose(-row, unit=1.1, noise=SeededNoise(side), draws=RUNS)
        for side, row in enumerate(steps)
    ]
    assert shown(outcomes) > 5 * 0.1


def test_medians():
    candidates = np.arange(3.0)
    values = {"with": np.array([0.0, 0.0, 2.0, 2.0]), "without": np.array([0.0, 0.0, 2.0])}

    def quantile(side, noise, query):
        weights = EPSILONS[: len(values[side])]
        return weighted_quantile(values[side], weights, candidates, noise=noise, query=query).value

    assert 0.2 < shown(played(quantile)) <= 2.0
    near = {
        side: median_distances([0.0, 2.0, 2.0, last], [2.0] * 4, candidates)
        for side, last in (("with", 2.0), ("without", 0.0))
    }

    def median(side, noise, query):
        replaced = {"exact": True, "neighbours": Neighbours.REPLACE}
        return personalised_exponential(
            near[side], EPSILONS, **replaced, noise=noise, query=query
        ).value

    assert 0.2 < shown(played(median)) <= 2.0


def test_the_sample_mechanism_and_what_runs_on_a_sample():
    epsilons = np.array([1.5, 1.5, 2.0])

    def count(side, noise, query):
        has_it = np.array([side == "with", False, True])
        return sampled_count(has_it, epsilons, 2.0, noise=noise, coins=noise, query=query).value

    assert 0.1 < shown(played(count)) <= 1.5
    budgets = Budgets({"strict": Budget(1.5), "free": Budget(2.0)}, [0, 0, 1])
    scores = {"with": np.array([1.0, 0.0, 1.0]), "without": np.array([0.0, 0.0, 1.0])}

    def pre_step(side, noise, query):
        rows = sample(budgets, 2.0, noise=noise, query=query).sensitive_records
        count = scores[side][rows].sum()
        return laplace(count, 1.0, 0.5, exact=True, noise=noise, query=query).value

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        assert 0.1 < shown(played(pre_step)) <= 1.5


def test_one_mechanism_on_each_part():
    cut = privacy_aware(EPSILONS, 2)
    assert cut.epsilons.tolist() == [0.5, 2.0]

    def run(side, noise, query):
        has_it = someone(side, 1.0, 0.0)
        counts = [
            laplace(
                has_it[cut.records(part)].sum(),
                1.0,
                1 / epsilon,
                exact=True,
                noise=noise,
                query=2 * query + part,
            )
            for part, epsilon in enumerate(cut.epsilons)
        ]
        return counts[1].value

    assert 0.4 < shown(played(run)) <= cut.epsilons[cut.part[GENEROUS]]
