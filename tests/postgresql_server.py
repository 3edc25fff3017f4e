"""A real PostgreSQL server to test with: databases, roles, its log, and its sudden end.

The root's conftest has the fixture ``server``, one for each process of the suite.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

ADMINISTRATOR = "steward"
_ASKED = "asked_for_a_password"
_PREFIX = "%d|%u|"  # of each line of the log: database and role


@dataclass
class Server:
    """A PostgreSQL server of the test's own, reached by a socket in its own folder."""

    programs: Path
    folder: Path
    n_databases: int = 0
    n_roles: int = 0

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.geteuid() == 0:  # the server refuses to be root
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def make(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self._run(
            "initdb", "-D", f"{self.folder}/data", "-U", ADMINISTRATOR, "--auth=trust", "--no-sync"
        )
        self.prepend_rule(f"local all +{_ASKED} scram-sha-256")

    def prepend_rule(self, rule: str) -> None:
        """Say who is let in how, before all that is said already; read at the next start."""
        rules = self.folder / "data/pg_hba.conf"
        rules.write_text(f"{rule}\n{rules.read_text('utf-8')}", "utf-8")

    def start(self) -> None:
        options = (
            f"-k {self.folder} -c listen_addresses='' -c fsync=off -c log_line_prefix='{_PREFIX}'"
        )
        data, log = f"{self.folder}/data", f"{self.folder}/log"
        self._run("pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "-t", "600", "start")

    def stop(self) -> None:
        """End it at once, as a kill does: nobody's transaction is ended in order."""
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "-t", "600", "stop")

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Be ended at once; start again afterwards, with all that was committed."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def new_database(self) -> str:
        self.n_databases += 1
        name = f"people_{self.n_databases}"
        self._run("createdb", "-h", str(self.folder), "-U", ADMINISTRATOR, name)
        return self.url(name)

    def url(self, database: str, role: str = ADMINISTRATOR) -> str:
        return f"postgresql://{role}@/{database}?host={self.folder}"

    def run(
        self, url: str, statement: Any, parameters: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        """Run one statement as whoever the URL names, and return its rows."""
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def new_role(self, url: str, *rights: str, password: str | None = None) -> str:
        """Make a role for a database, and return the URL by which it comes in.

        ``rights``: what it may do, as in ``"SELECT ON visits"``.
        ``password``: that it is asked for; None: it is let in as it is.
        """
        self.n_roles += 1
        name = sql.Identifier(role := f"reader_{self.n_roles}")
        self.run(url, sql.SQL("CREATE ROLE {} LOGIN").format(name))
        for right in rights:
            self.run(url, sql.SQL("GRANT {} TO {}").format(sql.SQL(right), name))
        if password is not None:
            if not self.run(url, "SELECT 1 FROM pg_roles WHERE rolname = %s", [_ASKED]):
                self.run(url, f"CREATE ROLE {_ASKED}")
            said = sql.Literal(password)
            self.run(url, sql.SQL("ALTER ROLE {} PASSWORD {}").format(name, said))
            self.run(url, sql.SQL("GRANT {} TO {}").format(sql.SQL(_ASKED), name))
        return self.url(make_url(url).database or "", role)

    def log_statements(self, url: str) -> None:
        """Have every statement on a database in the log, from the next connection on."""
        name = sql.Identifier(make_url(url).database or "")
        self.run(url, sql.SQL("ALTER DATABASE {} SET log_statement = 'all'").format(name))

    def logged(self, url: str) -> str:
        """Read what the log says of a database: statements, their parameters, errors."""
        text = (self.folder / "log").read_text("utf-8", errors="replace")
        entries = re.split(r"\n(?!\t)", text)  # the later lines of an entry are indented
        prefix = f"{make_url(url).database}|"
        return "\n".join(entry for entry in entries if entry.startswith(prefix))

    def end_connections(self, url: str) -> int:
        """End all connections to a database, as a network or an administrator does; how many there were."""
        ended = self.run(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        return len(ended)


def server_programs() -> Path | None:
    """Find the folder of the server's programs; None: there is no server."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = found[-1] if found else shutil.which("initdb")
    return None if program is None else Path(program).parent


@contextlib.contextmanager
def running(kind: type[Server] = Server, rule: str | None = None) -> Iterator[Server]:
    """Have a server that is gone afterwards; the test is skipped where none is installed.

    ``rule``: who is let in how, as a line of ``pg_hba.conf``; otherwise everybody is.
    """
    programs = server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (Debian: postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="collegium-pg-", dir="/tmp"))  # sockets have short names
    one = kind(programs, folder)
    try:
        one.make()
        if rule is not None:
            one.prepend_rule(rule)
        one.start()
        yield one
        one.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running() as one:
        yield one
