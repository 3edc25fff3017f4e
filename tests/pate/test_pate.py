"""PATEClassifier: scikit-learn's rules outside, everybody's budget inside."""

import itertools
import math
import pickle
import struct
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from collegium import (
    Account,
    Budgets,
    ConfidentGNMax,
    GNMax,
    InteractiveGNMax,
    LNMax,
    PATEClassifier,
    Policy,
    PrivacyWarning,
    Queries,
    VoteTable,
    Weighting,
)
from collegium.accounting import gdp_delta, gdp_epsilon
from collegium.accounting.accountant import Accountant
from collegium.errors import InputError, NothingReleasedError
from collegium.pate.teachers.ensemble import Teacher
from collegium.personalisation import PERSONALISATIONS, Assignment

N_RECORDS, N_PUBLIC = 180, 60
POLICY = Policy({"high": 2.0, "average": 4.0, "low": 8.0}, delta=1e-5)
SHARES = {"high": 0.5, "average": 0.3, "low": 0.2}
STUMP = DecisionTreeClassifier(max_depth=2)
AGGREGATORS = {
    "lnmax": LNMax(gamma=0.05),
    "gnmax": GNMax(sigma=12),
    "confident": ConfidentGNMax(threshold=3, sigma_threshold=15, sigma=12),
    "interactive": InteractiveGNMax(threshold=0, sigma_threshold=8, sigma=12, refit_every=4),
}

pytestmark = pytest.mark.filterwarnings("ignore:.*are of one class:collegium.errors.PrivacyWarning")


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(8)
    X = generator.normal(size=(N_RECORDS + N_PUBLIC + 200, 3))
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    levels = np.repeat(list(SHARES), [int(N_RECORDS * share) for share in SHARES.values()])
    private = slice(0, N_RECORDS)
    public = slice(N_RECORDS, N_RECORDS + N_PUBLIC)
    return {
        "X": X[private],
        "y": y[private],
        "levels": generator.permutation(levels),
        "X_public": X[public],
        "y_public": y[public],
        "X_test": X[N_RECORDS + N_PUBLIC :],
        "y_test": y[N_RECORDS + N_PUBLIC :],
    }


def classifier(**settings):
    defaults = {
        "teacher": STUMP,
        "n_teachers": 10,
        "student": LogisticRegression(),
        "aggregator": GNMax(sigma=12),
        "noise_seed": 3,
        "random_state": 3,
    }
    return PATEClassifier(**{**defaults, **settings})


def fitted(data, budgets=None, keep_sensitive=False, **settings):
    budgets = POLICY.assign(data["levels"]) if budgets is None else budgets
    return classifier(**settings).fit(
        data["X"],
        data["y"],
        budgets=budgets,
        X_public=data["X_public"],
        keep_sensitive=keep_sensitive,
    )


def generous(data):
    return np.full(len(data["X"]), 1e4)


class OpenHanded(PATEClassifier):
    """Fits on (X, y) alone, as scikit-learn's checks do: X is public, budgets are ample."""

    def fit(self, X, y):
        return super().fit(X, y, budgets=1e6, X_public=X, public_may_overlap=True)


