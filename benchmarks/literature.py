"""The literature's comparison, run again: count, median and regression at ε = .01/.2/1 for 54/37/9 %.

    python -m benchmarks.literature --data-dir DATA [--out CSV] [--figure PNG] [--quick]

As Jorgensen, Yu & Cormode (ICDE 2015) compare, with n = 1,000 of Adult's people (count: a property that 300
of them have; median: age; regression: hours of work on age and years of education, ridge), budgets dealt out
anew each time, pure ε, and an owner there or blank. Errors are root mean squares: of counts in people, of
medians in ranks (a share of the people), of regressions in hours, of predictions for all 1,000 towards those
of the regression without noise. *minimum*: everybody at the smallest ε. *threshold* and *sample*: at the
levels .2 and 1. *stretching*: as published, biased; and divided by the mean preference (*unbiased*).
*personalised exponential*: weights in proportion to ε.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collegium import mechanisms
from collegium.data.datasets import load_dataset
from collegium.weighted_sums.weights import errors_of, weights_of

Floats = NDArray[np.float64]

LEVELS, SHARES, N = (0.01, 0.2, 1.0), (0.54, 0.37, 0.09), 1_000
AGES = np.arange(17.0, 91.0)
Estimator = Callable[[Floats, Floats, np.random.Generator], Floats]


def coins(epsilon: Floats, t: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Who is kept by the sample mechanism."""
    rates = np.where(epsilon >= t, 1.0, np.expm1(epsilon) / np.expm1(t))
    return np.asarray(rng.random(len(epsilon)) < rates)


def weighing(rule: str, epsilon: Floats, spread: float) -> Floats:
    """Everybody's weight: ε by a rule."""
    levels, which, sizes = np.unique(epsilon, return_inverse=True, return_counts=True)
    return np.asarray(weights_of(rule, levels, sizes, 2.0, spread)[which])


# ------------------------------------------------------------------------------------------- counts


def count_errors(times: int) -> dict[str, float]:
    """Errors of each way to count."""
    rng = np.random.default_rng(1)
    sizes = np.array([540, 370, 90])
    epsilon = np.array(LEVELS)
    has = rng.multivariate_hypergeometric(sizes, 300, size=times)
    laplace = rng.laplace(size=times)
    found: dict[str, Floats] = {}
    for rule in ("uniform", "proportional", "saturating"):
        w = weights_of(rule, epsilon, sizes, 2.0, 0.25)
        name = "minimum" if rule == "uniform" else f"{rule} weights"
        found[name] = N * (has @ w + laplace) / (w @ sizes)
    for t in LEVELS[1:]:
        own = epsilon >= t
        found[f"threshold {t:g}"] = N * (has[:, own].sum(axis=1) + laplace / t) / sizes[own].sum()
        rates = np.where(own, 1.0, np.expm1(epsilon) / np.expm1(t))
        kept = rng.binomial(has, rates).sum(axis=1)
        found[f"sample {t:g}, rescaled"] = N * (kept + laplace / t) / (rates @ sizes)
    v = epsilon / epsilon.max()
    stretched = has @ v + laplace / epsilon.max()
    found["stretching, as published"] = stretched
    found["stretching, unbiased"] = stretched * N / (v @ sizes)
    each = has + rng.laplace(size=has.shape) / epsilon
    variance = 2 / (epsilon * sizes) ** 2 + 0.25 / sizes
    precision = 1 / variance / (1 / variance).sum()
    found["partition by level"] = N * (each / sizes) @ precision
    return {name: float(np.sqrt(np.mean((one - 300) ** 2))) for name, one in found.items()}


# ------------------------------------------------------------------------------------------ medians


def median_errors(age: Floats, times: int) -> dict[str, float]:
    """Errors, in ranks, of each way to find the median."""
    rng = np.random.default_rng(2)
    granted = np.repeat(LEVELS, (540, 370, 90))
    ordered = np.sort(age)

    def ranks(value: float) -> float:
        low, high = (
            np.searchsorted(ordered, value, "left"),
            np.searchsorted(ordered, value, "right"),
        )
        return float(max(low / N - 0.5, 0.5 - high / N, 0.0))

    def drawn(values: Floats, weights: Floats) -> float:
        return mechanisms.weighted_quantile(values, weights, AGES).value

    ways: dict[str, Callable[[Floats, Floats], float]] = {
        "minimum": lambda x, e: drawn(x, np.full(N, e.min())),
        "personalised exponential": drawn,
        "saturating weights": lambda x, e: drawn(x, weighing("saturating", e, 0.25)),
    }
    for t in LEVELS[1:]:
        ways[f"threshold {t:g}"] = lambda x, e, t=t: drawn(x[e >= t], np.full((e >= t).sum(), t))
        ways[f"sample {t:g}"] = lambda x, e, t=t: _of_sample(x, e, t, rng, drawn)
    found = dict.fromkeys(ways, 0.0)
    for _ in range(times):
        x = rng.permutation(age)
        for name, way in ways.items():
            found[name] += ranks(way(x, granted)) ** 2 / times
    return {name: math.sqrt(one) for name, one in found.items()}


