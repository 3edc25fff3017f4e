"""Several programs at once, and programs that are killed: nobody pays less than what left."""

import math
import multiprocessing
import random
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from collegium import Budget, Ledger
from collegium.ledger import Lifetime
from tests.ledger import a_program

LIMIT = Lifetime().limit(Budget(1.0)).mu_squared
MOST = 1 + int((LIMIT - a_program.RESERVED) / a_program.COST)


PROGRAMS = multiprocessing.get_context("forkserver")
PROGRAMS.set_forkserver_preload([a_program.__name__])


def start(place: str, key: Path, who: str, released: Path) -> ForkServerProcess:
    program = PROGRAMS.Process(target=a_program.main, args=(place, key, who, released))
    program.start()
    return program


def ended_well(programs: list[ForkServerProcess]) -> bool:
    for program in programs:
        program.join()
    return not any(program.exitcode for program in programs)


def released_by(files: list[Path]) -> list[float]:
    return [float(line) for file in files if file.exists() for line in file.read_text().split()]


def test_four_programs_together_spend_what_one_may(anywhere, tmp_path):
    place, key = anywhere
    ledger = Ledger.create(place, key)
    files = [tmp_path / f"released-{who}" for who in "abcd"]
    programs = [start(place, key, who, file) for who, file in zip("abcd", files, strict=True)]
    assert ended_well(programs)
    left = released_by(files)
    assert len(left) == MOST  # the last refusal came when nobody else held a reservation
    (standing,) = ledger.standings()
    assert math.fsum(left) <= standing.spent.mu_squared <= math.fsum(left) * (1 + 1e-12) <= LIMIT
    assert standing.n_releases == len(left)
    ledger.verify()


def test_programs_that_are_killed_paid_for_all_that_left(tmp_path):
    place, key = str(tmp_path / "people.ledger"), tmp_path / "key"
    ledger = Ledger.create(place, key)
    files = [tmp_path / f"released-{who}" for who in "ab"]
    chance = random.Random(1)
    for _ in range(20):
        programs = [start(place, key, who, file) for who, file in zip("ab", files, strict=True)]
        for program, file in zip(programs, files, strict=True):
            more = len(released_by([file])) + chance.randint(0, 2)
            while len(released_by([file])) < more and program.is_alive():
                time.sleep(chance.random() * 0.01)
            program.kill()
            program.join()
        for standing in ledger.standings():
            assert math.fsum(released_by(files)) <= standing.spent.mu_squared <= LIMIT
    programs = [start(place, key, who, file) for who, file in zip("ab", files, strict=True)]
    assert ended_well(programs)
    (standing,) = ledger.standings()
    # A release that was cut off after it left is asked for again under its own name and not paid twice.
    assert standing.n_releases == len(ledger_releases(ledger))
    assert math.fsum(released_by(files)) <= standing.spent.mu_squared <= LIMIT
    ledger.verify()


def ledger_releases(ledger: Ledger) -> set[str]:
    return {entry.body["release"] for entry in ledger.history() if entry.kind == "reserve"}
