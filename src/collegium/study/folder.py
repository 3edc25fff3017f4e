"""A study's folder: what is private lies in ``vault/``, what may be published in ``release/``.

The journal in the vault vouches for every file that is written here, before it is written: what is not as the
journal says is refused before anything is asked, drawn or overwritten.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import json
import os
import platform
from collections.abc import Callable, Collection, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from collegium.checks import shown
from collegium.durable import (
    Digesting,
    check_folder,
    clear_all_leftovers,
    private_folder,
    refuse_link_or_foreign,
    write_durably,
    writing_durably,
)
from collegium.errors import InputError, StudyMismatchError
from collegium.json_files import read_json
from collegium.study.journal import FileJournal
from collegium.study.manifest_check import (
    ASKING_ENDED,
    DIGESTS,
    HISTOGRAMS_FILE,
    JOURNAL_FILE,
    MANIFEST,
    MARK_FILE,
    STEPS_ENDED,
    VOTES,
    refuse_links,
    require_sound,
)
from collegium.study.mark import Mark
from collegium.study.sealing import KEY_FILE, make_key, read_key

__all__ = ["HISTOGRAMS_FILE", "StudyFolder", "versions"]

FORMAT = 1
LOCK_FILE = ".lock"
MODEL_CARD = "README.md"
PAGE = "report.html"
_MANIFEST = {"format": int, "config": dict, "inputs": dict}


class StudyFolder:
    """Paths of a study, and durable writing into them.

    ``path``: the folder; made if it does not exist.

    Attributes
    ----------
    journal : FileJournal or None
        Vouches for every file that is written; from :meth:`claim` to the end of :meth:`locked`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.vault = path / "vault"
        self.release = path / "release"
        self.voting_ended = self.vault / "aggregation.json"
        self.journal: FileJournal | None = None

    def open(self) -> None:
        """Make the folder and its two halves, for their owner's eyes only.

        A folder of another user, and a vault with links in it, are refused.
        """
        with self._told_if_unwritable():
            if self.vault.is_symlink() or self.vault.exists():
                refuse_links(self.vault)
            for folder in (self.path.resolve(), self.release, self.vault):
                private_folder(folder)
            self.vault.chmod(0o700)
            check_folder(self.vault)

    def require_usable(self) -> None:
        """Refuse, before minutes are spent, what would be refused after them; nothing stays written.

        That is a folder that cannot be written or is another user's, a study that another process is running,
        and a release without the vault that it was made of.
        """
        with self._told_if_unwritable():
            if self.vault.is_symlink() or self.vault.exists():
                refuse_links(self.vault)
            for folder in (self.path.resolve(), self.release, self.vault):
                refuse_link_or_foreign(folder)
            place = self.vault.resolve()
            while not place.exists():
                place = place.parent
            if not place.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            check_folder(place)
        if not self.vault.exists():
            return self._require_no_release()
        with self.locked():
            if not self._has_begun():
                self._require_no_release()

    @contextlib.contextmanager
    def _told_if_unwritable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f"the study folder {self.path} cannot be written ({error.strerror}): choose another with "
                "--out"
            ) from None

    def _has_begun(self) -> bool:
        return any(path.is_file() for path in self.vault.rglob("[!.]*"))

    def is_begun(self) -> bool:
        """Tell whether a study was begun here."""
        return (self.path / MANIFEST).exists()

    def is_finished(self) -> bool:
        """Tell whether all was drawn and published; then a run publishes it once more."""
        return self.voting_has_ended() and (self.release / PAGE).exists()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep any other process from running the same study: two would spend one budget twice."""
        lock = FileLock(self.vault / LOCK_FILE, timeout=0, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            raise InputError(
                f"another process is running the study in {self.path}: wait for it to end"
            ) from None
        try:
            yield
        finally:
            self.journal = None
            lock.release()

    def voting_has_ended(self) -> bool:
        """Tell whether all that will be asked, or drawn, was."""
        ended = (self.path / name for name in (STEPS_ENDED, ASKING_ENDED))
        return self.voting_ended.exists() or any(path.exists() for path in ended)

    def holds(
        self,
        config: dict[str, Any],
        inputs: dict[str, str],
        free_keys: Collection[str] = (),
        free_inputs: Collection[str] = (),
    ) -> bool:
        """Tell whether the folder holds this very study, begun before; nothing is written.

        What holds another is for :meth:`refuse_another`, or :meth:`claim`, to refuse.
        """
        try:
            known = read_json(self.vault / "manifest.json", _MANIFEST)
        except StudyMismatchError:
            return False
        now = {"format": FORMAT, "config": config, "inputs": inputs}
        return not _first_difference(known, now, free_keys, free_inputs)

    def claim(
        self,
        config: dict[str, Any],
        inputs: dict[str, str],
        free_keys: Collection[str] = (),
        free_inputs: Collection[str] = (),
    ) -> None:
        """Write the manifest of a new study, or check that an existing one is the same study.

        ``config``: everything that may change a result.
        ``inputs``: fingerprints of what was read.
        ``free_keys``, ``free_inputs``: sections or keys of ``config``, and names of ``inputs``,
            that may have changed.
        """
        path = self.path / MANIFEST
        manifest = {"format": FORMAT, "config": config, "inputs": inputs}
        if not self._has_begun():
            self._require_no_release()
            make_key(self.vault)
        journal = self.open_journal()
        cut_off = require_sound(self.path, journal)
        begun = path.exists()
        known = read_json(path, _MANIFEST) if begun else manifest
        self._require_same(known, manifest, free_keys, free_inputs)
        self.journal = journal
        clear_all_leftovers(self.path)
        for one in cut_off:  # as it is now: a later line would make it a damaged file
            journal.vouch(one.piece, one.digest)
        if not begun:
            self.write_json(path, {**manifest, "versions": versions()})

    def refuse_another(
        self,
        config: dict[str, Any],
        inputs: dict[str, str],
        free_keys: Collection[str] = (),
        free_inputs: Collection[str] = (),
    ) -> None:
        """Refuse, as :meth:`claim` would, a folder in which another study was begun; nothing is written."""
        path = self.path / MANIFEST
        if not path.exists():
            return
        require_sound(self.path, self.open_journal())
        now = {"format": FORMAT, "config": config, "inputs": inputs}
        self._require_same(read_json(path, _MANIFEST), now, free_keys, free_inputs)

    def _require_same(
        self,
        known: dict[str, Any],
        now: dict[str, Any],
        free_keys: Collection[str],
        free_inputs: Collection[str],
    ) -> None:
        difference = _first_difference(known, now, free_keys, free_inputs)
        if difference:
            raise StudyMismatchError(
                f"{self.path} holds another study ({difference}): it is left untouched; go back to its own "
                "settings and files, or choose another folder with --out (a release of its own: what was "
                "spent on this one stays spent)"
            )

    def take_up(self) -> None:
        """Let the journal of a study that was begun vouch for what is written next, whichever study it is."""
        journal = self.open_journal()
        for one in require_sound(self.path, journal):
            journal.vouch(one.piece, one.digest)
        self.journal = journal
        clear_all_leftovers(self.path)

    def open_journal(self) -> FileJournal:
        """Read the journal; nothing is changed.

        Raises StudyMismatchError if it is damaged, or if there is no key: then nothing is vouched for.
        """
        if not (self.vault / KEY_FILE).exists():
            raise StudyMismatchError(
                f"{self.vault} has no key, so nothing in it can be told from what others put there: "
                f"{self._way_to_a_key()}"
            )
        key = read_key(self.vault)
        mark = Mark(self.vault / MARK_FILE, key)
        return FileJournal(self.vault / JOURNAL_FILE, key=key, mark=mark)

    def _way_to_a_key(self) -> str:
        if not (self.vault / JOURNAL_FILE).exists() and not (self.path / MANIFEST).exists():
            return "no study was begun there; choose another folder with --out"
        return (
            f"there was one, with which the journal was written; restore {self.vault / KEY_FILE} from a "
            "backup; without it nothing more can be asked in this folder, and what was released stays as it "
            "is"
        )

    def _require_no_release(self) -> None:
        """Refuse to begin beside anything that was released: what is left may be what labels were in."""
        if self.release.is_dir() and any(path.is_file() for path in self.release.iterdir()):
            raise StudyMismatchError(
                f"labels were released into {self.release}, but the vault beside it holds no study: nothing "
                "was asked, since what was spent is not known; restore the vault from a backup"
            )

    def write_bytes(self, path: Path, content: bytes) -> None:
        """Write a file so that it is there completely, and durably, or not at all.

        The journal vouches for it first.
        """
        self.vouch(path, hashlib.sha256(content).hexdigest())
        write_durably(path, content, private=self.vault in path.parents)

    def write_made(self, path: Path, make: Callable[[BinaryIO], None]) -> None:
        """Write a file of any size as it is made; otherwise as :meth:`write_bytes`."""
        with writing_durably(path, private=self.vault in path.parents) as file:
            digesting = Digesting(file)
            make(cast(BinaryIO, digesting))
            self.vouch(path, digesting.digest)

    def vouch(self, path: Path, digest: str) -> None:
        """Write into the journal what a file is going to be; it must be brought there right after.

        Raises StudyMismatchError for votes that are made again, and not those that were asked about.
        """
        assert self.journal is not None, "a folder is claimed before it is written into"
        name = path.relative_to(self.path).as_posix()
        known = self.journal.files.get(name, [None])
        if name == VOTES and self.journal.asked and digest not in known:
            raise StudyMismatchError(
                f"the votes of {self.path} were made again, and are not those that were asked about (other "
                "software?): nothing was asked or drawn; restore the whole folder from one backup"
            )
        if known[-1] != digest:
            self.journal.vouch(name, digest)

    def replace_votes(self, votes: NDArray[Any]) -> None:
        """Write other votes than those that were asked about, since somebody has left.

        Nothing else may replace them (:meth:`vouch`): with other votes, the same question would be another.
        """
        assert self.journal is not None, "a folder is claimed before it is written into"
        content = _as_npy(votes)
        self.journal.vouch(VOTES, hashlib.sha256(content).hexdigest())
        write_durably(self.path / VOTES, content, private=True)

    def remove(self, path: Path) -> None:
        """Remove a file that was written here, and let the journal know."""
        assert self.journal is not None, "a folder is claimed before it is written into"
        self.journal.vouch(path.relative_to(self.path).as_posix(), None)
        path.unlink(missing_ok=True)

    def write_digests(self) -> None:
        """Write into the release which files it has, and of which point of the journal they were made.

        The point is named by an HMAC: it tells nothing about votes or records.
        """
        assert self.journal is not None
        files = {
            name.removeprefix("release/"): written[-1]
            for name, written in self.journal.files.items()
            if name.startswith("release/") and name != DIGESTS and written[-1] is not None
        }
        records, head = self.journal.point_before(DIGESTS)
        content = {"files": files, "made_of": {"records": records, "head": head}}
        self.write_json(self.path / DIGESTS, content)

    def write_json(self, path: Path, content: Any) -> None:
        """Write JSON, readable for people."""
        text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
        self.write_bytes(path, (text + "\n").encode())

    def write_array(self, path: Path, array: NDArray[Any]) -> None:
        """Write an array as ``.npy``."""
        self.write_bytes(path, _as_npy(array))


def _as_npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def versions() -> dict[str, str]:
    """Tell the versions of what results may depend on."""
    names = ("collegium", "numpy", "scipy", "scikit-learn", "pandas", "joblib")
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


_version = functools.cache(version)  # which reads a file each time


def _first_difference(
    known: dict[str, Any],
    now: dict[str, Any],
    free_keys: Collection[str],
    free_inputs: Collection[str],
) -> str:
    if known["format"] != now["format"]:
        return f"format {known['format']} instead of {now['format']}"
    before, after = _flat(known["config"]), _flat(now["config"])
    for key in sorted({*before, *after}):
        if key in free_keys or key.split(".")[0] in free_keys:
            continue
        if before.get(key) != after.get(key):
            return f"{key} was {_shown(before.get(key))}, now {_shown(after.get(key))}"
    for name in sorted({*known["inputs"], *now["inputs"]} - set(free_inputs)):
        if known["inputs"].get(name) != now["inputs"].get(name):
            is_key = "." in name
            what = (
                f"{name} is another file than"
                if is_key
                else f"the {name} records are not the same as"
            )
            return f"{what} before"
    return ""


def _flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _shown(value: Any) -> str:
    return "not set" if value is None else shown(value)
