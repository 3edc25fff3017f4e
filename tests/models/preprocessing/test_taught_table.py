"""Trees of public labels as columns of a table: what they have seen, and what they have not."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from collegium.errors import InputError
from collegium.models.preprocessing import BinnedTable, CrossedTable, TaughtTable
from collegium.models.preprocessing.taught_table import can_teach

NO_SIGNAL = FunctionTransformer(feature_names_out="one-to-one")


def crossed(n, seed=0, labelled=None):
    """A class that no column tells alone."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    X["d"] = rng.choice(["x", "y", "z"], n)
    y = ((X["a"] * X["b"] > 0) ^ (X["d"] == "z")).to_numpy(dtype=float)
    known = y.copy()
    known[n if labelled is None else labelled :] = np.nan
    return X, y, known


def test_a_linear_model_sees_what_columns_do_together():
    X, y, known = crossed(3000, labelled=2000)
    other, truth, _ = crossed(3000, seed=1)
    scores = []
    for view, labels in ((BinnedTable(20), None), (TaughtTable(BinnedTable(20), 2), known)):
        view.fit(X, labels)
        model = LogisticRegression(C=1000.0, max_iter=2000)
        model.fit(view.transform(X)[2000:], y[2000:])  # as private records: no tree has seen them
        scores.append(roc_auc_score(truth, model.decision_function(view.transform(other))))
    assert scores[0] < 0.6
    assert scores[1] > 0.9


def test_labelled_records_are_shown_as_by_trees_that_have_not_seen_their_label():
    """Of labels that are chance, trees know by heart what they have seen, and nothing else."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1200, 4)), columns=list("abcd"))
    y = rng.integers(0, 2, 1200).astype(float)
    y[900:] = np.nan
    view = TaughtTable(StandardScaler(), 2)
    unseen = view.fit_transform(X, y)
    seen = view.transform(X)
    n = 900
    assert roc_auc_score(y[:n], seen[:n, -1]) > 0.8
    assert abs(roc_auc_score(y[:n], unseen[:n, -1]) - 0.5) < 0.06  # 3 standard deviations
    assert (seen[n:] == unseen[n:]).all()
    assert (seen[:, :-1] == unseen[:, :-1]).all()


@pytest.mark.parametrize("n_classes", [2, 3, None])
def test_lengths_are_bounded_and_columns_counted(n_classes):
    X, _, known = crossed(800, labelled=600)
    if n_classes == 3:
        known = np.where(np.isnan(known), np.nan, (X["d"] == "x") + known)
    view = TaughtTable(CrossedTable(20), n_classes, share=0.2)
    for shown in (view.fit_transform(X, known), view.transform(X)):
        assert shown.dtype == np.float32
        lengths = np.linalg.norm(shown, axis=1)
        assert (lengths <= 1 + 1e-5).all()
        assert (lengths >= np.sqrt(0.8) - 1e-5).all()
        own = shown[:, -view.n_taught_ :]
        assert (np.linalg.norm(own, axis=1) <= np.sqrt(0.2) + 1e-5).all()
    assert view.n_taught_ == (3 if n_classes == 3 else 1)
    assert view.n_cells_ == view.view_.n_cells_ > 0
    names = view.get_feature_names_out()
    assert len(names) == shown.shape[1]
    assert names[-1] == f"trees{view.n_taught_ - 1}"


def test_numbers_are_told_better_too():
    X, _, _ = crossed(2500)
    y = np.sign(X["a"] * X["b"]).to_numpy()
    known = np.where(np.arange(2500) < 1500, y, np.nan)
    view = TaughtTable(BinnedTable(20)).fit(X, known)
    shown = view.transform(X)
    fits = [
        LinearRegression().fit(part[1500:2000], y[1500:2000]).score(part[2000:], y[2000:])
        for part in (shown[:, :-1], shown)
    ]
    assert fits[0] < 0.2 < 0.6 < fits[1]


def test_each_record_is_shown_by_itself_and_the_same_bits_come_again():
    X, _, known = crossed(600, labelled=400)
    view = TaughtTable(CrossedTable(20), 2, random_state=3).fit(X, known)
    other, _, _ = crossed(300, seed=5)
    whole = view.transform(other)
    rows = [0, 7, 299]
    assert all((view.transform(other.iloc[[row]])[0] == whole[row]).all() for row in rows)
    assert view.transform(other.iloc[:0]).shape == (0, whole.shape[1])
    many = pd.concat([other] * 8)  # in several blocks
    assert (view.transform(many) == np.concatenate([whole] * 8)).all()
    again = TaughtTable(CrossedTable(20), 2, random_state=3).fit(X, known).transform(other)
    assert (again == whole).all()
    assert (pickle.loads(pickle.dumps(view)).transform(other) == whole).all()
    assert clone(view).get_params()["random_state"] == 3


def test_rows_of_numbers_may_have_gaps():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 3))
    y = (X[:, 0] > 0).astype(float)
    view = TaughtTable(NO_SIGNAL, 2).fit(X, y)
    strange = np.array([[np.nan, 1.0, 2.0], [np.inf, 0.0, 0.0], [1e300, -1e300, 0.0]])
    assert np.isfinite(view.transform(strange)).all()


@pytest.mark.parametrize(
    ("labels", "n_classes", "enough"),
    [
        (np.repeat([0.0, 1.0], 100), 2, True),
        (np.repeat([0.0, 1.0], [191, 9]), 2, False),
        (np.repeat([0.0, 1.0, np.nan], [90, 90, 900]), 2, False),
        (np.repeat([0.0, 1.0], 100), 3, False),
        (np.zeros(500), None, False),
        (np.linspace(-1, 1, 200), None, True),
    ],
)
def test_few_labels_teach_nothing(labels, n_classes, enough):
    assert can_teach(labels, n_classes) is enough
    if not enough:
        X = np.random.default_rng(0).normal(size=(len(labels), 2))
        with pytest.raises(InputError, match="labels are known; allowed are at least 200"):
            TaughtTable(StandardScaler(), n_classes).fit(X, labels)


def test_a_share_beyond_one_is_refused():
    X, _, known = crossed(400)
    with pytest.raises(InputError, match="share"):
        TaughtTable(StandardScaler(), 2, share=1.5).fit(X[["a", "b"]], known)
