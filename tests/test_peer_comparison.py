"""The comparison of synthetic tables: its data, its scores, and how a peer's run ends."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import synthetic_peers
from benchmarks.synthetic_data import LOADERS, Tables, chapter, found_data_dir, tables
from benchmarks.synthetic_peer_list import ENVIRONMENTS, HERE, PEERS, Peer
from benchmarks.synthetic_peers import run, summary, zcdp_rho
from benchmarks.synthetic_scores import scores, variations
from collegium import Schema
from collegium.accounting import zcdp_epsilon
from collegium.data.cells import Cells
from collegium.errors import InputError

SCHEMA = Schema(
    {
        "colour": {"kind": "category", "categories": ["red", "green"], "missing": False},
        "size": {"kind": "whole", "bounds": [0, 2], "missing": False},
        "bought": {"kind": "category", "categories": ["no", "yes"], "missing": False},
    }
)


@pytest.fixture(scope="module")
def data_dir():
    """Return the folder with the published files, or skip."""
    try:
        folder = found_data_dir()
    except InputError as problem:
        pytest.skip(str(problem))
    names = ("adult", "diabetes130", "credit_default")
    if missing := [name for name in names if not (folder / name).is_dir()]:
        pytest.skip(f"{', '.join(missing)} missing in {folder}: set COLLEGIUM_DATA to their folder")
    return folder


@pytest.mark.parametrize(
    ("name", "n_train", "n_test", "n_columns"),
    [
        ("adult", 32_561, 16_281, 13),
        ("readmission", 71_273, 30_493, 23),
        ("credit", 21_000, 9_000, 24),
    ],
)
def test_tables(data_dir, name, n_train, n_test, n_columns):
    table = tables(name, data_dir)
    assert (len(table.train), len(table.test)) == (n_train, n_test)
    assert len(table.schema) == n_columns
    cells = Cells(table.schema)
    codes = cells.codes(table.train)
    place = cells.names.index(table.target)
    assert cells.sizes[place] == 2 and set(codes[:, place]) == {0, 1}
    for at, column in enumerate(cells.columns):
        # A category that the schema spells otherwise than the file would leave its column missing.
        if column.has_missing:
            assert np.mean(codes[:, at] == column.n_values) < 0.15, column.name
        else:
            array = table.schema.arrays(table.train, [column.name])[column.name]
            readable = array >= 0 if array.dtype.kind == "i" else ~np.isnan(array)
            assert readable.all(), column.name


def test_patients_are_in_one_part_only(data_dir):
    table = tables("readmission", data_dir)
    train, test = (set(part[table.owner]) for part in (table.train, table.test))
    assert not train & test
    assert len(table.one_row_each()) == len(train)
    assert table.weights.sum() == pytest.approx(len(train))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        *(("250.83", "diabetes"), ("276", "endocrine"), ("428", "circulatory")),
        *(("V57", "external"), ("E909", "external"), ("8", "infections"), ("?", "?")),
    ],
)
def test_chapter(code, name):
    assert chapter(code) == name


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="adult, readmission, credit"):
        tables("iris")
    with pytest.raises(InputError, match="no folder"):
        tables(next(iter(LOADERS)), "/nowhere")


def test_one_row_each():
    frame = pd.DataFrame({"who": [1, 1, 2, 1], "colour": ["red", "green", "red", "red"]})
    table = Tables("small", SCHEMA, "bought", frame, frame, "who")
    assert table.one_row_each()["who"].tolist() in ([1, 2], [2, 1])
    assert table.weights.tolist() == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3])


def test_variations_by_hand():
    cells = Cells(SCHEMA)
    train = np.array([[0, 0, 0], [0, 1, 1], [1, 2, 1], [1, 2, 0]])
    made = np.array([[0, 0, 0], [0, 0, 1], [0, 2, 1], [1, 2, 0]])
    one, two, three = variations(made, train, cells)
    assert one.tolist() == pytest.approx([0.25, 0.25, 0])
    assert two.tolist() == pytest.approx([0.5, 0.25, 0.25])
    assert three.tolist() == pytest.approx([0.5])
    # Rows of weight 0 are not there.
    weighted = variations(train[:2], train, cells, np.array([1.0, 1.0, 0.0, 0.0]))
    assert max(float(of.max()) for of in weighted) == 0


def test_scores_of_a_table_and_of_noise():
    rng = np.random.default_rng(0)
    size = rng.integers(0, 3, 4000)
    bought = (rng.random(4000) < 0.1 + 0.4 * size).astype(int)
    real = np.stack([rng.integers(0, 2, 4000), size, bought], axis=1)
    train, test = real[:2000], real[2000:]
    cells = Cells(SCHEMA)
    itself = scores(train, train, test, cells, "bought")
    assert itself.tv3_max == 0
    # Of 1,000 against 1,000 rows, an area of 0.8 has a standard error of about 0.01.
    assert itself.logistic == pytest.approx(itself.boosting, abs=0.03) and itself.logistic > 0.75
    mixed = np.stack([rng.permutation(column) for column in train.T], axis=1)
    noise = scores(mixed, train, test, cells, "bought")
    assert noise.tv1 == 0 and noise.tv2 > 0.1 and noise.overall < itself.overall - 0.1
    alike = train.copy()
    alike[:, 2] = 0
    assert scores(alike, train, test, cells, "bought").logistic == 0.5


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-6), (8.0, 1e-9)])
def test_rho_is_the_largest_within_the_budget(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_epsilon(rho, delta) <= epsilon < zcdp_epsilon(rho * 1.0001, delta)


FINISHES = """
import sys, numpy as np
codes = np.load(sys.argv[2])["codes"]
np.savez(sys.argv[3], codes=codes, seconds=0.5, cpu_seconds=0.4, gigabytes=0.25)
"""
FAILS = "raise ValueError('no such column')"
HANGS = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(__file__).with_name("child").write_text(str(child.pid))
time.sleep(600)
"""