@parametrize_with_checks(
    [
        OpenHanded(
            n_teachers=3,
            aggregator=GNMax(sigma=0.5),
            noise_seed=1,
            random_state=0,
        )
    ],
    expected_failed_checks=lambda estimator: {
        "check_dtype_object": "wants the teacher's own message, which may quote private records"
    },
)
def test_scikit_learns_rules(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        check(estimator)


def test_settings_survive_cloning_and_fitting(data):
    settings = {
        "personalisation": Weighting("budget"),
        "aggregator": ConfidentGNMax(1, 15, 12),
        "teacher": STUMP,
        "noise_seed": 4,
        "queries": Queries(max_queries=30),
    }
    model = classifier(**settings)
    copy = clone(model)
    assert copy.get_params()["aggregator"] == settings["aggregator"]
    assert copy.get_params()["personalisation"] == settings["personalisation"]
    before = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(
        data["X"], data["y"], budgets=POLICY.assign(data["levels"]), X_public=data["X_public"]
    )
    assert {name: repr(value) for name, value in model.get_params().items()} == before
    assert not hasattr(clone(model), "student_")
    copy.set_params(teacher__max_depth=1, n_teachers=7)
    assert (copy.teacher.max_depth, copy.n_teachers) == (1, 7)
    assert (model.teacher.max_depth, model.n_teachers) == (2, 10)


def test_it_learns_and_says_what_it_did(data):
    model = fitted(data, generous(data), aggregator=GNMax(sigma=1))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 3
    assert model.stop_reason_ == "queries"
    assert model.n_queries_ == len(model.labels_) == N_PUBLIC
    assert sorted(model.labelled_indices_.tolist()) == list(range(N_PUBLIC))
    assert (model.labels_ == data["y_public"][model.labelled_indices_]).mean() > 0.9
    assert model.score(data["X_test"], data["y_test"]) > 0.9
    proba = model.predict_proba(data["X_test"])
    assert proba.sum(axis=1) == pytest.approx(1)
    assert (model.classes_[proba.argmax(axis=1)] == model.predict(data["X_test"])).all()


@pytest.mark.parametrize("guarantee", ["worst-case", "data-dependent"])
@pytest.mark.parametrize("aggregator", list(AGGREGATORS))
@pytest.mark.parametrize("personalisation", list(PERSONALISATIONS))
def test_nobody_overspends_whatever_is_combined(data, personalisation, aggregator, guarantee):
    model = fitted(
        data,
        personalisation=personalisation,
        aggregator=AGGREGATORS[aggregator],
        account=Account(guarantee),
        keep_sensitive=True,
    )
    table = model.privacy_.by_group()
    spent = table["epsilon_spent" if guarantee == "worst-case" else "sensitive_epsilon_spent"]
    assert table["epsilon"].to_dict() == {"high": 2.0, "average": 4.0, "low": 8.0}
    assert table["owners"].to_dict() == {"high": 90, "average": 54, "low": 36}
    assert (spent > 0).all()
    assert (spent <= table["epsilon"]).all()
    assert len(model.labels_) > 0
    assert set(model.predict(data["X_test"])) <= {"no", "yes"}
    if (
        guarantee == "worst-case"
    ):  # labels charged as labels may be paid for until the questions run out
        ended = "queries" if model.privacy_.price == "labels" else "budget"
        assert model.stop_reason_ in ("budget", ended)


@pytest.mark.parametrize("personalisation", ["uniform", "upsampling", "weighting"])
@pytest.mark.parametrize("aggregator", ["gnmax", "confident"])
def test_spending_follows_the_closed_form_and_stops_at_the_last_affordable_query(
    data, personalisation, aggregator
):
    mechanism = AGGREGATORS[aggregator]
    account = Account(price="histogram")
    model = fitted(data, personalisation=personalisation, aggregator=mechanism, account=account)
    scale = model.plan_.electorate(0).ballot(0).scale
    room = []
    for name, row in model.privacy_.by_group().iterrows():
        per_answer = 2 * (model.plan_.groups[name].sensitivity / (12 * scale)) ** 2
        per_check = 0.0
        if aggregator == "confident":
            per_check = (model.plan_.groups[name].sensitivity / (15 * scale)) ** 2
        used = model.n_queries_ * per_check + len(model.labels_) * per_answer
        assert row["epsilon_spent"] == pytest.approx(float(gdp_epsilon(math.sqrt(used), 1e-5)))
        assert gdp_delta(math.sqrt(used), row["epsilon"]) <= 1e-5
        one_more = math.sqrt(used + per_check + per_answer)
        room.append(gdp_delta(one_more, row["epsilon"]) <= 1e-5)
    assert not all(room)


@pytest.mark.parametrize("order", list(itertools.permutations(SHARES)))
def test_groups_pay_by_name_whatever_the_order_of_the_policy(data, order):
    policy = Policy({name: POLICY.levels[name] for name in order})
    for personalisation in PERSONALISATIONS:
        table = fitted(data, policy.assign(data["levels"]), personalisation=personalisation)
        table = table.privacy_.by_group()
        assert table["epsilon"].to_dict() == {"high": 2.0, "average": 4.0, "low": 8.0}
        assert (table["epsilon_spent"] <= table["epsilon"]).all()
        if personalisation == "weighting":
            assert (table["spent_share"] > 0.9).all()


@pytest.mark.parametrize("guarantee", ["worst-case", "data-dependent"])
@pytest.mark.parametrize("aggregator", list(AGGREGATORS))
def test_with_one_common_budget_all_personalisations_release_the_same_labels(
    data, aggregator, guarantee
):
    released = set()
    for personalisation in set(PERSONALISATIONS) - {"bagging"}:  # which has other teachers
        model = fitted(
            data,
            np.full(N_RECORDS, 3.0),
            personalisation=personalisation,
            aggregator=AGGREGATORS[aggregator],
            account=Account(guarantee),
            keep_sensitive=True,
        )
        row = model.privacy_.groups[0]
        released.add(
            (
                tuple(model.labels_),
                tuple(model.labelled_indices_),
                model.n_queries_,
                round(row.epsilon_spent, 9),
            )
        )
    assert len(released) == 1


@pytest.mark.parametrize("personalisation", list(PERSONALISATIONS))
@pytest.mark.filterwarnings("ignore:.*NO PRIVACY:collegium.errors.PrivacyWarning")
def test_without_privacy_the_labels_are_those_of_the_plain_ensemble(data, personalisation):
    model = fitted(
        data,
        np.full(N_RECORDS, math.inf),
        personalisation=personalisation,
        aggregator=GNMax(sigma=0.01),
        keep_sensitive=True,
    )
    assert (model.stop_reason_, len(model.labels_)) == ("queries", N_PUBLIC)
    weights = np.ones(model.plan_.n_teachers)
    counts = model.sensitive_votes_.counts(model.labelled_indices_, weights)
    clear = np.abs(counts[:, 0] - counts[:, 1]) >= 1  # 70 standard deviations of noise
    assert clear.sum() > 40
    plain = model.classes_[counts.argmax(axis=1)]
    assert (model.labels_[clear] == plain[clear]).all()
    row = model.privacy_.groups[0]
    assert 0 < row.epsilon_spent < math.inf
    assert math.isnan(row.share)
    assert any("NO PRIVACY" in line for line in model.privacy_.sentences())


@pytest.mark.filterwarnings("ignore:.*NO PRIVACY:collegium.errors.PrivacyWarning")
def test_unlimited_owners_do_not_lift_the_limit_of_others(data):
    epsilons = np.where(np.arange(N_RECORDS) % 2, math.inf, 2.0)
    for personalisation in PERSONALISATIONS:
        model = fitted(data, epsilons, personalisation=personalisation)
        table = model.privacy_.by_group()
        assert model.stop_reason_ == "budget"
        assert 0 < table.loc["ε=2", "epsilon_spent"] <= 2


# What the fitted object holds


def everything_in(thing):
    """All objects reachable by attributes, items and elements, with the names of attributes."""
    seen, found, waiting = set(), [], [("", thing)]
    while waiting:
        name, item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        found.append((name, item))
        if isinstance(item, dict):
            waiting += [(str(key), value) for key, value in item.items()]
        elif isinstance(item, (list, tuple, set)):
            waiting += [(name, value) for value in item]
        elif hasattr(item, "__dict__") and not isinstance(item, type):
            waiting += list(vars(item).items())
    return found


@pytest.mark.parametrize("guarantee", ["worst-case", "data-dependent"])
@pytest.mark.parametrize("aggregator", ["gnmax", "interactive"])
@pytest.mark.parametrize("keep", [False, True])
def test_the_fitted_object_holds_nothing_of_the_private_records(data, guarantee, aggregator, keep):
    owners = [f"patient-{number}-of-the-clinic" for number in range(N_RECORDS)]
    model = fitted(
        data,
        POLICY.assign(data["levels"], owners),
        teacher=KNeighborsClassifier(3),  # a teacher that is its training data
        aggregator=AGGREGATORS[aggregator],
        account=Account(guarantee),
        preprocessing=FunctionTransformer(),
        keep_sensitive=keep,
    )
    stored = pickle.dumps(model)
    values = [struct.pack("<d", value) for value in data["X"].ravel()]
    found = everything_in(pickle.loads(stored))
    kinds = (Teacher, VoteTable, Accountant, Assignment, Budgets, KNeighborsClassifier)
    sensitive = [
        name
        for name, item in found
        if name.startswith("sensitive_") or (isinstance(item, kinds) and name != "teacher")
    ]
    records = sum(value in stored for value in values)
    assert b"of-the-clinic" not in stored
    if keep:  # the search works: it finds what is there
        assert sensitive
        assert records == len(values)
    else:
        assert sensitive == []
        assert records == 0
        assert not any(getattr(item, "shape", ()) == (N_PUBLIC, 10) for _, item in found)


def test_a_refit_forgets_what_an_earlier_fit_kept(data):
    model = fitted(data, keep_sensitive=True)
    assert hasattr(model, "sensitive_votes_")
    frame = pd.DataFrame(data["X"], columns=list("abc"))
    public = pd.DataFrame(data["X_public"], columns=list("abc"))
    model.fit(frame, data["y"], budgets=generous(data), X_public=public, keep_sensitive=True)
    model.fit(data["X"], data["y"], budgets=generous(data), X_public=data["X_public"])
    assert not [name for name in vars(model) if name.startswith("sensitive_")]
    assert not hasattr(model, "feature_names_in_")


def test_a_failed_refit_leaves_no_student_of_other_data(data):
    model = fitted(data)
    with pytest.raises(InputError):
        model.fit(data["X"], data["y"], budgets=[1.0], X_public=data["X_public"])
    with pytest.raises(NotFittedError):
        model.predict(data["X_test"])


def test_data_dependent_spending_is_hidden_unless_sensitive_things_are_kept(data):
    for keep in (False, True):
        model = fitted(data, account=Account("data-dependent"), keep_sensitive=keep)
        table = model.privacy_.by_group()
        assert "epsilon_spent" not in table.columns
        assert table["sensitive_epsilon_spent"].isna().all() == (not keep)
        assert "epsilon_spent" not in str(model.privacy_.to_dict())


# Noise


@pytest.mark.filterwarnings("ignore:.*NO PRIVACY:collegium.errors.PrivacyWarning")
@pytest.mark.parametrize("aggregator", [GNMax(sigma=1e4), LNMax(gamma=1e-4)])
def test_secure_noise_is_fresh_in_every_fit_and_seeded_noise_is_not(data, aggregator):
    # Labels are coin flips here: 60 of them agree by chance with probability 2⁻⁶⁰.
    unlimited = np.full(N_RECORDS, math.inf)
    secure = [fitted(data, unlimited, aggregator=aggregator, noise_seed=None) for _ in range(2)]
    assert secure[0].labelled_indices_.tolist() == secure[1].labelled_indices_.tolist()
    assert secure[0].labels_.tolist() != secure[1].labels_.tolist()
    assert all(model.privacy_.noise_is_private for model in secure)
    seeded = [fitted(data, unlimited, aggregator=aggregator, noise_seed=seed) for seed in (1, 1, 2)]
    assert seeded[0].labels_.tolist() == seeded[1].labels_.tolist()
    assert seeded[0].labels_.tolist() != seeded[2].labels_.tolist()
    assert not any(model.privacy_.noise_is_private for model in seeded)
    assert "NOT PRIVATE" in seeded[0].privacy_.title


def test_random_state_decides_everything_public(data):
    one, same, other = (fitted(data, random_state=seed) for seed in (5, 5, 6))
    assert one.labelled_indices_.tolist() == same.labelled_indices_.tolist()
    assert one.labels_.tolist() == same.labels_.tolist()
    assert one.labelled_indices_.tolist() != other.labelled_indices_.tolist()


def test_parallel_training_changes_nothing(data):
    one, two = (fitted(data, generous(data), n_jobs=n_jobs) for n_jobs in (None, 2))
    assert one.labels_.tolist() == two.labels_.tolist()


# Preprocessing


class Spy(TransformerMixin, BaseEstimator):
    """Records what it was fitted on and what it was asked to transform."""

    fits: ClassVar[list] = []
    transforms: ClassVar[list] = []

    def fit(self, X, y=None):
        Spy.fits.append((np.array(X), y))
        return self

    def transform(self, X):
        Spy.transforms.append(np.array(X))
        return X


def test_preprocessing_is_fitted_on_public_records_only(data):
    Spy.fits.clear()
    Spy.transforms.clear()
    spy = Spy()
    model = fitted(data, preprocessing=spy)
    assert len(Spy.fits) == 1
    records, labels = Spy.fits[0]
    assert (records == data["X_public"]).all()
    assert labels is None
    assert [len(X) for X in Spy.transforms] == [N_PUBLIC, N_RECORDS]
    assert model.preprocessing_ is not spy
    model.predict(data["X_test"])
    assert len(Spy.fits) == 1
    assert len(Spy.transforms) == 3


def test_preprocessing_reaches_teachers_student_and_predictions(data):
    blind = FunctionTransformer(lambda X: X * 0)
    model = fitted(data, generous(data), preprocessing=blind, aggregator=GNMax(sigma=1))
    assert len(set(model.predict(data["X_test"]).tolist())) == 1


# Pipelines and searches


class Watching(PATEClassifier):
    """Records the budgets of every fit."""

    seen: ClassVar[list] = []

    def fit(self, X, y, *, budgets, X_public):
        Watching.seen.append((np.array(X), budgets, X_public))
        return super().fit(X, y, budgets=budgets, X_public=X_public)


@pytest.fixture
def routed():
    Watching.seen.clear()
    with config_context(enable_metadata_routing=True):
        yield Watching(
            teacher=STUMP,
            n_teachers=6,
            student=LogisticRegression(),
            aggregator=GNMax(sigma=12),
            noise_seed=3,
            random_state=5,
        ).set_fit_request(budgets=True, X_public=True)


def test_budgets_are_split_with_the_folds(data, routed):
    owners = np.array([f"p{i // 2}" for i in range(N_RECORDS)])
    levels = np.repeat(data["levels"][::2], 2)
    budgets = POLICY.assign(levels, owners)
    folds = KFold(3, shuffle=True, random_state=0)
    result = cross_validate(
        routed,
        data["X"],
        data["y"],
        cv=folds,
        params={"budgets": budgets, "X_public": data["X_public"]},
        return_estimator=True,
        error_score="raise",
    )
    assert len(Watching.seen) == 3
    for (X, part, public), (train, _) in zip(Watching.seen, folds.split(data["X"]), strict=True):
        assert np.array_equal(X, data["X"][train])
        assert part.owners[part.record_owner].tolist() == owners[train].tolist()
        assert part.record_groups().tolist() == levels[train].tolist()
        assert (public == data["X_public"]).all()
    for model in result["estimator"]:
        table = model.privacy_.by_group()
        assert (table["epsilon_spent"] <= table["epsilon"]).all()


def test_plain_epsilons_are_split_with_the_folds(data, routed):
    epsilons = np.where(data["levels"] == "high", 2.0, 4.0)
    cross_validate(
        routed,
        data["X"],
        data["y"],
        cv=KFold(2),
        params={"budgets": epsilons, "X_public": data["X_public"]},
        error_score="raise",
    )
    half = N_RECORDS // 2
    assert Watching.seen[0][1].tolist() == epsilons[half:].tolist()
    assert Watching.seen[1][1].tolist() == epsilons[:half].tolist()


def test_it_works_inside_a_pipeline_and_a_grid_search_in_parallel(data, routed):
    model = clone(routed).set_params(random_state=1)
    search = GridSearchCV(
        make_pipeline(FunctionTransformer(), model),
        {"watching__personalisation": ["uniform", "weighting"]},
        cv=2,
        n_jobs=2,
        error_score="raise",
    )
    with parallel_config(backend="threading"):  # other processes: the test of parallel training
        search.fit(
            data["X"],
            data["y"],
            budgets=POLICY.assign(data["levels"]),
            X_public=data["X_public"],
        )
    assert search.best_estimator_[-1].privacy_.by_group()["owners"].sum() == N_RECORDS
    assert set(search.predict(data["X_test"])) <= {"no", "yes"}


# Tables and columns


def frames(data):
    def frame(X):
        table = pd.DataFrame(X, columns=["age", "weight", "dose"])
        table["sex"] = np.where(X[:, 2] > 0, "f", "m")
        return table

    return frame(data["X"]), frame(data["X_public"]), frame(data["X_test"])


def table_classifier(**settings):
    columns = make_column_transformer(
        (StandardScaler(), ["age", "weight"]), (OneHotEncoder(), ["sex"])
    )
    model = make_pipeline(columns, LogisticRegression())
    return classifier(teacher=model, student=model, aggregator=GNMax(sigma=1), **settings)


def test_tables_work_from_end_to_end_whatever_the_order_of_columns(data):
    private, public, test = frames(data)
    budgets = Budgets.from_epsilons(generous(data))
    model = table_classifier().fit(private, data["y"], budgets=budgets, X_public=public)
    assert model.feature_names_in_.tolist() == ["age", "weight", "dose", "sex"]
    assert model.score(test, data["y_test"]) > 0.85
    other = table_classifier().fit(
        private, pd.Series(data["y"]), budgets=budgets, X_public=public[public.columns[::-1]]
    )
    assert other.labels_.tolist() == model.labels_.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="dose"), "lack dose"),
        (lambda t: t.assign(extra=1), "also have extra"),
        (lambda t: t.rename(columns={"age": "Age"}), "lack age and also have Age"),
        (lambda t: t.assign(age=t["age"].astype(str)), "'age' holds text.*numbers"),
        (lambda t: t.assign(sex=1.0), "'sex' holds numbers.*text"),
        (lambda t: t.drop(columns="sex").to_numpy(), "give both in the same form"),
        (lambda t: t.iloc[:0], "public records are empty"),
        (lambda t: None, "public records are missing"),
    ],
)
def test_public_tables_must_look_like_private_ones(data, change, message):
    private, public, _ = frames(data)
    with pytest.raises(InputError, match=message) as error:
        table_classifier().fit(private, data["y"], budgets=generous(data), X_public=change(public))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:, :2], "the same features"),
        (lambda X: X.astype(str), "hold text, private ones numbers"),
        (lambda X: X[0], "Reshape your data"),
        (lambda X: [[1.0], [2.0, 3.0]], "public records have rows of different lengths"),
    ],
)
def test_public_arrays_must_look_like_private_ones(data, change, message):
    with pytest.raises(InputError, match=message) as error:
        classifier().fit(
            data["X"], data["y"], budgets=generous(data), X_public=change(data["X_public"])
        )
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("what", ["y", "budgets"])
def test_labels_and_budgets_must_be_one_per_record(data, what):
    given = {"y": data["y"], "budgets": generous(data)}
    given[what] = given[what][:-1]
    name = {"y": "labels", "budgets": "budgets"}[what]
    with pytest.raises(InputError, match=f"180 private records, but 179 {name}"):
        classifier().fit(data["X"], given["y"], budgets=given["budgets"], X_public=data["X_public"])


