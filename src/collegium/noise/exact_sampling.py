"""Integers drawn with exactly the distribution of a rounded continuous variable.

A draw is the integer nearest to ``scale * X``, where X is standard Gaussian, Laplace, exponential or
Gumbel and is a function of one fair bit and of a uniform number ``u`` in (0, 1) with infinitely many
bits. The bit chooses one of two branches (the sign, if X is symmetric); on each, X is plus or minus
a magnitude Y with ``tail(Y) = u``, where ``tail(t) = Pr[Y >= t]``. Nearly always the first 63 bits
of ``u`` settle which integer is nearest, and hardware floats with a proven margin can tell. Otherwise
``u`` is compared with ``tail(boundary)`` in integer arithmetic, revealing as many further bits of ``u`` as
that takes. Nothing is ever redrawn, so nothing is conditioned on: the integer is a function of the
bits alone, and it is the right one. The proof is in ``docs/noise.md``.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import libmp
from numpy.typing import NDArray
from scipy.special import ndtri

RandomWords = Callable[[int], NDArray[np.uint64]]
"""A source of randomness: ``source(n)`` returns n fresh, independent, uniform 64-bit words."""

MAX_MAGNITUDE = 2**53
"""Up to here every integer is a float; a draw beyond it is refused, see :func:`_settle`."""

MAX_SCALE_STEPS = 2.0**44
"""Largest scale: a draw then exceeds ``MAX_MAGNITUDE`` only 512 scales out, with Pr < e^-512."""

FLOAT_ERROR = 2.0**-45
"""Bound on the float error of the estimate t of |X| and of scaling it, as a multiple of 1 + t.

