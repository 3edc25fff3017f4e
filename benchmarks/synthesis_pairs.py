"""Why a few pairs of columns can make a table of 2,000 people worse for learning, although they are true.

2,000 training rows of Adult at ε = 1, in cells, and what models learn from the synthetic rows; 8,000 other
*training* rows judge. Marginals get continuous noise here and rare cells are not put together, so that one
thing is changed at a time; the last two cases are `cg.Synthesizer` itself, on the same people. The pairs that
are measured are those furthest from what the (column, target) pairs let expect: the choice is free.

A pair that is known exactly gets a tenth of the standard deviation that it would be paid with. No pair has
the target in it, so that the logarithm of the odds of the target that a fit implies is a sum of one weight
for each column's cell: how well these rank is seen without drawing rows ("odds"), and what noise does to
them, too, by fitting the same people once with noise and once without.

    python -m benchmarks.synthesis_pairs --seeds 12    # three minutes; standard errors
    python -m benchmarks.synthesis_pairs --odds        # the fits alone, 6 seeds, a minute
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import collegium as cg
from benchmarks.synthetic_data import tables
from benchmarks.synthetic_scores import aucs, variations
from collegium.accounting.gaussian import gdp_mu
from collegium.data.cells import Cells
from collegium.synthesis.junction_tree import Clique, JunctionTree
from collegium.synthesis.max_entropy import SOFTNESS, Marginal, fit
from collegium.synthesis.sampling import sample_codes

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

PEOPLE, JUDGES = 2_000, 8_000
MU = gdp_mu(1.0, 1e-5)
FOR_PAIRS = 0.4
"""Of μ²: what the pairs are measured with."""
EXACT = 0.1
"""Standard deviation of what is known exactly, in that of what is paid for: a fit needs one."""
FIGURES = ("logistic", "boosting", "odds", "tv2")


@dataclass(frozen=True)
class Case:
    """What is measured.

    ``share``: of μ² for the target pairs. ``noise``: on them, times that of their share.
    ``pairs``: how many others; ``weakest``: those that go together least. ``pairs_noise``: times that of
    ``FOR_PAIRS``; 0: they are known exactly. ``rows``: that are drawn; default: as many as there are people.
    """

    name: str
    share: float = 1.0
    noise: float = 1.0
    pairs: int = 0
    pairs_noise: float = 1.0
    weakest: bool = False
    rows: int | None = None


BASE = Case("all budget on target pairs")
CASES = (
    BASE,
    replace(BASE, name="60 % of it, nothing else", share=0.6),
    Case("target pairs as first, 3 noisy pairs for free", pairs=3),
    Case("target pairs as first, 8 noisy pairs for free", pairs=8),
    Case("target pairs as first, 3 exact pairs for free", pairs=3, pairs_noise=0.0),
    Case("target pairs as first, 8 exact pairs for free", pairs=8, pairs_noise=0.0),
    Case("the same, the 8 weakest pairs", pairs=8, pairs_noise=0.0, weakest=True),
    Case("60 % on target pairs, 3 pairs with 40 %", share=0.6, pairs=3),
    Case("60 % on target pairs, 8 pairs with 40 %", share=0.6, pairs=8),
    Case("exact target pairs, nothing else", noise=0.0),
    Case("exact target pairs, 3 noisy pairs", noise=0.0, pairs=3),
    Case("exact target pairs, 3 exact pairs", noise=0.0, pairs=3, pairs_noise=0.0),
    Case("exact target pairs, 8 exact pairs", noise=0.0, pairs=8, pairs_noise=0.0),
    replace(BASE, name="as first, 20,000 rows drawn", rows=20_000),
)
NOISES = (0.0, 0.5, 1.0, 1.5, 2.0)
SOFTNESSES = (0.1, 0.3, SOFTNESS, 1.5, 3.0)


def counts(codes: Codes, columns: Clique, sizes: Sequence[int]) -> Floats:
    """Count rows by cell, one axis for each column."""
    found = np.zeros([sizes[one] for one in columns])
    np.add.at(found, tuple(codes[:, one] for one in columns), 1.0)
    return found


def ordered_pairs(codes: Codes, sizes: Sequence[int]) -> list[Clique]:
    """Sort pairs by how far, in L1, they are from independence given the last column: furthest first."""
    target = len(sizes) - 1
    share = counts(codes, (target,), sizes)
    found = {}
    for a, b in itertools.combinations(range(target), 2):
        left, right = (counts(codes, (one, target), sizes) for one in (a, b))
        expected = (left / np.maximum(share, 1e-12)) @ right.T
        found[a, b] = float(np.abs(counts(codes, (a, b), sizes) - expected).sum())
    return sorted(found, key=lambda one: -found[one])


def measured(
    case: Case, codes: Codes, sizes: Sequence[int], rng: np.random.Generator
) -> list[Marginal]:
    """Draw marginals, the target pairs first; fits believe the noise that each would be paid with."""
    n, target = len(codes), len(sizes) - 1
    first = [(one, target) for one in range(target)]
    sd = math.sqrt(len(first) / case.share) / MU
    drawn = [(columns, sd, case.noise) for columns in first]
    if case.pairs:
        ordered = ordered_pairs(codes, sizes)
        chosen = ordered[-case.pairs :] if case.weakest else ordered[: case.pairs]
        sd = math.sqrt(case.pairs / FOR_PAIRS) / MU
        believed = sd if case.pairs_noise else EXACT * sd
        drawn += [(columns, believed, case.pairs_noise) for columns in chosen]
    found = []
    for columns, its, noise in drawn:
        exact = counts(codes, columns, sizes)
        noisy = exact + noise * its * rng.standard_normal(exact.shape)
        found.append(Marginal(columns, noisy / n, np.array(its / n)))
    return found


class Fit:
    """A table of largest entropy, with what its fit missed.

    ``missed``: largest gap of a cell's share to where the optimum has it, in standard deviations of the noise
    on a target pair.
    """

    def __init__(
        self, marginals: Sequence[Marginal], sizes: Sequence[int], softness: float = SOFTNESS
    ) -> None:
        n, target = len(marginals), len(sizes) - 1
        # Softness is that of a typical cell. Where it is one that is known exactly, noisy ones would hardly
        # count at all: so it is set to be that of the target pairs.
        sds = np.concatenate([np.full(one.shares.size, float(one.sd)) for one in marginals])
        reference = float(marginals[0].sd)
        relative = softness * float(np.sqrt(np.mean(sds**2))) / reference
        self.tree = JunctionTree.of(sizes, [one.columns for one in marginals])
        beliefs, found = fit(self.tree, marginals, softness=relative)
        self.tables, _ = beliefs.tables(found)
        # What follows those of the marginals is of single columns.
        thetas, shares = found[:n], beliefs.marginals(self.tables)[:n]
        self.missed = max(
            float(np.abs(p - one.shares + softness / reference * one.sd**2 * theta).max())
            / reference
            for p, one, theta in zip(shares, marginals, thetas, strict=True)
        )
        self.weights = [
            theta[:, 1] - theta[:, 0]
            for one, theta in zip(marginals, thetas, strict=True)
            if one.columns[-1] == target
        ]

    def of_columns(self, codes: Codes) -> Floats:
        """Weight of each cell of each row, less its mean: shape (n, n_columns - 1)."""
        found = np.stack([own[codes[:, at]] for at, own in enumerate(self.weights)], axis=1)
        return np.asarray(found - found.mean(axis=0))

    def log_odds(self, codes: Codes) -> Floats:
        """Logarithm of the odds of the target's cell 1, up to a constant."""
        return np.asarray(self.of_columns(codes).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Data:
    """Adult in cells: who is drawn from, and who judges."""

    cells: Cells
    pool: pd.DataFrame
    judges: Codes

    def people(self, seed: int) -> pd.DataFrame:
        """Draw the people of one run."""
        order = np.random.default_rng(1000 + seed).permutation(len(self.pool))
        return self.pool.iloc[order[:PEOPLE]]

    def judged(self, rows: Codes, train: Codes, odds: Floats | None) -> list[float]:
        """Judge rows, and log-odds of the judges where there are any."""
        sizes, target = self.cells.sizes, len(self.cells.sizes) - 1
        own = math.nan
        if odds is not None:
            own = float(roc_auc_score(self.judges[:, target], odds))
        apart = float(variations(rows, train, self.cells)[1].mean())
        return [*aucs(rows, self.judges, sizes, target), own, apart]


def adult() -> Data:
    """Load the training rows, and keep 8,000 apart."""
    known = tables("adult")
    cells = Cells(known.schema)
    order = np.random.default_rng(99).permutation(len(known.train))
    judges = known.train.iloc[order[:JUDGES]]
    return Data(cells, known.train.iloc[order[JUDGES:]], cells.codes(judges))


def run(case: Case, data: Data, seed: int) -> tuple[list[float], float]:
    """Make and judge one table; returns what its fit missed, too."""
    codes, rng = data.cells.codes(data.people(seed)), np.random.default_rng(seed)
    made = Fit(measured(case, codes, data.cells.sizes, rng), data.cells.sizes)
    rows = sample_codes(made.tree, made.tables, case.rows or len(codes), rng)
    return data.judged(rows, codes, made.log_odds(data.judges)), made.missed


def run_synthesizer(goal: str, data: Data, seed: int) -> list[float]:
    """The same for the package's own synthesizer."""
    people, schema = data.people(seed), data.cells.schema
    made = cg.Synthesizer(
        schema, target="income", goal=goal, noise_seed=seed, random_state=seed
    ).fit(people, 1.0)
    rows = made.sample(len(people))
    assert rows is not None
    return data.judged(data.cells.codes(rows), data.cells.codes(people), None)


def noise_in_odds(
    data: Data, pairs: int, seed: int, noise: float = 1.0, softness: float = SOFTNESS
) -> dict[str, float]:
    """Fit the same people with and without noise in the target pairs, other pairs being known exactly.

    Returns, over the judges: areas of both fits' log-odds; standard deviation of the log-odds without
    noise (``signal``) and of what noise adds to them (``noise``), to their part from the columns of the
    three strongest pairs (``tied``), and to one such column's, on average (``tied each``).
    """
    codes, sizes = data.cells.codes(data.people(seed)), data.cells.sizes
    case = Case("", pairs=pairs, pairs_noise=0.0)
    clean, noisy = (
        Fit(
            measured(replace(case, noise=one), codes, sizes, np.random.default_rng(seed)),
            sizes,
            softness,
        ).of_columns(data.judges)
        for one in (0.0, noise)
    )
    tied = sorted({one for pair in ordered_pairs(codes, sizes)[:3] for one in pair})
    added = noisy - clean
    truth = data.judges[:, -1]
    return {
        "AUC without": float(roc_auc_score(truth, clean.sum(axis=1))),
        "AUC with": float(roc_auc_score(truth, noisy.sum(axis=1))),
        "signal": float(clean.sum(axis=1).std()),
        "noise": float(added.sum(axis=1).std()),
        "tied": float(added[:, tied].sum(axis=1).std()),
        "tied each": float(np.sqrt((added[:, tied].std(axis=0) ** 2).mean())),
    }


def with_error(values: Sequence[float] | Floats) -> str:
    """Write a mean with its standard error."""
    found = np.asarray(values, dtype=np.float64)
    return f"{found.mean():.4f} ± {found.std(ddof=1) / math.sqrt(len(found)):.4f}"


def print_cases(data: Data, seeds: int) -> None:
    """Print what each case is worth, beside the first on the same people."""
    print(f"| case | {' | '.join(FIGURES)} | logistic, less the first | odds, less the first |")
    print("|---" * (len(FIGURES) + 3) + "|")
    base: Floats | None = None
    missed = 0.0
    for case in (*CASES, "target", "both"):
        if isinstance(case, Case):
            ran = [run(case, data, seed) for seed in range(seeds)]
            found = np.array([figures for figures, _ in ran])
            missed = max(missed, *(one for _, one in ran))
            name = case.name
        else:
            found = np.array([run_synthesizer(case, data, seed) for seed in range(seeds)])
            name = f"`cg.Synthesizer`, goal {case}"
        base = found if base is None else base
        told = [
            with_error(column) if np.isfinite(column).all() else "–"
            for column in (*found.T, found[:, 0] - base[:, 0], found[:, 2] - base[:, 2])
        ]
        print(f"| {name} | {' | '.join(told)} |", flush=True)
    print(
        f"\nFits miss no cell by more than {missed:.2g} standard deviations of target pairs' noise."
    )


def print_added(data: Data, seeds: int) -> None:
    """Print what exact pairs add, as noise in the target pairs grows, and as the fit gets softer."""
    title = "AUC of the odds, no pairs | 3 exact pairs add | 8 exact pairs add"
    for name, tried in (("noise in target pairs", NOISES), ("softness of the fit", SOFTNESSES)):
        print(f"\n| {name} | {title} |\n" + "|---" * 4 + "|")
        for one in tried:
            varied = {"noise": one} if tried is NOISES else {"softness": one}
            found = np.array(
                [
                    [noise_in_odds(data, pairs, seed, **varied)["AUC with"] for pairs in (0, 3, 8)]
                    for seed in range(seeds)
                ]
            )
            told = [found[:, 0], found[:, 1] - found[:, 0], found[:, 2] - found[:, 0]]
            print(f"| {one:g} | {' | '.join(with_error(each) for each in told)} |", flush=True)


def print_odds(data: Data, seeds: int) -> None:
    """Print what noise does to the log-odds."""
    rows = {
        pairs: pd.DataFrame([noise_in_odds(data, pairs, seed) for seed in range(seeds)])
        for pairs in (0, 3, 8)
    }
    names = list(rows[0])
    print(f"\n| exact pairs | {' | '.join(names)} | noise/signal |")
    print("|---" * (len(names) + 2) + "|")
    for pairs, found in rows.items():
        told = [with_error(found[name].to_numpy()) for name in names]
        told.append(with_error((found["noise"] / found["signal"]).to_numpy()))
        print(f"| {pairs} | {' | '.join(told)} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--odds", action="store_true", help="leave out what needs rows and models")
    given = parser.parse_args(arguments)
    data = adult()
    warnings.simplefilter("ignore")
    print(f"Softness {SOFTNESS:g} where nothing else is said; {given.seeds} draws of people.\n")
    if not given.odds:
        print_cases(data, given.seeds)
    print_added(data, given.seeds)
    print_odds(data, given.seeds)


if __name__ == "__main__":
    main()
