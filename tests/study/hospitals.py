"""Three hospitals with tables of their own; their commands run at the same time, each as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from collegium import Collective, IdentityKey

# Runs commands, each in a process forked with all that it imports. A line says in which folder, after how
# many fsyncs the process kills itself (0: never), and what the command is. Another process waits for its end.
SERVER = """
import os, signal, sys
import matplotlib.backends.backend_svg, matplotlib.figure, matplotlib.style
import collegium.cli.blocks, collegium.cli.progress, collegium.ledger.ledger
import collegium.study.runner, collegium.study.methods.dpsgd.method
import collegium.study.methods.statistics.method, collegium.study.methods.synthesis.method
import collegium.study.methods.votes.method, skops.io, sklearn.naive_bayes
import collegium.parties.ciphers as ciphers
import cryptography.hazmat.primitives.asymmetric.ed25519
from collegium.cli.main import _built, app, main
_built(app)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    folder, last, *argv = line.split()
    if os.fork():
        continue
    os.chdir(folder)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    worker = os.fork()
    if worker:
        code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        with open("ended.new", "w") as file:
            file.write(str(code))
        os.rename("ended.new", "ended.txt")
        os._exit(0)
    with open("process.txt", "w") as file:
        file.write(str(os.getpid()))
    for number in (1, 2):
        os.dup2(os.open(f"said-{number}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    counted, fsync = [0], os.fsync
    def synced(descriptor):
        fsync(descriptor)
        counted[0] += 1
        if counted[0] == int(last):
            os.kill(os.getpid(), signal.SIGKILL)
    os.fsync = synced
    sys.argv = ["collegium", *argv]
    try:
        main()
    finally:
        with open("counted.txt", "w") as file:
            file.write(str(counted[0]))
        sys.stdout.flush()
"""
SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 98]
bins = [18, 40, 60, 98]
missing = false
[columns.sick]
kind = "flag"
missing = false
"""
COMMON = """
[study]
name = "Ages 2026"
[data]
private = "people.csv"
owner = "person"
{data}
[privacy]
column = "level"
levels = {{ strict = 1.0, open = 3.0 }}
[parties]
collective = "collective.toml"
key = "own.key"
folder = "../shared"
poll_s = 0.01
give_up_s = 300
{parties}
"""
METHODS = {
    "statistics": """
[statistics]
schema = "schema.toml"
questions = ["count where sick", "mean age by sick"]
""",
    "synthesis": """
[synthesis]
schema = "schema.toml"
goal = "fidelity"
structure = ["age, sick"]
""",
    "dpsgd": """
[preprocessing]
kind = "none"
[dpsgd]
steps = 3
""",
    "pate": """
[preprocessing]
kind = "none"
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 12
[aggregation]
aggregator = "confident"
threshold = 7
sigma_threshold = 30
sigma = 40
query_order = "doubtful"
[student]
model = "sklearn.naive_bayes.GaussianNB"
[run]
n_jobs = 1
""",
}
LEARNT = (
    'public = "public.csv"\ntarget = "sick"\nclasses = [false, true]\nnot_identifiers = ["age"]'
)
DATA = {"dpsgd": LEARNT, "pate": LEARNT}
NAMES = ("a", "b", "c")


class Server:
    """The process whose forks run commands; begun once, since imports take seconds."""

    def __init__(self) -> None:
        # Each hospital has a ledger beside its table, as where nobody says otherwise.
        outside = {name: value for name, value in os.environ.items() if name != "COLLEGIUM_LEDGER"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, text=True, env=outside
        )

    def begin(self, line: str) -> None:
        """Begin a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End it; commands that still run are left to end by themselves."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(1200)


class Hospitals:
    """Folders a, b and c, and the one that they share."""

    def __init__(
        self, folder: Path, server: Server, drop_outs: int = 0, names: tuple[str, ...] = NAMES
    ) -> None:
        self.folder, self.names, self._server = folder, names, server
        self.rng = np.random.default_rng(7)
        (folder / "shared").mkdir()
        for name in names:
            (folder / name).mkdir()
            (folder / name / "schema.toml").write_text(SCHEMA)
            rows = self._people(60)
            rows.insert(0, "person", [f"{name}{number}" for number in range(len(rows))])
            rows.insert(1, "level", self.rng.choice(["strict", "open"], len(rows)))
            rows.to_csv(folder / name / "people.csv", index=False)
        public = self._people(40)
        keys = {name: IdentityKey.make(folder / name / "own.key") for name in names}
        self.collective = Collective(
            [keys[name].member(f"Hospital {name.upper()}") for name in names], drop_outs=drop_outs
        )
        for name in names:
            public.to_csv(folder / name / "public.csv", index=False)
            (folder / name / "collective.toml").write_text(self.collective.toml())

    def _people(self, n: int) -> pd.DataFrame:
        age = self.rng.integers(18, 99, n)
        return pd.DataFrame({"age": age, "sick": age + self.rng.normal(0, 10, n) > 60})

    def write(self, method: str, parties: str = "") -> None:
        """Give all the same study."""
        text = COMMON.format(data=DATA.get(method, ""), parties=parties) + METHODS[method]
        for name in self.names:
            (self.folder / name / "study.toml").write_text(text)

    def change(self, name: str, file: str, before: str, after: str) -> None:
        """Change a text in a file of one of them."""
        path = self.folder / name / file
        text = path.read_text()
        assert text.count(before) == 1, (file, before)
        path.write_text(text.replace(before, after))

    def begin(self, name: str, command: str = "run study.toml --quiet", killed_at: int = 0) -> None:
        """Begin a command; it is killed when it has made so many things durable."""
        for file in ("ended.txt", "counted.txt", "process.txt"):
            (self.folder / name / file).unlink(missing_ok=True)
        self._server.begin(f"{self.folder / name} {killed_at} {command}")

    def process(self, name: str) -> int:
        """Number of the process of a command that was begun."""
        return int(_read(self.folder / name / "process.txt"))

    def end(self, name: str) -> int:
        """Wait for the end of a command; returns its exit status."""
        return int(_read(self.folder / name / "ended.txt"))

    def first_to_end(self, names: set[str]) -> str:
        """Wait until the command of one of them has ended."""
        for _ in range(30_000):
            for name in sorted(names):
                if (self.folder / name / "ended.txt").exists():
                    return name
            time.sleep(0.01)
        raise AssertionError(f"none of {sorted(names)} has ended within five minutes")

    def run_all(self) -> list[int]:
        """Run the study at all of them."""
        for name in self.names:
            self.begin(name)
        return [self.end(name) for name in self.names]

    def counted(self, name: str) -> int:
        """How many things a command made durable."""
        return int(_read(self.folder / name / "counted.txt"))

    def said(self, name: str) -> str:
        """What a command wrote for people to read."""
        return "".join((self.folder / name / f"said-{n}.txt").read_text() for n in (1, 2))

    def released(self, name: str, file: str) -> bytes:
        """Read what was released."""
        return (self.folder / name / "study" / "release" / file).read_bytes()

    def privacy(self, name: str) -> dict[str, object]:
        """What a release says of itself."""
        told: dict[str, object] = json.loads(self.released(name, "privacy.json"))
        return told


def _read(path: Path) -> str:
    for _ in range(30_000):
        if path.exists() and (content := path.read_text()):
            return content
        time.sleep(0.01)
    raise AssertionError(f"{path} was not written within five minutes")
