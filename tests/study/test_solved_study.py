"""A study of two classes whose model is solved for: from the file to the page, interrupted or not."""

import json
import signal

import numpy as np
import pandas as pd
import pytest

from collegium.dpsgd import run as sgd_run
from collegium.study.checkpoint import StudyInterrupted
from collegium.study.config import read_config
from collegium.study.runner import run_study


def table(n, seed):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 4))
    y = generator.random(n) < 1 / (1 + np.exp(1 - 2 * X[:, 0] + X[:, 1]))
    return pd.DataFrame(X, columns=list("abcd")).assign(ill=np.where(y, "yes", "no"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLLEGIUM_LEDGER", "none")
    who = np.arange(3000) // 3
    private = table(3000, 1).assign(who=[f"p{one}" for one in who])
    private["level"] = np.where(who % 4, "low", "high")
    private.to_parquet(tmp_path / "private.parquet", index=False)
    public = table(700, 2)
    public.loc[200:, "ill"] = None
    public.to_csv(tmp_path / "public.csv", index=False)
    table(500, 3).to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "study.toml").write_text(
        """
[data]
private = "private.parquet"
public = "public.csv"
test = "test.csv"
target = "ill"
owner = "who"
classes = ["no", "yes"]
[privacy]
column = "level"
levels = {high = 1.0, low = 3.0}
[method]
kind = "dpsgd"
[dpsgd]
noise = "seeded"
noise_seed = 1
"""
    )
    return tmp_path


def test_from_the_file_to_the_page(folder, collegium):
    for command in ("plan", "run"):
        code, _, errors = collegium(command, folder / "study.toml")
        assert code == 0, errors
    release = folder / "study" / "release"
    page = (release / "report.html").read_text("utf-8")
    assert "Solver</th><td>public records" in page and "Learning rate" not in page
    quality = json.loads((release / "quality.json").read_text())
    assert quality["accuracy"] > 0.75 and quality["auc"] > 0.8
    code, _, errors = collegium("report", folder / "study.toml")  # by a process that took no step
    assert code == 0, errors


def test_interrupted_between_two_models_it_goes_on_to_the_same(folder, monkeypatch):
    real = sgd_run.noisy

    def press(*given, step, **more):
        if step == 33:
            signal.raise_signal(signal.SIGINT)
        return real(*given, step=step, **more)

    config = read_config(folder / "study.toml")
    run_study(config, folder / "whole")
    with monkeypatch.context() as patch, pytest.raises(StudyInterrupted):
        patch.setattr(sgd_run, "noisy", press)
        run_study(config, folder / "parts")
    result = run_study(config, folder / "parts")
    assert (result.steps, result.lost) == (60, 0)
    whole, parts = (
        (folder / name / "release" / "quality.json").read_text() for name in ("whole", "parts")
    )
    assert whole == parts


def test_records_that_are_streamed_are_solved_for_alike(folder):
    text = (folder / "study.toml").read_text()
    (folder / "streamed.toml").write_text(text + "[run]\nstreaming = true\n")
    found = []
    for name in ("study", "streamed"):
        run_study(read_config(folder / f"{name}.toml"), folder / f"by-{name}")
        page = (folder / f"by-{name}" / "release" / "report.html").read_text("utf-8")
        assert "Solver</th><td>public records" in page
        found.append((folder / f"by-{name}" / "release" / "quality.json").read_text())
    assert found[0] == found[1]