@pytest.mark.parametrize("shuffled", ["X", "y", "levels", "epsilons"])
def test_one_index_in_two_orders_is_refused(data, shuffled):
    order = np.random.default_rng(0).permutation(N_RECORDS)
    given = {
        "X": pd.DataFrame(data["X"], columns=list("abc")),
        "y": pd.Series(data["y"]),
        "levels": pd.Series(data["levels"]),
        "epsilons": pd.Series(generous(data)),
    }
    given[shuffled] = given[shuffled].iloc[order]
    budgets = given["epsilons"] if shuffled == "epsilons" else POLICY.assign(given["levels"])
    public = pd.DataFrame(data["X_public"], columns=list("abc"))
    with pytest.raises(InputError, match=r"one index in two orders.*reset_index"):
        classifier().fit(given["X"], given["y"], budgets=budgets, X_public=public)


def test_what_a_student_is_judged_by_is_in_one_order_and_complete(data):
    names = list("abc")
    train, public, test = (
        pd.DataFrame(data[x], columns=names) for x in ("X", "X_public", "X_test")
    )
    kept = np.random.default_rng(0).permutation(N_RECORDS)  # as train_test_split leaves rows
    y, levels = pd.Series(data["y"])[kept], pd.Series(data["levels"])[kept]
    budgets = POLICY.assign(levels)
    model = classifier(aggregator=GNMax(sigma=1), classes=["no", "yes"]).fit(
        train.loc[kept], y, budgets=np.full(N_RECORDS, 1e4), X_public=public
    )
    assert budgets.index.equals(y.index)
    truth = pd.Series(data["y_test"])
    assert model.score(test, truth) == model.score(test[::-1], truth[::-1])
    assert model.score(test[::-1], truth[::-1].to_numpy()) == model.score(test, truth.tolist())
    for judge in (model.score, model.quality, model.effects):
        with pytest.raises(InputError, match="test records and classes have one index in two"):
            judge(test, truth[::-1])
    with pytest.raises(InputError, match=r"^11 of 200 test records have no class: drop them"):
        model.score(test, truth.where(truth.index > 10))


