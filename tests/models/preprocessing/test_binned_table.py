"""Bins beside principal coordinates: fitted on public records, each record by itself."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from collegium.errors import InputError
from collegium.models.preprocessing import BinnedTable, PrincipalTable


def people(n=400, seed=0):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": generator.uniform(20, 70, n),
            "gain": np.where(generator.random(n) < 0.95, 0.0, generator.uniform(1, 9, n)),
            "work": generator.choice(["office", "field", "sea"], n),
        }
    )


def test_a_linear_model_on_bins_can_bend_and_sees_rare_values():
    table, other = people(2000), people(2000, seed=1)
    inside = lambda X: ((X["age"] > 35) & (X["age"] < 50)) | (X["gain"] > 4)  # noqa: E731
    binned, principal = (
        made.fit(table) for made in (BinnedTable(60, whiten=1.0), PrincipalTable(60))
    )
    scores = [
        LogisticRegression(max_iter=1000)
        .fit(made.transform(table), inside(table))
        .score(made.transform(other), inside(other))
        for made in (binned, principal)
    ]
    assert scores[0] > 0.97
    assert scores[1] < 0.8


def test_edges_are_public_values_where_most_values_are_one():
    table = people()
    edges = dict(zip(["age", "gain"], BinnedTable().fit(table).edges_, strict=True))
    assert set(edges["gain"]) <= set(np.float32(table["gain"]))
    # 95 % are 0, so quantiles of records find next to nothing above: distinct values do.
    assert len(edges["gain"]) >= 9
    assert np.unique(edges["age"]).size == edges["age"].size


def test_components_are_whitened_by_public_records():
    table = people()
    Z = BinnedTable(10, whiten=1.0).fit(table).transform(table).astype(float)
    np.testing.assert_allclose(Z.T @ Z / len(Z), np.eye(10), atol=1e-3)


def test_a_record_is_described_by_itself():
    public, others = people(), people(50, seed=2)
    table = BinnedTable().fit(public)
    alone = np.concatenate([table.transform(others.iloc[[i]]) for i in range(5)])
    np.testing.assert_array_equal(alone, table.transform(others)[:5])


def test_missing_and_unseen_values_are_described():
    table = BinnedTable().fit(people())
    odd = pd.DataFrame({"age": [None, 1e9], "gain": [0.0, -5.0], "work": ["moon", None]})
    assert np.isfinite(table.transform(odd.astype({"age": float}))).all()
    assert table.transform(odd.astype({"age": float}).iloc[:0]).shape[0] == 0


@pytest.mark.parametrize("setting", [{"components": 0}, {"bins": 1}, {"whiten": 1.5}])
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(InputError, match=next(iter(setting))):
        BinnedTable(**setting).fit(people())
