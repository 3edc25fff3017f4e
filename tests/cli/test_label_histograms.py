"""``collegium label`` that releases histograms: the file, the refusals, and no way to switch."""

import json

import numpy as np
import pandas as pd
import pytest

from collegium.cli.main import main
from collegium.study.terms import read_terms
from tests.settings_file import settings


@pytest.fixture
def label(tmp_path, monkeypatch, capsys):
    counts = np.random.default_rng(0).multinomial(100, [0.7, 0.2, 0.1], 60)
    np.save(tmp_path / "votes.npy", counts)
    (tmp_path / "budgets.csv").write_text("epsilon\n8\n", encoding="utf-8")

    def run(aggregator, release, *options, lines=(), out="out"):
        uniform = ("personalisation.method = 'uniform'", f"aggregation.release = '{release}'")
        option, path = settings(tmp_path, *uniform, *lines)
        arguments = [
            "collegium", "label", "--votes", str(tmp_path / "votes.npy"), "--votes-are", "counts",
            "--budgets", str(tmp_path / "budgets.csv"),
            "--out", str(tmp_path / out), "--sigma", "20", "--aggregator", aggregator, option, str(path),
            *options,
        ]  # fmt: skip
        monkeypatch.setattr("sys.argv", arguments)
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, " ".join(captured.err.split())

    return run


def test_the_histograms_are_published_beside_the_labels(label, tmp_path):
    code, output, errors = label("confident", "histogram", "--json")
    assert code == 0, errors
    said = json.loads(output)
    assert said["released"] == "histogram"
    table = pd.read_parquet(said["histograms"])
    outcomes = read_terms(tmp_path / "out")[1].settled()
    assert len(table) == said["queries_asked"] == len(outcomes)
    counts = table[["count: 0", "count: 1", "count: 2"]].to_numpy()
    for row, outcome in zip(counts, outcomes, strict=True):
        if outcome.noisy_counts is None:
            assert np.isnan(row).all()
        else:
            assert tuple(row.tolist()) == outcome.noisy_counts
    assert (table["noise_scale"] == 20).all() and (table["total"] == 100).all()
    code, output, _ = label("confident", "histogram")
    assert code == 0 and "histograms.parquet" in output


@pytest.mark.parametrize(
    ("release", "lines", "message"),
    [
        ("histogram", ["privacy.guarantee = 'data-dependent'"], "holds for the arg max only"),
        ("votes", [], "release must be one of"),
    ],
)
def test_what_cannot_be_released_is_one_clear_line(label, tmp_path, release, lines, message):
    code, _, errors = label("gnmax", release, lines=lines)
    assert code == 2 and message in errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("first", "then"), [("labels", "histogram"), ("histogram", "labels")])
def test_a_job_cannot_be_switched(label, tmp_path, first, then):
    assert label("gnmax", first)[0] == 0
    before = (tmp_path / "out/vault/journal.jsonl").read_bytes()
    code, _, errors = label("gnmax", then)
    assert code == 2 and "holds another study" in errors
    assert (tmp_path / "out/vault/journal.jsonl").read_bytes() == before
