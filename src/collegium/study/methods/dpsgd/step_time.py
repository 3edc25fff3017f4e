"""How long the steps of DP-SGD will take: tried on made-up records, never on private ones."""

from __future__ import annotations

import time

import numpy as np

from collegium.dpsgd.linear_sums import InMemory, blocks_of
from collegium.dpsgd.run import DPSGDRun

_ROWS = 16_384
_BYTES = 2**26  # of features


def seconds_of(run: DPSGDRun, n_features: int, n_records: int) -> float:
    """Time a step, and tell how long all of them will take.

    ``n_features``: of the model, with the constant.
    ``n_records``: private ones.
    """
    rows = max(1, min(_ROWS, n_records, _BYTES // (2 * n_features)))
    generator = np.random.default_rng(0)
    features = generator.integers(-200, 200, (rows, n_features)).astype(np.int16)
    targets = generator.integers(0, len(run.records.classes), rows)
    alone, groups = np.arange(rows), np.zeros(rows, dtype=np.intp)
    blocks = list(blocks_of(features, targets, alone, groups, run.loss.n_outputs))
    summands = InMemory(blocks, run.loss, run.terms)
    state, best = run.start(n_features), float("inf")
    for step in range(2):
        begun = time.perf_counter()
        summands.clipped_sum(state.parameters, run.recipe.sample(step))
        best = min(best, time.perf_counter() - begun)
    steps = run.recipe.dpsgd.n_steps_taken
    solving = 0.0 if run.solver is None else run.solver.seconds_ahead(steps)
    return best * n_records / rows * steps + solving
