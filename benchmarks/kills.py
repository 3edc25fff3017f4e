"""Kill real runs of a study again and again, at every stage, and see that nothing is lost or asked twice.

    python benchmarks/kills.py --kills 300

Each study is killed (SIGKILL, its whole process group) at random moments until it ends; then the next one
begins. After every kill: what was known before is known still, with the same label (or lost for good, if it
was being drawn). At the end: no query was asked twice, what is published is what the journal says, the
statement says no less than the journal's prices add up to and no more than was granted, and one more run
changes nothing.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collegium.accounting.gaussian import gdp_epsilon
from collegium.errors import PrivacyWarning
from collegium.pate.voting.labelling import Outcome
from collegium.study.config import read_config
from collegium.study.folder import StudyFolder
from collegium.study.stages import plan_study
from collegium.study.verifying import examine

LEVELS = {"high": 4.0, "low": 12.0}
CLASSES = ["cat", "dog", "owl"]

#: Every kind of run: what its aggregation (and the rest) says.
KINDS: dict[str, dict[str, dict[str, Any]]] = {
    "gnmax": {"aggregation": {"aggregator": "gnmax", "sigma": 9}},
    "confident": {"aggregation": {"aggregator": "confident"}},
    "interactive": {"aggregation": {"aggregator": "interactive", "refit_every": 10}},
    "histogram": {"aggregation": {"aggregator": "gnmax", "sigma": 9, "release": "histogram"}},
    "vanishing": {
        "aggregation": {"aggregator": "gnmax", "sigma": 9},
        "personalisation": {"method": "vanishing"},
    },
    "streamed": {
        "aggregation": {"aggregator": "gnmax", "sigma": 9},
        "data": {"private": "private.parquet"},
        "run": {"streaming": True},
    },
}

SERVER = """
import os, signal, sys, time
import matplotlib.backends.backend_svg, matplotlib.figure, matplotlib.style, sklearn.naive_bayes
import collegium.study.stages, collegium.study.streaming
from collegium.cli.main import main
for line in sys.stdin:
    seconds, *argv = line.split()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        sys.argv = ["collegium", *argv]
        os.dup2(os.open("child.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        main()
    try:
        os.setpgid(child, child)  # it may have done so, or ended
    except OSError:
        pass
    end, code = time.monotonic() + float(seconds), None
    while time.monotonic() < end and code is None:
        done, status = os.waitpid(child, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if done else None
        time.sleep(0.0005)
    if code is None:
        os.killpg(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, flush=True)
"""


class Killer:
    """A command line that is killed after so many seconds; forked with all that it imports."""

    def __init__(self, folder: Path) -> None:
        self._said = folder / "child.txt"
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )

    def __enter__(self) -> Killer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()  # closes its standard input, which ends it

    def run(self, seconds: float, *argv: object) -> tuple[int, str]:
        """Run ``collegium``; return its exit code (negative: the signal) and what it printed."""
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(" ".join([str(seconds), *map(str, argv)]) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline()), self._said.read_text()


def write_study(folder: Path, kind: str, n_public: int = 120) -> Path:
    """Write tables and the TOML file of a study of this kind."""
    folder.mkdir()
    for name, n, seed in (("private", 240, 1), ("public", n_public, 2), ("test", 60, 3)):
        generator = np.random.default_rng(seed)
        number = generator.integers(0, 3, n)
        table = pd.DataFrame(
            {"height": number + generator.normal(0, 0.2, n), "weight": generator.normal(0, 1, n)}
        )
        table["kind"] = np.array(CLASSES)[number]
        if name == "private":
            table["person"] = [f"person {one}" for one in np.arange(n) // 2]
            table["privacy"] = np.array(["high", "low"])[(np.arange(n) // 2) % 2]
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_parquet(folder / f"{name}.parquet", index=False)
    sections: dict[str, dict[str, Any]] = {
        "data": {
            "private": "private.csv",
            "public": "public.csv",
            "test": "test.csv",
            "target": "kind",
            "owner": "person",
            "classes": CLASSES,
        },
        "privacy": {"column": "privacy"},
        "privacy.levels": LEVELS,
        "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 12},
        "student": {"model": "sklearn.naive_bayes.GaussianNB"},
        "run": {"n_jobs": 1},
    }
    for section, keys in KINDS[kind].items():
        sections[section] = {**sections.get(section, {}), **keys}
    text = ""
    for section, keys in sections.items():
        text += f"[{section}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items())
    path = folder / "study.toml"
    path.write_text(text, "utf-8")
    return path


def stage_of(folder: Path) -> str:
    """Tell how far a study has come, by what lies in its folder."""
    vault, release = folder / "vault", folder / "release"
    if (release / "privacy.json").exists():
        return "6 published"
    if (vault / "aggregation.json").exists():
        return "5 voting ended"
    if (vault / "terms.json").exists():
        return "4 voting"
    if (vault / "votes.npy").exists():
        return "3 votes cast"
    if (vault / "teachers").is_dir() and any((vault / "teachers").iterdir()):
        return "2 teaching"
    return "1 begun" if (vault / "manifest.json").exists() else "0 nothing yet"


def known(folder: Path) -> dict[int, Outcome]:
    """Return what the journal says of each query, after every piece of the folder was held against it."""
    study = StudyFolder(folder)
    if not (study.vault / "key").exists():
        return {}
    wrong = [one.piece for one in examine(study) if one.trouble]
    assert not wrong, f"{wrong}: not what the study wrote there"
    outcomes = study.open_journal().settled()
    assert len({outcome.query for outcome in outcomes}) == len(outcomes), "a query was asked twice"
    return {outcome.query: outcome for outcome in outcomes}


def check_finished(kind: str, path: Path, folder: Path) -> None:
    """Compare what was published with the journal, and what was said with what was paid."""
    outcomes = known(folder)
    answered = {q: CLASSES[o.label] for q, o in outcomes.items() if o.verdict == "answered"}
    labels = pd.read_csv(folder / "release" / "labels.csv")
    released = dict(zip(labels["row"].tolist(), labels["label"].tolist(), strict=True))
    taken = {q: label for q, label in released.items() if q in answered}
    assert taken == answered, "what is published is not what the journal says"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        planned = plan_study(read_config(path))
    electorate, aggregator = planned.plan.electorate(0), planned.aggregator
    if kind == "vanishing":
        return  # prices differ from query to query
    ballot = electorate.ballot(0)
    statement = json.loads((folder / "release" / "privacy.json").read_text("utf-8"))
    said = {row["group"]: row["epsilon_spent"] for row in statement["groups"]}
    answers = sum(o.verdict in ("answered", "lost") for o in outcomes.values())
    for name, group in planned.plan.groups.items():
        moved = group.sensitivity / ballot.scale
        squared = 2 * answers * (moved / aggregator.noise_scale) ** 2
        if aggregator.has_check:
            squared += len(outcomes) * (moved / aggregator.check_scale) ** 2
        charged = float(gdp_epsilon(np.sqrt(squared), 1e-5))
        assert charged * (1 - 1e-9) <= said[name] <= LEVELS[name], (name, charged, said[name])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def main() -> None:
    """Kill, and count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    kills: collections.Counter[tuple[str, str]] = collections.Counter()
    studies = 0
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="kills-"))
        killer = stack.enter_context(Killer(Path(scratch)))
        usual = {}
        for kind in KINDS:  # how long each takes where nobody disturbs it
            path = write_study(Path(scratch, f"whole-{kind}"), kind)
            began = time.monotonic()
            code, said = killer.run(600, "run", path)
            assert code == 0, said
            usual[kind] = time.monotonic() - began
        while kills.total() < arguments.kills:
            kind = list(KINDS)[studies % len(KINDS)]
            studies += 1
            path = write_study(Path(scratch, f"study-{studies}"), kind)
            folder, code, said = path.with_suffix(""), 1, ""
            before: dict[int, Outcome] = {}
            for attempt in range(100):
                moment = usual[kind] * moments.random() ** 3 * 1.1**attempt  # half is the report
                code, said = killer.run(moment, "run", path)
                now = known(folder)
                for query, outcome in before.items():
                    assert now[query] == outcome or outcome.verdict == "lost", "it changed its mind"
                before = {q: o for q, o in now.items() if o.verdict != "lost"}
                if code != -signal.SIGKILL:
                    break
                kills[kind, stage_of(folder)] += 1
            assert code == 0, said
            check_finished(kind, path, folder)
            finished = contents(folder)
            assert killer.run(600, "run", path)[0] == 0
            assert contents(folder) == finished, "one more run changed something"
    stages = sorted({stage for _, stage in kills})
    print(pd.DataFrame({s: {k: kills[k, s] for k in KINDS} for s in stages}).to_string())
    print(f"{kills.total()} kills of {studies} studies: nothing lost, nothing asked twice")


if __name__ == "__main__":
    main()
