"""Kill real runs of a study again and again, at every stage, and see that nothing is lost or asked twice.

    python benchmarks/kills.py --kills 100

A study that nobody disturbs tells how often it brings something to the disk at each of its stages. The
others are killed (SIGKILL, the whole process group) at one of these moments, or some milliseconds after it,
stage after stage, each kind of study by turns. After every kill: what was known before is known still, with
the same label (or lost for good, if it was being drawn). At the end: no query was asked twice, what is
published is what the journal says, the statement says no less than the journal's prices add up to and no more
than was granted, and one more run changes nothing. Of direct training, every draw of noise is written down
as it happens: none of a step that was not charged before, and none of a step twice.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collegium.accounting.gaussian import gdp_epsilon
from collegium.pate.voting.labelling import Outcome
from collegium.pate.voting.release import LABELS
from collegium.study.folder import StudyFolder
from collegium.study.sections import DPSGD
from collegium.study.terms import TERMS, read_terms
from collegium.study.verifying import examine

LEVELS = {"high": 4.0, "low": 12.0}
CLASSES = ["cat", "dog", "owl"]

CHECK = {"threshold": 5, "sigma_threshold": 30, "sigma": 9}  # allows several blocks of questions

#: Every kind of run: what its aggregation (and the rest) says.
KINDS: dict[str, dict[str, dict[str, Any] | None]] = {
    "gnmax": {"aggregation": {"aggregator": "gnmax", "sigma": 9}},
    "confident": {"aggregation": {"aggregator": "confident", **CHECK}},
    "interactive": {"aggregation": {"aggregator": "interactive", **CHECK, "refit_every": 10}},
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
    **{
        kind: {
            "method": {"kind": "dpsgd"},
            "dpsgd": {"steps": 50, **more},
            "teachers": None,
            "student": None,
        }
        for kind, more in (
            ("dpsgd", {}),
            ("dpsgd-sample", {"sampling": "sample", "rate": 0.3, "accountant": "rdp"}),
            ("dpsgd-filter", {"individual_filter": 1.5}),
        )
    },
}

SERVER = """
import json, os, signal, sys, threading, time
from pathlib import Path
import jinja2, matplotlib.backends.backend_svg, matplotlib.figure, matplotlib.style
import sklearn.naive_bayes
import collegium.dpsgd.run, collegium.study.runner, collegium.study.streaming
from collegium.cli.main import main
from collegium.study.student_file import skops_io
skops_io()
sys.path.insert(0, BENCHMARKS)
from kills import rank, stage_of

def aimed(folder, aim, countdown, wait, steps):
    draw, drawn = collegium.dpsgd.run.noisy, open(folder + ".drawn", "a", buffering=1)
    def noisy(total, sigma, noise, *, step):
        drawn.write(f"{step}" + chr(10))
        return draw(total, sigma, noise, step=step)
    collegium.dpsgd.run.noisy = noisy
    to_the_disk = os.fsync
    def fsync(descriptor):
        nonlocal countdown
        to_the_disk(descriptor)
        stage = stage_of(Path(folder))
        steps.write(stage + chr(10))
        if not aim or rank(stage) < rank(aim) or countdown < 1:
            return
        if stage == aim:
            countdown -= 1
        elif rank(stage) > rank(aim):
            countdown = 0  # it came to the next stage before: better than not at all
        if not countdown:
            if wait:
                threading.Timer(wait, os.killpg, (0, signal.SIGKILL)).start()
            else:
                os.killpg(0, signal.SIGKILL)
    os.fsync = fsync

