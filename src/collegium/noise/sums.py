"""Noisy sums: whole numbers on a grid in, whole numbers with exactly rounded noise out.

Weighted votes, clipped gradients and sums that answer questions are vectors of whole numbers of grid steps. A
method says what one step is, how far a person moves the vector, and how large the noise is; here noise in
whole steps is drawn and added. The result is the continuous mechanism, rounded (``docs/noise.md``), so what
the method was charged for holds to the last bit.

A method first charges, then calls :meth:`NoisySum.noised`, once for each draw, and from then on uses nothing
but the result.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError
from collegium.noise.exact_sampling import (
    EXPONENTIAL,
    GAUSSIAN,
    GUMBEL,
    LAPLACE,
    MAX_SCALE_STEPS,
    RandomWords,
    StandardVariable,
    TwoBranches,
    draw_rounded,
)
from collegium.noise.grid import GRID

Integers = NDArray[np.int64]

MAX_SCALE: float = MAX_SCALE_STEPS * GRID
"""Largest sigma or scale on the grid of votes, in votes: 2**24 = 16,777,216."""

MOST_TOTAL = 2**62
"""Sums are below this in magnitude, whatever the data are: noise of at most 2**53 steps fits beside them."""

_LAWS: dict[str, StandardVariable | TwoBranches] = {
    "gaussian": GAUSSIAN,
    "laplace": LAPLACE,
    "exponential": EXPONENTIAL,
    "gumbel": GUMBEL,
}


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise on every coordinate of a sum: public, and with the sensitivity all that a price depends on.

    ``kind``: "gaussian" (``scale`` is the standard deviation), "laplace" (density exp(-\\|z\\| / scale) /
        (2 scale)), "exponential" (its positive half) or "gumbel" (Pr[Z <= z] = exp(-exp(-z / scale))).
    ``scale``: before rounding, in grid steps, in (0, 2**44]; the exact value of the float is used.

    Examples
    --------
    >>> Noise("gaussian", 3.0).protects_sums, Noise("gumbel", 3.0).protects_sums
    (True, False)
    """

    kind: str
    scale: float

    def __post_init__(self) -> None:
        if self.kind not in _LAWS:
            raise InputError(f"unknown noise {self.kind!r}: allowed are {', '.join(_LAWS)}")
        if not 0.0 < self.scale <= MAX_SCALE_STEPS:
            raise InputError(
                f"noise of {self.scale:g} grid steps cannot be drawn exactly; allowed are scales above 0 "
                "and up to 2**44"
            )

    @classmethod
    def in_votes(cls, kind: str, scale: SupportsFloat) -> Noise:
        """Noise on the grid of votes, with its scale in votes.

        Examples
        --------
        >>> Noise.in_votes("laplace", 0.5).scale
        524288.0
        """
        try:
            votes = math.nan if isinstance(scale, (bool, str, bytes)) else float(scale)
        except (TypeError, ValueError, OverflowError):
            votes = math.nan
        if not 0.0 < votes <= MAX_SCALE:
            name = "sigma" if kind == "gaussian" else "scale"
            raise InputError(
                f"{name} = {scale!r} cannot be a noise scale; "
                f"give a number of votes above 0 and at most 2**24 = {MAX_SCALE:,.0f}"
            )
        return cls(kind, votes / GRID)  # exact: GRID is a power of two

    @property
    def protects_sums(self) -> bool:
        """Whether an account of this noise pays for the noisy sums, and not only for which is the largest."""
        return self.kind in ("gaussian", "laplace")

    def drawn(self, size: int, words: RandomWords) -> Integers:
        """Draw independent values, shape (size,), in grid steps."""
        return draw_rounded(
            _LAWS[self.kind], self.scale, size, words, signed=self.kind != "exponential"
        )


