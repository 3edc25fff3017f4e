"""Membership inference that reads the marginals: was this person's record in the counts that were noised?

A synthesizer that measures marginals publishes which ones. Each person adds a weight w to one cell of each;
Gaussian noise of a public scale is added to every cell. Three attackers, from the strongest:

- *Knows everybody else.* What a person's cell c would hold without them is known exactly, so that the noisy
  value y says y − others = w·[in] + noise. The logarithm of the likelihood ratio is

      Σ_c (w·(y_c − others_c) − w²/2) / σ_c²,

  and no test of the noisy marginals is better (Neyman & Pearson). Its two distributions are N(±μ²/2, μ²) with
  μ² = Σ_c w²/σ_c², which is what the account charges: it finds exactly as many as the bound allows.
- *Knows the population.* The others are known up to sampling: their expected value comes from reference
  records, and their variance is added to that of the noise. Cells of different marginals are taken for
  independent, which they are not, so that this is a good test and not the best one.
- *Sees the synthetic rows.* Marginals are counted again in these and compared with reference records: a
  person scores the sum of the logarithms of the ratio of the two shares. It is the comparison of MAMA-MIA
  [1]_ over the marginals that were measured, where those are known instead of guessed by shadow runs, and
  summed as logarithms, as TAMIS [2]_ argues for likelihoods.

Distances to synthetic records are not looked at: they see little of what marginals tell.

References
----------
.. [1] S. Golob, S. Pentyala, A. Maratkhan, M. De Cock, "Privacy vulnerabilities in marginals-based synthetic
   data", arXiv 2410.05506v2, 2024.
.. [2] P. Andrey, B. Le Bars, M. Tommasi, "TAMIS: Tailored membership inference attacks on synthetic data",
   arXiv 2504.00758, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.checks import shown
from collegium.errors import InputError
from collegium.evaluation.synthetic_marginals import cell_numbers

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Tables = Sequence[Floats]
"""One vector for each clique, its cells in the order of :func:`cell_numbers`: last column fastest."""

_NO_NOISE = 1e-9
"""Of a weight: a smaller standard deviation counts as this, so that scores stay finite."""
_SMOOTHING = 0.5


@dataclass(frozen=True, eq=False)
class Cliques:
    """Which marginals were measured.

    Parameters
    ----------
    columns : sequence of tuple of int
        Of each marginal, places of its columns.
    sizes : sequence of int
        How many cells each column has.

    Raises
    ------
    InputError
        If there is no marginal, or one names a column that there is not.

    Examples
    --------
    >>> cliques = Cliques([(0,), (0, 1)], sizes=[2, 3])
    >>> [table.tolist() for table in cliques.tables(np.array([[1, 2], [0, 2]]))]
    [[1.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]]
    """

    columns: Sequence[tuple[int, ...]]
    sizes: Sequence[int]

    def __post_init__(self) -> None:
        if not len(self.columns):
            raise InputError("columns must name at least one marginal, got none")
        for clique in self.columns:
            if not clique or not all(0 <= place < len(self.sizes) for place in clique):
                raise InputError(
                    f"a marginal must name columns from 0 to {len(self.sizes) - 1}, got {shown(clique)}"
                )

    @property
    def n_cells(self) -> list[int]:
        """How many cells each marginal has."""
        return [math.prod(self.sizes[place] for place in clique) for clique in self.columns]

    def places(self, codes: Codes) -> Codes:
        """Tell each person's cell of each marginal. ``codes`` (n, d). Returns (n, n_cliques)."""
        columns = np.ascontiguousarray(np.asarray(codes, dtype=np.int64).T)
        return np.stack([cell_numbers(columns, one, self.sizes) for one in self.columns], axis=1)

    def tables(self, codes: Codes, weights: Floats | None = None) -> list[Floats]:
        """Count people by cell, each with their weight (n,), or each as 1."""
        return [
            np.bincount(places, weights=weights, minlength=size).astype(np.float64)
            for places, size in zip(self.places(codes).T, self.n_cells, strict=True)
        ]

    def read(self, tables: Tables, codes: Codes) -> Floats:
        """Read each person's cells. Returns (n, n_cliques)."""
        for table, size, clique in zip(tables, self.n_cells, self.columns, strict=True):
            if np.shape(table) != (size,):
                raise InputError(
                    f"the marginal of columns {shown(clique)} must have {size:,} cells in one row, got "
                    f"{shown(np.shape(table))}"
                )
        return np.stack(
            [table[places] for table, places in zip(tables, self.places(codes).T, strict=True)],
            axis=1,
        )


def scores_knowing_others(
    cliques: Cliques,
    codes: Codes,
    weights: Floats,
    released: Tables,
    exact: Tables,
    is_in: NDArray[np.bool_],
    sigmas: Sequence[float],
) -> Floats:
    """Score people by the best test there is of the noisy marginals, everybody else being known.

    Parameters
    ----------
    codes : ndarray of shape (n, d)
        The people that are asked about.
    weights : ndarray of shape (n,)
        Each one's weight, in the unit of the marginals.
    released, exact : sequence of ndarray
        The marginals with noise, and without.
    is_in : ndarray of shape (n,)
        Who is in ``exact``: what everybody else adds follows from it, and nothing else is made of it.
    sigmas : sequence of float
        Standard deviation of the noise in each cell of each marginal; 0 without noise.

    Returns
    -------
    ndarray of shape (n,)
        Logarithms of likelihood ratios: above 0 where "in" is likelier.
    """
    own = np.asarray(weights, dtype=np.float64)[:, None]
    others = cliques.read(exact, codes) - own * np.asarray(is_in)[:, None]
    return _log_ratio(cliques.read(released, codes) - others, own, _variances(sigmas, own))


