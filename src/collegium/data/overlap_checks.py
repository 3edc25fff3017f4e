"""Is what is given as public really public, and seen as the private records are? Refused where it is not.

What is looked at is private: whether a run is refused may depend on private records, and the message counts
them. Nothing is released then; it is for whoever holds the records, on the screen in front of them. What
is refused leaves no trace in a study's folder, and what is not refused says nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import listed
from collegium.data.column_types import NUMBER, kind_of, numbers_of
from collegium.data.tables import take_rows
from collegium.errors import InputError, PrivacyWarning

HANDFUL, SHARE = 5, 0.001
"""Public records that may equal private ones by chance: so many, or this share of them."""
_TIMES_CHANCE = 2
_SAMPLED = 1 << 20  # private rows, about, that tell how many rows are equal by chance
_LEAST_ROWS = 20
_TIMES_WIDER, _TIMES_AWAY = 4.0, 2.0  # in spreads (the middle 80 %)
_ROWS_OF_SCALE = 10_000
_TIMES_UNIT, _TIMES_OFFSET, _ROWS_OF_UNIT = 8.0, 5.0, 50
_FEW_COLUMNS = 0.01  # of many, a few are odd by chance
_SUMS, _ROUNDED = 6, 1e-3
_MOST_EXACT = 200.0  # units from 0 to the middle: more, and rounding to 32 bits would show
_NOTHING = 1e-4
_MISSING = -9.0
_CELLS_AT_ONCE = 1 << 22
_ODD = np.uint64(0x9E3779B97F4A7C15)
_RIGHT_WAY = (
    "Give both unscaled, and the scaler as `preprocessing`, which is fitted on the public records only, or "
    "as a step of `teacher`"
)

Hashes = NDArray[np.uint64]

_OVERRIDE = "public_may_overlap"


class Likeness:
    """Finds equal records, also if numbers went through another type or are off by a millionth.

    Each record's numbers, in units that the public records show, become six weighted sums, which are rounded
    and hashed with the record's text. What is off by 1e-6 of what numbers of its column usually differ by is
    nearly always found, and what is off by 1e-3 hardly ever.

    ``X_public`` (n, ...): a DataFrame, an array or a sparse matrix.

    Examples
    --------
    >>> table = pd.DataFrame({"x": [0.1, 3.0, 8.0], "y": ["a", "b", "b"]})
    >>> private = table.astype({"x": np.float32}).iloc[[2, 0]]
    >>> likeness = Likeness(table)
    >>> np.isin(likeness.hashes(table), likeness.hashes(private)).tolist()
    [True, False, True]
    """

    def __init__(self, X_public: Any) -> None:
        self._numeric = _numeric_columns(X_public)
        self._middle, self._unit = _units(X_public, self._numeric)
        weights = np.random.default_rng(0).normal(size=(len(self._unit), _SUMS))
        self._weights = weights / math.sqrt(max(1, len(self._unit)))
        self.public: Hashes = self.hashes(X_public)

    def hashes(self, X: Any) -> Hashes:
        """Hash records with the columns of the public ones, each by itself."""
        width = 1 if hasattr(X, "tocsr") else math.prod(X.shape[1:])
        step = max(1, _CELLS_AT_ONCE // width)
        parts = [self._hashes(take_rows(X, slice(i, i + step))) for i in range(0, X.shape[0], step)]
        return np.concatenate([np.empty(0, np.uint64), *parts])

    def _hashes(self, X: Any) -> Hashes:
        hashes = np.zeros(X.shape[0], dtype=np.uint64)
        for place in np.flatnonzero(~self._numeric).tolist():
            column = (
                X.iloc[:, place] if isinstance(X, pd.DataFrame) else X.reshape(len(X), -1)[:, place]
            )
            hashes = _mixed(hashes * _ODD + _hashes_of_names(column))
        if hasattr(X, "tocsr"):
            rows = X.tocsr().astype(np.float64)
            rows.data = np.arcsinh(rows.data / self._unit[rows.indices])
        else:
            rows = (_values(X, self._numeric) - self._middle) / self._unit
            # Far away from the middle a difference counts in proportion.
            rows = np.where(np.isfinite(rows), np.arcsinh(rows), _MISSING)
        sums = np.rint(np.asarray(rows @ self._weights) / _ROUNDED).astype(np.int64)
        for one in sums.T:
            hashes = _mixed(hashes * _ODD + one.view(np.uint64))
        return hashes


def _numeric_columns(X: Any) -> NDArray[np.bool_]:
    if isinstance(X, pd.DataFrame):
        return np.array([kind_of(dtype) == NUMBER for dtype in X.dtypes], dtype=bool)
    return np.full(math.prod(X.shape[1:]), kind_of(X.dtype) == NUMBER)


def _values(X: Any, numeric: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Take the columns of numbers, whatever type these have here."""
    if not isinstance(X, pd.DataFrame):
        if kind_of(X.dtype) == NUMBER and numeric.all():
            return np.asarray(X, dtype=np.float64).reshape(len(X), -1)
        X = pd.DataFrame(X.reshape(len(X), -1))
    values = np.empty((len(X), int(numeric.sum())))
    for place, column in enumerate(np.flatnonzero(numeric).tolist()):
        values[:, place] = numbers_of(X.iloc[:, column])
    return values


