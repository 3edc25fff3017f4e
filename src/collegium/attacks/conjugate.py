"""Scores of membership from shadow runs: two predictive distributions with conjugate variances.

Of each person some number was seen of each of many runs (how sure a model is of their class, say): of runs in
which they were, and of runs in which they were not. How much likelier is what was seen of the attacked run
if they are in? With x for it, the score is log p(x | in) - log p(x | out), and what is assumed of p makes the
attack:

- ``ratio``: x less the mean of all runs, on the scale of likelihoods: log(e^x / mean e^X). One mean per
  person and no variance is estimated: the ratio of RMIA [1]_, without its comparison to other people.
- ``fixed``: normal, a mean per person and side, one variance for all: LiRA [2]_ with fixed variance.
- ``conjugate``: mean and variance per person and side, each drawn towards what is typical by as much as the
  shadow runs say that people differ: Bayesian variances [3]_, of which the two others are limits.

The conjugate score, for one side with n values of mean m and sum of squares S around it: with the prior
σ² ~ InvGamma(a, b), mean | σ² ~ N(m₀, σ²/k), the posterior has k' = k + n, m' = (k·m₀ + n·m)/k',
a' = a + n/2, b' = b + S/2 + k·n·(m − m₀)²/(2k'), and the predictive is Student's t with 2a' degrees of
freedom, location m' and squared scale b'(k' + 1)/(a'·k') [4]_. As a → ∞ with b/a fixed, the variance is that
of everybody.

The prior is estimated from the shadow runs of all people: a and b from mean and variance of the logarithms of
people's variances [5]_; m₀ is the person's own mean over both sides, moved by half of the distance that is
typical between "in" and "out"; k says how much these distances differ beyond what chance makes of them.

References
----------
.. [1] S. Zarifzadeh, P. Liu, R. Shokri, "Low-cost high-power membership inference attacks", ICML 2024,
   arXiv 2312.03262.
.. [2] N. Carlini, S. Chien, M. Nasr, S. Song, A. Terzis, F. Tramèr, "Membership inference attacks from first
   principles", IEEE S&P 2022, arXiv 2112.03570.
.. [3] R. Brännvall, "Exponential-family membership inference: from LiRA and RMIA to BaVarIA", 2026,
   arXiv 2603.11799v1.
.. [4] K. Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007, sections 3 and 6.
.. [5] G. Smyth, "Linear models and empirical Bayes methods for assessing differential expression in
   microarray experiments", Stat. Appl. Genet. Mol. Biol. 3(1), 2004, section 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, logsumexp, polygamma

from collegium.attacks.finite import finite_numbers
from collegium.checks import check_choice
from collegium.errors import InputError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

KINDS = ("conjugate", "fixed", "ratio")
_STRONGEST = 1e6
_LEAST_SHAPE = 1e-3
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class _Side:
    """Values of one side: how many each person has, their mean, and squares around it, all (n_people,)."""

    number: Floats
    mean: Floats
    squares: Floats

    @classmethod
    def of(cls, seen: Floats, chosen: Flags) -> _Side:
        number = chosen.sum(axis=0).astype(np.float64)
        total = np.where(chosen, seen, 0.0).sum(axis=0)
        mean = total / np.maximum(number, 1)
        squares = np.where(chosen, (seen - mean) ** 2, 0.0).sum(axis=0)
        return cls(number, mean, squares)


def scores_by_shadows(
    attacked: Floats, shadows: Floats, is_in: Flags, kind: str = "conjugate"
) -> Floats:
    """Score everybody by what was seen of one run, beside many others.

    Parameters
    ----------
    attacked : ndarray of shape (n_people,)
        What was seen of the attacked run.
    shadows : ndarray of shape (n_runs, n_people)
        The same of each shadow run.
    is_in : ndarray of bool of shape (n_runs, n_people)
        Who was in each of them.
    kind : {"conjugate", "fixed", "ratio"}
        What is assumed.

    Returns
    -------
    ndarray of shape (n_people,)
        Larger where "in" is likelier; comparable between people.

    Raises
    ------
    InputError
        If shapes differ, a value is NaN or infinite, or somebody is in (or out of) fewer than two shadow
        runs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> is_in = rng.random((65, 400)) < 0.5
    >>> seen = rng.normal(size=400) + 3 * is_in + rng.normal(size=(65, 400))
    >>> scores = scores_by_shadows(seen[0], seen[1:], is_in[1:])
    >>> bool(((scores > 0) == is_in[0]).mean() > 0.9)
    True
    """
    attacked = finite_numbers("what is seen of the attacked run", attacked)
    shadows = finite_numbers("what is seen of the shadow runs", shadows)
    is_in = np.asarray(is_in, dtype=bool)
    check_choice("kind", kind, KINDS)
    if shadows.shape != is_in.shape or shadows.shape[1:] != attacked.shape:
        raise InputError(
            f"shadow runs of shape {shadows.shape} need who was in of the same shape and one value of the "
            f"attacked run for each person, got {is_in.shape} and {attacked.shape}"
        )
    sides = _Side.of(shadows, is_in), _Side.of(shadows, ~is_in)
    fewest = int(min(side.number.min() for side in sides))
    if fewest < 2:
        raise InputError(
            f"somebody is in (or out of) only {fewest} of {len(shadows)} shadow runs, at least 2 are needed: "
            "make more shadow runs"
        )
    if kind == "ratio":
        return np.asarray(attacked - (logsumexp(shadows, axis=0) - np.log(len(shadows))))
    own = _own_variances(sides)
    distance, strength = _typical_distance(sides, own)
    shape, variance = _prior_of_variances(sides, own)
    if kind == "fixed":
        strength, shape, variance = 0.0, _STRONGEST, _common_variance(sides, own)
    middle = (sides[0].mean + sides[1].mean) / 2
    places = middle + distance / 2, middle - distance / 2
    logs = [
        _log_predictive(attacked, side, place, strength, shape, variance)
        for side, place in zip(sides, places, strict=True)
    ]
    return np.asarray(logs[0] - logs[1])


def _own_variances(sides: tuple[_Side, _Side]) -> Floats:
    """Each person's variance within sides; never 0."""
    inside, outside = sides
    squares = inside.squares + outside.squares
    scale = max(1.0, *(float(np.abs(side.mean).max(initial=0.0)) for side in sides))
    return np.asarray(np.maximum(squares / _free(sides), (_TINY * scale) ** 2))


