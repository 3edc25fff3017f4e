"""A study that releases histograms: what it writes, what it refuses, and that it is never switched."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from collegium import PrivacyWarning, load_student
from collegium.errors import ConfigError, StudyMismatchError
from collegium.runs.observer import Observer
from collegium.study.config import read_config
from collegium.study.folder import HISTOGRAMS_FILE
from collegium.study.runner import run_study
from collegium.study.terms import read_terms

CLASSES = ["cat", "dog", "owl"]


class Gatherer(ClassifierMixin, BaseEstimator):
    """Knows all public records; believes in the centre of each class, weighted by targets."""

    def fit_released(self, X_public, queries, targets):
        X = np.asarray(X_public)
        self.seen_ = (X.shape[0], len(queries), targets.shape, targets.sum(axis=1))
        self.classes_ = np.arange(targets.shape[1])
        self.centres_ = targets.T @ X[queries] / targets.sum(axis=0)[:, None]
        return self

    def predict(self, X):
        away = np.asarray(X)[:, None, :] - self.centres_
        return (away**2).sum(axis=2).argmin(axis=1)


class Notes(Observer):
    def __init__(self):
        self.lines = []

    def note(self, line):
        self.lines.append(line)


def animals(n, seed):
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 3, n)
    table = pd.DataFrame({"height": 3 * kind + generator.normal(0, 0.2, n), "weight": 0.0})
    table["kind"] = np.array(CLASSES)[kind]
    table["privacy"] = np.array(["high", "low"])[np.arange(n) % 2]
    return table


def write(folder, aggregation='aggregator = "confident"\nthreshold = 6\nsigma_threshold = 4\nsigma = 5',
          student='model = "sklearn.naive_bayes.GaussianNB"', guarantee="worst-case",
          release="histogram", name="study"):  # fmt: skip
    if not (folder / "private.csv").exists():
        animals(240, 1).to_csv(folder / "private.csv", index=False)
        animals(70, 2).drop(columns="privacy").to_csv(folder / "public.csv", index=False)
        animals(60, 3).drop(columns="privacy").to_csv(folder / "test.csv", index=False)
    released = "" if release is None else f'release = "{release}"\n'
    path = folder / f"{name}.toml"
    path.write_text(
        f"""[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
target = "kind"
classes = ["cat", "dog", "owl"]
[privacy]
levels = {{ high = 12.0, low = 24.0 }}
column = "privacy"
guarantee = "{guarantee}"
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 12
[aggregation]
{aggregation}
{released}[student]
{student}
[run]
n_jobs = 1
""",
        encoding="utf-8",
    )
    return path


def run(path, observer=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return run_study(read_config(path), path.with_suffix(""), observer)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("histograms"))
    return path, run(path)


def test_the_release_holds_the_histograms_exactly_as_the_journal_does(finished):
    _, result = finished
    release = result.folder.release
    names = {path.name for path in release.iterdir()}
    assert names == {
        "labels.csv", HISTOGRAMS_FILE, "student.skops", "privacy.json", "effects.json", "report.html",
        "digests.json", "README.md", "quality.json",
    }  # fmt: skip
    table = pd.read_parquet(release / HISTOGRAMS_FILE)
    outcomes = read_terms(result.folder.path)[1].settled()
    assert len(table) == len(outcomes) and outcomes == result.labels.outcomes
    counts = table[[f"count: {name}" for name in CLASSES]].to_numpy()
    for row, outcome in enumerate(outcomes):
        assert table["verdict"][row] == outcome.verdict
        assert table["check"][row] == outcome.noisy_check
        if outcome.noisy_counts is None:
            assert np.isnan(counts[row]).all() and pd.isna(table["label"][row])
        else:
            assert tuple(counts[row].tolist()) == outcome.noisy_counts
            assert table["label"][row] == CLASSES[outcome.label]
    answered = table[table["label"].notna()]
    labels = pd.read_csv(release / "labels.csv")
    assert labels["row"].tolist() == answered["row"].tolist()
    assert labels["label"].tolist() == answered["label"].tolist()


def test_statement_report_and_manifest_say_what_is_released(finished):
    _, result = finished
    said = json.loads((result.folder.release / "privacy.json").read_text("utf-8"))
    assert said["released"] == "histogram"
    assert any("noisy vote counts of all classes" in line for line in said["statement"])
    page = (result.folder.release / "report.html").read_text("utf-8")
    assert "the noisy counts of all classes, and the noisy value of each check" in page
    manifest = json.loads((result.folder.vault / "manifest.json").read_text("utf-8"))
    assert manifest["config"]["aggregation"]["release"] == "histogram"


def test_a_second_run_changes_nothing(tmp_path):
    path = write(tmp_path)
    folder = run(path).folder
    before = {file: file.read_bytes() for file in folder.release.iterdir()}
    journal = (folder.vault / "journal.jsonl").read_bytes()
    run(path)
    assert {file: file.read_bytes() for file in folder.release.iterdir()} == before
    assert (folder.vault / "journal.jsonl").read_bytes() == journal


def test_histograms_that_are_lost_from_the_release_are_written_again(tmp_path):
    path = write(tmp_path)
    file = run(path).folder.release / HISTOGRAMS_FILE
    before = file.read_bytes()
    file.unlink()
    run(path)
    assert file.read_bytes() == before


@pytest.mark.parametrize(("first", "then"), [("labels", "histogram"), ("histogram", "labels")])
def test_what_is_released_cannot_be_switched(tmp_path, first, then):
    folder = run(write(tmp_path, release=first)).folder
    before = {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}
    with pytest.raises(StudyMismatchError, match=r"aggregation\.release was") as error:
        run(write(tmp_path, release=then))
    assert "\n" not in str(error.value)
    assert {f: f.read_bytes() for f in folder.path.rglob("*") if f.is_file()} == before


def test_labels_go_without_saying(tmp_path):
    folder = run(write(tmp_path, release=None)).folder
    run(write(tmp_path, release="labels"))
    assert not (folder.release / HISTOGRAMS_FILE).exists()
    said = json.loads((folder.release / "privacy.json").read_text("utf-8"))
    assert said["released"] == "labels"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"guarantee": "data-dependent"}, "holds for the arg max only"),
        ({"aggregation": 'aggregator = "pfmax"'}, "'pfmax' cannot be released"),
        ({"aggregation": 'aggregator = "expmax"'}, "'expmax' cannot be released"),
        ({"release": "votes"}, "aggregation.release must be one of labels, histogram"),
        (
            {"release": "labels", "student": 'targets = "noise"'},
            "student.targets would have no effect",
        ),
        ({"student": 'targets = "all"'}, "student.targets must be one of argmax, noise, mixture"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message) as error:
        read_config(write(tmp_path, **settings))
    assert "\n" not in str(error.value)


def test_another_kind_of_target_trains_another_student_and_costs_nothing(tmp_path):
    folder = run(write(tmp_path)).folder
    asked = read_terms(folder.path)[1].settled()
    before = (folder.release / "student.skops").read_bytes()
    student = 'model = "sklearn.naive_bayes.GaussianNB"\ntargets = "argmax"'
    run(write(tmp_path, student=student))
    assert read_terms(folder.path)[1].settled() == asked
    assert (folder.release / "student.skops").read_bytes() != before


def test_a_student_that_cannot_take_soft_targets_falls_back_and_says_so(tmp_path):
    notes = Notes()
    result = run(write(tmp_path, student='model = "nearest-neighbours"'), notes)
    assert any("KNeighborsClassifier cannot take soft targets" in line for line in notes.lines)
    assert result.student_accuracy is not None


@pytest.mark.parametrize("release", ["labels", "histogram"])
def test_a_student_of_all_public_records_gets_them_and_predicts_classes(tmp_path, release):
    student = f'model = "{Gatherer.__module__}.Gatherer"'
    path = write(tmp_path, student=student, release=release)
    text = path.read_text("utf-8")
    path.write_text(text.replace("sigma = 5\n", 'sigma = 5\nnoise = "seeded"\nnoise_seed = 1\n'))
    result = run(path)
    fitted = load_student(result.folder.release, ["test_study_histograms.Gatherer"])
    n_public, n_labels, shape, sums = fitted.student.seen_
    assert n_public == 70 and n_labels == len(result.labels.labels)
    assert shape == (n_labels, 3) and sums == pytest.approx(1)
    assert fitted.classes_.tolist() == CLASSES
    test = pd.read_csv(result.folder.path.parent / "test.csv")
    predicted = fitted.predict(test[["height", "weight"]])
    assert set(predicted) <= set(CLASSES)
    assert np.mean(predicted == test["kind"]) == result.student_accuracy > 0.6
