"""A study from a stream gives what the same study gives from memory, and goes on where it stopped."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from collegium import PrivacyWarning
from collegium.attacks.one_run import audit_run
from collegium.cli.main import main as command_line
from collegium.data.sharding import build as building
from collegium.errors import ConfigError, InputError
from collegium.study import stored_teachers as storing
from collegium.study import streaming
from collegium.study.config import read_config
from collegium.study.runner import plan_study, run_study

STUDY = """
[data]
private = "private"
public = "public.parquet"
test = "test.parquet"
target = "kind"
owner = "person"
missing = "?"
classes = ["cat", "dog", "owl"]
[privacy]
levels = { high = 6.0, average = 12.0, low = 18.0 }
column = "privacy"
[preprocessing]
kind = "tabular"
[teachers]
model = "MODEL"
n_teachers = 12
[personalisation]
method = "METHOD"
[aggregation]
aggregator = "gnmax"
sigma = 6
noise = "seeded"
[student]
model = "sklearn.naive_bayes.GaussianNB"
[run]
n_jobs = JOBS
streaming = STREAMING
"""


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
    """Write the records, and make studies of them."""
    (tmp_path / "private").mkdir()
    private = animals(400, 1, private=True)
    for part in range(3):
        private[part::3].to_parquet(tmp_path / "private" / f"{part}.parquet", row_group_size=50)
    animals(90, 2).to_parquet(tmp_path / "public.parquet")
    animals(60, 3).to_parquet(tmp_path / "test.parquet")

    def made(
        streamed, model="sklearn.tree.DecisionTreeClassifier", method="weighting", jobs=1, **more
    ):
        text = STUDY.replace("MODEL", model).replace("METHOD", method).replace("JOBS", str(jobs))
        text = text.replace("STREAMING", str(streamed).lower())
        for old, new in more.items():
            text = text.replace(old, new)
        path = tmp_path / f"streamed-{str(streamed).lower()}.toml"
        path.write_text(text)
        return path

    return made


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setattr(
        "collegium.study.pages.render_page", lambda page: "a page, which is not the subject here"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def run(path, out=None):
    return run_study(read_config(path), out or path.with_suffix(""))


@pytest.mark.parametrize(
    ("model", "method", "jobs"),
    [
        ("sklearn.tree.DecisionTreeClassifier", "weighting", 1),
        ("random-forest", "upsampling", 1),
        ("logistic-regression", "vanishing", 1),
        ("sklearn.naive_bayes.GaussianNB", "uniform", 2),
    ],
)
def test_votes_labels_account_and_student_are_those_of_the_study_in_memory(
    study, model, method, jobs
):
    if model == "random-forest":
        options = {"n_teachers = 12": "n_teachers = 12\nparams = { n_estimators = 3 }"}
    else:
        options = {}
    memory = run(study(False, model, method, **options))
    stream = run(study(True, model, method, jobs, **options))
    votes = [np.load(result.folder.vault / "votes.npy") for result in (memory, stream)]
    assert np.array_equal(*votes) and len(np.unique(votes[0])) >= 3
    assert memory.plan == stream.plan and memory.privacy == stream.privacy
    assert memory.labels.queries.tolist() == stream.labels.queries.tolist()
    assert memory.labels.labels.tolist() == stream.labels.labels.tolist()
    assert memory.student_accuracy == stream.student_accuracy
    for name in ("labels.csv", "privacy.json"):
        first, second = ((r.folder.release / name).read_bytes() for r in (memory, stream))
        assert first == second
    assert not (stream.folder.vault / "shards").exists()


def test_streaming_is_a_matter_of_memory_so_a_finished_study_is_the_same_study(study, tmp_path):
    first = run(study(True), tmp_path / "out")
    before = (first.folder.release / "labels.csv").read_bytes()
    run(study(False), tmp_path / "out")
    run(study(True), tmp_path / "out")
    assert (first.folder.release / "labels.csv").read_bytes() == before


class Crash(BaseException):
    """Something that no handler expects."""


@pytest.mark.parametrize("where", ["shards", "teachers", "votes"])
def test_an_interrupted_study_goes_on(study, tmp_path, monkeypatch, where):
    path = study(True)
    expected = run(path, tmp_path / "whole")
    target, name = {
        "shards": (building, "write_manifest"),
        "teachers": (storing, "store_teacher"),
        "votes": (streaming, "ask_in_blocks"),
    }[where]
    real, calls = getattr(target, name), []

    def failing(*args, **kwargs):
        calls.append(name)
        if len(calls) == (4 if where == "teachers" else 1):
            raise Crash
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(target, name, failing)
        with pytest.raises(Crash):
            run(path, tmp_path / "out")
    result = run(path, tmp_path / "out")
    files = ("vault/votes.npy", "release/labels.csv")
    for file in files:
        assert (result.folder.path / file).read_bytes() == (
            expected.folder.path / file
        ).read_bytes()
    assert not (result.folder.vault / "shards").exists()


def test_a_plan_counts_the_same_people(study):
    plans = [
        plan_study(read_config(study(streamed)), on_ledger=False).plan.run
        for streamed in (True, False)
    ]
    assert plans[0].plan == plans[1].plan
    streamed_ones, others = (planned.records for planned in plans)
    for name in ("group_sizes", "__len__"):
        assert getattr(streamed_ones.budgets, name)() == getattr(others.budgets, name)()
    assert len(streamed_ones.X) == len(others.X)
    assert streamed_ones.fingerprints == others.fingerprints


def test_the_command_line_plans_and_runs_it(study, capsys):
    path = study(True)
    for command in ("plan", "run"):
        with pytest.raises(SystemExit) as ended:
            import sys

            sys.argv = ["collegium", command, str(path), "--json"]
            command_line()
        assert not ended.value.code
        assert json.loads(capsys.readouterr().out)["groups"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('private = "private"', 'private = "private.csv"', "Parquet file or a folder"),
        ('column = "privacy"', 'file = "privacy.csv"', "give privacy.column"),
        ("n_teachers = 12", 'n_teachers = 12\nassignment = "balanced"', "use 'hash'"),
        ('target = "kind"', 'private_labels = "labels.npy"', "give data.target"),
        (
            'public = "public.parquet"\ntest = "test.parquet"',
            "private_records = 100\npublic_records = 100",
            "give data.public",
        ),
    ],
)
def test_what_needs_memory_is_refused_before_anything_is_read(study, old, new, message):
    with pytest.raises(ConfigError, match=f"run.streaming reads .*{message}"):
        run(study(True, **{old: new}))


def test_an_audit_says_that_it_needs_the_records_in_memory(study):
    with pytest.raises(InputError, match=r"set run\.streaming = false"):
        audit_run(
            plan_study(
                read_config(study(True, **{'noise = "seeded"': 'noise = "secure"'})),
                on_ledger=False,
            ).plan.run
        )


def test_streaming_must_be_true_or_false(study):
    with pytest.raises(ConfigError, match=r"run\.streaming must be true or false, got 'yes'"):
        read_config(study('"yes"'))


def test_public_records_must_have_the_features_of_the_files(study, tmp_path):
    path = study(True)
    animals(90, 2).drop(columns="age").to_parquet(tmp_path / "public.parquet")
    with pytest.raises(InputError, match=r"public records have other columns.*age"):
        run(path)
    animals(90, 2).assign(age="old").to_parquet(tmp_path / "public.parquet")
    with pytest.raises(InputError, match="column 'age' holds text in the public records"):
        run(path)
