"""All settings of PATE follow from public numbers."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import collegium as cg
from collegium import Budget
from collegium.errors import InputError, NothingReleasedError, StudentError
from collegium.models.catalogue import build_model, build_preprocessing
from collegium.pate.by_rule import signal, votes_by_rule


def test_the_signal_adds_up_over_groups_and_leaves_out_who_grants_nothing_or_everything():
    half = signal({"a": Budget(1.0), "b": Budget(2.0)}, {"a": 100, "b": 50})
    assert half == pytest.approx(
        signal({"a": Budget(1.0)}, {"a": 100}) + signal({"b": Budget(2.0)}, {"b": 50})
    )
    public = {"a": Budget(1.0), "b": Budget(2.0), "c": Budget(float("inf"))}
    assert signal(public, {"a": 100, "b": 50, "c": 9}) == half


def test_a_signal_of_nobody_is_refused():
    with pytest.raises(InputError, match="finite epsilon above 0"):
        signal({"a": Budget(float("inf"))}, {"a": 100})


@pytest.mark.parametrize("kind", ["images", "table", "rows"])
@pytest.mark.parametrize("n_people", [10, 1_200, 60_000, 10**7])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_every_choice_can_be_built_and_afforded(kind, n_people, epsilon):
    total = signal({"all": Budget(epsilon)}, {"all": n_people})
    choice = votes_by_rule(n_people, total, 400, 10, kind)
    assert 10 <= choice.n_teachers <= n_people
    assert 4 <= choice.answers <= 400
    assert (choice.answers == 400) == (choice.query_order == "random")
    assert choice.components is None or choice.components < 400
    build_model("teachers.model", choice.model, choice.params)
    build_model("student.model", choice.student.model, choice.student.params)
    built = build_preprocessing(
        choice.preprocessing,
        categorical="frequency",
        components=choice.components or 50,
        random_state=0,
    )
    assert built is not None


def test_small_budgets_ask_more_teachers_who_see_less():
    choices = [
        votes_by_rule(60_000, signal({"all": Budget(e)}, {"all": 60_000}), 9_000, 10)
        for e in (0.1, 0.3, 1.0, 3.0)
    ]
    teachers = [choice.n_teachers for choice in choices]
    components = [choice.components for choice in choices]
    assert teachers == sorted(teachers, reverse=True)
    assert components == sorted(components)
    assert len(set(teachers)) == len(set(components)) == 4


def test_images_are_asked_about_where_answers_decide_if_there_are_enough_of_them():
    choices = [votes_by_rule(60_000, 16_083, n, 10) for n in (9_000, 6_000, 2_000)]
    assert [choice.answers for choice in choices] == [3_000, 3_000, 2_000]
    assert [choice.query_order for choice in choices] == ["doubtful", "doubtful", "random"]
    assert votes_by_rule(60_000, 16_083, 9_000, 10, "table").query_order == "random"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_people": 9}, "n_people"),
        ({"total": 0.0}, "total"),
        ({"n_public": 3}, "n_public"),
        ({"n_classes": 1}, "n_classes"),
        ({"kind": "text"}, "kind"),
    ],
)
def test_what_cannot_be_is_refused(given, said):
    allowed = {"n_people": 1_000, "total": 100.0, "n_public": 100, "n_classes": 2}
    with pytest.raises(InputError, match=said):
        votes_by_rule(**{**allowed, **given})


def test_a_rare_class_of_a_table_is_not_forgotten():
    """20 % of the people are of it: plain votes name it for next to nobody (balanced accuracy 0.50)."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(3_000, 4)), columns=list("abcd"))
    y = (2 * X["a"] + 2 * X["b"] + random.normal(size=3_000) > 2.8).astype(int)
    model = cg.PATEClassifier(classes=[0, 1], noise_seed=0, random_state=0)
    model.fit(X[:2000], y[:2000], budgets=2.0, X_public=X[2000:2500])
    assert model.recipe_.model == "mostly-balanced"
    found = model.quality(X[2500:], y[2500:])
    assert found.balanced_accuracy > 0.65  # three seeds: 0.72 to 0.78
    assert found.accuracy > found.majority_share


def test_a_classifier_without_settings_follows_the_rule_and_one_setting_ends_that():
    X, y = load_digits(return_X_y=True)
    budgets = cg.Policy({"careful": 2.0, "open": 4.0}).assign(["careful"] * 500 + ["open"] * 300)
    given = {"budgets": budgets, "X_public": X[800:1100]}
    plain = cg.PATEClassifier(classes=range(10), noise_seed=1, random_state=1)
    fitted = clone(plain).fit(X[:800], y[:800], **given)
    total = signal(budgets.groups, budgets.public_sizes())
    assert fitted.recipe_ == votes_by_rule(800, total, 300, 10, "images")
    assert fitted.plan_.n_teachers == fitted.recipe_.n_teachers
    assert len(fitted.labelled_indices_) == 300
    assert fitted.score(X[1100:], y[1100:]) > 0.6  # three seeds: 0.79 to 0.84
    own = clone(plain).set_params(n_teachers=20)
    with warnings.catch_warnings(), contextlib.suppress(NothingReleasedError, StudentError):
        warnings.simplefilter("ignore")
        own.fit(X[400:600], y[400:600], budgets=budgets[range(400, 600)], X_public=X[800:900])
    assert own.recipe_ is None and own.plan_.n_teachers == 20
