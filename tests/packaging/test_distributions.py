"""Wheel and sdist: complete, without anything private, and the wheel works where nothing else is."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import yaml

import collegium

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION = PROJECT["version"]
LEFT_BEHIND = {
    "examples/dvc/patients.csv", "examples/dvc/patients.ledger", "examples/dvc/patients.ledger.key",
    "examples/dvc/study/vault/journal.jsonl", "examples/hospitals/build/shared/posted",
    "src/collegium/people.ledger", "tests/own.key", ".venv/pyvenv.cfg", "secrets/ledger_password",
}  # fmt: skip
"""What running examples and tests may leave in a working copy."""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A working copy in which examples were run."""
    copy = tmp_path_factory.mktemp("source") / "collegium"
    ignored = shutil.ignore_patterns("__pycache__", ".*_cache", "*.egg-info")
    at_the_top = {".git", ".venv", ".hypothesis", "build", "dist", "runs", "data"}

    def left_out(folder, names):
        return ignored(folder, names) | (at_the_top & set(names) if Path(folder) == ROOT else set())

    shutil.copytree(ROOT, copy, ignore=left_out)
    for name in LEFT_BEHIND:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("private", "utf-8")
    return copy


@pytest.fixture(scope="module")
def built(source, tmp_path_factory):
    """Both, the wheel made of the sdist, by the backend that pyproject.toml names."""
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def in_sdist(built):
    """Names in the sdist, below its own folder."""
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def package_files():
    folder = ROOT / "src/collegium"
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder.parent).as_posix()


def test_the_wheel_has_each_file_of_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    own = f"collegium-{VERSION}.dist-info/"
    assert {name for name in names if not name.startswith(own)} == set(package_files())
    kinds = {Path(name).suffix for name in names}
    assert {".py", ".typed", ".toml", ".po", ".j2"} <= kinds
    assert f"{own}licenses/LICENSE" in names


def test_what_the_wheel_says_of_itself(wheel):
    with zipfile.ZipFile(wheel) as archive:
        said = message_from_bytes(archive.read(f"collegium-{VERSION}.dist-info/METADATA"))
    assert (said["Name"], said["Version"]) == ("collegium", VERSION)
    assert set(said.get_all("Provides-Extra")) == PROJECT["optional-dependencies"].keys()
    assert said["License-Expression"] == PROJECT["license"]
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload().startswith("# Collegium") and "](docs/" not in said.get_payload()


def test_the_sdist_is_the_repository(in_sdist):
    """So that its tests, pages and examples can be made of it."""
    if not (ROOT / ".git").exists():
        pytest.skip("no repository is here to compare with")
    command = ["git", "-c", "core.quotepath=off", "ls-files"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    there = {name for name in tracked.splitlines() if (ROOT / name).exists()}
    assert not there - in_sdist


def test_nothing_private_is_in_the_sdist(in_sdist):
    assert not in_sdist & LEFT_BEHIND
    assert not [
        name for name in in_sdist if re.search(r"\.ledger|/vault/|\.pyc$|^\.(git|venv)/", name)
    ]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel; what it depends on is that of this one."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True, capture_output=True)
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = {
        program: subprocess.run(
            [program, "-c", asked], capture_output=True, text=True, check=True
        ).stdout.strip()
        for program in (sys.executable, str(programs / "python"))
    }
    # Only the folder is added: files in it that lead to this working copy are not read.
    Path(site[str(programs / "python")], "others.pth").write_text(site[sys.executable], "utf-8")
    return programs


def test_the_wheel_works_where_nothing_else_is(installed, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def call(program, *arguments):
        done = subprocess.run(
            [installed / program, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = call("python", "-c", "import collegium; print(collegium.__file__)")
    assert Path(where).is_relative_to(installed.parent), where
    assert call("collegium", "--version").strip() == f"collegium {VERSION}"
    shutil.copy(ROOT / "examples/dvc/study.toml", tmp_path)
    call("python", str(ROOT / "examples/dvc/make_tables.py"), str(tmp_path))
    call("collegium", "run", "study.toml", "--quiet")
    assert "<svg" in (tmp_path / "study/release/report.html").read_text("utf-8")
    call("collegium", "predict", "study/release", "new.csv", "--out", "predictions.csv")
    call("collegium", "policy", "explain", "study.toml", "--language", "pl", "--html", "zgoda.html")
    assert 'lang="pl"' in (tmp_path / "zgoda.html").read_text("utf-8")
    call("python", "-c", "import collegium.desk.application, collegium.ledger.ledger")


def test_one_version_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    composed = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    changes = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert {
        VERSION,
        collegium.__version__,
        cited["version"],
        composed["services"]["desk"]["image"].partition(":")[2],
        changes[1],
    } == {VERSION}