def scores_knowing_population(
    cliques: Cliques,
    codes: Codes,
    weights: Floats,
    released: Tables,
    reference: Codes,
    everybody: Floats,
    sigmas: Sequence[float],
) -> Floats:
    """Score people by the noisy marginals and reference records from the same population.

    Parameters
    ----------
    codes, weights, released, sigmas
        As in :func:`scores_knowing_others`.
    reference : ndarray of shape (m, d)
        Records of other people.
    everybody : ndarray
        The public weights of all who are in.

    Returns
    -------
    ndarray of shape (n,)
        Larger where "in" is likelier; to be compared among people of equal weight, or in units of likelihood.
    """
    own = np.asarray(weights, dtype=np.float64)[:, None]
    everybody = np.asarray(everybody, dtype=np.float64)
    total, squares, m = float(everybody.sum()), float((everybody**2).sum()), len(reference)
    counted = cliques.read(cliques.tables(reference), codes)
    n_cells = np.asarray(cliques.n_cells)
    share = (counted + _SMOOTHING) / (m + _SMOOTHING * n_cells)
    sampling = (squares + total**2 / m) * share * (1 - share)
    # Whether the person is in shifts the total by half of their weight, on average.
    expected = (total - own / 2) * share
    variances = _variances(sigmas, own) + sampling
    return _log_ratio(cliques.read(released, codes) - expected, own, variances)


def scores_of_rows(cliques: Cliques, codes: Codes, synthetic: Codes, reference: Codes) -> Floats:
    """Score people by synthetic rows alone: by how much more frequent their cells are than in the reference.

    ``codes`` (n, d), ``synthetic`` (n_synthetic, d), ``reference`` (m, d). Returns (n,).
    """
    n_cells = np.asarray(cliques.n_cells)
    seen, known = (
        (cliques.read(cliques.tables(table), codes) + _SMOOTHING)
        / (len(table) + _SMOOTHING * n_cells)
        for table in (synthetic, reference)
    )
    return np.asarray(np.log(seen / known).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SimulatedAttacks:
    """Scores of people in many simulated releases.

    ``people``: which of the population each score is about, shape (n,). ``is_in``: whether they were in.
    ``knowing_others``, ``knowing_population``: scores of the two attackers.
    """

    people: NDArray[np.intp]
    is_in: NDArray[np.bool_]
    knowing_others: Floats
    knowing_population: Floats


def simulate_attacks(
    cliques: Cliques,
    population: Codes,
    weights: Floats,
    sigmas: Sequence[float],
    reference: Codes,
    *,
    releases: int = 1_000,
    asked: int = 8,
    seed: int = 0,
) -> SimulatedAttacks:
    """Release noisy marginals of public records many times, and attack a few people in each.

    What two attackers find at these weights and noise levels, without anybody's budget. Noise is drawn from
    a seeded generator: it protects nobody, and only public or invented records may be given.

    Parameters
    ----------
    population : ndarray of shape (n, d)
        Records that are in, but for those of the asked people whose coin says that they are out.
    weights : ndarray of shape (n,)
        Theirs.
    sigmas : sequence of float
        Noise of each marginal; 0 for a control without noise.
    reference : ndarray of shape (m, d)
        Other records of the same kind, which the second attacker knows.
    releases, asked : int
        How many times, and how many people each time: few, since people of one release share its noise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> records = rng.integers(0, 3, (400, 2))
    >>> cliques = Cliques([(0, 1)], [3, 3])
    >>> found = simulate_attacks(cliques, records[:200], np.ones(200), [0.0], records[200:], releases=50)
    >>> bool(((found.knowing_others > 0) == found.is_in).all())  # without noise nothing is hidden
    True
    """
    rng = np.random.default_rng(seed)
    weights = np.asarray(weights, dtype=np.float64)
    everybody = cliques.tables(population, weights)
    people, coins, knowing, guessing = [], [], [], []
    for _ in range(releases):
        rows = rng.choice(len(population), asked, replace=False)
        is_in = rng.random(asked) < 0.5
        out = rows[~is_in]
        absent = cliques.tables(population[out], weights[out])
        exact = [table - gone for table, gone in zip(everybody, absent, strict=True)]
        noisy = [
            table + sigma * rng.standard_normal(len(table))
            for table, sigma in zip(exact, sigmas, strict=True)
        ]
        codes, own = population[rows], weights[rows]
        knowing.append(scores_knowing_others(cliques, codes, own, noisy, exact, is_in, sigmas))
        present = np.delete(weights, out)
        guessing.append(
            scores_knowing_population(cliques, codes, own, noisy, reference, present, sigmas)
        )
        people.append(rows)
        coins.append(is_in)
    return SimulatedAttacks(
        np.concatenate(people),
        np.concatenate(coins),
        np.concatenate(knowing),
        np.concatenate(guessing),
    )


def mu_of_weight(weight: float, sigmas: Sequence[float]) -> float:
    """What a person of this weight pays for all marginals, in μ: the square root of Σ w²/σ².

    Whether they are in or out (add or remove); infinite without noise.

    Examples
    --------
    >>> mu_of_weight(2.0, [10.0, 10.0, 10.0, 10.0])
    0.4
    """
    if any(sigma == 0 for sigma in sigmas):
        return math.inf
    return math.sqrt(math.fsum((weight / sigma) ** 2 for sigma in sigmas))


def _variances(sigmas: Sequence[float], own: Floats) -> Floats:
    variances = np.asarray(sigmas, dtype=np.float64) ** 2
    return np.asarray(np.maximum(variances, (_NO_NOISE * own) ** 2), dtype=np.float64)


def _log_ratio(excess: Floats, own: Floats, variances: Floats) -> Floats:
    return np.asarray(((own * excess - own**2 / 2) / variances).sum(axis=1), dtype=np.float64)
