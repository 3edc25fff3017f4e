"""Small networks are fastest on one core, and tests share theirs."""

import pytest


@pytest.fixture(autouse=True)
def one_core():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
