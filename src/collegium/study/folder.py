"""A study's folder: what is private lies in ``vault/``, what may be published in ``release/``."""

from __future__ import annotations

import contextlib
import io
import json
import platform
from collections.abc import Collection, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from collegium.checks import shown
from collegium.durable import check_folder, write_durably
from collegium.errors import InputError, StudyMismatchError
from collegium.json_files import read_json
from collegium.study.sections import RENAMED

FORMAT = 1
_MANIFEST = {"format": int, "config": dict, "inputs": dict}
HISTOGRAMS_FILE = "histograms.parquet"
_RELEASED = ("labels.csv", HISTOGRAMS_FILE, "privacy.json", "student.joblib")


class StudyFolder:
    """Paths of a study, and durable writing into them.

    ``path``: the folder; made if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.vault = path / "vault"
        self.release = path / "release"
        self.voting_ended = self.vault / "aggregation.json"

    def open(self) -> None:
        """Make the folder and its two halves; the vault is for its owner's eyes only (mode 0700)."""
        try:
            for folder in (self.path, self.release, self.vault):
                folder.mkdir(parents=True, exist_ok=True)
            self.vault.chmod(0o700)
            check_folder(self.vault)
        except OSError as error:
            raise InputError(
                f"the study folder {self.path} cannot be written ({error.strerror}): choose another with "
                "--out"
            ) from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep any other process from running the same study: two would spend one budget twice."""
        lock = FileLock(self.vault / ".lock", timeout=0, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            raise InputError(
                f"another process is running the study in {self.path}: wait for it to end"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def voting_has_ended(self) -> bool:
        """Tell whether all that will be asked was asked."""
        return self.voting_ended.exists()

    def holds(
        self,
        config: dict[str, Any],
        inputs: dict[str, str],
        free_keys: Collection[str] = (),
        free_inputs: Collection[str] = (),
    ) -> bool:
        """Tell whether the folder holds this very study, begun before; nothing is written."""
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
        path = self.vault / "manifest.json"
        manifest = {"format": FORMAT, "config": config, "inputs": inputs}
        if not path.exists():
            if (self.vault / "journal.jsonl").exists():
                raise StudyMismatchError(
                    f"{self.path} has a journal but no manifest: it is left untouched; choose another "
                    "folder with --out"
                )
            if any((self.release / name).exists() for name in _RELEASED):
                raise StudyMismatchError(
                    f"labels were released into {self.release}, but the vault beside it holds no "
                    "study: nothing was asked, since what was spent is not known; restore the vault from a "
                    "backup"
                )
            self.write_json(path, {**manifest, "versions": versions()})
            return
        advice = "nothing was changed; restore it, or choose another folder with --out"
        known = read_json(path, _MANIFEST, advice)
        difference = _first_difference(known, manifest, free_keys, free_inputs)
        if difference:
            raise StudyMismatchError(
                f"{self.path} holds another study ({difference}): it is left untouched; go back to its own "
                "settings and files, or choose another folder with --out (a release of its own: what was "
                "spent on this one stays spent)"
            )

    def write_bytes(self, path: Path, content: bytes) -> None:
        """Write a file so that it is there completely, and durably, or not at all."""
        write_durably(path, content, private=self.vault in path.parents)

    def write_json(self, path: Path, content: Any) -> None:
        """Write JSON, readable for people."""
        text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
        self.write_bytes(path, (text + "\n").encode())

    def write_array(self, path: Path, array: NDArray[Any]) -> None:
        """Write an array as ``.npy``."""
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        self.write_bytes(path, buffer.getvalue())

    def write_model(self, path: Path, model: Any) -> None:
        """Write a model with joblib."""
        buffer = io.BytesIO()
        joblib.dump(model, buffer)
        self.write_bytes(path, buffer.getvalue())


def versions() -> dict[str, str]:
    """Tell the versions of what results may depend on."""
    names = ("collegium", "numpy", "scipy", "scikit-learn", "pandas", "joblib")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def _first_difference(
    known: dict[str, Any],
    now: dict[str, Any],
    free_keys: Collection[str],
    free_inputs: Collection[str],
) -> str:
    if known["format"] != now["format"]:
        return f"format {known['format']} instead of {now['format']}"
    before = {RENAMED.get(k, k): v for k, v in _flat(known["config"]).items()}
    after = _flat(now["config"])
    for key in sorted({*before, *after}):
        if key in free_keys or key.split(".")[0] in free_keys:
            continue
        if before.get(key) != after.get(key):
            return f"{key} was {_shown(before.get(key))}, now {_shown(after.get(key))}"
    for name in sorted({*known["inputs"], *now["inputs"]} - set(free_inputs)):
        if known["inputs"].get(name) != now["inputs"].get(name):
            return f"the {name} records are not the same file as before"
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
