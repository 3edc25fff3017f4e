"""Names are text: of owners, of privacy levels, of categories, however a reader of tables typed them.

A table's reader types a column as a whole: beside ``x1``, everybody's ``7`` is the text ``"7"``, and beside
a missing value it is 7.0. If the type were a part of a name, one newcomer would rename, and so move,
everybody else.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.errors import InputError

_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_MOST_EXACT = 2**53


def as_names(values: Any) -> NDArray[np.object_]:
    """Spell names as text: ``7``, ``numpy.int64(7)``, ``7.0`` and ``"7"`` are one name.

    Text is taken to the letter: ``"7.0"``, ``"007"`` and ``"7"`` are three names.

    ``values`` (n,): names of any types.
    Returns (n,): text, and None where a name is missing.

    Examples
    --------
    >>> as_names([7, np.int64(7), 7.0, "7", "7.0", float("nan")]).tolist()
    ['7', '7', '7', '7', '7.0', None]
    """
    column = values if isinstance(values, pd.Series) else pd.Series(values, dtype=_dtype(values))
    spelt = np.empty(len(column), dtype=object)
    spelt[:] = [
        name if type(name) is str else _name(name) for name in column.astype(object).tolist()
    ]
    return spelt


def spelt_alike(names: Any) -> int:
    """Count the different names that are others but for upper and lower case, or blanks around them.

    ``names`` (n,): from :func:`as_names`, or whole numbers; none twice.

    Examples
    --------
    >>> spelt_alike(["Anna ", "anna", "Bo", "ANNA"]), spelt_alike([1, 2])
    (3, 0)
    """
    folded = pd.Series(
        [name.strip().casefold() for name in names if isinstance(name, str)], dtype=object
    )
    return int(folded.duplicated(keep=False).sum())


def is_whole_number(name: str) -> bool:
    """Tell whether a name is a whole number in its usual spelling, such as a float holds exactly.

    Examples
    --------
    >>> [is_whole_number(name) for name in ("7", "-7", "007", "7.0", "9007199254740993")]
    [True, True, False, False, False]
    """
    return bool(_WHOLE.fullmatch(name)) and abs(int(name)) < _MOST_EXACT


def spelling(name: str | None) -> bytes:
    """Spell a name for hashing. A whole number in its usual spelling is spelt as the number."""
    if name is None:
        return b"none"
    return (b"int:" if _WHOLE.fullmatch(name) else b"str:") + name.encode()


def _dtype(values: Any) -> Any:
    """Keep lists as they are: NumPy alone would turn [1, "x"] into text of its own spelling."""
    return getattr(values, "dtype", object)


def _name(value: Any) -> str | None:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)):
        return _name_of_float(float(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    missing = pd.isna(value)
    return None if isinstance(missing, (bool, np.bool_)) and missing else str(value)


def _name_of_float(value: float) -> str | None:
    if value != value:
        return None
    if value != value // 1:
        return repr(value)
    if abs(value) > _MOST_EXACT:
        raise InputError(
            "names were read as numbers so large that several become one: read that column as text "
            "(in pandas: dtype=str)"
        )
    return str(int(value))
