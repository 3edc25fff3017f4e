"""The cache: what comes out is what went in, whatever happens to the files."""

import os
import pickle
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from collegium.errors import InputError
from collegium.models.features import CachedTransform, FeatureCache, ScatteringTransform
from collegium.models.features.cache import content_key, transformer_key

ARRAY = np.arange(600, dtype=np.float32).reshape(20, 30)


class Counting:
    """Makes an array, and counts how often."""

    def __init__(self, array=ARRAY):
        self.array, self.times = array, 0

    def __call__(self):
        self.times += 1
        return self.array


def files(folder):
    return sorted(path for path in folder.iterdir() if path.is_file())


def test_made_once(tmp_path):
    make = Counting()
    for _ in range(3):
        cache = FeatureCache(tmp_path / "cache")
        got = cache.get_or_make("key", make)
        np.testing.assert_array_equal(got, ARRAY)
        assert got.dtype == ARRAY.dtype
    assert make.times == 1
    cache.get_or_make("other key", make)
    assert make.times == 2


def test_only_the_owner_may_look(tmp_path):
    folder = tmp_path / "cache"
    mask = os.umask(0)
    try:
        FeatureCache(folder).get_or_make("key", Counting())
    finally:
        os.umask(mask)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in files(folder)] == [0o600]


@pytest.mark.parametrize("kept", [0, 1, 31, 32, 33, 100, -1])
def test_a_truncated_file_is_made_again(tmp_path, kept):
    cache = FeatureCache(tmp_path)
    make = Counting()
    cache.get_or_make("key", make)
    path = cache.path("key")
    path.write_bytes(path.read_bytes()[:kept])
    np.testing.assert_array_equal(cache.get_or_make("key", make), ARRAY)
    np.testing.assert_array_equal(cache.get_or_make("key", make), ARRAY)
    assert make.times == 2


def test_every_flipped_byte_is_noticed(tmp_path):
    cache = FeatureCache(tmp_path)
    make = Counting()
    cache.get_or_make("key", make)
    content = bytearray(cache.path("key").read_bytes())
    for position in range(0, len(content), 97):
        content[position] ^= 1
        cache.path("key").write_bytes(bytes(content))
        content[position] ^= 1
        before = make.times
        np.testing.assert_array_equal(cache.get_or_make("key", make), ARRAY)
        assert make.times == before + 1


