"""Files of parties are brought between folders once, whole, and nowhere else; Flower carries them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from collegium import Collective, IdentityKey, Party, Schema, Statistics
from collegium.errors import InputError
from collegium.parties import synchronising
from collegium.parties.synchronising import lacking, names_in, taken
from collegium.parties.waiting import Patience

ROOT = Path(__file__).parents[2]
SCHEMA = Schema({"age": {"kind": "whole", "bounds": [0, 99]}})


def test_only_files_of_parties_are_brought_once(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    (here / "ages/000000-sums-1").mkdir(parents=True)
    (here / "ages/keys-p01.json").write_bytes(b"keys")
    (here / "ages/000000-sums-1/masked-p01.json").write_bytes(b"masked")
    (here / "notes.txt").write_text("private")
    (here / "Patients.json").write_text("private")
    (here / "secret.json").symlink_to(here / "notes.txt")
    files = lacking(here, names_in(there))
    assert sorted(files) == ["ages/000000-sums-1/masked-p01.json", "ages/keys-p01.json"]
    assert taken(there, files) == 2 and taken(there, files) == 0
    assert lacking(here, names_in(there)) == {}
    assert (there / "ages/keys-p01.json").read_bytes() == b"keys"


@pytest.mark.parametrize(
    "name", ["../a.json", "/etc/a.json", "a/../../b.json", "a/b/c/d.json", "a.txt", "A.json", ""]
)
def test_a_name_that_leaves_the_folder_is_refused_with_all_that_came_with_it(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match="cannot be the name of a file of parties"):
        taken(tmp_path / "in", {"keys-p01.json": b"1", name: b"2"})
    assert not list(tmp_path.rglob("*"))


def test_no_file_is_replaced(tmp_path: Path) -> None:
    taken(tmp_path, {"keys-p01.json": b"first"})
    with pytest.raises(InputError, match="no file is replaced"):
        taken(tmp_path, {"keys-p02.json": b"2", "keys-p01.json": b"second"})
    assert (tmp_path / "keys-p01.json").read_bytes() == b"first"
    assert names_in(tmp_path) == ["keys-p01.json"]


def test_many_files_come_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synchronising, "MOST_BYTES", 10)
    here, there = tmp_path / "here", tmp_path / "there"
    taken(here, {f"a-{one}.json": bytes(4) for one in range(5)} | {"b.json": bytes(50)})
    there.mkdir()
    portions = []
    while files := lacking(here, names_in(there)):
        portions.append(len(files))
        taken(there, files)
    assert portions == [2, 2, 1, 1]  # the one that is larger than all comes alone


def hospitals(folders: list[Path], own: Path) -> list[float]:
    """Three of them, each with a folder of its own for the shared one."""
    keys = [IdentityKey.fresh() for _ in range(3)]
    members = [key.member(f"Hospital {name}") for key, name in zip(keys, "ABC", strict=True)]
    collective = Collective(members)

    def hospital(number: int) -> float:
        patience = Patience(poll_s=0.05, give_up_s=500.0)
        party = Party(collective, keys[number], folders[number], own / str(number), patience)
        people = pd.DataFrame({"age": [20 + 10 * number, 40 + 10 * number] * 500})
        with Statistics(people, 1.0, schema=SCHEMA, parties=party) as ask:
            return ask.mean("age").value

    with ThreadPoolExecutor(3) as threads:
        return list(threads.map(hospital, range(3)))


def folders_in(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    return folders


def test_parties_whose_folders_are_brought_together_get_the_same(tmp_path: Path) -> None:
    folders, ended = folders_in(tmp_path), threading.Event()

    def relay() -> None:
        while not ended.is_set():
            for here in folders:
                for there in folders:
                    taken(there, lacking(here, names_in(there)))
            time.sleep(0.01)

    relaying = threading.Thread(target=relay)
    relaying.start()
    try:
        means = hospitals(folders, tmp_path)
    finally:
        ended.set()
        relaying.join()
    assert means[0] == means[1] == means[2]
    assert abs(means[0] - 40) < 2  # noise of about .1


def _binaries() -> Path | None:
    """Where Flower is: beside this Python, or where COLLEGIUM_FLOWER says (an environment of its own)."""
    place = os.environ.get("COLLEGIUM_FLOWER")
    found = Path(place) if place else Path(sys.executable).parent
    return found if (found / "flower-superlink").exists() else None


@pytest.mark.skipif(_binaries() is None, reason="the extra flower is not installed")
def test_flower_carries_the_files(tmp_path: Path) -> None:
    """A SuperLink and three SuperNodes on this machine; a mean takes two minutes, nearly all of it theirs."""
    binaries = _binaries()
    assert binaries is not None
    folders = folders_in(tmp_path)
    home, app = tmp_path / "home", tmp_path / "app"
    (home / ".flwr").mkdir(parents=True)
    shutil.copytree(ROOT / "examples/flower", app)
    text = (app / "pyproject.toml").read_text()
    (app / "pyproject.toml").write_text(re.sub("seconds = .*", "seconds = 600", text))
    link, *nodes = [_free_port() for _ in range(4)]
    (home / ".flwr/config.toml").write_text(
        f'[superlink]\ndefault = "local"\n[superlink.local]\naddress = "127.0.0.1:{link}"\ninsecure = true\n'
    )
    told = {
        **os.environ,
        "HOME": str(home),
        "FLWR_HOME": str(home / ".flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> None:
        program = [str(binaries / command[0]), *command[1:]]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(program, env=told, start_new_session=True, **quiet))

    try:
        start("flower-superlink", "--insecure", "--disable-runtime-dependency-installation",
              "--port", str(link))  # fmt: skip
        _await_port(link)
        for folder, port in zip(folders, nodes, strict=True):
            start("flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{link}",
                  "--port", str(port), "--node-config", f'folder="{folder}"')  # fmt: skip
            _await_port(port)
        run = [str(binaries / "flwr"), "run", str(app), "local"]
        subprocess.run(run, env=told, check=True, capture_output=True)
        means = hospitals(folders, tmp_path)
    finally:
        for one in started:
            os.killpg(one.pid, 9)
            one.wait()
    assert means[0] == means[1] == means[2]
    assert abs(means[0] - 40) < 2


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _await_port(port: int) -> None:
    for _ in range(600):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nobody listens at {port}")
