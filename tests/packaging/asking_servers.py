"""A PostgreSQL server that asks for passwords."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.ledger.conftest import Server, server

__all__ = ["asking_server", "server"]


@pytest.fixture(scope="module")
def asking_server(server):
    """Lets its administrator in as it is, and the ledger's role with a password alone."""
    folder = Path(tempfile.mkdtemp(prefix="collegium-pg-", dir="/tmp"))  # sockets have short names
    one = Server(server.programs, folder)
    try:
        one.make()
        rules = folder / "data/pg_hba.conf"
        rules.write_text("local all collegium scram-sha-256\n" + rules.read_text("utf-8"), "utf-8")
        one.start()
        yield one
        one.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
