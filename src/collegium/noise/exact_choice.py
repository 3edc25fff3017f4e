"""One of many candidates, drawn with probabilities that are exactly proportional to exp(score).

A draw is the candidate into whose interval of the cumulated weights a uniform number u falls that has
infinitely many bits. Nearly always its first 64 bits and floats with a proven margin settle which one that
is. Otherwise all weights are computed anew in integer arithmetic, to as many bits as the comparison needs,
and further bits of u are revealed. As in :mod:`collegium.noise.exact_sampling` nothing is redrawn, so the
index is a function of the bits alone, and it is the right one. The proof is in ``docs/noise.md``.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from mpmath import libmp
from numpy.typing import NDArray

from collegium.noise.exact_sampling import LazyUniform, RandomWords

MAX_SCORE = 2**62
"""Scores are below this in magnitude, so that the difference of two is an int64."""

EXP_ERROR = 2.0**-48
"""Bound on the relative error of numpy's ``exp``; the tests measure it against mpmath (below 2^-52)."""

_FIRST_BITS = 64
_GUARD_BITS = 64

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def draw_candidates(
    scores: Integers, unit: float, draws: int, words: RandomWords
) -> NDArray[np.intp]:
    """Draw indices with Pr[i] = exp(scores[i] * unit) / sum_j exp(scores[j] * unit), exactly.

    ``scores`` (n,): below ``MAX_SCORE`` in magnitude.
    ``unit``: positive, taken as the exact value of the float.
    ``words``: the source of randomness; asked once for ``draws`` words, and then for single ones.
    Returns (draws,): independent.

    Examples
    --------
    >>> high = lambda count: np.full(count, 2**64 - 1, dtype=np.uint64)
    >>> draw_candidates(np.array([0, 0, -5]), 1.0, 2, high)
    array([2, 2])
    """
    below = scores - scores.max()
    cumulated, margin = _cumulated(below, unit)
    total = cumulated[-1]
    first = words(draws)
    # u lies in [first, first + 1] / 2^64; target and boundaries are each off by less than the margin.
    target = first.astype(np.float64) * (total * 2.0**-_FIRST_BITS)
    slack = 2 * margin + total * 2.0**-50
    lowest = np.searchsorted(cumulated, target - slack, side="right")
    highest = np.searchsorted(cumulated, target + slack, side="right")
    chosen: NDArray[np.intp] = lowest.astype(np.intp)
    for draw in np.flatnonzero((lowest != highest) | (highest == len(scores))).tolist():
        chosen[draw] = _settle(below, unit, int(first[draw]), words)
    return chosen


def _cumulated(below: Integers, unit: float) -> tuple[Floats, float]:
    """Cumulated weights in floats, and a bound on their error, for scores of at most 0 (the largest is 0).

    With x = -score * unit the exponent is off by at most 2^-52 x (an integer that becomes a float, and a
    product), a weight by e^-x (EXP_ERROR + 2^-51 x) <= e^-x EXP_ERROR + 2^-52, and their recursive sum by a
    further n 2^-53 / (1 - n 2^-53) of itself (Higham 2002, §4.2).
    """
    exponents = below.astype(np.float64) * unit
    cumulated = np.cumsum(np.exp(exponents))
    n, total = len(below), float(cumulated[-1])
    return cumulated, n * 2.0**-51 + total * (2 * EXP_ERROR + n * 2.0**-52)


def _settle(below: Integers, unit: float, numerator: int, words: RandomWords) -> int:
    """Index of the interval of u, exactly, given that u lies in [numerator, numerator + 1] / 2^64."""
    bits = _FIRST_BITS
    distinct, place = np.unique(below, return_inverse=True)
    while True:
        precision = bits + _GUARD_BITS
        weights = [_weight(int(score), unit, precision) for score in distinct.tolist()]
        sums = list(accumulate(weights[index] for index in place.tolist()))
        # Each weight is off by less than two units, hence each sum by less than 2n of them. u * total lies in
        # [low, high] / 2^bits, and the index is the number of sums that are not above it.
        error, total = 2 * len(sums), sums[-1]
        low = numerator * (total - error)
        high = (numerator + 1) * (total + error)
        scaled_error = error << bits
        surely = _count(sums, low - scaled_error, bits)
        perhaps = _count(sums, high + scaled_error, bits)
        if surely == min(perhaps, len(sums) - 1):
            return surely
        numerator = (numerator << 64) | int(words(1)[0])
        bits += 64


def _weight(score: int, unit: float, precision: int) -> int:
    """Fixed-point exp(score * unit) for a score of at most 0, off by less than 2 units of 2^-precision."""
    exponent = libmp.mpf_mul(libmp.from_int(score), libmp.from_float(unit))  # exact
    if libmp.mpf_lt(exponent, libmp.from_int(-precision)):
        return 0  # exp(-precision) < 2^-precision
    return int(libmp.to_fixed(libmp.mpf_exp(exponent, precision + 16, "n"), precision))


def _count(sums: list[int], bound: int, bits: int) -> int:
    """How many of the ascending sums are at most bound / 2^bits."""
    low, high = 0, len(sums)
    while low < high:
        middle = (low + high) // 2
        if sums[middle] << bits <= bound:
            low = middle + 1
        else:
            high = middle
    return low


def is_accepted(score: int, unit: float, words: RandomWords) -> bool:
    """Toss a coin that falls on heads with probability exp(score * unit), exactly.

    ``score``: at most 0.

    Examples
    --------
    >>> is_accepted(0, 1.0, lambda count: np.full(count, 2**64 - 1, dtype=np.uint64))
    True
    """
    return bool(are_accepted(np.array([score]), unit, words)[0])


def are_accepted(scores: Integers, unit: float, words: RandomWords) -> NDArray[np.bool_]:
    """Toss a coin for each score, as :func:`is_accepted` does.

    ``scores`` (n,): at most 0, above ``-MAX_SCORE``.
    ``words``: asked once for n words, and then for single ones.
    Returns (n,): independent.
    """
    numerators = words(len(scores))
    share = numerators.astype(np.float64) * 2.0**-_FIRST_BITS
    chance = np.exp(scores.astype(np.float64) * unit)
    heads: NDArray[np.bool_] = share < chance
    for place in np.flatnonzero(np.abs(share - chance) <= 2 * EXP_ERROR).tolist():
        heads[place] = _settle_coin(int(scores[place]), unit, int(numerators[place]), words)
    return heads


def _settle_coin(score: int, unit: float, numerator: int, words: RandomWords) -> bool:
    """Whether a uniform number is at most exp(score * unit), exactly; its first bits are given."""
    exponent = libmp.mpf_mul(libmp.from_int(score), libmp.from_float(unit))
    uniform = LazyUniform(numerator, _FIRST_BITS, words)
    return score == 0 or uniform.at_most(lambda bits: libmp.mpf_exp(exponent, bits + 16, "n"))


def whole_below(n: int, words: RandomWords) -> int:
    """Draw one of 0 ... n - 1, each exactly as likely."""
    fair = 2**64 // n * n
    while True:
        word = int(words(1)[0])
        if word < fair:
            return word % n
