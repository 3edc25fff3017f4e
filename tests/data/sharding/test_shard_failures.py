"""Bad input and failing disks: one clear line, nothing half-trusted, and the next run goes on."""

import errno
import hashlib
import os
import re
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from collegium import Policy, PrivacyWarning, Weighting
from collegium.data.sharding import Granted, ParquetSource, Roles, ShardStore, build_shards, scan
from collegium.data.sharding import build as building
from collegium.data.sharding import shard_store as storing
from collegium.data.sharding import shuffle as shuffling
from collegium.errors import InputError
from collegium.pate.teachers.shard_ensemble import ShardEnsemble
from collegium.pate.voting.vote_blocks import ask_in_blocks, blocks_of, open_votes

KEY = b"key"
POLICY = Policy({"high": 1.0, "low": 3.0}, delta=1e-9)
ROLES = Roles("sick", "level", "patient")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def people(n=120):
    number = np.arange(n)
    return pd.DataFrame(
        {
            "age": number % 50 + 0.5,
            "patient": [f"secret {value}" for value in number // 2],
            "level": np.where(number // 2 % 2, "high", "low"),
            "sick": number % 3 % 2,
        }
    )


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "in"
    path.mkdir()
    for part in range(3):
        people()[40 * part : 40 * part + 40].to_parquet(path / f"{part}.parquet", index=False)
    return path


def look(folder, roles=ROLES, granted=None, classes=None):
    source = ParquetSource(folder)
    return source, scan(source, roles, granted or Granted(POLICY), KEY, classes)


def build(folder, shards, **options):
    source, found = look(folder)
    plan = Weighting().plan_for(found.budgets, 8)
    return build_shards(source, ROLES, found, plan, KEY, shards, **options)


def refused(message, folder, **options):
    with pytest.raises(InputError, match=message) as error:
        look(folder, **options)
    assert "\n" not in str(error.value) and "secret" not in str(error.value)


def rewrite(folder, column, value, rows=(5,), part=1):
    path = folder / f"{part}.parquet"
    table = pd.read_parquet(path)
    table[column] = table[column].astype(object)
    table.loc[list(rows), column] = value
    table.to_parquet(path, index=False)


# Bad input


def test_a_folder_without_parquet_or_without_records_is_refused(tmp_path):
    refused("without images or .parquet files", tmp_path)
    refused("does not exist", tmp_path / "nowhere")
    people(0).to_parquet(tmp_path / "none.parquet", index=False)
    refused("holds no record", tmp_path)


def test_a_file_with_other_columns_or_types_is_named(folder):
    people(4).drop(columns="age").to_parquet(folder / "3.parquet", index=False)
    refused("other or repeated columns in '3.parquet' than in '0.parquet'", folder)
    people(4).assign(age="old").to_parquet(folder / "3.parquet", index=False)
    refused("same types", folder)
    people(4).assign(age=np.arange(4)).to_parquet(folder / "3.parquet", index=False)
    assert look(folder)[1].budgets.n_records == 124


@pytest.mark.parametrize("role", ["target", "level", "owner"])
def test_a_missing_column_is_named(folder, role):
    named = {"target": "sick", "level": "level", "owner": "patient", role: "shoe size"}
    refused(
        f"{role} names column 'shoe size'.*the columns are age, patient",
        folder,
        roles=Roles(**named),
    )


def test_records_need_features(folder):
    roles = Roles("sick", "level", "patient", ("age",))
    refused("add features to learn from", folder, roles=roles)


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_a_truncated_file_is_named_before_anything_is_written(folder, keep):
    path = folder / "1.parquet"
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    refused(re.escape(str(path)), folder)


def test_a_file_damaged_inside_is_named(folder):
    path = folder / "1.parquet"
    content = bytearray(path.read_bytes())
    content[4:400] = os.urandom(396)
    path.write_bytes(bytes(content))
    refused("1.parquet", folder)


@pytest.mark.parametrize("value", [None, float("nan")])
def test_an_owner_without_a_name_is_refused(folder, value):
    rewrite(folder, "patient", value, (5, 6))
    refused(r"2 record\(s\) without an owner, first record 46 ", folder)


def test_numbered_owners_may_not_be_missing_either(folder):
    for part in range(3):
        path = folder / f"{part}.parquet"
        table = pd.read_parquet(path).assign(patient=np.arange(40.0))
        table.loc[3, "patient"] = np.nan if part == 2 else 3.0
        table.assign(level="low").to_parquet(path, index=False)
    refused("without an owner, first record 84 ", folder)


@pytest.mark.parametrize(
    ("value", "says"), [(None, ", which has no privacy level"), ("secret", "")]
)
def test_a_missing_or_unknown_level_is_refused(folder, value, says):
    rewrite(folder, "level", value)
    refused(rf"first record 46 \(row 47 of a file[^,]*\){says}: allowed are high, low", folder)


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_an_epsilon_that_is_none_is_refused(folder, value):
    for part in range(3):
        path = folder / f"{part}.parquet"
        pd.read_parquet(path).assign(level=1.0).to_parquet(path, index=False)
    rewrite(folder, "level", value)
    path = folder / "1.parquet"
    pd.read_parquet(path).astype({"level": float}).to_parquet(path, index=False)
    refused("record 46 .*positive ε", folder, granted=Granted(delta=1e-9))


def test_an_owner_with_two_levels_in_different_files_is_refused(folder):
    rewrite(folder, "patient", "secret 0", (0, 1, 2, 3), part=2)
    refused(r"1 owner\(s\) with two budgets", folder)


def test_a_label_that_is_missing_or_no_class_is_refused(folder):
    refused(
        r"13 record\(s\) (?:with|have) a label that is not among the classes",
        folder,
        classes=[0, 2],
    )
    for part in range(3):
        rewrite(folder, "sick", None, (), part)
        path = folder / f"{part}.parquet"
        table = pd.read_parquet(path)
        table["sick"] = table["sick"].astype(float)
        table.loc[7, "sick"] = np.nan if part else 1.0
        table.to_parquet(path, index=False)
    refused(r"1 record\(s\) without a label, first record 48 ", folder)


def test_a_target_of_numbers_is_no_class(folder):
    path = folder / "0.parquet"
    pd.read_parquet(path).assign(sick=np.linspace(0, 1, 40)).to_parquet(path, index=False)
    refused("continuous", folder)


def test_what_needs_owners_in_memory_says_so(folder):
    budgets = look(folder)[1].budgets
    with pytest.raises(InputError, match="streamed"):
        budgets.strictest()
    with pytest.raises(InputError, match="streamed"):
        Weighting().plan_for(budgets, 4).assign(budgets, KEY)


def test_files_that_change_between_the_passes_are_noticed(folder, tmp_path):
    source, found = look(folder)
    plan = Weighting().plan_for(found.budgets, 8)
    rewrite(folder, "level", "unheard of")
    with pytest.raises(InputError, match="do not change files"):
        build_shards(source, ROLES, found, plan, KEY, tmp_path / "shards")
    with pytest.raises(InputError, match="no shards"):
        ShardStore(tmp_path / "shards")


# Crashes


class Crash(BaseException):
    """Something that no handler expects."""


def entries(store):
    return [(entry.file, entry.fingerprint) for entry in store.sensitive_entries]


@pytest.fixture
def tiny(monkeypatch):
    """Many small steps: one bucket per teacher, a few files per piece."""
    monkeypatch.setattr(building, "bucket_starts", lambda teachers, _: np.arange(teachers + 1))


def crash_at(monkeypatch, module, name, when, error):
    calls = []
    real = getattr(module, name)

    def failing(*args, **kwargs):
        calls.append(args)
        if len(calls) == when:
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, failing)
    return calls


STEPS = [
    (shuffling, "_write_buckets", 3),
    (shuffling, "write_json", 2),
    (storing, "_write", 1),
    (storing, "_write", 6),
    (building, "write_json", 1),
    (building, "write_json", 4),
    (building, "write_manifest", 1),
    (building, "_tidy", 1),
]


@pytest.mark.parametrize(("module", "name", "when"), STEPS)
def test_after_a_crash_nothing_is_trusted_that_is_not_whole_and_the_next_run_goes_on(
    folder, tmp_path, monkeypatch, tiny, module, name, when
):
    whole = entries(build(folder, tmp_path / "whole"))
    shards = tmp_path / "shards"
    with monkeypatch.context() as patch:
        crash_at(patch, module, name, when, Crash())
        with pytest.raises(Crash):
            build(folder, shards)
    if name != "_tidy":
        with pytest.raises(InputError, match="no shards"):
            ShardStore(shards)
    for path in shards.rglob(
        "*.arrow"
    ):  # a power failure may leave halves of what nothing vouches for
        of_piece = path.name.startswith("piece")
        witness = path.name[:12] + ".json" if of_piece else f"bucket-{path.name[:6]}.json"
        if not (shards / ".work" / witness).exists() and name != "_tidy":
            path.write_bytes(b"half")
    store = build(folder, shards)
    assert entries(store) == whole
    assert {path.name for path in shards.iterdir()} == {
        "manifest.json",
        *(file for file, _ in whole),
    }
    for number in range(store.n_teachers):
        store.load(number)


def test_a_removal_that_was_cut_off_leaves_no_store_to_be_found_damaged(
    folder, tmp_path, monkeypatch
):
    shards = tmp_path / "shards"
    build(folder, shards)
    with monkeypatch.context() as patch:
        crash_at(patch, storing.shutil, "rmtree", 1, Crash())
        with pytest.raises(Crash):
            storing.remove_shards(shards)
    with pytest.raises(InputError, match="no shards"):
        ShardStore(shards)
    storing.remove_shards(shards)
    assert not shards.exists()


def test_what_was_finished_before_a_crash_is_not_done_again(folder, tmp_path, monkeypatch, tiny):
    shards = tmp_path / "shards"
    with monkeypatch.context() as patch:
        crash_at(patch, storing, "_write", 6, Crash())
        with pytest.raises(Crash):
            build(folder, shards)
    written = crash_at(monkeypatch, shuffling, "_write_buckets", 0, None)
    cut = crash_at(monkeypatch, storing, "_write", 0, None)
    build(folder, shards)
    assert not written and len(cut) == 3


@pytest.mark.parametrize("place", [0, 0.5, 0.9])
def test_a_flipped_bit_in_what_a_crash_left_is_noticed_or_changes_no_shard(
    folder, tmp_path, monkeypatch, tiny, place
):
    whole = entries(build(folder, tmp_path / "whole"))
    left, shards = tmp_path / "left", tmp_path / "shards"
    with monkeypatch.context() as patch:
        crash_at(patch, storing, "_write", 6, Crash())
        with pytest.raises(Crash):
            build(folder, left)
    for path in sorted(path for path in left.rglob("*") if path.is_file()):
        shutil.rmtree(shards, ignore_errors=True)
        shutil.copytree(left, shards)
        damaged = bytearray(path.read_bytes())
        damaged[int(place * len(damaged))] ^= 1
        (shards / path.relative_to(left)).write_bytes(damaged)
        try:
            store = build(folder, shards)
            for number in range(store.n_teachers):
                store.load(number)
        except InputError as error:
            assert "\n" not in str(error) and "run again" in str(error)
        else:
            assert entries(store) == whole


def test_a_flipped_bit_in_the_manifest_is_noticed(folder, tmp_path):
    build(folder, tmp_path / "shards")
    path = tmp_path / "shards/manifest.json"
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            known = ShardStore(tmp_path / "shards")
        except InputError:
            continue
        path.write_bytes(whole)  # a blank for another
        assert vars(known) == vars(ShardStore(tmp_path / "shards"))


def test_a_crash_while_shards_are_renewed_leaves_the_old_ones_whole(
    folder, tmp_path, monkeypatch, tiny
):
    shards = tmp_path / "shards"
    old = entries(build(folder, shards))
    rewrite(folder, "age", 77.5, (0, 5, 9))
    path = folder / "1.parquet"
    pd.read_parquet(path).astype({"age": float}).to_parquet(path, index=False)
    with monkeypatch.context() as patch:
        crash_at(patch, building, "write_manifest", 1, Crash())
        with pytest.raises(Crash):
            build(folder, shards)
    store = ShardStore(shards)
    assert entries(store) == old
    for number in range(store.n_teachers):
        store.load(number)
    assert entries(build(folder, shards)) != old


def test_work_left_by_another_build_is_not_used(folder, tmp_path, monkeypatch, tiny):
    shards = tmp_path / "shards"
    with monkeypatch.context() as patch:
        crash_at(patch, storing, "_write", 6, Crash())
        with pytest.raises(Crash):
            build(folder, shards)
    table = pd.read_parquet(folder / "2.parquet")
    table.assign(age=table["age"] + 1).to_parquet(folder / "2.parquet", index=False)
    assert entries(build(folder, shards)) == entries(build(folder, tmp_path / "whole"))


@pytest.mark.parametrize("when", [1, 3, 5, 8, 12])
def test_a_full_disk_is_one_line_and_the_next_run_goes_on(
    folder, tmp_path, monkeypatch, tiny, when
):
    whole = entries(build(folder, tmp_path / "whole"))
    shards = tmp_path / "shards"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patch:
        crash_at(patch, os, "open", 2 * when, full)
        with pytest.raises(InputError, match=r"No space left on device.*make room") as error:
            build(folder, shards)
    assert "\n" not in str(error.value)
    assert entries(build(folder, shards)) == whole


# Teachers and votes


@pytest.fixture
def store(folder, tmp_path):
    return build(folder, tmp_path / "shards")


class Quoting:
    """A transformer that quotes a record, as many libraries do."""

    def transform(self, X):
        raise ValueError(f"cannot use {X.iloc[0, 0]} of secret 4")


def test_a_failing_transformer_quotes_nobody(store):
    ensemble = ShardEnsemble(DecisionTreeClassifier(), 0)
    with pytest.raises(InputError, match="could not be preprocessed: ValueError") as error:
        ensemble.train_stored(store, Quoting())
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None and error.value.__context__ is None


def test_votes_written_in_blocks_are_those_of_one_call_and_resume(store, tmp_path, monkeypatch):
    ensemble = ShardEnsemble(DecisionTreeClassifier(), 0, n_classes=2)
    teachers = ensemble.train_stored(store)
    X = people(70)[["age"]]
    expected = ensemble.ask(teachers, X)
    path, asked = tmp_path / "votes.npy", []

    def ask(block):
        asked.append(len(block))
        if len(asked) == 4:
            raise OSError(errno.ENOSPC, "full")
        return ensemble.ask(teachers, block)

    size = (70, store.n_teachers, 2)
    with pytest.raises(OSError):
        ask_in_blocks(path, ask, blocks_of(X, store.n_teachers, 800), *size)
    assert not path.exists() and asked == [12] * 4
    with path.with_name(".votes.npy.partial").open("ab") as file:
        file.write(b"torn")  # what a crash in the middle of a block leaves
    table = ask_in_blocks(path, ask, blocks_of(X, store.n_teachers, 800), *size)
    assert asked[4:] == [12, 12, 10]
    assert table.sensitive_table.dtype == np.int8
    assert np.array_equal(table.sensitive_table, expected)
    assert np.array_equal(np.load(path), expected)
    assert [p.name for p in tmp_path.iterdir() if "votes" in p.name] == ["votes.npy"]
    assert (
        len(asked) == 7 and ask_in_blocks(path, ask, [], *size).n_queries == 70 and len(asked) == 7
    )
    weights = np.linspace(1, 2, store.n_teachers)
    counted = open_votes(path, *size).counts(np.array([3, 1]), weights)
    assert counted[0, 1] == pytest.approx(weights[expected[3] == 1].sum())


@pytest.mark.parametrize("name", [".votes.npy.partial", ".votes.npy.json"])
def test_votes_on_the_way_that_are_not_as_they_were_written_are_asked_for_again(tmp_path, name):
    X, size, path = np.arange(30), (30, 4, 3), tmp_path / "votes.npy"
    expected = np.repeat(X[:, None] % 3, 4, axis=1)

    def go_on(crash_in=0):
        asked = []

        def ask(block):
            asked.append(len(block))
            if len(asked) == crash_in:
                raise Crash
            return np.repeat(block[:, None] % 3, 4, axis=1)

        vouched = []
        blocks = [(first, X[first : first + 10]) for first in (0, 10, 20)]
        table = ask_in_blocks(path, ask, blocks, *size, vouch=vouched.append)
        assert np.array_equal(table.sensitive_table, expected)
        assert vouched == [hashlib.sha256(path.read_bytes()).hexdigest()]
        path.unlink()
        return len(asked)

    with pytest.raises(Crash):
        go_on(crash_in=3)
    left = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert go_on() == 1
    for place in range(len(left[name])):
        for file, content in left.items():
            (tmp_path / file).write_bytes(content)
        damaged = bytearray(left[name])
        damaged[place] ^= 1 << place % 8
        (tmp_path / name).write_bytes(damaged)
        assert go_on() in (1, 3)  # 1: a blank for another


def test_votes_that_are_no_classes_or_blocks_that_jump_are_refused(store, tmp_path):
    X, path = np.zeros((6, 1)), tmp_path / "votes.npy"
    with pytest.raises(InputError, match="outside the classes"):
        ask_in_blocks(path, lambda block: np.full((6, 3), 2), [(0, X)], 6, 3, 2)
    with pytest.raises(InputError, match="follow each other"):
        ask_in_blocks(path, lambda block: np.zeros((6, 3)), [(2, X)], 6, 3, 2)
    with pytest.raises(InputError, match="6 × 3 votes"):
        ask_in_blocks(path, lambda block: np.zeros((6, 3)), [(0, X)], 6, 4, 2)
    with pytest.raises(InputError, match="6 public records"):
        ask_in_blocks(path, lambda block: np.zeros((6, 3)), [(0, X)], 9, 3, 2)
    assert not path.exists()


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (np.zeros((5, 3), np.int8), r"int8 votes of shape \(5, 3\), expected .* shape \(6, 3\)"),
        (np.zeros((6, 4), np.int8), r"shape \(6, 4\)"),
        (np.zeros(18, np.int8), r"shape \(18,\)"),
        (np.full((6, 3), np.nan), "float64 votes"),
        (np.full((6, 3), -2), "outside the 2 classes"),
        (np.eye(6, 3, dtype=np.int8) * 2, "outside the 2 classes"),
    ],
)
def test_stored_votes_that_nobody_can_have_cast_are_refused(tmp_path, stored, says):
    np.save(tmp_path / "votes.npy", stored)
    with pytest.raises(InputError, match=says) as error:
        open_votes(tmp_path / "votes.npy", 6, 3, 2)
    assert "delete it and run again" in str(error.value) and "\n" not in str(error.value)


def test_a_full_disk_under_the_votes_is_one_line(store, tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patch:
        crash_at(patch, os, "fsync", 1, full)
        with pytest.raises(InputError, match="make room"):
            ask_in_blocks(
                tmp_path / "votes.npy", lambda b: np.zeros((6, 3)), [(0, np.zeros((6, 1)))], 6, 3, 2
            )
    assert not (tmp_path / "votes.npy").exists()
