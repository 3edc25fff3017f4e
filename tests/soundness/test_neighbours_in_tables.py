"""Neighbouring tables as people make them: nobody else's place may depend on one person's record."""

import numpy as np
import pandas as pd
import pytest

from collegium import Weighting
from collegium.study.config import config_from
from collegium.study.study_data import load_study_data


def table(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "city": rng.choice(["a", "b", "c"], n),
            "sick": rng.choice(["no", "yes"], n),
            "privacy": np.repeat(rng.choice(["high", "low"], n // 2), 2)[:n],
            "patient": np.repeat(np.arange(n // 2), 2)[:n],
        }
    )


def load(tmp_path, frame: pd.DataFrame, **data):
    frame.to_csv(tmp_path / "private.csv", index=False)
    given = {
        "data": {
            "private": "private.csv",
            "target": "sick",
            "classes": ["no", "yes"],
            "missing": "?",
            **data,
        },
        "privacy": {"column": "privacy", "levels": {"high": 1.0, "low": 3.0}, "delta": 1e-6},
    }
    if "public_records" not in data:
        table(40).drop(columns=["privacy", "sick"]).to_csv(tmp_path / "public.csv", index=False)
        given["data"]["public"] = "public.csv"
    return load_study_data(config_from(given, tmp_path))


def shards(loaded, plan) -> list[frozenset]:
    """Fingerprint every teacher's shard by the owners in it."""
    assignment = plan.assign(loaded.budgets, b"key")
    owner = loaded.budgets.owners[loaded.budgets.record_owner]
    return [frozenset(owner[rows].tolist()) for rows in assignment.shards()]


def test_a_record_that_is_dropped_as_missing_changes_only_its_own_teacher(tmp_path):
    frame = table(600)
    before = load(tmp_path, frame, exclude=["patient"])
    plan = Weighting().plan_for(before.budgets, 20)
    changed = frame.copy()
    changed.loc[0, "city"] = "?"
    after = load(tmp_path, changed, exclude=["patient"])
    assert len(after.X) == len(before.X) - 1
    different = [a != b for a, b in zip(shards(before, plan), shards(after, plan), strict=True)]
    assert sum(different) == 1


@pytest.mark.parametrize("people", [40, 150])
def test_a_private_patient_who_leaves_before_the_split_changes_nobody_elses_side(tmp_path, people):
    frame = table(2 * people)
    half = people // 2
    sides = {"owner": "patient", "private_records": 2 * people - half, "public_records": half}
    sides["private_records"] -= 4  # room for the owners that are kept together at the border
    before = load(tmp_path, frame, **sides)
    gone = before.budgets.owners[-1]
    after = load(tmp_path, frame[frame["patient"] != gone], **sides)
    assert np.array_equal(
        frame["patient"].to_numpy()[before.public_rows],
        frame[frame["patient"] != gone]["patient"].to_numpy()[after.public_rows],
    )
    stayed = set(before.budgets.owners.tolist()) - {gone}
    assert stayed <= set(after.budgets.owners.tolist())


def test_without_owners_a_record_keeps_its_name_through_split_and_drop(tmp_path):
    frame = table(400)
    frame.loc[5, "city"] = "?"
    loaded = load(tmp_path, frame, exclude=["patient"], private_records=250, public_records=100)
    ages = frame["age"].to_numpy()[loaded.budgets.owners]
    assert np.array_equal(ages, loaded.X["age"].to_numpy())
