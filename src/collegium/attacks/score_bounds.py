"""From scores of canaries that were in, and of canaries that were out, to lower bounds on μ and ε.

Four bounds, from the least to the most that is assumed:

- guesses about one run, under (ε, δ)-DP [1]_ and under μ-GDP [2]_: canaries may interfere with one another;
- rates at thresholds, by exact limits of a share [3]_: scores of different canaries are independent;
- the *Gaussian fit* [3]_ [4]_: they are independent and normal with one standard deviation, as projections
  of Gaussian noise on orthogonal canaries are. Then μ is the distance of the two means in standard
  deviations, and its limits are those of the non-centrality of a t distribution [5]_.

How many guesses are made, and how many false alarms thresholds may have, is fixed before any score is seen;
the error probability is shared out evenly among these choices.

References
----------
.. [1] T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023,
   arXiv 2305.08846, Thm 5.2.
.. [2] S. Mahloujifar, L. Melis, K. Chaudhuri, "Auditing f-differential privacy in one run", ICML 2025,
   arXiv 2410.22235.
.. [3] M. Nasr, J. Hayes, T. Steinke, B. Balle, F. Tramèr, M. Jagielski, N. Carlini, A. Terzis, "Tight
   auditing of differentially private machine learning", USENIX Security 2023, arXiv 2302.07956: μ from
   error rates.
.. [4] T. Steinke et al., "The last iterate advantage: empirical auditing and principled heuristic analysis
   of differentially private SGD", 2024, arXiv 2406.04827.
.. [5] M. Abramowitz, I. Stegun, "Handbook of mathematical functions", 1964, 26.7.10: the non-central t
   distribution through a normal one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from collegium.accounting.gaussian import gdp_epsilon
from collegium.attacks.bounds import (
    Guesses,
    binomial_bounds,
    epsilon_from_rates,
    mu_from_rates,
    one_run_epsilon,
)
from collegium.attacks.finite import finite_numbers
from collegium.attacks.one_run_gdp import one_run_mu
from collegium.checks import check_number
from collegium.errors import InputError

Floats = NDArray[np.float64]
_FEWEST = 10


@dataclass(frozen=True)
class ScoreBounds:
    """Lower bounds from the scores of canaries; each holds with the stated confidence by itself.

    ``guessed_epsilon``: of guesses, under (ε, δ)-DP. ``guessed_mu``: of guesses, under μ-GDP.
    ``rates_epsilon``, ``rates_mu``: of rates at thresholds; they hold together.
    ``fitted_mu``: of the Gaussian fit.
    ``fit``: its estimate of μ, which is no bound. ``n_in``, ``n_out``: canaries.
    """

    guessed_epsilon: float
    guessed_mu: float
    rates_epsilon: float
    rates_mu: float
    fitted_mu: float
    fit: float
    n_in: int
    n_out: int

    def to_json(self, delta: float) -> dict[str, float]:
        """Write all of them; ε at ``delta`` beside each μ."""
        return {
            "n_in": self.n_in,
            "n_out": self.n_out,
            "guesses_epsilon": self.guessed_epsilon,
            "guesses_gdp_mu": self.guessed_mu,
            "guesses_gdp_epsilon": gdp_epsilon(self.guessed_mu, delta),
            "rates_epsilon": self.rates_epsilon,
            "rates_mu": self.rates_mu,
            "fit_mu": self.fit,
            "fit_lower_mu": self.fitted_mu,
            "fit_lower_epsilon": gdp_epsilon(self.fitted_mu, delta),
        }


def bounds_of_scores(
    inside: Floats, outside: Floats, delta: float, error: float = 0.05
) -> ScoreBounds:
    """Bound ε and μ from below by the scores of canaries.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_in,) and (n_out,)
        Scores, larger where "in" is likelier. Whether a canary is in was decided by a fair coin of its own.
    delta : float
        The δ at which ε is claimed.
    error : float, default=0.05
        1 − confidence of each bound.

    Returns
    -------
    ScoreBounds

    Raises
    ------
    InputError
        If there are fewer than 10 scores on a side, or one is NaN or infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> found = bounds_of_scores(rng.normal(0.72, 1, 500), rng.normal(0, 1, 500), 1e-5)
    >>> round(found.guessed_mu, 2), round(found.fitted_mu, 2), round(found.fit, 2)
    (0.35, 0.66, 0.77)
    """
    inside, outside = _checked(inside), _checked(outside)
    check_number("the error probability", error, above=0, below=1)
    rates_epsilon, rates_mu = _bounds_of_rates(inside, outside, delta, error)
    low, fit, _ = fitted_mu(inside, outside, error)
    return ScoreBounds(
        guessed_epsilon=_best_guesses(
            inside, outside, error, lambda made, share: one_run_epsilon(made, delta, share)
        ),
        guessed_mu=_best_guesses(inside, outside, error, one_run_mu),
        rates_epsilon=rates_epsilon,
        rates_mu=rates_mu,
        fitted_mu=max(0.0, low),
        fit=fit,
        n_in=len(inside),
        n_out=len(outside),
    )


def fitted_mu(inside: Floats, outside: Floats, error: float) -> tuple[float, float, float]:
    """Fit μ to normal scores of one standard deviation.

    ``error``: error probability of each of the two limits.
    Returns: lower limit, estimate, upper limit; infinite where scores have no noise at all.

    Examples
    --------
    >>> [round(one, 3) for one in fitted_mu(np.arange(20.0) + 6, np.arange(20.0), 0.025)]
    [0.347, 1.014, 1.668]
    """
    n_in, n_out = len(inside), len(outside)
    free = n_in + n_out - 2
    squares = ((inside - inside.mean()) ** 2).sum() + ((outside - outside.mean()) ** 2).sum()
    spread, moved = math.sqrt(squares / free), float(inside.mean() - outside.mean())
    if spread == 0:
        sure = math.copysign(math.inf, moved) if moved else 0.0
        return sure, sure, sure
    unit = math.sqrt(1 / n_in + 1 / n_out)
    t = moved / (spread * unit)
    middle = t * (1 - 1 / (4 * free))
    wide = -float(ndtri(error)) * math.sqrt(1 + t**2 / (2 * free))
    return (middle - wide) * unit, moved / spread, (middle + wide) * unit


def _best_guesses(
    inside: Floats, outside: Floats, error: float, bound: Callable[[Guesses, float], float]
) -> float:
    """Guess about the highest and the lowest scores: about a fixed number of them, for several numbers."""
    n = len(inside) + len(outside)
    is_in = np.repeat([True, False], [len(inside), len(outside)])
    order = np.argsort(-np.concatenate([inside, outside]), kind="stable")
    ordered = is_in[order]
    halves = [n // 2**power for power in range(1, max(2, int(math.log2(n)) - 1))]
    best = 0.0
    for half in halves:
        right = int(ordered[:half].sum() + (~ordered[n - half :]).sum())
        best = max(best, bound(Guesses(n, 2 * half, right), error / len(halves)))
    return best


def _bounds_of_rates(
    inside: Floats, outside: Floats, delta: float, error: float
) -> tuple[float, float]:
    """Accuse whoever is above all but so many of those out: their share beyond it is a Beta variable."""
    numbers = [len(outside) // 2**power for power in range(1, 1 + int(math.log2(len(outside))))]
    share = error / (2 * len(numbers))
    descending, ascending = -np.sort(-outside), np.sort(inside)
    found = len(inside) - np.searchsorted(ascending, descending[numbers], side="right")
    true_low, _ = binomial_bounds(found, len(inside), share)
    _, false_high = binomial_bounds(numbers, len(outside), share)
    return (
        float(epsilon_from_rates(true_low, false_high, delta).max()),
        float(mu_from_rates(true_low, false_high).max()),
    )


def _checked(scores: Floats) -> Floats:
    values = finite_numbers("scores of canaries", scores)
    if values.ndim != 1 or len(values) < _FEWEST:
        raise InputError(
            f"scores of canaries must be at least {_FEWEST} numbers on each side, got "
            f"{values.size:,}: insert more canaries"
        )
    return values
