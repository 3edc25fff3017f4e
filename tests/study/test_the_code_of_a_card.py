"""The card of a release: the code in it runs as it stands, and the files that it names are there."""

import ast
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

CLASSES = ["no", "yes"]
VOTES = """
[method]
kind = "pate"
[teachers]
model = "sklearn.naive_bayes.GaussianNB"
n_teachers = 10
[aggregation]
aggregator = "gnmax"
sigma = 1.5
"""
DIRECT = """
[method]
kind = "dpsgd"
[dpsgd]
steps = 4
"""
SHARED = """
[privacy]
levels = { high = 8.0, low = 20.0 }
file = "privacy.csv"
[run]
n_jobs = 1
[ledger]
url = "none"
"""
TABLES = """
[data]
private = "private.csv"
public = "public.csv"
target = "outcome"
classes = ["no", "yes"]
"""
ARRAYS = """
[data]
private = "private.npy"
private_labels = "private-labels.npy"
public = "public.npy"
public_labels = "public-labels.npy"
classes = ["no", "yes"]
[preprocessing]
kind = "pixels"
"""
QUESTIONS = """
[method]
kind = "statistics"
[data]
private = "private.csv"
[privacy]
levels = { high = 1.0, low = 3.0 }
column = "level"
[statistics]
schema = "schema.toml"
questions = ["mean age", "count by work"]
[ledger]
url = "none"
"""
SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 90]
[columns.work]
kind = "category"
categories = ["farm", "office"]
"""


def table(n, seed):
    generator = np.random.default_rng(seed)
    outcome = generator.integers(0, 2, n)
    return pd.DataFrame(
        {
            "age": generator.integers(20, 50, n) + 30 * outcome,
            "weight": generator.normal(70, 5, n).round(1),
            "work": generator.choice(["office", "farm"], n),
            "outcome": np.array(CLASSES)[outcome],
        }
    )


def images(n, seed):
    generator = np.random.default_rng(seed)
    outcome = generator.integers(0, 2, n)
    pictures = generator.integers(0, 120, (n, 4, 4)) + 130 * outcome[:, None, None]
    return pictures.astype(np.uint8), np.array(CLASSES)[outcome]


def write_tables(folder):
    table(240, 1).to_csv(folder / "private.csv", index=False)
    table(60, 2).to_csv(folder / "public.csv", index=False)
    table(9, 3).drop(columns="outcome").to_csv(folder / "table.csv", index=False)


def write_arrays(folder):
    for name, n, seed in (("private", 240, 1), ("public", 60, 2)):
        pictures, outcome = images(n, seed)
        np.save(folder / f"{name}.npy", pictures)
        np.save(folder / f"{name}-labels.npy", outcome)
    np.save(folder / "records.npy", images(9, 3)[0])


@pytest.fixture(params=["votes-table", "votes-images", "direct-table", "direct-images"])
def released(request, tmp_path, collegium, monkeypatch):
    """Run a study where its files are; its card, in that folder."""
    method, _, kind = request.param.partition("-")
    (write_tables if kind == "table" else write_arrays)(tmp_path)
    levels = np.where(np.arange(240) % 3 == 0, "high", "low")
    pd.DataFrame({"level": levels}).to_csv(tmp_path / "privacy.csv", index=False)
    text = (VOTES if method == "votes" else DIRECT) + SHARED
    (tmp_path / "study.toml").write_text((TABLES if kind == "table" else ARRAYS) + text)
    monkeypatch.chdir(tmp_path)
    code, _, errors = collegium("run", "study.toml")
    assert code == 0, errors
    return tmp_path / "study/release"


def blocks(release, language):
    card = (release / "README.md").read_text("utf-8")
    found = re.findall(rf"(?s)^```{language}\n(.*?)^```", card, flags=re.MULTILINE)
    return [block.replace("RELEASE", str(release)) for block in found]


def test_the_code_of_a_card_runs_and_says_what_its_command_says(released, collegium, tmp_path):
    (code,), (command,) = blocks(released, "python"), blocks(released, "")
    *lines, last = ast.parse(code).body
    names = {}
    exec(compile(ast.Module(lines, []), "card", "exec"), names)
    predicted = eval(compile(ast.Expression(last.value), "card", "eval"), names)
    assert len(predicted) == 9 and set(predicted) <= set(CLASSES)
    exit_code, _, errors = collegium(*command.split()[1:])
    assert exit_code == 0, errors
    written = pd.read_csv(tmp_path / "predictions.csv")
    assert written.iloc[:, -1].tolist() == list(predicted)
    assert_files_are_there(released)


def assert_files_are_there(release):
    card = (release / "README.md").read_text("utf-8")
    named = set(re.findall(r"`([\w-]+\.(?:json|csv|html|skops|parquet))`", card))
    assert named and all((release / name).exists() for name in named), named


def test_the_code_of_a_card_needs_nothing_but_what_it_imports(tmp_path, collegium, monkeypatch):
    write_tables(tmp_path)
    pd.DataFrame({"level": ["high", "low"] * 120}).to_csv(tmp_path / "privacy.csv", index=False)
    (tmp_path / "study.toml").write_text(TABLES + DIRECT + SHARED)
    monkeypatch.chdir(tmp_path)
    assert collegium("run", "study.toml")[0] == 0
    (code,) = blocks(tmp_path / "study/release", "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_files_that_the_card_of_answers_names_are_there(tmp_path, collegium):
    table(240, 1).assign(level=["high", "low"] * 120).to_csv(tmp_path / "private.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "study.toml").write_text(QUESTIONS)
    code, _, errors = collegium("run", tmp_path / "study.toml")
    assert code == 0, errors
    assert_files_are_there(tmp_path / "study/release")
    answers = json.loads((tmp_path / "study/release/answers.json").read_text("utf-8"))["answers"]
    assert len(answers) == 2
