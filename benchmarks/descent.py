"""Direct training: seconds of a private step beside a plain one, and of a descent larger than memory.

    python benchmarks/descent.py                  # softmax, 60,000 records × 400 features × 10 classes, 60 steps
    python benchmarks/descent.py --streamed       # 10,000,000 rows × 20 columns from Parquet, logistic, 60 steps
    python benchmarks/descent.py --quick          # less of both

A plain step is the same arithmetic on the same records and threads, without norms, clipping, rounding and
noise: scores, errors, and the sum of features times errors.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np


def softmax(rows: int, columns: int, classes: int, steps: int) -> None:
    """Take private and plain steps in turn."""
    from collegium.budgets import Budgets
    from collegium.models.threads import allowed_threads, in_threads
    from collegium.pate.records import Records
    from collegium.sgd.run import DescentRecipe, DescentRun
    from collegium.sgd.settings import Descent

    random = np.random.default_rng(0)
    X = random.normal(size=(rows, columns))
    y = (X @ random.normal(size=(columns, classes))).argmax(axis=1)
    budgets = Budgets.from_epsilons(np.resize([0.5, 1.0, 2.0], rows), delta=1e-6)
    records = Records(X, y, budgets, np.arange(classes), None)
    begun = time.perf_counter()
    run = DescentRun(DescentRecipe(Descent(steps=steps)), records)
    summands = run.summands()
    prepared = time.perf_counter() - begun
    features = [block.features for block in summands.blocks]
    targets = [block.targets for block in summands.blocks]

    def plain(parameters: np.ndarray) -> np.ndarray:
        def of_block(number: int) -> np.ndarray:
            units = features[number].astype(np.float64)
            return units.T @ run.loss.errors(units @ parameters, targets[number])

        return sum(in_threads(of_block, range(len(features))))

    class Timed:
        def __init__(self) -> None:
            self.private, self.plain = [], []

        def clipped_sum(self, parameters, sample):
            start = time.perf_counter()
            plain(parameters * 2.0**-15)
            between = time.perf_counter()
            total = summands.clipped_sum(parameters, sample)
            self.plain.append(between - start)
            self.private.append(time.perf_counter() - between)
            return total

    timed = Timed()
    begun = time.perf_counter()
    run.descend(timed, columns + 1)
    whole = time.perf_counter() - begun
    alone = prepared + whole - sum(timed.plain)
    ratio = statistics.median(
        private / plain for private, plain in zip(timed.private, timed.plain, strict=True)
    )
    print(
        f"softmax, {rows:,} × {columns} × {classes}, {steps} steps on {allowed_threads()} thread(s), load "
        f"{os.getloadavg()[0]:.1f}: {alone:.1f} s in all ({prepared:.1f} s to prepare); a private sum takes "
        f"{1000 * statistics.median(timed.private):.0f} ms, a plain one "
        f"{1000 * statistics.median(timed.plain):.0f} ms, ratio {ratio:.3f} (median of step by step); steps "
        f"with noise {alone - prepared:.1f} s, plain sums {sum(timed.plain):.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streamed", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    softmax(6_000 if options.quick else 60_000, 400, 10, 60)


if __name__ == "__main__":
    main()
