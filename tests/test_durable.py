"""A file is there as a whole or as it was before, whatever fails, whoever else writes it."""

import errno
import io
import os
import stat
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium import durable
from collegium.durable import (
    PARTIAL,
    SEAL_BYTES,
    clear_leftovers,
    read_sealed,
    sync,
    write_durably,
    write_sealed,
    writing_durably,
)


@pytest.fixture(autouse=True)
def wait_for_the_disk(real_fsync, monkeypatch):
    """The other tests do not."""
    monkeypatch.setattr(os, "fsync", real_fsync)


@pytest.fixture
def there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    return path


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_parts_follow_each_other(there):
    write_durably(there, b"one ", memoryview(b"two"), b"")
    assert there.read_bytes() == b"one two"
    assert list(there.parent.iterdir()) == [there]


def test_everything_happens_in_the_order_that_outlives_a_power_cut(there, monkeypatch):
    """Content to the disk, then the name, then the folder's entry: else the name may outlive the content."""
    done = []
    fsync, replace = os.fsync, Path.replace

    def seen_fsync(descriptor):
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        done.append("folder" if folder else f"content of {os.fstat(descriptor).st_size} bytes")
        fsync(descriptor)

    def seen_replace(self, target):
        done.append(f"name {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(Path, "replace", seen_replace)
    write_durably(there, b"after")
    assert done == ["content of 5 bytes", "name file", "folder"]


@pytest.mark.parametrize("failing", ["open", "fsync", "replace", "block"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_fails_leaves_what_was_there_and_nothing_else(there, monkeypatch, failing, error):
    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        if failing == "replace":
            patch.setattr(Path, "replace", fail)
        elif failing != "block":
            patch.setattr(os, failing, fail)
        with pytest.raises(error), writing_durably(there) as file:
            file.write(b"half")
            if failing == "block":
                file.flush()
                fail()
    assert there.read_bytes() == b"before"
    assert list(there.parent.iterdir()) == [there]


def test_a_full_disk_says_so_even_where_nothing_can_be_removed(there, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        patch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(PermissionError()))
        with pytest.raises(OSError, match="No space left"):
            write_durably(there, b"after")
    assert there.read_bytes() == b"before"


def test_a_writer_that_is_killed_leaves_the_old_file_and_one_partial(there):
    script = (
        "import os, sys; from pathlib import Path; from collegium.durable import writing_durably\n"
        "with writing_durably(Path(sys.argv[1])) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(there)], check=False)
    assert ended.returncode == -9
    assert there.read_bytes() == b"before"
    (left,) = set(there.parent.iterdir()) - {there}
    assert left.name.startswith(".file.") and left.name.endswith(PARTIAL)
    write_durably(there, b"after")
    assert there.read_bytes() == b"after"
    assert list(there.parent.iterdir()) == [there]


def test_what_a_living_writer_writes_is_not_taken_away(there):
    with writing_durably(there) as file:
        file.write(b"of the first")
        write_durably(there, b"of the second")
        assert len(clear_leftovers(there)) == 1
    assert there.read_bytes() == b"of the first"
    assert list(there.parent.iterdir()) == [there]


@pytest.mark.parametrize("name", [".fil.{}.partial", ".file.x.{}.partial", ".file.{}.partial2",
                                  "file.{}.partial", ".file.x{}.partial"])  # fmt: skip
def test_files_of_another_name_are_nobodys_leftovers(there, name):
    other = there.with_name(name.format("0123456789abcdef"))
    other.touch()
    write_durably(there, b"after")
    assert other.exists()


@pytest.mark.skipif(os.name == "nt", reason="what is open cannot be removed there")
def test_a_writer_whose_file_was_taken_before_it_held_it_takes_another_name(there, monkeypatch):
    lock, taken = durable._lock, []

    def late(descriptor):
        if not taken:
            (partial,) = durable.leftovers(there)
            partial.unlink()
            taken.append(partial)
        lock(descriptor)

    monkeypatch.setattr(durable, "_lock", late)
    write_durably(there, b"after")
    assert taken and there.read_bytes() == b"after"


@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o644)])
def test_modes_hold_from_the_first_byte_on(there, private, mode):
    there.chmod(0o666)  # of the file that is replaced: it does not matter
    before = os.umask(0)
    try:
        with writing_durably(there, private=private) as file:
            (partial,) = set(there.parent.iterdir()) - {there}
            assert stat.S_IMODE(partial.stat().st_mode) == mode
            file.write(b"after")
    finally:
        os.umask(before)
    assert stat.S_IMODE(there.stat().st_mode) == mode


def test_a_link_planted_under_the_temporary_name_is_not_followed(there, monkeypatch):
    monkeypatch.setattr(durable.secrets, "token_hex", lambda _: "guessed")
    victim = there.with_name("victim")
    victim.write_bytes(b"precious")
    there.with_name(f".file.guessed{PARTIAL}").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_durably(there, b"after")
    assert (there.read_bytes(), victim.read_bytes()) == (b"before", b"precious")


@pytest.mark.skipif(os.name == "nt", reason="a file that is open cannot be renamed there")
def test_nobody_takes_a_file_for_a_leftover_before_it_has_its_name(there, monkeypatch):
    replace, kept = Path.replace, []

    def late(source, target):
        kept.extend(clear_leftovers(there))
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", late)
    write_durably(there, b"after")
    assert len(kept) == 1 and there.read_bytes() == b"after"


def _write_often(path, number):
    for _ in range(30):
        write_durably(path, bytes([number]) * 20_000)


def test_of_many_writers_one_wins_as_a_whole(there):
    with ProcessPoolExecutor(4) as workers:
        waiting = [workers.submit(_write_often, there, number) for number in range(4)]
        while not all(one.done() for one in waiting):
            content = there.read_bytes()
            assert content == b"before" or content == content[:1] * 20_000
        for one in waiting:
            one.result()
    assert list(there.parent.iterdir()) == [there]


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_durably(tmp_path / "nowhere" / "file", b"content")
    with pytest.raises(FileNotFoundError):
        sync(tmp_path / "nowhere")


@given(content=st.binary(max_size=50), data=st.data())
def test_a_seal_vouches_for_every_bit(tmp_path_factory, content, data):
    path = tmp_path_factory.getbasetemp() / "sealed"
    write_sealed(path, content)
    assert read_sealed(path) == content
    written = bytearray(path.read_bytes())
    assert len(written) == SEAL_BYTES + len(content)
    bit = data.draw(st.integers(0, 8 * len(written) - 1))
    written[bit // 8] ^= 1 << bit % 8
    path.write_bytes(written)
    assert read_sealed(path) is None
    cut = data.draw(st.integers(0, len(written) - 1))
    write_sealed(path, content)
    path.write_bytes(path.read_bytes()[:cut])
    assert read_sealed(path) is None


def test_a_sealed_buffer_is_taken_as_it_is(tmp_path):
    buffer = io.BytesIO(b"of an array")
    write_sealed(tmp_path / "sealed", buffer.getbuffer(), private=True)
    assert read_sealed(tmp_path / "sealed") == b"of an array"
    assert stat.S_IMODE((tmp_path / "sealed").stat().st_mode) == 0o600
