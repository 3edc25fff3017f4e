"""Files of a label job: votes, and the budgets of the teachers who cast them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.budgets import Budget, Budgets
from collegium.checks import listed, shown
from collegium.data.datasets import read_any
from collegium.data.datasets.raw import MOST_COLUMNS, UNREADABLE, open_raw, reason_of
from collegium.errors import InputError, PrivacyWarning, counted
from collegium.names import as_names, spelt_alike
from collegium.parameters import MOST_WHOLE
from collegium.pate.voting.vote_table import VoteTable


@dataclass(frozen=True, eq=False)
class TeacherBudgets:
    """Budgets of teachers, from a file.

    ``group_of_teacher`` (n_teachers,): group of each teacher; None if one row stands for all, or
        rows are groups.
    ``owners``: owners of each group, where the file tells (teachers otherwise).
    ``knows_owners``: whether the file tells who the teachers learnt from.
    ``duplicates``: teachers that saw each owner of a group, when upsampling.
    """

    groups: dict[str, Budget]
    group_of_teacher: NDArray[Any] | None
    owners: dict[str, int]
    duplicates: dict[str, int] | None
    knows_owners: bool


def read_budgets(path: Path) -> TeacherBudgets:
    """Read a table of budgets."""
    _refuse_folder(path, "a table with a header (.csv or .parquet)")
    table = read_any(path)
    if not isinstance(table, pd.DataFrame) or "epsilon" not in table.columns:
        raise InputError(
            f"{path} needs a column 'epsilon' (and may have delta, group, owners, teachers_per_owner), with "
            "a header"
        )
    allowed = ("teacher", "epsilon", "delta", "group", "owners", "teachers_per_owner")
    for name in table.columns:
        if name not in allowed:
            raise InputError(
                f"{path} has an unknown column {name!r}: allowed are {', '.join(allowed)}"
            )
    if not len(table):
        raise InputError(f"{path} has no rows: give one per teacher, or one for all")
    if "teacher" in table.columns:
        table = _by_teacher(table, path)
    epsilons = _numbers(table, "epsilon", path)
    deltas = _numbers(table, "delta", path) if "delta" in table.columns else [1e-5] * len(table)
    pairs = [Budget(e, d) for e, d in zip(epsilons, deltas, strict=True)]
    if "group" in table.columns:
        names = [str(name).strip() for name in table["group"]]
        if table["group"].isna().any() or "" in names:
            raise InputError(f"{path}: a cell of column 'group' is empty: name each row's group")
    else:
        names = [f"ε={pair.epsilon:g}" for pair in pairs]
        if len(set(deltas)) > 1:
            names = [f"ε={pair.epsilon:g}, δ={pair.delta:g}" for pair in pairs]
    groups: dict[str, Budget] = {}
    for row, name, pair in zip(table.index.tolist(), names, pairs, strict=True):
        if groups.setdefault(name, pair) != pair:
            raise InputError(
                f"{path}: group {name!r} has two budgets, the second (ε = {pair.epsilon:g}, "
                f"δ = {pair.delta:g}) in {counted(row)}: give one"
            )
    alike = spelt_alike(groups)
    if alike:
        warnings.warn(
            f"{path}: {alike} groups are called like another one but for upper and lower case "
            f"({listed(groups)}): they count as different ones; write a group's name in one way",
            PrivacyWarning,
            stacklevel=2,
        )
    duplicates = None
    if "teachers_per_owner" in table.columns:
        if len(groups) != len(table):
            raise InputError(f"{path}: with teachers_per_owner give one row per group")
        duplicates = dict(zip(names, _counts(table, "teachers_per_owner", path), strict=True))
    owners = dict.fromkeys(groups, 0)
    people = _counts(table, "owners", path) if "owners" in table.columns else [1] * len(table)
    for name, count in zip(names, people, strict=True):
        owners[name] += count
    per_teacher = len(table) > 1 and duplicates is None
    return TeacherBudgets(
        groups,
        np.asarray(names, dtype=object) if per_teacher else None,
        owners,
        duplicates,
        knows_owners=duplicates is not None or "owners" in table.columns,
    )


def read_people(path: Path, ballots: TeacherBudgets) -> tuple[Budgets, TeacherBudgets]:
    """Read whose records the teachers have learnt from: a table with the columns owner and group.

    Returns ``people``: who granted what.
    Returns ``ballots``: which know how many people each group has.
    """
    _refuse_folder(path, "a table with a header (.csv or .parquet)")
    table = read_any(path, as_text=True)
    if not isinstance(table, pd.DataFrame) or not {"owner", "group"} <= set(table.columns):
        raise InputError(f"{path} needs the columns 'owner' and 'group', with a header")
    named = as_names(table["group"])
    codes = pd.Index(list(ballots.groups)).get_indexer(pd.Index(named))
    wrong = np.flatnonzero(codes < 0)
    if wrong.size:
        raise InputError(
            f"{path}: {counted(int(wrong[0]))} is of group {shown(named[wrong[0]])}, which has no budget: "
            f"the groups are {listed(ballots.groups)}"
        )
    people = Budgets(ballots.groups, codes.astype(np.intp), np.asarray(table["owner"]))
    sizes = people.group_sizes()
    for name, count in ballots.owners.items():
        if ballots.knows_owners and count != sizes[name]:
            raise InputError(
                f"{path} names {sizes[name]:,} people of group {name!r}, and the budgets say {count:,}: "
                "correct one of them"
            )
    return people, replace(ballots, owners=dict(sizes), knows_owners=True)


def _by_teacher(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Put rows into the order of the votes' columns: budgets are tied by number, not by place."""
    numbers = _coerced(table["teacher"])
    if sorted(numbers.tolist()) != list(range(len(table))):
        raise InputError(
            f"{path}: column 'teacher' must hold each number from 0 to {len(table) - 1} once: it says which "
            "column of the votes a row is about (counted from 0)"
        )
    return table.iloc[np.argsort(numbers.to_numpy())]


