"""Processor time of each page of a desk, with many people and releases in its ledger; 20 choose at once.

python benchmarks/desk.py --people 10000 --releases 50
"""

from __future__ import annotations

import argparse
import io
import re
import socket
import tempfile
import threading
import time
import warnings
from pathlib import Path

import httpx2
import numpy as np
import pandas as pd
import uvicorn
from starlette.testclient import TestClient

from collegium import Ledger
from collegium.desk.application import application
from collegium.desk.books import Books
from collegium.ledger import Cost
from collegium.study.policy_file import read_policy

ADDRESS = "http://127.0.0.1:8765"
AT_ONCE = 20
LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}


def filled(folder: Path, people: int, releases: int) -> tuple[Books, list[str]]:
    """Make a desk whose ledger knows many people, a few of whom take part in each release; and links."""
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
    books = Books(ledger, folder / "policy.toml", folder / "desk")
    table = pd.DataFrame({"patient": names, "age": rng.integers(20, 90, people)})
    content = io.BytesIO(table.to_csv(index=False).encode())
    books.tables.set_owner(
        books.tables.add("visits", "visits.csv", content, is_public=False), "patient"
    )
    tokens = books.make_links(names[:AT_ONCE], 30)
    return books, [f"/me/{token}/" for token in tokens]


def at_once(books: Books, links: list[str], rounds: int) -> list[float]:
    """Seconds until each of some people, who choose at the same moment, is told that it is entered."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(application(books, address, lambda line: None), log_level="critical")
    )
    serving = threading.Thread(target=lambda: server.run(sockets=[listening]))
    serving.start()
    took, together = [], threading.Barrier(len(links))

    def choose(link: str) -> None:
        with httpx2.Client(base_url=address, timeout=120) as browser:
            for number in range(rounds):
                version = re.search(r'name="version" value="(\d+)"', browser.get(link).text)
                together.wait()
                begun = time.perf_counter()
                sent = {"level": str(number % 3), "version": version[1]}
                told = browser.post(f"{link}choice", data=sent, follow_redirects=True)
                took.append(time.perf_counter() - begun)
                assert "Your choice has been entered." in told.text

    people = [threading.Thread(target=choose, args=(link,)) for link in links]
    for one in people:
        one.start()
    for one in people:
        one.join()
    server.should_exit = True
    serving.join()
    return took


def main() -> None:
    """Print milliseconds of processor time of each page: the median of some requests."""
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--people", type=int, default=10_000)
    asked.add_argument("--releases", type=int, default=50)
    asked.add_argument("--requests", type=int, default=9)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        books, links = filled(Path(folder), given.people, given.releases)
        browser = TestClient(application(books, ADDRESS, lambda line: None), base_url=ADDRESS)
        browser.post("/in", data={"secret": books.new_secrets["steward"]})
        link, *_ = links
        pages = (
            "/",
            "/levels",
            "/tables",
            "/tables/visits",
            "/questions",
            "/studies",
            "/people",
            "/history",
        )
        for page in (*pages, link, f"{link}leave"):
            took = []
            for _ in range(given.requests):
                begun = time.process_time()
                assert browser.get(page).status_code == 200
                took.append(1000 * (time.process_time() - begun))
            name = page.replace(link, "/me/…/")
            print(f"{name:<15} {np.median(took):7.1f} ms (most {max(took):.1f})")
        took = at_once(books, links, given.requests)
        print(
            f"{AT_ONCE} people choose at once, {given.requests} times: each is told after "
            f"{np.median(took):.2f} s (most {max(took):.2f})"
        )
        books.close()


if __name__ == "__main__":
    main()
