"""How much to believe neighbours, and single answers: chosen by what was released and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from collegium.distillation.released import Floats, ReleasedAnswers, score_released

#: Candidates for each method, in the order in which ties are broken.
COUPLINGS: dict[str, tuple[float, ...]] = {
    "posterior": (8.0, 4.0, 16.0, 32.0),
    "harmonic": (10.0, 3.0, 30.0, 100.0),
    "spreading": (10.0, 3.0, 30.0, 100.0),
}
MISTRUSTS = (0.02, 0.1, 0.3)
_FOLDS = 3


def choose_coupling(
    smoother: Callable[[Floats, float], Floats],
    released: ReleasedAnswers,
    couplings: Sequence[float],
    mistrust: float | None,
    random_state: int,
) -> tuple[float, float]:
    """Choose by cross-validation on released answers: first the mistrust (under the first
    coupling), then the coupling.

    ``smoother``: maps evidence, shape (n_public, n_classes), and a coupling to beliefs of the same
        shape.
    ``mistrust``: as given; None: choose from ``MISTRUSTS``.
    Returns: those under which held-out answers are most likely.
    """
    doubts = MISTRUSTS if mistrust is None else (mistrust,)
    n = len(released.queries)
    if n < 2 * _FOLDS:
        return couplings[0], doubts[0]
    folds = np.random.default_rng(random_state).integers(0, _FOLDS, n)

    def score(pair: tuple[float, float]) -> float:
        coupling, doubt = pair
        evidence = released.evidence(doubt)
        held_out = np.empty((n, released.n_classes))
        for fold in range(_FOLDS):
            out = folds == fold
            seen = evidence.copy()
            seen[released.queries[out]] = 0.0
            held_out[out] = smoother(seen, coupling)[released.queries[out]]
        return score_released(held_out, released.targets, doubt)

    def best(pairs: list[tuple[float, float]]) -> tuple[float, float]:
        return pairs[0] if len(pairs) == 1 else max(pairs, key=score)

    _, doubt = best([(couplings[0], doubt) for doubt in doubts])
    return best([(coupling, doubt) for coupling in couplings])
