"""Public and test records of a study that publishes a synthetic table: checked before anybody pays."""

import numpy as np
import pandas as pd
import pytest

import collegium as cg
from collegium.errors import InputError, PrivacyWarning
from collegium.study.config import config_from
from collegium.study.runner import plan_study, run_study

SCHEMA = """
[columns.age]
kind = "whole"
bounds = [0, 99]
[columns.sick]
kind = "flag"
"""


def table(n, seed, first=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, n)
    return pd.DataFrame(
        {
            "who": [f"p{first + one}" for one in range(n)],
            "age": age,
            "sick": np.where(rng.random(n) < age / 120, "yes", "no"),
            "level": rng.choice(["high", "low"], n),
        }
    )


def config(folder, **data):
    (folder / "schema.toml").write_text(SCHEMA)
    table(600, 0).to_csv(folder / "private.csv", index=False)
    return config_from(
        {
            "data": {"private": "private.csv", "owner": "who", "target": "sick", **data},
            "privacy": {"column": "level", "levels": {"high": 1.0, "low": 3.0}},
            "synthesis": {"schema": "schema.toml"},
            "ledger": {"url": "none"},
        },
        folder,
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (table(0, 1), "data.test has no rows"),
        (table(20, 1), "data.test has 20 rows, and at least 50 are needed"),
        (table(80, 1).assign(sick="no"), "sick"),
        (table(80, 1).assign(sick=None), "sick"),
    ],
)
def test_test_records_that_nothing_can_be_judged_by_are_refused_before_anybody_pays(
    tmp_path, rows, said
):
    rows.drop(columns=["who", "level"]).to_csv(tmp_path / "test.csv", index=False)
    settings = config(tmp_path, test="test.csv")
    for attempt in (plan_study, lambda one: run_study(one, tmp_path / "out")):
        with pytest.raises(InputError, match=said) as refusal:
            attempt(settings)
        assert "\n" not in str(refusal.value) and "held_out" not in str(refusal.value)
    assert not (tmp_path / "out").exists()


def test_the_same_public_and_test_records_are_refused_before_anybody_pays(tmp_path):
    table(300, 2, 5000).to_csv(tmp_path / "others.csv", index=False)
    settings = config(tmp_path, public="others.csv", test="others.csv")
    with pytest.raises(InputError, match=r"data\.test"):
        run_study(settings, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_people_who_have_private_records_are_no_public_ones(tmp_path):
    """Their other rows are theirs, too: names tell, where contents cannot."""
    table(300, 3).to_csv(tmp_path / "others.csv", index=False)  # of the people p0 to p299
    with pytest.raises(InputError, match="are about people who also have private ones"):
        plan_study(config(tmp_path, public="others.csv"))
    with pytest.warns(PrivacyWarning, match="are about people who also have private ones"):
        plan_study(config(tmp_path, test="others.csv"))


@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_public_records_of_others_take_nothing_out_of_the_table(epsilon):
    """Nobody above 49 is in the public table, and half of the private one is."""
    schema = cg.Schema(
        {
            "age": {"kind": "whole", "bounds": [0, 99], "bins": [0, 25, 50, 75, 99]},
            "sick": {"kind": "flag"},
        }
    )
    frame, others = table(20_000, 4), table(3_000, 5)
    others = others[others.age < 50]
    made = cg.Synthesizer(schema, target="sick", noise_seed=0, random_state=0)
    made.fit(frame, epsilon, public=others)
    real = (frame.age >= 50).mean()
    assert abs((made.sample(20_000).age >= 50).mean() - real) < 0.02
    cells = made.marginals_.query("column == 'age'").set_index("cell")
    upper = cells.loc["50 to 74"]
    assert upper.lower - 0.01 < (frame.age.between(50, 74)).mean() < upper.upper + 0.01
