"""Public labels beside private records: never worse than the better of both, and what is strange is said."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_classification

import collegium as cg
from collegium.dpsgd.linear_model import as_rows
from collegium.dpsgd.losses import CrossEntropy
from collegium.dpsgd.public_labels import (
    COMBINED,
    PRIVATE,
    PUBLIC,
    PublicLabels,
    with_public_labels,
)
from collegium.dpsgd.taught_view import of_trees
from collegium.errors import StudentWarning
from collegium.evaluation.quality import PUBLIC_UNUSED
from collegium.models.preprocessing import BinnedTable, TaughtTable
from collegium.runs.views import View


def rows(n: int, n_features: int, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(n, n_features))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def labelled(
    n: int, n_classes: int, seed: int, sharpness: float = 30.0, n_features: int = 8
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, classes, and the parameters that made them."""
    truth = np.random.default_rng(99).normal(
        size=(n_features + 1, CrossEntropy(n_classes).n_outputs)
    )
    truth[-1] = 0
    X = rows(n, n_features, seed)
    scores = sharpness * (X @ truth[:-1])
    if n_classes == 2:
        scores = np.hstack([0 * scores, scores])
    gumbel = np.random.default_rng([seed, 1]).gumbel(size=scores.shape)
    return X, (scores + gumbel).argmax(axis=1), sharpness * truth


def loss(parameters: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    scores = X @ parameters[:-1] + 0.25 * parameters[-1]
    if scores.shape[1] == 1:
        scores = np.hstack([0 * scores, scores])
    scores = scores - scores.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y]))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("noise", [0.0, 3.0, 30.0, 300.0])
@pytest.mark.parametrize("n", [60, 400, 2000])
def test_the_result_is_as_good_as_the_better_of_both(n: int, noise: float, n_classes: int) -> None:
    X, y, truth = labelled(n, n_classes, seed=n)
    random = np.random.default_rng(7)
    private = truth + random.normal(0, noise, truth.shape)
    found = with_public_labels(private, X, y, np.arange(n_classes), noise, seed=1)
    public = with_public_labels(0 * private, X, y, np.arange(n_classes), seed=1)
    X_new, y_new, _ = labelled(20_000, n_classes, seed=5)
    mine, theirs = loss(private, X_new, y_new), loss(public.parameters, X_new, y_new)
    # What n labels can tell: a few parameters of weights cost about half a nat each over n.
    assert loss(found.parameters, X_new, y_new) <= min(mine, theirs) + 6 / n + 0.02


def test_noise_alone_is_left_out_and_a_perfect_model_stays() -> None:
    X, y, truth = labelled(1000, 2, seed=3)
    perfect = with_public_labels(truth, X, y, np.arange(2), seed=0)
    noise = np.random.default_rng(0).normal(0, 200, truth.shape)
    useless = with_public_labels(noise * 0 + 1e-9, X, y, np.arange(2), seed=0)
    assert perfect.chosen in (PRIVATE, "scaled")
    assert useless.chosen in (PUBLIC, COMBINED)
    assert "not needed" in useless.in_words or useless.chosen == COMBINED


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_that_mean_something_else_are_not_used(n_classes: int) -> None:
    X, y, truth = labelled(500, n_classes, seed=4)
    swapped = np.where(y == 0, 1, np.where(y == 1, 0, y))
    found = with_public_labels(truth, X, swapped, np.array(list("abc")[:n_classes]), seed=0)
    assert found.chosen == PRIVATE
    assert "contradict" in found.in_words and "call a, b is" in found.in_words
    assert np.array_equal(found.parameters, truth)


def test_another_share_of_classes_is_noticed() -> None:
    X, y, truth = labelled(4000, 2, seed=6, sharpness=3.0)
    kept = np.flatnonzero((y == 1) | (np.arange(len(y)) % 5 == 0))
    found = with_public_labels(truth, X[kept], y[kept], np.array(["well", "ill"]), seed=0)
    same = with_public_labels(truth, X, y, np.array(["well", "ill"]), seed=0)
    assert not same.notes
    assert "of another time or place" in found.notes[0]
    # Private records have the shares that count: nothing is moved towards those of selected labels.
    assert found.chosen != "scaled"


def test_records_of_another_place_are_noticed() -> None:
    """What the model is sure of is not so there: another truth, which agrees with it half of the way."""
    X, y, truth = labelled(2000, 2, seed=6, sharpness=8.0)
    elsewhere = np.where(np.random.default_rng(0).random(2000) < 0.35, 1 - y, y)
    found = with_public_labels(truth, X, elsewhere, np.arange(2), seed=0)
    assert "and expects" in found.notes[0]


@pytest.mark.parametrize("n", [1, 10, 39])
def test_few_labels_are_not_used(n: int) -> None:
    X, y, truth = labelled(n, 2, seed=8)
    found = with_public_labels(truth, X, y, np.arange(2), seed=0)
    assert found.chosen == PRIVATE and "too few" in found.in_words
    assert np.array_equal(found.parameters, truth)


