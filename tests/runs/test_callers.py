"""Pipelines and searches around an estimator: what they learn from private records is refused, or said."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
    scale,
)

import collegium as cg
from collegium.errors import InputError, PrivacyWarning, StudentWarning
from collegium.features import PixelScaler, PublicComponents

rng = np.random.default_rng(0)
X, X_PUBLIC = rng.normal(30, 5, (400, 4)), rng.normal(30, 5, (100, 4))
Y, Y_PUBLIC = ((side[:, 0] > 30).astype(int) for side in (X, X_PUBLIC))


def model(kind: str, **settings: Any) -> Any:
    if kind == "regressor":
        return cg.DPSGDRegressor(steps=3, bounds=(0, 1), noise_seed=1, **settings)
    if kind == "dpsgd":
        return cg.DPSGDClassifier(steps=3, classes=[0, 1], noise_seed=1, **settings)
    return cg.PATEClassifier(classes=[0, 1], noise_seed=1, random_state=1, **settings)


def inside(pipeline: Any, kind: str, public: Any = None) -> Any:
    last = pipeline.steps[-1][0]
    given = {f"{last}__budgets": 8.0}
    if public is not None or kind == "pate":
        given[f"{last}__X_public"] = X_PUBLIC if public is None else public
    return pipeline.fit(X, Y, **given)


class Foreign:
    """A transformer that knows nothing of scikit-learn's tags."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class Homely(TransformerMixin, BaseEstimator):
    """A user's own, which says nothing of what it learns."""

    def fit(self, X, y=None):
        self.n_ = len(X)
        return self

    def transform(self, X):
        return X


LEARNERS = [
    StandardScaler(), MinMaxScaler(), PCA(2), SimpleImputer(), SelectKBest(k=2), Foreign(), Homely(),
    OneHotEncoder(handle_unknown="ignore"), PublicComponents(2),
    ColumnTransformer([("a", StandardScaler(), [0])]),
    FeatureUnion([("a", FunctionTransformer()), ("b", PCA(1))]),
    make_pipeline(FunctionTransformer(), MinMaxScaler()), FunctionTransformer(scale),
    ColumnTransformer([("a", "passthrough", [0])], remainder=StandardScaler()),
    type("Scaler", (StandardScaler,), {"public": True})(),
]  # fmt: skip


@pytest.mark.parametrize("step", LEARNERS, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("kind", ["dpsgd", "regressor", "pate"])
def test_a_step_that_learns_from_private_records_is_refused(kind: str, step: Any) -> None:
    with pytest.raises(
        InputError, match=r"in this Pipeline is fitted to all.*set preprocessing="
    ) as it:
        inside(make_pipeline(step, model(kind)), kind)
    assert "\n" not in str(it.value)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda one: GridSearchCV(one, {"dpsgdclassifier__steps": [2]}, cv=2, error_score="raise"),
        lambda one: CalibratedClassifierCV(one, cv=2),
        lambda one: BaggingClassifier(one, 2),
    ],
    ids=["search", "calibration", "bagging"],
)
def test_whatever_lies_around_the_pipeline(wrap: Any) -> None:
    class Granting(cg.DPSGDClassifier):
        def fit(self, X, y):
            return super().fit(X, y, budgets=8.0)

    one = Granting(steps=2, classes=[0, 1], noise_seed=1)
    around = make_pipeline(StandardScaler(), one)
    around.steps[-1] = ("dpsgdclassifier", one)
    with pytest.raises(InputError, match="StandardScaler in this Pipeline"):
        wrap(around).fit(X, Y)


STILL = [
    "passthrough", None, FunctionTransformer(), FunctionTransformer(np.tanh), Normalizer(),
    FrozenEstimator(FunctionTransformer(abs)), PixelScaler(),
    FrozenEstimator(StandardScaler().fit(X_PUBLIC)), PublicComponents(2, public=X_PUBLIC),
    ColumnTransformer([("all", "passthrough", [0, 1, 2])]),
]  # fmt: skip


@pytest.mark.parametrize("step", STILL, ids=lambda step: type(step).__name__)
def test_a_step_that_learns_nothing_from_them_is_taken(step: Any) -> None:
    piped = inside(make_pipeline(step, model("dpsgd")), "dpsgd")
    assert piped.predict(X_PUBLIC).shape == (100,)


@pytest.mark.parametrize("kind", ["dpsgd", "regressor", "pate"])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), PCA(2)], ids=type)
def test_the_right_way_learns_from_public_records_alone(kind: str, scaler: Any) -> None:
    fitted = model(kind, preprocessing=scaler).fit(X, Y, budgets=8.0, X_public=X_PUBLIC)
    learnt = type(scaler)(**scaler.get_params()).fit(X_PUBLIC)
    name = "components_" if isinstance(scaler, PCA) else "scale_"
    assert (getattr(fitted.preprocessing_, name) == getattr(learnt, name)).all()
    if kind != "pate":
        with pytest.raises(InputError, match="fitted on public records, and there are none"):
            model(kind, preprocessing=scaler).fit(X, Y, budgets=8.0)


