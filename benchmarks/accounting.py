"""How fast the data-dependent account is, against a per-query loop that computes the same numbers.

Confident-GNMax, votes of 250 teachers for 10 classes, three groups. Times are processor seconds, so
threads would not help. The loop is the readable reference ``tests/accounting/reference_loop.py``,
written from the papers' formulas.

    python benchmarks/accounting.py [--skip-loop] [--skip-million]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from collegium.accounting.accountant import DataDependentAccountant
from collegium.accounting.renyi import SEED_ORDERS
from collegium.accounting.votes.stream import account_votes

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "accounting" / "votes"))

SENSITIVITY = np.array([0.55, 1.03, 1.48])
THRESHOLD, SIGMA_THRESHOLD, SIGMA, TEACHERS = 200.0, 150.0, 40.0, 250
SETTING = {"sigma": SIGMA, "threshold": THRESHOLD, "sigma_threshold": SIGMA_THRESHOLD}


def blocks(n_queries: int, size: int = 4096) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Made-up weighted votes, from undecided to unanimous; about half the queries are answered."""
    generator = np.random.default_rng(0)
    for first in range(0, n_queries, size):
        n = min(size, n_queries - first)
        shares = generator.dirichlet(np.full(10, 0.15), n)
        votes = np.round(shares * TEACHERS * 16) / 16
        votes[:, 0] += TEACHERS - votes.sum(axis=1)
        votes = np.maximum(votes, 0.0)
        answered = votes.max(axis=1) + generator.normal(0, SIGMA_THRESHOLD, n) >= THRESHOLD
        yield votes, answered


def by_loop(n_queries: int) -> np.ndarray:
    from reference_loop import gnmax_cost, gnmax_q, threshold_cost

    total = np.zeros((SENSITIVITY.size, SEED_ORDERS.size))
    for votes, answered in blocks(n_queries):
        for row, is_answered in zip(votes.tolist(), answered.tolist(), strict=True):
            q = gnmax_q(row, SIGMA) if is_answered else None
            for group, moves in enumerate(SENSITIVITY.tolist()):
                for column, order in enumerate(SEED_ORDERS.tolist()):
                    cost = threshold_cost(max(row), THRESHOLD, moves, SIGMA_THRESHOLD, order)
                    if q is not None:
                        cost += gnmax_cost(q, moves, SIGMA, order)
                    total[group, column] += cost
    return total


def million(n_queries: int) -> None:
    start = time.process_time()
    spent = account_votes(blocks(n_queries), SENSITIVITY, SEED_ORDERS, **SETTING)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(
        f"{spent.n_queries:,} queries × 3 groups × 49 orders: {seconds:.1f} s, votes made up included; "
        f"peak {peak:.0f} MiB, the interpreter and its libraries included"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=9000)
    parser.add_argument("--skip-loop", action="store_true")
    parser.add_argument("--skip-million", action="store_true")
    parser.add_argument("--only-million", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only_million:
        million(options.only_million)
        return
    list_of_blocks = list(blocks(options.queries))
    seconds = []
    for _ in range(3):
        start = time.process_time()
        spent = account_votes(list_of_blocks, SENSITIVITY, SEED_ORDERS, **SETTING)
        seconds.append(time.process_time() - start)
    fast = min(seconds)
    print(f"{options.queries:,} queries × 3 groups × 49 orders, streamed: {fast:.3f} s", flush=True)
    if not options.skip_loop:
        start = time.process_time()
        expected = by_loop(options.queries)
        slow = time.process_time() - start
        difference = np.abs(spent.sensitive_rdp / expected - 1).max()
        print(f"per-query loop: {slow:.2f} s, {slow / fast:.0f} times as long; largest relative "
              f"difference {difference:.1e}", flush=True)  # fmt: skip
    account = DataDependentAccountant(np.full(3, 1e9), 1e-5, SEED_ORDERS)
    cost = spent.sensitive_rdp / options.queries
    start = time.process_time()
    for _ in range(2000):
        account.affords(cost)
        account.charge(cost)
    print(f"one more query: {(time.process_time() - start) / 2000 * 1e6:.0f} µs to ask and charge")
    if not options.skip_million:
        command = [sys.executable, __file__, "--only-million", "1000000"]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
