"""Classes and groups in a study: what it writes, where, and what mends budgets that go by class."""

import json

import numpy as np
import pandas as pd
import pytest

from collegium import load_student
from collegium.errors import InputError, StudyMismatchError
from collegium.study.config import read_config
from collegium.study.runner import run_study
from collegium.study.stored_teachers import fetch_teacher
from collegium.study.terms import read_terms

TEXT = """
[study]
name = "Incomes"
[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
target = "income"
classes = ["low", "high"]
[privacy]
column = "privacy"
levels = {{ strict = 4.0, generous = 32.0 }}
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 30
{teachers}
[personalisation]
method = "upsampling"
[aggregation]
aggregator = "gnmax"
sigma = 25
[student]
model = "{model}"
{student}
[run]
n_jobs = 1
"""
SHARES = "class_shares = { low = 0.8, high = 0.2 }"


def people(n, seed):
    generator = np.random.default_rng(seed)
    rich = generator.random(n) < 0.2
    table = pd.DataFrame(
        {"age": generator.normal(size=n) + 1.2 * rich, "noise": generator.normal(size=n)}
    )
    table["income"] = np.where(rich, "high", "low")
    table["privacy"] = np.where(rich, "generous", "strict")
    return table


def study(tmp_path, teachers="", student="", model="sklearn.naive_bayes.GaussianNB", truth=True):
    people(1500, 0).to_csv(tmp_path / "private.csv", index=False)
    public = people(400, 1).drop(columns="privacy")
    (public if truth else public.drop(columns="income")).to_csv(
        tmp_path / "public.csv", index=False
    )
    people(300, 2).to_csv(tmp_path / "test.csv", index=False)
    path = tmp_path / "study.toml"
    path.write_text(TEXT.format(teachers=teachers, student=student, model=model))
    return read_config(path)


def test_effects_are_published_and_teachers_by_class_stay_in_the_vault(tmp_path):
    result = run_study(study(tmp_path), tmp_path / "out")
    told = json.loads((tmp_path / "out/release/effects.json").read_text())
    assert told == result.effects.to_dict()
    # The test file has the privacy column: students are judged per level.
    assert [row["test_records"] for row in told["groups"]] == [
        int((people(300, 2)["privacy"] == level).sum()) for level in result.plan.groups
    ]
    names = [path.name for path in (tmp_path / "out/release").iterdir()]
    assert not any("sensitive" in name for name in names)
    kept = tmp_path / "out/vault/sensitive-teachers-by-class.csv"
    assert kept.stat().st_mode & 0o077 == 0
    assert pd.read_csv(kept)["name"].tolist() == ["low", "high"]
    page = (tmp_path / "out/release/report.html").read_text()
    assert "Who shaped the student" in page and "Influence of one person" in page


def test_without_public_truth_teachers_are_not_judged(tmp_path):
    result = run_study(study(tmp_path, truth=False), tmp_path / "out")
    assert not (tmp_path / "out/vault/sensitive-teachers-by-class.csv").exists()
    assert all(row.label_accuracy is None for row in result.effects.classes)


def test_a_students_shares_may_be_given_later_at_no_cost_but_not_the_teachers(tmp_path):
    run_study(study(tmp_path), tmp_path / "out")
    asked = read_terms(tmp_path / "out")[1].settled()
    result = run_study(study(tmp_path, student=SHARES), tmp_path / "out")
    assert read_terms(tmp_path / "out")[1].settled() == asked
    student = load_student(tmp_path / "out/release/student.skops")
    public = people(400, 1)[["age", "noise"]]
    believed = student.predict_proba(public).mean(axis=0)
    expected = {"low": 0.8, "high": 0.2}
    assert believed == pytest.approx([expected[name] for name in student.classes_], abs=1e-6)
    assert [row.public_share for row in result.effects.classes] == [0.8, 0.2]
    with pytest.raises(StudyMismatchError, match=r"teachers\.class_shares"):
        run_study(study(tmp_path, teachers=SHARES), tmp_path / "out")