def _units(X: Any, numeric: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the middle of each column of numbers, and how far from it the values usually are that differ.

    A unit is no smaller than what 32 bits can tell apart at that middle, nor than nothing beside other units:
    noise alone makes none of a column that is constant, or of the zeros in one that is mostly zero.
    """
    if hasattr(X, "tocsr"):
        sizes = abs(X.astype(np.float64))
        middle = np.zeros(X.shape[1])
        unit = np.asarray(sizes.sum(axis=0)).ravel() / np.maximum(1, sizes.getnnz(axis=0))
    else:
        some = take_rows(X, slice(None, None, max(1, len(X) // _ROWS_OF_SCALE)))
        values = np.array(_values(some, numeric))  # arrays that were given may be read-only
        values[~np.isfinite(values)] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns without any value
            middle = np.nan_to_num(np.nanmedian(values, axis=0))
            away = np.abs(values - middle)
            away[away <= _NOTHING * np.nanmean(away, axis=0)] = np.nan
            unit = np.nan_to_num(np.nanmedian(away, axis=0))
    least = _NOTHING * np.median(unit[unit > 0]) if (unit > 0).any() else 0.0
    unit = np.maximum(unit, np.maximum(least, np.abs(middle) / _MOST_EXACT))
    return middle, np.where(unit > 0, unit, 1.0)


def _hashes_of_names(column: Any) -> Hashes:
    codes, names = pd.factorize(pd.Series(column))
    known = pd.util.hash_array(np.array([str(name) for name in names], dtype=object))
    return np.asarray(np.append(known, np.uint64(0))[codes], dtype=np.uint64)  # -1: missing


def _mixed(bits: Hashes) -> Hashes:
    """Mix bits, as SplitMix64 does (Steele et al. 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class RowsSeen:
    """What a pass over private rows remembers. **Sensitive.**

    ``found``: the different hashes that public records have, too.
    ``sampled``: hashes of some of them, all equal ones among them, to tell how often rows are equal.
    """

    found: Hashes
    sampled: Hashes

    @classmethod
    def of(cls, private: Hashes, public: Hashes, n_private: int) -> RowsSeen:
        """Look at some private rows.

        ``public``: hashes of all public records.
        ``n_private``: private rows in all.
        """
        every = np.uint64(max(1, n_private // _SAMPLED))
        mine = np.unique(private)
        return cls(mine[np.isin(mine, public)], private[private % every == 0])

    @classmethod
    def together(cls, parts: Sequence[RowsSeen]) -> RowsSeen:
        """Put the parts of a pass together."""
        return cls(
            np.unique(np.concatenate([part.found for part in parts])),
            np.concatenate([part.sampled for part in parts]),
        )

    def check(self, public: Hashes, role: str, key: str) -> None:
        """Refuse public records of which more than a handful are private ones.

        Where private rows equal one another (tables of few values), as many again equal public ones by
        chance.

        ``role``: "public" or "test".
        ``key``: how to allow it.
        """
        common = int(np.isin(public, self.found).sum())
        _, times = np.unique(self.sampled, return_counts=True)
        twins = float(times[times > 1].sum()) / max(1, times.sum())
        allowed = max(HANDFUL, SHARE * len(public)) + _TIMES_CHANCE * twins * len(public)
        if common > allowed:
            raise InputError(
                f"{common:,} of {len(public):,} {role} records are also among the private ones, more than "
                f"chance explains: no budget protects them as {role} records. Take them out, or allow it "
                f"with {key}, which the privacy statement will mention"
            )


def refuse_overlap(X: Any, X_public: Any, role: str = "public", key: str = _OVERRIDE) -> None:
    """Refuse public records that are private ones; see :meth:`RowsSeen.check`.

    ``X``, ``X_public``: records with the same columns.
    """
    likeness = Likeness(X_public)
    private, public = likeness.hashes(X), likeness.public
    if len(private) == len(public) and np.array_equal(np.sort(private), np.sort(public)):
        raise same_content(role, key)
    RowsSeen.of(private, public, len(private)).check(public, role, key)


def refuse_same_people(n_known: int, n_records: int, role: str, column: str, key: str) -> None:
    """Refuse public records, and warn of test records, of which more than a handful are private people's.

    ``n_known``: records whose owner has private ones, too; of ``n_records``.
    ``role``: "public" or "test".
    ``column``: says whose a record is.
    ``key``: how to allow it.
    """
    if n_known <= max(HANDFUL, SHARE * n_records):
        return
    found = (
        f"{n_known:,} of {n_records:,} {role} records are about people who also have private ones (names in "
        f"column {column!r}): no budget protects what these records say about them"
    )
    if role == "public":
        raise InputError(
            f"{found}. Take them out; or take that column out, if they are other people of the same name; or "
            f"allow it with {key}, which the privacy statement will mention"
        )
    warnings.warn(
        f"{found}, and the student may do better on them than on other people's: test on records of others",
        PrivacyWarning,
        stacklevel=3,
    )


def same_content(role: str, key: str) -> InputError:
    """Make the error about private records that were given a second time."""
    return InputError(
        f"the {role} records are the private ones: no budget protects them as {role} records. Give others, "
        f"or allow it with {key}, which the privacy statement will mention"
    )


def refuse_other_scale(X: Any, X_public: Any, key: str = "scales_may_differ=True in fit") -> None:
    """Refuse numbers on different scales: one side was scaled, or a column is in another unit.

    ``X``, ``X_public``: records with the same columns.
    ``key``: how to allow it.
    Warns where both have one scale, and it was taken from all private records together.
    """
    mine, theirs = _numbers(X), _numbers(X_public)
    if mine is None or theirs is None or min(len(mine), len(theirs)) < _LEAST_ROWS:
        return
    some, others = (
        np.asarray(side[:: max(1, len(side) // _ROWS_OF_SCALE)], dtype=np.float64)
        for side in (mine, theirs)
    )
    off, telling = _off_scale(some, others)
    centred = _is_centred(mine)
    if 2 * off > telling or (centred and not _is_centred(theirs, 0.5, 0.5)):
        raise InputError(
            "the numeric features have another scale in the private records than in the public ones "
            f"({off} of {telling} by far). Were the private ones scaled before, by an earlier step of a "
            "Pipeline, say? It learns from all private records, and does not scale the public ones. "
            f"{_RIGHT_WAY}, or allow it with {key}"
        )
    units = np.flatnonzero(_in_other_unit(some, others))
    if len(units) > _FEW_COLUMNS * mine.shape[1]:
        names = (
            X.select_dtypes("number").columns
            if isinstance(X, pd.DataFrame)
            else range(mine.shape[1])
        )
        raise InputError(
            f"{len(units)} of {mine.shape[1]} numeric features seem to be in another unit in the private "
            f"records than in the public ones (column {listed(names[place] for place in units[:5])}): "
            f"convert one of them, or allow it with {key}"
        )
    if centred:
        _tell_of_centred(_RIGHT_WAY)


def tell_of_private_scale(X: Any) -> None:
    """Warn of private records that were scaled by numbers taken from all of them, where none are public.

    On the operator's screen alone: whether it is said follows from private records, and decides on nothing.
    """
    numbers = _numbers(X)
    if numbers is not None and len(numbers) >= _LEAST_ROWS and _is_centred(numbers):
        _tell_of_centred(
            "Give them unscaled, or divided by numbers that are known without them; with public records "
            "(X_public), a scaler as `preprocessing` is fitted to these"
        )


def _tell_of_centred(way: str) -> None:
    warnings.warn(
        "every numeric feature has mean 0 in the private records, so they were probably scaled by "
        f"numbers computed from all of them, which no budget pays for. {way}",
        PrivacyWarning,
        stacklevel=4,
    )


def _off_scale(mine: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[int, int]:
    """Count the features whose spread or middle differs more than towns and years do, and all that vary."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns without any value
        low, middle, high = np.nanpercentile(mine, [10, 50, 90], axis=0)
        their_low, their_middle, their_high = np.nanpercentile(theirs, [10, 50, 90], axis=0)
        spread, their_spread = high - low, their_high - their_low
        telling = (spread > 0) & (their_spread > 0)
        widest = np.maximum(spread, their_spread)
        ratio = widest / np.minimum(spread, their_spread)
        away = np.abs(middle - their_middle) / widest
    off = telling & ((ratio > _TIMES_WIDER) | (away > _TIMES_AWAY))
    return int(off.sum()), int(telling.sum())


def _in_other_unit(mine: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the features of which every quantile is many times larger on one side, or all far away.

    Quantiles do not see how heavy tails are; a single one differs between any two groups of people.
    """
    if min(len(mine), len(theirs)) < _ROWS_OF_UNIT:
        return np.zeros(mine.shape[1], dtype=bool)
    sizes = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for side in (mine, theirs):
            low, lower, middle, upper, high = np.nanpercentile(side, [10, 25, 50, 75, 90], axis=0)
            sizes.append([high - low, upper - lower, np.nanmedian(np.abs(side), axis=0), middle])
        (*spreads, middle), (*their_spreads, their_middle) = sizes
        ratios = np.log(spreads) - np.log(their_spreads)
        widest = np.maximum(spreads[0], their_spreads[0])
        away = np.abs(middle - their_middle) / widest > _TIMES_OFFSET
    larger = (ratios > math.log(_TIMES_UNIT)).all(axis=0)
    smaller = (ratios < -math.log(_TIMES_UNIT)).all(axis=0)
    finite = np.isfinite(ratios).all(axis=0)
    return np.asarray(((larger | smaller) & finite) | (away & (widest > 0)))


def _is_centred(numbers: NDArray[Any], share: float = 1.0, tolerance: float = 1e-5) -> bool:
    """Tell whether the features that vary have mean 0, as scaling and PCA leave them, and nature does not.

    ``share``: of these features.
    ``tolerance``: in standard deviations.
    """
    mean, deviation = np.empty(numbers.shape[1]), np.empty(numbers.shape[1])
    some = max(1, _CELLS_AT_ONCE // len(numbers))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for first in range(0, numbers.shape[1], some):  # all pixels, in 64 bits, take much room
            columns = slice(first, first + some)
            values = np.asarray(numbers[:, columns], dtype=np.float64)
            mean[columns], deviation[columns] = (
                np.nanmean(values, axis=0),
                np.nanstd(values, axis=0),
            )
    varies = deviation > 1e-9
    near = np.abs(mean[varies]) < tolerance * deviation[varies]
    return len(near) > 1 and bool(np.mean(near) >= share)


def _numbers(X: Any) -> NDArray[Any] | None:
    """Take the columns of numbers; of an array, as it is."""
    if hasattr(X, "tocsr"):
        return None
    if isinstance(X, pd.DataFrame):
        X = X.select_dtypes("number").to_numpy(np.float64, na_value=np.nan)
    elif X.dtype.kind not in "biuf":
        return None
    numbers = np.asarray(X).reshape(len(X), -1)
    return numbers if numbers.shape[1] else None