def _free(sides: tuple[_Side, _Side]) -> Floats:
    """Degrees of freedom of each person's variance."""
    return np.asarray(sides[0].number + sides[1].number - 2)


def _common_variance(sides: tuple[_Side, _Side], own: Floats) -> float:
    """One variance for all, within people and sides."""
    free = _free(sides)
    return float((own * free).sum() / free.sum())


def _typical_distance(sides: tuple[_Side, _Side], own: Floats) -> tuple[float, float]:
    """Distance between both sides, and how many values of a side it is worth as a guess at a person's own."""
    inside, outside = sides
    by_chance = own * (1 / inside.number + 1 / outside.number)
    distances = inside.mean - outside.mean
    distance = float((distances / by_chance).sum() / (1 / by_chance).sum())
    beyond = float(((distances - distance) ** 2 / by_chance).mean()) - 1
    if beyond <= 0:
        return distance, _STRONGEST
    # Each side lies half a distance from the middle, so that its variance is a quarter of the distance's.
    own_share = beyond / 4 * float((1 / inside.number + 1 / outside.number).mean())
    return distance, min(1 / own_share, _STRONGEST)


def _prior_of_variances(sides: tuple[_Side, _Side], own: Floats) -> tuple[float, float]:
    """Shape a of the variances, and b/a."""
    half = _free(sides) / 2
    logs = np.log(own) - digamma(half) + np.log(half)
    spread = float(logs.var()) - float(polygamma(1, half).mean())
    if spread <= polygamma(1, _STRONGEST):
        return _STRONGEST, float(np.exp(logs.mean()))
    shape = brentq(lambda a: float(polygamma(1, a)) - spread, _LEAST_SHAPE, _STRONGEST)
    return shape, float(np.exp(logs.mean() + digamma(shape) - np.log(shape)))


def _log_predictive(
    x: Floats, side: _Side, place: Floats, strength: float, shape: float, variance: float
) -> Floats:
    """Log density of Student's t, as the module says."""
    n = side.number
    k = strength + n
    location = (strength * place + n * side.mean) / k
    a = shape + n / 2
    b = shape * variance + side.squares / 2 + strength * n * (side.mean - place) ** 2 / (2 * k)
    squared = b * (k + 1) / (a * k)
    return np.asarray(
        gammaln(a + 0.5)
        - gammaln(a)
        - 0.5 * np.log(2 * np.pi * a * squared)
        - (a + 0.5) * np.log1p((x - location) ** 2 / (2 * a * squared))
    )