def ended(monkeypatch, tmp_path, program, limit=60.0):
    """Run a program in the place of a peer."""
    path = tmp_path / "calls.py"
    path.write_text(program)
    monkeypatch.setattr(synthetic_peers, "CALLS", path)
    peer = Peer("elsewhere", "anything", "none", "none")
    return run(
        sys.executable, peer, np.zeros((3, 2), dtype=np.int64), (2, 2), {"epsilon": 1.0}, limit
    )


def test_a_run_that_finishes(monkeypatch, tmp_path):
    outcome = ended(monkeypatch, tmp_path, FINISHES)
    assert outcome.ended == "finished" and outcome.made is not None
    assert outcome.made["codes"].shape == (3, 2) and float(outcome.made["seconds"]) == 0.5


def test_a_run_that_fails_says_why(monkeypatch, tmp_path):
    outcome = ended(monkeypatch, tmp_path, FAILS)
    assert outcome.made is None and outcome.ended == "failed: ValueError: no such column"


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc whether the child is there")
def test_a_run_past_its_limit_is_ended_with_its_children(monkeypatch, tmp_path):
    outcome = ended(monkeypatch, tmp_path, HANGS, limit=5)
    assert outcome.made is None and outcome.ended == "not finished in 5 seconds"
    status = Path("/proc", (tmp_path / "child").read_text(), "stat")
    for _ in range(2400):
        try:
            state = status.read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":  # ended, and not yet collected by whoever inherited it
            return
        time.sleep(0.05)
    pytest.fail("the child is still running")


def test_every_peer_has_its_call():
    from benchmarks.synthetic_peer_calls import CALLS

    assert {peer.call for peer in PEERS.values()} == set(CALLS)
    environments = {peer.environment for peer in PEERS.values()} - {HERE}
    assert environments == set(ENVIRONMENTS)


def test_a_peer_that_is_not_installed_is_skipped(data_dir, tmp_path, capsys):
    synthetic_peers.main(
        ["--environments", str(tmp_path), "--peers", "opendp-mst", "--data", "credit"]
    )
    assert "opendp-mst: skipped" in capsys.readouterr().out


def test_summary(tmp_path):
    file = tmp_path / "runs.jsonl"
    common = {
        "data": "adult",
        "version": "one 1.0",
        "ended": "finished",
        "boosting": 0.5,
        "seconds": 2.0,
    }
    runs = [
        {"peer": "good", "seed": 1, "logistic": 0.5, "overall": 0.8},
        {"peer": "good", "seed": 2, "logistic": 0.9, "overall": 0.8},
        {"peer": "good", "seed": 1, "logistic": 0.7, "overall": 0.8},
        {"peer": "better", "seed": 1, "logistic": 0.6, "overall": 0.9},
        {"peer": "slow", "seed": 1, "ended": "not finished in 600 seconds"},
    ]
    lines = [json.dumps(common | one) for one in runs]
    lines[-1] = json.dumps({"data": "adult", "version": "two 2.0"} | runs[-1])
    file.write_text("\n".join(lines))
    rows = [one for one in summary(file).splitlines() if one.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows] == ["| peer", "| better", "| good", "| slow"]
    assert rows[2].startswith("| good | one 1.0 | 2 of 2 | 0.8000 | 0.5000 |")
    assert "not finished in 600 seconds | – |" in rows[3]
