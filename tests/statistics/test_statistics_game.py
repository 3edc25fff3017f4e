"""A distinguishing game for questions: the attack works, and stays below what is charged.

Each answer costs so little (ε = 2) that half the noise can be told from all of it in 100 runs a side.
The best threshold is learnt on half of the runs and judged on the others by Clopper-Pearson limits that fail
with probability 1e-4 each; noise is seeded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from collegium import Schema, Statistics
from collegium.accounting.events import Event
from collegium.attacks.bounds import binomial_bounds, epsilon_from_rates, mu_from_rates
from collegium.mechanisms import SeededNoise
from collegium.noise.sums import Integers, Noise

RUNS, ERROR = 200, 1e-4
EACH = 2.0
SCHEMA = Schema(
    {
        "x": {"kind": "number", "bounds": [0, 1], "step": 0.5, "sd": 0.5, "missing": False},
        "g": {"kind": "category", "categories": ["a", "b"]},
    }
)


class HalfTheNoise(SeededNoise):
    """A mutant."""

    def noised(self, total: Integers, noise: Noise, *, query: int, purpose: str) -> Integers:
        less = replace(noise, scale=noise.scale / 2)
        return super().noised(total, less, query=query, purpose=purpose)


def outcomes(
    side: int,
    question: str,
    noise: str,
    others: float = 1.0,
    source: type[SeededNoise] = SeededNoise,
) -> tuple[np.ndarray, float]:
    """What is released, RUNS times over; and what the first person is charged at most, in ε or μ.

    ``others``: what they grant, as a share of what the first person does.
    """
    first = [1.0, "a"] if side else [None, None]  # there, or blank
    rest = [[0.0, "b"], [1.0, "b"]] if others == 1 else [[0.0, "b"]] * 6
    frame = pd.DataFrame([first, *rest], columns=["x", "g"]).astype(object)
    budgets = EACH * RUNS * np.array([1.0, *[others] * len(rest)])
    ask = Statistics(frame, budgets, schema=SCHEMA, noise=noise, questions=RUNS, noise_seed=0)
    group = int(np.argmax([one.epsilon for one in ask._table.groups.values()]))
    found, most = [], 0.0
    for run in range(RUNS):
        ask._noise = source(2 * run + side)
        before = len(ask._charged)
        value = ask.ask(question).cells["value"]
        found.append(value.iloc[0] - (value.iloc[1] if len(value) > 1 else 0.0))
        ask._record.clear()
        events = ask._charged[before:]
        assert len(events) == (1 if others == 1 else 2)  # one round, or two
        most = max(most, sum(float(_cost(one, noise)[group]) for one in events))
    return np.array(found), most if noise == "laplace" else most**0.5


def _cost(event: Event, noise: str) -> np.ndarray:
    return event.pure_epsilon if noise == "laplace" else event.mu_squared


def lost(hits: np.ndarray, alarms: np.ndarray, pure: bool) -> float:
    half = RUNS // 2
    edges = np.quantile(np.concatenate([hits, alarms]), np.linspace(0.02, 0.98, 40))

    def bound(at: float, sign: int, part: slice) -> float:
        counts = [int((sign * side[part] >= sign * at).sum()) for side in (hits, alarms)]
        low, high = (
            binomial_bounds(counts[0], half, ERROR)[0],
            binomial_bounds(counts[1], half, ERROR)[1],
        )
        return float(epsilon_from_rates(low, high, 0.0) if pure else mu_from_rates(low, high))

    best = max((bound(at, sign, slice(half)), at, sign) for at in edges for sign in (1, -1))
    return bound(best[1], best[2], slice(half, None))


def found_and_claimed(
    question: str, noise: str, others: float, source: type[SeededNoise] = SeededNoise
) -> tuple[float, float]:
    (present, most), (absent, more) = (
        outcomes(side, question, noise, others, source) for side in (1, 0)
    )
    pure = noise == "laplace"
    return max(lost(present, absent, pure), lost(absent, present, pure)), max(most, more)


@pytest.mark.parametrize(
    ("question", "noise", "others"),
    [
        ("count where x > 0.4", "laplace", 1.0),
        ("mean x", "gaussian", 1.0),
        ("count by g", "gaussian", 1.0),
        ("median x", "laplace", 1.0),
        ("median x", "gaussian", 1.0),
        ("count where x > 0.4", "gaussian", 0.2),
    ],
)
def test_no_threshold_tells_more_than_is_charged(question: str, noise: str, others: float) -> None:
    found, claim = found_and_claimed(question, noise, others)
    assert 0.05 * claim < found <= claim


@pytest.mark.parametrize(
    ("question", "others"),
    [("mean x", 1.0), ("count where x > 0.4", 0.2)],
)
def test_half_the_noise_is_noticed(question: str, others: float) -> None:
    found, claim = found_and_claimed(question, "gaussian", others, HalfTheNoise)
    assert found > claim
