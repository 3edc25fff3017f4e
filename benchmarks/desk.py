"""Processor time of each page of a desk, with many people and releases in its ledger.

python benchmarks/desk.py --people 10000 --releases 50
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from starlette.testclient import TestClient

from collegium import Ledger
from collegium.desk.application import application
from collegium.desk.books import Books
from collegium.ledger import Cost
from collegium.study.policy_file import read_policy

ADDRESS = "http://127.0.0.1:8765"
LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}


def filled(folder: Path, people: int, releases: int) -> tuple[Books, str]:
    """Make a desk whose ledger knows many people, a few of whom take part in each release; and a link."""
    text = ", ".join(f"{name} = {epsilon}" for name, epsilon in LEVELS.items())
    (folder / "policy.toml").write_text(f"levels = {{ {text} }}\ndelta = 1e-5\n")
    ledger = Ledger.create(folder / "people.ledger")
    stated = read_policy(folder / "policy.toml")
    rng = np.random.default_rng(0)
    names = [f"patient-{number}" for number in range(people)]
    levels = rng.choice(list(LEVELS), people, p=[0.54, 0.37, 0.09])
    ledger.change(stated.policy.assign(levels, owners=names))
    for number in range(releases):
        among = np.sort(rng.choice(people, people // 2, replace=False)) if number % 5 == 0 else None
        who = np.arange(people) if among is None else among
        budgets = stated.policy.assign(levels[who], owners=[names[one] for one in who])
        costs = dict.fromkeys(LEVELS, Cost(1e-4))
        release = ledger.reserve(
            str(number), f"Release {number}", budgets, costs, neighbours=ledger.neighbours
        )
        release.settle(costs)
    books = Books(ledger, stated, folder / "desk")
    (token,) = books.make_links(names[:1], 30)
    return books, f"/me/{token}/"


def main() -> None:
    """Print milliseconds of processor time of each page: the median of some requests."""
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--people", type=int, default=10_000)
    asked.add_argument("--releases", type=int, default=50)
    asked.add_argument("--requests", type=int, default=9)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        books, link = filled(Path(folder), given.people, given.releases)
        browser = TestClient(application(books, ADDRESS, lambda line: None), base_url=ADDRESS)
        browser.post("/in", data={"secret": books.new_secrets["steward"]})
        for page in ("/", "/people", "/history", link, f"{link}leave"):
            took = []
            for _ in range(given.requests):
                begun = time.process_time()
                assert browser.get(page).status_code == 200
                took.append(1000 * (time.process_time() - begun))
            name = page.replace(link, "/me/…/")
            print(f"{name:<12} {np.median(took):7.1f} ms (most {max(took):.1f})")
        books.close()


if __name__ == "__main__":
    main()
