"""Studies: which public records are asked about, what the student sees of them, and old manifests."""

import dataclasses
import json
import shutil
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits

from collegium import PrivacyWarning, load_student
from collegium.errors import ConfigError, InputError, StudyMismatchError
from collegium.mechanisms import SeededNoise
from collegium.pate.queries.active_choice import ActiveChooser
from collegium.pate.queries.selection import query_order
from collegium.personalisation import Plan
from collegium.study.config import config_from, read_config
from collegium.study.folder import StudyFolder
from collegium.study.runner import plan_study, run_study
from collegium.study.terms import read_terms

IMAGES, DIGITS = load_digits(return_X_y=True)
PUBLIC = IMAGES[1000:1200].astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The records of all studies here."""
    folder = tmp_path_factory.mktemp("records")
    parts = {"private": slice(1000), "public": slice(1000, 1200), "test": slice(1200, 1400)}
    for name, part in parts.items():
        np.save(folder / f"{name}.npy", IMAGES[part].astype(np.float32).reshape(-1, 8, 8))
        np.save(folder / f"{name}-labels.npy", DIGITS[part])
    return folder


def settings(**sections):
    made = {
        "data": {
            "private": "private.npy",
            "private_labels": "private-labels.npy",
            "public": "public.npy",
            "public_labels": "public-labels.npy",
            "test": "test.npy",
            "test_labels": "test-labels.npy",
            "classes": list(range(10)),
        },
        "privacy": {
            "levels": {"high": 20.0, "low": 40.0},
            "shares": {"high": 0.5, "low": 0.5},
        },
        "preprocessing": {"kind": "pixels"},
        "teachers": {"model": "ridge", "params": {"kernel": "rbf"}, "n_teachers": 20},
        "aggregation": {
            "aggregator": "gnmax",
            "sigma": 3,
            "max_labels": 40,
            "noise": "seeded",
        },
        "student": {"model": "sklearn.naive_bayes.GaussianNB", "params": {"var_smoothing": 0.01}},
        "run": {"n_jobs": 1},
    }
    for section, keys in sections.items():
        made[section] = {**made[section], **keys}
        made[section] = {key: value for key, value in made[section].items() if value is not None}
    return made


def config_of(folder, **sections):
    return config_from(settings(**sections), folder)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setattr(
        "collegium.study.pages.render_page", lambda page: "a page, which is not the subject here"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


@pytest.fixture(scope="module")
def active(folder, tmp_path_factory):
    """A finished study with active choice, which no test may change."""
    config = config_of(folder, aggregation={"query_order": "active"})
    out = tmp_path_factory.mktemp("active") / "study"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return config, run_study(config, out)


def asked(result):
    return [outcome.query for outcome in result.labels.outcomes]


# ----------------------------------------------------------------------------------- orders


def not_ended_yet(path):
    """Leave a study as it is before it is written down that voting has ended."""
    folder = StudyFolder(path)
    folder.journal = folder.open_journal()
    folder.remove(folder.voting_ended)


def test_coverage_follows_the_order_of_the_prepared_public_records_and_keeps_it(
    folder, tmp_path, monkeypatch
):
    config = config_of(folder, aggregation={"query_order": "coverage"})
    result = run_study(config, tmp_path / "study")
    expected = query_order("coverage", PUBLIC / np.float32(255), seed=0)
    assert asked(result) == expected[:40].tolist()
    # Another machine that would round distances otherwise still goes on with the same order.
    monkeypatch.setattr("collegium.pate.queries.order.query_order", lambda *args: expected[::-1])
    not_ended_yet(tmp_path / "study")
    assert asked(run_study(config, tmp_path / "study")) == asked(result)
    np.save(tmp_path / "study/vault/order.npy", expected[1:])
    durable = read_terms(tmp_path / "study")[1].settled()
    with pytest.raises(StudyMismatchError, match=r"order\.npy is not what this study wrote"):
        run_study(config, tmp_path / "study")
    assert read_terms(tmp_path / "study")[1].settled() == durable


def test_active_choice_begins_with_coverage_and_then_leaves_it(active):
    _, result = active
    order = np.load(result.folder.vault / "order.npy")
    assert asked(result)[:16] == order[:16].tolist()
    assert asked(result) != order[:40].tolist()
    assert len(set(asked(result))) == len(asked(result)) == 40
    assert result.student_accuracy > 0.5
    published = json.loads((result.folder.release / "privacy.json").read_text())
    assert published["config"]["aggregation"]["query_order"] == "active"
    assert pd.read_csv(result.folder.release / "labels.csv")["row"].tolist() == (
        result.labels.queries.tolist()
    )


def test_a_finished_active_study_is_read_again_and_nothing_is_chosen(active, monkeypatch):
    config, result = active

    def choose(*_):
        raise AssertionError("the past was chosen again")

    monkeypatch.setattr(ActiveChooser, "next", choose)
    durable = read_terms(result.folder.path)[1].settled()
    again = run_study(config, result.folder.path)
    assert again.labels.outcomes == result.labels.outcomes and again.privacy == result.privacy
    assert read_terms(result.folder.path)[1].settled() == durable


class PerQueryNoise(SeededNoise):
    """Noise that depends on the query alone; fails like a power cut after so many draws."""

    left = -1

    def noised(self, total, noise, *, query, purpose):
        if PerQueryNoise.left == 0:
            raise KeyboardInterrupt
        PerQueryNoise.left -= 1
        drawn = noise.scale * np.random.default_rng(query).standard_normal(total.shape)
        return total + np.rint(drawn).astype(np.int64)


@pytest.mark.parametrize("draws", [5, 16, 21, 37])
@pytest.mark.parametrize("release", ["labels", "histogram"])
def test_a_study_that_is_cut_off_goes_on_and_asks_about_nothing_twice(
    folder, tmp_path, monkeypatch, draws, release
):
    config = config_of(folder, aggregation={"query_order": "active", "release": release})
    monkeypatch.setattr("collegium.pate.recipe.Recipe.noise", lambda recipe: PerQueryNoise(0))
    monkeypatch.setattr(PerQueryNoise, "left", draws)
    with pytest.raises(KeyboardInterrupt):
        run_study(config, tmp_path / "study")
    durable = read_terms(tmp_path / "study")[1].settled()
    lost = [outcome for outcome in durable if outcome.verdict == "lost"]
    assert len(durable) >= draws and lost
    monkeypatch.setattr(PerQueryNoise, "left", -1)
    result = run_study(config, tmp_path / "study")
    assert result.labels.outcomes[: len(durable)] == durable
    assert len(set(asked(result))) == len(asked(result)) == 40 + len(lost)
    # The account has all that was asked: it is that of a job that asks as often, in any order.
    plain = run_study(
        config_of(
            folder,
            aggregation={"max_labels": None, "max_queries": 40 + len(lost), "release": release},
        ),
        tmp_path / "plain",
    )
    for mine, other in zip(result.privacy.groups, plain.privacy.groups, strict=True):
        assert mine.epsilon_spent == other.epsilon_spent


def test_queries_and_labels_are_limited(folder, tmp_path):
    config = config_of(folder, aggregation={"query_order": "active", "max_queries": 23})
    result = run_study(config, tmp_path / "study")
    assert (result.labels.n_asked, result.labels.stop_reason) == (23, "queries")
    terms = json.loads((tmp_path / "study/vault/terms.json").read_text())
    assert terms["own"]["n_queries"] == 23


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        (
            {
                "aggregation": {"query_order": "active", "noise": None},
                "privacy": {"guarantee": "data-dependent"},
            },
            "price depends on the votes",
        ),
        (
            {"aggregation": {"query_order": "active", "aggregator": "interactive"}},
            "'interactive'",
        ),
        ({"aggregation": {"query_order": "best"}}, "must be one of random, coverage, active"),
        ({"student": {"preprocessing": "best"}}, "must be one of same, none, tabular"),
    ],
)
def test_what_cannot_be_is_refused_with_the_configuration(folder, sections, reason):
    with pytest.raises((ConfigError, InputError), match=reason) as error:
        config_of(folder, **sections)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        (
            {
                "aggregation": {"query_order": "active"},
                "student": {"model": "sklearn.linear_model.RidgeClassifier", "params": {}},
            },
            "RidgeClassifier has no predict_proba",
        ),
        (
            {"student": {"preprocessing": "embeddings"}, "preprocessing": {"kind": "none"}},
            "student.preprocessing|embeddings",
        ),
    ],
)
def test_what_fails_on_public_records_is_refused_before_a_folder_is_made(
    folder, tmp_path, sections, reason
):
    with pytest.raises(InputError, match=reason) as error:
        run_study(config_of(folder, **sections), tmp_path / "study")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("order", ["coverage", "active", "doubtful"])
def test_records_that_cannot_be_compared_are_refused_before_anything_is_trained(tmp_path, order):
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"colour": generator.choice(["red", "blue"], 300)})
    table["y"] = generator.choice(["up", "down"], 300)
    table["privacy"] = "high"
    table[:200].to_csv(tmp_path / "private.csv", index=False)
    table[200:].drop(columns="privacy").to_csv(tmp_path / "public.csv", index=False)
    (tmp_path / "study.toml").write_text(
        f"""
        [data]
        private = "private.csv"
        public = "public.csv"
        target = "y"
        classes = ["down", "up"]
        [privacy]
        column = "privacy"
        levels = {{ high = 8.0 }}
        [teachers]
        model = "collegium.distillation.graph.GraphStudent"
        n_teachers = 20
        [preprocessing]
        kind = "none"
        [aggregation]
        aggregator = "gnmax"
        sigma = 6
        query_order = "{order}"
        [run]
        n_jobs = 1
        """
    )
    config = read_config(tmp_path / "study.toml")
    with pytest.raises(InputError, match=f"query order '{order}' compares .*give numbers"):
        run_study(config, tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_doubtful_questions_follow_released_answers_and_leave_the_student_free(folder, tmp_path):
    sections = {"query_order": "doubtful", "release": "histogram", "max_queries": 40}
    result = run_study(config_of(folder, aggregation=sections), tmp_path / "study")
    rows = asked(result)
    plain = run_study(
        config_of(folder, aggregation={**sections, "query_order": "random"}), tmp_path / "plain"
    )
    assert len(set(rows)) == 40
    assert rows[:20] == asked(plain)[:20] and rows[20:] != asked(plain)[20:]
    other = config_of(folder, aggregation=sections, student={"params": {"var_smoothing": 0.1}})
    assert run_study(other, tmp_path / "study").labels.outcomes == result.labels.outcomes


def test_coverage_is_allowed_under_a_data_dependent_guarantee(folder, tmp_path):
    config = config_of(
        folder,
        aggregation={"query_order": "coverage"},
        privacy={"guarantee": "data-dependent"},
    )
    assert plan_study(config, on_ledger=False).plan.run.plan.n_teachers == 20
    result = run_study(config, tmp_path / "study")
    assert (
        asked(result) == np.load(tmp_path / "study/vault/order.npy")[: len(asked(result))].tolist()
    )


# ------------------------------------------------------------------------- what is frozen


def test_a_study_that_goes_on_keeps_its_order_and_its_student(folder, tmp_path):
    config = config_of(folder)
    result = run_study(config, tmp_path / "study")
    student = (result.folder.release / "student.skops").stat().st_mtime_ns
    again = run_study(config, tmp_path / "study")
    assert again.labels.outcomes == result.labels.outcomes
    assert (result.folder.release / "student.skops").stat().st_mtime_ns == student
    other = config_of(folder, aggregation={"query_order": "coverage"})
    with pytest.raises(StudyMismatchError, match=r"query_order was 'random', now 'coverage'"):
        run_study(other, tmp_path / "study")


def test_the_student_is_frozen_while_it_steers(folder, active, tmp_path):
    config, result = active
    assert "student" in config.kind.frozen(config)
    plain = config_of(folder)
    assert "student" not in plain.kind.frozen(plain)
    other = config_of(
        folder, aggregation={"query_order": "active"}, student={"preprocessing": "pca"}
    )
    with pytest.raises(StudyMismatchError, match=r"student\.preprocessing was 'same', now 'pca'"):
        shutil.copytree(result.folder.path, tmp_path / "going")
        not_ended_yet(tmp_path / "going")
        run_study(other, tmp_path / "going")


# ----------------------------------------------------------------------- what the student sees


class Seen(ClassifierMixin, BaseEstimator):
    """A student that writes down the shapes of what it learns from and is asked about."""

    shapes: ClassVar[list[tuple[int, ...]]] = []

    def fit(self, X, y):
        self.shapes.append(np.asarray(X).shape[1:])
        self.classes_ = np.unique(y)
        self.common = y[0]
        return self

    def predict(self, X):
        self.shapes.append(np.asarray(X).shape[1:])
        return np.full(len(X), self.common)

    def predict_proba(self, X):
        self.shapes.append(np.asarray(X).shape[1:])
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


STUDENT = {"model": f"{__name__}.Seen", "params": {}}


@pytest.mark.parametrize(
    ("own", "shape"),
    [("same", (64,)), ("none", (8, 8)), ("pixels", (64,)), ("pca", (5,)), ("scattering", (5,))],
)
@pytest.mark.parametrize("steering", ["none", "active", "interactive"])
def test_the_student_sees_its_own_view_wherever_it_learns_or_is_asked(
    folder, tmp_path, monkeypatch, own, shape, steering
):
    Seen.shapes.clear()
    aggregation = {
        "none": {},
        "active": {"query_order": "active"},
        "interactive": {"aggregator": "interactive", "threshold": 4, "refit_every": 10},
    }[steering]
    config = config_of(
        folder,
        preprocessing={"components": 5},
        student={**STUDENT, "preprocessing": own},
        aggregation=aggregation,
    )
    result = run_study(config, tmp_path / "study")
    assert set(Seen.shapes) == {shape} and len(Seen.shapes) >= (4 if steering == "none" else 5)
    student = load_student(result.folder.release, ["test_study_asking.Seen"])
    Seen.shapes.clear()
    assert len(student.predict(np.load(folder / "test.npy"))) == 200
    assert Seen.shapes == [shape]


def test_votes_and_labels_do_not_depend_on_what_the_student_sees(folder, tmp_path):
    results = [
        run_study(config_of(folder, student={"preprocessing": own}), tmp_path / own)
        for own in ("same", "pca")
    ]
    assert results[0].labels.outcomes == results[1].labels.outcomes
    assert results[0].student_accuracy != results[1].student_accuracy


def test_the_students_view_may_change_later_and_costs_nothing(folder, tmp_path):
    first = run_study(config_of(folder), tmp_path / "study")
    vault = first.folder.vault
    durable, manifest = (
        read_terms(first.folder.path)[1].settled(),
        (vault / "manifest.json").read_bytes(),
    )
    before = (first.folder.release / "student.skops").read_bytes()
    config = config_of(folder, student={"preprocessing": "scattering"})
    second = run_study(config, tmp_path / "study")
    assert second.labels.outcomes == first.labels.outcomes and second.privacy == first.privacy
    assert read_terms(first.folder.path)[1].settled() == durable
    assert (vault / "manifest.json").read_bytes() == manifest
    assert (first.folder.release / "student.skops").read_bytes() != before
    student = load_student(first.folder.release)
    assert type(student["preprocessing"][0]).__name__ == "ScatteringTransform"


def test_the_students_own_kind_is_made_once_if_it_is_the_teachers(folder):
    run = plan_study(
        config_of(folder, student={"preprocessing": "pixels"}), on_ledger=False
    ).plan.run
    assert run.student_view is run.teachers_view


def test_a_network_sees_pixels_where_teachers_see_scattering_features(folder, tmp_path):
    pytest.importorskip("torch")
    config = config_of(
        folder,
        preprocessing={"kind": "scattering", "components": 20},
        student={
            "model": "self-training",
            "params": {"epochs": 1, "features": "scattering", "guide_share": 0.9, "device": "cpu"},
            "preprocessing": "none",
        },
    )
    result = run_study(config, tmp_path / "study")
    student = load_student(result.folder.release)
    pixels = np.load(folder / "test.npy")
    assert student.predict(pixels).shape == (200,)
    assert np.mean(student.predict(pixels) == DIGITS[1200:1400]) == result.student_accuracy > 0.5


def test_streamed_studies_have_orders_and_views_too(tmp_path):
    generator = np.random.default_rng(0)

    def table(n, private=False):
        kind = generator.integers(0, 3, n)
        made = pd.DataFrame(
            {f"x{i}": kind * (i == 0) + generator.normal(0, 0.3, n) for i in range(4)}
        )
        made["kind"] = np.array(["cat", "dog", "owl"])[kind]
        if private:
            made["privacy"] = generator.choice(["high", "low"], n)
        return made

    table(400, private=True).to_parquet(tmp_path / "private.parquet")
    table(90).to_parquet(tmp_path / "public.parquet")
    table(60).to_parquet(tmp_path / "test.parquet")
    results = []
    for streaming in (False, True):
        given = {
            "data": {
                **{role: f"{role}.parquet" for role in ("private", "public", "test")},
                "target": "kind",
                "classes": ["cat", "dog", "owl"],
            },
            "privacy": {"levels": {"high": 8.0, "low": 16.0}, "column": "privacy"},
            "preprocessing": {"kind": "tabular", "components": 3},
            "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 12},
            "aggregation": {
                "aggregator": "gnmax",
                "sigma": 4,
                "noise": "seeded",
                "query_order": "active",
            },
            "student": {"model": "sklearn.naive_bayes.GaussianNB", "preprocessing": "principal"},
            "run": {"n_jobs": 1, "streaming": streaming},
        }
        config = config_from(given, tmp_path)
        results.append(run_study(config, tmp_path / f"study-{streaming}"))
    memory, stream = results
    assert stream.labels.outcomes == memory.labels.outcomes and memory.labels.n_asked > 20
    assert (
        asked(memory)
        != np.load(memory.folder.vault / "order.npy")[: memory.labels.n_asked].tolist()
    )
    assert stream.student_accuracy == memory.student_accuracy > 0.5
    student = load_student(stream.folder.release)
    assert type(student["preprocessing"]).__name__ == "PrincipalTable"


def test_a_study_that_was_begun_under_other_terms_is_refused(folder, tmp_path, monkeypatch):
    """The same settings and people, and yet other weights: as by another version of the software."""
    config = config_of(folder)
    run_study(config, tmp_path / "study")
    not_ended_yet(tmp_path / "study")
    real = Plan.electorate

    def other(*given, **more):
        electorate = real(*given, **more)
        return dataclasses.replace(electorate, weights=electorate.weights * 1.01)

    monkeypatch.setattr(Plan, "electorate", other)
    before = read_terms(tmp_path / "study")[1].settled()
    with pytest.raises(StudyMismatchError, match="begun with other terms"):
        run_study(config, tmp_path / "study")
    assert read_terms(tmp_path / "study")[1].settled() == before
