"""Saturating weights beside uniform, proportional, sampled, partitioned and thresholded ones.

    python -m benchmarks.weights_grid --out docs/results/weights-grid.csv [--quick]

Root mean square errors by repetitions, each with people whose values are dealt out anew (so that values do
not go with budgets) and with noise of its own, towards the table's own value. In all of them everybody pays
at most their budget, about neighbours of whom somebody is there or blank:

- *uniform*, *proportional*, *saturating*: weighted sums, as `collegium.weighted_sums.weights` has them, once
  with the public spread that is true and once with the largest possible;
- *saturating, learnt*: the spread is not public; with Gaussian noise, two rounds find it
  (`collegium.statistics.rounds`), which is what a session does. Laplace noise has one round and the largest;
- *sample*: Jorgensen, Yu & Cormode 2015: a coin for everybody below the threshold t, then noise for t; the
  best of the levels as t (which nobody could know);
- *threshold*: whoever grants less than t is left out, the others are heard alike; the best of the levels;
- *partition*: a noisy sum for each level (Li et al. 2017, without waste), put together by inverse predicted
  variances; for levels in all parts that adjacent ones form, the best of them.

`--sessions 400` asks real sessions in some of the cases, too, so many times each, and shows both errors.

With Gaussian noise, *sample* keeps somebody with probability μ/μ_t, which the Gaussian mechanism's privacy
does not allow (a coin costs more there): it is given more than it may have.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium import Schema, Statistics
from collegium.accounting.gaussian import gdp_epsilon, gdp_mu
from collegium.statistics.estimates import likely
from collegium.statistics.rounds import FIRST, SPREAD_IN_FIRST, Rounds
from collegium.weighted_sums.weights import weights_of

Floats = NDArray[np.float64]

LEVELS = {
    ".01/.2/1": (0.01, 0.2, 1.0),
    ".1/.2/.3": (0.1, 0.2, 0.3),
    "1/2/3": (1.0, 2.0, 3.0),
    ".5/1/2/4/8": (0.5, 1.0, 2.0, 4.0, 8.0),
}
SHARES = {
    "54/37/9": (0.54, 0.37, 0.09),
    "34/43/23": (0.34, 0.43, 0.23),
    "90/9/1": (0.90, 0.09, 0.01),
    "even": (0.2, 0.2, 0.2, 0.2, 0.2),
}
SIZES = (100, 1_000, 10_000, 100_000)
KINDS = {
    "count, 1 %": 0.01,
    "count, 30 %": 0.3,
    "count, 50 %": 0.5,
    "mean, even": None,
    "mean, tail": -1.0,
    "sum of 30 %": -0.3,
}


class Case:
    """People of some levels, and values of one kind: everything here is an array of repetitions."""

    def __init__(
        self, n: int, levels: str, shares: str, kind: str, laplace: bool, seed: int
    ) -> None:
        self.sizes = np.round(np.array(SHARES[shares]) * n).astype(np.int64)
        self.sizes[0] += n - self.sizes.sum()
        self.n, self.laplace = n, laplace
        epsilon = np.array(LEVELS[levels])
        self.bounds = epsilon if laplace else np.array([gdp_mu(e, 1e-5) for e in epsilon])
        self.rng, self.seed = np.random.default_rng(seed), seed
        self.noise = 2.0 if laplace else 1.0
        share, self.kind = KINDS[kind], kind
        even = (np.arange(n) + 0.5) / n
        if share is None:
            self.values = even
        elif share > 0:
            self.values = (np.arange(n) < round(share * n)).astype(np.float64)
        elif share == -1:
            self.values = even**4
        else:  # of those it is not about, nothing is added
            self.values = np.where(np.arange(n) < round(-share * n), even / -share, 0.0)
        # A count or sum moves by 1; a mean of everybody is about values around the middle of their range.
        self.counts = kind.startswith("count")
        self.centre, self.reach = (0.5, 0.5) if kind.startswith("mean") else (0.0, 1.0)
        self.truth = float(self.values.mean())
        self.spread = float(self.values.var(ddof=1))

    def group_sums(self, repetitions: int) -> Floats:
        """Sums of each level's values, dealt out anew: normal with their exact covariance, or counted."""
        if set(np.unique(self.values)) <= {0.0, 1.0}:
            ones = int(self.values.sum())
            found = self.rng.multivariate_hypergeometric(self.sizes, ones, size=repetitions)
            return found - self.centre * self.sizes
        share = self.sizes / self.n
        covariance = self.n * self.spread * (np.diag(share) - np.outer(share, share))
        drawn = self.rng.multivariate_normal(
            np.zeros(len(share)), covariance, repetitions, method="eigh"
        )
        return np.asarray(drawn + self.sizes * (self.truth - self.centre))

    def draw(self, repetitions: int, part: int = 0) -> Floats:
        """Noise of variance 1 or 2: the same for all ways, so that they can be told apart."""
        rng = np.random.default_rng([self.seed, part])
        if self.laplace:
            return np.asarray(rng.laplace(size=repetitions))
        return np.asarray(rng.normal(size=repetitions))

    def squares(self, sums: Floats) -> Floats:
        """Sums of each level's squares of values, given those of values: both are nearly normal."""
        values = self.values - self.centre
        if self.counts:
            return sums
        (one, both), (_, other) = np.cov(values, values**2)
        share = self.sizes / self.n
        spread = np.linalg.cholesky(
            np.diag(share) - np.outer(share, share) + 1e-12 * np.eye(len(share))
        )
        rest = math.sqrt(self.n * max(0.0, other - both**2 / one))
        drawn = self.rng.normal(size=sums.shape) @ spread.T * rest
        return np.asarray(
            self.sizes * float(np.mean(values**2))
            + both / one * (sums - self.sizes * float(values.mean()))
            + drawn
        )

    def weighted(self, weights: Floats, sums: Floats) -> float:
        """Error of a weighted mean."""
        noisy = sums @ weights + self.reach * self.draw(len(sums))
        return self.error(noisy / float(weights @ self.sizes) + self.centre)

    def error(self, found: Floats) -> float:
        """Root mean square."""
        return math.sqrt(float(np.mean((found - self.truth) ** 2)))


