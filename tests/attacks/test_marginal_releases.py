"""Noisy counts drawn again and again: sound ones are believed, half of the noise is refuted.

Noise is cryptographic: all bounds of a test hold with probability 1 - 1e-7. How much is seen, which with free
noise would be too little in up to 2 % of runs, is a matter of a seed.
"""

import numpy as np
import pandas as pd
import pytest

from collegium import Budget, Budgets, Schema
from collegium.accounting.neighbours import Neighbours
from collegium.attacks.marginal_releases import audit_marginals
from collegium.data.cells import Cells
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise
from collegium.synthesis.run import Synthesis
from collegium.synthesis.settings import SynthesisSettings
from collegium.weighted_sums.tables import InMemory

SURE = 1 - 1e-7
LEVELS = {"high": Budget(1.0, 1e-5), "low": Budget(3.0, 1e-5)}


class HalfTheNoise(SecureNoise):
    """Noise of half the scale that was charged."""

    def noised(self, sensitive_sum, noise, *, query, purpose):
        drawn = super().noised(0 * sensitive_sum, noise, query=query, purpose=purpose)
        return sensitive_sum + drawn // 2


def planned(owners=None, relation=Neighbours.ADD_OR_REMOVE, **settings):
    rng = np.random.default_rng(0)
    n = 4_000
    age = rng.integers(18, 90, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "retired": age + rng.normal(0, 5, n) > 66,
            "sex": rng.choice(["f", "m"], n),
            "town": rng.choice(list("abcdefgh"), n),
        }
    )
    schema = Schema(
        {
            "age": {"kind": "whole", "bounds": [18, 90]},
            "retired": {"kind": "flag"},
            "sex": {"kind": "category", "categories": ["f", "m"]},
            "town": {"kind": "category", "categories": list("abcdefgh")},
        }
    )
    table = InMemory(frame, Budgets(LEVELS, np.arange(n) % 2, owners), schema)
    return Synthesis(table, Cells(schema), "retired", SynthesisSettings(**settings), relation)


@pytest.fixture
def same_coins(monkeypatch):
    """The system's noise, from a seed, and a generator."""
    random = np.random.default_rng(1)

    def words(count):
        return random.integers(0, 2**64, count, dtype=np.uint64)

    monkeypatch.setattr(SecureNoise, "_words", lambda *_: words)
    return np.random.default_rng(2)


@pytest.mark.parametrize("goal", ["target", "both"])
def test_sound_counts_are_believed(goal, same_coins):
    run = planned(goal=goal)
    found = audit_marginals(run, releases=8, asked=500, confidence=SURE, generator=same_coins)
    assert [one.group for one in found] == list(LEVELS)
    assert all(one.holds and not one.are_normal for one in found)
    low = found[-1]
    assert low.lower_mu > 0.1 * low.claim_mu
    assert low.lower_epsilon < low.claim_epsilon <= low.budget.epsilon


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("relation", [Neighbours.ADD_OR_REMOVE, Neighbours.ANY_CHANGE])
def test_every_kind_of_count_is_believed(calibrated, relation):
    run = planned(relation=relation, calibrated=calibrated, goal="target")
    assert all(one.holds for one in audit_marginals(run, releases=4, confidence=SURE))


def test_half_of_the_noise_is_refuted(same_coins):
    """At 95 %: a theorem that allows any dependence sees about half of a μ."""
    run = planned(goal="target")
    found = audit_marginals(
        run, releases=16, asked=1_500, noise=HalfTheNoise(), generator=same_coins
    )
    assert not found[-1].holds and found[-1].lower_mu > found[-1].claim_mu


def test_a_table_of_several_rows_each_is_refused_and_the_plan_is_left_alone():
    run = planned()
    table = run.table
    audit_marginals(run, releases=1, asked=60)
    assert run.table is table
    owners = [f"p{number // 2 // 2 * 2 + number % 2}" for number in range(4_000)]
    with pytest.raises(InputError, match="one row"):
        audit_marginals(planned(owners), releases=1)
