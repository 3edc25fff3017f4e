"""Personalised mechanisms: oracles, brute force over all neighbours, and the printed score that stays red."""

from itertools import product

import numpy as np
import pytest

from collegium.accounting import Neighbours, PureAccountant
from collegium.errors import InputError
from collegium.mechanisms import (
    SeededNoise,
    count_distances,
    median_distances,
    personalised_exponential,
    stretching,
    utility_aware,
)

EPSILONS = np.array([0.25, 0.5, 0.5, 1.0, 2.0])


class NoNoise:
    is_private = False

    def noised(self, total, noise, **options):
        return total


def log_chances(distances):
    logs = -np.asarray(distances) / 2
    return logs - np.logaddexp.reduce(logs)


# ------------------------------------------------------------------------------------ stretching


def test_stretching_is_biased_as_published_and_unbiased_by_a_public_factor():
    preferences = np.repeat([1.0, 2.0, 3.0], [540, 370, 90])
    total = stretching(np.ones(1000), preferences, 0.0, 1.0, noise=NoNoise())
    assert round(total.value, 3) == 516.667
    mended = stretching(np.ones(1000), preferences, 0.0, 1.0, unbias=True, noise=NoNoise())
    assert round(mended.value / total.value, 5) == 1.93548
    assert mended.value == pytest.approx(1000)


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE])
def test_stretched_sums_move_by_no_more_than_is_charged_and_nobody_pays_more_than_granted(
    neighbours,
):
    rng = np.random.default_rng(0)
    for _ in range(100):
        epsilons = rng.choice([0.1, 0.37, 2.9], 6)
        values = rng.uniform(-3, 5, 6)
        arguments = {"lower": -2.0, "upper": 4.0, "neighbours": neighbours, "noise": NoNoise()}
        before = stretching(values, epsilons, **arguments)
        changed = values.copy()  # somebody who is not there counts 0
        changed[0] = 0.0 if neighbours is Neighbours.ADD_OR_REMOVE else rng.choice([-9.0, 9.0])
        after = stretching(changed, epsilons, **arguments)
        kinds = np.unique(epsilons)
        own = int(np.searchsorted(kinds, epsilons[0]))
        assert abs(before.value - after.value) <= before.event.sensitivity[own] * (1 + 1e-12)
        assert (before.event.pure_epsilon <= kinds).all()
        assert before.event.pure_epsilon == pytest.approx(kinds, rel=1e-4)


# -------------------------------------------------------------------- the personalised exponential


def test_distances_of_counts_are_those_of_all_tables():
    for having in product([False, True], repeat=5):
        cheapest = np.full(6, np.inf)
        for other in product([False, True], repeat=5):
            cost = EPSILONS[np.not_equal(having, other)].sum()
            cheapest[sum(other)] = min(cheapest[sum(other)], cost)
        assert count_distances(np.array(having), EPSILONS).tolist() == cheapest.tolist()