def _of_sample(
    x: Floats,
    e: Floats,
    t: float,
    rng: np.random.Generator,
    drawn: Callable[[Floats, Floats], float],
) -> float:
    kept = coins(e, t, rng)
    return drawn(x[kept], np.full(int(kept.sum()), t))


# -------------------------------------------------------------------------------------- regressions


def regression_errors(rows: Floats, times: int) -> dict[str, float]:
    """Errors, in the target's unit, of each way to find the coefficients.

    ``rows`` (n, 3): target and two features, between -1 and 1. An owner moves the products z zᵀ of
    z = (1, row) by ‖z‖₁² <= 16 in L1 at most.
    """
    rng = np.random.default_rng(3)
    granted = np.repeat(LEVELS, (540, 370, 90))
    z = np.hstack([np.ones((N, 1)), rows])
    upper = np.triu_indices(4)
    products = z[:, upper[0]] * z[:, upper[1]] * np.where(upper[0] == upper[1], 1.0, 2.0) / 16
    features = z[:, [0, 2, 3]]

    def coefficients(sums: Floats, total: float) -> Floats:
        moments = np.zeros((4, 4))
        moments[upper] = sums * 16 / np.where(upper[0] == upper[1], 1.0, 2.0) / total
        moments = moments + np.triu(moments, 1).T
        moments[0, 0] = 1.0
        values, vectors = np.linalg.eigh(moments)
        moments = (vectors * np.maximum(values, 1e-3)) @ vectors.T
        inner = moments[np.ix_([0, 2, 3], [0, 2, 3])] + 0.02 * np.eye(3)
        return np.asarray(np.linalg.solve(inner, moments[[0, 2, 3], 1]))

    exact = coefficients(products.sum(axis=0), float(N))

    def noisy(own: Floats, weights: Floats) -> Floats:
        sums = weights @ own + rng.laplace(size=products.shape[1])
        return coefficients(sums, float(weights.sum()))

    ways: dict[str, Callable[[Floats, Floats], Floats]] = {
        "minimum": lambda p, e: noisy(p, np.full(N, e.min())),
        "proportional weights": noisy,
        "saturating weights": lambda p, e: noisy(p, weighing("saturating", e, 1.0 / 256)),
    }
    for t in LEVELS[1:]:
        ways[f"threshold {t:g}"] = lambda p, e, t=t: noisy(p[e >= t], np.full((e >= t).sum(), t))
        ways[f"sample {t:g}"] = lambda p, e, t=t: _regress_sample(p, e, t, rng, noisy)
    found = dict.fromkeys(ways, 0.0)
    for _ in range(times):
        order = rng.permutation(N)
        for name, way in ways.items():
            off = np.clip(features @ way(products[order], granted), -1, 1) - features @ exact
            found[name] += float(np.mean(off**2)) / times
    return {name: math.sqrt(one) for name, one in found.items()}


def _regress_sample(
    p: Floats,
    e: Floats,
    t: float,
    rng: np.random.Generator,
    noisy: Callable[[Floats, Floats], Floats],
) -> Floats:
    kept = coins(e, t, rng)
    return noisy(p[kept], np.full(int(kept.sum()), t))


# ------------------------------------------------------------------------------------- lower bounds