def run(case: Case, repetitions: int) -> dict[str, float]:
    """Errors of all ways."""
    found: dict[str, float] = {}
    noise = case.noise * case.reach**2
    args = (case.bounds, case.sizes, noise)
    sums = case.group_sums(repetitions)
    found["saturating"] = case.weighted(weights_of("saturating", *args, case.spread), sums)
    worst = 0.25
    found["saturating, spread unknown"] = case.weighted(
        weights_of("saturating", *args, worst), sums
    )
    found["saturating, learnt"] = _learnt(case, sums)
    found["uniform"] = case.weighted(weights_of("uniform", *args), sums)
    found["proportional"] = case.weighted(weights_of("proportional", *args), sums)
    found["threshold"] = min(
        case.weighted(np.where(case.bounds >= t, t, 0.0), sums) for t in case.bounds
    )
    found["sample"] = min(_sampled(case, sums, float(t), repetitions) for t in case.bounds)
    found["partition"] = min(_partitioned(case, sums, cuts) for cuts in _all_cuts(len(case.bounds)))
    return found


def _learnt(case: Case, sums: Floats) -> float:
    """Two rounds; the noise of both together is that of the other ways."""
    share = 0.0 if case.counts else SPREAD_IN_FIRST
    unit = case.noise * case.reach**2
    rounds = (
        None if case.laplace else Rounds.of(case.bounds, case.sizes, unit, 0.25, (1.0, 1.0), share)
    )
    if rounds is None:
        return case.weighted(weights_of("saturating", case.bounds, case.sizes, unit, 0.25), sums)
    parts = np.sqrt(np.array(rounds.gain) / sum(rounds.gain))
    rng = np.random.default_rng([case.seed, 1])
    together, apart, beside = case.draw(len(sums)), *rng.normal(size=(2, len(sums)))
    noises = parts[0] * together + parts[1] * apart, parts[1] * together - parts[0] * apart
    # In units of a sum that everybody moves by at most what they weigh.
    heard = float(case.sizes @ rounds.first)
    near = 1 / (
        math.sqrt(rounds.gain[0]) * heard
    )  # error of the mean that a round like the first finds
    at = sums @ rounds.first / case.reach / heard + near * noises[0]
    if case.counts:
        inside, unsure = likely(at, near, 1.0)
        spread = inside * (1 - inside) - unsure
    else:
        kept = math.sqrt(FIRST * share) * heard
        squared = case.squares(sums) @ rounds.first / case.reach**2 / heard + beside / kept
        one = np.clip(at, -1.0 if case.centre else 0.0, 1.0)
        largest = 1 - one**2 if case.centre else one * (1 - one)
        spread = likely(squared - one**2, 1 / kept, np.maximum(largest, 1e-12))[0]
    ratio = case.noise / sum(rounds.gain) / np.maximum(spread, 1e-12)
    best = np.minimum(case.bounds, _saturations(case.bounds, case.sizes, ratio)[:, None])
    rest = (best - rounds.share * rounds.first) / (1 - rounds.share)
    weights = rounds.share * rounds.first + (1 - rounds.share) * np.clip(rest, 0, case.bounds)
    weights *= math.sqrt(sum(rounds.gain))
    noisy = (weights * sums).sum(axis=1) + case.reach * together
    return case.error(noisy / (weights @ case.sizes) + case.centre)


