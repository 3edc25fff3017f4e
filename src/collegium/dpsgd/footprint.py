"""What memory direct training takes: told, or refused, before anything is tried or charged.

Widths, numbers of records and components decide: nothing that anybody's record holds. Counted are what is
learnt from public records, or a block of records that are described with all records as the model sees them,
whichever is more.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.pipeline import Pipeline

from collegium.errors import InputError
from collegium.models.features.principal import PublicComponents
from collegium.models.preprocessing.binned_table import BinnedTable
from collegium.models.preprocessing.columns import cells_at_once, numeric_columns
from collegium.models.preprocessing.crossed_table import ANCHORS, CrossedTable, cells_of_each
from collegium.models.preprocessing.principal_table import PrincipalTable
from collegium.models.preprocessing.wide_table import (
    categories_of_each,
    is_wide,
    most_rows,
    width_of,
)

VARIABLE = "COLLEGIUM_MEMORY"
"""Environment variable: gigabytes that may be taken, whatever seems to be free."""
GIGABYTE = 2**30
PROGRAM = 300 * 2**20
"""Bytes: of the program itself."""
_DESCRIBED, _LEARNT_FROM, _PAIRS = 30, 16, 12  # bytes for each cell, as measured
_PRIVATE, _PUBLIC = 8, 24  # bytes for each number that the model sees of a record
_OF_A_NUMBER, _OF_TEXTS = 50, 2  # of a table that is described in full
_TOGETHER = 1024  # rows of numbers
_OF_ANCHORS, _COMPARED = (
    40,
    14,
)  # bytes for each pair of anchors, and of a public record and an anchor


def working_bytes(preprocessing: Any, X_public: Any, n_private: int) -> int:
    """Tell what a fit holds beside the records, of preprocessings whose width is known; else 0.

    ``preprocessing``: not fitted, with the number of components that it will make.
    ``n_private``: private records that are seen in memory.
    """
    n_public, n_columns = int(X_public.shape[0]), int(math.prod(X_public.shape[1:]))
    last = preprocessing[-1] if isinstance(preprocessing, Pipeline) else preprocessing
    if isinstance(last, BinnedTable | CrossedTable | PrincipalTable) and isinstance(
        X_public, pd.DataFrame
    ):
        n_numbers, of_texts = _counted(X_public, last.max_categories)
        kept, width = int(last.components), _width(n_columns, n_numbers, of_texts)
        pairs = 0 if is_wide(n_columns) else _PAIRS * width**2
        n_learnt = min(n_public, most_rows(width)) if is_wide(n_columns) else n_public
        learnt = _LEARNT_FROM * n_learnt * width
        described = _DESCRIBED * cells_at_once(max(n_public, n_private), width)
        if isinstance(last, CrossedTable) and not is_wide(n_columns):
            kept += n_numbers * cells_of_each(n_numbers, last.bins) + of_texts
            n_anchors = min(ANCHORS, n_public)
            learnt = max(learnt, n_anchors * (_OF_ANCHORS * n_anchors + _COMPARED * n_public))
    elif isinstance(last, PublicComponents):
        kept, pairs = n_columns if last.n_components is None else int(last.n_components), 0
        learnt = _LEARNT_FROM * n_public * n_columns
        described = _DESCRIBED * min(_TOGETHER, max(n_public, n_private)) * n_columns
    else:
        return 0
    seen = kept * (_PRIVATE * n_private + _PUBLIC * n_public)
    return max(learnt, pairs, described + seen)


def bytes_of(X: Any) -> int:
    """Count the bytes of records."""
    if hasattr(X, "memory_usage"):
        return int(X.memory_usage(deep=True).sum())
    return int((X.data if hasattr(X, "tocsr") else X).nbytes)


def _counted(X_public: pd.DataFrame, max_categories: int | None) -> tuple[int, int]:
    """Count numbers, and categories of all texts together."""
    n_columns, numbers = int(X_public.shape[1]), set(numeric_columns(X_public))
    most = max_categories or n_columns * len(X_public)
    if is_wide(n_columns):
        most = categories_of_each(n_columns, max_categories)
    texts = [X_public[name] for name in X_public.columns if name not in numbers]
    return len(numbers), sum(min(most, int(column.nunique())) + 1 for column in texts)


def _width(n_columns: int, n_numbers: int, of_texts: int) -> int:
    """Count by how many numbers a record is described, roughly: public values may repeat."""
    if is_wide(n_columns):
        return width_of(n_columns, n_numbers) + of_texts
    return _OF_A_NUMBER * n_numbers + _OF_TEXTS * of_texts


def require_room(needed: int) -> None:
    """Refuse what takes more memory than is free.

    ``needed``: bytes, beside what is in use already.
    Raises InputError.
    """
    free = free_bytes()
    if free is not None and needed > free:
        raise InputError(
            f"this takes about {needed / GIGABYTE:.1f} GB of memory beside what is in use, and "
            f"{free / GIGABYTE:.1f} GB are free: give fewer columns or fewer public records, or set "
            f"{VARIABLE}={math.ceil(needed / GIGABYTE)} (GB) to go ahead; nothing was spent"
        )


def free_bytes() -> int | None:
    """Tell how much memory may still be taken: as the environment or the system says; None if none does."""
    said = os.environ.get(VARIABLE, "").strip()
    if said:
        try:
            number = float(said)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            raise InputError(f"{VARIABLE} must be a positive number of gigabytes, got {said!r}")
        return int(number * GIGABYTE)
    known = [room for room in (_of_machine(), _of_group()) if room is not None]
    return min(known, default=None)


def peak_bytes() -> int:
    """Tell how much memory this process has held at most so far; 0 where the system does not say."""
    return _told("/proc/self/status", "VmHWM:") or 0


def _of_machine() -> int | None:
    return _told("/proc/meminfo", "MemAvailable:")


def _told(file: str, name: str) -> int | None:
    """Read bytes off a line such as ``MemAvailable: 12 kB``; None where there is none."""
    try:
        for line in Path(file).read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _of_group() -> int | None:
    """Of a container, if that is limited."""
    here = Path("/sys/fs/cgroup")
    try:
        most, used = ((here / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        return None if most == "max" else max(0, int(most) - int(used))
    except (OSError, ValueError):
        return None
