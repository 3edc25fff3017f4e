"""Settings of PATEClassifier that cannot be used are refused in one line, before records are looked at."""

import inspect
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from collegium import (
    Account,
    GNMax,
    InteractiveGNMax,
    PATEClassifier,
    Policy,
    PrivacyWarning,
    Queries,
    Weighting,
)
from collegium.errors import InputError
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.pate import classifier, pipeline
from collegium.workers.engines import Engine

RECORDS = np.random.default_rng(0).normal(size=(90, 2))
LABELS = (RECORDS[:, 0] > 0).astype(int)

WRONG = {
    "n_teachers": ["x", 0, 40.0, True],
    "queries__max_queries": [0, "x", 1.5, -1, True],
    "queries__max_labels": [0, "x", 1.5, -1, True],
    "aggregator": ["gnmax", GNMax, 5],
    "account": ["worst-case", Account, 5, Queries()],
    "account__guarantee": ["x", None, 1],
    "queries": ["random", Queries, 5, Account()],
    "queries__release": ["x", None],
    "queries__targets": ["x", None],
    "queries__query_order": ["x", None],
    "teacher": ["svm", 5, LogisticRegression, StandardScaler(), RidgeTeachers(teachers_at_once=0)],
    "student": ["graph", 5, LogisticRegression, StandardScaler()],
    "preprocessing": [
        *("tabular", "same", StandardScaler, 5, LogisticRegression()),
        *({"teacher": value} for value in ("same", StandardScaler, 5)),
        *({"student": value} for value in ("pca", StandardScaler, 5, LogisticRegression())),
        *({}, {"pupil": None}),
    ],
    "class_shares": [[0.5, 0.5], {0: 0.5, 1: 0.5}, {}, 3],
    "personalisation": ["x", None, 3],
    "account__delta": ["x", 0, 1, -1.0, None, float("nan"), True],
    "account__orders": ["x", [], [1], [2, "x"], [[2, 3]], [float("nan")]],
    "account__conversion": ["x", None, 3],
    "account__bounds": ["x", 3],
    "noise_seed": ["x", -1, 1.5, True],
    "random_state": ["x", -1, 2**32, 1.5, [1], np.random.default_rng(0)],
    "n_jobs": [0, "x", 1.5, True, Engine],
    "verbose": ["x", -1, 1.5, None],
}


def budgets():
    return Policy({"all": 1e5}).assign(["all"] * 60)


def model_with(**settings):
    defaults = {
        "teacher": DecisionTreeClassifier(max_depth=2),
        "n_teachers": 4,
        "aggregator": GNMax(sigma=0.5),
        "noise_seed": 1,
        "random_state": 0,
    }
    return PATEClassifier(**defaults).set_params(**settings)


def fit(model, **how):
    return model.fit(RECORDS[:60], LABELS[:60], budgets=budgets(), X_public=RECORDS[60:], **how)


def test_whether_sensitive_things_are_kept_is_said_for_one_fit():
    for wrong in ("x", None, 1):
        with pytest.raises(InputError, match="keep_sensitive must be true or false"):
            fit(model_with(), keep_sensitive=wrong)
    assert hasattr(fit(model_with(), keep_sensitive=np.bool_(True)), "sensitive_votes_")


@pytest.mark.parametrize("name", list(WRONG))
def test_a_wrong_setting_is_refused_in_one_line_before_records_are_looked_at(name, monkeypatch):
    def look(*args):
        raise AssertionError("records were looked at")

    monkeypatch.setattr(classifier, "as_records", look)
    for value in WRONG[name]:
        for guarantee in ("worst-case", "data-dependent"):
            model = model_with(account=Account(guarantee))
            with pytest.raises(InputError) as error:
                fit(model.set_params(**{name: value}))
            told = str(error.value)
            assert "\n" not in told and len(told) < 400
            assert name.split("_")[-1] in told or repr(value) in told
            assert not [own for own in vars(model) if own.endswith("_")]


@pytest.mark.parametrize(
    "settings",
    [
        {"n_teachers": np.int64(4), "queries": Queries(max_queries=np.int32(9), max_labels=None)},
        {"aggregator": None, "aggregator__threshold": 2, "aggregator__sigma": 0.5},
        {"noise_seed": np.int64(0), "verbose": False},
        {"account": Account("data-dependent", "mironov", [1.5, 2, 30])},
        {"account__orders": range(2, 9), "account__bounds": "papers"},
        {"account": None, "queries": None, "account__guarantee": "data-dependent"},
        {"random_state": np.random.RandomState(1), "n_jobs": np.int64(1)},
        {"random_state": None, "n_jobs": "threading"},
        {"random_state": 2**32 - 1, "n_jobs": -2},
        {"n_jobs": Engine("sequential", workers=1)},
        {"preprocessing": {"teacher": StandardScaler(), "student": None}},
        {"preprocessing": {"student": StandardScaler()}},
        {"teacher": None, "student": None, "account__delta": np.float64(1e-6)},
    ],
)
def test_what_is_allowed_is_taken(settings):
    with parallel_config("threading"):
        model = fit(model_with(**settings))
    assert set(model.predict(RECORDS)) <= {0, 1}


