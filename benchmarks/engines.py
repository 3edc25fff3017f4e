"""What each engine adds to the time of many small teachers: training and asking 250 of them.

The same 250 logistic regressions on 240 records × 64 features each, asked about 2,000 public records, on
every engine with two workers that run already; engines take turns, and each time is divided by that of
processes on this machine (``local``) in the same turn. Starting a cluster is measured once, apart.

    python benchmarks/engines.py [--teachers 250] [--turns 5]
"""

from __future__ import annotations

import argparse
import contextlib
import time
from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import LogisticRegression

from collegium.budgets import Budgets
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.personalisation.assignment import Assignment
from collegium.workers.engines import CLUSTERS, Engine, Workers

PER_SHARD, FEATURES, CLASSES, PUBLIC, WORKERS = 240, 64, 10, 2000, 2


def records(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten noisy directions in 64 dimensions."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, CLASSES, n)
    directions = np.random.default_rng(0).normal(size=(CLASSES, FEATURES))
    return directions[y] + generator.normal(0, 2, (n, FEATURES)), y


def train_and_ask(workers: Workers, n_teachers: int) -> tuple[float, float, np.ndarray]:
    """Seconds of training and of asking, and the votes."""
    n = n_teachers * PER_SHARD
    X, y = records(n, 1)
    budgets = Budgets.from_epsilons(np.ones(n), 1e-9)
    shards = (np.arange(n) % n_teachers).astype(np.int32)
    assignment = Assignment(budgets, shards[:, None], n_teachers)
    public, _ = records(PUBLIC, 2)
    ensemble = TeacherEnsemble(LogisticRegression(max_iter=50), 0, workers=workers)
    start = time.perf_counter()
    teachers = ensemble.train(X, y, assignment)
    trained = time.perf_counter()
    votes = ensemble.ask(teachers, public)
    return trained - start, time.perf_counter() - trained, votes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--teachers", type=int, default=250)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    clusters = [name for name, module in CLUSTERS.items() if find_spec(module)]
    names = ["local", "sequential", "threading", *clusters]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        running = {}
        for name in names:
            start = time.perf_counter()
            running[name] = stack.enter_context(Engine(name, workers=WORKERS).running())
            print(f"{name:<11} ready after {time.perf_counter() - start:5.1f} s")
        expected = train_and_ask(running["local"], options.teachers)[2]
        for name in names:  # once without a clock: workers import what they need
            train_and_ask(running[name], WORKERS * 4)
        for _ in range(options.turns):
            for name in names:
                training, asking, votes = train_and_ask(running[name], options.teachers)
                times[name].append((training, asking))
                assert np.array_equal(votes, expected), f"{name} made other teachers"
    local = np.array(times["local"])
    print(f"\n{options.teachers} teachers, {WORKERS} workers, median of {options.turns} turns")
    print(f"{'engine':<11} {'training s':>10} {'÷ local':>8} {'asking s':>9} {'÷ local':>8}")
    for name in names:
        own = np.array(times[name])
        seconds, ratios = np.median(own, axis=0), np.median(own / local, axis=0)
        print(f"{name:<11} {seconds[0]:10.2f} {ratios[0]:8.2f} {seconds[1]:9.2f} {ratios[1]:8.2f}")


if __name__ == "__main__":
    main()
