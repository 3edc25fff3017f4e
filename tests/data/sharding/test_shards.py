"""Shards on disk are the shards in memory, whatever way the records lie in files."""

import stat
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Budgets, Policy, PrivacyWarning, Uniform, Upsampling, Vanishing, Weighting
from collegium.data.sharding import (
    Granted,
    ParquetSource,
    Roles,
    ShardStore,
    build_shards,
    scan,
    shuffle,
)
from collegium.data.sharding.owners import OWNER, OwnerRegister
from collegium.data.sharding.roles import record_hashes
from collegium.data.sharding.shard_store import shard_bytes
from collegium.errors import InputError

KEY = b"public key"
POLICY = Policy({"low": 3.0, "high": 1.0, "average": 2.0}, delta=1e-9)
PERSONALISATIONS = [Uniform(), Upsampling(), Weighting(), Vanishing()]
ROLES = Roles("sick", "level", "patient")
CLASSES = ["no", "perhaps", "yes"]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def people(n_owners=60, seed=0, kind=str, most=4):
    """Owners with one to four records each, in shuffled order, with missing values of every kind."""
    generator = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_owners), generator.integers(1, most + 1, n_owners))
    generator.shuffle(owner)
    n = len(owner)
    table = pd.DataFrame({"age": generator.normal(50, 9, n), "visits": generator.integers(0, 9, n)})
    table["ward"] = pd.Series(np.array(["east", "west", "öst"])[generator.integers(0, 3, n)])
    table["smoker"] = pd.Series(generator.random(n) < 0.5, dtype="boolean")
    table["seen"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(generator.integers(0, 999, n), "D")
    for column in ("age", "ward", "smoker", "seen"):
        table.loc[generator.random(n) < 0.15, column] = None
    table["patient"] = [kind(number) for number in owner * 7 + 3]
    table["level"] = np.array(["high", "average", "low"])[owner % 3]
    table["sick"] = np.array(CLASSES)[generator.integers(0, 3, n)]
    return table


def write(folder, table, cuts=(), row_group_size=None):
    """Write a table into a folder of Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = [0, *cuts, len(table)]
    for number, (start, end) in enumerate(pairwise(ends)):
        part = pa.Table.from_pandas(table.iloc[start:end], preserve_index=False)
        pq.write_table(part, folder / f"{number:03d}.parquet", row_group_size=row_group_size)
    return folder


def scanned(folder, roles=ROLES, granted=None, piece_rows=50, **options):
    source = ParquetSource(folder, piece_rows)
    return source, scan(source, roles, granted or Granted(POLICY), KEY, **options)


def built(folder, shards, personalisation=None, n_teachers=6, plan=None, roles=ROLES, **options):
    source, found = scanned(folder, roles, **options)
    plan = plan or (personalisation or Weighting()).plan_for(found.budgets, n_teachers)
    return build_shards(source, roles, found, plan, KEY, shards), found, plan


def fingerprints(store):
    return [entry.fingerprint for entry in store.sensitive_entries]


# The same as in memory


@pytest.mark.parametrize("kind", [str, int, float])
@pytest.mark.parametrize("personalisation", PERSONALISATIONS, ids=lambda p: p.name)
def test_every_shard_has_the_records_that_it_has_in_memory_in_the_same_order(
    tmp_path, personalisation, kind, monkeypatch
):
    monkeypatch.setattr(shuffle, "PIECE_ROWS", 16)
    table = people(kind=kind)
    folder = write(tmp_path / "in", table, cuts=(20, 21, 90), row_group_size=13)
    budgets = POLICY.assign(table["level"], table["patient"])
    plan = personalisation.plan_for(budgets, 7)
    store, found, streamed_plan = built(folder, tmp_path / "shards", personalisation, 7)
    assert streamed_plan == plan and found.budgets.group_sizes() == budgets.group_sizes()
    assert (found.budgets.n_owners, found.budgets.n_records) == (budgets.n_owners, len(table))
    assignment = plan.assign(budgets, KEY)
    assert store.n_teachers == assignment.n_teachers
    codes = pd.Index(CLASSES).get_indexer(table["sick"])
    for number, rows in enumerate(assignment.shards()):
        X, y = store.load(number)
        assert y.tolist() == codes[rows].tolist()
        expected = table.drop(columns=["patient", "level", "sick"]).iloc[rows]
        for name in expected.columns:
            want, got = expected[name], X[name]
            assert pd.isna(got).tolist() == pd.isna(want).tolist()
            assert got.dropna().tolist() == want.dropna().tolist()


def test_epsilon_in_a_column_makes_the_groups_that_it_makes_in_memory(tmp_path):
    table = people()
    table["level"] = table["level"].map({"high": 0.03, "average": 2.0, "low": np.inf})
    _, found = scanned(write(tmp_path, table, (50,)), granted=Granted(delta=1e-9))
    budgets = Budgets.from_epsilons(table["level"], 1e-9, table["patient"])
    assert dict(found.budgets.groups) == dict(budgets.groups)
    assert found.budgets.group_sizes() == budgets.group_sizes()


def test_without_an_owner_column_the_row_in_the_data_set_names_the_owner(tmp_path):
    table = people().drop(columns="patient")
    roles = Roles("sick", "level")
    folder = write(tmp_path / "in", table, cuts=(33, 70), row_group_size=9)
    budgets = POLICY.assign(table["level"])
    store, found, plan = built(folder, tmp_path / "shards", Upsampling(), roles=roles)
    assert found.budgets.group_sizes() == budgets.group_sizes()
    for number, rows in enumerate(plan.assign(budgets, KEY).shards()):
        assert store.load(number)[0]["visits"].tolist() == table["visits"].iloc[rows].tolist()


class Under60:
    """Leaves out the old; a class, so that workers can unpickle it."""

    def __call__(self, X):
        return (X["age"] > 60).to_numpy()


def test_unwanted_records_are_neither_counted_nor_taught(tmp_path):
    table = people()
    kept = table[~(table["age"] > 60)]
    roles = Roles("sick", "level", "patient", ("seen",), Under60())
    store, found, _ = built(write(tmp_path / "in", table, (50,)), tmp_path / "shards", roles=roles)
    budgets = POLICY.assign(kept["level"], kept["patient"])
    assert found.budgets.group_sizes() == budgets.group_sizes()
    assert found.features == ("age", "visits", "ward", "smoker")
    assert sum(entry.records for entry in store.sensitive_entries) == len(kept)


def test_classes_are_those_that_occur_or_those_that_are_given(tmp_path):
    folder = write(tmp_path, people())
    assert scanned(folder)[1].classes.tolist() == CLASSES
    found = scanned(folder, classes=["yes", "no", "never", "perhaps"])[1]
    assert found.classes.tolist() == ["yes", "no", "never", "perhaps"]
    assert found.sensitive_seen.tolist() == [0, 1, 3]


def test_folders_named_key_value_are_columns_and_categories_stay_categories(tmp_path):
    table = people().drop(columns="level")
    table["ward"] = table["ward"].astype("category")
    for level, part in (("high", table[::2]), ("low", table[1::2])):
        write(tmp_path / "in" / f"level={level}", part)
    source, found = scanned(tmp_path / "in", Roles("sick", "level"))
    assert found.budgets.group_sizes() == {
        "low": len(table) // 2,
        "high": -(-len(table) // 2),
        "average": 0,
    }
    plan = Uniform().plan_for(found.budgets, 3)
    store = build_shards(source, Roles("sick", "level"), found, plan, KEY, tmp_path / "shards")
    X, _ = store.load(0)
    assert X["ward"].dtype == "category" and X["ward"].dropna().isin(["east", "west", "öst"]).all()


# What a shard depends on


@pytest.mark.parametrize("personalisation", PERSONALISATIONS, ids=lambda p: p.name)
@settings(max_examples=3)
@given(data=st.data())
def test_an_owner_more_changes_the_files_of_that_owners_teachers_only(
    tmp_path_factory, personalisation, data
):
    tmp_path = tmp_path_factory.mktemp("owner")
    table = people(seed=data.draw(st.integers(0, 99)))
    leaver = data.draw(st.sampled_from(sorted(set(table["patient"]))))
    cuts = sorted(data.draw(st.sets(st.integers(1, 60), max_size=3)))
    size = data.draw(st.integers(20, 80))
    stay = table[table["patient"] != leaver].reset_index(drop=True)
    budgets = POLICY.assign(table["level"], table["patient"])
    plan = personalisation.plan_for(budgets, 6)
    own = plan.assign(budgets, KEY).owner_teachers[budgets.owners == leaver]
    own = set(own.ravel().tolist()) - {-1}
    shards = tmp_path / "shards"
    before, _, _ = built(write(tmp_path / "without", stay, cuts, size), shards, plan=plan)
    times = {
        entry.file: (shards / entry.file).stat().st_mtime_ns for entry in before.sensitive_entries
    }
    after, _, _ = built(write(tmp_path / "with", table, cuts[::2], size + 3), shards, plan=plan)
    pairs = enumerate(zip(fingerprints(before), fingerprints(after), strict=True))
    assert {number for number, (old, new) in pairs if old != new} == own
    for number, entry in enumerate(after.sensitive_entries):
        untouched = times.get(entry.file) == (shards / entry.file).stat().st_mtime_ns
        assert untouched == (number not in own)
    assert len(list(shards.iterdir())) == after.n_teachers + 1


def test_a_shards_bytes_hold_nothing_of_its_neighbours():
    """Values under missing ones, and bits after the last, could be somebody else's."""
    generator = np.random.default_rng(4)
    for _ in range(60):
        n = int(generator.integers(1, 30))
        values, mask = generator.integers(0, 100, n), generator.random(n) < 0.4
        seen = set()
        for _ in range(2):
            m = n + int(generator.integers(0, 40))
            places = np.sort(generator.choice(m, n, replace=False))
            every, missing = generator.integers(0, 100, m), generator.random(m) < 0.4
            every[places], missing[places] = values, mask
            validity = pa.array(~missing).buffers()[1]
            whatever = np.where(missing, generator.integers(0, 99, m), every)
            columns = {
                kind: pa.Array.from_buffers(
                    arrow, m, [validity, pa.py_buffer(whatever.astype(kind))]
                )
                for kind, arrow in (("f8", pa.float64()), ("i8", pa.int64()), ("i1", pa.int8()))
            }
            columns["b"] = pa.array(every % 2 == 0, mask=missing)
            columns["s"] = pa.array([str(v) for v in every], pa.string(), mask=missing)
            seen.add(shard_bytes(pa.table(columns).take(pa.array(places))))
        assert len(seen) == 1


def test_order_and_number_of_files_of_a_worker_do_not_matter(tmp_path, monkeypatch):
    table = people(200)
    one, _, plan = built(write(tmp_path / "one", table), tmp_path / "a", n_teachers=20)
    monkeypatch.setattr(shuffle, "PIECE_ROWS", 32)
    folder = write(tmp_path / "many", table, cuts=range(20, 300, 20), row_group_size=7)
    source, found = scanned(folder, piece_rows=10)
    many = build_shards(source, ROLES, found, plan, KEY, tmp_path / "b")
    assert fingerprints(one) == fingerprints(many)


# On disk


def test_shards_are_for_their_owners_eyes_only_and_hold_features_alone(tmp_path):
    store, _, _ = built(write(tmp_path / "in", people()), tmp_path / "shards")
    assert stat.S_IMODE((tmp_path / "shards").stat().st_mode) == 0o700
    for path in (tmp_path / "shards").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert store.load(0)[0].columns.tolist() == ["age", "visits", "ward", "smoker", "seen"]


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "swap"])
def test_a_shard_that_is_not_what_was_written_is_named_in_one_line(tmp_path, damage):
    store, _, _ = built(write(tmp_path / "in", people()), tmp_path / "shards")
    path, other = (store.folder / store.sensitive_entries[n].file for n in (2, 3))
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        new = {"flip": flipped, "cut": content[:-9], "swap": other.read_bytes()}[damage]
        path.write_bytes(new)
    with pytest.raises(InputError, match="run again") as error:
        store.load(2)
    assert path.name in str(error.value) and "\n" not in str(error.value)
    store.load(3)


