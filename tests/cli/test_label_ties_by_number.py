"""Budgets of teachers are tied to the votes' columns by number, never by place."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from collegium.cli.main import main


def label(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["collegium", "label", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
        raise SystemExit(0)
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


@pytest.fixture
def votes(tmp_path):
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 200)
    table = np.where(rng.random((200, 20)) < 0.9, truth[:, None], rng.integers(0, 3, (200, 20)))
    np.save(tmp_path / "votes.npy", table)
    return tmp_path


def run(votes, monkeypatch, capsys, budgets: pd.DataFrame, name: str):
    budgets.to_csv(votes / f"{name}.csv", index=False)
    return label(
        monkeypatch, capsys,
        "--votes", votes / "votes.npy", "--budgets", votes / f"{name}.csv", "--classes", "3",
        "--aggregator", "gnmax", "--sigma", "8", "--noise-seed", "1", "--json",
        "--out", votes / name,
    )  # fmt: skip


def test_a_shuffled_table_of_numbered_teachers_gives_the_same_labels(votes, monkeypatch, capsys):
    budgets = pd.DataFrame({"teacher": range(20), "epsilon": [2.0] * 8 + [6.0] * 12})
    plain = run(votes, monkeypatch, capsys, budgets, "plain")
    shuffled = run(votes, monkeypatch, capsys, budgets.sample(frac=1, random_state=0), "shuffled")
    assert plain[0] == shuffled[0] == 0
    first, second = json.loads(plain[1]), json.loads(shuffled[1])
    # Groups keep their names and prices; only the order in which they are listed follows the file.
    assert {g["group"]: g for g in first["groups"]} == {g["group"]: g for g in second["groups"]}
    assert (votes / "plain/release/labels.csv").read_text() == (
        votes / "shuffled/release/labels.csv"
    ).read_text()


@pytest.mark.parametrize("numbers", [[1] * 20, list(range(1, 21)), [*range(19), 25]])
def test_teacher_numbers_that_are_no_numbering_are_refused(votes, monkeypatch, capsys, numbers):
    budgets = pd.DataFrame({"teacher": numbers, "epsilon": [2.0] * 8 + [6.0] * 12})
    code, _, shown = run(votes, monkeypatch, capsys, budgets, "wrong")
    assert code == 2
    assert "column 'teacher' must hold each number from 0 to 19 once" in " ".join(shown.split())
    assert not (votes / "wrong").exists()


def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_reserved(
    votes, monkeypatch, capsys
):
    pd.DataFrame({"epsilon": [3.0]}).to_csv(votes / "one.csv", index=False)
    code, _, shown = label(
        monkeypatch, capsys,
        "--votes", votes / "votes.npy", "--votes-are", "predictions", "--classes", "3",
        "--budgets", votes / "one.csv", "--aggregator", "gnmax", "--sigma", "1e9",
        "--out", votes / "loud",
    )  # fmt: skip
    assert code == 2
    assert "can be drawn exactly" in " ".join(shown.split())
    assert not (votes / "loud" / "vault" / "journal.jsonl").exists()
