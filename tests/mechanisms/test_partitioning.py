"""Partitions: the published wastes, the best of all cuts, and PATE's teachers in parts."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from collegium import Policy, PrivacyWarning, Weighting
from collegium.errors import InputError
from collegium.mechanisms import in_parts, privacy_aware, utility_based, wasted

PUBLISHED = [0.1, 0.1, 0.2, 0.9, 1.0]


def test_the_published_wastes():
    found = [round(wasted(PUBLISHED, np.arange(5) >= cut), 2) for cut in (1, 2, 3, 4)]
    assert found == [1.46, 1.13, 0.02, 0.65]
    assert round(privacy_aware(PUBLISHED, 2).waste, 2) == 0.02


def every_cut(epsilons, n_parts, least=1):
    ordered = np.sort(epsilons)
    for cuts in combinations(range(1, len(ordered)), n_parts - 1):
        part = np.searchsorted(cuts, np.arange(len(ordered)), side="right")
        if np.bincount(part).min() >= least:
            yield ordered, part


def test_no_cut_of_all_wastes_less():
    rng = np.random.default_rng(0)
    for _ in range(40):
        epsilons = rng.choice([0.1, 0.3, 0.35, 1.0, 2.2, 3.0], 9)
        levels = len(np.unique(epsilons))
        for n_parts in range(1, levels + 1):
            best = min(wasted(*cut) for cut in every_cut(epsilons, n_parts))
            found = privacy_aware(epsilons, n_parts)
            assert found.waste == pytest.approx(best, abs=1e-12)
            assert len(found.epsilons) == n_parts
            assert (found.epsilons[found.part] <= epsilons).all()


def test_no_cut_of_all_is_worth_more():
    rng = np.random.default_rng(1)
    people = np.array([3, 1, 2, 4, 1, 2])
    epsilons, ends = np.repeat([0.3, 0.35, 0.4, 1.0, 2.2, 3.0], people), np.cumsum([0, *people])
    numbers = set()
    for _ in range(40):
        worth = {(first, n): rng.random() * n**1.3 for first in range(6) for n in range(14)}
        for most in (None, 1, 2, 4):

            def utility(epsilon, n, worth=worth):
                return worth[int(np.searchsorted(epsilons[ends[:-1]], epsilon)), n]

            best = max(
                sum(worth[first, ends[end] - ends[first]] for first, end in pairwise([0, *cuts, 6]))
                for size in range(most or 6)
                for cuts in combinations(range(1, 6), size)
            )
            found = utility_based(epsilons, utility, most_parts=most)
            sizes = np.bincount(found.part)
            value = sum(utility(e, n) for e, n in zip(found.epsilons, sizes, strict=True))
            assert value == pytest.approx(best, rel=1e-12)
            assert len(found.epsilons) <= (most or 6)
        numbers.add(len(found.epsilons))
    assert len(numbers) > 2


def test_parts_are_large_enough_and_everybody_pays_for_their_own():
    epsilons = np.repeat([0.1, 0.2, 0.9, 1.0], [2, 10, 10, 3])
    cut = privacy_aware(epsilons, 3, least=3)
    assert np.bincount(cut.part).min() >= 3
    assert sorted(np.concatenate([cut.records(part) for part in range(3)])) == list(range(25))
    assert cut.event().epsilon.tolist() == cut.epsilons.tolist()


def test_teachers_are_assigned_by_part_and_nobody_grants_more_than_before():
    policy = Policy({"a": 0.1, "b": 0.2, "c": 0.9, "d": 1.0, "e": np.inf, "f": 0})
    with pytest.warns(PrivacyWarning, match="NO PRIVACY"):
        budgets = policy.assign(["a", "b", "c", "d", "b", "e", "f"] * 100)
    parts = in_parts(budgets, lambda epsilons: privacy_aware(epsilons, 2))
    assert [budget.epsilon for budget in parts.groups.values()] == [0.1, 0.9, np.inf]
    assert parts.owners.tolist() == budgets.owners.tolist()
    granted = {name: policy.levels[name].epsilon for name in "abcde"}
    for before, after in zip(budgets.record_groups(), parts.record_groups(), strict=True):
        if before in granted:
            assert parts.groups[after].epsilon <= granted[before]
    assert 0.5 < parts.kept < 1
    plan = Weighting().plan(parts.groups, parts.public_sizes(), 60)
    assert sum(group.teachers for group in plan.groups.values()) == 60


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: privacy_aware(PUBLISHED, 5), "cannot be cut"),
        (lambda: privacy_aware(PUBLISHED, 2, least=4), "cannot be cut"),
        (lambda: privacy_aware([0.0, 1.0], 1), "above 0"),
        (lambda: utility_based(PUBLISHED, lambda e, n: np.nan), "not finite"),
        (lambda: utility_based(PUBLISHED, "precision"), "function"),
        (lambda: utility_based(PUBLISHED, lambda e, n: 1.0, least=9), "fewer than"),
        (lambda: privacy_aware(np.linspace(1, 2, 4000), 2), "3,000"),
        (lambda: in_parts([1.0], lambda e: privacy_aware(e, 1)), "policy.assign"),
    ],
)
def test_bad_input_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