# Classes


def test_a_class_that_nobody_saw_warns_and_keeps_its_place(data):
    with pytest.warns(PrivacyWarning, match="no teacher has a record of class maybe"):
        model = fitted(
            data, generous(data), classes=["maybe", "yes", "no"], aggregator=GNMax(sigma=1)
        )
    assert model.classes_.tolist() == ["maybe", "yes", "no"]
    proba = model.predict_proba(data["X_test"])
    assert proba.shape == (200, 3)
    assert model.score(data["X_test"], data["y_test"]) > 0.85


def test_labels_outside_the_classes_are_refused_without_being_quoted(data):
    labels = data["y"].astype(object)
    labels[7] = "secret illness"
    with pytest.raises(InputError, match=r"1 record\(s\).*record 8 .*allowed are no, yes") as error:
        classifier(classes=["no", "yes"]).fit(
            data["X"], labels, budgets=generous(data), X_public=data["X_public"]
        )
    assert "illness" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({"classes": ["no"]}, None, "at least 2 classes"),
        ({"classes": ["no", "no"]}, None, "different names"),
        ({}, np.full(N_RECORDS, "no"), "at least 2 classes, got 1 class"),
        ({}, np.linspace(0, 1, N_RECORDS), "Unknown label type"),
        ({}, np.array([None] + ["no"] * (N_RECORDS - 1), dtype=object), r"1 record\(s\) without a"),
        ({}, np.full((N_RECORDS, 2), "no"), "labels must be one column"),
    ],
)
def test_unusable_labels_are_refused(data, settings, y, message):
    y = data["y"] if y is None else y
    with pytest.raises(InputError, match=message) as error:
        classifier(**settings).fit(data["X"], y, budgets=generous(data), X_public=data["X_public"])
    assert "\n" not in str(error.value)


