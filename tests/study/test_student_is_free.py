"""The student is computed from what was released: it may fail, change and be trained again for free."""

import sys

import numpy as np
import pandas as pd
import pytest

from collegium.cli.main import main


def collegium(monkeypatch, capsys, *arguments) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["collegium", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
        raise SystemExit(0)
    return int(ended.value.code or 0), capsys.readouterr().err


def write(folder, student: str):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["y"] = np.where(X[:, 0] > 0, "up", "down")
    frame["privacy"] = rng.choice(["high", "low"], 700)
    frame.iloc[:500].to_csv(folder / "private.csv", index=False)
    frame.iloc[500:600].drop(columns="privacy").to_csv(folder / "public.csv", index=False)
    frame.iloc[600:].drop(columns="privacy").to_csv(folder / "test.csv", index=False)
    (folder / "study.toml").write_text(
        f"""
        [data]
        private = "private.csv"
        public = "public.csv"
        test = "test.csv"
        target = "y"
        classes = ["down", "up"]
        [privacy]
        column = "privacy"
        levels = {{ high = 3.0, low = 6.0 }}
        delta = 1e-6
        [teachers]
        number = 30
        [aggregation]
        aggregator = "gnmax"
        sigma = 6
        max_labels = 3
        [student]
        {student}
        [run]
        jobs = 1
        """
    )
    return folder / "study.toml"


def test_a_student_that_fails_costs_nothing_and_can_be_replaced(tmp_path, monkeypatch, capsys):
    path = write(tmp_path, 'model = "nearest-neighbours"\nparams = { n_neighbors = 50 }')
    code, shown = collegium(monkeypatch, capsys, "run", path)
    assert code == 2
    assert "error: student.model" in shown
    assert "Traceback" not in shown
    journal = (tmp_path / "study/vault/journal.jsonl").read_bytes()
    labels = (tmp_path / "study/release/labels.csv").read_bytes()
    path = write(tmp_path, 'model = "nearest-neighbours"\nparams = { n_neighbors = 1 }')
    code, _ = collegium(monkeypatch, capsys, "run", path)
    assert code == 0
    assert (tmp_path / "study/vault/journal.jsonl").read_bytes() == journal
    assert (tmp_path / "study/release/labels.csv").read_bytes() == labels
    assert (tmp_path / "study/release/report.html").exists()


def test_a_damaged_student_is_named_in_one_line(tmp_path, monkeypatch, capsys):
    path = write(tmp_path, 'model = "logistic-regression"')
    assert collegium(monkeypatch, capsys, "run", path)[0] == 0
    (tmp_path / "study/release/student.joblib").write_bytes(b"junk")
    code, shown = collegium(monkeypatch, capsys, "run", path)
    assert code == 2
    assert "student.joblib cannot be read" in " ".join(shown.split())


def test_a_release_without_its_vault_is_refused_before_anything_is_trained(
    tmp_path, monkeypatch, capsys
):
    import shutil

    path = write(tmp_path, 'model = "logistic-regression"')
    assert collegium(monkeypatch, capsys, "run", path)[0] == 0
    shutil.rmtree(tmp_path / "study/vault")
    code, shown = collegium(monkeypatch, capsys, "run", path)
    assert code == 2
    assert "restore the vault" in " ".join(shown.split())
    assert not (tmp_path / "study/vault/teachers").exists()
