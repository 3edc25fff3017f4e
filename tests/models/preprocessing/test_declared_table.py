"""Tables encoded by a schema alone: no record, public or private, decides on anything."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from collegium import DPSGDClassifier, DPSGDRegressor, PATEClassifier, Schema
from collegium.errors import InputError
from collegium.features import DeclaredTable

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [0, 100]},
        "income": {"kind": "number", "bounds": [-50, 150]},
        "smokes": {"kind": "flag"},
        "town": {"kind": "category", "categories": ["Bonn", "Ulm"]},
        "remark": {"kind": "text"},
    }
)


def people(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "remark": [f"remark {place}" for place in range(n)],
            "town": rng.choice(["Bonn", "Ulm", "Rome"], n),
            "age": rng.integers(0, 100, n),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.normal(50, 40, n)),
            "smokes": rng.random(n) < 0.5,
        }
    )
    y = (table["age"] > 50) * 2 + (table["town"] == "Ulm") + table["smokes"] > 1.5
    return table, np.where(y, "yes", "no")


def test_every_kind_is_read_as_declared() -> None:
    table = pd.DataFrame(
        {
            "remark": ["x", "y", "z"],
            "town": ["Ulm", None, "Rome"],
            "age": [25.0, 1000.0, np.nan],
            "income": [50.0, -1e9, 150.0],
            "smokes": [True, False, None],
        }
    )
    encoder = clone(DeclaredTable(SCHEMA)).fit(None)
    names = ["age", "income", "smokes", "town_Bonn", "town_Ulm"]
    assert encoder.get_feature_names_out().tolist() == names
    expected = [[-0.5, 0, 1, 0, 1], [1, -1, -1, 0, 0], [0, 1, 0, 0, 0]]
    assert encoder.transform(table).tolist() == expected
    assert encoder.transform(pa.Table.from_pandas(table)).tolist() == expected
    assert [encoder.transform(table[i : i + 1]).tolist() for i in range(3)] == [
        [r] for r in expected
    ]


@pytest.mark.parametrize("model", [DPSGDClassifier, DPSGDRegressor])
def test_text_is_learnt_from_without_public_records(model: type) -> None:
    (X, y), (X_test, y_test) = people(1500, 0), people(500, 1)
    settings = {"classes": ["no", "yes"]} if model is DPSGDClassifier else {"bounds": (0, 1)}
    if model is DPSGDRegressor:
        y, y_test = (y == "yes").astype(float), (y_test == "yes").astype(float)
    made = model(steps=30, noise_seed=1, preprocessing=DeclaredTable(SCHEMA), **settings)
    fitted = made.fit(X, y, budgets=5.0)
    assert fitted.score(X_test, y_test) > (0.8 if model is DPSGDClassifier else 0.3)
    assert (
        fitted.model_.predict(X_test) == fitted.predict(X_test)
    ).all() or model is DPSGDRegressor
    assert b"Rome" not in pickle.dumps(fitted) and b"remark 7" not in pickle.dumps(fitted)
    other = made.fit(X.replace({"town": {"Rome": "Oslo"}}), y, budgets=5.0)
    assert (other.predict(X_test) == fitted.predict(X_test)).all()
    if model is DPSGDClassifier:  # it learns nothing, so it may stand before an estimator, too
        piped = make_pipeline(DeclaredTable(SCHEMA), clone(made).set_params(preprocessing="auto"))
        piped.fit(X, y, dpsgdclassifier__budgets=5.0)
        assert (piped.predict(X_test) == fitted.predict(X_test)).all()


def test_votes_may_use_it_too() -> None:
    (X, y), (X_public, _), (X_test, y_test) = people(1200, 0), people(300, 1), people(400, 2)
    model = PATEClassifier(
        classes=["no", "yes"], n_teachers=30, preprocessing=DeclaredTable(SCHEMA), noise_seed=1,
        random_state=1,
    )  # fmt: skip
    assert model.fit(X, y, budgets=20.0, X_public=X_public).score(X_test, y_test) > 0.65


def test_what_needs_no_records_needs_no_public_ones() -> None:
    X = np.random.default_rng(0).normal(5, 1, (200, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    fit = {"budgets": 5.0}
    plain = DPSGDClassifier(steps=5, classes=[0, 1], noise_seed=1).fit(X, y, **fit)
    same = DPSGDClassifier(steps=5, classes=[0, 1], noise_seed=1, preprocessing=Normalizer())
    assert (same.fit(X, y, **fit).predict(X) == plain.predict(X)).all()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"age": {"kind": "whole"}}, "Schema"),
        (Schema({"a": {"kind": "text"}}), "every column .* is text"),
    ],
)
def test_what_is_no_schema_is_refused(schema: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        DeclaredTable(schema).transform(people(3, 0)[0])  # type: ignore[arg-type]
