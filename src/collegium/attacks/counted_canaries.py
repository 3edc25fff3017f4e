"""Statistics, audited in one session: canaries in counted columns of their own, and all noisy sums are seen.

Canaries are invented people of each group; each has a category of its own of columns that nobody else has
filled in, and a fair coin decides whether its row is there or blank. The session is the real one: its
weights, its noise, its account, for people of the same groups and settings. It is asked for a histogram of
each of these columns, as many as the study asks questions, until what the study would spend is spent. So each
canary moves one count of each answer by its weight, and no other: scores are independent, and with Gaussian
noise normal, so that the Gaussian fit applies.

What people really filled in is neither read nor needed: what is audited is weights, noise and account.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.attacks.canary_finding import (
    CanaryFinding,
    draw_coins,
    judge_canaries,
    number_of_canaries,
)
from collegium.attacks.noise_capture import Listener
from collegium.budgets import Budget, Budgets
from collegium.checks import check_number, check_whole
from collegium.data.schema import Schema
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise
from collegium.noise.sums import Integers, Noise, NoisySum
from collegium.statistics.session import Statistics

Floats = NDArray[np.float64]
_MOST = 10_000  # categories of a column


class _Listening(Listener):
    """Noise of another source; adds up the noisy sums of all answers."""

    def __init__(self, source: NoisySum) -> None:
        super().__init__(source)
        self.heard: Floats | float = 0.0

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        noisy = self._source.noised(sensitive_sum, noise, query=query, purpose=purpose)
        self.heard = self.heard + noisy.ravel().astype(np.float64)
        return noisy


class _AuditedSession(Statistics):
    """A session whose noisy sums are seen."""

    def listened(self, source: NoisySum) -> _Listening:
        ear = _Listening(source)
        self._noise = ear
        return ear

    def mus(self) -> dict[str, float]:
        squared = self._account.mu_squared
        return {name: math.sqrt(one) for name, one in zip(self._table.groups, squared, strict=True)}


def audit_statistics(
    budgets: Mapping[str, Budget],
    people: Mapping[str, int],
    *,
    questions: int = 10,
    settings: Mapping[str, Any] | None = None,
    canaries: int | None = None,
    confidence: float = 0.95,
    noise: NoisySum | None = None,
    generator: np.random.Generator | None = None,
) -> list[CanaryFinding]:
    """Ask once about a table with canaries, and bound what the answers leak about each group.

    Parameters
    ----------
    budgets : mapping of str to Budget
        What people of each group granted.
    people : mapping of str to int
        How many of them there are beside the canaries.
    questions : int, default=10
        How many are asked, and among how many budgets are shared out.
    settings : mapping, optional
        Of :class:`~collegium.Statistics`: ``noise``, ``weights``, ``neighbours``, ``spend``.
    canaries : int, optional
        Over all groups, in equal parts; default: 500 in each group.
    confidence : float, default=0.95
        Probability that *all* lower bounds of all groups hold.
    noise : NoisySum, optional
        Instead of cryptographic noise, to test the audit.
    generator : numpy.random.Generator, optional
        Of the canaries' coins; default: from the operating system.

    Returns
    -------
    list of CanaryFinding
        One for each group.

    Raises
    ------
    InputError
        If something cannot be used, or there are too few canaries.

    Examples
    --------
    >>> levels = {"high": Budget(1.0), "low": Budget(3.0)}
    >>> found = audit_statistics(levels, {"high": 500, "low": 500}, questions=2)
    >>> [one.group for one in found], [one.bounds.n_in + one.bounds.n_out for one in found]
    (['high', 'low'], [500, 500])
    """
    check_number("confidence", confidence, above=0, below=1)
    check_whole("questions", questions)
    total = number_of_canaries(len(budgets), canaries)
    if total > _MOST:
        raise InputError(f"at most {_MOST:,} canaries have columns of their own, got {total:,}")
    group, is_in = draw_coins(len(budgets), total, generator)
    names = [f"canary {number}" for number in range(len(group))]
    others = np.repeat(np.arange(len(budgets)), [people[name] for name in budgets])
    filled = np.full(len(others) + len(group), None, dtype=object)
    filled[len(others) :][is_in] = np.array(names, dtype=object)[is_in]
    columns = [f"question {number}" for number in range(questions)]
    column = {"kind": "category", "categories": names}
    session = _AuditedSession(
        pd.DataFrame(dict.fromkeys(columns, filled)),
        Budgets(dict(budgets), np.concatenate([others, group])),
        schema=Schema(dict.fromkeys(columns, column)),
        questions=questions,
        **(settings or {}),
    )
    ear = session.listened(SecureNoise() if noise is None else noise)
    for name in columns:  # the same question again would be free, and answered alike
        session.histogram(name)
    spent = {row.group: float(row.epsilon_spent) for row in session.privacy_.groups}
    return judge_canaries(
        np.asarray(ear.heard),
        is_in,
        group,
        budgets,
        spent,
        session.mus(),
        are_normal=session.noise == "gaussian",
        confidence=confidence,
    )