def test_what_a_setting_needs_of_another_is_looked_at_before_anything_is_trained(monkeypatch):
    def train(*args):
        raise AssertionError("teachers were trained")

    monkeypatch.setattr(pipeline, "rehearse_teacher", train)
    unsure = Account("data-dependent")
    mute = DecisionTreeClassifier.__mro__[-1]  # object: neither fit nor predict
    for settings, message in [
        ({"student": mute()}, "student must have fit and predict"),
        (
            {
                "student": Silent(),
                "aggregator": InteractiveGNMax(threshold=0, sigma_threshold=8, sigma=1),
            },
            "has no predict_proba",
        ),
        ({"student": Silent(), "queries": Queries("active")}, "has no predict_proba"),
        ({"student": Silent(), "class_shares": {"student": [0.5, 0.5]}}, "has no predict_proba"),
        ({"queries": Queries("active"), "account": unsure}, "cannot be chosen actively"),
        ({"queries": Queries(release="histogram"), "account": unsure}, "cannot be released"),
        ({"personalisation__assignment": "best"}, "must be one of hash, balanced"),
    ]:
        with pytest.raises(InputError, match=message) as error:
            fit(model_with(**settings))
        assert "\n" not in str(error.value)


class Silent:
    """A student without probabilities."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_there_are_at_most_fifteen_parameters_and_each_is_documented():
    names = list(inspect.signature(PATEClassifier.__init__).parameters)[1:]
    assert len(names) <= 15
    assert names == list(PATEClassifier().__dict__)  # stored as given, under their own names
    about, _, _ = inspect.getdoc(PATEClassifier).partition("Attributes\n---")
    headings = re.findall(r"^(\w[\w, ]*) : ", about, re.MULTILINE)
    assert sorted(", ".join(headings).split(", ")) == sorted(names)
    for settings in (Account, Queries):
        missing = [name for name in settings().get_params() if f"``{name}``" not in about]
        assert not missing


def test_settings_within_settings_are_parameters_that_cloning_keeps():
    model = model_with(
        aggregator__sigma=3,
        account__orders=[2, 3],
        queries__max_labels=9,
        personalisation__rule="budget",
    )
    shown = model.get_params()
    assert (shown["aggregator__sigma"], shown["queries__max_labels"]) == (3, 9)
    copy = clone(model)
    assert copy.aggregator == GNMax(sigma=3)
    assert copy.account == Account(orders=[2, 3])
    assert copy.queries == Queries(max_labels=9)
    assert copy.personalisation == Weighting(rule="budget")
    copy.set_params(aggregator__sigma=4, account=None)
    assert (copy.aggregator.sigma, model.aggregator.sigma) == (4, 3)
    copy.set_params(account__guarantee="data-dependent", queries=None)
    assert copy.account == Account("data-dependent")
    assert model.get_params()["account__guarantee"] == "worst-case"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"aggregator__sgima": 3},
            "aggregator .GNMax. has no parameter 'sgima': allowed are sigma",
        ),
        (
            {"queries__labels": 3},
            "queries .Queries. has no parameter 'labels': allowed are query_o",
        ),
        ({"personalisation__sigma": 3}, "personalisation .Weighting. has no parameter 'sigma'"),
        ({"account__delta": 2}, "2"),
    ],
)
def test_a_setting_within_a_setting_that_is_not_there_is_refused_in_one_line(settings, message):
    model = model_with()
    before = repr(model.get_params())
    with pytest.raises(InputError, match=message) as error:
        model.set_params(**settings)
    assert "\n" not in str(error.value)
    assert repr(model.get_params()) == before


def test_a_grid_search_finds_the_noise():
    search = GridSearchCV(
        model_with(queries=Queries(max_labels=20)),
        {"aggregator__sigma": [0.5, 60.0], "queries__release": ["labels", "histogram"]},
        cv=2,
        error_score="raise",
    )
    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        search.estimator.set_fit_request(budgets=True, X_public=True)
        search.fit(RECORDS[:60], LABELS[:60], budgets=budgets(), X_public=RECORDS[60:])
    assert search.best_params_["aggregator__sigma"] == 0.5
    assert search.best_estimator_.aggregator == GNMax(sigma=0.5)
    assert search.best_estimator_.queries.max_labels == 20


def test_warnings_point_to_the_line_that_called_fit():
    model = model_with(queries=Queries(max_labels=1))
    with pytest.warns(PrivacyWarning, match="of one class") as caught:
        model.fit(RECORDS[:60], LABELS[:60], budgets=budgets(), X_public=RECORDS[60:])
    assert {warning.filename for warning in caught} == {__file__}


def test_a_subclass_with_settings_of_its_own_is_checked_as_well():
    class Mine(PATEClassifier):
        def __init__(self, depth=2):
            super().__init__(DecisionTreeClassifier(max_depth=depth), n_teachers="x")
            self.depth = depth

    with pytest.raises(InputError, match="n_teachers must be a whole number"):
        fit(Mine())


def test_text_columns_that_a_given_teacher_cannot_take_are_told_with_the_way_out():
    table = pd.DataFrame({"kind": ["a", "b"] * 200, "size": np.arange(400.0)})
    model = PATEClassifier(LogisticRegression(), classes=[0, 1])
    with pytest.raises(InputError, match=r"columns of text need a preprocessing .* TabularEncoder"):
        model.fit(
            table, [0, 1] * 200, budgets=1.0, X_public=table.assign(size=np.arange(400) + 0.5)
        )