# Stopping, and refusing before anything is spent


@pytest.mark.parametrize(
    ("settings", "reason", "queries"),
    [({"max_queries": 7}, "queries", 7), ({"max_labels": 5}, "labels", 5), ({}, "queries", 60)],
)
def test_voting_ends_where_it_is_told_to(data, settings, reason, queries):
    model = fitted(data, generous(data), queries=Queries(**settings))
    assert (model.stop_reason_, model.n_queries_) == (reason, queries)
    assert len(model.labels_) == queries


@pytest.mark.parametrize("guarantee", ["worst-case", "data-dependent"])
def test_when_nothing_was_released_the_statement_still_tells_the_cost(data, guarantee):
    model = classifier(
        aggregator=ConfidentGNMax(threshold=1000, sigma_threshold=15, sigma=12),
        account=Account(guarantee),
    )
    with pytest.raises(NothingReleasedError, match="privacy_") as error:
        model.fit(
            data["X"],
            data["y"],
            budgets=POLICY.assign(data["levels"]),
            X_public=data["X_public"],
            keep_sensitive=True,
        )
    assert "\n" not in str(error.value)
    for row in model.privacy_.groups:
        assert row.epsilon_spent <= row.budget.epsilon
        if guarantee == "worst-case":  # such clear rejections cost next to nothing otherwise
            assert row.epsilon_spent > 0
    assert len(model.labels_) == 0
    with pytest.raises(NotFittedError):
        model.predict(data["X_test"])


