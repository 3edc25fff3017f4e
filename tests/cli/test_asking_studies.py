"""Studies that ask, from the command line: what is refused, and what is said once."""

import numpy as np
import pandas as pd
import pytest

STUDY = """
[data]
private = "people.csv"
owner = "person"
[privacy]
levels = { high = 1.0, low = 3.0 }
column = "level"
[method]
kind = "statistics"
[statistics]
schema = "schema.toml"
questions = ["count", "mean age by ward", "count where age >= 40"]
[ledger]
url = "none"
"""
SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 90]
[columns.ward]
kind = "category"
categories = ["a", "b"]
"""
N = 300


@pytest.fixture
def study(tmp_path):
    generator = np.random.default_rng(1)
    people = pd.DataFrame(
        {
            "person": [f"p{number}" for number in range(N)],
            "age": generator.integers(18, 90, N),
            "ward": generator.choice(["a", "b"], N),
            "level": generator.choice(["high", "low"], N),
        }
    )
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.mark.parametrize("option", ["--engine", "--address", "--data-dir"])
def test_options_about_training_are_refused(collegium, study, tmp_path, option):
    value = {"--engine": "local", "--address": "tcp://host:1", "--data-dir": tmp_path}[option]
    commands = ["run", "plan"] if option == "--data-dir" else ["run"]
    for command in commands:
        code, said, errors = collegium(command, study, option, value)
        assert code == 2 and not said
        (line,) = errors.splitlines()
        assert line.startswith(f"error: {option} means nothing to method.kind = 'statistics'")
        assert line.endswith(": leave it out")
    assert not (tmp_path / "study").exists()


def test_quantiles_of_too_many_steps_are_refused_before_others_are_charged(
    collegium, study, tmp_path
):
    fine = '\n[columns.pay]\nkind = "number"\nbounds = [0, 1000]\nstep = '
    study.write_text(STUDY.replace("count where age >= 40", "median pay by age, ward"))
    for step, says in (
        (0.01, "'pay' has 100,001 steps between its bounds, but at most 65,536"),
        (0.02, "2,044 groups of 50,001 steps each are too many"),
    ):
        wards = [f"w{number}" for number in range(511)]
        text = SCHEMA.replace('["a", "b"]', f"{wards}").replace(
            "bounds = [18, 90]", "bounds = [18, 21]"
        )
        (tmp_path / "schema.toml").write_text(f"{text}{fine}{step}")
        code, _, errors = collegium("run", study)
        assert code == 2 and says in errors and not (tmp_path / "study").exists()


def test_a_note_about_everybody_is_said_once(collegium, study):
    code, said, _ = collegium("run", study)
    assert code == 0 and said.count("a person with more than 1 row counts as 1 row") == 1
