"""A synthetic table, audited: its noisy counts are drawn again and again, and people in them are asked about.

In each release some people of each group are asked about; a fair coin decides for each whether their row is
there or blank, which is what the account's neighbours are, and so every public number stays the same. What is
drawn is what the study would draw: its plan, weights, selection of pairs, and noise of the operating system.
The attacker knows everybody else and takes the best test of all noisy counts
(:func:`~collegium.attacks.marginals.scores_knowing_others`); of the few noisy scores that chose pairs nothing
is made, so that the test sees a little less than the account charges.

People of one release share the noise of cells in which they meet. So nothing is fitted: what is held against
the claim is the theorem about guesses under μ-GDP, which allows that; one guess for each person and release.

**Nothing of it may be published**: it was made of real people's records, again and again.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.gaussian import gdp_epsilon
from collegium.attacks.canary_finding import CanaryFinding, judge_canaries
from collegium.attacks.marginals import Cliques, scores_knowing_others
from collegium.budgets import Budget
from collegium.checks import check_number, check_whole
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.noise.sources import SecureNoise
from collegium.noise.sums import NoisySum
from collegium.synthesis.run import Synthesis
from collegium.weighted_sums.tables import ByBatches, Table
from collegium.weighted_sums.weighing import Batch

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
RELEASES, ASKED = 16, 128


class SomeBlank(ByBatches):
    """A table of which some rows are blank: in these every value is missing. **Sensitive.**

    ``names``: of the columns that are read. ``blank`` (n,): may be changed between releases.
    """

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self.groups, self.sizes, self.here = table.groups, table.sizes, table.here
        self.named = table.named
        self._batches = list(table.batches(names))
        self.group = np.concatenate([one.group for one in self._batches])
        self.blank = np.zeros(len(self.group), dtype=bool)

    @property
    def has_one_row_each(self) -> bool:
        """Whether each person has one."""
        return all(bool((one.rows <= 1).all()) for one in self._batches)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Read all rows, whether blank or not."""
        parts = [one.arrays for one in self._batches]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield all rows; in blank ones every value is missing."""
        start = 0
        for one in self._batches:
            blank = self.blank[start : start + len(one.group)]
            start += len(one.group)
            arrays = {}
            for name in names:
                values = one.arrays[name].copy()
                values[blank] = np.nan if values.dtype.kind == "f" else -1
                arrays[name] = values
            yield replace(one, arrays=arrays)


def audit_marginals(
    run: Synthesis,
    *,
    releases: int = RELEASES,
    asked: int = ASKED,
    confidence: float = 0.95,
    noise: NoisySum | None = None,
    generator: np.random.Generator | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[CanaryFinding]:
    """Draw noisy counts many times, and bound what they leak about each group.

    Parameters
    ----------
    run : Synthesis
        Its table, plan and settings are used as they are. Each person must have one row.
    releases, asked : int
        How often everything is drawn, and about how many people of each group is asked each time (of a small
        group, about all).
    confidence : float, default=0.95
        Probability that *all* lower bounds of all groups hold.
    noise : NoisySum, optional
        Instead of cryptographic noise, to test the audit.
    generator : numpy.random.Generator, optional
        Of who is asked about, and their coins; default: from the operating system.
    progress : callable, optional
        Called with (releases made, all of them).

    Returns
    -------
    list of CanaryFinding
        One for each group.

    Raises
    ------
    InputError
        If people have several rows, or there are too few people.
    """
    check_number("confidence", confidence, above=0, below=1)
    check_whole("releases", releases)
    check_whole("asked", asked)
    random = np.random.default_rng() if generator is None else generator
    source = SecureNoise() if noise is None else noise
    table = SomeBlank(run.table, run.cells.names)
    if not table.has_one_row_each:
        raise InputError(
            "the attack on counts knows tables in which each person has one row, and some have more: audit a "
            "study of one row each"
        )
    codes = run.cells.codes_of(table.arrays())
    run = copy.copy(run)
    run.table = table
    members = [np.flatnonzero(table.group == number) for number in range(len(table.groups))]
    scores, coins, group = [], [], []
    for number in range(releases):
        chosen = np.concatenate(
            [random.choice(own, min(asked, len(own)), replace=False) for own in members]
        )
        is_in = random.integers(0, 2, len(chosen)) == 1
        table.blank = np.zeros(len(codes), dtype=bool)
        table.blank[chosen[~is_in]] = True
        drawn: dict[int, dict[str, Any]] = {}
        for place in range(1, len(run.events) + 1):
            drawn[place] = run.draw(place, drawn, source)
        scores.append(_scores(run, drawn, codes, table, chosen))
        coins.append(is_in)
        group.append(table.group[chosen])
        progress(number + 1, releases)
    budgets: Mapping[str, Budget] = table.groups
    squared = np.sum([one.mu_squared for one in run.events], axis=0)
    mus = {name: math.sqrt(one) for name, one in zip(budgets, squared, strict=True)}
    return judge_canaries(
        np.concatenate(scores),
        np.concatenate(coins),
        np.concatenate(group),
        budgets,
        {name: gdp_epsilon(mus[name], its.delta) for name, its in budgets.items()},
        mus,
        are_normal=False,
        confidence=confidence,
    )


def _scores(
    run: Synthesis,
    drawn: Mapping[int, Mapping[str, Any]],
    codes: NDArray[np.int64],
    table: SomeBlank,
    asked: NDArray[np.intp],
) -> Floats:
    """Logarithms of likelihood ratios of all noisy counts, all others being known."""
    names, present = list(run.cells.names), ~table.blank
    total = np.zeros(len(asked))
    for one in drawn.values():
        if "columns" not in one:
            continue  # scores of pairs
        own, sizes = codes, run.cells.sizes
        if "coarse" in one:
            places = [np.asarray(place) for place in one["coarse"]]
            own = np.stack([place[of] for place, of in zip(places, codes.T, strict=True)], axis=1)
            sizes = tuple(int(place.max()) + 1 for place in places)
        columns = [tuple(names.index(name) for name in clique) for clique in one["columns"]]
        cliques = Cliques(columns, sizes)
        values = np.asarray(one["steps"], dtype=np.float64) * GRID
        for weights, part in zip(
            one["weights"], np.split(values, len(one["weights"])), strict=True
        ):
            weighed = np.asarray(weights, dtype=np.float64)[table.group]
            noisy = np.split(part, np.cumsum(cliques.n_cells)[:-1])
            exact = cliques.tables(own[present], weighed[present])
            total += scores_knowing_others(
                cliques,
                own[asked],
                weighed[asked],
                noisy,
                exact,
                present[asked],
                [float(one["sd"])] * len(noisy),
            )
    return total
