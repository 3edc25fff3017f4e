"""Whose records were learnt from before in this process: every fit spends their budgets anew."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pandas as pd

from collegium.runs.records import Records

_KEY = secrets.token_hex(8)
_fits: pd.Series[int] = pd.Series(dtype=np.int64)
"""How many fits learnt from each record, by a keyed hash of it. **Sensitive**: never stored or shown."""


def hashes_of(records: Records) -> pd.Index[Any]:
    """Hash each private record, with its class and, where they have names, its owner."""
    X, budgets = records.X, records.budgets
    flat = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.reshape(X, (len(X), -1)))
    owners = budgets.owners[budgets.record_owner] if budgets.named else np.zeros(len(X))
    about = pd.DataFrame({"class": records.codes, "owner": owners})
    parts = [pd.util.hash_pandas_object(part, index=False, hash_key=_KEY) for part in (flat, about)]
    return pd.Index(parts[0].to_numpy() * np.uint64(31) + parts[1].to_numpy()).unique()


def fits_before(records: pd.Index[Any]) -> int:
    """Count the fits of this process that learnt from most of these records."""
    return int(_fits.reindex(records, fill_value=0).median())


def anything_before() -> bool:
    """Whether anything was learnt from in this process."""
    return not _fits.empty


def note_fit(records: pd.Index[Any]) -> None:
    """Remember that these records' budgets were spent."""
    global _fits
    _fits = _fits.add(pd.Series(1, records), fill_value=0).astype(np.int64)
