"""Two Ctrl-C within milliseconds end a command like one: one line, 130, and what is there is used again."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from benchmarks.kills import WARM
from collegium.errors import InputError
from tests.study.test_study_run import Story, run, settled, times, write_study

# Runs one command after the other, each in a process forked with all that it imports. A command says its
# process's number when its study has come so far, and lingers there for Ctrl-C; then comes how it ended.
SERVER = (
    WARM
    + """
import os, sys, time
from pathlib import Path
from collegium.cli import progress
from collegium.cli.main import script
for line in sys.stdin:
    stage, study = line.split()
    child = os.fork()
    if not child:
        os.setsid()
        os.dup2(os.open("errors.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        vault = Path(study).with_suffix("") / "vault"
        has_come_so_far = {
            "teachers": lambda: len([*vault.glob("teachers/0*.joblib")]) > 2,
            "labels": lambda: b'{"settle"' in (vault / "journal.jsonl").read_bytes(),
            "report": lambda: True,
        }[stage]
        lingered, progress._SILENT_S = [], float("inf")
        def lingering(way):
            def told(self, *given):
                way(self, *given)
                if self._name == stage and has_come_so_far() and not lingered:
                    lingered.append(stage)
                    print("lingers", os.getpid(), flush=True)
                    while not Path(study).with_name("go").exists():
                        time.sleep(0.005)
            return told
        for way in ("stage", "advanced"):
            setattr(progress.LineObserver, way, lingering(getattr(progress.LineObserver, way)))
        sys.argv = ["collegium", "run", study]
        script()
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        text=True,
        # A shell that runs the suite in the background makes its children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        yield process, folder / "errors.txt"
        process.stdin.close()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("stage", "delay", "group", "n_jobs"),
    [("teachers", 0.01, True, 2), ("labels", 0.0, False, 1), ("report", 0.02, True, 1)],
)
def test_two_within_milliseconds(tmp_path, server, stage, delay, group, n_jobs):
    """While teachers learn in other processes, between two blocks of questions, and at the end.

    A worker that is just starting hears Ctrl-C for itself, and may still say so (joblib's loky).
    """
    sections = {
        "privacy": {"levels": {"high": 400.0, "average": 800.0, "low": 1200.0}},
        "teachers": {"n_teachers": 40},
        "aggregation": {"sigma": 12},
    }
    path = write_study(tmp_path, **sections, run={"n_jobs": n_jobs})
    study, (process, heard) = tmp_path / "study", server
    print(stage, path, file=process.stdin, flush=True)
    said, number = process.stdout.readline().split()
    assert said == "lingers", heard.read_text("utf-8")
    interrupt = partial(os.killpg if group else os.kill, int(number), signal.SIGINT)
    if stage == "labels":
        with pytest.raises(InputError, match="another process is running the study"):
            run(path)
    time.sleep(delay)
    interrupt()
    time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):  # on a busy machine it may have ended meanwhile
        interrupt()
    (tmp_path / "go").touch()  # between two blocks of questions, Ctrl-C waits for what is under way
    said, code = process.stdout.readline().split()
    errors = heard.read_text("utf-8")
    lines = [line for line in errors.splitlines() if not line.startswith(("warning: ", "Note: "))]
    assert (said, code) == ("ended", "130"), errors
    told = [
        line for line in lines if line.startswith("interrupted: nothing that was paid for is lost")
    ]
    assert len(told) == 1, errors
    assert n_jobs > 1 or len(lines) == 1, errors
    taught, asked = times(study), settled(study)
    assert all(outcome.verdict != "lost" for outcome in asked)
    assert (stage == "teachers") == (not asked)
    assert (stage == "report") == (study / "vault" / "aggregation.json").exists()
    if stage == "labels":
        assert 0 < len(asked) < 80
    story = Story()
    run(write_study(tmp_path, **sections), story)
    again = times(study)
    assert len(taught) > 2 and {name: again[name] for name in taught} == taught
    assert len(again) - len(taught) == dict(story.stages).get("teachers", 0)
    assert settled(study)[: len(asked)] == asked
