"""What `collegium plan` has rehearsed, kept for `collegium run` while nothing that it depends on has changed.

A rehearsal is a function of public facts: settings, budgets as a ledger left them, how many people have each,
the list of classes, public and test records, and the software; and of how many private records there are,
which is nobody's public fact, so that the file is for its owner alone. It is kept beside a digest of all of
these, in ``NAME.plan.json`` beside the study's file, and taken only where that digest is the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from collegium.durable import is_foreign, write_durably
from collegium.errors import CollegiumError
from collegium.json_files import read_json
from collegium.runs.observer import Observer
from collegium.study.folder import versions

T = TypeVar("T")
_KEPT = {"of": str, "found": dict}


class KeptRehearsals:
    """Rehearsals that are made once, for a plan and the run that follows it.

    ``file``: where they are kept; None: nowhere.
    ``observer``: is told where a kept one is used.
    ``anew``: whether each is made anew, and kept: for who plans.
    """

    def __init__(
        self, file: Path | None = None, observer: Observer | None = None, *, anew: bool = False
    ) -> None:
        self.file, self.anew = file, anew
        self.observer = Observer() if observer is None else observer

    @classmethod
    def beside(cls, study: Path, observer: Observer, *, anew: bool = False) -> KeptRehearsals:
        """Keep them beside a study's file."""
        return cls(kept_beside(study), observer, anew=anew)

    def on(self, name: str, *depends_on: Any) -> KeptRehearsal:
        """Say what is rehearsed, and everything that decides on what comes of it."""
        digest = None
        if self.file is not None:
            with contextlib.suppress(TypeError):  # of some kinds of records there is no digest
                digest = digest_of(depends_on, versions())
        return KeptRehearsal(self, name, digest)


class KeptRehearsal:
    """One rehearsal. ``digest``: of everything that it depends on; None: it is not kept."""

    def __init__(self, among: KeptRehearsals, name: str, digest: str | None) -> None:
        self._among, self._name, self._digest = among, name, digest

    def taken(self, from_json: Callable[[dict[str, Any]], T]) -> T | None:
        """Take what is kept; None where it is another's, or was made of something else."""
        file = self._among.file
        if self._digest is None or file is None or self._among.anew:
            return None
        try:
            if is_foreign(file):  # who may write here may not decide for another user
                return None
            kept = read_json(file, {self._name: _KEPT})[self._name]
            if kept["of"] != self._digest:
                self._among.observer.note(
                    "records, settings or what people have left have changed since `collegium plan`: what it "
                    "rehearsed is rehearsed again"
                )
                return None
            found = from_json(kept["found"])
        except (OSError, CollegiumError, KeyError, TypeError, ValueError):
            return None  # it is a help, and no more: what is damaged is rehearsed again
        self._among.observer.note(
            "using the rehearsal of `collegium plan`: nothing has changed since"
        )
        return found

    def keep(self, found: dict[str, Any]) -> None:
        """Keep what was rehearsed, for who plans."""
        file = self._among.file
        if self._digest is None or file is None or not self._among.anew:
            return
        content = {self._name: {"of": self._digest, "found": found}}
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        with contextlib.suppress(OSError):
            write_durably(file, text.encode(), private=True)


def kept_beside(study: Path) -> Path:
    """Where the rehearsals of a study are kept: ``NAME.plan.json``, beside its file."""
    return study.with_suffix(".plan.json")


def digest_of(*parts: Any) -> str:
    """Digest values, arrays and tables: equal ones have one digest, on every machine.

    Raises TypeError for what it does not know.

    Examples
    --------
    >>> digest_of(1, "a") == digest_of(1, "a"), digest_of(1) == digest_of(1.0)
    (True, False)
    """
    digest = hashlib.sha256()
    for one in _pieces(parts):
        digest.update(len(one).to_bytes(8, "big"))
        digest.update(one)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[bytes]:
    """Name a value's type and size, and then its content."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, np.generic):
        yield from _pieces(value.item())
    elif isinstance(value, np.ndarray):
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield _content(value)
    elif isinstance(value, pd.DataFrame):
        yield f"table {len(value)} {[str(one) for one in value.columns]!r}".encode()
        for place in range(value.shape[1]):
            column = value.iloc[:, place]
            yield str(column.dtype).encode()
            yield _content(pd.util.hash_pandas_object(column, index=False).to_numpy())
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        for one in fields(value):
            yield from _pieces((one.name, getattr(value, one.name)))
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for pair in value.items():
            yield from _pieces(pair)
    elif isinstance(value, (list, tuple)):
        yield f"list {len(value)}".encode()
        for one in value:
            yield from _pieces(one)
    else:
        raise TypeError(f"{type(value).__name__} has no digest")


def _content(array: Any) -> bytes:
    if array.dtype.hasobject:
        return repr(array.tolist()).encode()
    return np.ascontiguousarray(array).tobytes()
