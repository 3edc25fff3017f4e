"""Tabular teachers: right on what they can know, equal alone and together, and of their shard only."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier

from collegium import Budgets, Uniform
from collegium.errors import InputError, ModelError
from collegium.models.batched import BatchedEstimator
from collegium.models.catalogue import build_model, build_preprocessing
from collegium.models.closed_form.kernel_regression import LEVEL, regress
from collegium.models.closed_form.tabular import TabularTeachers
from collegium.models.preprocessing import PrincipalTable, TabularEncoder
from collegium.pate.teachers.ensemble import TeacherEnsemble, train_teachers


def shards(n_shards=5, n=60, n_features=6, n_classes=3, seed=0):
    """Shards of different sizes whose class is the largest of the first columns."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(n_shards):
        X = generator.normal(size=(n + number, n_features)) / np.arange(1, n_features + 1)
        made.append((X, (X[:, :n_classes] * np.arange(1, n_classes + 1)).argmax(axis=1)))
    return made


def table(n, seed=0):
    generator = np.random.default_rng(seed)
    wealth = generator.normal(size=n)
    frame = pd.DataFrame(
        {
            "age": (40 + 10 * wealth + 5 * generator.normal(size=n)).round(),
            "gain": np.where(wealth > 1.2, 5000.0 * wealth, 0.0),
            "work": np.where(wealth + generator.normal(size=n) > 0, "office", "field"),
            "school": np.digitize(wealth + 0.5 * generator.normal(size=n), [-1, 0, 1]).astype(str),
        }
    )
    return frame, (wealth > 0.5).astype(int)


def test_it_offers_what_the_dispatcher_asks_for():
    assert isinstance(TabularTeachers(), BatchedEstimator)
    assert isinstance(clone(TabularTeachers(temper=2.0)), TabularTeachers)


@pytest.mark.parametrize("scale", ["given", "shard"])
def test_a_teacher_in_a_batch_equals_the_same_teacher_alone(scale):
    made, public = shards(), shards(1, 200, seed=9)[0][0]
    estimator = TabularTeachers(scale=scale)
    models = estimator.fit_shards(made, range(5), 3)
    together = estimator.predict_shards(models, public)
    for number, (X, y) in enumerate(made):
        alone = estimator.fit_shards([(X, y)], [number], 3)[0]
        np.testing.assert_allclose(models[number].scores(public), alone.scores(public), atol=1e-10)
        fitted = TabularTeachers(scale=scale).fit(X, y)
        assert (fitted.predict(public) == together[number]).all()


def test_a_teacher_depends_on_its_own_shard_only():
    made, public = shards(4), shards(1, 100, seed=9)[0][0]
    estimator = TabularTeachers()
    before = estimator.fit_shards(made, range(4), 3)
    other = [(100.0 * X + 7.0, (y + 1) % 3) for X, y in made]
    other[2] = made[2]
    after = estimator.fit_shards(other, range(4), 3)
    assert (before[2].scores(public) == after[2].scores(public)).all()
    assert not np.allclose(before[1].scores(public), after[1].scores(public))


def test_leaving_one_out_in_closed_form_is_leaving_one_out():
    """The errors that weigh the models, against training without each record in turn."""
    generator = np.random.default_rng(0)
    Z = generator.normal(size=(12, 3))
    Y = np.eye(2)[generator.integers(0, 2, 12)]
    K, amplitude = Z @ Z.T, 2.5
    left_out = np.empty_like(Y)
    full = amplitude * (K + LEVEL)
    for i in range(12):
        rest = np.delete(np.arange(12), i)
        solved = np.linalg.solve(full[np.ix_(rest, rest)] + np.eye(11), Y[rest])
        left_out[i] = full[i, rest] @ solved
    fit = regress(K, np.arange(12), Y, [amplitude], 1.0)
    assert fit.errors[0] == pytest.approx(np.mean((Y - left_out) ** 2), rel=1e-8)
    direct = amplitude * np.linalg.solve(full + np.eye(12), Y)
    np.testing.assert_allclose(fit.coefficients[0], direct, atol=1e-9)
    bold = regress(K, np.arange(12), Y, [amplitude / 4], 4.0)
    np.testing.assert_allclose(bold.coefficients[0], direct, atol=1e-9)


