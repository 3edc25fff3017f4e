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

LEVELS = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}


def timed(what: str, act: Callable[[], Any]) -> Any:
    """Run something once, and print how long it took."""
    start = time.perf_counter()
    result = act()
    print(f"{what}: {time.perf_counter() - start:.3f} s", flush=True)
    return result


def people(names: NDArray[np.intp]) -> Budgets:
    """Put people into three levels."""
    return Budgets(LEVELS, names % 3, names)


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
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "people.ledger")
        place = (given.url or file, Path(folder, "key"))
        ledger = Ledger.create(*place)
        everybody = people(np.arange(given.owners))
        tiny = {level: Cost(1e-6) for level in LEVELS}
        about = {"neighbours": Neighbours.ANY_CHANGE}

        def first() -> None:
            ledger.reserve("first", "about everybody", everybody, tiny, **about).settle(tiny)

        timed(f"first release, {given.owners:,} people join", first)
        timed(
            "the same people again", lambda: ledger.reserve("again", "", everybody, tiny, **about)
        )
        chance = np.random.default_rng(0)
        samples = [
            people(chance.choice(given.owners, given.about, replace=False))
            for _ in range(given.samples)
        ]

        def some(numbers: range) -> None:
            for number in numbers:
                sample = samples[number % len(samples)]
                ledger.reserve(f"r{number}", "about some", sample, tiny, **about).settle(tiny)

        timed(
            f"the first {given.samples:,} releases about {given.about:,} people, which split cohorts",
            lambda: some(range(given.samples)),
        )
        timed(
            f"{given.releases - given.samples:,} more",
            lambda: some(range(given.samples, given.releases)),
        )
        cohorts = sum(one.members > 0 for one in ledger.contents().cohorts.values())
        print(f"{cohorts:,} cohorts")
        reopened = timed("open", lambda: Ledger(*place))
        timed("standings (`show`)", reopened.standings)
        timed("what everybody has left (a plan)", lambda: reopened.left(everybody))
        timed("what a sample has left", lambda: reopened.left(samples[0]))
        timed("one person's account (a receipt)", lambda: reopened.account_of("7"))
        timed("verify", reopened.verify)
        print(
            f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB at most"
        )
        if not given.url:
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            print(f"size: {size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