def least_error(epsilon: Floats, sizes: Floats) -> float:
    """A root mean square error that no mechanism is below, for the mean of values between 0 and 1.

    Le Cam's two points: values 0 or 1, with mean (1 ± γ)/2. Where x_i may be replaced at ε_i, the output's
    law moves by at most tanh(ε_i/2) in total variation (Kairouz, Oh & Viswanath 2015, Remark A.1), hence by
    γ·tanh(ε_i/2) when person i's law changes. Of everybody else, m people, the values themselves may be seen:
    √(m·γ·artanh γ) by Pinsker. So for any set A, V = γ·Σ_A tanh(ε_i/2) + √(m γ artanh γ) bounds the total
    variation, and the error somewhere is at least γ²(1 - V)/8 squared. A: everybody below a level. (The
    argument of Chaudhuri, Miagkov & Courtade, arXiv 2305.09668, for any number of levels.)
    """
    gamma = np.geomspace(1e-6, 0.999, 4_000)
    best = 0.0
    for last in range(len(epsilon) + 1):
        guarded = float(np.sum(sizes[:last] * np.tanh(epsilon[:last] / 2)))
        apart = gamma * guarded + np.sqrt(sizes[last:].sum() * gamma * np.arctanh(gamma))
        best = max(best, float(np.max(gamma**2 * (1 - apart) / 8)))
    return math.sqrt(best)


def beside_bounds() -> list[tuple[str, int, dict[str, float]]]:
    """Errors of means towards those from whom people were drawn, beside :func:`least_error`."""
    found = []
    for name, levels, shares in (
        (".01/.2/1, 54/37/9", LEVELS, SHARES),
        (".1/.2/.3, 54/37/9", (0.1, 0.2, 0.3), SHARES),
        ("1/2/3, 54/37/9", (1.0, 2.0, 3.0), SHARES),
        (".1/10, 90/10", (0.1, 10.0), (0.9, 0.1)),
        (".1/10, 10/90", (0.1, 10.0), (0.1, 0.9)),
    ):
        for n in (100, 1_000, 10_000, 100_000):
            epsilon, sizes = np.array(levels), np.array(shares) * n
            errors = {"least possible": least_error(epsilon, sizes)}
            for rule in ("saturating", "proportional", "uniform"):
                w = weights_of(rule, epsilon, sizes, 2.0, 0.25)
                errors[rule] = errors_of(w, sizes, 2.0, 0.25).population
            errors["threshold"] = min(
                math.sqrt(2 / (t * own) ** 2 + 0.25 / own)
                for t in levels
                for own in (float(sizes[epsilon >= t].sum()),)
            )
            found.append((name, n, errors))
    return found


def draw(tables: dict[str, dict[str, float]], path: Path) -> None:
    """Draw the errors of all ways, each question's beside one another."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.2), layout="constrained")
    units = {"count": "people", "median": "share of people", "regression": "hours"}
    for axes, (question, errors) in zip(figure.subplots(1, 3), tables.items(), strict=True):
        ordered = sorted(errors.items(), key=lambda pair: -pair[1])
        colours = ["#0b5cad" if name == "saturating weights" else "#b8c4cf" for name, _ in ordered]
        bars = axes.barh([name for name, _ in ordered], [one for _, one in ordered], color=colours)
        axes.bar_label(bars, [f" {one:.3g}" for _, one in ordered], fontsize=7)
        axes.set_xlim(right=1.3 * ordered[0][1])
        axes.set_xticks([])
        axes.set_title(f"{question}: error ({units[question]})", fontsize=9, loc="left")
        axes.tick_params(labelsize=7)
        axes.spines[["right", "top", "bottom"]].set_visible(False)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run all three."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    people = load_dataset("adult", given.data_dir).X
    chosen = people.iloc[np.random.default_rng(0).choice(len(people), N, replace=False)]
    age = chosen["age"].to_numpy(dtype=np.float64)
    hours = chosen["hours-per-week"].to_numpy(dtype=np.float64)
    years = chosen["education-num"].to_numpy(dtype=np.float64)
    rows = np.stack([hours / 49.5 - 1, (age - 53.5) / 36.5, (years - 8.5) / 7.5], axis=1).clip(
        -1, 1
    )
    tables = {
        "count": count_errors(10_000 if given.quick else 200_000),
        "median": median_errors(age, 200 if given.quick else 3_000),
        "regression": {
            name: 49.5 * one
            for name, one in regression_errors(rows, 200 if given.quick else 3_000).items()
        },
    }
    written = []
    for question, errors in tables.items():
        print(question)
        for name, one in sorted(errors.items(), key=lambda pair: pair[1]):
            print(f"  {one:>10.4g}  {name}")
            written.append({"question": question, "mechanism": name, "rmse": f"{one:.4g}"})
    for policy, n, errors in beside_bounds():
        row = ", ".join(f"{name} {one:.4g}" for name, one in errors.items())
        print(f"mean of {n:,} people at {policy}: {row}")
    if given.figure:
        draw(tables, given.figure)
    if given.out:
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(written[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(written)


if __name__ == "__main__":
    main()
