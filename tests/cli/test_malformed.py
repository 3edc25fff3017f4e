"""Malformed inputs end in one line, soon: a few of each kind, and those that were found by hand."""

import gzip
import json
import os
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.malformed import KINDS, STUDY, Malformed, attack
from collegium import Budget, Budgets, CollegiumError, PATEClassifier, Policy
from collegium.data.datasets import read_any
from collegium.data.datasets.raw import MOST_COLUMNS
from collegium.errors import InputError
from collegium.json_files import read_json
from collegium.plain_text import csv_for_people


@pytest.mark.parametrize("kind", KINDS)
def test_ten_malformed_inputs(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some are names of folders to write into
    assert attack(10, 7, (kind,)) == {kind: []}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Malformed(tmp_path_factory.mktemp("malformed"), 0)


@pytest.mark.parametrize("content", ["[null]", "{}", "[" * 900 + "]" * 900])
@pytest.mark.parametrize(
    "name", ["aggregation", "student", "notes", "manifest", "terms", "privacy"]
)
def test_every_json_file_of_a_study_is_looked_at(made, collegium, name, content):
    folder = made._copy(made._study)
    path = folder / "study" / ("release" if name == "privacy" else "vault") / f"{name}.json"
    assert path.exists() or name == "notes"
    path.write_text(content, encoding="utf-8")
    commands = [["run", folder / "study.toml"]]
    commands += [["report", folder / "study"]] * (name == "privacy")
    commands += [["account", "--remaining", folder / "study"]] * (name == "terms")
    refused = 0
    for command in commands:
        code, _, errors = collegium(*map(str, command))
        lines = [
            line for line in errors.splitlines() if not line.startswith(("warning: ", "Note: "))
        ]
        assert "Traceback" not in errors and len(lines) == (code != 0)
        refused += code == 2 and f"{name}.json" in lines[0]
    assert refused


def test_json_has_the_shape_that_was_written(tmp_path):
    path = tmp_path / "known.json"
    for text in (
        '{"n": true}',
        '{"n": 1.5}',
        '{"n": "1"}',
        '{"m": 1}',
        '{"n": 1, "m": 1e400}',
        "\x00",
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CollegiumError, match="damaged"):
            read_json(path, {"n": int})
    path.write_text('{"n": 1, "more": []}', encoding="utf-8")
    assert read_json(path, {"n": int}) == {"n": 1, "more": []}
    with pytest.raises(CollegiumError, match="cannot be read"):
        read_json(tmp_path / "none.json", dict)


def test_a_budget_too_large_to_compute_with_is_not_read_as_none(tmp_path, collegium):
    for given in ("1e400", "-1e400", " 1E+999 ", np.str_("1e400"), np.longdouble("1e400"), 10**400):
        with pytest.raises(InputError):
            Budget(given)
        with pytest.raises(InputError):
            Policy({"a": given})
    for column in (["1e400", "2"], np.array(["1", "1e400"]), np.array(["1e400"], dtype=object)):
        with pytest.raises(InputError):
            Budgets.from_epsilons(column)
    for given in ("inf", "Infinity", np.inf):
        assert Budget(given).is_unlimited
    code, _, errors = collegium("account", "--level", "a=1e400:500")
    assert code == 2 and "write inf" in errors
    study = tmp_path / "study.toml"
    study.write_text(STUDY.replace("high = 8.0", "high = 1e400"), encoding="utf-8")
    code, _, errors = collegium("plan", str(study))
    assert code == 2 and "larger than any number" in errors
    table = tmp_path / "people.csv"
    for cell, allowed in (("1e400", False), ("-1e400", False), ("inf", True), ("Infinity", True)):
        table.write_text(f"epsilon,height\n1.0,2\n{cell},3\n", encoding="utf-8")
        if allowed:
            assert np.isinf(read_any(table)["epsilon"][1])
        else:
            with pytest.raises(InputError, match="column 'epsilon' that is larger"):
                read_any(table)


def test_bombs_are_refused_in_seconds(tmp_path):
    start = time.process_time()
    bomb = tmp_path / "bomb.csv.gz"
    zeros = gzip.compress(b"0" * (1 << 20))  # gzip files one after the other are one
    bomb.write_bytes(gzip.compress(b"a,b\n") + (1 << 8) * zeros)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_any(bomb)
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"c{n}" for n in range(10**6)) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="1,000,000 columns"):
        read_any(wide)
    many = tmp_path / "many.parquet"
    column = pa.nulls(1 << 20)
    pq.write_table(pa.table({f"c{n}": column for n in range(130)}), many)
    with pytest.raises(InputError, match="declares 136,314,880 cells"):
        read_any(many)
    assert MOST_COLUMNS < 10**6
    assert time.process_time() - start < 120  # of the processor: a tenth of it is usual