def test_a_table_may_be_encoded_by_transformers_of_ones_own() -> None:
    def table(numbers: Any) -> pd.DataFrame:
        made = pd.DataFrame(numbers, columns=list("abcd"))
        return made.assign(
            kind=np.where(made["a"] > 30, "x", "y"), b=made["b"].where(made["b"] > 22)
        )

    encoder = ColumnTransformer(
        [
            ("text", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), list("abcd")),
        ]
    )
    fitted = model("dpsgd", preprocessing=encoder).fit(
        table(X), Y, budgets=8.0, X_public=table(X_PUBLIC)
    )
    assert fitted.score(table(X_PUBLIC), Y_PUBLIC) > 0.8


def test_targets_may_not_be_scaled_by_private_ones() -> None:
    class Granting(cg.DPSGDRegressor):
        def fit(self, X, y):
            return super().fit(X, y, budgets=8.0)

    one = Granting(steps=2, bounds=(-3, 3), noise_seed=1)
    with pytest.raises(InputError, match=r"fitted to all private targets.*bounds=\(low, high\)"):
        TransformedTargetRegressor(one, transformer=StandardScaler()).fit(X, Y)
    TransformedTargetRegressor(one, func=np.log1p, inverse_func=np.expm1).fit(X, Y)


def test_scaled_by_hand_is_told_of_without_public_records_too() -> None:
    with pytest.warns(PrivacyWarning, match=r"mean 0 in the private records.*Give them unscaled"):
        model("dpsgd").fit(StandardScaler().fit_transform(X), Y, budgets=8.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        model("dpsgd").fit(X, Y, budgets=8.0)
        model("dpsgd").fit(
            StandardScaler().fit_transform(X), Y, budgets=8.0, scales_may_differ=True
        )


@pytest.mark.parametrize("kind", ["dpsgd", "regressor", "pate"])
def test_scores_of_held_out_records_are_called_what_they_are(kind: str) -> None:
    fit = {"budgets": 0.5, "X_public": X_PUBLIC}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cross_val_score(model(kind), X, Y, cv=2, params=fit, error_score="raise")
    said = [str(one.message) for one in caught]
    assert (
        sum("held out of a fit: if they are private, no account covers it" in line for line in said)
        == 2
    )
    assert not any("public test records" in line for line in said)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = model(kind).fit(X, Y, **fit)
        fitted.score(X_PUBLIC, Y_PUBLIC)
    assert not any("held out" in str(one.message) for one in caught)
    assert not any("held out" in line for line in fitted.privacy_.sentences())


@pytest.mark.parametrize("kind", ["dpsgd", "pate"])
def test_what_a_search_chose_says_so_in_its_statement(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(model(kind), {"goal": ["accuracy"]}, cv=2, error_score="raise").fit(
            X, Y, budgets=0.5, X_public=X_PUBLIC
        )
    said = [line for line in search.best_estimator_.privacy_.sentences() if "held out" in line]
    assert len(said) == 1 and said[0].startswith("Not covered: this fit is one of several")
    assert any(
        "held out" in line for line in search.best_estimator_.privacy_.to_dict()["statement"]
    )


@pytest.mark.parametrize("kind", ["dpsgd", "pate"])
def test_a_rare_class_comes_with_advice(kind: str) -> None:
    """Where the model says one thing of everybody, the warning of fit and of score names the way out."""
    y, y_public = (np.arange(400) % 20 == 0).astype(int), (np.arange(100) % 20 == 0).astype(int)
    advice = "rare class matters as much as a frequent one, fit with goal='balanced'"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = model(kind).fit(X, y, budgets=0.5, X_public=X_PUBLIC)
    assert any(advice in str(one.message) for one in caught) == fitted.quality_.names_one_class
    with pytest.warns(StudentWarning, match=advice):
        fitted.score(X_PUBLIC, np.where(fitted.predict(X_PUBLIC) == 0, y_public, 0))


def test_a_model_no_better_than_one_answer_is_told_of_by_the_right_name() -> None:
    y = (np.arange(400) % 10 == 0).astype(int)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cross_val_score(model("dpsgd"), X, y, cv=2, params={"budgets": 0.1}, error_score="raise")
    told = [str(one.message) for one in caught if "no better than" in str(one.message)]
    assert told and all("records that were held out of the fit" in line for line in told)
