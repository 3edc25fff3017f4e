"""`collegium run --engine`: another place, the same study."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

STUDY = """
[data]
private = "private.csv"
public = "public.csv"
target = "kind"
classes = ["cat", "dog"]
[privacy]
levels = { high = 8.0, low = 16.0 }
column = "privacy"
[teachers]
model = "random-forest"
params = { n_estimators = 3 }
n_teachers = 12
[aggregation]
aggregator = "gnmax"
sigma = 6
noise = "seeded"
noise_seed = 3
[student]
model = "sklearn.naive_bayes.GaussianNB"
[run]
"""


@pytest.fixture
def study(tmp_path):
    generator = np.random.default_rng(1)
    for name, n in {"private": 240, "public": 60}.items():
        kind = generator.integers(0, 2, n)
        table = pd.DataFrame({"height": kind + generator.normal(0, 0.4, n), "weight": kind * 2.0})
        table["kind"] = np.array(["cat", "dog"])[kind]
        if name == "private":
            table["privacy"] = np.array(["high", "low"])[np.arange(n) % 2]
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    path = tmp_path / "study.toml"
    path.write_text(STUDY + "n_jobs = 2\n", encoding="utf-8")
    return path


def test_a_study_on_dask_releases_what_it_releases_here(collegium, study, tmp_path):
    """One worker, which is another process; that the work is shared among several: ``tests/workers``."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=":0",
        worker_dashboard_address=None,
        silence_logs=50,
    ) as cluster:
        address = ("--engine", "dask", "--address", cluster.scheduler_address)
        code, _, errors = collegium("run", study, "--out", tmp_path / "dask", *address)
        assert code == 0, errors
        with distributed.Client(cluster, set_as_default=False) as client:
            done = client.run(lambda dask_worker: len(dask_worker.state.log), wait=True)
            assert all(done.values()) and len(done) == 1, "the worker had something to do"
    code, _, errors = collegium("run", study, "--out", tmp_path / "local", "--engine", "local")
    assert code == 0, errors
    for name in ("labels.csv", "privacy.json", "student.skops"):
        here, there = (Path(tmp_path, where, "release", name) for where in ("local", "dask"))
        assert here.read_bytes() == there.read_bytes(), name
    teachers = [
        sorted(Path(tmp_path, where, "vault/teachers").iterdir()) for where in ("local", "dask")
    ]
    assert [path.name for path in teachers[0]] == [path.name for path in teachers[1]]
    assert all(path.stat().st_mode & 0o77 == 0 for path in teachers[1])
    code, _, errors = collegium("run", study, "--out", tmp_path / "dask", "--engine", "threading")
    assert code == 0, "the engine is no part of the study's identity"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "spark"], "unknown engine 'spark': allowed are local, dask, ray"),
        (["--address", "tcp://x:1"], "would have no effect on engine 'local'"),
    ],
)
def test_engines_that_cannot_be_are_one_line_and_nothing_begins(
    collegium, study, tmp_path, options, message
):
    code, _, errors = collegium("run", study, "--out", tmp_path / "never", *options)
    assert code == 2
    assert message in errors.replace("\n", " ")
    assert len(errors.strip().splitlines()) == 1
    assert not (tmp_path / "never").exists()


def test_the_file_names_the_engine(collegium, study, tmp_path):
    study.write_text(STUDY + 'engine = "spark"\n', encoding="utf-8")
    code, _, errors = collegium("run", study)
    assert code == 2
    assert "unknown engine 'spark'" in errors


def test_direct_training_in_memory_has_no_engine(collegium, study, tmp_path):
    text, *_ = STUDY.partition("[teachers]")
    study.write_text(f'{text}[method]\nkind = "dpsgd"\n', encoding="utf-8")
    code, _, errors = collegium("run", study, "--out", tmp_path / "out", "--engine", "dask")
    assert code == 2 and "--engine means nothing to direct training on records in memory" in errors
    assert not (tmp_path / "out").exists()
