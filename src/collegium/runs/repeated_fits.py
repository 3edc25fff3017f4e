"""Whose records were learnt from before in this process: every fit spends their budgets anew."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.runs.records import Records

Hashes = NDArray[np.uint64]
_KEY = secrets.token_hex(8)
_fits: pd.Series[int] = pd.Series(dtype=np.int64)
"""How many fits learnt from each record, by a keyed hash of it. **Sensitive**: never stored or shown."""


def hashes_of(records: Records | pd.DataFrame) -> pd.Index[Any]:
    """Hash each record, with its class and, where they have names, its owner; or each row of a table."""
    if isinstance(records, pd.DataFrame):
        return pd.Index(_hashes_of(records)).unique()
    X, budgets = records.X, records.budgets
    owners = budgets.owners[budgets.record_owner] if budgets.named else np.zeros(X.shape[0])
    about = pd.DataFrame({"class": records.codes, "owner": owners})
    if hasattr(X, "tocsr"):
        of_records = _hashes_of_sparse(X)
    else:
        flat = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.reshape(X, (len(X), -1)))
        of_records = _hashes_of(flat)
    return pd.Index(of_records * np.uint64(31) + _hashes_of(about)).unique()


def _hashes_of(table: pd.DataFrame) -> Hashes:
    return np.asarray(pd.util.hash_pandas_object(table, index=False, hash_key=_KEY))


def _hashes_of_sparse(X: Any) -> Hashes:
    """Add up hashes of a record's entries that are not 0, in whichever order they are stored."""
    entries = X.tocoo()
    rows, columns = entries.coords
    some = entries.data != 0
    hashes = _hashes_of(pd.DataFrame({"column": columns[some], "value": entries.data[some]}))
    sums = np.zeros(X.shape[0], dtype=np.uint64)
    np.add.at(sums, rows[some], hashes)
    return sums


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
