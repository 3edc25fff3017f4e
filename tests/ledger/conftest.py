"""Ledgers to test with: in a file, and on a real PostgreSQL server."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collegium import Budget, Budgets, Ledger
from collegium.accounting import Neighbours
from collegium.ledger import Cost, Reservation


def people(levels: dict[str, str], policy: dict[str, float] | None = None) -> Budgets:
    """Owner's name -> level."""
    epsilons = {"high": 1.0, "low": 3.0} if policy is None else policy
    groups = {name: Budget(epsilon) for name, epsilon in epsilons.items()}
    codes = [list(groups).index(level) for level in levels.values()]
    return Budgets(groups, codes, list(levels))


def ask(
    ledger: Ledger,
    id: str,
    budgets: Budgets,
    costs: Sequence[Cost],
    parts: Sequence[int] | None = None,
    **options: Any,
) -> Reservation:
    """Reserve; without parts, costs are those of the levels, in order."""
    options = {"neighbours": Neighbours.ANY_CHANGE, **options}
    if parts is not None:
        return ledger.reserve(id, "study", budgets, costs, parts, **options)
    named = dict(zip(budgets.group_names, costs, strict=True))
    return ledger.reserve(id, "study", budgets, named, **options)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "people.ledger")


@dataclass
class Server:
    """A PostgreSQL server of the test's own, reached by a socket in its own folder."""

    programs: Path
    folder: Path
    n_databases: int = 0

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.geteuid() == 0:  # the server refuses to be root
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def make(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self._run(
            "initdb", "-D", f"{self.folder}/data", "-U", "steward", "--auth=trust", "--no-sync"
        )

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        data, log = f"{self.folder}/data", f"{self.folder}/log"
        self._run("pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "-t", "600", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "-t", "600", "stop")

    def new_database(self) -> str:
        self.n_databases += 1
        name = f"people_{self.n_databases}"
        self._run("createdb", "-h", str(self.folder), "-U", "steward", name)
        return f"postgresql://steward@/{name}?host={self.folder}"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = found[-1] if found else shutil.which("initdb")
    if program is None:
        pytest.skip("no PostgreSQL server is installed (Debian: postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="collegium-pg-", dir="/tmp"))  # sockets have short names
    one = Server(Path(program).parent, folder)
    try:
        one.make()
        one.start()
        yield one
        one.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["file", "server"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """Where a new ledger may be made, and its key."""
    key = tmp_path / "people.key"
    if request.param == "file":
        return str(tmp_path / "people.ledger"), key
    return request.getfixturevalue("server").new_database(), key
