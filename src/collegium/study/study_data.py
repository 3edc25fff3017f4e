"""A study's records: read, split and tied to budgets; everything by public randomness."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.neighbours import OWNER, ROW, Arrangement
from collegium.budgets import NOTHING, Budgets, epsilon_group, two_budgets
from collegium.checks import listed, shown
from collegium.data.column_types import ColumnTypes, labels_of, numbers_of
from collegium.data.datasets import load_dataset, read_any
from collegium.data.datasets.table_files import is_csv, refuse_blank_lines
from collegium.data.engines.places import Place
from collegium.data.engines.sources import fingerprint_of, header_at, is_text, read_whole
from collegium.data.headers import NO_HEADER, has_header
from collegium.data.overlap_checks import refuse_other_scale, refuse_overlap, refuse_same_people
from collegium.data.people import ask_about_people
from collegium.data.tables import (
    OUTSIDE,
    PRIVATE_CLASSES,
    as_records,
    classes_of_public,
    described,
    encode_classes,
    like_private,
    other_spelling,
    take_given,
    take_rows,
)
from collegium.errors import WHERE, ConfigError, InputError, PrivacyWarning, RecordError
from collegium.names import as_names
from collegium.personalisation.partition import owner_hashes
from collegium.runs.records import Records
from collegium.study.config import StudyConfig
from collegium.study.from_settings import settled
from collegium.zero_and_public_budgets import (
    PublicRecords,
    granting_rows,
    has_budget,
    split_by_level,
    subset,
)

OVERLAP_KEY = "data.public_may_overlap = true"
SCALE_KEY = "data.scales_may_differ = true"


@dataclass(frozen=True, eq=False, kw_only=True)
class StudyData(Records):
    """All records of a study: those of a run, and what its results are measured with.

    ``X_test``, ``y_test``: public test records and their classes, where there are any (None
        otherwise).
    ``test_groups``: name of the group that the level of each test record makes, where the test file
        has that column.
    ``public_rows``: row of each public record in its file or data set.
    ``fingerprints``: what the records were read from.
    ``n_tests_left_out``: test records without a class: a student cannot be judged by them.
    ``reading``: how files of such records are read, where that does not go without saying.
    """

    X_test: Any | None
    y_test: NDArray[Any] | None
    test_groups: NDArray[Any] | None
    public_rows: NDArray[np.intp]
    fingerprints: dict[str, str]
    n_tests_left_out: int = 0
    reading: Mapping[str, Any] = field(default_factory=dict)

    @property
    def known_codes(self) -> NDArray[np.intp]:
        """Class number of each public record as whoever plans and learns knows it; -1: unknown.

        Known are classes that the user brought with public records. In a split of one data set they are the
        experimenter's, to measure with.
        """
        if self.arrangement.split or self.y_public is None:
            return np.full(self.X_public.shape[0], -1, dtype=np.intp)
        codes: NDArray[np.intp] = pd.Index(self.classes).get_indexer(pd.Index(self.y_public))
        return codes

    @property
    def people(self) -> Budgets:
        """Who granted what, by name. **Sensitive.**"""
        return self.budgets

    @property
    def inputs(self) -> dict[str, Any]:
        """What records are, and how they are read: for whoever asks the published student."""
        return {**described(self.X_public), **self.reading}


@dataclass(frozen=True, eq=False)
class _Records:
    """Records of one source, before anything is split off."""

    X: Any
    y: NDArray[Any] | None
    owners: NDArray[Any] | None
    levels: NDArray[Any] | None
    rows: NDArray[np.intp]
    n_rows: int  # of the source, before any was dropped or split off
    characters: bool = False  # whether the table's cells are the characters of a file
    silent: NDArray[Any] | None = None  # names of people who granted nothing, and are not here

    @property
    def names(self) -> NDArray[Any]:
        """Owner of each record; without owners, the record's row in its source names it.

        The row in the *source*: dropping or splitting off other records renames nobody.
        """
        return self.rows if self.owners is None else self.owners

    def take(self, rows: NDArray[np.intp]) -> _Records:
        return _Records(
            take_rows(self.X, rows),
            None if self.y is None else self.y[rows],
            None if self.owners is None else self.owners[rows],
            None if self.levels is None else self.levels[rows],
            self.rows[rows],
            self.n_rows,
            self.characters,
            self.silent,
        )

    def only(self, rows: NDArray[np.intp]) -> _Records:
        """Take some records as if the others had not been in the table; none is copied if all are taken."""
        if rows.size == len(self.rows):
            return self
        gone = np.setdiff1d(np.arange(len(self.rows)), rows)
        return replace(self.take(rows), X=take_given(self.X, rows), silent=self.names[gone])

    def with_known_class(self) -> _Records:
        """Leave out what nobody knows the class of."""
        return self if self.y is None else self.take(np.flatnonzero(~pd.isna(self.y)))


def load_study_data(config: StudyConfig) -> StudyData:
    """Read, split and check all records of a study."""
    fingerprints: dict[str, str] = {}
    classes: Any = config.data.classes
    if config.data.dataset is not None:
        source, known = _named(config)
        classes = known if classes is None else classes
        fingerprints["data set"] = str(config.data.dataset)
    else:
        source = read_records(config, "private", fingerprints, is_private=True)
    private, public, test = _split(config, source)  # of those who granted anything
    if public is None:
        public = read_records(config, "public", fingerprints, is_private=False)
    if config.data.test is not None:
        test = read_records(config, "test", fingerprints, is_private=False)
    judged = None if test is None else test.with_known_class()
    if private.y is None:
        raise ConfigError(
            "private records have no labels: give data.target (a column) or data.private_labels (a file)"
        )
    if classes is None:
        classes = classes_of_public(public.y, None if test is None else test.y)
    warn_of_private_classes(classes)
    with rows_of(private):
        budgets = _budgets(config, private, fingerprints)
    if config.privacy.shares is not None:  # dealt just now
        rows = has_budget(budgets)
        private, budgets = private.only(rows), subset(budgets, rows)
    assert private.y is not None
    with the_list_of_classes(config, classes), rows_of(private):
        known_classes, codes = encode_classes(private.y, classes)
    X = as_records(private.X, "private")
    X_public = like_private(as_records(public.X, "public"), X)
    X_test = None if judged is None else like_private(as_records(judged.X, "test"), X, "test")
    types = public_types(config, X_public, public.characters)
    if types is not None:
        X, X_public = types.applied(X), types.applied(X_public, "public")
        X_test = None if X_test is None else types.applied(X_test, "test")
    parts, given = split_by_level(budgets, learner=config.kind.learner), None
    becoming = [private.names[parts.public]]
    if config.data.public_records is not None:
        becoming += [one.names for one in (public, test) if one is not None]
    if parts.public.size:
        given = PublicRecords(take_rows(X, parts.public), codes[parts.public])
        X, codes, budgets = take_rows(X, parts.private), codes[parts.private], parts.budgets
        private = private.take(parts.private)
    may_overlap = bool(config.data.public_may_overlap)
    for role, records in (("public", X_public), ("test", X_test)):
        if config[f"data.{role}"] is not None and records is not None and not may_overlap:
            refuse_overlap(X, records, role, OVERLAP_KEY)
    for role, others in (("public", public), ("test", test)):
        if config[f"data.{role}"] is not None and others is not None and not may_overlap:
            mine = as_names(private.names)
            if private.silent is not None:
                mine = np.append(mine, as_names(private.silent))
            n_known = int(pd.Series(known_owners(others)).isin(mine).sum())
            refuse_same_people(n_known, len(others.rows), role, str(config.data.owner), OVERLAP_KEY)
    if config.data.public is not None and not config.data.scales_may_differ:
        refuse_other_scale(X, X_public, SCALE_KEY)
    return StudyData(
        X=X,
        codes=codes,
        budgets=budgets,
        classes=known_classes,
        X_public=X_public,
        y_public=truth_about(public.y, known_classes, "public"),
        X_test=X_test,
        y_test=None if judged is None else truth_about(judged.y, known_classes, "test"),
        test_groups=None if judged is None else groups_of_test_records(config, judged.levels),
        public_rows=public.rows,
        fingerprints=fingerprints,
        n_tests_left_out=0 if test is None or judged is None else len(test.rows) - len(judged.rows),
        reading=reading_of(config, types),
        arrangement=Arrangement(
            unit=ROW if private.owners is None else OWNER,
            sizes_declared=config.privacy.sizes is not None,
            split=config.data.public_records is not None,
            levels_by_lot=config.privacy.shares is not None,
            private_classes=classes is None,
            public_may_overlap=may_overlap,
            public_levels=budgets.public_levels,
        ),
        given=given,
        made_public=np.unique(as_names(np.concatenate(becoming))),
    )


def has_class_of_its_own(data: StudyData, name: str) -> bool:
    """Tell whether the list of classes was read off private labels, one of which only this person has."""
    if not data.arrangement.private_classes:
        return False
    others = (as_names(data.budgets.owners) != name)[data.budgets.record_owner]
    return len(np.unique(data.codes[others])) < len(data.classes)


def public_types(config: StudyConfig, X_public: Any, characters: bool) -> ColumnTypes | None:
    """Find the types of all records' columns, before a private record is looked at; None for arrays.

    ``X_public``: the public records.
    ``characters``: whether their cells are the characters of a file.
    """
    declared, decimal = config.data.types, config.data.decimal
    if not isinstance(X_public, pd.DataFrame):
        if declared:
            raise ConfigError("data.types names columns, but the records are arrays: remove it")
        return None
    types = ColumnTypes.of(X_public, declared=declared, decimal=decimal, characters=characters)
    shown = types.applied(X_public, "public", tell=False)
    fills_none = config.features.weights or settled(config, shown).preprocessing.kind == "none"
    return types.with_medians(shown) if fills_none else types


def reading_of(config: StudyConfig, types: ColumnTypes | None) -> dict[str, Any]:
    """Say how files of such records are read, where that does not go without saying."""
    separator = config.data.separator
    said = {} if separator is None else {"separator": separator}
    return said if types is None else {**said, **types.reading()}


def groups_of_test_records(config: StudyConfig, levels: NDArray[Any] | None) -> NDArray[Any] | None:
    """Name the group of each public test record: by its level, or by its ε where there are no levels."""
    if levels is None or config.policy() is not None:
        return levels
    epsilons = pd.to_numeric(pd.Series(levels), errors="coerce")
    return np.array(
        [
            str(level) if pd.isna(epsilon) else epsilon_group(epsilon)
            for level, epsilon in zip(levels.tolist(), epsilons, strict=True)
        ],
        dtype=object,
    )


def warn_of_private_classes(given: Any) -> None:
    """Warn where the class list is read off the private labels."""
    if given is None:
        warnings.warn(
            PRIVATE_CLASSES.format("data.classes, or public records with labels"),
            PrivacyWarning,
            stacklevel=3,
        )


@contextlib.contextmanager
def the_list_of_classes(config: StudyConfig, classes: Any) -> Iterator[None]:
    """Say of an error about private labels where the list came from, if it was not given."""
    try:
        yield
    except InputError as error:
        given = config.data.classes is not None or config.data.dataset is not None
        if given or classes is None or OUTSIDE not in str(error):
            raise
        raise InputError(
            f"{error}; the list is that of the public labels, since data.classes is not given"
        ) from None


@contextlib.contextmanager
def rows_of(private: _Records) -> Iterator[None]:
    """Say of an error about a record where in its file it stands."""
    try:
        yield
    except RecordError as error:
        raise error.among(private.rows) from None


def truth_about(y: NDArray[Any] | None, classes: NDArray[Any], role: str) -> NDArray[Any] | None:
    """Check that true labels of public records speak of the same classes as private ones."""
    if y is not None and not pd.Index(y).isin(pd.Index(classes)).any():
        spelling = other_spelling(y, classes) or ": write both in the same way"
        raise InputError(
            f"no label of the {role} records is among the classes "
            f"{listed(classes.tolist())}{spelling}"
        )
    return y


def _named(config: StudyConfig) -> tuple[_Records, tuple[Any, ...]]:
    name, missing = config.data.dataset, config.data.missing
    assert name is not None
    dataset = load_dataset(name, config.path("run.data_dir"))
    records = _Records(
        dataset.X,
        dataset.y,
        dataset.owners,
        None,
        np.arange(len(dataset.y), dtype=np.intp),
        len(dataset.y),
    )
    records = records.only(_granting(config, records))
    if isinstance(records.X, pd.DataFrame):
        records = _without(records, config.data.exclude)
    return _drop_missing(records, missing), dataset.classes


def read_records(
    config: StudyConfig, role: str, fingerprints: dict[str, str], is_private: bool
) -> _Records:
    """Read the file of one role into memory, and add its fingerprint."""
    source = config.source(f"data.{role}")
    assert source is not None
    characters = is_text(source)
    read = read_whole(source, config.data.separator, except_for=config.data.exclude)
    table, fingerprints[role] = read.records, read.fingerprint
    y, owners, levels = read.classes, None, None
    are_characters = characters
    may_lack_header = characters and not isinstance(source, Place)
    public = _public_names(config) if is_private and may_lack_header else None
    labels = config.path(f"data.{role}_labels")
    if labels is not None:
        given = read_any(labels, separator=config.data.separator, as_text=True)
        y = _one_column(given, f"data.{role}_labels")
        are_characters = is_csv(labels)
        fingerprints[f"{role} labels"] = fingerprint_of(labels)
    if isinstance(table, pd.DataFrame):
        target, column = config.data.target, config.privacy.column
        if target is not None and (is_private or role == "test" or target in table.columns):
            y = _labels_in(_column(table, target, f"data.target in the {role} records", public))
            are_characters = characters
        if is_private and config.data.owner is not None:
            owners = np.asarray(_column(table, config.data.owner, "data.owner", public))
        elif config.data.owner in table.columns:
            owners = np.asarray(table[config.data.owner])
        if is_private and column is not None:
            levels = np.asarray(_column(table, column, "privacy.column", public))
        elif role == "test" and column in table.columns:
            levels = np.asarray(table[column])
    elif is_private and config.data.owner is not None:
        raise ConfigError(
            "data.owner names a column, but the private records are an array without column names: give a "
            "table, or leave data.owner out if every record is another person's"
        )
    if y is not None and len(y) != len(table):
        raise InputError(f"{len(table)} {role} records, but {len(y)} labels: give one per record")
    if not len(table):
        raise InputError(f"{source} holds no {role} records: give a file with some")
    rows = np.arange(len(table), dtype=np.intp)
    records = _Records(table, y, owners, levels, rows, len(table), characters)
    if is_private:
        records = records.only(_granting(config, records))
        table, y = records.X, records.y
    if y is not None and are_characters:
        records = replace(records, y=labels_of(y, config.data.classes))
    if isinstance(table, pd.DataFrame):
        named = public is None or has_header(table.columns, public)
        if is_private and config.data.owner is None and named:
            _ask_about_people(table, config)
        special = [config.data.target, config.data.owner, config.privacy.column]
        drop = [c for c in special if c is not None and c in table.columns]
        strays = [c for c in config.data.exclude if c in table.columns]
        if is_private:
            known = excluded(config, [*table.columns, *read.unread])
            strays = [name for name in known if name not in read.unread]
        records = _without(records, [*drop, *strays])
    blank = np.zeros(len(table), dtype=bool)
    if isinstance(table, pd.DataFrame) and table.shape[1] > 1:
        blank = table.isna().to_numpy().all(axis=1)
    left = _drop_missing(records, config.data.missing)
    blanks = left.rows[np.isin(left.rows, records.rows[blank])]
    if blanks.size:
        raise RecordError(
            f"{blanks.size} {role} record(s) are blank rows, first {WHERE}: delete these rows",
            int(blanks[0]),
        )
    return left


def excluded(config: StudyConfig, columns: Collection[str]) -> list[str]:
    """List the columns to leave out of the private records, without those that only public or test ones have.

    ``columns``: of the private records.
    """
    if set(config.data.exclude) <= set(columns):
        return list(config.data.exclude)
    sources = (config.source("data.public"), config.source("data.test"))
    elsewhere = {
        name
        for source in sources
        if source is not None
        for name in header_at(source, config.data.separator).columns or ()
    }
    return [name for name in config.data.exclude if name in columns or name not in elsewhere]


def known_owners(records: _Records) -> NDArray[Any]:
    """Name the owners of public or test records, as far as their file does."""
    names = as_names([] if records.owners is None else records.owners)
    return np.asarray(names[~pd.isna(names)])


def _ask_about_people(table: pd.DataFrame, config: StudyConfig) -> None:
    data = config.data
    ask_about_people(
        table,
        {data.target, *(data.not_identifiers or ())},
        lambda asked: (
            f"Then set data.owner = {shown(asked[0])}, so that one budget covers all records of a person; if "
            f"not, data.not_identifiers = {shown(asked[:5])}"
        ),
    )


def _column(
    table: pd.DataFrame, name: str, what: str, public: Collection[str] | None = None
) -> pd.Series:
    """Take a column. ``public``: names that are known in public, where the table is private."""
    if name not in table.columns:
        may_be_shown = public is None or has_header(table.columns, public)
        there = f"the columns are {listed(table.columns)}" if may_be_shown else NO_HEADER
        raise InputError(f"{what} names column {name!r}, which is not there: {there}")
    return table[name]


def _labels_in(column: pd.Series) -> NDArray[Any]:
    """Take labels, such that truth values are the same classes whether or not some are missing."""
    if isinstance(column.dtype, pd.BooleanDtype):
        return np.asarray(column.to_numpy(dtype=object, na_value=None))
    return np.asarray(column)


def _public_names(config: StudyConfig) -> tuple[str, ...]:
    """Name the columns that are known in public: of public records, or at least in the settings."""
    source = config.source("data.public")
    if source is not None:
        return header_at(source, config.data.separator).columns or ()
    said = (config.data.target, config.data.owner, config.privacy.column)
    return tuple(name for name in said if name is not None)


def _one_column(table: Any, name: str) -> NDArray[Any]:
    column = np.asarray(table)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError(
            f"{name} must be one column, got shape {column.shape}: one value per record"
        )
    return column


def _without(records: _Records, columns: Sequence[str]) -> _Records:
    for name in columns:
        _column(records.X, name, "data.exclude")
    kept = records.X.drop(columns=list(columns))
    return replace(records, X=kept)


@dataclass(frozen=True)
class MarkedMissing:
    """Finds the records in which some value is missing.

    ``marker``: text, or number, that stands for a missing value; empty or "nan": what is missing
        anyway.
    """

    marker: str

    def __call__(self, X: pd.DataFrame) -> NDArray[np.bool_]:
        """Mark records, each by its own values alone; shape (n_records,)."""
        bad = np.zeros(len(X), dtype=bool)
        try:
            number = float(self.marker or "nan")
        except ValueError:
            number = np.inf
        for name in X.columns:
            if np.isnan(number):
                bad |= X[name].isna().to_numpy()
            elif pd.api.types.is_numeric_dtype(X[name].dtype):
                bad |= (X[name] == number).to_numpy(dtype=bool, na_value=False)
            else:
                bad |= (X[name].astype(object) == self.marker).to_numpy()
        return bad


def _drop_missing(records: _Records, marker: str | None) -> _Records:
    if marker is None or not isinstance(records.X, pd.DataFrame):
        return records
    bad = MarkedMissing(marker)(records.X)
    if records.characters:  # "-9.0" is the number that the marker "-9" means
        number = numbers_of(pd.Series([marker], dtype=object))[0]
        for name in [] if np.isnan(number) else records.X.columns:
            bad |= numbers_of(records.X[name]) == number
    kept = records.take(np.flatnonzero(~bad))
    if not len(kept.X):
        raise InputError(f"every record contains {marker!r} (data.missing): nothing is left")
    return kept


def _split(
    config: StudyConfig, source: _Records
) -> tuple[_Records, _Records | None, _Records | None]:
    """Deal owners, ordered by a keyed hash of their names, to the public, test and private side.

    The private side comes last: whether somebody is on it or not changes nothing about the other two, and
    nobody else's place. Its size is a public number.
    """
    if config.data.public_records is None:
        return source, None, None
    wanted = [config[f"data.{role}_records"] or 0 for role in ("private", "public", "test")]
    total = len(source.rows)
    if sum(wanted) > total:
        raise InputError(
            f"the split asks for {sum(wanted)} records, but there are only {total}: lower "
            "data.private_records, data.public_records or data.test_records"
        )
    hashes = owner_hashes(source.names, f"split {config.study.seed}".encode())
    order = np.lexsort((np.arange(total), hashes))
    parts: dict[str, _Records] = {}
    start = 0
    for role, size in (("public", wanted[1]), ("test", wanted[2]), ("private", wanted[0])):
        end = min(start + size, total)
        while size and 0 < end < total and hashes[order[end]] == hashes[order[end - 1]]:
            end += 1  # the last owner's remaining records
        parts[role] = source.take(np.sort(order[start:end]))
        start = end
    if not all(len(parts[role].rows) for role in ("private", "public")):
        raise InputError("the split leaves a side without records: ask for fewer public records")
    return parts["private"], parts["public"], parts["test"] if wanted[2] else None


def _budgets(config: StudyConfig, private: _Records, fingerprints: dict[str, str]) -> Budgets:
    policy, delta = config.policy(), config.privacy.delta
    levels = private.levels
    path = config.path("privacy.file")
    if path is not None:
        fingerprints["privacy"] = fingerprint_of(path)
        levels = _levels_of_file(config, path, private)
    if config.privacy.shares is not None:
        assert policy is not None
        levels = _random_levels(config, private)
    if levels is None:
        raise ConfigError(
            "privacy.column needs a table with named columns; for arrays give privacy.file"
        )
    if policy is None:
        levels = epsilons_of(levels, config.data.decimal)
        return Budgets.from_epsilons(levels, delta, private.names)
    return policy.assign(levels, private.names, config.privacy.sizes)


def _levels_of_file(config: StudyConfig, path: Path, private: _Records) -> NDArray[Any]:
    """Read the level of each record where it stands in a file of its own."""
    if is_csv(path):
        refuse_blank_lines(path)
    given = _one_column(
        read_any(path, separator=config.data.separator, as_text=True), "privacy.file"
    )
    if len(given) != private.n_rows:
        raise InputError(
            f"privacy.file ({path.name}) has {len(given):,} levels, but there are {private.n_rows:,} "
            "records: give one level or ε per record, below a header"
        )
    return np.asarray(given[private.rows])


def _granting(config: StudyConfig, private: _Records) -> NDArray[np.intp]:
    """Find the records that may be looked at: all but those of people who granted nothing.

    Nothing else is known of the records yet, and of their levels nothing else is checked.
    """
    policy, path, levels = config.policy(), config.path("privacy.file"), private.levels
    everybody = np.arange(len(private.rows))
    if policy is not None and NOTHING not in policy.outside.values():
        return everybody
    if path is not None:
        levels = _levels_of_file(config, path, private)
    if levels is None:
        return everybody
    if policy is None:
        is_silent = numbers_of(pd.Series(levels), config.data.decimal or ".") == 0
    else:
        silent = [name for name, kind in policy.outside.items() if kind == NOTHING]
        is_silent = pd.Series(as_names(levels)).isin(silent).to_numpy()
    if not is_silent.any():
        return everybody
    names = pd.Series(as_names(private.names))
    torn = names[~is_silent & names.notna() & names.isin(names[is_silent])]
    if len(torn):
        other = np.flatnonzero(is_silent & (names == torn.iloc[0]))[0]
        raise two_budgets(torn.nunique(), int(torn.index[0]), int(other))
    return granting_rows(is_silent, names.to_numpy())


def epsilons_of(levels: NDArray[Any], decimal: str | None) -> NDArray[np.float64]:
    """Read ε where people gave numbers. What is none is not shown: it may stand in a wrong column."""
    column = pd.Series(levels)
    epsilons = numbers_of(column, decimal or ".")
    wrong = np.flatnonzero(np.isnan(epsilons) & column.notna().to_numpy())
    if wrong.size:
        raise RecordError(
            f"privacy budgets must be numbers, but {wrong.size:,} are text, first in {WHERE}: give ε per "
            "record, name the levels in privacy.levels, or say data.decimal",
            wrong[0],
        )
    return epsilons


def _random_levels(config: StudyConfig, private: _Records) -> NDArray[Any]:
    """Give levels to owners at random, in exact shares."""
    owner = pd.factorize(private.names)[0]
    people = int(owner.max()) + 1
    shares = config.privacy.shares
    assert shares is not None
    ends = np.rint(np.cumsum(list(shares.values())) * people).astype(int)
    level = np.searchsorted(ends, np.arange(people), side="right")
    generator = np.random.default_rng([config.study.seed, 2])
    dealt = generator.permutation(np.minimum(level, len(shares) - 1))
    return np.asarray(np.asarray(list(shares), dtype=object)[dealt[owner]])