def test_teachers_shares_reach_the_teachers(tmp_path):
    """Naive Bayes' class priors are those of the shard that a teacher saw."""
    run_study(study(tmp_path, teachers=SHARES), tmp_path / "out")
    teachers = sorted((tmp_path / "out/vault/teachers").iterdir())
    vault = tmp_path / "out/vault"
    priors = [fetch_teacher(vault, path).sensitive_model.class_prior_[1] for path in teachers]
    assert np.abs(np.array(priors) - 0.2).max() < 0.03  # shards of about 100 records, rounded


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"teachers": "class_shares = { low = 0.8 }"},
            "teachers.class_shares must give each class one share",
        ),
        (
            {"student": "class_shares = { low = 0.8, high = 0.8 }"},
            "student.class_shares must be greater",
        ),
        ({"student": SHARES, "model": "sklearn.svm.LinearSVC"}, "LinearSVC has no predict_proba"),
    ],
)
def test_shares_that_cannot_be_used_cost_nothing(tmp_path, settings, message):
    with pytest.raises(InputError, match=message):
        run_study(study(tmp_path, **settings), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("preprocessing", ["none", "tabular"])
@pytest.mark.parametrize("model", ["evidence-regression", "random-forest"])
def test_a_matched_student_can_be_used_as_it_is_published(tmp_path, model, preprocessing):
    """Also behind a preprocessing, and with named classes."""
    trees = "\nparams = { n_estimators = 10 }" if model == "random-forest" else ""
    study(tmp_path, student=SHARES + trees, model=model)
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(f'{text}\n[preprocessing]\nkind = "{preprocessing}"\n')
    config = read_config(tmp_path / "study.toml")
    run_study(config, tmp_path / "out")
    student = load_student(tmp_path / "out/release/student.skops")
    public = people(400, 1)[["age", "noise"]]
    assert set(student.predict(public)) <= {"low", "high"}
    believed = dict(zip(student.classes_, student.predict_proba(public).mean(axis=0), strict=True))
    assert believed["high"] == pytest.approx(0.2, abs=1e-6)


def test_a_student_that_cannot_predict_is_not_published(tmp_path, monkeypatch):
    """What was published before stays as it was."""
    run_study(study(tmp_path), tmp_path / "out")
    before = (tmp_path / "out/release/student.skops").read_bytes()

    def broken(self, X):
        raise ValueError("no prediction")

    monkeypatch.setattr("collegium.distillation.share_matching.ShareMatched.predict", broken)
    monkeypatch.setattr("collegium.pate.pipeline.PateRun.rehearse", lambda *_, **named: None)
    with pytest.raises(InputError, match="asked about public records"):
        run_study(study(tmp_path, student=SHARES), tmp_path / "out")
    assert (tmp_path / "out/release/student.skops").read_bytes() == before


def test_test_records_whose_level_is_no_groups_are_counted_aloud(tmp_path):
    config = study(tmp_path)
    table = pd.read_csv(tmp_path / "test.csv")
    table.loc[:9, "privacy"] = "Strict"
    table.loc[10, "privacy"] = None
    table.to_csv(tmp_path / "test.csv", index=False)
    result = run_study(config, tmp_path / "out")
    (line,) = [line for line in result.student_notes if "test records" in line]
    assert line.startswith("11 of 300 test records have a level that no private record has")
    assert "'Strict', 'nan'" in line
    assert line in (tmp_path / "out/release/report.html").read_text().replace(
        "&#x27;", "'"
    ).replace("&#39;", "'")
    counted = sum(row["test_records"] for row in result.effects.to_dict()["groups"])
    assert counted == 289


def stream(tmp_path):
    """Make the study one whose private records are streamed."""
    pd.read_csv(tmp_path / "private.csv").to_parquet(tmp_path / "private.parquet")
    text = (tmp_path / "study.toml").read_text()
    text = text.replace("private.csv", "private.parquet")
    text = text.replace("n_teachers = 30", 'n_teachers = 30\nassignment = "hash"')
    (tmp_path / "study.toml").write_text(text.replace("n_jobs = 1", "n_jobs = 1\nstreaming = true"))


@pytest.mark.parametrize("streaming", [False, True])
def test_students_are_judged_by_group_where_people_gave_numbers(tmp_path, streaming):
    study(tmp_path)
    for name in ("private", "test"):
        table = pd.read_csv(tmp_path / f"{name}.csv")
        table["privacy"] = table["privacy"].map({"strict": 4, "generous": 32.5})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    text = (tmp_path / "study.toml").read_text()
    text = text.replace("levels = { strict = 4.0, generous = 32.0 }", "")
    (tmp_path / "study.toml").write_text(text)
    if streaming:
        stream(tmp_path)
    result = run_study(read_config(tmp_path / "study.toml"), tmp_path / "out")
    assert {row["name"]: row["test_records"] for row in result.effects.to_dict()["groups"]} == {
        "ε=4": int((people(300, 2)["privacy"] == "strict").sum()),
        "ε=32.5": int((people(300, 2)["privacy"] == "generous").sum()),
    }
    assert not result.student_notes


@pytest.mark.parametrize("streaming", [False, True])
def test_records_of_unknown_class_are_no_errors(tmp_path, streaming):
    study(tmp_path)
    if streaming:
        stream(tmp_path)
    whole = run_study(read_config(tmp_path / "study.toml"), tmp_path / "whole")
    for name in ("public", "test"):
        table = pd.read_csv(tmp_path / f"{name}.csv")
        table.loc[::2, "income"] = None
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    half = run_study(read_config(tmp_path / "study.toml"), tmp_path / "half")
    truth = people(400, 1)["income"].to_numpy()[half.labels.queries]
    known = half.labels.queries % 2 == 1
    right = np.array(["low", "high"])[half.labels.labels] == truth
    assert half.label_accuracy == pytest.approx(right[known].mean())
    student = load_student(tmp_path / "half/release/student.skops")
    judged = people(300, 2)[1::2]
    seen = judged[["age", "noise"]]
    assert half.student_accuracy == np.mean(student.predict(seen) == judged["income"])
    assert (whole.n_test, half.n_test) == (300, 150)
    rows = half.effects.to_dict()
    assert sum(row["test_records"] for row in rows["groups"]) == 150
    assert sum(row["named_by_student"] for row in rows["classes"]) == pytest.approx(1)
    assert any("150 test record(s) without a class" in line for line in half.student_notes)