def test_anchors_represent_a_large_shard_well():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(300, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    test = generator.normal(size=(500, 4))
    truth = (test[:, 0] * test[:, 1] > 0).astype(int)
    exact = TabularTeachers().fit(X, y)
    fewer = TabularTeachers(max_anchors=100).fit(X, y)
    assert exact.score(test, truth) > 0.85
    assert fewer.score(test, truth) > exact.score(test, truth) - 0.03
    assert len(fewer.sensitive_model_.views[0].anchors) == 100
    again = TabularTeachers(max_anchors=100).fit(X, y)
    assert (again.predict_proba(test) == fewer.predict_proba(test)).all()


def test_anchors_that_are_all_records_change_nothing():
    """The approximation is exact in the limit: kernel and its Nyström form agree at full rank."""
    generator = np.random.default_rng(0)
    Z = generator.normal(size=(30, 3))
    Y = np.eye(2)[generator.integers(0, 2, 30)]
    K = Z @ Z.T  # rank 3: eight anchors span it
    exact = regress(K, np.arange(30), Y, [1.0, 10.0], 3.0)
    eight = regress(K[:, :8], np.arange(8), Y, [1.0, 10.0], 3.0)
    np.testing.assert_allclose(exact.errors, eight.errors, rtol=1e-6)
    for ours, theirs in zip(eight.coefficients, exact.coefficients, strict=True):
        np.testing.assert_allclose((K + 10)[:, :8] @ ours, (K + 10) @ theirs, atol=1e-6)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("scale", ["given", "shard"])
def test_tiny_shards_learn_something(size, scale):
    X = np.array([[0.0, 1.0], [4.0, 1.0], [0.5, 1.0], [4.5, 1.0], [0.2, 1.0]])[:size]
    y = np.array([0, 1, 0, 1, 0])[:size]
    model = TabularTeachers(scale=scale).fit(X, y)
    assert model.predict(np.array([[0.1, 1.0], [4.2, 1.0]])).tolist() == [0, 1]


def test_constant_columns_and_equal_records_do_no_harm():
    X, y = shards(1)[0]
    public = shards(1, 100, seed=3)[0][0]
    # The second differs by rounding of its own values alone.
    widened = lambda A: np.hstack([A, np.full((len(A), 1), 3.0), 15 + 1e-13 * A[:, :1]])  # noqa: E731
    for scale in ("given", "shard"):
        plain = TabularTeachers(scale=scale).fit(X, y).predict_proba(public)
        padded = TabularTeachers(scale=scale).fit(widened(X), y).predict_proba(widened(public))
        np.testing.assert_allclose(plain, padded, atol=1e-4)
        same = TabularTeachers(scale=scale).fit(np.ones((6, 3)), [0, 1, 1, 1, 0, 1])
        assert (same.predict(np.ones((2, 3))) == 1).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_are_refused_in_one_line(bad):
    X, y = shards(1)[0]
    X[3, 2] = bad
    with pytest.raises(
        ModelError, match=r"a shard contains NaN or infinity.*fill missing"
    ) as caught:
        train_teachers(TabularTeachers(), [(X, y)], [0], 3)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match="no table of numbers"):
        TabularTeachers().fit(np.array([["secret", "1"]] * 4), [0, 1, 0, 1])
    with pytest.raises(ModelError, match="6 records and 5 labels"):
        TabularTeachers().fit(np.ones((6, 2)), [0, 1, 0, 1, 0])


def test_public_records_with_other_columns_are_refused():
    X, y = shards(1)[0]
    with pytest.raises(InputError, match="5 features were given; allowed are the 6"):
        TabularTeachers().fit(X, y).predict(X[:, :5])


