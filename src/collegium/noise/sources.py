"""Where noise comes from: the system's randomness, or a seed.

On the grid of a sum, adding rounded noise is the same as adding continuous noise and rounding the result, and
rounding is post-processing: every guarantee of the continuous Gaussian or Laplace mechanism holds verbatim.
``docs/noise.md`` has the proof, and what remains assumed. Exponential and Gumbel noise protects only which
count is the largest: ``docs/vote-accounts.md`` shows what rounding means for that.
"""

import hashlib
from typing import Protocol

import numpy as np

from collegium.noise.exact_sampling import RandomWords, operating_system_words
from collegium.noise.sums import LocalSum, integer


class WordSource(Protocol):
    """Where a mechanism takes fair bits from: :class:`SecureNoise` or :class:`SeededNoise`."""

    @property
    def is_private(self) -> bool:
        """Whether a privacy guarantee may be stated for what was released with these bits."""
        ...

    def words(self, *, query: int, purpose: str) -> RandomWords:
        """Return a source of independent, uniform 64-bit words."""
        ...


class SecureNoise(LocalSum):
    """Noise from the operating system's cryptographic randomness, fresh at every call.

    In steps of the grid, each value is the integer nearest to a continuous Z, with exactly the probabilities
    this defines. There is no seed and no state: copies, pickles and forked processes draw independently;
    ``query`` and ``purpose`` are not used.

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
        """Where the noise comes from, in words."""
        return "cryptographic noise of the operating system, exactly rounded to a grid of 2**-20"

    def _words(self, stream: str, query: int, purpose: str) -> RandomWords:
        return operating_system_words


class SeededNoise(LocalSum):
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
        self._seed = integer("seed", seed)

    def of_party(self, number: int) -> "SeededNoise":
        """Noise of the same seed that is another one at each party."""
        return SeededNoise(self._seed * 1_000_003 + number)

    @property
    def is_private(self) -> bool:
        """False: whoever knows the seed can subtract the noise."""
        return False

    @property
    def description(self) -> str:
        """Where the noise comes from, in words."""
        return "not private: seeded noise"

    def _words(self, stream: str, query: int, purpose: str) -> RandomWords:
        label = f"collegium noise|{stream}|{self._seed}|{integer('query', query)}|{purpose}"
        key = np.frombuffer(hashlib.sha256(label.encode()).digest()[:16], dtype="<u8")
        return np.random.Philox(key=key).random_raw


def noise_from(seed: int | None) -> LocalSum:
    """Noise for a release, from the system's randomness; with a seed, for an experiment.

    Examples
    --------
    >>> noise_from(None).is_private, noise_from(7).is_private
    (True, False)
    """
    return SecureNoise() if seed is None else SeededNoise(seed)