def _saturations(bounds: Floats, sizes: NDArray[np.int64], ratio: Floats) -> Floats:
    """τ for many ratios of noise to spread at once (`collegium.weighted_sums.weights.saturation`)."""
    first, second = np.cumsum(sizes * bounds), np.cumsum(sizes * bounds**2)
    found = np.full(ratio.shape, np.inf)
    for below in reversed(range(len(bounds) - 1)):
        tau = (ratio + second[below]) / first[below]
        found = np.where(tau <= bounds[below + 1], tau, found)
    return found


def asked_in_sessions(case: Case, times: int) -> float:
    """Error of real sessions about the same people, dealt out anew each time, at the same prices."""
    prices = [float(gdp_epsilon(float(bound) * times**0.5, 1e-5)) for bound in case.bounds]
    some = case.values > 0
    frame = pd.DataFrame({"x": case.values, "some": some})
    schema = Schema({"x": {"kind": "number", "bounds": [0, 1]}, "some": {"kind": "flag"}})
    budgets = np.repeat(prices, case.sizes)
    ask = Statistics(
        frame, budgets, schema=schema, noise="gaussian", questions=times, noise_seed=case.seed
    )
    question = "count where some" if case.counts else "mean x"
    question = "sum x where some" if case.kind.startswith("sum") else question
    found = []
    table: Any = ask._table
    for _ in range(times):
        table._group = case.rng.permutation(table._group)
        ask._record.clear()
        found.append(ask.ask(question).value)
    scale = 1.0 if question == "mean x" else 1 / case.n
    return case.error(np.array(found) * scale)


def _sampled(case: Case, sums: Floats, t: float, repetitions: int) -> float:
    if case.laplace:
        rates = np.where(case.bounds >= t, 1.0, np.expm1(case.bounds) / np.expm1(t))
    else:
        rates = np.minimum(1.0, case.bounds / t)
    # Coins: each person's kept with their rate; the variance of what is kept is that of the values' squares.
    squares = float(np.mean((case.values - case.centre) ** 2)) * case.sizes
    kept = sums * rates + case.rng.normal(size=sums.shape) * np.sqrt(rates * (1 - rates) * squares)
    total = float(rates @ case.sizes)
    noisy = kept.sum(axis=1) + case.reach * case.draw(repetitions) / t
    return case.error(noisy / total + case.centre)


