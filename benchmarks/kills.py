"""Kill real runs of studies again and again, at every stage, and see that nothing is lost or asked twice.

    python benchmarks/kills.py --kills 300

A study that nobody disturbs tells how often it brings something to the disk, or draws noise, at each of its
stages. The others are killed (SIGKILL, the whole process group) at one of these moments, or some milliseconds
after it, stage after stage, each kind of study by turns: votes, DP-SGD, questions about a table, label jobs,
each with and without a ledger. Every draw of noise is written down as it happens, outside the study.

After every kill: what was known before is known still; no noise was drawn twice, and none before it was
charged in the journal; a ledger has reserved at least what was charged. At the end: what is published is what
was drawn, the statement says what the journal's prices add up to, and no more than was granted; what the
ledger has settled is what the statement says, for everybody; and one more run changes nothing. The exit code
is 1 if anything of this was violated.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from collegium.errors import CollegiumError
from kill_checks import check_draws, check_finished, check_ledger, remembered
from kill_studies import KINDS, write_study

#: What a study imports once it runs, and what a command line is made of: a fork of it starts at once.
WARM = """
import jinja2, matplotlib.backends.backend_svg, matplotlib.figure, matplotlib.style
import pandas.io.formats.csvs, sklearn.naive_bayes
import collegium.attacks.one_run, collegium.cli.blocks, collegium.cli.label, collegium.cli.progress
import collegium.distillation.gaussian_process, collegium.dpsgd.run, collegium.planner.rehearsal
import collegium.statistics.session, collegium.study.methods.votes.method, collegium.study.methods.votes.page
import collegium.study.pages, collegium.study.registry, collegium.study.runner, collegium.study.streaming
from collegium.cli.main import _built, app, main
from collegium.study.student_file import skops_io
skops_io()
_built(app)
"""
SERVER = (
    WARM
    + """
import json, os, signal, sys, threading, time
from pathlib import Path
from collegium.noise.sums import LocalSum
sys.path.insert(0, BENCHMARKS)
from kills import rank, stage_of