def test_ten_classes_that_are_numbered_otherwise_are_not_used() -> None:
    X, y, truth = labelled(500, 10, seed=4)
    found = with_public_labels(truth, X, (y + 1) % 10, np.arange(10), seed=0)
    assert found.chosen == PRIVATE and np.array_equal(found.parameters, truth)
    assert (
        "contradict" in found.in_words and "Check that both mean the same classes" in found.in_words
    )


def test_noise_is_not_taken_for_a_contradiction() -> None:
    """Records of a class lie together, and noise moves them together: 4 standard deviations at once."""
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 400)
    X = np.eye(3)[y] + random.normal(0, 0.05, (400, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for _ in range(200):
        noise = random.normal(0, 1.0, (4, 3))
        found = with_public_labels(noise, X, y, np.arange(3), 1.0, seed=0)
        assert "contradict" not in found.in_words + " ".join(found.notes)


def test_a_class_without_labels_is_never_unlearnt() -> None:
    X, y, truth = labelled(500, 4, seed=9)
    some = y != 2
    found = with_public_labels(truth, X[some], y[some], np.arange(4), seed=0)
    assert found.chosen == PRIVATE and np.array_equal(found.parameters, truth)
    assert "at least 2 records of each class" in found.in_words


def test_the_judged_scores_never_saw_their_labels() -> None:
    """Labels that are coins: whoever had learnt them would be right about them."""
    X = rows(300, 200, 1)
    y = np.random.default_rng(2).integers(0, 2, 300)
    found = with_public_labels(np.zeros((201, 1)), X, y, np.arange(2), seed=0)
    # Standard error .029; six of them, so that one run in a billion fails by chance.
    assert all(abs(score - 0.5) < 0.18 for score in found.scores.values())


def test_numbers_are_combined_too() -> None:
    X = rows(600, 5, 1)
    truth = np.array([[1.0], [0.5], [-0.4], [0.0], [0.2], [0.0]])
    y = (X @ truth[:-1])[:, 0] + np.random.default_rng(0).normal(0, 0.05, 600)
    noisy = truth + np.random.default_rng(1).normal(0, 0.5, truth.shape)
    found = with_public_labels(noisy, X, y, np.empty(0), seed=0)
    assert np.abs(found.parameters - truth).max() < 0.1
    against = with_public_labels(-truth, X, y, np.empty(0), seed=0)
    assert "contradict" in against.in_words and np.array_equal(against.parameters, -truth)


class TestClassifier:
    X, y = make_classification(
        1400, 12, n_informative=6, n_classes=3, class_sep=1.5, random_state=3
    )

    def fitted(self, **settings: Any) -> cg.DPSGDClassifier:
        given = {"y_public": self.y[600:900], "budgets": 1.0, **settings}
        model = cg.DPSGDClassifier(
            classes=range(3),
            noise_seed=1,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(self.X[:600], self.y[:600], X_public=self.X[600:900], **given)

    def test_labels_help_cost_nothing_and_are_told_of(self) -> None:
        alone, both = self.fitted(y_public=None), self.fitted()
        assert alone.public_labels_ is None
        assert both.score(self.X[900:], self.y[900:]) >= alone.score(self.X[900:], self.y[900:])
        spent = [model.privacy_.by_group()["epsilon_spent"].tolist() for model in (alone, both)]
        assert spent[0] == spent[1]
        assert "Worth of each part" in both.public_labels_.in_words
        assert both.quality_.measured_on == "public records, cross-validated"
        assert abs(both.quality_.accuracy - both.score(self.X[900:], self.y[900:])) < 0.12

    def test_what_is_published_is_one_linear_model(self) -> None:
        import pickle

        model = self.fitted()
        again = pickle.loads(pickle.dumps(model.model_))
        assert np.array_equal(again.predict(self.X[900:]), model.predict(self.X[900:]))

    def test_other_labels_of_private_records_change_nothing_but_the_steps(self) -> None:
        """What is combined is made of released and public things: of equal parameters, equal results."""
        first, second = self.fitted(), self.fitted()
        assert np.array_equal(first.model_[-1][-1].coef_, second.model_[-1][-1].coef_)

    def test_public_records_of_which_no_class_is_known_are_public_records(self) -> None:
        fits = [
            cg.DPSGDClassifier(classes=range(3), noise_seed=1, steps=5).fit(
                self.X[:600],
                self.y[:600],
                budgets=10.0,
                X_public=self.X[600:900],
                y_public=unknown,
            )
            for unknown in (None, np.full(300, np.nan))
        ]
        assert fits[1].public_labels_ is None
        assert np.array_equal(fits[0].model_[-1][-1].coef_, fits[1].model_[-1][-1].coef_)

    @pytest.mark.parametrize(
        ("known", "why"),
        [(lambda y: y == 1, "do not show all that"), (lambda y: np.arange(300) < 10, "too few")],
        ids=["one class", "ten labels"],
    )
    def test_labels_that_are_not_used_are_said_to_be_so(self, known: Any, why: str) -> None:
        y_public = np.where(known(self.y[600:900]), self.y[600:900].astype(float), np.nan)
        model = cg.DPSGDClassifier(classes=range(3), noise_seed=1)
        with pytest.warns(StudentWarning, match=f"{why}.*not used"):
            model.fit(
                self.X[:600],
                self.y[:600],
                budgets=10.0,
                X_public=self.X[600:900],
                y_public=y_public,
            )
        assert model.quality_ is not None
        assert model.quality_.measured_on == PUBLIC_UNUSED
        assert "had not learnt" not in model.quality_.figures()

    def test_swapped_classes_are_warned_of(self) -> None:
        swapped = (self.y[600:900] + 1) % 3
        model = cg.DPSGDClassifier(classes=range(3), noise_seed=1)
        with pytest.warns(StudentWarning, match="contradict"):
            model.fit(
                self.X[:600],
                self.y[:600],
                budgets=10.0,
                X_public=self.X[600:900],
                y_public=swapped,
            )


class TestTrees:
    """Where trees of the labels are part of what the model sees, nothing is judged by what has seen it."""

    @staticmethod
    def people(n: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.intp]]:
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
        scores = 3 * np.sign(X["a"] * X["b"]) + X["c"]
        return X, np.asarray(rng.random(n) < 1 / (1 + np.exp(-scores)), dtype=np.intp)

    def fitted(self, labels: NDArray[Any], budgets: float = 1.0) -> cg.DPSGDClassifier:
        X, y = self.people(3000, 0)
        X_public, _ = self.people(len(labels), 1)
        model = cg.DPSGDClassifier(classes=[0, 1], noise_seed=1)
        return model.fit(X, y, budgets=budgets, X_public=X_public, y_public=labels)

    def test_they_help_and_are_told_of(self) -> None:
        X, y = self.people(4000, 2)
        labels = np.where(np.arange(2000) < 1000, self.people(2000, 1)[1], np.nan)
        with_labels, without = (self.fitted(known, 0.3) for known in (labels, labels * np.nan))
        assert with_labels.score(X, y) > without.score(X, y) + 0.03
        assert "what trees say that learnt from these labels" in with_labels.public_labels_.in_words
        assert with_labels.public_labels_.trees
        assert isinstance(with_labels.preprocessing_, TaughtTable)
        quality = with_labels.quality_.accuracy
        assert abs(quality - with_labels.score(X, y)) < 0.04

    def test_labels_that_are_chance_are_not_said_to_teach(self) -> None:
        found = []
        for seed in range(12):
            rows, _ = self.people(600, 10 + seed)
            y = np.random.default_rng(seed).integers(0, 2, 600).astype(float)
            told, _ = self.told(rows, y, seed)
            found.append(told.scores[PUBLIC] - max(y.mean(), 1 - y.mean()))
        # Of always the larger class there is nothing to be gained; 12 × 600 coins have a deviation of 0.006.
        assert np.mean(found) < 0.006

    @pytest.mark.parametrize("seed", range(3))
    def test_no_linear_model_learns_how_far_to_believe_trees(self, seed: int) -> None:
        """Trees that tell of its records have seen the labels of those that it is judged by."""
        rows, y = self.people(1000, seed)
        told, trees = self.told(rows, y.astype(float), seed)
        assert told.chosen in (COMBINED, PUBLIC)
        assert told.weights[2] > 0
        heard = told.parameters[-len(trees) : -1]
        assert heard == pytest.approx(told.weights[2] * trees[:-1])

    @staticmethod
    def told(rows: pd.DataFrame, y: NDArray[Any], seed: int) -> tuple[PublicLabels, Any]:
        """Combine with a private model that says nothing."""
        table = TaughtTable(BinnedTable(20), 2, random_state=seed)
        seen = as_rows(table.fit_transform(rows, y), "rows")
        trees = of_trees(View(table))
        nothing = np.zeros((seen.shape[1] + 1, 1))
        return with_public_labels(nothing, seen, y, np.arange(2), seed=seed, trees=trees), trees

    def test_swapped_labels_are_not_said_to_be_unused(self) -> None:
        labels = 1 - self.people(1000, 1)[1]
        with pytest.warns(StudentWarning, match="contradict") as told:
            model = self.fitted(labels, 8.0)
        assert model.public_labels_.chosen == PRIVATE
        assert not any("labels are not used" in str(one.message) for one in told)
        assert "trees that learnt from them are part of it" in model.public_labels_.in_words
