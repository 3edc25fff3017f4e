"""What a ledger costs: releases per second, and how it grows with people and releases.

python benchmarks/ledger.py --owners 1000000 --releases 1000
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budget, Budgets
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost
from collegium.report.receipt import texts_of

LEVELS = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}


def timed(what: str, act: Callable[[], object]) -> object:
    """Run something once, and print how long it took."""
    start = time.perf_counter()
    result = act()
    print(f"{what}: {time.perf_counter() - start:.3f} s", flush=True)
    return result


def people(first: int, number: int) -> Budgets:
    """Make people in three levels."""
    names = np.arange(first, first + number)
    return Budgets(LEVELS, names % 3, names)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=100_000)
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--about", type=int, default=1_000, help="people in each of the releases")
    parser.add_argument("--url", help="a PostgreSQL database, instead of a file")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "people.ledger")
        ledger = Ledger.create(given.url or file, Path(folder, "key"))
        everybody = people(0, given.owners)
        tiny = {level: Cost(1e-6) for level in LEVELS}
        about = {"neighbours": Neighbours.ANY_CHANGE}

        def first() -> None:
            ledger.reserve("first", "about everybody", everybody, tiny, **about).settle(tiny)

        timed(f"first release, {given.owners:,} people join", first)
        timed(
            "the same people again", lambda: ledger.reserve("again", "", everybody, tiny, **about)
        )
        some = people(0, given.about)

        def many() -> None:
            for number in range(given.releases):
                ledger.reserve(f"r{number}", "about some", some, tiny, **about).settle(tiny)

        start = time.perf_counter()
        many()
        seconds = time.perf_counter() - start
        print(
            f"{given.releases:,} releases about {given.about:,} people: "
            f"{given.releases / seconds:.2f} a second"
        )
        timed("standings", ledger.standings)
        timed("what everybody has left (a plan)", lambda: ledger.left(everybody))
        timed("one person's account (a receipt)", lambda: ledger.account_of("7"))
        names = [str(number) for number in range(min(10_000, given.owners))]

        def receipts() -> int:
            texts = texts_of(names, ledger.accounts_of(names), ledger.neighbours, html=True)
            return sum(map(len, texts))

        timed(f"pages of receipts for {len(names):,} people, not written", receipts)
        timed("verify", ledger.verify)
        if not given.url:
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            print(f"size: {size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
