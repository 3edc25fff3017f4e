"""How far off a median by groups is where everybody grants the same: exact, from the chances.

    python -m benchmarks.quantile_draws --data-dir DATA

Four ways at the same pure ε, all of it spent on the value: the literature's score, -½|W_<r - W_>r|, or ours;
drawn by the exponential mechanism or by permute-and-flip. Root mean squares over all groups; nothing is
drawn, so there is no error of repetitions. The last column is ours beside an interval: seven tenths of ε.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.beside_others import tables
from collegium.statistics.quantiles import FOR_INTERVAL, scores_of

Floats = NDArray[np.float64]


def distance(rows: NDArray[np.int64]) -> Floats:
    """The score of the literature, for a row of weight 1."""
    below = np.cumsum(rows) - rows
    return np.asarray(-np.abs(2 * below + rows - rows.sum()) / 2)


def ours(rows: NDArray[np.int64]) -> Floats:
    """The score of `collegium.statistics.quantiles`, for a row of weight 1."""
    scores, unit = scores_of(rows[None], 0.5, 1.0)
    return np.asarray(scores[0] * unit)


def exponential(scores: Floats) -> Floats:
    """Chances of the exponential mechanism."""
    found = np.exp(scores - scores.max())
    return np.asarray(found / found.sum())


def flips(scores: Floats) -> Floats:
    """Chances of permute-and-flip: p E[1/(1 + others)] = p ∫ Π (1 - p_i + p_i t) dt, by quadrature."""
    accepted = np.exp(scores - scores.max())
    at, weight = np.polynomial.legendre.leggauss(200)
    logs = np.log(1 - accepted[:, None] * (1 - at) / 2)
    chances = accepted * (np.exp(logs.sum(axis=0) - logs) @ weight) / 2
    return np.asarray(chances / chances.sum())


def main() -> None:
    """Compute all of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    given = parser.parse_args()
    ways = {
        "literature, exponential": (distance, exponential, 1.0),
        "literature, flips": (distance, flips, 1.0),
        "ours, exponential": (ours, exponential, 1.0),
        "ours, flips": (ours, flips, 1.0),
        "ours, with an interval": (ours, flips, 1 - FOR_INTERVAL),
    }
    print("| median | ε | " + " | ".join(ways) + " |")
    for name, frame, schema, questions in tables(given.data_dir):
        for kind, column, by in questions:
            if kind != "median" or by is None:
                continue
            about = schema[column]
            candidates = np.arange(about.lower, about.upper + 1)
            groups = [own.to_numpy(float) for _, own in frame.groupby(by)[column]]
            for epsilon in (1.0, 0.1, 0.01):
                errors = []
                for score, chances, part in ways.values():
                    squares = []
                    for own in groups:
                        place = np.clip(own - about.lower, 0, len(candidates) - 1).astype(int)
                        rows = np.bincount(place, minlength=len(candidates)).astype(np.int64)
                        drawn = chances(score(rows) * epsilon * part)
                        squares.append(float(drawn @ (candidates - np.median(own)) ** 2))
                    errors.append(f"{np.sqrt(np.mean(squares)):.3g}")
                asked = f"{name}: {column} by {by}"
                print(f"| {asked} | {epsilon:g} | " + " | ".join(errors) + " |", flush=True)


if __name__ == "__main__":
    main()
