"""What a ledger costs: releases per second, and how it grows with people and releases.

python benchmarks/ledger.py --owners 1000000 --releases 1000 --about 20000 --samples 20

Each release is about one of a few samples of the people, which overlap by chance: so cohorts split, as they
do where studies use overlapping data.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budget, Budgets
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost
from collegium.report.receipt import texts_of

LEVELS = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
TINY = {level: Cost(1e-6) for level in LEVELS}


def timed(what: str, act: Callable[[], Any]) -> Any:
    """Run something once, and print how long it took: by the clock, and of the processor."""
    start, worked = time.perf_counter(), time.process_time()
    result = act()
    took, of_it = time.perf_counter() - start, time.process_time() - worked
    print(f"{what}: {took:.3f} s ({of_it:.3f} s of the processor)", flush=True)
    return result


def people(names: NDArray[np.intp]) -> Budgets:
    """Put people into three levels."""
    return Budgets(LEVELS, names % 3, names)


def release(ledger: Ledger, id: str, about: Budgets) -> None:
    """Make one."""
    ledger.reserve(id, "", about, TINY, neighbours=Neighbours.ANY_CHANGE).settle(TINY)


def fill(ledger: Ledger, everybody: Budgets, samples: list[Budgets], n_releases: int) -> None:
    """Make releases, first about everybody, then about one sample after the other."""

    def some(numbers: range) -> None:
        for number in numbers:
            release(ledger, f"r{number}", samples[number % len(samples)])

    n_owners, n, size = everybody.n_owners, len(samples), samples[0].n_owners
    timed(f"first release, {n_owners:,} people join", lambda: release(ledger, "first", everybody))
    timed("the same people again", lambda: release(ledger, "again", everybody))
    timed(f"{n:,} releases about {size:,} people, which split cohorts", lambda: some(range(n)))
    timed(f"{n_releases - n:,} more of them", lambda: some(range(n, n_releases)))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=100_000)
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--about", type=int, default=1_000, help="people in each of the releases")
    parser.add_argument(
        "--samples", type=int, default=4, help="different samples of so many people"
    )
    parser.add_argument("--url", help="a PostgreSQL database, instead of a file")
    parser.add_argument(
        "--folder", type=Path, help="keep the ledger there; one that is there is only read"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    everybody = people(np.arange(given.owners))
    chance = np.random.default_rng(0)
    samples = [
        people(chance.choice(given.owners, given.about, replace=False))
        for _ in range(given.samples)
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        place = (given.url or folder / "people.ledger", folder / "key")
        if not place[1].exists():
            fill(Ledger.create(*place), everybody, samples, given.releases)
        ledger = timed("open", lambda: Ledger(*place))
        timed("standings (`show`)", ledger.standings)
        timed("what everybody has left (a plan)", lambda: ledger.left(everybody))
        timed("what a sample has left", lambda: ledger.left(samples[0]))
        timed("one person's account (a receipt)", lambda: ledger.account_of("7"))
        names = [str(number) for number in range(min(10_000, given.owners))]

        def receipts() -> int:
            texts = texts_of(names, ledger.accounts_of(names), ledger.neighbours, html=True)
            return sum(map(len, texts))

        timed(f"pages of receipts for {len(names):,} people, not written", receipts)
        timed("verify", ledger.verify)
        cohorts = sum(one.members > 0 for one in ledger.contents().cohorts.values())
        print(f"{cohorts:,} cohorts of owners with one history")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(f"memory: {memory:.0f} MiB at most")
        if not given.url:
            size = sum(path.stat().st_size for path in folder.iterdir())
            print(f"size: {size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