os.environ["XDG_STATE_HOME"] = os.devnull  # many ledgers about the same people
for line in sys.stdin:
    aim, *argv = json.loads(line)
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        sys.argv = ["collegium", *argv]
        os.dup2(os.open("child.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        aimed(*aim, open("steps.txt", "w", buffering=1))
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Killer:
    """A command line that is killed at a stage of its study; forked with all that it imports."""

    def __init__(self, folder: Path) -> None:
        self._said, self._steps = folder / "child.txt", folder / "steps.txt"
        server = SERVER.replace("BENCHMARKS", repr(str(Path(__file__).resolve().parent)))
        self._server = subprocess.Popen(
            [sys.executable, "-c", server],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )

    def __enter__(self) -> Killer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()  # closes its standard input, which ends it

    def run(
        self, study: Path, stage: str = "", step: int = 0, wait: float = 0.0
    ) -> tuple[int, str, collections.Counter[str]]:
        """Run a study; kill it so many seconds after it brought something to the disk at a stage.

        Returns: its exit code (negative: the signal), what it printed, and its writes by stage.
        """
        aim = (str(study.with_suffix("")), stage, step, wait)
        code, said = self._ask(aim, "run", study)
        return code, said, collections.Counter(self._steps.read_text().split())

    def _ask(self, aim: tuple[str, str, int, float], *argv: object) -> tuple[int, str]:
        assert self._server.stdin is not None and self._server.stdout is not None
        order = [aim, *map(str, argv)]
        print(json.dumps(order), file=self._server.stdin, flush=True)
        return int(self._server.stdout.readline()), self._said.read_text()


def write_study(folder: Path, kind: str, n_public: int = 120) -> Path:
    """Write tables and the TOML file of a study of this kind."""
    write_tables(folder, n_public)
    return write_settings(folder / "study.toml", KINDS[kind])


def write_tables(folder: Path, n_public: int = 120) -> None:
    """Write private, public and test records of a study into a new folder."""
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


def write_settings(path: Path, *changes: dict[str, dict[str, Any] | None]) -> Path:
    """Write the TOML file of a study about these tables; None leaves a section out."""
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
    for change in changes:
        for section, keys in change.items():
            if keys is None:
                sections.pop(section, None)
            else:
                sections[section] = {**sections.get(section, {}), **keys}
    text = ""
    for section, keys in sections.items():
        text += f"[{section}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items())
    path.write_text(text, "utf-8")
    return path


STAGES = (
    "begun",
    "teaching",
    "votes-cast",
    "drawing",
    "asking",
    "voting-ended",
    "labels",
    "student",
    "report",
    "published",
)
REPEATED = {"drawing": 3, "asking": 2}
AIMS = [stage for stage in STAGES for _ in range(REPEATED.get(stage, 1))]


def rank(stage: str) -> int:
    """Tell which stage comes first; questions are drawn and settled by turns."""
    return STAGES.index("asking" if stage == "drawing" else stage)


def stage_of(folder: Path) -> str:
    """Tell how far a study has come, by what its journal vouches for.

    ``drawing``: a question is reserved, and its outcome is not there. ``asking``: between two questions.
    """
    try:
        journal = (folder / "vault" / "journal.jsonl").read_bytes()
    except FileNotFoundError:
        return "begun"
    if b'"release/report.html"' in journal and (folder / "release/report.html").exists():
        return "published"
    for file, stage in (
        (b"release/effects.json", "report"),
        (b"vault/student.json", "student"),
        (b"release/labels.csv", "labels"),
        (b"vault/aggregation.json", "voting-ended"),
        (b"vault/dpsgd.json", "voting-ended"),
    ):
        if b'"' + file + b'"' in journal:
            return stage
    if b'{"steps"' in journal:
        kept = journal.rfind(b'"vault/dpsgd.npz"') > journal.rfind(b'{"steps"')
        return "asking" if kept else "drawing"
    if b'{"reserve"' in journal:
        settled = journal.rfind(b'{"settle"') > journal.rfind(b'{"reserve"')
        return "asking" if settled else "drawing"
    if b'"vault/votes.npy"' in journal:
        return "votes-cast"
    teachers = folder / "vault" / "teachers"
    return "teaching" if teachers.is_dir() and any(teachers.iterdir()) else "begun"


def known(folder: Path) -> dict[int, Outcome]:
    """Return what the journal says of each query, after every piece of the folder was held against it."""
    study = StudyFolder(folder)
    if not (study.vault / "key").exists():
        return {}
    wrong = [one.piece for one in examine(study) if one.trouble]
    assert not wrong, f"{wrong}: not what the study wrote there"
    if (study.vault / TERMS).exists() and read_terms(folder)[0].method == DPSGD:
        drawn = [int(line) for line in Path(f"{folder}.drawn").read_text().split()]
        assert max(drawn, default=-1) < study.open_journal().steps, "drawn before it was charged"
        return {}
    outcomes = study.open_journal().settled()
    assert len({outcome.query for outcome in outcomes}) == len(outcomes), "a query was asked twice"
    return {outcome.query: outcome for outcome in outcomes}


def check_dpsgd(folder: Path) -> None:
    """Compare every draw of noise with what was charged, and what was said with that."""
    terms, journal = read_terms(folder)
    steps = journal.steps
    drawn = [int(line) for line in Path(f"{folder}.drawn").read_text().split()]
    assert len(set(drawn)) == len(drawn), "a step was taken twice"
    assert steps == terms.n_steps_taken and max(drawn) < steps, (
        "a step was drawn that was not charged"
    )
    statement = json.loads((folder / "release" / "privacy.json").read_text("utf-8"))
    taken = steps - statement["steps_lost"]
    assert taken <= len(drawn), "more steps count as taken than were drawn"
    plan = terms.plan
    for row in statement["groups"]:
        group = plan.groups[row["group"]]
        assert row["epsilon_spent"] <= LEVELS[row["group"]]
        if plan.accountant == "gaussian":
            mu = np.sqrt(min(steps, plan.steps)) * group.clip / plan.noise
            assert float(gdp_epsilon(mu, 1e-5)) * (1 - 1e-9) <= row["epsilon_spent"]


def check_finished(kind: str, folder: Path) -> None:
    """Compare what was published with the journal, and what was said with what was paid."""
    if kind.startswith("dpsgd"):
        check_dpsgd(folder)
        return
    outcomes = known(folder)
    answered = {q: CLASSES[o.label] for q, o in outcomes.items() if o.verdict == "answered"}
    labels = pd.read_csv(folder / "release" / "labels.csv")
    released = dict(zip(labels["row"].tolist(), labels["label"].tolist(), strict=True))
    taken = {q: label for q, label in released.items() if q in answered}
    assert taken == answered, "what is published is not what the journal says"
    if kind == "vanishing":
        return  # prices differ from query to query
    terms, journal = read_terms(folder)
    asked = journal.settled()
    aggregator, ballot = terms.aggregator, terms.electorate.ballot(0)
    statement = json.loads((folder / "release" / "privacy.json").read_text("utf-8"))
    said = {row["group"]: row["epsilon_spent"] for row in statement["groups"]}
    answers = sum(o.verdict in ("answered", "lost") for o in outcomes.values())
    again = terms.replayed(asked).account
    by_label = dict(zip(again.names, again.epsilon_spent().tolist(), strict=True))
    moved = terms.electorate.sensitivity / ballot.scale
    for name, its in zip(terms.electorate.cohort_groups, moved.tolist(), strict=True):
        squared = 2 * answers * (its / aggregator.noise_scale) ** 2
        if aggregator.has_check:
            squared += len(outcomes) * (its / aggregator.check_scale) ** 2
        charged = float(gdp_epsilon(np.sqrt(squared), 1e-5))
        if terms.price == LABELS:
            charged = by_label[name]
        assert charged * (1 - 1e-9) <= said[name] <= LEVELS[name], (name, charged, said[name])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def kill_and_go_on(
    killer: Killer,
    path: Path,
    steps: collections.Counter[str],
    moments: random.Random,
    aims: Sequence[str] = AIMS,
) -> Iterator[str]:
    """Kill a study at one stage after another, until it ends; yield the stage that each kill met.

    ``steps``: how often it brings something to the disk at each stage, where nobody disturbs it.
    """
    folder = path.with_suffix("")
    before: dict[int, Outcome] = {}
    for aim in [*(aim for aim in aims if steps[aim]), ""]:
        if aim and rank(stage_of(folder)) > rank(aim):
            continue
        step = moments.randint(1, 1 + steps[aim] // (1 + REPEATED.get(aim, 1)))
        wait = moments.choice([0.0, 0.0, 0.03 * moments.random() ** 2])
        if aim == "drawing":  # it lasts for less than any wait
            wait = 0.0
        code, said, _ = killer.run(path, aim, step, wait)
        now = known(folder)
        for query, outcome in before.items():
            assert now[query] == outcome or outcome.verdict == "lost", "it changed its mind"
        before = {q: o for q, o in now.items() if o.verdict != "lost"}
        if code != -signal.SIGKILL:
            assert code == 0, said
            return
        yield stage_of(folder)
    raise AssertionError("it was killed without an aim")


def main() -> None:
    """Kill, and count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    arguments = parser.parse_args()
    kills: collections.Counter[tuple[str, str]] = collections.Counter()
    studies = 0
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="kills-"))
        killer = stack.enter_context(Killer(Path(scratch)))
        usual = {}
        for kind in arguments.kinds:
            path = write_study(Path(scratch, f"whole-{kind}"), kind)
            code, said, usual[kind] = killer.run(path)
            assert code == 0, said
            print(f"{kind:12}", *(f"{usual[kind][stage]:4}" for stage in STAGES), flush=True)
        while kills.total() < arguments.kills:
            kind = arguments.kinds[studies % len(arguments.kinds)]
            studies += 1
            path = write_study(Path(scratch, f"study-{studies}"), kind)
            moments = random.Random(f"{arguments.seed} {studies}")
            aims = list(kill_and_go_on(killer, path, usual[kind], moments))
            kills.update((kind, stage) for stage in aims)
            print(f"{kind:12} {' '.join(aims)}", flush=True)
            folder = path.with_suffix("")
            check_finished(kind, folder)
            finished = contents(folder)
            assert killer.run(path)[0] == 0
            again = contents(folder)
            changed = {
                name for name in {*again, *finished} if again.get(name) != finished.get(name)
            }
            assert not changed, f"{kind}: one more run changed {sorted(changed)}, after {aims}"
    print(pd.DataFrame({s: {k: kills[k, s] for k in arguments.kinds} for s in STAGES}).to_string())
    print(f"{kills.total()} kills of {studies} studies: nothing lost, nothing asked twice")


if __name__ == "__main__":
    main()
