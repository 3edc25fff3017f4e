"""Tables of many columns: a bounded width by a public rule, no square of it, and each record by itself."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from collegium.errors import InputError
from collegium.models.preprocessing import BinnedTable, PrincipalTable
from collegium.models.preprocessing.wide_table import (
    USUAL,
    categories_of_each,
    rows_to_learn_from,
    width_of,
)

MEGABYTE = 2**20


def people(n, n_columns, n_texts=0, seed=0):
    random = np.random.default_rng(seed)
    shared = random.normal(size=(n, 5))
    loadings = np.random.default_rng(9).normal(size=(5, n_columns))
    table = pd.DataFrame(shared @ loadings + random.normal(size=(n, n_columns)))
    table.columns = [f"n{i}" for i in range(n_columns)]
    towns = {f"t{i}": random.integers(0, 80, n).astype(str) for i in range(n_texts)}
    return pd.concat([table, pd.DataFrame(towns)], axis=1), shared


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("view", [BinnedTable(30), PrincipalTable(30)], ids=["binned", "principal"])
def test_three_thousand_columns_are_described_in_megabytes(view):
    """Of 57 columns for each number, all pairs would take 218 GiB."""
    table, _ = people(300, 3000)
    shown = {}
    peak = peak_of(lambda: shown.update(Z=view.fit(table).transform(table)))
    assert shown["Z"].shape == (300, 30)
    assert peak < 60 * MEGABYTE  # the table itself has 7


def test_the_width_is_bounded_whatever_the_kinds_of_columns():
    for n in range(USUAL + 1, 16_000, 97):
        assert width_of(n, n) <= 16_000
        assert n * (categories_of_each(n, 60) + 1) <= max(28_000, 3 * n)
    for n_numbers, n_texts in ((101, 0), (0, 101), (300, 20), (2001, 3)):
        table, _ = people(60, n_numbers, n_texts)
        view, n = BinnedTable(5).fit(table), n_numbers + n_texts
        most = width_of(n, n_numbers) + n_texts * (categories_of_each(n, 60) + 1)
        assert view._wide.width <= most


@pytest.mark.parametrize("n_columns", [150, 2100])
@pytest.mark.parametrize("view", [BinnedTable(10), PrincipalTable(10)], ids=["binned", "principal"])
def test_a_record_of_a_wide_table_is_described_by_itself(view, n_columns):
    public, others = people(100, n_columns, 3)[0], people(20, n_columns, 3, seed=1)[0]
    view.fit(public)
    alone = np.concatenate([view.transform(others.iloc[[i]]) for i in range(5)])
    np.testing.assert_array_equal(alone, view.transform(others)[:5])


def test_what_columns_share_is_found_and_a_linear_model_can_bend():
    table, shared = people(3000, 400)
    y = np.abs(shared[:, 0]) > 0.7
    loudest = table["n0"] > 0
    seen = BinnedTable(40, whiten=1.0).fit(table.iloc[:1000]).transform(table)
    for truth, at_least in ((y, 0.62), (loudest, 0.8)):
        model = LogisticRegression(max_iter=500).fit(seen[1000:2000], truth[1000:2000])
        assert model.score(seen[2000:], truth[2000:]) > at_least


def test_bins_hold_equal_shares_of_public_records():
    table, _ = people(400, 150)
    wide = BinnedTable(5).fit(table)._wide
    raw = wide.described(table) / np.where(wide.factor > 0, wide.factor, 1) + wide.middle
    bins = raw[:, 150 * 4 : 150 * 8].reshape(400, 4, 150)
    np.testing.assert_allclose(bins.sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(bins.mean(axis=0), 0.25, atol=0.01)


def test_missing_unseen_far_and_constant_values_are_described():
    public, _ = people(50, 120, 2)
    public = public.assign(constant=3.0, nothing=np.nan, huge=np.linspace(-3e38, 3e38, 50))
    odd = public.iloc[:3].copy()
    odd.loc[0, "n0"], odd.loc[1, "n0"], odd.loc[2, "t0"] = np.nan, 1e300, "moon"
    odd["constant"] = [1e300, -1e300, np.nan]
    for view in (BinnedTable(5), PrincipalTable(5)):
        assert np.isfinite(view.fit(public).transform(odd)).all()


def test_public_records_that_are_alike_are_refused():
    table = pd.DataFrame(np.ones((20, 150))).rename(columns="c{}".format)
    for view in (BinnedTable(), PrincipalTable()):
        with pytest.raises(InputError, match="all records of the public table are alike"):
            view.fit(table)


def test_few_directions_in_which_public_records_differ_are_all_that_is_kept():
    table = pd.DataFrame(np.outer(np.linspace(-1, 1, 300), np.ones(2100))).rename(
        columns="c{}".format
    )
    assert BinnedTable(40).fit(table).transform(table).shape == (300, 1)


def test_public_records_beyond_what_fits_are_drawn_by_a_public_seed():
    assert rows_to_learn_from(500, 10_000) == slice(None)
    some = rows_to_learn_from(50_000, 10_000)
    assert len(some) == len(set(some)) == 2**24 // 10_000
    np.testing.assert_array_equal(some, rows_to_learn_from(50_000, 10_000))
