"""From counts of right and wrong guesses to lower bounds on ε and μ, at a stated confidence.

References
----------
.. [1] C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case of
   the binomial", Biometrika 26(4), 1934.
.. [2] P. Kairouz, S. Oh, P. Viswanath, "The composition theorem for differential privacy", ICML 2015,
   Thm 2.1: (ε, δ)-DP as a constraint on the two error rates of every test.
.. [3] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS-B 84(1), 2022, Def. 2.6.
.. [4] T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023,
   arXiv 2305.08846, Thm 5.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import beta, binom

from collegium.checks import check_number
from collegium.errors import InputError

Floats = NDArray[np.float64]


def binomial_bounds(successes: ArrayLike, trials: float, error: float) -> tuple[Floats, Floats]:
    """Bound a probability from below and from above, each failing with probability ``error`` at most.

    Clopper & Pearson's exact limits [1]_.

    ``trials``: number of trials, at least 1; a fraction where trials that depend on one another count as
        fewer.
    ``error``: error probability of each of the two limits, in (0, 1).

    Examples
    --------
    >>> low, high = binomial_bounds(5, 10, 0.025)
    >>> round(float(low), 4), round(float(high), 4)
    (0.1871, 0.8129)
    """
    counts = np.asarray(successes, dtype=np.float64)
    if trials < 1 or (counts < 0).any() or (counts > trials).any():
        raise InputError(f"successes must lie between 0 and the number of trials, {trials}")
    check_number("the error probability", error, above=0, below=1)
    with np.errstate(all="ignore"):
        lower = np.where(counts > 0, beta.ppf(error, counts, trials - counts + 1), 0.0)
        upper = np.where(counts < trials, beta.isf(error, counts + 1, trials - counts), 1.0)
    return lower, upper


def epsilon_from_rates(true_low: ArrayLike, false_high: ArrayLike, delta: float) -> Floats:
    """Bound ε from below by one event: true positive rate ≤ e^ε · false positive rate + δ [2]_.

    The same inequality for the complement is used too: it needs no further confidence limits.

    ``true_low``: lower limit of the event's probability on one side.
    ``false_high``: upper limit of its probability on the neighbouring side.
    ``delta``: the δ at which ε is claimed.
    Returns: at least 0.

    Examples
    --------
    >>> float(epsilon_from_rates(0.8, 0.1, 0.0).round(4))
    2.0794
    """
    hit, alarm = np.asarray(true_low, dtype=np.float64), np.asarray(false_high, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = np.log(np.maximum(hit - delta, 0.0)) - np.log(alarm)
        complement = np.log(np.maximum(1 - alarm - delta, 0.0)) - np.log1p(-hit)
        best = np.fmax(direct, complement)
    return np.asarray(np.maximum(np.where(np.isnan(best), 0.0, best), 0.0))


def mu_from_rates(true_low: ArrayLike, false_high: ArrayLike) -> Floats:
    """Bound μ from below by one event: μ ≥ Φ⁻¹(true positive rate) − Φ⁻¹(false positive rate) [3]_.

    Returns: at least 0.

    Examples
    --------
    >>> float(mu_from_rates(0.8, 0.1).round(4))
    2.1232
    """
    hit, alarm = np.asarray(true_low, dtype=np.float64), np.asarray(false_high, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        difference = ndtri(hit) - ndtri(alarm)
    return np.asarray(np.maximum(np.where(np.isnan(difference), 0.0, difference), 0.0))


@dataclass(frozen=True)
class Guesses:
    """What came of guessing which canaries were in a study.

    ``canaries``: canaries m, each of them in the study by a fair coin of its own.
    ``guessed``: guesses r made (for the other canaries the auditor abstained); fixed by a rule, not
        by how well it went.
    """

    canaries: int
    guessed: int
    correct: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.guessed <= self.canaries or self.canaries < 1:
            raise InputError(
                f"{self.correct} right of {self.guessed} guesses about {self.canaries} canaries: give "
                "at least one canary, and no more guesses than canaries, nor more right ones than guesses"
            )


def one_run_p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """Bound the probability of so many right guesses about a study that is (ε, δ)-DP.

    Steinke, Nasr & Jagielski 2023 [4]_, Thm 5.2. Let B be the number of successes in r trials of
    probability e^ε/(1 + e^ε): what ε-DP randomized response, the easiest ε-DP mechanism to guess,
    would give away. Then Pr[right ≥ v] ≤ Pr[B ≥ v] + 2mδ · max_{1 ≤ i ≤ v} Pr[v − i ≤ B < v] / i.
    Guesses may depend on one another and on the whole output in any way.

    ``epsilon``, ``delta``: the hypothesis: (ε, δ)-DP for each canary's owner, added or removed.
    Returns: in [0, 1].

    Examples
    --------
    >>> one_run_p_value(Guesses(10, 10, 10), 0.0, 0.0) == 2.0**-10
    True
    """
    right, made = guesses.correct, guesses.guessed
    if right == 0:
        return 1.0
    chance = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, made, chance))
    if delta == 0:
        return min(tail, 1.0)
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), made, chance))
    steepest = float((below / np.arange(1, right + 1)).max())
    return min(tail + 2 * guesses.canaries * delta * steepest, 1.0)


def one_run_epsilon(guesses: Guesses, delta: float, error: float) -> float:
    """Bound ε from below: the ε returned, hence every smaller one, is refuted.

    A study that is (ε₀, δ)-DP gets a bound above ε₀ with probability below ``error``: let v be the
    smallest number of right guesses whose bound exceeds ε₀. The study is (bound(v), δ)-DP as well,
    so at least v right guesses have a probability of at most p(v, bound(v)) < ``error``. This needs
    no monotone p-value; bisection merely looks for a large ε that is refuted.

    ``delta``: the δ at which ε is claimed.
    ``error``: 1 − confidence.
    Returns: at least 0; 0 if even ε = 0 cannot be refuted.

    Examples
    --------
    >>> round(one_run_epsilon(Guesses(100, 100, 100), 1e-5, 0.05), 2)
    3.49
    """
    check_number("the error probability", error, above=0, below=1)
    if one_run_p_value(guesses, 0.0, delta) >= error:
        return 0.0
    low, high = 0.0, 1.0
    while one_run_p_value(guesses, high, delta) < error:
        low, high = high, 2 * high
        if high > 1e3:
            return low
    for _ in range(60):
        middle = (low + high) / 2
        if one_run_p_value(guesses, middle, delta) < error:
            low = middle
        else:
            high = middle
    return low