def aimed(folder, aim, countdown, wait, steps):
    to_the_disk = os.fsync
    drawn = os.open(folder + ".drawn", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def reached():
        nonlocal countdown
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

    def fsync(descriptor):
        to_the_disk(descriptor)
        reached()

    def noted(draw):
        def noted_draw(noise, *given, query, purpose):
            os.write(drawn, f"{query} {purpose}{chr(10)}".encode())
            reached()
            return draw(noise, *given, query=query, purpose=purpose)
        return noted_draw

    LocalSum.noised, LocalSum.words = noted(LocalSum.noised), noted(LocalSum.words)
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
)


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
        """Run a study; kill it so many seconds after it reached a moment of a stage.

        ``study``: a TOML file, or a JSON file with the arguments of another command.
        Returns: its exit code (negative: the signal), what it printed, and its moments by stage.
        """
        aim = (str(study.with_suffix("")), stage, step, wait)
        is_study = study.suffix == ".toml"
        argv = ["run", str(study)] if is_study else json.loads(study.read_text("utf-8"))
        code, said = self._ask(aim, argv)
        return code, said, collections.Counter(self._steps.read_text().split())

    def _ask(self, aim: tuple[str, str, int, float], argv: list[str]) -> tuple[int, str]:
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps([aim, *argv]), file=self._server.stdin, flush=True)
        return int(self._server.stdout.readline()), self._said.read_text()


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
        (b"release/answers.json", "labels"),
        (b"vault/aggregation.json", "voting-ended"),
        (b"vault/dpsgd.json", "voting-ended"),
        (b"vault/asked.json", "voting-ended"),
    ):
        if b'"' + file + b'"' in journal:
            return stage
    if b'{"steps"' in journal:
        kept = max(journal.rfind(b'"vault/dpsgd.npz"'), journal.rfind(b'"vault/answers.json"'))
        return "asking" if kept > journal.rfind(b'{"steps"') else "drawing"
    if b'{"reserve"' in journal:
        settled = journal.rfind(b'{"settle"') > journal.rfind(b'{"reserve"')
        return "asking" if settled else "drawing"
    if b'"vault/votes.npy"' in journal:
        return "votes-cast"
    teachers = folder / "vault" / "teachers"
    return "teaching" if teachers.is_dir() and any(teachers.iterdir()) else "begun"


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

    ``steps``: how many moments it has at each stage, where nobody disturbs it.
    Raises AssertionError where anything does not hold after a kill: after that kill was yielded.
    """
    folder = path.with_suffix("")
    before: dict[str, Any] = {}
    for aim in [*(aim for aim in aims if steps[aim]), ""]:
        if aim and rank(stage_of(folder)) > rank(aim):
            continue
        step = moments.randint(1, 1 + steps[aim] // (1 + REPEATED.get(aim, 1)))
        wait = moments.choice([0.0, 0.0, 0.03 * moments.random() ** 2])
        if aim == "drawing":  # it lasts for less than any wait
            wait = 0.0
        code, said, _ = killer.run(path, aim, step, wait)
        if code == -signal.SIGKILL:
            yield stage_of(folder)
        else:
            assert code == 0, said
        now = remembered(folder)
        changed = [one for one in before if now.get(one) != before[one]]
        assert not changed, f"lost or changed: {changed[:3]}"
        before = now
        check_draws(folder)
        check_ledger(folder)
        if code != -signal.SIGKILL:
            return
    raise AssertionError("it was killed without an aim")


def changed_by_one_more_run(killer: Killer, path: Path) -> None:
    """Refuse that a study that has ended is changed by a further run."""
    folder = path.with_suffix("")
    finished = contents(folder.parent)
    code, said, _ = killer.run(path)
    assert code == 0, said
    again = contents(folder.parent)
    changed = sorted(name for name in {*again, *finished} if again.get(name) != finished.get(name))
    assert not changed, f"one more run changed {changed}"


def main() -> None:
    """Kill, and count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    arguments = parser.parse_args()
    kinds, began = arguments.kinds, time.monotonic()
    kills: collections.Counter[tuple[str, str]] = collections.Counter()
    finished: collections.Counter[str] = collections.Counter()
    violations: collections.Counter[str] = collections.Counter()
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="kills-"))
        killer = stack.enter_context(Killer(Path(scratch)))
        usual = {}
        for kind in kinds:
            path = write_study(Path(scratch, f"whole-{kind}"), kind)
            code, said, usual[kind] = killer.run(path)
            assert code == 0, said
            print(f"{kind:18}", *(f"{usual[kind][stage]:4}" for stage in STAGES), flush=True)
        studies = 0
        while kills.total() < arguments.kills:
            kind = kinds[studies % len(kinds)]
            studies += 1
            path = write_study(Path(scratch, f"study-{studies}"), kind)
            moments = random.Random(f"{arguments.seed} {studies}")
            met = []
            try:
                for stage in kill_and_go_on(killer, path, usual[kind], moments):
                    met.append(stage)
                    kills[kind, stage] += 1
                finished[kind] += 1
                check_finished(kind, path.with_suffix(""))
                changed_by_one_more_run(killer, path)
                print(f"{kind:18} {' '.join(met)}", flush=True)
            except (AssertionError, CollegiumError) as error:
                violations[kind] += 1
                print(f"VIOLATED  {kind}, kill {kills.total()}, after {met}: {error}", flush=True)
    table = pd.DataFrame({stage: {kind: kills[kind, stage] for kind in kinds} for stage in STAGES})
    table["kills"] = table.sum(axis=1)
    table["finished"] = [finished[kind] for kind in kinds]
    table["violations"] = [violations[kind] for kind in kinds]
    print(table.to_string())
    print(
        f"{kills.total()} kills of {studies} studies of {len(kinds)} kinds, {finished.total()} finished, "
        f"{violations.total()} violations ({time.monotonic() - began:.0f} s)"
    )
    raise SystemExit(violations.total() > 0)


if __name__ == "__main__":
    main()
