"""The study of examples/dvc, run as its stages say, by the command line as other programs call it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = Path(sys.executable).parent


@dataclass(frozen=True)
class Workspace:
    """A copy of examples/dvc, with its tables."""

    folder: Path
    stages: dict[str, dict[str, object]]

    @property
    def environment(self) -> dict[str, str]:
        """What programs see: a ledger beside the records, as users have it, and nobody else's."""
        inherited = {
            name: value for name, value in os.environ.items() if name != "COLLEGIUM_LEDGER"
        }
        return {
            **inherited,
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "XDG_STATE_HOME": str(self.folder / "state"),
        }

    def call(self, command: str | list[str]) -> "subprocess.CompletedProcess[str]":
        """Run a line of shell, or a program."""
        return subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def stage(self, name: str) -> "subprocess.CompletedProcess[str]":
        """Run what DVC would."""
        return self.call(str(self.stages[name]["cmd"]))

    def booked(self) -> str:
        """All that the ledger says."""
        done = self.call(["collegium", "ledger", "export", "patients.ledger"])
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def new_workspace(tmp_path_factory) -> Callable[[], Workspace]:
    """Make a fresh copy each time it is called."""

    def make() -> Workspace:
        folder = tmp_path_factory.mktemp("example") / "dvc"
        shutil.copytree(
            EXAMPLES / "dvc",
            folder,
            ignore=shutil.ignore_patterns("study", "*.csv", "*.ledger*", ".dvc", "*.lock"),
        )
        stages = yaml.safe_load((folder / "dvc.yaml").read_text("utf-8"))["stages"]
        made = Workspace(folder, stages)
        done = made.call([sys.executable, "make_tables.py"])
        assert done.returncode == 0, done.stderr
        return made

    return make


@pytest.fixture(scope="session")
def finished(new_workspace) -> Workspace:
    """All stages were run; what tests change, they change in a copy."""
    made = new_workspace()
    for name in made.stages:
        done = made.stage(name)
        assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def changeable(finished, tmp_path) -> Workspace:
    """A copy of the finished study, with its ledger."""
    folder = tmp_path / "dvc"
    shutil.copytree(finished.folder, folder)
    return Workspace(folder, finished.stages)
