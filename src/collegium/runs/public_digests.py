"""Public records in one line: what parties compare before they learn together."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from collegium.runs.records import Records


def facts_of(records: Records, y_public: NDArray[Any] | None = None) -> dict[str, Any]:
    """What must be the same of the records of all who learn together: public ones, and no value of others.

    ``y_public``: classes of the public records, where they are learnt from.
    """
    return {
        "classes": records.classes.tolist(),
        "features": features_of(records.X),
        "public records": digest(records.X_public),
        "classes of public records": digest(y_public),
        "people are named": records.budgets.named,
    }


def features_of(records: Any) -> Any:
    """Name the columns of a table, or count those of an array."""
    return list(records.columns) if isinstance(records, pd.DataFrame) else records.shape[1:]


def digest(public: Any) -> str:
    """Tell public records from others, in whatever form they are: not across forms.

    Examples
    --------
    >>> digest(None), digest(np.zeros((2, 3)))[:8]
    ('none', 'c12ff0c0')
    """
    if public is None:
        return "none"
    if isinstance(public, pd.DataFrame):
        values = pd.util.hash_pandas_object(public, index=False).to_numpy()
        return sha256(repr(list(public.columns)).encode() + values.tobytes()).hexdigest()
    if sparse.issparse(public):
        public = public.tocsr()
        parts: tuple[Any, ...] = (
            np.asarray(public.shape),
            public.indptr,
            public.indices,
            public.data,
        )
    else:
        parts = (np.asarray(np.shape(public)), np.ascontiguousarray(public))
    return sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
