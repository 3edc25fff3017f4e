"""Two Ctrl-C within milliseconds end a command like one: one line, 130, and nothing is torn."""

import os
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.malformed import Malformed

# Runs one command after the other, each in a process forked with all that it imports. A command says its
# process's number when the study has come to a stage, and lingers there for Ctrl-C; then comes how it ended.
SERVER = """
import os, sys, time
import joblib, matplotlib.backends.backend_svg, matplotlib.figure, matplotlib.style, sklearn.naive_bayes
import collegium.study.runner
from collegium.cli import progress
from collegium.cli.main import main
from collegium.study.student_file import skops_io
skops_io()
for line in sys.stdin:
    said, *argv = line.split()
    child = os.fork()
    if not child:
        os.setsid()
        os.dup2(os.open("errors.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        def lingers(self, name, total=None):
            if name == said:
                print(os.getpid(), flush=True)
                time.sleep(600)
        progress.LineObserver.stage = lingers
        sys.argv = ["collegium", *argv]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


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
def test_two_within_milliseconds(made, server, collegium, stage, delay, group, n_jobs):
    """A worker that is just starting hears Ctrl-C for itself, and may still say so (joblib's loky)."""
    folder = made._copy(made._study)
    toml = folder / "study.toml"
    toml.write_text(toml.read_text("utf-8").replace("n_jobs = 1", f"n_jobs = {n_jobs}"), "utf-8")
    out = str(folder / "new")
    process, heard = server
    process.stdin.write(f"{stage} run {toml} --out {out}\n")
    process.stdin.flush()
    number = int(process.stdout.readline())
    time.sleep(delay)
    for _ in range(2):
        (os.killpg if group else os.kill)(number, signal.SIGINT)
        time.sleep(0.002)
    code, errors = int(process.stdout.readline()), heard.read_text("utf-8")
    lines = [line for line in errors.splitlines() if not line.startswith(("warning: ", "Note: "))]
    assert code == 130, errors
    assert sum(line.startswith("interrupted: ") for line in lines) == 1, errors
    assert group or len(lines) == 1, errors
    toml.write_text(toml.read_text("utf-8").replace("n_jobs = 2", "n_jobs = 1"), "utf-8")
    code, _, errors = collegium("run", str(toml), "--out", out)
    assert code == 0, errors
