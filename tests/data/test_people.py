"""Columns that may be people whom nobody named, and columns that are none."""

import warnings

import numpy as np
import pandas as pd
import pytest

from collegium import GNMax, PATEClassifier, Policy, PrivacyWarning
from collegium.data.people import ask_about_people

NUMBERS = np.random.default_rng(0).integers(0, 1000, 3000)
TEXTS = pd.Series(NUMBERS).astype(str)
PRICES = pd.Series(NUMBERS / 4).astype(str)
GAP = TEXTS.index != 7


@pytest.mark.parametrize(
    ("column", "asked"),
    [
        (NUMBERS, True),
        ("client " + TEXTS, True),
        (TEXTS.where(GAP, "n/a"), True),
        (PRICES.where(GAP, "n/a"), False),
        (PRICES.str.replace(".", ",").where(GAP, "n/a"), False),
        (NUMBERS % 60, False),  # hours
        (np.where(NUMBERS % 10, NUMBERS, 0), False),  # amounts
        (np.arange(3000), False),
    ],
)
def test_what_is_asked_about(column, asked):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ask_about_people(pd.DataFrame({"x": column}), (), lambda names: f"Set {names}")
    assert len(told) == asked
    for warning in told:
        assert "different values of 'x': does it say whose record it is? Set ['x']" in str(
            warning.message
        )


def test_python_asks_as_studies_do():
    generator = np.random.default_rng(0)
    X = pd.DataFrame({"client": NUMBERS[:600] % 300, "weight": generator.normal(size=600)})
    y, public = generator.integers(0, 2, 600), X.sample(100) + 0.3
    model = PATEClassifier(n_teachers=3, aggregator=GNMax(sigma=9), classes=[0, 1], noise_seed=1)
    with pytest.warns(
        PrivacyWarning, match="600 records, .* of 'client': does it say whose record it is"
    ) as told:
        model.fit(X, y, budgets=3.0, X_public=public)
    assert sum("person" in str(one.message) for one in told) == 1
    granted = Policy({"low": 3.0}).assign(["low"] * 600, owners=X["client"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        model.fit(X, y, budgets=granted, X_public=public)
