"""A distinguishing game for questions: the attack works, and stays below what is charged.

The best threshold is learnt on half of the runs and judged on the others by Clopper-Pearson limits that fail
with probability 1e-4 each; noise is seeded.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from collegium import Schema
from collegium.attacks.bounds import binomial_bounds, epsilon_from_rates, mu_from_rates
from collegium.noise.sources import SeededNoise
from collegium.statistics.session import Statistics

RUNS, ERROR = 400, 1e-4
EACH = 4.0
SCHEMA = Schema(
    {
        "x": {"kind": "number", "bounds": [0, 1], "step": 0.5, "sd": 0.5},
        "g": {"kind": "category", "categories": ["a", "b"]},
    }
)


def outcomes(side: int, question: str, noise: str) -> tuple[np.ndarray, float]:
    """What is released, RUNS times over; and what the first person is charged each time, in ε or μ."""
    first = [1.0, "a"] if side else [None, None]  # there, or blank
    frame = pd.DataFrame([first, [0.0, "b"], [1.0, "b"]], columns=["x", "g"]).astype(object)
    ask = Statistics(frame, EACH * RUNS, schema=SCHEMA, noise=noise, questions=RUNS, noise_seed=0)
    found = []
    for run in range(RUNS):
        ask._noise = SeededNoise(2 * run + side)
        value = ask.ask(question).cells["value"]
        found.append(value.iloc[0] - (value.iloc[1] if len(value) > 1 else 0.0))
        ask._record.clear()
    event = ask._charged[-1]
    return np.array(found), float(
        event.pure_epsilon[0] if noise == "laplace" else event.mu_squared[0] ** 0.5
    )


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


@pytest.mark.parametrize(
    ("question", "noise"),
    [
        ("count where x > 0.4", "laplace"),
        ("mean x", "gaussian"),
        ("count by g", "gaussian"),
        ("median x", "laplace"),
        ("median x", "gaussian"),
    ],
)
def test_no_threshold_tells_more_than_is_charged(question: str, noise: str) -> None:
    (present, claim), (absent, _) = (outcomes(side, question, noise) for side in (1, 0))
    pure = noise == "laplace"
    found = max(lost(present, absent, pure), lost(absent, present, pure))
    assert 0.05 * claim < found <= claim
