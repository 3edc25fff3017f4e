"""Intervals of quantiles: places around the drawn value that a noisy vector of sums rules out.

**What is released.** The candidates of each cell are cut at public places, ever farther from the value that
was drawn, and the rows in each part are added up with their weights x (n_parts,). With Laplace noise, noise
on each x_j: a row moves one of them. With Gaussian noise, noise on the Haar coefficients of x (the sum over
all parts, and the difference of the halves of each half, of each quarter, …, with factors of ±1): a row
moves 1 + log₂ n_parts of them by its weight, and what adds up many parts has far less noise than their sum
would have. Two rows have coefficients whose difference has a norm of at most √2 times that of one row, in
the same cell or not: where paths part they differ by 2, below by 1 twice, and above not at all.

**What follows** is post-processing. At a place e, A(e) = q·W - W_<e is a public linear function of x. If
the quantile Q of the table is below e, at least q of its rows are, and A(e) ≤ 0 up to what weights make of
it. Places are tried from the lower bound upwards, and the lower end is the last one before the first at
which noisy A(e) is not above a margin. It is beyond Q only if the first place above Q had passed: one test,
however many there are (fixed-sequence testing), for any table, with ties, gaps, and any density. The upper
end is found from above in the same way.

**The margin.** Let N be the noise of A(e), and S what unequal weights add to it: of rows whose weights are
dealt out regardless of them, normal with variance q(1-q)·n_rows·Var(w). The interval is drawn out to the
value v, so it misses Q only if Q < v and a place in between has passed, or Q > v and likewise. Given S, one
of these two alone can be, whatever v is; so with the margin t the chance of a miss is at most E P(N > t -
|S|), which is set to 1 - confidence: 1.64 standard deviations where noise decides, 1.96 where weights do. A
sum of Laplace noise of several parts has tails between those of a single one and of normal noise: the
larger is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from collegium.accounting.neighbours import Neighbours
from collegium.noise.sums import NoisySum
from collegium.weighted_sums.weighing import Weighing, noised

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
PARTS = {True: 16, False: 32}
"""Into how many parts candidates are cut, with Laplace noise or without: a power of two."""
_NODES = 400  # of the distribution of what weights add


def diameter(laplace: bool, neighbours: Neighbours) -> float:
    """How far a row of weight 1 moves a cell's vector, in the norm of the noise; or all cells' together."""
    blanked = neighbours is Neighbours.ADD_OR_REMOVE
    if laplace:
        return 1.0 if blanked else 2.0
    coefficients = int(math.log2(PARTS[laplace])) + 1
    return math.sqrt(coefficients * (1 if blanked else 2)) * (1 + 2.0**-50)


@lru_cache
def transform(laplace: bool) -> Integers:
    """What is noised of the parts' sums, (n_parts, n_parts): themselves, or their Haar coefficients."""
    n = PARTS[laplace]
    if laplace:
        return np.eye(n, dtype=np.int64)
    rows = [np.ones(n, dtype=np.int64)]
    width = n
    while width > 1:
        for start in range(0, n, width):
            row = np.zeros(n, dtype=np.int64)
            row[start : start + width // 2] = 1
            row[start + width // 2 : start + width] = -1
            rows.append(row)
        width //= 2
    return np.stack(rows)


@lru_cache(maxsize=4096)
def cuts(place: int, n: int, parts: int) -> tuple[int, ...]:
    """Where candidates 0 … n - 1 are cut around one: part j has those from cuts[j] to cuts[j + 1] - 1.

    The part of ``place`` begins at the middle cut and has nothing else in it; a part may have no candidate.
    """
    half = parts // 2
    left = [place - far for far in _farther(place, half)]
    right = [place + 1 + far for far in _farther(n - 1 - place, half - 1)]
    return (
        *[0] * (half + 1 - len(left)),
        *reversed(left),
        *right,
        *[n] * (half - len(right)),
    )


def _farther(available: int, most: int) -> list[int]:
    """At most so many of 0 … available - 1, at first all of them, then ever farther apart."""
    if available <= most:
        return list(range(available))
    found = np.rint(np.geomspace(1, available, most + 1)[:-1]).astype(int) - 1
    return [int(one) for one in np.unique(found)]


@dataclass(frozen=True, eq=False)
class Cut:
    """Weight of the rows in each part, by cell: sensitive.

    ``sensitive_steps`` (n_cells, n_parts): in steps of the grid. ``cuts`` (n_cells, n_parts + 1): public.
    """

    sensitive_steps: Integers
    cuts: Integers

    @classmethod
    def around(cls, places: NDArray[np.intp], sensitive_ranks: Integers, laplace: bool) -> Cut:
        """Add up the weights at all candidates, (n_cells, n_candidates), between cuts around places."""
        n_cells, n = sensitive_ranks.shape
        found = np.array([cuts(place, n, PARTS[laplace]) for place in places.tolist()])
        before = np.concatenate(
            [np.zeros((n_cells, 1), np.int64), np.cumsum(sensitive_ranks, axis=1)], axis=1
        )
        return cls(np.diff(np.take_along_axis(before, found, axis=1), axis=1), found)

    def ends(
        self,
        level: float,
        weighing: Weighing,
        spread: float,
        most: float,
        confidence: float,
        noise: NoisySum,
        query: int,
        part: str = "",
    ) -> tuple[Integers, Integers]:
        """Draw noise on the parts' sums, and return the lowest and highest candidate left, (n_cells,) each.

        ``spread``: variance that unequal weights add, for each unit of weight in a cell. ``most``: weight of
        everybody. The caller has charged what ``weighing`` says.
        """
        laplace, at = weighing.laplace, self.cuts
        forward = transform(laplace)
        noisy = noised(
            self.sensitive_steps @ forward.T,
            weighing,
            noise,
            query,
            f"parts around the value{part}",
        )
        back = np.linalg.inv(forward.astype(np.float64))
        there = np.ones_like(noisy)
        if laplace:  # parts without a candidate have nothing but noise
            there = (at[:, 1:] > at[:, :-1]).astype(np.float64)
        sums = noisy @ back.T * there
        n = sums.shape[1]
        # A at the cut before each part but the first.
        signs = np.where(np.arange(n) >= np.arange(1, n)[:, None], level, level - 1)
        found = sums @ signs.T
        ones = there if laplace else np.ones((1, n))
        of_noise = weighing.noise_variance * (ones @ ((signs @ back) ** 2).T)
        rows = sums.sum(axis=1)[:, None]
        apart = np.sqrt(weighing.noise_variance * (ones @ (np.ones(n) @ back) ** 2))[:, None]
        of_people = level * (1 - level) * spread * np.clip(rows + apart, 0.0, most)
        margin = margins(of_noise, of_people, confidence, laplace)
        inner, last = at[:, 1:-1], at[0, -1]
        # The bounds themselves rule out nothing, nor does noise above all that the rows seem to add up to.
        low = (found > margin) & (margin < level * rows)
        high = (-found > margin) & (margin < (1 - level) * rows)
        from_below = np.where(inner < last, (inner == 0) | low, False)
        from_above = np.where(inner > 0, (inner == last) | high, False)
        passed = np.logical_and.accumulate(from_below, axis=1).sum(axis=1)
        failed = n - np.logical_and.accumulate(from_above[:, ::-1], axis=1).sum(axis=1)
        lowest = np.take_along_axis(at, passed[:, None], axis=1)[:, 0]
        highest = np.take_along_axis(at, failed[:, None], axis=1)[:, 0] - 1
        return lowest, highest


def margins(of_noise: Floats, of_people: Floats, confidence: float, laplace: bool) -> Floats:
    """The t at which E P(N > t - |S|) is 1 - confidence, of two variances: of the noise, and of S."""
    both = of_noise + of_people
    shares, times = _table(confidence, laplace)
    return np.asarray(np.sqrt(both) * np.interp(of_people / both, shares, times))


@lru_cache
def _table(confidence: float, laplace: bool) -> tuple[Floats, Floats]:
    """The t for variances that add up to 1, by the part of it that is of S."""
    sizes = -ndtri((np.arange(_NODES) + 0.5) / _NODES / 2)
    shares = np.linspace(0, 1, 65)

    def miss(t: float, share: float) -> float:
        s, e = math.sqrt(share), math.sqrt(1 - share)
        beyond = (t - s * sizes) / max(e, 1e-9)
        tail = ndtr(-beyond)
        if laplace:
            apart = math.sqrt(2) * beyond
            near = np.exp(-np.abs(apart)) / 2
            tail = np.maximum(tail, np.where(apart > 0, near, 1 - near))
        return float(tail.mean()) - (1 - confidence)

    high = -2 * math.log((1 - confidence) / 2) + 2
    return shares, np.array([brentq(miss, -high, high, args=(share,)) for share in shares])
