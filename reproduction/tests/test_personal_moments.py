"""The personalised moments accountant of bagging, against its oracles and against the mechanism itself."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import quad

from collegium import Bagging, Budgets
from reproduction.personal_moments import sensitive_epsilon, sensitive_reach

ORACLES = {1.0: 5.302585092994046, 0.75: 3.8875709108283716, 0.5: 2.526292546497023}


@pytest.mark.parametrize("m", ORACLES)
def test_the_oracles_of_a_hundred_queries(m):
    assert sensitive_epsilon([[m] * 100], 0.05, 1e-5)[0] == pytest.approx(ORACLES[m], rel=1e-14)


def chance(counts: tuple[float, ...], winner: int, gamma: float) -> float:
    """Probability that a class wins after Laplace noise."""

    def below(x: float) -> float:
        return 0.5 * math.exp(gamma * x) if x < 0 else 1 - 0.5 * math.exp(-gamma * x)

    def density(z: float) -> float:
        others = (below(z + counts[winner] - n) for j, n in enumerate(counts) if j != winner)
        return 0.5 * gamma * math.exp(-gamma * abs(z)) * math.prod(others)

    kinks = sorted({0.0, *(n - counts[winner] for n in counts)})
    ends = [-80 / gamma, *kinks, 80 / gamma]
    return sum(quad(density, a, b)[0] for a, b in pairwise(ends))


def worst(base: tuple[float, ...], own: tuple[int, ...], gamma: float) -> float:
    """Largest loss over what an owner's teachers, who now vote as in ``own``, may vote without the owner."""
    weight = 1 / len(own)

    def with_votes(votes: tuple[int, ...]) -> tuple[float, ...]:
        return tuple(n + weight * votes.count(c) for c, n in enumerate(base))

    before = [chance(with_votes(own), c, gamma) for c in range(len(base))]
    losses = [
        abs(math.log(chance(with_votes(votes), c, gamma) / before[c]))
        for votes in product(range(len(base)), repeat=len(own))
        for c in range(len(base))
    ]
    return max(losses)


def test_nobodys_loss_is_above_what_the_reach_says_and_the_largest_share_would_be_too_little():
    gamma, own = 0.7, (0, 1)  # two partitions; the owner's teachers disagree
    reach = sensitive_reach([list(own)], [[0, 1]], 3)[0, 0]
    assert reach == 1.0
    assert sensitive_reach([list(own)], [[0, 1]], 2)[0, 0] == 0.5
    for base in ((6.0, 6.0, 0.0), (3.0, 1.0, 0.0)):
        loss = worst(base, own, gamma)
        assert loss <= 2 * gamma * reach
        assert loss > 2 * gamma * 0.5 * 1.2  # by the largest share of votes it would be 2γ · 0.5
    for base in ((6.0, 0.0), (1.0, 1.0)):
        assert worst(base, own, gamma) <= 2 * gamma * 0.5


def test_reach_follows_the_teachers_of_each_partition():
    budgets = Budgets.from_epsilons(np.full(200, 1.0), delta=1e-6)
    teachers = Bagging(partitions=4).plan_for(budgets, 10).assign(budgets, b"key").owner_teachers
    votes = np.random.default_rng(0).integers(0, 2, (7, 40))
    reach = sensitive_reach(votes, teachers, 2)
    assert reach.shape == (200, 7)
    for owner, query in ((0, 0), (17, 3), (199, 6)):
        share = votes[query, teachers[owner]].mean()
        assert reach[owner, query] == max(share, 1 - share)
