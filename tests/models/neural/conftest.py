"""Small networks are fastest on one core, and tests share theirs; none has heard of a network before."""

import pytest


@pytest.fixture(autouse=True)
def nothing_told():
    pytest.importorskip("torch")
    from collegium.models.neural.blueprint import _tell_once

    _tell_once.cache_clear()


@pytest.fixture(autouse=True)
def one_core():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
