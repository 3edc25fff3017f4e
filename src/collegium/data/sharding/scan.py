"""The first pass: every check, and the public numbers that a plan is made from. Nothing is written."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from collegium.budgets import Budgets
from collegium.data.overlap_checks import Hashes, Likeness, RowsSeen
from collegium.data.sharding.levels import Granted
from collegium.data.sharding.owners import OWNER, OwnerRegister, different_owners
from collegium.data.sharding.roles import Roles, record_hashes, second_hashes
from collegium.data.sharding.source import Piece, Reader, RecordSource, as_frame, values_of
from collegium.data.tables import MOST_CLASSES, encode_classes, outside_the_classes
from collegium.errors import InputError, PrivacyWarning, counted
from collegium.names import as_names
from collegium.personalisation.partition import owner_hashes
from collegium.zero_and_public_budgets import EVERYBODY_SILENT, tell_of_silent

Progress = Callable[[int, int], None]


class CountedBudgets(Budgets):
    """Group sizes and budgets of owners who were counted, and are not in memory.

    ``groups``: names and budgets of the groups.
    ``sizes``: owners of each group.
    ``named``: whether records say whose they are; otherwise everybody has one.
    """

    in_memory = False

    def __init__(
        self, groups: Budgets, sizes: Sequence[int], n_records: int, *, named: bool
    ) -> None:
        self.named = named
        self._groups = dict(groups.groups)
        self.group_names = tuple(self._groups)
        self._sizes = [int(size) for size in sizes]
        self._n_records = n_records
        self.public_levels = groups.public_levels
        self.declare(None)
        self._warn()

    @property
    def n_records(self) -> int:
        """Number of records."""
        return self._n_records

    @property
    def n_owners(self) -> int:
        """Number of different owners."""
        return sum(self._sizes)

    def group_sizes(self) -> dict[str, int]:
        """Count the owners (not the records) of each group."""
        return dict(zip(self.group_names, self._sizes, strict=True))

    def __getattr__(self, name: str) -> Any:
        if name in ("owners", "record_owner", "owner_group"):
            raise InputError(
                "the private records are streamed, and this needs them in memory: read them with "
                "read_table, or set run.streaming = false in a study"
            )
        raise AttributeError(name)


@dataclass(frozen=True)
class Scanned:
    """What the first pass found.

    ``budgets``: the groups, their budgets and their exact sizes.
    ``granted``: what the levels mean.
    ``levels``: level of each group, in the order of the groups.
    ``classes``: the public list of classes.
    ``sensitive_seen``: numbers of the classes that some record has.
    ``features``: the columns that teachers learn from.
    ``sensitive_equal``: what was found of the records that were to be compared.
    ``sensitive_known``: how many of the others' names are private owners'.
    """

    budgets: CountedBudgets
    granted: Granted
    levels: pd.Index
    classes: NDArray[Any]
    sensitive_seen: NDArray[np.intp]
    features: tuple[str, ...]
    sensitive_equal: dict[str, RowsSeen] = field(default_factory=dict)
    sensitive_known: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Seen:
    """What one piece holds."""

    owners: NDArray[np.void]  # groups are positions in `levels`
    levels: NDArray[Any]
    records_per_level: NDArray[np.intp]
    labels: NDArray[Any]
    equal: dict[str, RowsSeen]


def scan(
    source: RecordSource,
    roles: Roles,
    granted: Granted,
    key: bytes,
    classes: ArrayLike | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    compared: Mapping[str, Likeness] | None = None,
    people: Mapping[str, NDArray[Any]] | None = None,
) -> Scanned:
    """Read owners, levels and classes of all records once; check them and count them.

    ``source``: the private records.
    ``granted``: what the levels mean.
    ``key``: public randomness of the assignment.
    ``classes``: the public list of classes. Default: those that occur, which are thereby treated as
        public.
    ``progress``: called with (rows read, rows in all).
    ``compared``: by name, other records to look for among the private ones.
    ``people``: by name, names of other records' owners to look for.
    """
    features = roles.features(source)
    register = OwnerRegister()
    index: dict[Any, int] = {}
    per_level: list[int] = []
    labels: set[Any] = set()
    done = 0
    tasks = (
        joblib.delayed(_look)(
            source.reader,
            piece,
            roles,
            granted,
            key,
            features,
            source.categorical,
            classes,
            compared or {},
            source.n_rows,
        )
        for piece in source.pieces
    )
    equal: list[dict[str, RowsSeen]] = []
    found = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    for piece, seen in zip(source.pieces, found, strict=True):
        for level in seen.levels.tolist():
            if level not in index:
                index[level] = len(index)
                per_level.append(0)
        here = np.array([index[level] for level in seen.levels.tolist()], dtype=np.intp)
        for code, number in zip(here, seen.records_per_level, strict=True):
            per_level[code] += int(number)
        if roles.owner is not None:
            owners = seen.owners.copy()
            owners["group"] = here[owners["group"]]
            register.add(owners)
        labels.update(seen.labels.tolist())
        _refuse_too_many(labels)
        equal.append(seen.equal)
        done += piece.n_rows
        if progress is not None:
            progress(done, source.n_rows)
    sizes = np.array(
        per_level if roles.owner is None else register.sizes(len(index)), dtype=np.intp
    )
    records, found_levels = np.array(per_level, dtype=np.intp), np.array(list(index), _kind(index))
    silent = granted.silent(found_levels)
    _tell_of_silent(sizes[silent], records[silent], not labels)
    if not labels:
        raise InputError("every private record is left out: nothing is left to teach from")
    known, codes = encode_classes(np.sort(np.array(list(labels), _kind(labels))), classes)
    levels, groups = _groups(granted, found_levels[~silent])
    order = levels.get_indexer(pd.Index(found_levels[~silent]))
    of_group = np.zeros(len(levels), dtype=np.intp)
    of_group[order] = sizes[~silent]
    return Scanned(
        budgets=CountedBudgets(
            groups,
            of_group.tolist(),
            int(records[~silent].sum()),
            named=roles.owner is not None,
        ),
        granted=granted,
        levels=levels,
        classes=known,
        sensitive_seen=np.unique(codes),
        features=features,
        sensitive_equal={
            role: RowsSeen.together([part[role] for part in equal]) for role in compared or {}
        },
        sensitive_known={
            role: int(np.count_nonzero(register.knows(record_hashes(names, key))))
            for role, names in (people or {}).items()
        },
    )


def named_budgets(source: RecordSource, roles: Roles, granted: Granted) -> Budgets:
    """Read who granted what, if anything, by name: in memory, some 200 bytes for each owner. **Sensitive.**

    ``source``, ``roles``, ``granted``: as for :func:`scan`, which has checked them.
    """
    needed = [name for name in (roles.owner, roles.level) if name is not None]
    features = roles.features(source)
    if roles.unwanted is not None:
        needed += features
    known: dict[Any, Any] = {}
    for piece in source.pieces:
        for first_row, table in source.reader.batches(piece, list(dict.fromkeys(needed))):
            silent = granted.silent(values_of(table, roles.level))
            table, rows = roles.taught(first_row, table, features, source.categorical, silent)
            names, levels = roles.names(table, rows), values_of(table, roles.level)
            owner, unique = pd.factorize(as_names(names))
            first = np.zeros(len(unique), dtype=np.intp)
            first[owner[::-1]] = np.arange(len(names))[::-1]
            known.update(zip(unique.tolist(), levels[first].tolist(), strict=True))
    owners = np.array(list(known), dtype=object)
    chosen = np.array(list(known.values()), _kind(list(known.values())))
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", PrivacyWarning
        )  # of what was warned of when they were counted
        if granted.policy is None:
            return Budgets.from_epsilons(chosen, granted.delta, owners)
        return granted.policy.assign(chosen, owners)


def _look(
    reader: Reader,
    piece: Piece,
    roles: Roles,
    granted: Granted,
    key: bytes,
    features: Sequence[str],
    categorical: Sequence[str],
    classes: ArrayLike | None,
    compared: Mapping[str, Likeness],
    n_rows: int,
) -> _Seen:
    """Read the owners, levels and labels of one piece."""
    needed = [name for name in (roles.owner, roles.level, roles.target) if name is not None]
    if roles.unwanted is not None or compared:
        needed += features
    hashes: dict[str, list[Hashes]] = {role: [] for role in compared}
    owners: list[NDArray[np.void]] = []
    index: dict[Any, int] = {}
    counts: list[int] = []
    labels: set[Any] = set()

    def numbered(column: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.intp]:
        levels, codes = granted.different(column, rows)
        for level in levels.tolist():
            if level not in index:
                index[level] = len(index)
                counts.append(0)
        codes = np.array([index[level] for level in levels.tolist()], dtype=np.intp)[codes]
        for code, number in enumerate(np.bincount(codes, minlength=len(counts)).tolist()):
            counts[code] += number
        return codes

    for first_row, table in reader.batches(piece, list(dict.fromkeys(needed))):
        column = values_of(table, roles.level).copy()
        silent = granted.silent(column)
        if silent.any():  # of these nothing but names, to find out who has another level as well
            column[silent] = granted.nothing
            codes = numbered(column[silent], first_row + np.flatnonzero(silent))
            if roles.owner is not None:
                names = values_of(table, roles.owner)[silent]
                named = ~pd.isna(names)
                owners.append(_identities(names[named], codes[named], key))
        table, rows = roles.taught(first_row, table, features, categorical, silent)
        codes = numbered(values_of(table, roles.level), rows)
        if compared:
            frame = as_frame(table.select(features), categorical)
            for role, likeness in compared.items():
                hashes[role].append(likeness.hashes(frame))
        names = roles.names(table, rows)
        if roles.owner is not None:
            owners.append(_identities(names, codes, key))
        labels.update(_labels(values_of(table, roles.target), rows, classes))
        _refuse_too_many(labels)
    return _Seen(
        owners=different_owners(np.concatenate([np.empty(0, OWNER), *owners])),
        levels=np.array(list(index), _kind(index)),
        records_per_level=np.array(counts, dtype=np.intp),
        labels=np.array(list(labels), _kind(labels)),
        equal={
            role: RowsSeen.of(
                np.concatenate([np.empty(0, np.uint64), *hashes[role]]), likeness.public, n_rows
            )
            for role, likeness in compared.items()
        },
    )


def _tell_of_silent(
    owners: NDArray[np.intp], records: NDArray[np.intp], is_everybody: bool
) -> None:
    if not records.sum():
        return
    if is_everybody:
        raise InputError(EVERYBODY_SILENT)
    tell_of_silent(int(owners.sum()), int(records.sum()))


def _identities(names: NDArray[Any], groups: NDArray[np.intp], key: bytes) -> NDArray[np.void]:
    owner, unique = pd.factorize(names)
    different = np.asarray(unique)
    n_groups = int(groups.max(initial=0)) + 1
    pairs = pd.unique(owner * n_groups + groups)  # each owner with each of its groups once
    owner = pairs // n_groups
    seen = np.empty(len(pairs), OWNER)
    seen["hash"] = owner_hashes(different, key)[owner]
    seen["second"] = second_hashes(different)[owner]
    seen["group"] = pairs % n_groups
    return seen


def _labels(column: NDArray[Any], rows: NDArray[np.intp], classes: ArrayLike | None) -> list[Any]:
    missing = np.flatnonzero(pd.isna(column))
    if missing.size:
        raise InputError(
            f"{missing.size} record(s) without a label, first {counted(rows[missing[0]])}: label or drop "
            "them"
        )
    if classes is not None:
        known = np.asarray(classes)
        outside = np.flatnonzero(pd.Index(known).get_indexer(pd.Index(column)) < 0)
        if outside.size:
            raise outside_the_classes(column, known, outside.size, rows[outside[0]])
    labels: list[Any] = pd.unique(column).tolist()
    return labels


def _refuse_too_many(labels: set[Any]) -> None:
    if len(labels) > MOST_CLASSES:
        raise InputError(
            f"the target has more than {MOST_CLASSES:,} different values: give a column of classes"
        )


def _groups(granted: Granted, levels: NDArray[Any]) -> tuple[pd.Index, Budgets]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # about made-up owners, one per group
        return granted.groups(levels)


def _kind(values: Any) -> Any:
    """Keep names as they are: NumPy alone would make text of fixed width of them."""
    return object if any(isinstance(value, str) for value in values) else None
