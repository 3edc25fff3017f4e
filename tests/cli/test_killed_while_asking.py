"""`collegium run` of a study that asks, killed (SIGKILL) again and again around what it makes durable."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from collegium import Ledger
from collegium.accounting import Neighbours
from collegium.study.folder import StudyFolder
from collegium.study.terms import read_terms
from collegium.study.verifying import examine

# Runs commands, each in a process forked with all that it imports. A line says where counting begins, and at
# which step from there on the process kills itself: the beginning is one, then each fsync that has ended; 0:
# never. Every draw of noise is written down.
SERVER = """
import os, signal, sys
import matplotlib.backends.backend_svg, matplotlib.figure, matplotlib.style
import collegium.cli.blocks, collegium.cli.progress, collegium.ledger.ledger
import collegium.study.runner
from collegium.cli.main import _built, app, main
from collegium.noise.sources import SecureNoise
from collegium.study.kept_draws import NumberedDraws
_built(app)
for line in sys.stdin:
    begins, last, *argv = line.split()
    child = os.fork()
    if not child:
        for number in (1, 2):
            os.dup2(os.open(f"said-{number}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        counted, fsync = [begins == "start", 0], os.fsync
        def count():
            counted[1] += counted[0]
            if counted[1] == int(last):
                os.kill(os.getpid(), signal.SIGKILL)
        def synced_and_counted(descriptor):
            fsync(descriptor)
            count()
        os.fsync = synced_and_counted
        def begun_by(owner, name):
            whole = getattr(owner, name)
            def begun(*given, **named):
                if begins == name and not counted[0]:
                    counted[0] = True
                    count()
                return whole(*given, **named)
            setattr(owner, name, begun)
        begun_by(NumberedDraws, "charge")
        begun_by(NumberedDraws, "end")
        def told(way):
            whole = getattr(SecureNoise, way)
            def drawn(self, *given, query, purpose):
                with open("drawn.txt", "a") as file:
                    file.write(f"{query} {purpose}\\n")
                return whole(self, *given, query=query, purpose=purpose)
            setattr(SecureNoise, way, drawn)
        for way in ("noised", "words"):
            told(way)
        sys.argv = ["collegium", *argv]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
QUESTIONS = [
    "mean age",
    "count by ward",
    "median age",
    "mean age by ward",
    "histogram ward",
]
STUDY = f"""
[data]
private = "people.csv"
owner = "person"
[privacy]
levels = {{ high = 1.0, low = 3.0 }}
column = "level"
[method]
kind = "statistics"
[statistics]
schema = "schema.toml"
spend = 0.5
questions = {json.dumps(QUESTIONS)}
[ledger]
url = "people.ledger"
"""
SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 90]
[columns.ward]
kind = "category"
categories = ["a", "b"]
"""
N = 200


@pytest.fixture
def run(tmp_path):
    """Write a study; returns what runs it, and kills it after so many things that it makes durable."""
    generator = np.random.default_rng(1)
    people = {
        "person": [f"p{number}" for number in range(N)],
        "age": generator.integers(18, 90, N),
        "ward": generator.choice(["a", "b"], N),
        "level": generator.choice(["high", "low"], N),
    }
    pd.DataFrame(people).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "study.toml").write_text(STUDY)
    Ledger.create(tmp_path / "people.ledger", neighbours=Neighbours.ADD_OR_REMOVE)
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    ) as server:

        def call(begins="start", last=0):
            server.stdin.write(f"{begins} {last} run study.toml --json\n")
            server.stdin.flush()
            return int(server.stdout.readline())

        yield call
        server.stdin.close()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_study_that_is_killed_pays_its_price_once_and_draws_no_noise_twice(run, tmp_path):
    out = tmp_path / "study"
    kept, lost, prices = {}, [], []

    def look():
        """Look at what is durable: what was kept stays, what was charged without an answer is lost."""
        terms, journal = read_terms(out)
        charged = journal.steps
        path = out / "vault" / "answers.json"
        now = (
            {one["number"]: one for one in json.loads(path.read_text())["answers"]}
            if path.exists()
            else {}
        )
        assert now | kept == now
        kept.update(now)
        lost[:] = [QUESTIONS[n - 1] for n in range(1, charged + 1) if n not in kept]
        prices.append((terms.questions, terms.spent_on(len(QUESTIONS)).epsilon))
        return charged

    assert run("start", 4) == -signal.SIGKILL  # while the folder is made
    for last, charged in ((1, 0), (2, 1), (3, 2), (7, 4)):
        # Before the charge, and after it; after the line that vouches for the answer; in the next question.
        assert run("charge", last) == -signal.SIGKILL
        assert look() == charged
    assert 0 < len(lost) < len(QUESTIONS) and kept
    assert run("end", 4) == -signal.SIGKILL  # all is asked, and nothing is published yet
    assert look() == len(QUESTIONS)
    drawn = (tmp_path / "drawn.txt").read_text()
    assert run() == 0, (tmp_path / "said-2.txt").read_text()
    told = json.loads((tmp_path / "said-1.txt").read_text())
    assert look() == len(QUESTIONS)
    assert told["lost"] == lost
    answered = {one["question"]: one for one in told["answers"]}
    assert answered == {one["question"]: one for one in kept.values()}
    assert set(answered) | set(lost) == set(QUESTIONS)
    assert (tmp_path / "drawn.txt").read_text() == drawn
    draws = drawn.splitlines()
    assert len(set(draws)) == len(draws)
    assert prices == prices[:1] * len(prices)
    paid = {row["group"]: row["epsilon_spent"] for row in told["groups"]}
    assert paid == pytest.approx(prices[0][1], rel=1e-9)
    assert not [one for one in examine(StudyFolder(out)) if one.trouble]
    (release,) = Ledger(tmp_path / "people.ledger").contents().releases.values()
    assert release.is_settled
    uses = read_terms(out)[0].spent_on(len(QUESTIONS)).uses
    prices_booked = sorted(cost.mu_squared for cost in release.costs)
    assert prices_booked == pytest.approx(
        sorted(sum(u.count * float(u.event.mu_squared[0]) for u in one) for one in uses.values()),
        rel=1e-6,
    )
