"""A study with 100 classes, from the file to the page: complete where it counts, short where it is read."""

import json
import re

import numpy as np
import pandas as pd
import pytest

CLASSES = [f"kind-{number:02d}" for number in range(100)]


def table(n, seed):
    centres = 3 * np.random.default_rng(0).normal(size=(len(CLASSES), 8))
    generator = np.random.default_rng(seed)
    y = np.concatenate([np.arange(len(CLASSES)), generator.integers(len(CLASSES), size=n - 100)])
    X = centres[y] + generator.normal(size=(n, 8))
    return pd.DataFrame(X, columns=list("abcdefgh")).assign(kind=np.array(CLASSES)[y])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLLEGIUM_LEDGER", "none")
    levels = np.where(np.arange(2500) % 4, "low", "high")
    table(2500, 1).assign(level=levels).to_csv(tmp_path / "private.csv", index=False)
    table(300, 2).drop(columns="kind").to_csv(tmp_path / "public.csv", index=False)
    table(400, 3).to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "study.toml").write_text(
        f"""
[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
target = "kind"
classes = {json.dumps(CLASSES)}
[privacy]
column = "level"
levels = {{high = 20.0, low = 60.0}}
[method]
kind = "dpsgd"
[dpsgd]
steps = 20
noise = "seeded"
noise_seed = 1
"""
    )
    return tmp_path


def test_a_hundred_classes_from_the_file_to_the_page(folder, collegium):
    for command in ("plan", "run"):
        code, output, errors = collegium(command, folder / "study.toml")
        assert code == 0, errors
        assert len((output + errors).splitlines()) < 60
        assert len(re.findall(r"kind-\d\d", output + errors)) < 25
    release = folder / "study" / "release"
    assert json.loads((release / "quality.json").read_text())["accuracy"] > 0.6
    effects = json.loads((release / "effects.json").read_text())["classes"]
    assert [row["name"] for row in effects] == CLASSES
    page = (release / "report.html").read_text()
    assert re.findall(r'scope="row">(kind-\d\d)', page) == CLASSES
    before, folded = page.split("<summary>Class by class</summary>")
    assert 'scope="row">kind-00' in folded
    assert len(set(re.findall(r"kind-\d\d", before))) <= 4  # the verdict, and best and worst
