"""Ridge and logistic teachers: scikit-learn's solutions, batched as alone, and nothing shared."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import KernelCenterer, StandardScaler

from collegium import Budgets, PATEClassifier
from collegium.errors import InputError
from collegium.models.batched import BatchedEstimator
from collegium.models.catalogue import build_model
from collegium.models.closed_form.kernels import ShardKernel
from collegium.models.closed_form.logistic import LogisticTeachers
from collegium.models.closed_form.ridge import PENALTIES, RidgeTeachers
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.personalisation import Assignment

DIGITS, LABELS = load_digits(return_X_y=True)
X, Y, NEW = DIGITS[:150], LABELS[:150], DIGITS[1000:1100]
BOTH = pytest.mark.parametrize("cls", [RidgeTeachers, LogisticTeachers])
KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf"])


def mean_length(table):
    return ((table - table.mean(axis=0)) ** 2).sum(axis=1).mean()


def radial(table, new, gamma=0.5):
    """Centred radial kernels as the teachers define γ: by the mean squared distance."""
    gamma /= 2 * mean_length(table)
    centre = KernelCenterer()
    own = centre.fit_transform(rbf_kernel(table, gamma=gamma))
    return own, centre.transform(rbf_kernel(new, table, gamma=gamma))


def square_root(kernel):
    """Coordinates whose inner products are the kernel."""
    values, vectors = np.linalg.eigh(kernel)
    return vectors * np.sqrt(np.maximum(values, 0))


class TestSolutionsAreScikitLearns:
    @pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
    @pytest.mark.parametrize("labels", [Y, Y > 4, np.asarray(list("abcdefghij"))[Y]])
    def test_ridge(self, alpha, labels):
        ours = RidgeTeachers(alpha).fit(X, labels)
        theirs = RidgeClassifier(alpha * mean_length(X)).fit(X, labels)
        scores = ours.decision_function(NEW)
        if scores.ndim == 1:
            scores = scores / 2  # the difference of two opposite targets
        np.testing.assert_allclose(scores, theirs.decision_function(NEW), atol=2e-4)
        assert (ours.predict(NEW) == theirs.predict(NEW)).mean() > 0.99
        assert ours.classes_.tolist() == theirs.classes_.tolist()

    @pytest.mark.parametrize("alpha", [1e-2, 0.1])
    def test_radial_ridge(self, alpha):
        own, new = radial(X, NEW)
        targets = np.where(Y[:, None] == np.arange(10), 1.0, -1.0)
        theirs = KernelRidge(alpha=alpha * np.trace(own) / len(X), kernel="precomputed")
        theirs.fit(own, targets - targets.mean(axis=0))
        expected = theirs.predict(new) + targets.mean(axis=0)
        ours = RidgeTeachers(alpha, kernel="rbf").fit(X, Y).decision_function(NEW)
        np.testing.assert_allclose(ours, expected, atol=1e-3)

    @pytest.mark.parametrize("alpha", [1e-2, 1.0])
    def test_logistic(self, alpha):
        ours = LogisticTeachers(alpha, tolerance=1e-7).fit(X, Y)
        theirs = LogisticRegression(C=1 / (alpha * mean_length(X)), tol=1e-9, max_iter=10_000)
        theirs.fit(X, Y)
        np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=2e-4)

    def test_radial_logistic(self):
        own, _ = radial(X, NEW)
        coordinates = square_root(own)
        scale = np.trace(own) / len(X)
        theirs = LogisticRegression(C=1 / (0.01 * scale), tol=1e-9, max_iter=10_000)
        theirs.fit(coordinates, Y)
        ours = LogisticTeachers(0.01, kernel="rbf", tolerance=1e-7).fit(X, Y)
        np.testing.assert_allclose(
            ours.predict_proba(X), theirs.predict_proba(coordinates), atol=2e-3
        )

    def test_the_default_tolerance_changes_no_vote_that_matters(self):
        exact = LogisticTeachers(tolerance=1e-8).fit(X, Y).predict_proba(NEW)
        usual = LogisticTeachers().fit(X, Y).predict_proba(NEW)
        np.testing.assert_allclose(usual, exact, atol=0.01)

    @KERNELS
    def test_standardised_within_the_shard(self, kernel):
        scaler = StandardScaler().fit(X)
        ours = RidgeTeachers(0.1, kernel=kernel, standardise=True).fit(X, Y)
        plain = RidgeTeachers(0.1, kernel=kernel).fit(scaler.transform(X), Y)
        np.testing.assert_allclose(
            ours.decision_function(NEW),
            plain.decision_function(scaler.transform(NEW)),
            rtol=1e-3,
            atol=2e-3,
        )


class TestLeaveOneOut:
    @KERNELS
    @pytest.mark.parametrize("penalty", [1e-3, 0.1])
    def test_equals_training_without_each_record(self, kernel, penalty):
        from collegium.models.closed_form.ridge import _left_out_error

        table, labels = X[:40].astype(np.float64), Y[:40]
        targets = np.where(labels[:, None] == np.arange(10), 1.0, -1.0)
        shard = ShardKernel(table, kernel, 0.5, False)
        if kernel == "linear":
            coordinates = table - table.mean(axis=0)
        else:
            coordinates = square_root(radial(table, table)[0])
        residuals = []
        for out in range(40):
            rest = np.delete(np.arange(40), out)
            centre = coordinates[rest].mean(axis=0)
            rows, one = coordinates[rest] - centre, coordinates[out] - centre
            means = targets[rest].mean(axis=0)
            gram = rows @ rows.T + penalty * shard.scale * np.eye(39)
            predicted = one @ rows.T @ np.linalg.solve(gram, targets[rest] - means) + means
            residuals.append(targets[out] - predicted)
        centred = targets - targets.mean(axis=0)
        ours = _left_out_error(shard, centred, shard.vectors.T @ centred, penalty)
        assert ours == pytest.approx(np.mean(np.square(residuals)), rel=1e-5)

    def test_chooses_little_for_clean_and_much_for_noisy_labels(self):
        noise = np.random.default_rng(0).integers(0, 10, len(X))
        for labels, wanted in ((Y, PENALTIES[:9]), (noise, PENALTIES[-2:])):
            chosen = RidgeTeachers().fit(X, labels).decision_function(NEW)
            candidates = [RidgeTeachers(p).fit(X, labels).decision_function(NEW) for p in PENALTIES]
            distances = [np.abs(one - chosen).max() for one in candidates]
            assert PENALTIES[int(np.argmin(distances))] in wanted


class TestBatchedEqualsAlone:
    @BOTH
    @KERNELS
    def test_each_teacher_is_the_one_trained_alone(self, cls, kernel):
        estimator = cls(kernel=kernel)
        assert isinstance(estimator, BatchedEstimator)
        sizes = np.cumsum([0, 17, 150, 60, 2, 40])
        shards = [(DIGITS[a:b], LABELS[a:b]) for a, b in pairwise(sizes)]
        together = estimator.fit_shards(shards, range(5), 10)
        votes = estimator.predict_shards(together, NEW)
        for shard, model, vote in zip(shards, together, votes, strict=True):
            (alone,) = estimator.fit_shards([shard], [99], 10)
            np.testing.assert_array_equal(alone.sensitive_weights, model.sensitive_weights)
            assert (vote == model.predict(NEW)).mean() >= 0.99
            assert (vote == clone(estimator).fit(*shard).predict(NEW)).mean() >= 0.99
            assert np.isin(vote, shard[1]).all()

    @BOTH
    @KERNELS
    def test_other_shards_change_nothing(self, cls, kernel):
        shards = [(DIGITS[i : i + 50], LABELS[i : i + 50]) for i in (0, 50, 100)]
        changed = [(100 - X, (y + 1) % 10) for X, y in shards]
        estimator = cls(kernel=kernel)
        models = estimator.fit_shards(shards, [0, 0, 0], 10)
        others = estimator.fit_shards([changed[0], shards[1], changed[2]], [0, 0, 0], 10)
        assert pickle.dumps(models[1]) == pickle.dumps(others[1])

    @BOTH
    def test_in_an_ensemble(self, cls):
        budgets = Budgets.from_epsilons(np.ones(600), delta=1e-9)
        teachers = np.where(np.arange(600) < 590, np.arange(600) % 7, 7).astype(np.int32)
        assignment = Assignment(budgets, teachers[:, None], 9)
        codes = np.where(teachers == 7, 3, LABELS[:600])
        votes = []
        for at_once in (64, 2):
            estimator = cls(teachers_at_once=at_once)
            ensemble = TeacherEnsemble(estimator, seed=0, n_jobs=1, n_classes=10)
            trained = ensemble.train(DIGITS[:600], codes, assignment)
            votes.append(ensemble.ask(trained, DIGITS[600:900]))
        assert (votes[0][:, 8] == -1).all() and (votes[0][:, 7] == 3).all()
        for other in votes[1:]:
            assert (votes[0] == other).mean() > 0.999
        assert (votes[0][:, :7] == LABELS[600:900, None]).mean() > 0.75

    @KERNELS
    def test_data_far_from_the_origin_lose_nothing(self, kernel):
        near = RidgeTeachers(0.1, kernel=kernel).fit(X, Y)
        far = RidgeTeachers(0.1, kernel=kernel).fit(X + 1000, Y)
        np.testing.assert_allclose(
            near.decision_function(NEW), far.decision_function(NEW + 1000), atol=2e-3
        )
        models = [far.sensitive_model_]
        (votes,) = far.predict_shards(models, (NEW + 1000).astype(np.float32))
        assert (votes == near.predict(NEW)).mean() > 0.97

    @given(scale=st.floats(1e-3, 1e3), shift=st.floats(-10, 10))
    @settings(max_examples=20)
    def test_units_do_not_matter(self, scale, shift):
        for kernel in ("linear", "rbf"):
            plain = RidgeTeachers(kernel=kernel).fit(X[:60], Y[:60]).predict(NEW)
            other = RidgeTeachers(kernel=kernel).fit(X[:60] * scale + shift, Y[:60])
            assert (plain == other.predict(NEW * scale + shift)).mean() >= 0.98


class TestOddShards:
    @BOTH
    @KERNELS
    def test_two_records_and_equal_records(self, cls, kernel):
        for table in (X[:2], np.ones((6, 3)), np.vstack([X[:3]] * 2)):
            labels = np.arange(len(table)) % 2
            model = cls(kernel=kernel).fit(table, labels)
            assert np.isfinite(model.decision_function(table)).all()
            assert np.isin(model.predict(table), [0, 1]).all()

    @BOTH
    def test_integers_frames_and_single_precision(self, cls):
        expected = cls().fit(X, Y).predict(NEW)
        for convert in (lambda t: t.astype(np.uint8), pd.DataFrame, lambda t: t.astype("f")):
            assert (cls().fit(convert(X), Y).predict(convert(NEW)) == expected).mean() > 0.98

    @BOTH
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"kernel": "poly"}, "must be one of linear, rbf"),
            ({"gamma": 0}, "gamma must be finite and greater than 0, got 0"),
            ({"gamma": np.nan}, "gamma must be a number, got nan"),
            ({"alpha": -1.0}, "alpha must be finite and greater than 0, got -1.0"),
            ({"alpha": "much"}, "alpha must be a number, got 'much'"),
        ],
    )
    def test_parameters(self, cls, options, words):
        for call in (
            lambda: cls(**options).fit(X, Y),
            lambda: cls(**options).fit_shards([(X, Y)], [0], 10),
        ):
            with pytest.raises(InputError) as caught:
                call()
            assert words in str(caught.value) and "\n" not in str(caught.value)

    @BOTH
    @pytest.mark.parametrize(
        ("table", "labels", "words"),
        [
            (np.full((4, 2), np.nan), [0, 1, 0, 1], "missing, infinite"),
            (scipy.sparse.eye(4), [0, 1, 0, 1], "sparse"),
            (np.array([["a"], ["b"]]), [0, 1], "numbers"),
            (X[:3], [1, 1, 1], "at least 2 classes"),
            (X[:3], [1, 0], "one label per record"),
        ],
    )
    def test_records(self, cls, table, labels, words):
        with pytest.raises(InputError) as caught:
            cls().fit(table, labels)
        assert words in str(caught.value) and "\n" not in str(caught.value)

    def test_another_number_of_features(self):
        with pytest.raises(InputError, match=r"63 features.*expecting 64"):
            RidgeTeachers().fit(X, Y).predict(NEW[:, 1:])

    def test_names_in_studies(self):
        made = build_model("teachers.model", "ridge", {"kernel": "rbf"})
        assert isinstance(made, RidgeTeachers) and made.kernel == "rbf"
        assert isinstance(build_model("teachers.model", "logistic", {}), LogisticTeachers)


def test_as_teachers_of_a_private_classifier():
    model = PATEClassifier(RidgeTeachers(), n_teachers=10, noise_seed=0, random_state=0)
    budgets, public = np.full(1200, 64.0), DIGITS[1200:1500]
    model.fit(DIGITS[:1200], LABELS[:1200], budgets=budgets, X_public=public, keep_sensitive=True)
    assert model.score(DIGITS[1500:], LABELS[1500:]) > 0.6
