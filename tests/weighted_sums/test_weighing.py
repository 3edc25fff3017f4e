"""What people weigh: no owner is heard more than the weight, and a price that buys nothing is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.errors import InputError
from collegium.weighted_sums.weighing import Batch, Weighing


@given(
    st.integers(1, 40), st.integers(1, 4), st.floats(1e-6, 1.0), st.booleans(), st.integers(1, 30)
)
def test_caps_of_an_owner_add_up_to_no_more_than_the_weight(
    rows: int, most: int, relative: float, laplace: bool, width: int
) -> None:
    weighing = Weighing.of(np.array([relative, 1.0]), laplace, most, 1.0)
    batch = Batch({}, np.zeros(rows, np.intp), np.full(rows, rows, np.int64))
    caps = weighing.caps(batch, width)
    assert (caps >= 0).all()
    assert int(caps.sum()) <= int(weighing.steps[0]) * most


def test_a_price_that_buys_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="spend more on fewer questions"):
        Weighing.of(np.array([1e-9]), False, 1, 1.0)
