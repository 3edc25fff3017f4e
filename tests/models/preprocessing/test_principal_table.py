"""Principal coordinates of tables: fitted on public records, each record by itself."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from collegium.errors import InputError
from collegium.models.preprocessing import PrincipalTable


def people(n=300, seed=0):
    generator = np.random.default_rng(seed)
    wealth = generator.normal(size=n)
    return pd.DataFrame(
        {
            "age": 40 + 10 * wealth + generator.normal(size=n),
            "gain": np.where(wealth > 1, np.exp(8 + wealth), 0.0),
            "work": np.where(wealth + generator.normal(size=n) > 0, "office", "field"),
            "sex": generator.choice(["f", "m"], n),
        }
    )


def test_coordinates_are_centred_uncorrelated_and_ordered():
    public = people()
    table = PrincipalTable().fit(public)
    Z = table.transform(public).astype(float)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(Z.T @ Z / len(Z), np.diag(table.deviations_**2), atol=1e-6)
    assert (np.diff(table.deviations_) <= 0).all()
    assert np.sum(table.deviations_**2) == pytest.approx(1.0, abs=1e-4)
    assert PrincipalTable(2).fit(public).transform(public).shape == (300, 2)


def test_full_rarity_on_categories_alone_is_principal_components_of_standardised_indicators():
    public = people()[["work", "sex"]]
    indicators = pd.get_dummies(public).to_numpy(dtype=float)
    standard = (indicators - indicators.mean(axis=0)) / indicators.std(axis=0)
    theirs = PCA(2).fit(standard)
    table = PrincipalTable(rarity=1.0).fit(public)
    share = theirs.explained_variance_ratio_
    np.testing.assert_allclose(table.deviations_**2, share, rtol=1e-6)


def test_a_record_is_encoded_by_itself():
    table = PrincipalTable().fit(people())
    private = people(20, seed=5)
    together = table.transform(private)
    alone = np.vstack([table.transform(private.iloc[[i]]) for i in range(20)])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert table.transform(private.iloc[:0]).shape == (0, together.shape[1])


def test_missing_unseen_and_far_values_stay_finite():
    table = PrincipalTable().fit(people())
    strange = pd.DataFrame(
        {"age": [None, 1e30], "gain": [0.0, -1e30], "work": [None, "sea"], "sex": ["f", "x"]}
    ).astype({"age": float})
    assert np.isfinite(table.transform(strange)).all()
    assert np.abs(table.transform(strange)).max() < 100


def test_constant_columns_vanish_and_a_constant_table_is_refused():
    public = people()
    padded = public.assign(always="yes", zero=0.0)
    np.testing.assert_allclose(
        PrincipalTable().fit(public).deviations_,
        PrincipalTable().fit(padded).deviations_,
        atol=1e-9,
    )
    with pytest.raises(InputError, match="all records of the public table are alike"):
        PrincipalTable().fit(pd.DataFrame({"a": [1.0, 1.0], "b": ["x", "x"]}))


@pytest.mark.parametrize(
    "setting", [{"components": 0}, {"components": 1.5}, {"rarity": -0.1}, {"rarity": float("nan")}]
)
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(InputError, match=f"{next(iter(setting))} must"):
        PrincipalTable(**setting).fit(people())
