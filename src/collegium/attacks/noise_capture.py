"""Noise that hears what it is added to: how an auditor sees every noised value of the real job.

Nothing of the mechanism is replaced or guessed at: the labelling job runs as it is, its noise comes from
the source that is audited, and what is written down is the very sum that the job computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.noise.sources import NoiseSource

Floats = NDArray[np.float64]


class _Overheard(np.ndarray):
    """An array of noise; whoever adds something to it is overheard, and gets a plain array."""

    tell: Callable[[Floats], None]

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        plain = [np.asarray(value) if isinstance(value, _Overheard) else value for value in given]
        result = getattr(ufunc, method)(*plain, **options)
        if ufunc is np.add and method == "__call__":
            self.tell(np.atleast_1d(result))
        return result


class ListeningNoise:
    """The noise of another source; remembers every value after that noise was added to it.

    This is what the account pays for: the strongest adversary is shown the noisy counts and the noisy
    maximum, and not only the label or the refusal that follows from them.

    ``source``: where the noise comes from.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> ear = ListeningNoise(SeededNoise(1))
    >>> noisy = np.array([5.0, 2.0]) + ear.gaussian(1.0, 2, query=0, purpose="answer")
    >>> bool((ear.heard(1, 2)[1][0] == noisy).all())
    True
    """

    def __init__(self, source: NoiseSource) -> None:
        self._source = source
        self._checks: dict[int, float] = {}
        self._answers: dict[int, Floats] = {}

    @property
    def is_private(self) -> bool:
        """False: somebody listens."""
        return False

    @property
    def description(self) -> str:
        """What to print beside every guarantee."""
        return "not private: an auditor listens"

    def gaussian(self, sigma: float, size: int, *, query: int, purpose: str) -> Floats:
        """Pass Gaussian noise on."""
        noise = self._source.gaussian(sigma, size, query=query, purpose=purpose)
        return self._listening(noise, query, purpose)

    def laplace(self, scale: float, size: int, *, query: int, purpose: str) -> Floats:
        """Pass Laplace noise on."""
        noise = self._source.laplace(scale, size, query=query, purpose=purpose)
        return self._listening(noise, query, purpose)

    def exponential(self, scale: float, size: int, *, query: int, purpose: str) -> Floats:
        """Pass exponential noise on unheard: its account pays for the winner only."""
        return self._source.exponential(scale, size, query=query, purpose=purpose)

    def gumbel(self, scale: float, size: int, *, query: int, purpose: str) -> Floats:
        """Pass Gumbel noise on unheard: its account pays for the winner only."""
        return self._source.gumbel(scale, size, query=query, purpose=purpose)

    def _listening(self, noise: Floats, query: int, purpose: str) -> Floats:
        def tell(noisy: Floats) -> None:
            if purpose == "check":
                self._checks[query] = float(noisy[0])
            else:
                self._answers[query] = noisy

        array = noise.view(_Overheard)
        array.tell = tell
        return array

    def heard(self, queries: int, n_classes: int) -> tuple[Floats, Floats]:
        """All noised values by query, NaN where there is none; then forget them.

        Returns ``checks`` (queries,): noisy maxima.
        Returns ``answers`` (queries, n_classes): noisy counts.
        """
        checks = np.full(queries, math.nan)
        answers = np.full((queries, n_classes), math.nan)
        for query, value in self._checks.items():
            checks[query] = value
        for query, values in self._answers.items():
            answers[query] = values
        self._checks, self._answers = {}, {}
        return checks, answers