class Untouchable(ClassifierMixin, BaseEstimator):
    """A teacher that must not be trained."""

    def fit(self, X, y):
        raise AssertionError("training began before the settings were checked")

    def predict(self, X):
        return X


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"aggregator": GNMax(sigma=0.1)}, "group 'high'.*cannot afford a single answer"),
        ({"aggregator": LNMax(gamma=50)}, "group 'high'.*cannot afford a single answer"),
        ({"account__guarantee": "best"}, "guarantee must be one of worst-case, data-dependent"),
        ({"personalisation": "best"}, "allowed are uniform, upsampling, weighting, vanishing"),
        ({"personalisation__rule": "best"}, "no weight rule 'best'"),
        ({"personalisation__assignment": "best"}, "must be one of hash, balanced"),
        ({"n_teachers": 181}, "181 teachers, but only 180 owners"),
        ({"n_teachers": 0}, "at least 1"),
    ],
)
def test_unusable_settings_are_refused_before_training(data, settings, message):
    model = classifier(teacher=Untouchable())
    with pytest.raises(InputError, match=message) as error:
        model.set_params(**settings).fit(
            data["X"],
            data["y"],
            budgets=POLICY.assign(data["levels"]),
            X_public=data["X_public"],
        )
    assert "\n" not in str(error.value)
    assert not hasattr(model, "privacy_")


