"""A PostgreSQL server that asks for passwords."""

import pytest

from tests.postgresql_server import running


@pytest.fixture(scope="module")
def asking_server():
    """Lets its administrator in as it is, and the ledger's role with a password alone."""
    with running(rule="local all collegium scram-sha-256") as one:
        yield one
