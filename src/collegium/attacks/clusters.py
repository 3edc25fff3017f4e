"""Shares and areas whose trials come in runs: people of one run share its noise, so that they tell less.

Runs are independent of one another and people of one run are not, so that variances are of sums by run. A
share has Clopper and Pearson's limits with so many trials as would be as precise if they were independent
[1]_: n trials whose share varies by the design effect d more than independent ones count as n/d, less what
estimating d from a few runs costs (the ratio of a normal and a Student quantile, squared). The area under the
ROC curve has its influences summed by run [2]_.

References
----------
.. [1] E. Korn, B. Graubard, "Confidence intervals for proportions with small expected number of positive
   counts estimated from survey data", Survey Methodology 24(2), 1998.
.. [2] N. Obuchowski, "Nonparametric analysis of clustered ROC curve data", Biometrics 53(2), 1997.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from collegium.attacks.bounds import binomial_bounds
from collegium.evaluation.synthetic_learning import Estimate, area, spread_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Side:
    """Scores of those who were in, or of those who were out.

    ``scores`` (n,). ``runs`` (n,): number of each one's run, from 0; None where each is by itself.
    ``n_runs``: how many runs there are.
    """

    scores: Floats
    runs: Numbers | None
    n_runs: int

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def of(cls, scores: Floats, chosen: Flags) -> Side:
        """Those of some trials. ``scores``, ``chosen``: (n,), or (n_runs, n_people)."""
        runs = np.nonzero(chosen)[0] if scores.ndim == 2 else None
        return cls(scores[chosen], runs, len(scores))

    def above(self, threshold: float) -> int:
        """How many scores are above it."""
        return int((self.scores > threshold).sum())

    def beyond(self, number: int) -> float:
        """Find the score above which at most so many others are."""
        place = len(self) - 1 - number
        return float(np.partition(self.scores, place)[place])

    def limits(self, found: int, threshold: float, error: float) -> tuple[float, float]:
        """Bound the share above a threshold, where ``found`` scores are; each limit fails with ``error``."""
        kept = self.kept(threshold, error)
        low, high = binomial_bounds(found * kept, len(self) * kept, error)
        return float(low), float(high)

    def kept(self, threshold: float, error: float) -> float:
        """What of the number of trials is left if they count as independent ones: 1 at most."""
        share = self.above(threshold) / len(self)
        if self.runs is None or share in (0.0, 1.0):
            return 1.0
        beyond = (self.scores > threshold) - share
        sums = np.bincount(self.runs, weights=beyond, minlength=self.n_runs)
        squares = self.n_runs / (self.n_runs - 1) * float((sums**2).sum())
        effect = max(1.0, squares / (len(self) * share * (1 - share)))
        return max((_normal(error) / _student(error, self.n_runs)) ** 2 / effect, 1 / len(self))


def area_of(inside: Side, outside: Side, error: float) -> tuple[Estimate, float]:
    """Estimate the area under the ROC curve with a 95 % interval, and bound it from below with ``error``."""
    truth = np.repeat([1, 0], [len(inside), len(outside)]).astype(np.int64)
    both = np.concatenate([inside.scores, outside.scores])
    ordered = area(truth, np.column_stack([-both, both]))
    assert ordered is not None
    estimate, influence = ordered
    value, n_units = estimate.value, min(len(inside), len(outside))
    if inside.runs is None or outside.runs is None:
        spread, wide, half = spread_of(influence, truth), _normal(error), _normal(0.025)
    else:
        n_runs, n_units = inside.n_runs, min(n_units, inside.n_runs)
        runs = np.concatenate([inside.runs, outside.runs])
        sums = np.bincount(runs, weights=influence, minlength=n_runs)
        spread = math.sqrt(n_runs / (n_runs - 1) * float((sums**2).sum())) / len(both)
        spread = max(spread, spread_of(influence, truth))
        wide, half = _student(error, n_runs), _student(0.025, n_runs)
    if value in (0.0, 1.0):  # no variance is left to see
        margin = 1 - 0.025 ** (1 / n_units)
        low, high = (1 - margin, 1.0) if value else (0.0, margin)
        return Estimate(value, low, high), error ** (1 / n_units) if value else 0.0
    low, high = max(0.0, value - half * spread), min(1.0, value + half * spread)
    return Estimate(value, low, high), value - wide * spread


def _normal(error: float) -> float:
    return -float(ndtri(error))


def _student(error: float, n_runs: int) -> float:
    return -float(stdtrit(n_runs - 1, error))
