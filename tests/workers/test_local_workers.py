"""What a process leaves behind that is killed: no worker, and nothing of its records in memory."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collegium.scratch import scratch_folder
from collegium.workers import ray_cluster

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes of POSIX")

PARENT = """
import time, numpy as np, sys
from collegium.workers.engines import Engine
from joblib import delayed
from pathlib import Path
def slow(folder, number, records):
    import os, time
    Path(folder, f"worker-{os.getpid()}").touch()
    time.sleep(600)
with Engine("local", workers=2).running() as workers:
    records = np.zeros(1_000_000)
    for _ in workers.results(delayed(slow)(sys.argv[1], n, records) for n in range(2)):
        pass
"""
PATIENCE_S = 1200  # only to stop a hang


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def runs(number):
    try:
        return (
            "Z" not in Path(f"/proc/{number}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        )
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked up in /proc")
def test_workers_and_shared_records_go_with_a_killed_process(tmp_path):
    shared, told = tmp_path / "shared", tmp_path / "told"
    shared.mkdir()
    told.mkdir()
    environment = {**os.environ, "JOBLIB_TEMP_FOLDER": str(shared)}
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(told)],
        env=environment,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until(lambda: len(list(told.iterdir())) == 2 and list(shared.rglob("*.pkl")))
    workers = [int(path.name.removeprefix("worker-")) for path in told.iterdir()]
    (scratch,) = shared.iterdir()
    assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
    assert all(map(runs, workers))
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not any(map(runs, workers)))
    until(lambda: not list(shared.rglob("*.pkl")))


def test_what_a_killed_process_left_is_cleared_up_and_nothing_else(tmp_path):
    code = (
        "import sys, os, time; from pathlib import Path; from collegium.scratch import scratch_folder\n"
        "(scratch_folder(Path(sys.argv[1])) / 'record').touch()\n"
        "print('there', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "there\n"
        (theirs,) = tmp_path.iterdir()
        foreign = tmp_path / "collegium-of-somebody"
        foreign.mkdir()
        mine = scratch_folder(tmp_path)
        assert mine == scratch_folder(tmp_path) and stat.S_IMODE(mine.stat().st_mode) == 0o700
        assert theirs.exists()  # whoever made it lives
        other.kill()
    scratch_folder.__globals__["_made"].cache_clear()
    again = scratch_folder(tmp_path)
    assert not theirs.exists() and mine.exists() and again.exists() and foreign.exists()


def test_a_process_that_ends_well_leaves_nothing(tmp_path):
    code = (
        "import sys; from pathlib import Path; from collegium.scratch import scratch_folder\n"
        "scratch_folder(Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert not list(tmp_path.iterdir())


def test_rays_folder_is_closed_to_others_and_short(monkeypatch):
    before = os.umask(0)
    try:
        for base in (None, "/tmp/" + "x" * 60):
            if base is not None:
                monkeypatch.setattr(ray_cluster.tempfile, "gettempdir", lambda: base)  # noqa: B023
            inside = ray_cluster._scratch()
            inside.chmod(0o777)  # as Ray does
            assert stat.S_IMODE(inside.parent.stat().st_mode) == 0o700
            session = "session_2026-11-22_05-03-07_123456_1234567/sockets/plasma_store"
            assert len(str(inside / session)) < 104
            inside.rmdir()
    finally:
        os.umask(before)
