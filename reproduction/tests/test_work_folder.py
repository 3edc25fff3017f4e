"""The work folder: what is finished is not done again, what is half written does not count."""

import numpy as np
import pytest

from reproduction.work import WorkFolder


@pytest.fixture
def made():
    calls = []

    def make(value=1):
        calls.append(value)
        return {"value": np.array([value])}

    make.calls = calls
    return make


@pytest.mark.parametrize("on_disk", [True, False])
def test_done_once(tmp_path, made, on_disk):
    work = WorkFolder(tmp_path if on_disk else None)
    for _ in range(3):
        assert work.arrays("stage", {"a": 1}, made)["value"].tolist() == [1]
    assert made.calls == [1]
    work.arrays("stage", {"a": 2}, made)
    work.arrays("other", {"a": 1}, made)
    assert len(made.calls) == 3


def test_another_process_finds_it(tmp_path, made):
    WorkFolder(tmp_path).arrays("stage", {"a": 1}, made)
    found = WorkFolder(tmp_path).arrays("stage", {"a": 1}, made)
    assert list(found) == ["value"]
    assert made.calls == [1]


@pytest.mark.parametrize("keep", [0, 1, 30, -1])
def test_a_damaged_file_is_made_again(tmp_path, made, keep):
    WorkFolder(tmp_path).arrays("stage", {"a": 1}, made)
    (path,) = (tmp_path / "stage").glob("*.npz")
    path.write_bytes(path.read_bytes()[:keep])
    again = WorkFolder(tmp_path).arrays("stage", {"a": 1}, lambda: made(7))
    assert again["value"].tolist() == [7]
    assert WorkFolder(tmp_path).arrays("stage", {"a": 1}, made)["value"].tolist() == [7]


def test_killed_while_making_leaves_nothing(tmp_path, made):
    def killed():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        WorkFolder(tmp_path).arrays("stage", {"a": 1}, killed)
    assert not list(tmp_path.rglob("*.npz"))


def test_killed_while_writing_leaves_nothing_that_counts(tmp_path, made, monkeypatch):
    def torn(stream, **arrays):
        stream.write(b"PK")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", torn)
        with pytest.raises(KeyboardInterrupt):
            WorkFolder(tmp_path).arrays("stage", {"a": 1}, made)
    assert not list((tmp_path / "stage").iterdir())
    WorkFolder(tmp_path).arrays("stage", {"a": 1}, made)
    assert made.calls == [1, 1]
