"""Noise that remembers what it was added to: how an auditor sees every noised value of the real job.

Nothing of the mechanism is replaced or guessed at: the labelling job runs as it is, its noise comes from
the source that is audited, and what is written down is the very sum that the job uses.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from collegium.noise.grid import GRID
from collegium.noise.sums import Integers, Noise, NoisySum

Floats = NDArray[np.float64]


class Listener:
    """Noise of another source that somebody listens to."""

    def __init__(self, source: NoisySum) -> None:
        self._source = source

    @property
    def is_private(self) -> bool:
        """False: somebody listens."""
        return False

    @property
    def description(self) -> str:
        """What to print beside every guarantee."""
        return "not private: an auditor listens"

    @property
    def excess(self) -> float:
        """As the source has it."""
        return self._source.excess


class ListeningNoise(Listener):
    """The noise of another source; remembers every noisy sum for which the account pays.

    The strongest adversary is shown the noisy counts and the noisy maximum, and not only the label or the
    refusal that follows from them. Of noise whose account pays for the winner only, nothing is remembered.

    ``source``: where the noise comes from.

    Examples
    --------
    >>> from collegium.noise.sources import SeededNoise
    >>> ear = ListeningNoise(SeededNoise(1))
    >>> its = Noise.in_votes("gaussian", 1.0)
    >>> noisy = ear.noised(np.array([5, 2]), its, query=0, purpose="answer")
    >>> bool((ear.heard(1, 2)[1][0] == noisy * GRID).all())
    True
    """

    def __init__(self, source: NoisySum) -> None:
        super().__init__(source)
        self._checks: dict[int, float] = {}
        self._answers: dict[int, Floats] = {}

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        """Let the source add its noise, and remember the result."""
        noisy = self._source.noised(sensitive_sum, noise, query=query, purpose=purpose)
        if noise.protects_sums:
            values: Floats = noisy * np.float64(GRID)
            if purpose == "check":
                self._checks[query] = float(values[0])
            else:
                self._answers[query] = values
        return noisy

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
