"""The real labelling job, with an auditor who hears every noised value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.voting.labelling import LabellingJob

Floats = NDArray[np.float64]


class OverheardJob(LabellingJob):
    """A labelling job that keeps what it noised: everything that its account pays for.

    Nothing of the mechanism is replaced: values are written down after noise was added, as the
    strongest adversary may see them, who is shown the noisy counts and not only their winner.

    Attributes
    ----------
    checks : dict of int to float
        Noisy maximum of each query that was checked.
    answers : dict of int to ndarray, shape (n_classes,)
        Noisy counts of each query that was answered.
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.checks: dict[int, float] = {}
        self.answers: dict[int, Floats] = {}

    def _noised(
        self, sensitive_values: Floats, scale: float, query: int, purpose: str
    ) -> Floats:
        noisy = super()._noised(sensitive_values, scale, query, purpose)
        if purpose == "check":
            self.checks[query] = float(noisy[0])
        else:
            self.answers[query] = noisy
        return noisy

    def heard(self, queries: int, n_classes: int) -> tuple[Floats, Floats]:
        """All noised values by query; NaN where there is none.

        Returns
        -------
        checks : ndarray, shape (queries,)
        answers : ndarray, shape (queries, n_classes)
        """
        checks = np.full(queries, math.nan)
        answers = np.full((queries, n_classes), math.nan)
        for query, value in self.checks.items():
            checks[query] = value
        for query, values in self.answers.items():
            answers[query] = values
        return checks, answers