def test_interactive_needs_a_student_with_probabilities(data):
    with pytest.raises(InputError, match="no predict_proba"):
        fitted(data, aggregator=AGGREGATORS["interactive"], student=RidgeClassifier())
    model = fitted(data, student=RidgeClassifier())
    assert not hasattr(model, "predict_proba")
    assert set(model.predict(data["X_test"])) <= {"no", "yes"}


def test_a_record_counts_once_for_each_owner_not_for_each_record(data):
    owners = np.arange(N_RECORDS) // 3
    model = fitted(data, Budgets.from_epsilons(np.full(N_RECORDS, 3.0), owners=owners))
    assert model.privacy_.by_group()["owners"].tolist() == [60]


def test_the_statement_says_what_the_way_of_dealing_owners_protects(data):
    assert "replaced or left blank" in fitted(data).privacy_.adjacency
    balanced = fitted(data, personalisation=Weighting(assignment="balanced")).privacy_.adjacency
    assert "is replaced; " in balanced and "blank" not in balanced


def test_predictions_need_the_features_of_the_fit(data):
    model = fitted(data)
    with pytest.raises(InputError, match="2 features, but PATEClassifier is expecting 3"):
        model.predict(data["X_test"][:, :2])
    with pytest.raises(NotFittedError):
        classifier().predict(data["X_test"])