@pytest.mark.parametrize(
    "setting",
    [
        {"scale": "none"},
        {"powers": ()},
        {"widths": (0.0,)},
        {"amplitudes": (-1.0,)},
        {"temper": 0.0},
        {"boldness": float("nan")},
        {"max_anchors": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused(setting):
    X, y = shards(1)[0]
    with pytest.raises(InputError, match=f"{next(iter(setting))}.*(must|was given; allowed)"):
        TabularTeachers(**setting).fit(X, y)


def test_shards_of_one_class_and_empty_ones_go_through_the_dispatcher():
    X, y = shards(1)[0]
    batch = [(X, y), (X, np.ones(len(y), dtype=int)), (X[:0], y[:0]), (X[:2], np.array([0, 2]))]
    teachers = train_teachers(TabularTeachers(), batch, range(4), 3)
    assert [teacher.constant for teacher in teachers] == [-1, 1, -1, -1]
    assert teachers[2].sensitive_model is None
    assert set(np.unique(teachers[3].vote(X))) <= {0, 2}


def test_class_numbers_need_not_be_all_there():
    X, y = shards(1, n_classes=2)[0]
    model = TabularTeachers().fit_shards([(X, np.where(y == 1, 4, 1))], [0], 6)[0]
    assert set(np.unique(model.predict(X))) == {1, 4}


def test_labels_of_any_kind_and_probabilities():
    X, y = load_wine(return_X_y=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    model = TabularTeachers(scale="shard").fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.95
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (shares >= 0).all()
    assert (model.classes_[shares.argmax(axis=1)] == model.predict(X)).mean() > 0.99


def test_trained_teachers_can_be_pickled():
    X, y = shards(1)[0]
    model = TabularTeachers().fit_shards([(X, y)], [0], 3)[0]
    assert (pickle.loads(pickle.dumps(model)).scores(X) == model.scores(X)).all()


@settings(max_examples=8)
@given(st.floats(0.01, 100.0), st.floats(-50.0, 50.0), st.integers(0, 5))
@example(factor=0.01, shift=15.0, seed=0)
def test_units_and_origin_do_not_matter(factor, shift, seed):
    """All columns in other units (scale given), or each in its own (scale shard).

    An origin lies within 50 of a column's own units. One that is 1e12 deviations away rounds the column to
    a constant, which no model can undo.
    """
    X, y = shards(1, 30, seed=seed)[0]
    public = shards(1, 40, seed=seed + 100)[0][0]
    plain = TabularTeachers().fit(X, y).predict_proba(public)
    moved = TabularTeachers().fit(factor * X + shift, y).predict_proba(factor * public + shift)
    np.testing.assert_allclose(plain, moved, atol=1e-6)
    units = factor ** np.arange(X.shape[1])
    own = TabularTeachers(scale="shard")
    plain = clone(own).fit(X, y).predict_proba(public)
    moved = clone(own).fit(units * (X + shift), y).predict_proba(units * (public + shift))
    np.testing.assert_allclose(plain, moved, atol=1e-6)


def test_it_beats_forests_where_records_are_few():
    """15 shards of 40 records: on sklearn's breast cancer, mean accuracy of the teachers."""
    X, y = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(30)])
    ours, forests = [], []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(y))
        public, private = order[:369], order[369:].reshape(5, 40)
        Z = PrincipalTable().fit(frame.iloc[public]).transform(frame)
        for shard in private:
            ours.append(TabularTeachers().fit(Z[shard], y[shard]).score(Z[public], y[public]))
            forest = RandomForestClassifier(50, random_state=seed).fit(X[shard], y[shard])
            forests.append(forest.score(X[public], y[public]))
    assert np.mean(ours) > np.mean(forests) + 0.005


def test_an_ensemble_by_name_from_a_mixed_table():
    frame, y = table(900)
    public, _ = table(300, seed=1)
    budgets = Budgets.from_epsilons(np.ones(900), 1e-5)
    assignment = Uniform().plan_for(budgets, 9).assign(budgets, b"key")
    estimator = build_model("teachers.model", "tabular", {})
    truth = table(300, seed=1)[1]
    for kind in ("principal", "tabular"):
        encoder = build_preprocessing(kind, categorical="onehot", components=20, random_state=0)
        encoder.fit(public)
        ensemble = TeacherEnsemble(estimator, 0, n_classes=2)
        votes = ensemble.ask(
            ensemble.train(encoder.transform(frame), y, assignment), encoder.transform(public)
        )
        assert (votes == truth[:, None]).mean() > 0.85


def test_it_takes_what_the_tabular_encoder_gives():
    frame, y = table(200)
    for categorical in ("ordinal", "onehot"):
        X = TabularEncoder(categorical=categorical).fit(frame).transform(frame)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (
                TabularTeachers(scale="shard").fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.8
            )
