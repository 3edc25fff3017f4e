"""Fine bins beside kernel components: fitted on public records, each record by itself."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from collegium.errors import InputError
from collegium.models.preprocessing import BinnedTable, CrossedTable
from collegium.models.preprocessing.crossed_table import PART


def people(n=400, seed=0):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": generator.uniform(20, 70, n),
            "hours": generator.uniform(0, 60, n),
            "gain": np.where(generator.random(n) < 0.95, 0.0, generator.integers(1, 9, n)),
            "work": generator.choice(["office", "field", "sea"], n),
        }
    )


@pytest.fixture(scope="module")
def fitted():
    return CrossedTable(50).fit(people())


def halves(table, described):
    n_cells = sum(name.startswith("cell") for name in table.get_feature_names_out())
    return described[:, :n_cells], described[:, n_cells:]


def test_a_linear_model_sees_how_columns_act_together():
    table, other = people(700), people(700, seed=1)
    crossed = lambda X: (X["age"] > 45) ^ (X["hours"] > 30)  # noqa: E731
    scores = [
        LogisticRegression(C=100.0, max_iter=1000)
        .fit(made.transform(table), crossed(table))
        .score(made.transform(other), crossed(other))
        for made in (CrossedTable().fit(table), BinnedTable().fit(table))
    ]
    assert scores[0] > 0.9
    assert scores[1] < 0.6


def test_a_rare_value_is_a_cell_of_its_own():
    """Bins of equal numbers of records see nothing of what three of 800 have."""
    table = people(800).assign(gain=0.0)
    table.loc[:89, "gain"] = np.repeat(np.arange(1, 31), 3)
    view = CrossedTable(20).fit(table)
    assert view.edges_[2].tolist() == list(range(1, 31))
    cells, _ = halves(view, view.transform(table))
    of_four = (table["gain"] == 4).to_numpy()
    loudest = np.abs(cells[of_four]).argmax(axis=1)
    assert len(set(loudest)) == 1
    assert cells[of_four, loudest[0]].min() > 10 * np.abs(cells[~of_four, loudest[0]]).max()


def test_both_halves_have_the_same_length(fitted):
    described = fitted.transform(people(50, seed=2))
    assert described.dtype == np.float32
    assert described.shape == (50, len(fitted.get_feature_names_out()))
    np.testing.assert_allclose(np.linalg.norm(described, axis=1), 1, atol=1e-5)
    for half in halves(fitted, described):
        np.testing.assert_allclose(np.linalg.norm(half, axis=1), PART, atol=1e-5)


@pytest.mark.parametrize("n", [5, 50, 1500])
def test_a_record_is_described_by_itself(fitted, n):
    others = people(n, seed=2)
    alone = np.concatenate([fitted.transform(others.iloc[[i]]) for i in range(5)])
    np.testing.assert_array_equal(alone, fitted.transform(others)[:5])
    behind = fitted.transform(others.iloc[::-1])[::-1]
    np.testing.assert_array_equal(behind, fitted.transform(others))


def test_the_order_of_columns_says_nothing_and_others_are_refused(fitted):
    others = people(20, seed=2)
    turned = fitted.transform(others[["work", "gain", "hours", "age"]])
    np.testing.assert_array_equal(turned, fitted.transform(others))
    with pytest.raises(InputError, match="'hours'"):
        fitted.transform(others.drop(columns="hours"))
    with pytest.raises(InputError, match="DataFrame"):
        fitted.transform(others.to_numpy())


def test_names_and_columns_are_told(fitted):
    assert fitted.feature_names_in_.tolist() == ["age", "hours", "gain", "work"]
    assert fitted.n_features_in_ == 4 and len(fitted.edges_) == 3
    names = fitted.get_feature_names_out()
    assert names[0] == "cell0" and names[-1] == "kernel49"
    assert np.unique(names).size == names.size


def test_edges_are_public_values(fitted):
    table = people()
    for edges, name in zip(fitted.edges_, ("age", "hours", "gain"), strict=True):
        assert set(edges) <= set(np.float32(table[name]))
    assert fitted.edges_[2].tolist() == sorted(set(table["gain"]))[1:]
    assert len(fitted.edges_[0]) > 50


def test_missing_and_unseen_values_are_described(fitted):
    odd = pd.DataFrame(
        {"age": [np.nan, 1e9], "hours": 1.0, "gain": [0.0, -5.0], "work": ["moon", None]}
    )
    described = fitted.transform(odd)
    assert np.isfinite(described).all()
    assert (np.linalg.norm(described, axis=1) > PART - 1e-5).all()
    with pytest.raises(InputError, match="infinite"):
        fitted.transform(odd.assign(age=np.inf))
    assert fitted.transform(odd.iloc[:0]).shape == (0, described.shape[1])


def columns(n=200, seed=0):
    generator = np.random.default_rng(seed)
    gaps = generator.random(n) < 0.3
    return pd.DataFrame(
        {
            "number": generator.normal(size=n),
            "gaps": np.where(gaps, np.nan, generator.normal(size=n)),
            "constant": 1.0,
            "nothing": np.nan,
            "truth": generator.random(n) < 0.5,
            "day": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(generator.integers(0, 900, n), "D").to_series(index=range(n)).where(~gaps),
            "town": generator.choice(["Bonn", "Köln", "Ulm", "Trier"], n),
            "street": generator.choice([f"s{i}" for i in range(40)], n),
            "same": "x",
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [
        ["number"], ["street"], ["day"], ["number", "constant"], ["town", "same"], ["number", "gaps", "day"],
        ["number", "nothing"], ["truth", "town", "street"], list(columns(2)),
    ],
    ids="-".join,
)  # fmt: skip
def test_columns_of_any_kind_are_described(names):
    public, others = columns()[names], columns(30, seed=1)[names]
    view = CrossedTable(20).fit(public)
    described = view.transform(others)
    assert np.isfinite(described).all()
    np.testing.assert_allclose(np.linalg.norm(described, axis=1), 1, atol=1e-5)
    cells, together = halves(view, described)
    assert np.ptp(cells, axis=0).any() and np.ptp(together, axis=0).any()


def test_where_most_records_are_alike_a_table_is_described_by_its_bins_alone():
    """Half of all distances are 0, and no kernel has a width."""
    table = pd.DataFrame({"ill": np.arange(200) % 5 == 0, "same": "x"})
    view, binned = CrossedTable(20).fit(table), BinnedTable(20).fit(table)
    np.testing.assert_array_equal(view.transform(table), binned.transform(table))
    assert view.get_feature_names_out().tolist() == binned.get_feature_names_out().tolist()


def test_public_records_that_are_all_alike_are_refused():
    with pytest.raises(InputError, match="all records of the public table are alike"):
        CrossedTable().fit(pd.DataFrame({"one": [1.0] * 20, "same": "x"}))


def test_few_public_records_are_enough():
    table = people(3)
    assert np.isfinite(CrossedTable().fit(table).transform(people(9, seed=1))).all()


@pytest.mark.parametrize("n_columns", [101, 2100])
def test_wide_tables_are_described_as_bins_are(n_columns):
    numbers = np.random.default_rng(0).normal(size=(80, n_columns))
    table = pd.DataFrame(numbers).rename(columns="c{}".format)
    view, binned = CrossedTable(10).fit(table), BinnedTable(10).fit(table)
    np.testing.assert_array_equal(view.transform(table), binned.transform(table))
    assert view.get_feature_names_out().size == 10
    assert view.n_features_in_ == n_columns
    # The same object sees the next table by what that holds.
    assert view.fit(people()).get_feature_names_out()[0] == "cell0"
    assert view.fit(table).transform(table).shape == (80, 10)


def test_the_more_numbers_the_fewer_bins_of_each():
    numbers = np.random.default_rng(0).normal(size=(100, 36))
    table = pd.DataFrame(numbers).rename(columns="c{}".format)
    few, many = (CrossedTable(10, bins=4).fit(table.iloc[:, :n]) for n in (2, 36))
    assert max(map(len, few.edges_)) > 40
    assert max(map(len, many.edges_)) <= 3 + 15
    assert many.transform(table).shape[1] < 36 * 2 * 19 + 10


def test_components_bins_and_stretching_are_as_asked_for():
    table = people()
    few, fine, plain = (
        CrossedTable(7, **settings).fit(table) for settings in ({}, {"bins": 90}, {"whiten": 0.0})
    )
    assert halves(few, few.transform(table))[1].shape[1] == 7
    assert len(fine.edges_[0]) > len(few.edges_[0])
    spread = [halves(view, view.transform(table))[0].std(axis=0) for view in (few, plain)]
    assert np.ptp(np.log(spread[0])) < np.ptp(np.log(spread[1])) / 2
    rare = CrossedTable(7, max_categories=1).fit(table)
    assert halves(rare, rare.transform(table))[0].shape[1] < few.transform(table).shape[1] - 7


@pytest.mark.parametrize(
    "setting", [{"components": 0}, {"bins": 1}, {"whiten": 1.5}, {"max_categories": 0}]
)
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(InputError, match=next(iter(setting))):
        CrossedTable(**setting).fit(people())


def test_it_is_copied_as_transformers_are(fitted):
    table = people(20, seed=3)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(table), fitted.transform(table))
    settings = {"components": 50, "bins": 20, "whiten": 0.75, "max_categories": 60}
    assert fitted.get_params() == settings
    copied = clone(fitted)
    assert copied.get_params() == settings and not hasattr(copied, "edges_")
    np.testing.assert_array_equal(copied.fit(people()).transform(table), fitted.transform(table))
    pipeline = make_pipeline(CrossedTable(5), LogisticRegression())
    assert pipeline.fit(people(), people()["age"] > 40).score(people(), people()["age"] > 40) > 0.9
