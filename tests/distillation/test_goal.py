"""What a student is to be good at: one rule for its answers, made of public and released things."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import collegium as cg
from collegium.distillation.goal import (
    BalancedAnswers,
    answering,
    answering_as_voted,
    believed_shares,
    without_goal,
)
from collegium.distillation.share_matching import match_shares
from collegium.dpsgd.ensemble_choice import Choice
from collegium.errors import InputError
from collegium.students import RegressionStudent
from collegium.teachers import RidgeTeachers

N, PUBLIC, TEST = 3000, 600, 1500


def people(seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(N + PUBLIC + TEST, 6))
    score = X[:, 0] + 0.8 * X[:, 1] - 0.6 * X[:, 2]
    y = np.where(generator.random(len(X)) < 1 / (1 + np.exp(3.0 - 1.6 * score)), "yes", "no")
    assert 0.08 < (y == "yes").mean() < 0.16
    return X, y


def parts(X, y):
    return (X[:N], y[:N]), X[N : N + PUBLIC], (X[N + PUBLIC :], y[N + PUBLIC :])


def fitted(model):
    X, y = people()
    (X_private, y_private), X_public, test = parts(X, y)
    levels = np.where(np.arange(N) % 2, "high", "low")
    budgets = cg.Policy({"high": 3.0, "low": 2.0}).assign(levels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X_private, y_private, budgets=budgets, X_public=X_public)
    return model, X_public, test


class Chances:
    """Knows the chances of each class, by the number of the record."""

    classes_ = np.array(["a", "b", "c"])

    def __init__(self, chances):
        self.chances = chances

    def predict_proba(self, X):
        return self.chances[X]


class Counting(RegressionStudent):
    """Counts the records of each class that are beyond doubt."""

    def fit_released(self, X_public, queries, targets):
        self.given_ = (targets == 1).sum(axis=0)
        return super().fit_released(X_public, queries, targets)


def test_no_answers_made_of_the_chances_have_a_better_balanced_accuracy():
    chances = np.random.default_rng(3).dirichlet([3.0, 0.7, 0.3], 6)
    shares = chances.mean(axis=0)  # of six kinds of records, equally frequent

    def balanced(numbers):
        return sum(chances[row, code] / shares[code] for row, code in enumerate(numbers)) / 18

    best = max(balanced(numbers) for numbers in itertools.product(range(3), repeat=6))
    named = BalancedAnswers(Chances(chances), shares).predict(np.arange(6))
    mine = balanced(np.searchsorted(Chances.classes_, named))
    assert mine == pytest.approx(best)
    assert balanced(chances.argmax(axis=1)) < best - 0.05


def test_answers_change_and_chances_do_not():
    X, y = people()
    model = LogisticRegression().fit(X[:N], y[:N])
    student = answering("balanced", model, X[N:])
    assert np.array_equal(student.predict_proba(X[N:]), model.predict_proba(X[N:]))
    assert np.array_equal(student.decision_function(X[N:]), model.decision_function(X[N:]))
    assert (student.predict(X[N:]) == "yes").sum() > 2 * (model.predict(X[N:]) == "yes").sum()
    assert answering("accuracy", model, X[N:]) is answering("auc", model, X[N:]) is model
    assert without_goal(student) is without_goal(model) is model


def test_a_match_to_public_shares_makes_chances_and_leaves_balanced_votes_balanced():
    X, y = people()
    voted = LogisticRegression(class_weight="balanced").fit(X[:N], y[:N])
    matched = match_shares(voted, X[N:], np.array(["no", "yes"]), np.array([0.88, 0.12]))
    student = answering_as_voted("balanced", matched)
    assert student.predict_proba(X[N:])[:, 1].mean() == pytest.approx(0.12, abs=1e-3)
    assert np.array_equal(student.predict(X), voted.predict(X))
    assert answering_as_voted("auc", matched) is matched
    assert answering_as_voted("balanced", voted) is voted


def test_what_a_goal_needs_is_said():
    with pytest.raises(InputError, match=r"LinearSVC has no predict_proba, which goal 'balanced'"):
        answering("balanced", LinearSVC(), np.zeros((2, 2)))
    for model in (cg.PATEClassifier(goal="f1"), cg.DPSGDClassifier(goal="f1")):
        with pytest.raises(InputError, match=r"goal must be .*balanced.*got 'f1'"):
            model.fit([[0.0], [1.0]], [0, 1], budgets=1.0, X_public=[[0.0], [1.0]])
    with pytest.raises(InputError, match=r"goal 'balanced' takes the shares .* give X_public"):
        cg.DPSGDClassifier(goal="balanced").fit([[0.0], [1.0]], [0, 1], budgets=1.0)


def test_direct_training_pays_and_learns_the_same_for_every_goal(monkeypatch):
    models = {}
    for goal in ("accuracy", "balanced", "auc"):
        models[goal], X_public, (X, y) = fitted(
            cg.DPSGDClassifier(classes=["no", "yes"], noise_seed=1, goal=goal)
        )
    plain, balanced, ordered = (models[goal] for goal in ("accuracy", "balanced", "auc"))
    assert np.array_equal(plain.predict_proba(X), balanced.predict_proba(X))
    assert np.array_equal(plain.predict(X), ordered.predict(X))
    assert plain.privacy_.to_dict() == balanced.privacy_.to_dict()
    before, after = plain.quality(X, y), balanced.quality(X, y)
    assert after.balanced_accuracy > before.balanced_accuracy + 0.08 > 0.65
    assert after.better and "by balanced accuracy" in after.verdict
    assert "puts records in order" in ordered.quality(X, y).verdict
    # The threshold is a function of the released model and of public records: of nothing else.
    shares = believed_shares(plain.predict_proba(X_public))
    named = balanced.classes_[(plain.predict_proba(X) / shares).argmax(axis=1)]
    assert np.array_equal(balanced.predict(X), named)
    for student in (True, False):
        monkeypatch.setattr(Choice, "student", student)
        taught, _ = balanced.teach(LogisticRegression(), X_public)
        assert (taught is balanced.model_) is not student
        assert 0.1 < (taught.predict(X) == "yes").mean() < 0.5


@pytest.mark.parametrize("teacher", [None, RidgeTeachers()], ids=["one by one", "together"])
def test_balanced_votes_tell_of_a_rare_class(teacher):
    found = {}
    for goal in ("accuracy", "balanced"):
        model, _, (X, y) = fitted(
            cg.PATEClassifier(
                teacher,
                n_teachers=30,
                aggregator=cg.GNMax(answers=600),
                queries=cg.Queries(release="histogram"),
                student=RegressionStudent(n_landmarks=50),
                classes=["no", "yes"],
                goal=goal,
                noise_seed=1,
                random_state=1,
            )
        )
        found[goal] = model.quality(X, y)
    assert found["accuracy"].names_one_class and not found["accuracy"].better
    assert found["balanced"].better and found["balanced"].balanced_accuracy > 0.72
    assert found["balanced"].auc > found["accuracy"].auc


def test_records_of_public_levels_do_not_outvote_balanced_votes():
    X, y = people()
    (X_private, y_private), X_public, _ = parts(X, y)
    policy = cg.Policy({"some": 3.0, "all": np.inf}, public=["all"])
    budgets = policy.assign(np.where(np.arange(N) < 500, "all", "some"))
    given = {}
    for goal in ("accuracy", "balanced"):
        model = cg.PATEClassifier(
            RidgeTeachers(),
            n_teachers=20,
            aggregator=cg.GNMax(answers=300),
            queries=cg.Queries(release="histogram"),
            student=Counting(n_landmarks=20),
            classes=[0, 1],
            goal=goal,
            noise_seed=1,
            random_state=1,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X_private, 1 * (y_private == "yes"), budgets=budgets, X_public=X_public)
        given[goal] = model.student_.given_
    (many, rare), (fewer, kept) = given["accuracy"], given["balanced"]
    assert many + rare == 500 and many > 5 * rare
    assert kept == rare and fewer < 3 * rare