def test_a_writer_that_fails_leaves_nothing_and_loses_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    cache = FeatureCache(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        np.testing.assert_array_equal(cache.get_or_make("key", Counting()), ARRAY)
    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_made_costs_a_warning(tmp_path):
    (tmp_path / "file").touch()
    cache = FeatureCache(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="could not be cached"):
        np.testing.assert_array_equal(cache.get_or_make("key", Counting()), ARRAY)


def _use(folder):
    cache = FeatureCache(folder, max_bytes=30_000)
    for round_ in range(20):
        number = round_ % 5
        got = cache.get_or_make(f"key {number}", lambda n=number: np.full((40, 50), n, dtype="f"))
        if not (got == number).all():
            return False
    return True


def test_concurrent_writers_and_removers(tmp_path):
    with ProcessPoolExecutor(4) as workers:
        assert all(workers.map(_use, [tmp_path] * 8))
    assert not [path for path in files(tmp_path) if path.name.endswith(".partial")]


def test_the_least_recently_used_make_room(tmp_path):
    FeatureCache(tmp_path).get_or_make("key 0", Counting())
    size = files(tmp_path)[0].stat().st_size
    cache = FeatureCache(tmp_path, max_bytes=3 * size)
    for number in range(3):
        cache.get_or_make(f"key {number}", Counting())
        os.utime(cache.path(f"key {number}"), (number, number))
    assert len(files(tmp_path)) == 3
    cache.get_or_make("key 0", Counting())  # used again
    cache.get_or_make("key 3", Counting())
    there = [cache.path(f"key {number}").exists() for number in range(4)]
    assert there == [True, False, True, True]
    cache.get_or_make("large", Counting(np.zeros(10_000)))
    assert not cache.path("large").exists()
    assert [cache.path(f"key {number}").exists() for number in range(4)] == there


def test_what_killed_writers_left_is_removed_in_time(tmp_path):
    cache = FeatureCache(tmp_path)
    old, new = (
        tmp_path / "a.features.1.partial",
        tmp_path / "b.features.2.partial",
    )
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    cache.get_or_make("key", Counting())
    assert not old.exists() and new.exists()


@given(first=st.binary(min_size=4, max_size=12), second=st.binary(min_size=4, max_size=12))
def test_content_keys_differ_exactly_where_content_does(first, second):
    one, other = (np.frombuffer(content, dtype=np.uint8) for content in (first, second))
    assert (content_key(one) == content_key(other)) == (first == second)


def test_content_keys_know_type_shape_and_names():
    zeros = np.zeros((2, 4), dtype=np.float32)
    keys = [
        content_key(zeros),
        content_key(zeros.reshape(4, 2)),
        content_key(zeros.astype(np.int32)),
        content_key(pd.DataFrame(zeros)),
        content_key(pd.DataFrame(zeros, columns=list("abcd"))),
        content_key(zeros.astype(str).astype(object)),
    ]
    assert len(set(keys)) == len(keys)
    table = np.random.default_rng(0).random((6, 6))
    assert content_key(table[::2]) == content_key(np.ascontiguousarray(table[::2]))


def test_transformer_keys_know_parameters_and_what_was_learnt():
    images = np.zeros((1, 8, 8))
    fitted = [
        ScatteringTransform().fit(images),
        ScatteringTransform(J=1).fit(images),
        ScatteringTransform(root=True).fit(images),
        ScatteringTransform(L=4).fit(images),
        ScatteringTransform(max_order=1).fit(images),
        ScatteringTransform().fit(np.zeros((1, 8, 16))),
        StandardScaler().fit(ARRAY),
        StandardScaler().fit(ARRAY + 1),
    ]
    assert len({transformer_key(one) for one in fitted}) == len(fitted)
    speed = ScatteringTransform(batch_size=3, n_jobs=2).fit(images)
    assert transformer_key(speed) == transformer_key(fitted[0])


def test_cached_transform(tmp_path, monkeypatch):
    images = np.random.default_rng(0).random((3, 8, 8))
    cached = CachedTransform(ScatteringTransform(J=1, n_jobs=1), tmp_path).fit(images)
    plain = ScatteringTransform(J=1, n_jobs=1).fit_transform(images)
    np.testing.assert_array_equal(cached.transform(images), plain)
    monkeypatch.setattr(ScatteringTransform, "transform", None)  # not asked again
    np.testing.assert_array_equal(cached.transform(images), plain)
    assert clone(cached).get_params()["folder"] == tmp_path


def test_a_pickled_copy_forgets_the_folder(tmp_path):
    images = np.random.default_rng(0).random((3, 8, 8))
    cached = CachedTransform(ScatteringTransform(J=1), tmp_path / "vault").fit(images)
    copy = pickle.loads(pickle.dumps(cached))
    assert b"vault" not in pickle.dumps(cached)
    np.testing.assert_allclose(copy.transform(images), cached.transform(images))
    assert copy.folder is None and len(files(tmp_path / "vault")) == 1


def test_what_is_no_array_cannot_be_cached(tmp_path):
    frames = FunctionTransformer(pd.DataFrame)
    with pytest.raises(InputError, match="made a DataFrame that cannot be cached"):
        CachedTransform(frames, tmp_path).fit(ARRAY).transform(ARRAY)


def test_what_cannot_be_named_is_refused_with_what_to_do(tmp_path):
    nameless = FunctionTransformer(lambda X: X + 1)
    with pytest.raises(InputError, match=r"cannot be pickled.*cache_key") as caught:
        CachedTransform(nameless, tmp_path).fit(ARRAY).transform(ARRAY)
    assert "\n" not in str(caught.value)
