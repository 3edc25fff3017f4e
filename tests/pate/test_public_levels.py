"""People who let their records be published: the student learns from them, and nothing else changes."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MaxAbsScaler

from collegium import GNMax, PATEClassifier, Policy, PrivacyWarning, Queries, load_student
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.graph import GraphStudent
from collegium.distillation.regression import RegressionStudent
from collegium.errors import InputError
from collegium.study.config import config_from
from collegium.study.runner import plan_study, run_study

POLICY = Policy({"some": 6.0, "gift": math.inf, "none": 0}, public=["gift"])
X, Y = load_digits(return_X_y=True)
X, Y = X[Y < 4] / 16, Y[Y < 4]
PRIVATE, PUBLIC, TEST = slice(0, 400), slice(400, 500), slice(500, None)
LEVELS = np.where(np.arange(400) % 10 == 3, "gift", "some")
GIFTS = np.flatnonzero(LEVELS == "gift")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Recorder(LogisticRegression):
    """Remembers what it was given."""

    def fit_released(self, X_public, queries, targets):
        self.seen_ = X_public, queries, targets
        return self.fit(X_public[queries], targets.argmax(axis=1))


def fitted(levels=LEVELS, rows=slice(None), policy=POLICY, kind=lambda records: records, **more):
    settings = {"student": Recorder(), "n_teachers": 8, "aggregator": GNMax(sigma=6)}
    settings |= {
        "noise_seed": 1,
        "random_state": 1,
        "classes": [0, 1, 2, 3],
        "keep_sensitive": True,
    }
    model = PATEClassifier(**{"teacher": GaussianNB(), **settings, **more})
    owners = np.array([f"person {number}" for number in range(400)])[rows]
    return model.fit(
        kind(X[PRIVATE][rows]), Y[PRIVATE][rows], X_public=kind(X[PUBLIC]),
        budgets=policy.assign(levels[rows], owners),
    )  # fmt: skip


def test_the_student_gets_them_with_their_classes_and_votes_are_those_without_them():
    model, without = fitted(), fitted(rows=np.flatnonzero(LEVELS == "some"))
    seen, queries, targets = model.student_.seen_
    n = len(model.labels_)
    np.testing.assert_array_equal(seen, np.concatenate([X[PUBLIC], X[PRIVATE][GIFTS]]))
    np.testing.assert_array_equal(queries, [*model.labelled_indices_, *range(100, 140)])
    np.testing.assert_array_equal(targets[n:], np.eye(4)[Y[PRIVATE][GIFTS]])
    assert len(without.student_.seen_[0]) == 100
    for fit in (model, without):
        assert fit.privacy_.by_group()["owners"].to_dict() == {"some": 360}
    np.testing.assert_array_equal(model.labels_, without.labels_)
    assert model.plan_ == without.plan_
    for query in range(100):
        votes = [
            fit.sensitive_votes_.counts(query, np.ones(8)).tolist() for fit in (model, without)
        ]
        assert votes[0] == votes[1]
    # What the policy allows is said whether anybody chose it or not.
    assert model.privacy_.sentences() == without.privacy_.sentences()
    assert any(
        "'gift' let their records be published" in said for said in model.privacy_.sentences()
    )


@pytest.mark.parametrize(
    ("student", "release"),
    [
        (LogisticRegression(max_iter=500), "histogram"),
        (KNeighborsClassifier(3), "histogram"),
        (KNeighborsClassifier(3), "labels"),
        (GaussianProcessStudent(), "histogram"),
        (GraphStudent(), "labels"),
        (RegressionStudent(), "histogram"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_every_kind_of_student_learns_from_them(student, release):
    """Their records are all of class 2 here, which no teacher has seen."""
    generator = np.random.default_rng(0)
    y = np.arange(240) % 3
    records = generator.normal(np.array([[0, 0], [4, 0], [2, 4]])[y], 0.5)
    levels = np.where(y[:120] == 2, "gift", "some")
    accuracies = []
    for chosen in (np.where(levels == "gift", "none", "some"), levels):
        model = PATEClassifier(
            GaussianNB(), student=student, n_teachers=6, aggregator=GNMax(sigma=2), noise_seed=1,
            random_state=1, classes=["a", "b", "c"], queries=Queries(release=release),
        )  # fmt: skip
        budgets = Policy({"some": 90.0, "gift": math.inf, "none": 0}, public=["gift"]).assign(
            chosen
        )
        model.fit(
            records[:120],
            np.array(["a", "b", "c"])[y[:120]],
            budgets=budgets,
            X_public=records[120:180],
        )
        accuracies.append(model.score(records[180:], np.array(["a", "b", "c"])[y[180:]]))
    assert accuracies[0] < 0.7
    assert accuracies[1] > 0.85


@pytest.mark.parametrize(
    "kind",
    [
        lambda records: pd.DataFrame(records).add_prefix("pixel "),
        sparse.csr_matrix,
        np.asarray,
    ],
    ids=["table", "sparse", "array"],
)
def test_the_student_sees_them_as_it_sees_public_records(kind):
    one = KNeighborsClassifier(1)
    model = fitted(kind=kind, preprocessing=MaxAbsScaler(), teacher=one, student=one)
    np.testing.assert_array_equal(model.predict(kind(X[PRIVATE][GIFTS])), Y[PRIVATE][GIFTS])


def test_it_is_told_how_many_and_refused_if_there_is_nobody_else():
    with pytest.warns(PrivacyWarning, match=r"^40 owner\(s\) let .* 40 record\(s\) .*NO PRIVACY"):
        fitted()
    with pytest.raises(InputError, match=r"^everybody's records are public"):
        fitted(np.full(400, "gift"))


STUDY = {
    "data": {"private": "private.csv", "public": "public.csv", "target": "digit", "classes": [0, 1, 2, 3]},
    "privacy": {
        "levels": {"some": 6.0, "gift": math.inf},
        "public": ["gift"],
        "column": "privacy",
        "sizes": {"some": 350},
    },
    "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 8},
    "aggregation": {"aggregator": "gnmax", "sigma": 6, "noise": "seeded"},
    "student": {"model": "nearest-neighbours", "params": {"n_neighbors": 1}},
    "run": {"n_jobs": 1},
}  # fmt: skip


def table(records):
    return pd.DataFrame(records[:, 17:47:2]).add_prefix("p")


def test_a_study_says_so_in_statement_and_card_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("collegium.study.pages.render_page", lambda page: "a page")
    private = table(X[PRIVATE]).assign(digit=Y[PRIVATE], privacy=LEVELS)
    private.to_csv(tmp_path / "private.csv", index=False)
    table(X[PUBLIC]).to_csv(tmp_path / "public.csv", index=False)
    config = config_from(STUDY, tmp_path)
    result = run_study(config, tmp_path / "out")
    assert [(row.group, row.owners) for row in result.privacy.groups] == [("some", 350)]
    assert "let their records be published" in (result.folder.release / "privacy.json").read_text()
    card = (result.folder.release / "README.md").read_text()
    assert "40 records that their owners let be published" in card
    assert "People who chose 'gift' let their records be published" in card
    student = load_student(result.folder.release)
    predicted = student.predict(table(X[PRIVATE][GIFTS]))
    np.testing.assert_array_equal(predicted, Y[PRIVATE][GIFTS])
    again = run_study(
        config_from({**STUDY, "student": {"model": "random-forest"}}, tmp_path), tmp_path / "out"
    )
    assert again.privacy.groups == result.privacy.groups


@pytest.mark.parametrize(
    ("section", "changed", "message"),
    [
        (
            "privacy",
            {"public": ["some"]},
            r"public level must be one with ε = inf.*'some' \(ε = 6\)",
        ),
        ("privacy", {"sizes": {"some": 350, "gift": 40}}, "none with ε = 0 or public"),
        ("privacy", {"levels": None, "sizes": None}, "privacy.public names levels, but"),
    ],
)
def test_settings_that_contradict_it_are_refused_in_one_line(tmp_path, section, changed, message):
    given = {**STUDY[section], **changed}
    given = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(InputError, match=message) as error:
        config_from({**STUDY, section: given}, tmp_path)
    assert "\n" not in str(error.value)


def test_a_stream_refuses_them(tmp_path):
    data = {**STUDY["data"], "private": "private.parquet"}
    config = config_from({**STUDY, "data": data, "run": {"streaming": True}}, tmp_path)
    with pytest.raises(InputError, match="public levels need all records at once"):
        plan_study(config, on_ledger=False)
