"""What names of columns and files, and public values, suggest about a study."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.data.column_types import TEXT, kind_of, mostly_different, numbers_of
from collegium.data.date_format import may_be_dates
from collegium.data.number_format import UnclearDecimalError, format_of
from collegium.data.people import may_be_a_person

_PRIVACY = re.compile(r"privacy|datenschutz|epsilon")
_EPSILON = re.compile(r"epsilon|(^|_)(eps|ε)(_|$)")
_CLASSES = ("target", "label", "labels", "class", "y", "outcome")
_PERSON = re.compile(
    r"person|people|patient|owner|user|customer|client|subject|participant|member|student|kunde"
)
_PEOPLE = re.compile(
    rf"({_PERSON.pattern})s?|name|(.+_)?(id|ids|uid|uuid|guid|nbr|nr|no|number|key|ssn|mrn|email)"
    r"|(.+)?(nummer|nr)"
)
MOST_CLASSES = 50
"""More different values are hardly classes."""
_LEAST_PEOPLE = 30
_GAPS = frozenset(
    ("?", "-", "--", ".", "*", "na", "n/a", "#n/a", "nan", "none", "null", "missing", "unknown")
)
"""What tables write where a number is missing; in small letters."""


def level_columns(columns: Sequence[str]) -> list[str]:
    """Name the columns that may hold privacy levels.

    Examples
    --------
    >>> level_columns(["age", "PrivacyLevel", "eps"])
    ['PrivacyLevel', 'eps']
    """
    return [name for name in columns if _PRIVACY.search(_plain(name)) or holds_epsilon(name)]


def may_hold_classes(column: pd.Series) -> bool:
    """Tell whether public values may be classes: they repeat, and there are not too many of them."""
    different = int(column.nunique())
    return 1 < different <= MOST_CLASSES and 2 * different <= len(column)


def holds_epsilon(column: str) -> bool:
    """Tell whether a column seems to hold ε as a number."""
    return bool(_EPSILON.search(_plain(column)))


def class_columns(columns: Sequence[str]) -> list[str]:
    """Name the columns that are called as a column of classes usually is."""
    return [name for name in columns if _plain(name) in _CLASSES]


def names_people(column: str) -> bool:
    """Tell whether a column is called as one that says whose a record is.

    Examples
    --------
    >>> [names_people(name) for name in ("patient_nbr", "CustomerID", "id", "valid", "age")]
    [True, True, True, False, False]
    """
    return bool(_PEOPLE.fullmatch(_plain(column)))


def owner_columns(
    private_only: Sequence[str], common: Sequence[str], public: pd.DataFrame
) -> list[str]:
    """Name the columns that may say whose a record is, the likeliest first.

    ``private_only``: columns that the public records lack, and that have no other meaning: as no
        feature, such a column may well name people, whatever it is called.
    ``common``: columns that the public records have, too.
    ``public``: the public records.
    """
    named = [name for name in private_only if names_people(name)]
    found = [*named, *identifiers(common, public), *private_only]
    return sorted(
        dict.fromkeys(found),
        key=lambda name: (
            name in private_only and name not in named,
            not _PERSON.search(_plain(name)),
            name in common and not may_be_a_person(public[name]),
        ),
    )


def identifiers(columns: Sequence[str], public: pd.DataFrame) -> list[str]:
    """Name the columns that are called as people or records are numbered, and have many public values."""
    return [name for name in columns if names_people(name) and _has_many_values(public[name])]


def all_different(columns: Sequence[str], public: pd.DataFrame) -> list[str]:
    """Name the columns of text that hardly repeats in public records: names, remarks."""

    def differs(cells: pd.Series) -> bool:
        is_text = kind_of(cells.dtype) == TEXT and mostly_different(cells)
        if not is_text or may_be_dates(cells.tolist()) or _are_numbers(cells).mean() > 0.5:
            return False
        try:
            return format_of([str(cell) for cell in cells], str(cells.name)) is None
        except UnclearDecimalError:  # a number, of which the plan will ask what it means
            return False

    return [name for name in columns if differs(public[name].dropna())]


def numbers_with_gaps(columns: Sequence[str], public: pd.DataFrame) -> dict[str, str]:
    """Find columns of text that are numbers but for a mark of what is missing, and that mark."""
    found = {}
    for name in columns:
        given = public[name].dropna()
        if kind_of(given.dtype) != TEXT or not len(given):
            continue
        are = _are_numbers(given)
        others = set(given[~are].astype(str))
        if are.mean() > 0.5 and others and all(cell.strip().lower() in _GAPS for cell in others):
            found[name] = min(others)
    return found


def labels_beside(records: Path) -> Path | None:
    """Find the file with the labels of some array, by its name alone.

    MNIST's ``train-images-idx3-ubyte`` has ``train-labels-idx1-ubyte`` beside it; ``private.npy`` may have
    ``private-labels.npy`` or ``private_labels.npy``, and ``X_private.npy`` ``y_private.npy``.
    """
    name = records.name
    stem, dot, ending = name.partition(".")
    candidates = [
        name.replace("images", "labels").replace("idx3", "idx1").replace("idx4", "idx1"),
        f"{stem}-labels{dot}{ending}",
        f"{stem}_labels{dot}{ending}",
        f"{stem}_y{dot}{ending}",
        re.sub(r"^[Xx](?=[_-])", "y", name),
    ]
    found = (records.with_name(other) for other in candidates if other != name)
    return next((path for path in found if path.is_file()), None)


def levels_beside(records: Path) -> Path | None:
    """Find the file with the privacy levels of some array, by its name alone."""
    stem = records.name.partition(".")[0]
    found = (
        records.with_name(f"{name}.csv")
        for name in (f"{stem}-privacy", f"{stem}_privacy", "privacy")
    )
    return next((path for path in found if path.is_file()), None)


def is_unnamed(column: str) -> bool:
    """Tell whether a reader of tables made the name of a column whose header is blank."""
    return column.startswith("Unnamed: ") and column.removeprefix("Unnamed: ").isdecimal()


def _are_numbers(cells: pd.Series) -> NDArray[np.bool_]:
    """Mark the cells that are numbers, with decimals behind a point or a comma."""
    return np.isfinite(numbers_of(cells)) | np.isfinite(numbers_of(cells, ","))


def _has_many_values(column: pd.Series) -> bool:
    values = column.dropna()
    numbers = numbers_of(values)
    if np.isfinite(numbers).all() and (numbers != np.rint(numbers)).any():
        return False
    different = values.nunique()
    return bool(2 * different > len(values) or different >= _LEAST_PEOPLE)


def _plain(name: str) -> str:
    """Write a name in small letters and underscores: PatientID, patient-id and "patient id" alike."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^\wε]+", "_", split.casefold()).strip("_")