def test_a_store_is_reopened_by_path_and_refuses_to_be_another(tmp_path):
    import pickle

    store, _, plan = built(write(tmp_path / "in", people()), tmp_path / "shards")
    packed = pickle.dumps(store)
    assert len(packed) < 1000 and fingerprints(pickle.loads(packed)) == fingerprints(store)
    built(write(tmp_path / "in", people(61)), tmp_path / "shards", plan=plan)
    with pytest.raises(InputError, match="built anew"):
        pickle.loads(packed)
    with pytest.raises(InputError, match="no shards"):
        ShardStore(tmp_path)


# Counting owners


@given(
    names=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=60),
    cuts=st.integers(1, 9),
)
def test_owners_are_counted_once_however_they_come_in(names, cuts):
    register = OwnerRegister()
    unique = sorted(set(names))
    group = {name: position % 3 for position, name in enumerate(unique)}
    for start in range(0, len(names), cuts):
        part = names[start : start + cuts]
        seen = np.array([(n * 2 % 2**64, n // 7, group[n]) for n in part], dtype=OWNER)
        register.add(seen)
    expected = np.bincount([group[name] for name in unique], minlength=3)
    assert register.sizes(3).tolist() == expected.tolist()


def test_owners_whose_first_hashes_collide_are_two():
    register = OwnerRegister()
    register.add(np.array([(5, 1, 0), (5, 2, 1), (5, 1, 0)], dtype=OWNER))
    assert register.sizes(2).tolist() == [1, 1]


def test_hashes_of_records_are_those_of_owners():
    from collegium.personalisation.partition import owner_hashes

    names = np.array(["b", "a", "b", "ü"], dtype=object)
    assert record_hashes(names, KEY).tolist() == owner_hashes(names, KEY).tolist()