def _numbers(table: pd.DataFrame, column: str, path: Path) -> list[float]:
    """Read a column of numbers, NaN among them; what else is there is not quoted."""
    cells = table[column]
    numbers = _coerced(cells)
    wrong = np.flatnonzero((numbers.isna() & cells.notna()).to_numpy())
    if wrong.size or cells.dtype.kind == "b":
        row = int(cells.index[wrong[0] if wrong.size else 0])
        raise InputError(
            f"{path}: column {column!r} must hold numbers, but {counted(row)} holds something else: correct "
            "it"
        )
    return [float(number) for number in numbers]


def _coerced(cells: pd.Series) -> pd.Series:
    """Numbers of a column; NaN where there is none, or one that is too large for a float."""
    try:
        return pd.to_numeric(cells, errors="coerce").astype(np.float64)
    except OverflowError:
        return pd.Series([_number_in(cell) for cell in cells], index=cells.index)


def _number_in(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _counts(table: pd.DataFrame, column: str, path: Path) -> list[int]:
    values = _coerced(table[column])
    allowed = values.between(1, MOST_WHOLE) & (values == values.round())
    if not allowed.all():
        raise InputError(
            f"{path}: column {column!r} must hold whole numbers of at least 1 and at most {MOST_WHOLE:,}"
        )
    return [int(value) for value in values]


def read_votes(
    path: Path, votes_are: str, classes: int | None, budgets: TeacherBudgets
) -> VoteTable:
    """Read votes as predictions or counts; guess only where there is no doubt."""
    if votes_are not in ("auto", "predictions", "counts"):
        raise InputError(f"--votes-are must be predictions, counts or auto, got {votes_are!r}")
    raw = read_matrix(path)
    n_rows_of_budgets = None if budgets.group_of_teacher is None else len(budgets.group_of_teacher)
    if votes_are == "auto":
        sums = raw.sum(axis=1) if raw.dtype.kind in "iuf" else np.arange(2)
        could_be_counts = len(raw) > 1 and bool((sums == sums[0]).all()) and sums[0] > 0
        could_be_predictions = (
            classes is not None
            and bool((raw < classes).all())
            and n_rows_of_budgets in (None, raw.shape[1])
        )
        if classes is not None and not could_be_counts and n_rows_of_budgets == raw.shape[1]:
            could_be_predictions = (
                True  # one column per teacher: a vote outside the classes is named
            )
        if not could_be_counts and n_rows_of_budgets not in (None, raw.shape[1]):
            raise InputError(
                f"{path} has votes of {raw.shape[1]} teachers (columns), but there are budgets of "
                f"{n_rows_of_budgets}: give one row per teacher, in the order of the columns, or one row for "
                "all"
            )
        if could_be_counts == could_be_predictions:
            why = "fit both" if could_be_counts else "fit neither"
            raise InputError(
                f"it is not clear whether the {raw.shape[1]} columns of {path} are teachers or classes (they "
                f"{why}): give --votes-are counts, or --votes-are predictions with --classes"
            )
        votes_are = "counts" if could_be_counts else "predictions"
    if votes_are == "counts":
        if len(budgets.groups) > 1:
            raise InputError(
                f"{path} holds vote counts, but there are {len(budgets.groups)} budget groups: counts do "
                "not say which group's teachers voted for what, so no group's influence can be set or "
                "accounted for; give one column per teacher, or one budget"
            )
        return VoteTable.from_counts(raw)
    if classes is None:
        raise InputError(
            "predictions need --classes: the number of classes is public, and not every class must occur"
        )
    return VoteTable.from_predictions(raw, classes)


def _all_numbers(table: pd.DataFrame, otherwise: str) -> NDArray[Any]:
    try:
        return np.asarray(table.to_numpy(dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"{otherwise}: one row per query") from None


def _refuse_folder(path: Path, formats: str) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder: give one file, {formats}")


def read_matrix(path: Path) -> NDArray[Any]:
    """Read a table of numbers (.npy, or .csv without header)."""
    _refuse_folder(path, ".npy or .csv")
    if path.suffix == ".csv" or path.name.endswith(".csv.gz"):
        if not path.exists():
            raise InputError(f"there is no file {path}: give .npy or .csv")
        try:
            with open_raw(path) as stream:
                columns = stream.readline().count(b",") + 1
            if columns > MOST_COLUMNS:
                raise ValueError(f"{columns:,} columns, more than {MOST_COLUMNS:,}: give .npy")
            with open_raw(path) as stream:
                table = pd.read_csv(stream, header=None)
        except (ValueError, *UNREADABLE) as error:
            raise InputError(f"{path} cannot be read as CSV ({reason_of(error)})") from None
        return _all_numbers(table, f"{path} must hold numbers only, without a header")
    loaded = read_any(path)
    only = f"{path} must hold numbers only"
    if isinstance(loaded, pd.DataFrame):
        return _all_numbers(loaded, only)
    array = loaded
    if array.dtype.kind not in "biuf":
        raise InputError(f"{only}: one row per query")
    if array.ndim != 2:
        raise InputError(
            f"{path} must be a table (queries × teachers or classes), got {array.shape}"
        )
    return np.asarray(array)


def read_features(path: Path | None, table: VoteTable) -> NDArray[Any]:
    """Read the features of the queries."""
    if path is None:
        raise InputError("aggregator 'interactive' needs --features: its student learns from them")
    features = read_matrix(path)
    if len(features) != table.n_queries:
        raise InputError(
            f"--features has {len(features)} rows, but there are {table.n_queries} queries: give one each"
        )
    return features