class NoisySum(Protocol):
    """Adds noise to a sum: :class:`~collegium.noise.sources.SecureNoise`, say.

    The sum may have terms in several places. Each place then calls :meth:`noised` with what it has summed
    itself, and all get the same result, the sum over all places with noise once. That is why a method may not
    look at its own sum otherwise, and why shape, noise, query and purpose follow from public things alone.
    """

    @property
    def is_private(self) -> bool:
        """Whether a privacy guarantee may be stated for what was released with this noise."""
        ...

    @property
    def description(self) -> str:
        """Where the noise comes from, in words."""
        ...

    @property
    def excess(self) -> float:
        """By how much the noise is larger than what was asked for: a multiple of its standard deviation.

        Error bars are wider by it; no account is smaller.
        """
        ...

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        """Add independent noise to each coordinate. The caller has charged for it before.

        ``sensitive_sum``: of any shape, in grid steps; over all places below ``MOST_TOTAL`` in magnitude,
            which the caller knows from public numbers.
        ``noise``: what is added.
        ``query``, ``purpose``: name this draw among all of a job; a name is used once.
        Returns: in grid steps, of the same shape.

        Raises whatever keeps a sum from being completed. It then counts as drawn, and stays charged.
        """
        ...


class LocalSum(ABC):
    """Noisy sums of what is on this machine, and noise by itself, from a source of random words."""

    __slots__ = ()

    @property
    def excess(self) -> float:
        """1: the noise is what was asked for."""
        return 1.0

    @property
    @abstractmethod
    def is_private(self) -> bool:
        """Whether a privacy guarantee may be stated for what was released with this noise."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Where the noise comes from, in words."""

    @abstractmethod
    def _words(self, stream: str, query: int, purpose: str) -> RandomWords:
        """Return uniform 64-bit words; ``stream``: for which kind of noise, or "words"."""

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        """Add independent noise to each coordinate: see :meth:`NoisySum.noised`.

        Each value of the noise is the integer nearest to a continuous Z, with exactly the probabilities
        that this defines.
        """
        drawn = noise.drawn(sensitive_sum.size, self._words(noise.kind, query, purpose))
        return np.asarray(sensitive_sum + drawn.reshape(sensitive_sum.shape))

    def words(self, *, query: int, purpose: str) -> RandomWords:
        """Return a source of independent, uniform 64-bit words."""
        return self._words("words", query, purpose)

    def gaussian(self, sigma: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Gaussian noise of standard deviation ``sigma``, rounded to the grid of votes.

        ``sigma``: standard deviation before rounding, in votes, in (0, 2**24]; the exact value of
            the float is used.
        ``size``: how many values, at least 1.
        ``query``, ``purpose``: name the draw.
        Returns (size,): in votes.
        """
        return self._in_votes("gaussian", sigma, size, query, purpose)

    def laplace(self, scale: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Laplace noise of density exp(-\\|z\\| / scale) / (2 scale), rounded to the grid of votes.

        Parameters and errors are those of :meth:`gaussian`, with ``scale`` in place of ``sigma``.

        Returns (size,): in votes.
        """
        return self._in_votes("laplace", scale, size, query, purpose)

    def exponential(
        self, scale: float, size: int, *, query: int, purpose: str
    ) -> NDArray[np.float64]:
        """Exponential noise of density exp(-z / scale) / scale for z > 0, rounded to the grid of votes.

        It protects which noisy count is the largest, not the noisy counts. Parameters and errors are
        those of :meth:`laplace`.

        Returns (size,): in votes.
        """
        return self._in_votes("exponential", scale, size, query, purpose)

    def gumbel(self, scale: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Gumbel noise, Pr[Z <= z] = exp(-exp(-z / scale)), rounded to the grid of votes.

        It protects which noisy count is the largest, not the noisy counts. Parameters and errors are
        those of :meth:`laplace`.

        Returns (size,): in votes.
        """
        return self._in_votes("gumbel", scale, size, query, purpose)

    def _in_votes(
        self, kind: str, scale: float, size: int, query: int, purpose: str
    ) -> NDArray[np.float64]:
        noise, count = Noise.in_votes(kind, scale), integer("size", size)
        if count < 1:
            raise InputError(f"size = {count} noise values were asked for; ask for at least 1")
        return noise.drawn(count, self._words(kind, query, purpose)).astype(np.float64) * GRID


def integer(name: str, value: SupportsIndex) -> int:
    """Return an integer as int; refuse what is none."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} = {value!r} is not an integer; give an integer") from None
