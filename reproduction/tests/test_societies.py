"""Societies: shares are met, and who is in which group does not depend on the budgets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.errors import InputError
from reproduction.society import Society, everybody, two_groups


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(20, 400),
    st.integers(0, 5),
)
def test_shares_are_met(parts, n_records, seed):
    shares = tuple(part / sum(parts) for part in parts)
    society = Society(tuple(float(i + 1) for i in range(len(parts))), shares)
    groups = society.groups_of(np.zeros(n_records, dtype=np.intp), seed)
    counts = np.bincount(groups, minlength=len(parts))
    assert np.abs(counts - np.array(shares) * n_records).max() <= 1


@given(st.floats(1.1, 9.0), st.floats(1.1, 9.0), st.integers(0, 5))
@settings(max_examples=30)
def test_groups_do_not_depend_on_budgets(higher, other, seed):
    codes = np.arange(100) % 3
    one = two_groups(1.0, higher, 0.25).groups_of(codes, seed)
    assert np.array_equal(one, two_groups(0.5, other, 0.25).groups_of(codes, seed))


@given(st.sampled_from([0.25, 0.5, 0.75, 1.0]), st.integers(0, 5))
@settings(max_examples=20)
def test_higher_budgets_of_one_class_only(share, seed):
    codes = np.arange(400) % 4
    groups = two_groups(1.0, 2.0, share, only_class=1).groups_of(codes, seed)
    assert set(codes[groups == 1]) == {1}
    assert (groups == 1).sum() == round(share * 100)


def test_budgets_follow_the_groups():
    society = Society((1.0, 2.0, 3.0), (0.54, 0.37, 0.09))
    sizes = society.budgets(np.zeros(100, dtype=np.intp), seed=3).group_sizes()
    assert sizes == {"ε=1": 54, "ε=2": 37, "ε=3": 9}
    assert everybody(0.5).budgets(np.zeros(4, dtype=np.intp), 0).group_sizes() == {"ε=0.5": 4}


@pytest.mark.parametrize("shares", [(0.5,), (0.5, 0.6)])
def test_shares_that_do_not_fit_are_refused(shares):
    with pytest.raises(InputError, match="one share per budget, adding up to 1"):
        Society((1.0, 2.0), shares)
