"""The example studies on real records: planned at full size, and no patient in two teachers."""

import json
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collegium.cli.main import main
from collegium.errors import PrivacyWarning
from collegium.study.config import read_config
from collegium.study.stages import plan_study, run_study

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "adult": "adult",
    "mnist": "mnist",
    "mnist-scattering": "mnist",
    "diabetes": "diabetes130",
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


@pytest.mark.parametrize("example", FOLDERS)
def test_every_example_can_be_planned_at_full_size(example, monkeypatch, capsys):
    folder = data_folder(example)
    path = ROOT / "examples" / f"{example}.toml"
    monkeypatch.setattr(
        sys, "argv", ["collegium", "plan", str(path), "--data-dir", str(folder), "--json"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert not ended.value.code and "error" not in printed.err
    plan = json.loads(printed.out)
    assert set(plan["groups"]) == {"high", "average", "low"}
    assert plan["efficiency"] > 0.9 and plan["answers_affordable"] > 50
    people = {name: group["people"] for name, group in plan["groups"].items()}
    if example in SIZES:
        assert sum(people.values()) == SIZES[example][0]
    total = sum(people.values())
    for name, share in {"high": 0.54, "average": 0.37, "low": 0.09}.items():
        assert abs(people[name] - share * total) <= 1
        assert plan["groups"][name]["teachers"] == pytest.approx(share * plan["teachers"], abs=1)


def test_no_patient_is_in_two_teachers_or_on_two_sides_at_full_size():
    config = read_config(ROOT / "examples" / "diabetes.toml")
    config = replace(config, run=replace(config.run, data_dir=str(data_folder("diabetes"))))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        planned = plan_study(config)
        plan, data = planned.plan, planned.records
    budgets = data.budgets
    assert 80_000 <= len(data.X) < 80_100
    assert budgets.n_owners < 0.8 * len(data.X)
    assignment = plan.assign(budgets, b"1", config["teachers.assignment"])
    teacher_of_record = np.full(len(data.X), -1)
    for teacher, shard in enumerate(assignment.shards()):
        assert (teacher_of_record[shard] == -1).all()
        teacher_of_record[shard] = teacher
    assert (teacher_of_record >= 0).all()
    pairs = np.unique(np.stack([budgets.record_owner, teacher_of_record]), axis=1)
    assert pairs.shape[1] == budgets.n_owners


@pytest.mark.slow
def test_the_hospital_example_learns_something(tmp_path):
    """About 61 % of 5,000 are right, where always answering "no" is on 54 %: ten standard errors."""
    config = read_config(ROOT / "examples" / "diabetes.toml")
    config = replace(config, run=replace(config.run, data_dir=str(data_folder("diabetes"))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        found = run_study(config, tmp_path / "out").quality
    assert found.better and found.accuracy > found.majority_share
    assert found.balanced_accuracy > 0.55 and found.auc > 0.6
