"""One key of a study says what its student is to be good at; the file that is published does it."""

import json

import numpy as np
import pandas as pd
import pytest

import collegium as cg
from collegium.distillation.goal import BalancedAnswers
from collegium.errors import StudyMismatchError
from collegium.study.config import config_from
from collegium.study.runner import run_study

CLASSES = ["no", "yes"]


def table(n, seed):
    generator = np.random.default_rng(seed)
    rare = generator.random(n) < 0.12
    X = generator.normal(size=(n, 3)) + 1.2 * rare[:, None]
    return pd.DataFrame(X, columns=list("abc")).assign(will=np.where(rare, "yes", "no"))


@pytest.fixture
def folder(tmp_path):
    table(1200, 1).assign(level="all").to_csv(tmp_path / "private.csv", index=False)
    table(200, 2).drop(columns="will").to_csv(tmp_path / "public.csv", index=False)
    table(400, 3).to_csv(tmp_path / "test.csv", index=False)
    return tmp_path


def study(folder, **sections):
    return config_from(
        {
            "data": {"private": "private.csv", "public": "public.csv", "test": "test.csv",
                     "target": "will", "classes": CLASSES},
            "privacy": {"column": "level", "levels": {"all": 4.0}},
            "run": {"n_jobs": 1},
            "ledger": {"url": "none"},
            **sections,
        },
        folder,
    )  # fmt: skip


def direct(folder, **student):
    dpsgd = {"steps": 30, "noise": "seeded", "noise_seed": 1}
    given = {"method": {"kind": "dpsgd"}, "dpsgd": dpsgd}
    return study(folder, **given, **({"student": student} if student else {}))


def judged(folder):
    return json.loads((folder / "out" / "release" / "quality.json").read_text())


def answers(folder):
    records = pd.read_csv(folder / "test.csv").drop(columns="will")
    return cg.load_student(folder / "out").predict(records)


def test_the_goal_of_a_direct_study_changes_what_is_published_and_costs_nothing(folder):
    plain = run_study(direct(folder), folder / "out")
    few, before = (answers(folder) == "yes").sum(), judged(folder)
    paid = json.loads((folder / "out" / "release" / "privacy.json").read_text())["groups"]
    goal = run_study(direct(folder, goal="balanced"), folder / "out")
    student, after = cg.load_student(folder / "out"), judged(folder)
    assert isinstance(student[-1], BalancedAnswers) and not goal.is_student
    assert (answers(folder) == "yes").sum() > few
    told = json.loads((folder / "out" / "release" / "privacy.json").read_text())
    assert told["groups"] == paid and told["config"]["student"] == {"goal": "balanced"}
    assert (before["goal"], after["goal"]) == ("accuracy", "balanced")
    assert after["balanced_accuracy"] > before["balanced_accuracy"]
    assert after["auc"] == before["auc"] and goal.quality.better
    assert "by balanced accuracy" in (folder / "out" / "release" / "report.html").read_text()
    assert plain.quality.goal == "accuracy"


def test_a_student_of_a_direct_study_answers_for_the_goal_as_well(folder):
    run_study(direct(folder, model="logistic-regression", goal="balanced"), folder / "out")
    assert isinstance(cg.load_student(folder / "out")[-1], BalancedAnswers)
    assert judged(folder)["goal"] == "balanced"


def test_teachers_that_voted_for_one_goal_are_not_asked_for_another(folder):
    def pate(**student):
        return study(
            folder,
            teachers={"n_teachers": 12, "model": "ridge"},
            aggregation={"aggregator": "gnmax", "answers": 150, "release": "histogram",
                         "noise": "seeded", "noise_seed": 1},
            student={"model": "evidence-regression", "params": {"n_landmarks": 30}, **student},
        )  # fmt: skip

    result = run_study(pate(goal="balanced"), folder / "out")
    assert result.quality.better and result.quality.goal == "balanced"
    assert 0.2 < (answers(folder) == "yes").mean() < 0.5
    card = folder / "out" / "release" / "README.md"
    assert "those of classes that are equally frequent" in card.read_text()
    shared = run_study(pate(goal="auc", class_shares={"no": 0.88, "yes": 0.12}), folder / "out")
    assert shared.quality.goal == "auc" and shared.quality.auc > 0.8
    assert "equally frequent" not in card.read_text()
    with pytest.raises(StudyMismatchError, match=r"student\.goal"):
        run_study(pate(), folder / "out")