def test_default_aggregator_is_the_published_one_for_250_teachers():
    published = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma=40)
    assert ConfidentGNMax().resolved(250) == published
    assert ConfidentGNMax().resolved(25) == ConfidentGNMax(20, 15, 4)


def test_fits_that_spend_the_same_budgets_again_are_told():
    """A second fit, and most of the same records in folds; not other people, nor seeded noise."""
    generator = np.random.default_rng(0)
    X, y, owners = generator.normal(size=(300, 3)), np.arange(300) % 2, np.arange(300).astype(str)

    def told(rows, noise_seed=None, X=X):
        model = PATEClassifier(n_teachers=20, aggregator=GNMax(sigma=10), noise_seed=noise_seed)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always", PrivacyWarning)
            budgets = Policy({"all": 8.0}).assign(["all"] * len(rows), owners=owners[rows])
            model.fit(X[rows], y[rows], budgets=budgets, X_public=np.eye(3)[np.arange(30) % 3])
        return [str(one.message) for one in found if "budgets were spent" in str(one.message)]

    assert not told(np.arange(100), noise_seed=1) and not told(np.arange(200))
    (said,) = told(np.arange(50, 200))
    assert "were spent 2 times" in said
    assert not told(np.arange(200), noise_seed=1)
    assert not told(np.arange(200, 300)) and not told(np.arange(200), X=X + 0.1)
