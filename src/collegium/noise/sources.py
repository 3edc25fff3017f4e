"""The noise that is added to vote counts: exactly the distribution that is accounted for.

Vote counts live on a grid of step ``GRID``. On it, adding the rounded noise drawn here is the same
as adding continuous noise and rounding the sum, and rounding is post-processing: every guarantee of
the continuous Gaussian or Laplace mechanism holds verbatim. ``docs/noise.md`` has the proof, and
what remains assumed. Exponential and Gumbel noise protects only which count is the largest:
``docs/vote-accounts.md`` shows what rounding means for that.
"""

import hashlib
import math
import operator
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
    operating_system_words,
)
from collegium.noise.grid import GRID

MAX_SCALE: float = MAX_SCALE_STEPS * GRID
"""Largest sigma or scale, in votes: 2**24 = 16,777,216."""


class NoiseSource(Protocol):
    """Where an aggregator takes its noise from: :class:`SecureNoise` or :class:`SeededNoise`."""

    @property
    def is_private(self) -> bool:
        """Whether a privacy guarantee may be stated for what was released with this noise."""
        ...

    @property
    def description(self) -> str:
        """What to print beside every guarantee."""
        ...

    def gaussian(self, sigma: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Rounded Gaussian noise on the grid."""
        ...

    def laplace(self, scale: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Rounded Laplace noise on the grid."""
        ...

    def exponential(
        self, scale: float, size: int, *, query: int, purpose: str
    ) -> NDArray[np.float64]:
        """Rounded exponential noise on the grid: never negative."""
        ...

    def gumbel(self, scale: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Rounded Gumbel noise on the grid."""
        ...


class WordSource(Protocol):
    """Where a mechanism takes fair bits from: :class:`SecureNoise` or :class:`SeededNoise`."""

    @property
    def is_private(self) -> bool:
        """Whether a privacy guarantee may be stated for what was released with these bits."""
        ...

    def words(self, *, query: int, purpose: str) -> RandomWords:
        """Return a source of independent, uniform 64-bit words."""
        ...


class SecureNoise:
    """Noise from the operating system's cryptographic randomness, fresh at every call.

    Each value is ``GRID * K`` where K is the integer nearest to ``Z / GRID`` and Z is continuous
    noise, with exactly the probabilities this defines. There is no seed and no state: copies,
    pickles and forked processes draw independently.

    For a count on the grid and a neighbour that moves it by at most Δ, the noisy count is therefore
    Δ/σ-Gaussian-DP with Rényi divergence at most αΔ²/(2σ²) (Gaussian), or Δ/scale-DP (Laplace), by
    post-processing. Each coordinate of a call is independent, so the same holds for vectors with
    their L2 (Gaussian) or L1 (Laplace) sensitivity. The time a draw takes is not hidden.

    References
    ----------
    .. [1] I. Mironov, "On significance of the least significant bits for differential privacy",
       CCS 2012: why adding floating-point noise is not private.
    .. [2] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS-B 84(1), 2022, Thm 1:
       the Gaussian mechanism.
    .. [3] C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy",
       NeurIPS 2020: the alternative, whose loss is near, but not equal to, the Gaussian one.

    Examples
    --------
    >>> noise = SecureNoise().gaussian(40.0, 10, query=0, purpose="answer")
    >>> from collegium.noise.grid import to_grid
    >>> noise.shape, bool(np.all(to_grid(noise) == noise))
    ((10,), True)
    """

    __slots__ = ()

    @property
    def is_private(self) -> bool:
        """True: nobody can predict or repeat this noise."""
        return True

    @property
    def description(self) -> str:
        """What to print beside every guarantee."""
        return "cryptographic noise of the operating system, exactly rounded to a grid of 2**-20"

    def gaussian(self, sigma: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Gaussian noise of standard deviation ``sigma``, rounded to the grid.

        ``sigma``: standard deviation before rounding, in votes, in (0, 2**24]; the exact value of
            the float is used.
        ``size``: how many values, at least 1.
        ``query``, ``purpose``: not used: every call is fresh.
        Returns (size,): in votes.
        """
        return _draw(GAUSSIAN, "sigma", sigma, size, operating_system_words)

    def laplace(self, scale: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Laplace noise of density exp(-\\|z\\| / scale) / (2 scale), rounded to the grid.

        Parameters and errors are those of :meth:`gaussian`, with ``scale`` in place of ``sigma``.

        Returns (size,): in votes.
        """
        return _draw(LAPLACE, "scale", scale, size, operating_system_words)

    def exponential(
        self, scale: float, size: int, *, query: int, purpose: str
    ) -> NDArray[np.float64]:
        """Exponential noise of density exp(-z / scale) / scale for z > 0, rounded to the grid.

        It protects which noisy count is the largest, not the noisy counts. Parameters and errors are
        those of :meth:`laplace`.

        Returns (size,): in votes.
        """
        return _draw(EXPONENTIAL, "scale", scale, size, operating_system_words, signed=False)

    def gumbel(self, scale: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Gumbel noise, Pr[Z <= z] = exp(-exp(-z / scale)), rounded to the grid.

        It protects which noisy count is the largest, not the noisy counts. Parameters and errors are
        those of :meth:`laplace`.

        Returns (size,): in votes.
        """
        return _draw(GUMBEL, "scale", scale, size, operating_system_words)

    def words(self, *, query: int, purpose: str) -> RandomWords:
        """Return a source of fresh, uniform 64-bit words; ``query`` and ``purpose`` are not used."""
        return operating_system_words


class SeededNoise:
    """Noise that a seed determines: for experiments, never for a release.

    The distribution is that of :class:`SecureNoise`. The values are a function of the seed, the
    distribution, the query and the purpose alone, whatever else was drawn and in whatever order,
    and the streams of different queries and purposes are independent. Calling twice with the same
    arguments repeats the noise, and a larger scale stretches the same underlying draw.

    ``seed``: any integer.

    Examples
    --------
    >>> noise = SeededNoise(7)
    >>> check = noise.gaussian(150.0, 1, query=3, purpose="check")
    >>> bool(check == SeededNoise(7).gaussian(150.0, 1, query=3, purpose="check"))
    True
    >>> noise.is_private, noise.description
    (False, 'not private: seeded noise')
    """

    __slots__ = ("_seed",)

    def __init__(self, seed: int) -> None:
        self._seed = _integer("seed", seed)

    @property
    def is_private(self) -> bool:
        """False: whoever knows the seed can subtract the noise."""
        return False

    @property
    def description(self) -> str:
        """What to print beside every guarantee."""
        return "not private: seeded noise"

    def gaussian(self, sigma: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Gaussian noise as :meth:`SecureNoise.gaussian`, repeatable by (query, purpose)."""
        return _draw(GAUSSIAN, "sigma", sigma, size, self._words("gaussian", query, purpose))

    def laplace(self, scale: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Laplace noise as :meth:`SecureNoise.laplace`, repeatable by (query, purpose)."""
        return _draw(LAPLACE, "scale", scale, size, self._words("laplace", query, purpose))

    def exponential(
        self, scale: float, size: int, *, query: int, purpose: str
    ) -> NDArray[np.float64]:
        """Exponential noise as :meth:`SecureNoise.exponential`, repeatable by (query, purpose)."""
        words = self._words("exponential", query, purpose)
        return _draw(EXPONENTIAL, "scale", scale, size, words, signed=False)

    def gumbel(self, scale: float, size: int, *, query: int, purpose: str) -> NDArray[np.float64]:
        """Gumbel noise as :meth:`SecureNoise.gumbel`, repeatable by (query, purpose)."""
        return _draw(GUMBEL, "scale", scale, size, self._words("gumbel", query, purpose))

    def words(self, *, query: int, purpose: str) -> RandomWords:
        """Return a stream of uniform 64-bit words that begins anew at every call, by (query, purpose)."""
        return self._words("words", query, purpose)

    def _words(self, distribution: str, query: int, purpose: str) -> RandomWords:
        label = f"collegium noise|{distribution}|{self._seed}|{_integer('query', query)}|{purpose}"
        key = np.frombuffer(hashlib.sha256(label.encode()).digest()[:16], dtype="<u8")
        return np.random.Philox(key=key).random_raw


def _draw(
    variable: StandardVariable | TwoBranches,
    name: str,
    scale: float,
    size: int,
    words: RandomWords,
    signed: bool = True,
) -> NDArray[np.float64]:
    """Validate, draw in grid steps, and convert to votes; both conversions are exact."""
    scale_steps = _scale(name, scale) / GRID
    count = _integer("size", size)
    if count < 1:
        raise InputError(f"size = {count} noise values were asked for; ask for at least 1")
    drawn = draw_rounded(variable, scale_steps, count, words, signed=signed)
    return drawn.astype(np.float64) * GRID


def _scale(name: str, value: SupportsFloat) -> float:
    try:
        scale = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        scale = math.nan
    if not 0.0 < scale <= MAX_SCALE:
        raise InputError(
            f"{name} = {value!r} cannot be a noise scale; "
            f"give a number of votes above 0 and at most 2**24 = {MAX_SCALE:,.0f}"
        )
    return scale


def _integer(name: str, value: SupportsIndex) -> int:
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} = {value!r} is not an integer; give an integer") from None