def test_labels_that_are_no_classes():
    X = np.random.default_rng(0).normal(size=(100_100, 1))
    model = PATEClassifier(n_teachers=3)
    for y, words in (
        (np.arange(100_002), "there are 100,002 classes"),
        (np.array([1, "a", None] * 33_334, dtype=object), "without a label"),
        (np.array([1, "a"] * 50_001, dtype=object), "some labels are numbers and some text"),
        (np.array([{}, []] * 50_001, dtype=object), "some labels are numbers and some text"),
    ):
        with pytest.raises(InputError, match=words) as refusal:
            model.fit(X[:100_002], y, budgets=1.0, X_public=X[100_002:])
        assert "\n" not in str(refusal.value)
    with pytest.raises(InputError, match="at most 10,000 are allowed"):
        PATEClassifier(n_teachers=3, classes=np.arange(100_002)).fit(
            X[:50], np.arange(50), budgets=1.0, X_public=X[50:100]
        )


def test_names_neither_steer_a_terminal_nor_a_spreadsheet(collegium):
    evil = "\x1b]0;owned\x07\x9b2J\u202e@cmd|' /C calc'!A0"
    for more in ([], ["--json"]):
        code, output, errors = collegium("account", "--level", f"{evil}=8:500", *more)
        assert code == 0
        assert not [c for c in output + errors if c in "\x1b\x07\x9b\u202e"]
    level = json.loads(collegium("account", "--level", f"{evil}=8:500", "--json")[1])["groups"]
    assert list(level) == [evil]  # escaped, not changed
    code, _, errors = collegium("account", "--level", f"{evil}=x")
    assert code == 2 and not [c for c in errors if c in "\x1b\x07\x9b\u202e"]
    cells = ["=1+1", "+1-1", "-", "@sum", "\tx", "\rx", " =1", "-1", "+1e5", "cat", "a=b"]
    table = pd.DataFrame({"row": range(len(cells)), "label": cells})
    shown = csv_for_people(table).decode()
    for cell in cells[:7]:
        assert f"'{cell}".replace("\t", " ").replace("\r", " ") in shown
    assert not [
        c for c in csv_for_people(pd.DataFrame({"label": [evil]})).decode() if c in "\x1b\x07\x9b"
    ]
    back = pd.read_csv(pd.io.common.StringIO(shown), dtype=str)["label"].tolist()
    assert back[-4:] == cells[-4:]


@pytest.mark.parametrize(
    "command", [["run", "s.toml"], ["demo"], ["label", "--votes", "v", "--budgets", "b"]]
)
def test_no_folder_is_not_this_folder(collegium, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output, errors = collegium(*command, "--out", "")
    assert code == 2 and "an empty name means nothing" in errors and not output
    assert not os.listdir(tmp_path)  # noqa: PTH208


def test_votes_are_not_features(made, collegium):
    folder = made._copy(made._job)
    votes = str(folder / "votes.npy")
    arguments = made._label(folder)
    arguments[arguments.index("--out") + 1] = str(folder / "new")
    arguments += ["--aggregator", "interactive", "--features", votes]
    code, _, errors = collegium(*arguments)
    assert code == 2 and "one file was given twice" in errors
    assert not (folder / "new").exists()


def test_any_number_of_answers_comes_at_once(collegium):
    code, output, _ = collegium("account", "--level", "a=8:500", "--answers", "1" + "0" * 11)
    assert code == 0 and "100,000,000,000 answers" in output
