"""A direct study from a stream is the one from memory, and goes on where it stopped, either way."""

import json

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from collegium.dpsgd import streamed
from collegium.dpsgd.shards import ShardSums
from collegium.errors import ConfigError
from collegium.study import runner, streaming
from collegium.study.config import read_config
from collegium.study.runner import plan_study, run_study

STUDY = """
[data]
private = "private"
public = "public.parquet"
target = "kind"
owner = "person"
missing = "?"
classes = ["cat", "dog", "owl"]
[privacy]
levels = { high = 2.0, average = 5.0, low = 9.0 }
delta = 1e-6
column = "privacy"
[method]
kind = "dpsgd"
[dpsgd]
steps = 12
noise = "seeded"
[run]
n_jobs = 1
"""
pytestmark = pytest.mark.filterwarnings("ignore")


def animals(n, seed, private=False):
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 3, n)
    table = pd.DataFrame({"height": kind + generator.normal(0, 0.2, n)})
    table["legs"] = np.array(["two", "four", "?"])[
        np.where(generator.random(n) < 0.05, 2, kind % 2)
    ]
    table["age"] = np.where(generator.random(n) < 0.1, np.nan, generator.integers(0, 9, n))
    table["kind"] = np.array(["cat", "dog", "owl"])[kind]
    if private:
        person = generator.integers(0, n // 2, n)
        table["person"] = [f"person {number}" for number in person]
        table["privacy"] = np.array(["high", "average", "low"])[person % 3]
    return table


@pytest.fixture
def study(tmp_path):
    (tmp_path / "private").mkdir()
    private = animals(600, 1, private=True)
    for part in range(3):
        private[part::3].to_parquet(tmp_path / "private" / f"{part}.parquet")
    animals(90, 2).to_parquet(tmp_path / "public.parquet")

    def made(**run):
        path = tmp_path / "study.toml"
        lines = [f"{name} = {json.dumps(value)}" for name, value in run.items()]
        path.write_text(STUDY + "\n".join(lines))
        return read_config(path)

    return made


def test_a_streamed_dpsgd_publishes_what_the_one_in_memory_does(study, tmp_path, monkeypatch):
    # With another engine, files are read by as many processes here as there are cores.
    monkeypatch.setattr(streaming, "_jobs_here", lambda config: 1)
    memory = run_study(study(), tmp_path / "memory")
    stream = run_study(study(streaming=True), tmp_path / "stream")
    threads = run_study(study(streaming=True, engine="threading"), tmp_path / "threads")
    for result in (stream, threads):
        assert result.plan == memory.plan
        for name in ("quality.json", "privacy.json"):
            first, second = (r.folder.release / name for r in (memory, result))
            assert first.read_bytes() == second.read_bytes()
        first, second = (np.load(r.folder.vault / "dpsgd.npz") for r in (memory, result))
        assert (first["parameters"] == second["parameters"]).all() and first["parameters"].any()
        assert not (result.folder.vault / "dpsgd-shards").exists()


def test_the_plan_of_a_stream_is_shown_as_that_of_a_table_is(study, monkeypatch):
    monkeypatch.setattr("collegium.study.methods.dpsgd.shown.seconds_of", lambda *run: 1.0)
    shown = [
        [str(block) for block in plan_study(study(**run)).plan.blocks()]
        for run in ({}, {"streaming": True})
    ]
    assert shown[0] == shown[1]


def test_a_filter_needs_memory_and_says_so(study, tmp_path):
    path = tmp_path / "study.toml"
    study(streaming=True)
    path.write_text(path.read_text().replace("steps = 12", "steps = 12\nindividual_filter = 1.5"))
    with pytest.raises(ConfigError, match="account of everybody in memory"):
        run_study(read_config(path), tmp_path / "filtered")


def test_a_dpsgd_that_is_cut_off_goes_on_with_its_shards_and_leaves_none(study, tmp_path):
    config, out = study(streaming=True), tmp_path / "out"
    shards = out / "vault" / "dpsgd-shards"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShardSums, "clipped_sum", _cut_off)
        with pytest.raises(KeyboardInterrupt):
            run_study(config, out)
    before = {file.name: file.stat().st_mtime_ns for file in shards.glob("*.records")}
    assert before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "remove_feature_shards", lambda folder: None)  # as a crash would
        run_study(config, out)
    assert {file.name: file.stat().st_mtime_ns for file in shards.glob("*.records")} == before
    run_study(config, out)
    assert not shards.exists()


def _cut_off(self, parameters, sample):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("n_jobs", "threads"), [(1, {1}), (2, {2}), (-1, {3})])
def test_no_more_threads_compute_than_there_are_jobs(study, tmp_path, monkeypatch, n_jobs, threads):
    study(streaming=True)
    path = tmp_path / "study.toml"
    path.write_text(path.read_text().replace("n_jobs = 1", f"n_jobs = {n_jobs}"))
    seen = []

    def refused(*_, **__):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        raise ConfigError("enough was seen")

    monkeypatch.setattr(runner, "plan_study", refused)
    with threadpool_limits(3), pytest.raises(ConfigError, match="enough"):
        run_study(read_config(path), tmp_path / "out")
    assert set(seen) == threads
