"""What only POSIX systems have is needed nowhere to import the package, and a lock is the same everywhere."""

import os
import subprocess
import sys

import pytest

from collegium import durable
from collegium.errors import InputError
from collegium.study.folder import StudyFolder

#: Imports everything; what the package itself imports is what Windows has, and others may have all. Modules
#: that need torch, which takes seconds, are only read.
IMPORT_ALL = """
import builtins, importlib, os, pkgutil, re, sys, types
from pathlib import Path

elsewhere = types.ModuleType("os")
vars(elsewhere).update(vars(os))
elsewhere.name = "nt"
lacking = ("fork", "pwrite", "pread", "statvfs", "posix_fallocate", "geteuid", "O_DIRECTORY")
for name in lacking:
    delattr(elsewhere, name)
absent = ("fcntl", "grp", "posix", "pwd", "resource", "termios", "syslog")
whole = builtins.__import__

def imported(name, globals=None, locals=None, fromlist=(), level=0):
    if ((globals or {}).get("__name__") or "").partition(".")[0] == "collegium" and not level:
        if name in absent or name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"no {name} here", name=name.partition(".")[0])
        if name == "os":
            return elsewhere
    return whole(name, globals, locals, fromlist, level)

builtins.__import__ = imported
import collegium
for found in pkgutil.walk_packages(collegium.__path__, "collegium."):
    if found.name != "collegium.__main__":
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if error.name not in ("torch", "dask", "distributed", "ray", "flwr"):  # extras
                raise
            text = Path(found.module_finder.find_spec(found.name).origin).read_text("utf-8")
            used = [name for name in (*absent, *lacking) if re.search(rf"\\b{name}\\b", text)]
            assert not used, (found.name, used)
print(sum(name.partition(".")[0] == "collegium" for name in sys.modules))
"""


def test_every_module_can_be_imported_without_what_only_posix_has():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150


def test_windows_is_not_asked_to_open_folders(tmp_path, monkeypatch):
    path, real = tmp_path / "file", os.open

    def like_windows(place, *rest, **options):
        if os.path.isdir(place):  # noqa: PTH112 (Path makes no paths of a system that this is not)
            raise PermissionError(13, "Permission denied")
        return real(place, *rest, **options)

    monkeypatch.setattr(os, "open", like_windows)
    with pytest.raises(PermissionError):
        durable.write_durably(path, b"1")
    monkeypatch.setattr(os, "name", "nt")
    try:
        durable.write_durably(path, b"2")
    finally:
        monkeypatch.undo()
    assert path.read_bytes() == b"2"


HOLD = """
import sys
from pathlib import Path
from collegium.study.folder import StudyFolder

with StudyFolder(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_study_is_run_by_one_process_and_a_killed_one_lets_go(tmp_path):
    folder = StudyFolder(tmp_path)
    folder.open()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(InputError, match="another process is running the study"),
            folder.locked(),
        ):
            pass
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
    with folder.locked():
        assert (folder.vault / ".lock").stat().st_mode & 0o077 == 0
        with pytest.raises(InputError, match="another process"), StudyFolder(tmp_path).locked():
            pass
    with folder.locked():
        pass