def test_distances_of_medians_are_those_of_all_tables():
    domain, rng = np.arange(4.0), np.random.default_rng(1)
    tables = np.array(list(product(domain, repeat=5)))
    for size in (4, 5):
        others = np.unique(tables[:, :size], axis=0)
        medians = np.sort(others, axis=1)[:, (size + 1) // 2 - 1]
        for _ in range(20):
            values = rng.choice(domain, size)
            costs = ((others != values) * EPSILONS[:size]).sum(axis=1)
            expected = [costs[medians == candidate].min() for candidate in domain]
            assert median_distances(values, EPSILONS[:size], domain).tolist() == expected


def test_no_neighbour_is_further_than_the_budget_of_who_changed():
    worst = np.zeros(5)
    for having in product([False, True], repeat=5):
        before = log_chances(count_distances(np.array(having), EPSILONS))
        for person in range(5):
            changed = np.array(having)
            changed[person] = not changed[person]
            moved = np.ptp(before - log_chances(count_distances(changed, EPSILONS)))
            worst[person] = max(worst[person], moved)
    event = personalised_exponential([0.0], EPSILONS, exact=True).event
    assert event.eta.tolist() == np.unique(EPSILONS).tolist()
    assert (worst <= EPSILONS + 1e-12).all() and (worst > 0.7 * EPSILONS).all()


def test_what_is_promised_unless_more_is_said_is_what_medians_keep():
    values, budgets, domain = np.array([0.0, 1.0, 4.0]), np.array([2.0, 0.1, 2.0]), np.arange(5.0)
    whole = log_chances(median_distances(values, budgets, domain))
    moved = [
        np.ptp(whole - log_chances(median_distances([0.0, other, 4.0], budgets, domain)))
        for other in domain
    ]
    assert max(moved) <= 0.1 + 1e-8
    gone = log_chances(median_distances(values[[0, 2]], budgets[[0, 2]], domain))
    assert np.ptp(whole - gone) > 5 * 0.1
    account = PureAccountant([3.0, 3.0], neighbours=Neighbours.ANY_CHANGE)
    for draw in (
        lambda: personalised_exponential(np.zeros(5), budgets, account=account),
        lambda: utility_aware(np.zeros(5), np.zeros(5), budgets, 1.0, account=account),
    ):
        with pytest.raises(InputError, match="replaced"):
            draw()
    assert (account.epsilon_spent() == 0).all()


def test_a_count_is_drawn_with_its_chances():
    having, runs = np.array([True, True, True, False, False]), 3000
    distances = count_distances(having, EPSILONS)
    drawn = [
        personalised_exponential(
            distances, EPSILONS, exact=True, noise=SeededNoise(0), query=run
        ).value
        for run in range(runs)
    ]
    chances = np.exp(log_chances(distances))
    seen = np.bincount(drawn, minlength=6) / runs
    # Five standard deviations for six frequencies: false alarms below 1e-5.
    assert (np.abs(seen - chances) < 5 * np.sqrt(chances * (1 - chances) / runs)).all()


def test_rounded_distances_are_paid_for():
    event = personalised_exponential([0.0, 0.3], [0.5]).event
    assert 0.5 < event.eta[0] < 0.5 + 1e-8


# ------------------------------------------------------------------------------- the utility-aware


def printed_chances(count, n_people=10, epsilon=0.1):
    """As the thesis has it: exp(-Σε of those who must change - how far off)."""
    off = np.abs(np.arange(n_people + 1) - count)
    logs = -epsilon * off - off
    return logs - np.logaddexp.reduce(logs)


def largest_loss(chances):
    return max(np.abs(chances(count) - chances(count + 1)).max() for count in range(10))


@pytest.mark.xfail(
    strict=True, reason="the printed score is not private, and is not in the package"
)
def test_the_printed_utility_aware_score_keeps_the_budget():
    assert largest_loss(printed_chances) <= 0.1


def test_what_the_printed_utility_aware_score_loses():
    assert round(largest_loss(printed_chances), 4) == 1.3005


def test_the_corrected_score_keeps_every_budget():
    share, off = 0.4, np.arange(6)
    event = utility_aware(np.zeros(6), np.zeros(6), EPSILONS, 1.0, share=share).event
    assert event.eta == pytest.approx(0.6 * np.unique(EPSILONS) + 0.4 * 0.25, abs=1e-8)
    charged = event.eta[np.searchsorted(np.unique(EPSILONS), EPSILONS)]
    assert (charged <= EPSILONS + 2e-9).all()

    def chances(having):
        near = count_distances(having, EPSILONS)
        return log_chances((1 - share) * near + share * 0.25 * np.abs(off - having.sum()))

    worst = np.zeros(5)
    for having in product([False, True], repeat=5):
        for person in range(5):
            changed = np.array(having)
            changed[person] = not changed[person]
            moved = np.ptp(chances(np.array(having)) - chances(changed))
            worst[person] = max(worst[person], moved)
    assert (worst <= charged).all() and (worst > 0.5 * charged).all()


def test_the_corrected_score_is_what_is_drawn():
    near, off, runs = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 9.0, 1.0, 30.0]), 3000
    drawn = [
        utility_aware(near, off, EPSILONS, 3.0, share=0.25, noise=SeededNoise(5), query=run).value
        for run in range(runs)
    ]
    chances = np.exp(log_chances(0.75 * near + 0.25 * (0.25 / 3.0) * off))
    seen = np.bincount(drawn, minlength=4) / runs
    # Five standard deviations for four frequencies: false alarms below 1e-5.
    assert (np.abs(seen - chances) < 5 * np.sqrt(chances * (1 - chances) / runs)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stretching([1.0], [0.0], 0, 1), "above 0"),
        (lambda: stretching([1.0], [1.0], 1, 1), "upper"),
        (lambda: stretching([1.0], [1.0], 0, 1, neighbours=Neighbours.ANY_CHANGE), "REPLACE"),
        (lambda: stretching([1.0, 2.0], [1.0], 0, 1), "one of each"),
        (lambda: stretching([1.0], [1.0], 0, 1e13), "too wide"),
        (lambda: count_distances([1, 0], [1.0, 1.0]), "true or false"),
        (lambda: personalised_exponential([-1.0], [1.0]), "at least 0"),
        (lambda: utility_aware([0.0], [0.0, 1.0], [1.0], 1.0), "one of each"),
        (lambda: utility_aware([0.0], [0.0], [1.0], 1.0, share=2), "share"),
    ],
)
def test_bad_input_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
