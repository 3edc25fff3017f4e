"""The example studies on real records: planned at full size, and no patient in two teachers."""

import json
import os
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collegium import PrivacyWarning
from collegium.pate.pipeline import PateRun
from collegium.study import runner
from collegium.study.config import read_config

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "adult": "adult",
    "mnist": "mnist",
    "mnist-scattering": "mnist",
    "diabetes": "diabetes130",
    "adult-direct": "adult",
}
SIZES = {"adult": (37_222, 37_222), "mnist": (60_000, 60_000), "mnist-scattering": (60_000, 60_000)}


def data_folder(example):
    """Where the example's records are; skips the test where they are not."""
    folder = Path(os.environ.get("COLLEGIUM_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / FOLDERS[example]).is_dir():
        pytest.skip(
            f"no folder {FOLDERS[example]!r} with real records: set COLLEGIUM_DATA to run this test"
        )
    return folder


@pytest.mark.parametrize("example", [name for name in FOLDERS if not name.endswith("-direct")])
def test_every_example_can_be_planned_at_full_size(example, monkeypatch, collegium):
    folder = data_folder(example)
    path = ROOT / "examples" / f"{example}.toml"
    plan_study, planned = runner.plan_study, []

    def kept(*given, **more):
        made = plan_study(*given, **more)
        planned.append(made.plan.run)
        return made

    monkeypatch.setattr(runner, "plan_study", kept)
    if example == "diabetes":  # takes seconds, and is done by the test that runs the example
        monkeypatch.setattr(PateRun, "rehearse", lambda *given, **named: None)
    code, output, errors = collegium("plan", path, "--data-dir", folder, "--json")
    assert not code and not re.search("error|warning", errors)
    plan = json.loads(output)
    assert set(plan["groups"]) == {"high", "average", "low"}
    assert plan["efficiency"] > 0.9 and plan["answers_affordable"] > 50
    people = {name: group["people"] for name, group in plan["groups"].items()}
    if example in SIZES:
        assert sum(people.values()) == SIZES[example][0]
    total = sum(people.values())
    for name, share in {"high": 0.54, "average": 0.37, "low": 0.09}.items():
        assert abs(people[name] - share * total) <= 1
        assert plan["groups"][name]["teachers"] == pytest.approx(share * plan["teachers"], abs=1)
    if example == "diabetes":
        assert_no_patient_is_in_two_teachers(*planned)


def test_direct_training_of_a_table_can_be_planned_at_full_size(collegium):
    folder = data_folder("adult-direct")
    path = ROOT / "examples" / "adult-direct.toml"
    code, output, errors = collegium("plan", path, "--data-dir", folder, "--json")
    assert not code and not re.search("error|warning", errors)
    plan = json.loads(output)
    assert sum(group["people"] for group in plan["groups"].values()) == 37_222
    assert plan["utilisation"] > 0.999 and plan["signal_to_noise"] > 10
    assert all(group["epsilon_spent"] <= group["epsilon"] for group in plan["groups"].values())


@pytest.mark.parametrize(
    "example", sorted(path.stem for path in (ROOT / "examples").glob("*.toml"))
)
def test_every_example_is_well_formed(example):
    config = read_config(ROOT / "examples" / f"{example}.toml")
    assert (config.kind.name == "dpsgd") == example.endswith("-direct")


def assert_no_patient_is_in_two_teachers(planned):
    budgets = planned.records.budgets
    assert 80_000 <= len(planned.records.X) < 80_100
    assert budgets.n_owners < 0.8 * len(planned.records.X)
    assignment = planned.plan.assign(budgets, planned.recipe.key, planned.recipe.assignment)
    teacher_of_record = np.full(len(planned.records.X), -1)
    for teacher, shard in enumerate(assignment.shards()):
        assert (teacher_of_record[shard] == -1).all()
        teacher_of_record[shard] = teacher
    assert (teacher_of_record >= 0).all()
    pairs = np.unique(np.stack([budgets.record_owner, teacher_of_record]), axis=1)
    assert pairs.shape[1] == budgets.n_owners


@pytest.mark.slow
def test_the_hospital_example_learns_something(tmp_path):
    """About 60 % of 5,000 are right, where always answering "no" is on 53 %: ten standard errors.

    A tenth of the records and teachers, and twelve times the budgets: votes stand out of the noise as they
    do with all of them, and a little more, as there is less to learn from.
    """
    folder = data_folder("diabetes")
    text = (ROOT / "examples" / "diabetes.toml").read_text("utf-8")
    for said, instead in {
        "private_records = 80000": "private_records = 8000",
        "public_records = 15000": "public_records = 2500",
        "high = 1.0, average = 2.0, low = 3.0": "high = 12.0, average = 24.0, low = 36.0",
        "n_teachers = 250": "n_teachers = 25",
        "answers = 15000": "answers = 2500",
    }.items():
        assert text.count(said) == 1
        text = text.replace(said, instead)
    path = tmp_path / "diabetes.toml"
    path.write_text(text, encoding="utf-8")
    config = read_config(path)
    config = replace(config, run=replace(config.run, data_dir=str(folder), n_jobs=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        found = runner.run_study(config, tmp_path / "out").quality
    assert found.better and found.accuracy > found.majority_share
    assert found.balanced_accuracy > 0.55 and found.auc > 0.6