def _all_cuts(n: int) -> list[tuple[tuple[int, ...], ...]]:
    found = []
    for cuts in itertools.product([False, True], repeat=n - 1):
        parts: list[list[int]] = [[0]]
        for place, cut in enumerate(cuts, start=1):
            if cut:
                parts.append([])
            parts[-1].append(place)
        found.append(tuple(tuple(part) for part in parts))
    return found


def _partitioned(case: Case, sums: Floats, parts: tuple[tuple[int, ...], ...]) -> float:
    means, precisions = [], []
    for place, part in enumerate(parts):
        own = list(part)
        n, bound = int(case.sizes[own].sum()), float(case.bounds[own].min())
        noisy = sums[:, own].sum(axis=1) + case.reach * case.draw(len(sums), place) / bound
        means.append(noisy / n)
        variance = case.noise * case.reach**2 / (bound * n) ** 2 + case.spread / n
        precisions.append(1 / variance)
    weights = np.array(precisions) / sum(precisions)
    return case.error(np.stack(means, axis=1) @ weights + case.centre)


def cases(quick: bool) -> list[dict[str, Any]]:
    """All combinations; budgets have as many levels as shares."""
    found = []
    for laplace, n, levels, shares, kind in itertools.product(
        (False, True), SIZES[:2] if quick else SIZES, LEVELS, SHARES, KINDS
    ):
        if len(LEVELS[levels]) == len(SHARES[shares]):
            found.append(
                {"noise": "laplace" if laplace else "gaussian", "n": n, "levels": levels, "shares": shares,
                 "kind": kind}
            )  # fmt: skip
    return found


def main() -> None:
    """Run the grid."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repetitions", type=int, default=40_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sessions", type=int, default=0, help="real sessions in some cases")
    given = parser.parse_args()
    repetitions = 10_000 if given.quick else given.repetitions
    rows = []
    for seed, one in enumerate(cases(given.quick)):
        case = Case(
            one["n"], one["levels"], one["shares"], one["kind"], one["noise"] == "laplace", seed
        )
        rows.append({**one, **run(case, repetitions)})
    if given.out is not None:
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
                for row in rows
            )
    show(rows)
    if given.sessions:
        compare_with_sessions(rows, given.sessions)


def compare_with_sessions(rows: list[dict[str, Any]], times: int) -> None:
    """Print the error of real sessions over the simulated one, of 1,000 people with Gaussian noise."""
    known_to = 1 / math.sqrt(2 * times)
    print(f"error of {times} answers of real sessions over the simulated one (±{known_to:.0%})")
    for seed, row in enumerate(rows):
        if row["n"] == 1000 and row["noise"] == "gaussian" and row["shares"] in ("54/37/9", "even"):
            case = Case(row["n"], row["levels"], row["shares"], row["kind"], False, seed)
            ratio = asked_in_sessions(case, times) / row["saturating, learnt"]
            print(f"  {row['levels']:<12}{row['kind']:<14}{ratio:.2f}")


def show(rows: list[dict[str, Any]]) -> None:
    """Print how saturating weights compare over all cases."""
    print(f"{len(rows)} cases; error of each over that of saturating weights")
    print(f"{'':<28}{'least':>8}{'median':>8}{'largest':>9}{'below 0.98':>12}{'below 1':>9}")
    names = ("uniform", "proportional", "threshold", "sample", "partition")
    known = "saturating, spread unknown", "saturating, learnt"
    for name in (*known, *names):
        _line(name, np.array([row[name] / row["saturating"] for row in rows]))
    print("error of each over that of saturating weights whose spread is learnt (Gaussian noise)")
    gaussian = [row for row in rows if row["noise"] == "gaussian"]
    for name in ("saturating", *names):
        _line(name, np.array([row[name] / row["saturating, learnt"] for row in gaussian]))


def _line(name: str, ratio: Floats) -> None:
    print(
        f"{name:<28}{ratio.min():>8.3f}{np.median(ratio):>8.2f}{ratio.max():>9.1f}"
        f"{int((ratio < 0.98).sum()):>12}{int((ratio < 1).sum()):>9}"
    )


if __name__ == "__main__":
    main()
