"""Two Ctrl-C within milliseconds end a command like one: one line, 130, and nothing is torn."""

import os
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.malformed import Malformed

# Says when the study has come to a stage, and lingers there.
LINGERING = """
import sys, time
from collegium.cli import progress
from collegium.cli.main import main
stage = sys.argv.pop()
def lingers(self, name, total=None):
    if name == stage:
        print("there", flush=True)
        time.sleep(0.05)
progress.NoteObserver.stage = lingers
main()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Malformed(tmp_path_factory.mktemp("interrupted"), 0)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("stage", "delay", "group", "n_jobs"),
    [
        ("teachers", 0.01, False, 2),
        ("teachers", 0.01, True, 2),
        ("labels", 0.0, False, 1),
        ("report", 0.02, True, 2),
    ],
)
def test_two_within_milliseconds(made, collegium, stage, delay, group, n_jobs):
    """A worker that is just starting hears Ctrl-C for itself, and may still say so (joblib's loky)."""
    folder = made._copy(made._study)
    toml = folder / "study.toml"
    toml.write_text(toml.read_text("utf-8").replace("n_jobs = 1", f"n_jobs = {n_jobs}"), "utf-8")
    out = str(folder / "new")
    process = subprocess.Popen(
        [sys.executable, "-c", LINGERING, "run", str(toml), "--out", out, stage],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert process.stdout.readline() == "there\n"
    time.sleep(delay)
    for _ in range(2):
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        time.sleep(0.002)
    _, errors = process.communicate(timeout=1200)
    lines = [line for line in errors.splitlines() if not line.startswith(("warning: ", "Note: "))]
    assert process.returncode == 130, errors
    assert sum(line.startswith("interrupted: ") for line in lines) == 1, errors
    assert group or len(lines) == 1, errors
    toml.write_text(toml.read_text("utf-8").replace("n_jobs = 2", "n_jobs = 1"), "utf-8")
    code, _, errors = collegium("run", str(toml), "--out", out)
    assert code == 0, errors
