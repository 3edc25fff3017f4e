"""Teachers from shards on disk are the teachers from records in memory."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from collegium import Policy, PrivacyWarning, Upsampling
from collegium.data.sharding import Granted, ParquetSource, Roles, ShardStore, build_shards, scan
from collegium.errors import InputError
from collegium.models.preprocessing import TabularEncoder
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.teachers.shard_ensemble import ShardEnsemble

POLICY = Policy({"high": 1.0, "low": 3.0}, delta=1e-9)
N_TEACHERS = 9


def people(n, seed):
    generator = np.random.default_rng(seed)
    table = pd.DataFrame({"age": generator.normal(50, 9, n), "visits": generator.integers(0, 9, n)})
    table["ward"] = np.array(["east", "west", "north"])[generator.integers(0, 3, n)]
    table.loc[generator.random(n) < 0.1, "age"] = np.nan
    table["sick"] = (table["visits"] + generator.normal(0, 2, n) > 4).astype(int)
    table["patient"] = generator.integers(0, n // 2, n)
    table["level"] = np.array(["high", "low"])[table["patient"] % 2]
    return table


@pytest.fixture(scope="module")
def school(tmp_path_factory):
    """Records in memory with their assignment, and the same in a store."""
    folder = tmp_path_factory.mktemp("school")
    private, roles = people(300, 0), Roles("sick", "level", "patient")
    private.to_parquet(folder / "private.parquet", row_group_size=70)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        source = ParquetSource(folder / "private.parquet")
        found = scan(source, roles, Granted(POLICY), b"0")
        budgets = POLICY.assign(private["level"], private["patient"])
    plan = Upsampling().plan_for(budgets, N_TEACHERS)
    store = build_shards(source, roles, found, plan, b"0", folder / "shards")
    return private, plan.assign(budgets, b"0"), store


def features(table):
    return table[["age", "visits", "ward"]]


PUBLIC = features(people(80, 1))
ENCODER = TabularEncoder("onehot").fit(PUBLIC)


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), LogisticRegression()], ids=repr)
def test_teachers_vote_as_they_do_when_everything_is_in_memory(school, model):
    private, assignment, store = school
    X, y = ENCODER.transform(features(private)), private["sick"].to_numpy()
    memory = TeacherEnsemble(model, seed=5)
    stored = ShardEnsemble(model, seed=5)
    votes = memory.ask(memory.train(X, y, assignment), ENCODER.transform(PUBLIC))
    got = stored.ask(stored.train_stored(store, ENCODER), ENCODER.transform(PUBLIC))
    assert np.array_equal(got, votes)
    some = stored.train_stored(store, ENCODER, [7, 2])
    assert np.array_equal(stored.ask(some, ENCODER.transform(PUBLIC)), votes[:, [7, 2]])


def test_a_teacher_reads_its_own_shard_and_no_other(school, tmp_path):
    store = school[2]
    (tmp_path / "manifest.json").write_bytes((store.folder / "manifest.json").read_bytes())
    own = store.sensitive_entries[4].file
    (tmp_path / own).write_bytes((store.folder / own).read_bytes())
    alone = ShardStore(tmp_path)
    ensemble = ShardEnsemble(DecisionTreeClassifier(), 0)
    (teacher,) = ensemble.train_stored(alone, ENCODER, [4])
    assert teacher.sensitive_model is not None
    with pytest.raises(InputError, match="cannot be read"):
        ensemble.train_stored(alone, ENCODER, [4, 5])


class Together:
    """Trains trees in batches, and writes down how many at a time."""

    teachers_at_once = 4

    def __init__(self):
        self.calls = []

    def fit(self, X, y):
        raise AssertionError("never asked one by one")

    predict = fit

    def fit_shards(self, shards, seeds, n_classes):
        self.calls.append(len(shards))
        pairs = zip(shards, seeds, strict=True)
        return [
            DecisionTreeClassifier(random_state=seed % 2**31).fit(X, y) for (X, y), seed in pairs
        ]

    def predict_shards(self, models, X_public):
        return [model.predict(X_public) for model in models]


def test_batched_estimators_get_several_shards_at_once(school):
    private, assignment, store = school
    X, y = ENCODER.transform(features(private)), private["sick"].to_numpy()
    one, other = Together(), Together()
    memory = TeacherEnsemble(one, 5, n_classes=2)
    stored = ShardEnsemble(other, 5, n_classes=2)
    votes = memory.ask(memory.train(X, y, assignment), ENCODER.transform(PUBLIC))
    got = stored.ask(stored.train_stored(store, ENCODER), ENCODER.transform(PUBLIC))
    assert np.array_equal(got, votes)
    assert one.calls == other.calls and max(other.calls) <= 4 and len(other.calls) > 1


def test_workers_that_do_not_see_our_files_get_the_shards_themselves(school, monkeypatch):
    store = school[2]
    ensemble = ShardEnsemble(DecisionTreeClassifier(), 5, keep=lambda number, _: number)
    expected = ShardEnsemble(DecisionTreeClassifier(), 5).train_stored(store, ENCODER)
    monkeypatch.setattr(ensemble._workers, "share_files", False)
    assert ensemble.train_stored(store, ENCODER) == list(range(store.n_teachers))
    monkeypatch.setattr(ensemble, "_keep", None)
    got = ensemble.train_stored(store, ENCODER)
    X = ENCODER.transform(PUBLIC)
    assert all(np.array_equal(a.vote(X), b.vote(X)) for a, b in zip(got, expected, strict=True))


def test_shards_without_records_or_with_one_class_teach_what_they_can(tmp_path):
    table = people(40, 2).assign(sick=1)
    table.to_parquet(tmp_path / "private.parquet")
    roles = Roles("sick", "level", "patient")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        source = ParquetSource(tmp_path / "private.parquet")
        found = scan(source, roles, Granted(POLICY), b"0", [0, 1])
    plan = Upsampling().plan_for(found.budgets, found.budgets.n_owners - 1)
    store = build_shards(source, roles, found, plan, b"0", tmp_path / "shards")
    records = [entry.records for entry in store.sensitive_entries]
    assert 0 in records
    teachers = ShardEnsemble(DecisionTreeClassifier(), 0).train_stored(store, ENCODER)
    assert [teacher.constant for teacher in teachers] == [1 if count else -1 for count in records]
