"""Votes do not depend on a GPU's memory: less at once when it runs out, and one line that says so."""

import logging

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from collegium.errors import ModelError  # noqa: E402
from collegium.models.neural import predicting as module  # noqa: E402
from collegium.models.neural.blueprint import Blueprint, draw_up  # noqa: E402
from collegium.models.neural.machine import Machine  # noqa: E402
from collegium.models.neural.networks import mlp  # noqa: E402
from collegium.models.neural.predicting import ask_networks  # noqa: E402
from collegium.models.neural.trained_network import TrainedNetwork  # noqa: E402

CPU = Machine(torch.device("cpu"), 1)
X = np.random.default_rng(0).normal(size=(50, 5)).astype("f")


@pytest.fixture(scope="module")
def networks():
    blueprint = draw_up(mlp, 3, (5,))
    rows = [blueprint.initial(seed) for seed in range(7)]
    return [TrainedNetwork(mlp, 3, (5,), one.numpy(), other.numpy()) for one, other in rows]


@pytest.fixture
def expected(networks):
    return np.stack(list(ask_networks(networks, X, CPU)))


class Small:
    """Stands for a GPU with room for so many networks, and so many answers: the rest is the real one."""

    def __init__(self, monkeypatch, networks=100, answers=10**9, at_once=7):
        self.tried = []
        make = Blueprint.stack

        def full():
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

        def stack(blueprint, rows, device):
            self.tried.append(rows)
            if rows > networks:
                full()
            made = make(blueprint, rows, device)
            ask = made.logits

            def logits(x):
                self.tried.append((len(x), x.shape[1]))
                if len(x) * x.shape[1] > answers:
                    full()
                return ask(x)

            made.logits = logits
            return made

        monkeypatch.setattr(Blueprint, "stack", stack)
        begin = module._AskingRoom.__init__

        def beginning(room, *rest):
            begin(room, *rest)
            room.networks = at_once

        monkeypatch.setattr(module._AskingRoom, "__init__", beginning)


def test_everything_at_once_where_there_is_room(monkeypatch, networks, expected, caplog):
    small = Small(monkeypatch)
    np.testing.assert_allclose(np.stack(list(ask_networks(networks, X, CPU))), expected, atol=1e-5)
    assert small.tried == [7, (7, 50)]
    assert not caplog.records


def test_fewer_networks_when_their_weights_do_not_fit(monkeypatch, networks, expected, caplog):
    small = Small(monkeypatch, networks=2)
    np.testing.assert_allclose(np.stack(list(ask_networks(networks, X, CPU))), expected, atol=1e-5)
    assert [rows for rows in small.tried if isinstance(rows, int)] == [7, 3, *[1] * 7]
    assert "7 networks asked about 50 records at once: going on with 3 and 50" in caplog.text
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


def test_later_groups_remember_what_did_not_fit(monkeypatch, networks, expected):
    small = Small(monkeypatch, networks=2, at_once=4)
    np.testing.assert_allclose(np.stack(list(ask_networks(networks, X, CPU))), expected, atol=1e-5)
    assert [rows for rows in small.tried if isinstance(rows, int)] == [4, 2, 2, 2, 1]


def test_then_fewer_records(monkeypatch, networks, expected, caplog):
    """Seven networks and 50 records, 3 and 50, 1 and 50, 1 and 25, 1 and 12: there is room for 20."""
    small = Small(monkeypatch, answers=20)
    np.testing.assert_allclose(np.stack(list(ask_networks(networks, X, CPU))), expected, atol=1e-5)
    asked = [tried for tried in small.tried if isinstance(tried, tuple)]
    each = [(1, 12)] * 4 + [(1, 2)]
    assert asked == [(7, 50), (3, 50), (1, 50), (1, 25), *each * 7]
    assert "going on with 1 and 12" in caplog.text
    assert len(caplog.records) == 4


def test_not_even_one_network_and_one_record_fit(monkeypatch, networks):
    small = Small(monkeypatch, answers=0)
    with pytest.raises(ModelError, match="one network and one record do not fit") as caught:
        list(ask_networks(networks, X, CPU))
    assert "\n" not in str(caught.value)
    assert small.tried[-1] == (1, 1) and len(small.tried) < 30


def test_other_failures_are_not_taken_for_a_lack_of_memory(monkeypatch, networks):
    def fail(*_):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(Blueprint, "stack", fail)
    with pytest.raises(RuntimeError, match="illegal"):
        list(ask_networks(networks, X, CPU))


def test_no_network_and_no_record(networks):
    assert list(ask_networks([], X, CPU)) == []
    (logits, *_) = ask_networks(networks, X[:0], CPU)
    assert logits.shape == (0, 3)
