"""One person at a time: who of a group is exposed most, by guesses about them in many runs.

A person is in each run by a fair coin. Whoever guesses it from the run's release, and from anything known of
the runs before, is right with probability Φ(μ/2) at most if the release is μ-GDP for this person: half of
the two error rates' sum is at least Φ(-μ/2) for every test [1]_. This holds whatever came before, so that
the number of right guesses in T runs is, at most, what T independent trials of that probability give, and
Clopper and Pearson's lower limit on the share of right guesses bounds μ. With the error probability divided
by the number of people, all of these bounds hold together.

Guesses must not know the coins of later runs: with scores that do (each run beside all others), the share of
people with at least 46 right guesses of 64 where nothing is released is twice what chance makes of it. And
they use nothing of other people, whose typical distances and variances would hide the one who is not typical.

References
----------
.. [1] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS-B 84(1), 2022, section 2.1 and
   Def. 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from collegium.attacks.bounds import binomial_bounds

_BEFORE = 16
"""Runs about which no guess is made: of them it is only seen what somebody does to a run."""


@dataclass(frozen=True)
class WorstPerson:
    """Of a group, the person about whom most guesses were right.

    ``place``: of this person among all who were asked about, from 0. ``right`` of ``guesses``.
    ``lower_mu``: μ that is shown of this person; ``most_mu``: what could be shown if all guesses were right.
    """

    place: int
    right: int
    guesses: int
    lower_mu: float
    most_mu: float

    def cell(self) -> str:
        """Write it in a table."""
        counted = f"{self.right} of {self.guesses} right; if all were: {self.most_mu:.2f}"
        return f"μ ≥ {self.lower_mu:.2f} ({counted})"

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON."""
        return {
            "person": self.place,
            "right": self.right,
            "guesses": self.guesses,
            "lower_mu": self.lower_mu,
            "lower_mu_if_all_were_right": self.most_mu,
        }


def right_guesses(seen: NDArray[np.float64], is_in: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Guess each person's coin in all later runs: is it nearer to earlier ones with them, by their mean?

    ``seen``, ``is_in`` (n_runs, n_people). Returns (n_runs - 16, n_people): whether the guess is right.

    Examples
    --------
    >>> is_in = np.random.default_rng(0).random((20, 3)) < 0.5
    >>> right_guesses(np.where(is_in, [0.5, 1.0, -2.0], 0.0), is_in).sum(axis=0).tolist()
    [4, 4, 4]
    """
    right = np.empty((len(seen) - _BEFORE, seen.shape[1]), dtype=bool)
    for row, run in enumerate(range(_BEFORE, len(seen))):
        was_in, before = is_in[:run], seen[:run]
        n_in = was_in.sum(axis=0)
        with_them = np.where(was_in, before, 0.0).sum(axis=0) / np.maximum(n_in, 1)
        without = np.where(was_in, 0.0, before).sum(axis=0) / np.maximum(run - n_in, 1)
        right[row] = (abs(seen[run] - with_them) < abs(seen[run] - without)) == is_in[run]
    return right


def worst_person(right: NDArray[np.bool_], people: NDArray[np.intp], error: float) -> WorstPerson:
    """Find the person of a group about whom most guesses are right.

    ``right`` (n_guesses, n_people): which guesses are. ``people``: places of those of the group.
    ``error``: probability that the bound of any of them is wrong.

    Examples
    --------
    >>> right = np.random.default_rng(0).random((32, 50)) < 0.5
    >>> right[:, 7] = True
    >>> worst_person(right, np.arange(50), 0.05).cell()
    'μ ≥ 1.73 (32 of 32 right; if all were: 1.73)'
    """
    number = right[:, people].sum(axis=0)
    first = int(np.argmax(number))
    n_guesses, most = len(right), int(number[first])
    shares, _ = binomial_bounds([most, n_guesses], n_guesses, error / len(people))
    lower, ceiling = np.maximum(2 * ndtri(shares), 0.0).tolist()
    return WorstPerson(int(people[first]), most, n_guesses, lower, ceiling)
