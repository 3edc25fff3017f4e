"""PATEClassifier: which public records are asked about, and what the student sees of them."""

import pickle
import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB

from collegium import Account, GNMax, InteractiveGNMax, PATEClassifier, PrivacyWarning, Queries
from collegium.errors import InputError
from collegium.pate.queries.selection import query_order

IMAGES, DIGITS = load_digits(return_X_y=True)
PRIVATE, PUBLIC, TEST = slice(0, 1000), slice(1000, 1200), slice(1200, 1400)
EPSILONS = np.repeat([20.0, 40.0], 500)


def fitted(query_order="random", max_queries=None, **options):
    model = PATEClassifier(
        **{
            "teacher": GaussianNB(var_smoothing=0.01),
            "n_teachers": 20,
            "aggregator": GNMax(sigma=3),
            "student": LogisticRegression(C=0.1, max_iter=50),
            "noise_seed": 1,
            "random_state": 1,
            "queries": Queries(query_order, max_queries, max_labels=40),
            **options,
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(
            IMAGES[PRIVATE], DIGITS[PRIVATE], budgets=EPSILONS, X_public=IMAGES[PUBLIC]
        )


class Colours(TransformerMixin, BaseEstimator):
    """Makes text of every record: nothing that can be compared."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray([["red"] for _ in X], dtype=object)


class Seen(LogisticRegression):
    """Remembers how wide records were."""

    widths: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        self.widths.append(X.shape[1])
        return super().fit(X, y, sample_weight)


def test_orders_differ_and_spend_the_same():
    models = {kind: fitted(query_order=kind) for kind in ("random", "coverage", "active")}
    rows = {kind: model.labelled_indices_.tolist() for kind, model in models.items()}
    assert rows["random"] == fitted().labelled_indices_.tolist()
    assert rows["active"][:16] == rows["coverage"][:16] != rows["random"][:16]
    assert rows["active"] != rows["coverage"]
    for kind, model in models.items():
        assert len(set(rows[kind])) == 40
        assert model.privacy_ == models["random"].privacy_
        assert model.score(IMAGES[TEST], DIGITS[TEST]) > 0.5


def test_the_order_by_coverage_is_that_of_the_prepared_public_records():
    model = fitted(query_order="coverage", preprocessing=PCA(10, random_state=0), max_queries=30)
    points = PCA(10, random_state=0).fit(IMAGES[PUBLIC]).transform(IMAGES[PUBLIC])
    expected = query_order("coverage", points, seed=1)[:30]
    assert model.labelled_indices_.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"query_order": "best"}, "query_order must be one of random, coverage, active"),
        (
            {"query_order": "active", "account": Account("data-dependent")},
            "price depends on the votes",
        ),
        ({"query_order": "active", "aggregator": InteractiveGNMax()}, "'interactive'"),
        ({"query_order": "active", "student": RidgeClassifier()}, "has no predict_proba"),
        ({"query_order": "coverage", "preprocessing": Colours()}, "give numbers"),
        ({"query_order": "active", "preprocessing": Colours()}, "give numbers"),
        ({"preprocessing": {"student": "pixels"}}, "must be 'same', None or a transformer"),
        ({"preprocessing": {"student": 3}}, "must be 'same', None or a transformer"),
    ],
)
def test_what_cannot_be_is_refused_before_a_teacher_is_trained(options, reason):
    class Untrained(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("a teacher was trained")

    with pytest.raises(InputError, match=reason) as error:
        fitted(teacher=Untrained(), n_jobs=1, **options)
    assert "\n" not in str(error.value)


def test_a_student_sees_the_same_as_teachers_unless_told_otherwise():
    Seen.widths.clear()
    model = fitted(student=Seen(max_iter=50), preprocessing=PCA(12, random_state=0))
    assert set(Seen.widths) == {12} and model.student_preprocessing_ is model.preprocessing_
    Seen.widths.clear()
    raw = fitted(
        student=Seen(max_iter=50),
        preprocessing={"teacher": PCA(12, random_state=0), "student": None},
    )
    assert set(Seen.widths) == {64} and raw.student_preprocessing_ is None
    Seen.widths.clear()
    own = fitted(
        student=Seen(max_iter=50),
        preprocessing={"teacher": PCA(12, random_state=0), "student": PCA(30, random_state=0)},
    )
    assert set(Seen.widths) == {30} and own.preprocessing_.n_components_ == 12
    # Teachers, and so votes and labels, are the same whatever the student sees.
    assert raw.labels_.tolist() == own.labels_.tolist() == model.labels_.tolist()
    for one in (model, raw, own):
        again = pickle.loads(pickle.dumps(one))
        assert again.score(IMAGES[TEST], DIGITS[TEST]) == one.score(IMAGES[TEST], DIGITS[TEST])
        assert one.predict_proba(IMAGES[TEST]).shape == (200, 10)
        assert one.score(IMAGES[TEST], DIGITS[TEST]) > 0.5


def test_the_students_preprocessing_is_fitted_on_public_records_and_not_in_place():
    given = PCA(30, random_state=0)
    model = fitted(preprocessing={"teacher": PCA(12, random_state=0), "student": given})
    assert not hasattr(given, "components_")
    expected = PCA(30, random_state=0).fit(IMAGES[PUBLIC])
    assert np.array_equal(model.student_preprocessing_.components_, expected.components_)


@pytest.mark.parametrize("steering", ["active", "interactive"])
def test_a_steering_student_believes_what_it_sees(steering):
    Seen.widths.clear()
    options = {"query_order": "active"}
    if steering == "interactive":
        mechanism = InteractiveGNMax(threshold=4, sigma_threshold=3, sigma=3, refit_every=15)
        options = {"aggregator": mechanism}
    fitted(
        student=Seen(max_iter=50),
        preprocessing={"teacher": PCA(12, random_state=0), "student": PCA(30, random_state=0)},
        **options,
    )
    assert len(Seen.widths) >= 3 and set(Seen.widths) == {30}


def test_parameters_are_cloned_like_all_others():
    model = PATEClassifier(queries=Queries("active"), preprocessing={"student": PCA(3)})
    copy = clone(model)
    assert copy.queries == Queries("active") and copy.preprocessing["student"].n_components == 3
