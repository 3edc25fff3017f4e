"""Direct training of wide records: step sizes without the square of their length."""

import numpy as np
import pytest

from collegium.dpsgd import by_rule
from collegium.dpsgd.by_rule import curvature


@pytest.mark.parametrize("shape", [(60, 200), (200, 60)])
def test_the_curvature_of_long_rows_is_found_without_their_square(shape, monkeypatch):
    rows = np.random.default_rng(0).normal(size=shape) + 0.3
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    exactly = curvature(rows)
    for most_squared in (100, 50):  # the smaller square, and none
        monkeypatch.setattr(by_rule, "_MOST_SQUARED", most_squared)
        assert curvature(rows) == pytest.approx(exactly, rel=1e-9)
