"""A row's product is the same to the last bit wherever the row stands, and as right as its bits allow."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.models.exact_products import exact_product
from collegium.models.features import PublicComponents
from collegium.models.features.kernel_components import KernelComponents
from collegium.models.preprocessing import BinnedTable


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.integers(1, 70),
    st.sampled_from([1, 2, 66, 500]),
    st.sampled_from([1e-300, 1e-3, 1.0, 1e30]),
)
def test_products_do_not_depend_on_company_and_are_near_the_true_ones(seed, n, d, size):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, d)) * size * 10.0 ** random.integers(-3, 3, size=(n, 1))
    matrix = random.normal(size=(d, 5))
    found = exact_product(rows, matrix)
    order = random.permutation(n)
    assert (exact_product(rows[order], matrix) == found[order]).all()
    assert (exact_product(rows[:1], matrix) == found[:1]).all()
    largest = np.abs(rows).max(axis=1, keepdims=True) * np.abs(matrix).max() * d
    assert (np.abs(found - rows @ matrix) <= largest * 2.0**-20).all()


@pytest.mark.parametrize("made", [PublicComponents(28), KernelComponents(20, n_anchors=100)])
def test_components_of_a_record_do_not_depend_on_who_else_is_there(made):
    random = np.random.default_rng(0)
    public, records = random.normal(size=(300, 66)), random.normal(size=(1500, 66))
    made.fit(public)
    whole, order = made.transform(records), random.permutation(1500)
    assert (made.transform(records[order]) == whole[order]).all()
    assert (made.transform(records[700:703]) == whole[700:703]).all()


def test_a_table_of_bins_shows_a_record_by_itself():
    random = np.random.default_rng(1)
    made = pd.DataFrame(random.normal(size=(900, 4)), columns=list("abcd"))
    shown = BinnedTable(20).fit(made[:200])
    whole, order = shown.transform(made), random.permutation(900)
    assert (shown.transform(made.iloc[order]) == whole[order]).all()