Cephes states a peak relative error below 2^-50 for ``ndtri``, and ``log`` is no worse; this allows
about thirty times as much, and the tests measure it against mpmath. A larger bound costs time only.
"""

FIRST_BITS = 63
SMALLEST_ESTIMATED = 2**20
"""Below this many units of 2^-63, u is too coarse for an estimate: the draw is settled exactly."""

_GUARD_BITS = 32


@dataclass(frozen=True)
class StandardVariable:
    """A random variable Y of scale 1, mostly the magnitude of a symmetric X.

    ``estimate``: array of ``u`` in (0, 1] to the floats nearly equal to ``tail⁻¹(u)``, with the
        error bound of ``FLOAT_ERROR``.
    ``tail``: ``tail(t, precision)`` is ``Pr[Y >= t]`` for an mpmath raw float ``t``, to an absolute
        error below ``2**-precision``; below the least value of Y it may be anything above 1.
    ``least``: no value of Y is smaller.
    """

    estimate: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    tail: Callable[[Any, int], Any]
    least: float = 0.0


@dataclass(frozen=True)
class TwoBranches:
    """X that is ``upper`` or minus ``lower``, with probability 1/2 each."""

    upper: StandardVariable
    lower: StandardVariable


def _gaussian_estimate(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-ndtri(0.5 * uniform), dtype=np.float64)


def _gaussian_tail(magnitude: Any, precision: int) -> Any:
    if _is_negligible(magnitude, precision):
        return libmp.fzero
    working = precision + 16
    root_two = libmp.mpf_sqrt(libmp.from_int(2), working, "n")
    return libmp.mpf_erfc(libmp.mpf_div(magnitude, root_two, working, "n"), working, "n")


def _laplace_estimate(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-np.log(uniform), dtype=np.float64)


def _laplace_tail(magnitude: Any, precision: int) -> Any:
    if _is_negligible(magnitude, precision):
        return libmp.fzero
    return libmp.mpf_exp(libmp.mpf_neg(magnitude), precision + 16, "n")


def _is_negligible(magnitude: Any, precision: int) -> bool:
    """Whether both tails are below 2**-precision: erfc(t/√2) <= exp(-t²/2) <= exp(-t) < 2^-t."""
    return bool(libmp.mpf_gt(magnitude, libmp.from_int(max(precision, 2))))


def _above_median_estimate(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-np.log(-np.log1p(-0.5 * uniform)), dtype=np.float64)


def _above_median_tail(magnitude: Any, precision: int) -> Any:
    """2 Pr[Gumbel >= t] = 2 (1 - exp(-exp(-t))) <= 2 exp(-t): tail of a Gumbel above its median."""
    if _is_negligible(magnitude, precision + 2):
        return libmp.fzero
    working = precision + 16
    rate = libmp.mpf_exp(libmp.mpf_neg(magnitude), working, "n")
    below = libmp.mpf_exp(libmp.mpf_neg(rate), working, "n")
    return libmp.mpf_shift(libmp.mpf_sub(libmp.fone, below, working, "n"), 1)


def _below_median_estimate(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.log(-np.log(0.5 * uniform)), dtype=np.float64)


def _below_median_tail(magnitude: Any, precision: int) -> Any:
    """2 Pr[-Gumbel >= t] = 2 exp(-exp(t)) <= 2 exp(-t): tail of minus a Gumbel below its median."""
    if _is_negligible(magnitude, precision + 2):
        return libmp.fzero
    working = precision + 16
    rate = libmp.mpf_exp(magnitude, 2 * working, "n")
    return libmp.mpf_shift(libmp.mpf_exp(libmp.mpf_neg(rate), working, "n"), 1)


GAUSSIAN = StandardVariable(_gaussian_estimate, _gaussian_tail)
LAPLACE = StandardVariable(_laplace_estimate, _laplace_tail)
EXPONENTIAL = LAPLACE
"""The magnitude of a Laplace variable is exponential; it is drawn with ``signed=False``."""

# The median of a Gumbel variable is -log(log 2) = 0.3665...
GUMBEL = TwoBranches(
    StandardVariable(_above_median_estimate, _above_median_tail, 0.36),
    StandardVariable(_below_median_estimate, _below_median_tail, -0.37),
)


def operating_system_words(count: int) -> NDArray[np.uint64]:
    """Fresh words from the operating system's cryptographic random generator.

    ``count``: how many 64-bit words.
    Returns (count,).

    Examples
    --------
    >>> operating_system_words(3).shape
    (3,)
    """
    return np.frombuffer(os.urandom(8 * count), dtype="<u8").astype(np.uint64, copy=False)


def draw_rounded(
    variable: StandardVariable | TwoBranches,
    scale_steps: float,
    size: int,
    words: RandomWords,
    *,
    signed: bool = True,
) -> NDArray[np.int64]:
    """Independent integers, each the one nearest to ``scale_steps * X``.

    ``variable``: the distribution of X: ``GAUSSIAN`` (standard deviation 1), ``LAPLACE`` (density
        exp(-\\|x\\|)/2), ``EXPONENTIAL`` (with ``signed=False``) or ``GUMBEL``.
    ``scale_steps``: in (0, 2**44], taken as the exact value of the float.
    ``words``: the source of randomness; asked once for ``size`` words and then for single words.
    ``signed``: if false, X is the magnitude itself, and the first bit of each word is not used.
    Returns (size,), int64: of magnitude at most 2**53. Beyond it an ArithmeticError is raised: at the
        largest scale with probability below e^-512 for the Laplace and e^-131072 for the Gaussian
        variable, whatever the data.

    Examples
    --------
    Word 0 is the sign bit and the 63 first bits of u, here u = 1/2 (median of \\|X\\| = 0.6745):

    >>> middle = lambda count: np.full(count, 2**63 + 1, dtype=np.uint64)
    >>> draw_rounded(GAUSSIAN, 1e4, 2, middle)
    array([-6745, -6745])
    """
    first = words(size)
    unit = first >> np.uint64(1)
    negative = (first & np.uint64(1)).astype(bool) & signed
    if isinstance(variable, StandardVariable):
        steps = _magnitudes(variable, scale_steps, unit, words)
    else:
        steps = np.empty(size, dtype=np.int64)
        for branch, chosen in ((variable.upper, ~negative), (variable.lower, negative)):
            steps[chosen] = _magnitudes(branch, scale_steps, unit[chosen], words)
    return np.where(negative, -steps, steps)


def _magnitudes(
    variable: StandardVariable, scale_steps: float, unit: NDArray[np.uint64], words: RandomWords
) -> NDArray[np.int64]:
    """Nearest integers to ``scale_steps * Y``, given the first 63 bits of each u."""
    uniform = unit.astype(np.float64)
    estimate = variable.estimate(np.maximum(uniform, 1.0) * 2.0**-FIRST_BITS)
    magnitude = scale_steps * estimate
    # The second term bounds the effect of the bits of u not yet revealed.
    relative = FLOAT_ERROR * (1.0 + np.abs(estimate))
    margin = scale_steps * (relative + 2.0 / np.maximum(uniform, 1.0))
    lowest = np.rint(magnitude - margin)
    highest = np.rint(magnitude + margin)
    steps = lowest.astype(np.int64)
    open_draws = np.flatnonzero((lowest != highest) | (uniform < SMALLEST_ESTIMATED))
    for index in open_draws.tolist():
        numerator = int(unit[index])
        bracket = None
        if numerator >= SMALLEST_ESTIMATED:
            bracket = (int(lowest[index]), int(highest[index]))
        steps[index] = _settle(variable, scale_steps, numerator, words, bracket)
    return steps


def _settle(
    variable: StandardVariable,
    scale_steps: float,
    numerator: int,
    words: RandomWords,
    bracket: tuple[int, int] | None = None,
) -> int:
    """Nearest integer to ``scale_steps * |X|``, exactly, given the first 63 bits of u.

    ``numerator``: u lies in [numerator, numerator + 1] / 2**63.
    ``words``: where further bits of u come from.
    ``bracket``: lower and upper bound (inclusive) that the result is known to respect; found if not
        given.
    """
    uniform = LazyUniform(numerator, FIRST_BITS, words)
    doubled_scale = libmp.mpf_shift(libmp.from_float(scale_steps), 1)

    def reaches(integer: int) -> bool:
        """Whether scale * |X| >= integer - 1/2, that is, u <= tail((integer - 1/2) / scale)."""

        def boundary_tail(precision: int) -> Any:
            odd = libmp.from_int(2 * integer - 1)
            boundary = libmp.mpf_div(odd, doubled_scale, precision + 16, "n")
            return variable.tail(boundary, precision)

        return uniform.at_most(boundary_tail)

    least = math.floor(variable.least * scale_steps)
    lowest, highest = bracket or (least, least)
    lowest = max(lowest, least)
    if bracket is None:
        beyond = int(scale_steps) + 1
        while reaches(beyond):
            if beyond > MAX_MAGNITUDE:
                raise ArithmeticError("a noise draw exceeds 2**53 grid steps and is not released")
            lowest, beyond = beyond, 2 * beyond
        highest = beyond - 1
    while lowest < highest:
        middle = (lowest + highest + 1) // 2
        if reaches(middle):
            lowest = middle
        else:
            highest = middle - 1
    if lowest > MAX_MAGNITUDE:
        raise ArithmeticError("a noise draw exceeds 2**53 grid steps and is not released")
    return lowest


class LazyUniform:
    """A uniform number in (0, 1) whose bits are revealed when a comparison needs them."""

    def __init__(self, numerator: int, bits: int, words: RandomWords) -> None:
        self._numerator = numerator
        self._bits = bits
        self._words = words

    def at_most(self, bound: Callable[[int], Any]) -> bool:
        """Whether u <= bound; ``bound(precision)`` is off by less than 2**-precision.

        The fixed-point bound is floored, so the true one is less than two units from it on either
        side; u lies in [numerator, numerator + 1] / 2**bits. If these do not overlap, the answer is
        certain; otherwise the next 64 bits of u decide, or those after them.
        """
        while True:
            precision = self._bits + _GUARD_BITS
            fixed = int(libmp.to_fixed(bound(precision), precision))
            if (self._numerator + 1) << _GUARD_BITS <= fixed - 2:
                return True
            if self._numerator << _GUARD_BITS >= fixed + 2:
                return False
            self._numerator = (self._numerator << 64) | int(self._words(1)[0])
            self._bits += 64
