# ruff: noqa: NPY002 (it is about the global generators)
"""The generators that all threads share are lent to one thread at a time, whoever asks for them."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from collegium.models.global_generators import kept_generators

torch = pytest.importorskip("torch")


def test_networks_wait_for_whoever_has_the_generators() -> None:
    from collegium.models.neural.randomness import seeded

    drawn = threading.Event()

    def draw() -> None:
        with seeded(1):
            drawn.set()

    other = threading.Thread(target=draw)
    with kept_generators():
        other.start()
        assert not drawn.wait(0.05)
    other.join(60)
    assert drawn.is_set()


def test_seeding_for_a_network_puts_all_of_them_back() -> None:
    from collegium.models.neural.randomness import seeded

    def states() -> list[object]:
        return [
            random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
        ]  # fmt: skip

    before = states()
    with seeded(3), seeded(4):
        _ = random.random(), np.random.rand(), torch.rand(1)
    assert states() == before
