"""What a labelling job costs per query, besides training and noise: the account and its prices.

250 teachers of three groups (54/37/9 %, ε = 1, 2, 3 made unlimited, so that every query is asked), 10
classes, Confident-GNMax. Noise is all zero here: drawing it is measured by ``benchmarks/noise.py``.
Times are processor seconds of one thread.

With ``--journal FOLDER``, instead: what the journal in this folder costs per query, on the clock, without a
mark and with one (``collegium/study/mark.py``), in turn.

    python benchmarks/labelling.py [--queries 9000] [--journal FOLDER]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from collegium.budgets import Budget
from collegium.noise.sums import Integers, Noise
from collegium.pate.voting.aggregators import ConfidentGNMax
from collegium.pate.voting.labelling import ANSWERED, BLOCK, LabellingJob, Outcome
from collegium.pate.voting.pricing import pricing_for
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation import PERSONALISATIONS
from collegium.study.journal import FileJournal
from collegium.study.mark import Mark

GROUPS = {"high": Budget(1e6), "average": Budget(2e6), "low": Budget(3e6)}
SIZES = {"high": 32400, "average": 22200, "low": 5400}


class NoNoise:
    """Zeros, so that drawing noise takes no time."""

    is_private = False
    description = "no noise"

    def noised(self, total: Integers, noise: Noise, *, query: int, purpose: str) -> Integers:
        return total


def votes(n_queries: int, n_teachers: int = 250, n_classes: int = 10) -> VoteTable:
    generator = np.random.default_rng(0)
    truth = np.arange(n_queries)[:, None] % n_classes
    other = generator.integers(0, n_classes, (n_queries, n_teachers))
    agrees = generator.random((n_queries, n_teachers)) < generator.random((n_queries, 1))
    return VoteTable.from_predictions(np.where(agrees, truth, other), n_classes)


def journals(folder: Path, queries: int, rounds: int = 5) -> None:
    """Time a journal's reservations and settlements, in blocks of 16, without a mark and with one."""
    spent: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * rounds):
        is_marked = bool(turn % 2)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            mark = Mark(Path(place, "journal.mark"), b"key") if is_marked else None
            journal = FileJournal(Path(place, "journal.jsonl"), key=b"key", mark=mark)
            start = time.perf_counter()
            for first in range(0, queries, BLOCK):
                asked = list(range(first, first + BLOCK))
                journal.reserve(first, asked)
                journal.settle([Outcome(number, number, ANSWERED, 0) for number in asked])
            spent[is_marked].append((time.perf_counter() - start) / queries)
    without, marked = (sorted(spent[kind])[rounds // 2] for kind in (False, True))
    print(
        f"journal: {1e6 * without:.0f} µs per query, with a mark {1e6 * marked:.0f} µs "
        f"({marked / without:.2f} times; median of {rounds} rounds)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=9000)
    parser.add_argument("--journal", type=Path)
    options = parser.parse_args()
    if options.journal is not None:
        journals(options.journal, options.queries)
        return
    table = votes(options.queries)
    aggregator = ConfidentGNMax(threshold=150, sigma_threshold=150, sigma=40)
    for guarantee in ("worst-case", "data-dependent"):
        for personalisation in ("weighting", "vanishing"):
            if (guarantee, personalisation) == ("data-dependent", "vanishing"):
                continue  # 250 cohorts × all orders: not a job that anybody runs
            plan = PERSONALISATIONS[personalisation]().plan(GROUPS, SIZES, 250)
            electorate = plan.electorate(0)
            pricing = pricing_for(guarantee, aggregator, electorate)
            job = LabellingJob(
                table, electorate, aggregator, pricing, NoNoise(), np.arange(options.queries)
            )
            start = time.process_time()
            labels = job.run()
            seconds = time.process_time() - start
            print(
                f"{guarantee:<15} {personalisation:<10} {1e6 * seconds / options.queries:8.1f} µs per "
                f"query   ({labels.n_asked:,} asked, {labels.n_answered:,} answered, ε of the "
                f"strictest {pricing.accountant.epsilon_spent()[0]:.12g})",
                flush=True,
            )


if __name__ == "__main__":
    main()
