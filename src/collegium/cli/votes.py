"""The label command: bring your own votes, get the private aggregation only."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from collegium.accounting.renyi import DEFAULT_ORDERS, SEED_ORDERS
from collegium.budgets import Budget
from collegium.cli.account import (
    AggregatorName,
    Gamma,
    Method,
    Rule,
    Sigma,
    SigmaThreshold,
    Threshold,
    aggregator_options,
)
from collegium.cli.console import STOPPED, out, plan_sentence, plan_table, print_json, privacy_table
from collegium.datasets import read_any, sha256_of
from collegium.errors import InputError
from collegium.pate import default_model, refuse_unaffordable
from collegium.personalisation import Upsampling, as_personalisation
from collegium.personalisation.base import finish_plan
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan, separate_electorate
from collegium.students.supervised import RefittedStudent
from collegium.study.folder import StudyFolder, versions
from collegium.study.job import label_durably, write_release
from collegium.voting.aggregators import InteractiveGNMax
from collegium.voting.noise import SecureNoise, SeededNoise
from collegium.voting.votes import VoteTable

ADJACENCY = (
    "all records of one owner are added, removed or replaced, provided that each owner's records were "
    "seen by that owner's teachers only"
)


def label(
    votes: Annotated[
        Path,
        typer.Option(
            help="Votes (.npy or .csv without header): one row per query; one column per teacher "
            "(class numbers), or one per class (counts).",
            show_default=False,
        ),
    ],
    budgets: Annotated[
        Path,
        typer.Option(
            help="CSV with a header: `epsilon`, optionally `delta` and `group`. One row per teacher, or "
            "one row for all.",
            show_default=False,
        ),
    ],
    out_folder: Annotated[
        Path, typer.Option("--out", help="Folder for vault/ and release/.", show_default=False)
    ],
    votes_are: Annotated[
        str, typer.Option(help="predictions, counts, or auto where there is no doubt.")
    ] = "auto",
    classes: Annotated[
        int | None, typer.Option(help="Number of classes. Needed for predictions.")
    ] = None,
    personalisation: Method = "weighting",
    rule: Rule = "exact",
    aggregator: AggregatorName = "confident",
    sigma: Sigma = None,
    sigma_threshold: SigmaThreshold = None,
    threshold: Threshold = None,
    gamma: Gamma = None,
    features: Annotated[
        Path | None,
        typer.Option(help="interactive: features of the queries (.npy or .csv), for the student."),
    ] = None,
    guarantee: Annotated[str, typer.Option(help="worst-case or data-dependent.")] = "worst-case",
    conversion: Annotated[
        str, typer.Option(help="data-dependent: canonne or mironov.")
    ] = "canonne",
    orders: Annotated[str, typer.Option(help="data-dependent: wide or seeds.")] = "wide",
    max_labels: Annotated[
        int | None, typer.Option(help="Stop after so many labels.", min=1)
    ] = None,
    max_queries: Annotated[
        int | None, typer.Option(help="Stop after so many queries.", min=1)
    ] = None,
    shuffle_seed: Annotated[
        int, typer.Option(help="Public randomness: order of queries, participation.")
    ] = 0,
    noise_seed: Annotated[
        int | None, typer.Option(help="Seeded noise, for experiments: NOT PRIVATE.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Aggregate votes of an ensemble of your own: any framework's predictions, only the privacy.

    Groups are taken from the budgets' `group` column, else teachers with equal budgets are one group.
    With upsampling, give one row per group: `group`, `epsilon`, `owners`, and `teachers_per_owner`.

    Example: collegium label --votes votes.npy --budgets budgets.csv --classes 10 --out labels/
    """
    ballots = read_budgets(budgets)
    table = read_votes(votes, votes_are, classes, ballots)
    plan, electorate = _electorate(ballots, table, personalisation, rule, shuffle_seed)
    mechanism = aggregator_options(
        aggregator,
        plan.n_nominal,
        sigma=sigma,
        sigma_threshold=sigma_threshold,
        threshold=threshold,
        gamma=gamma,
    )
    refuse_unaffordable(mechanism, plan, guarantee, shuffle_seed)
    if orders not in ("wide", "seeds"):
        raise InputError(f"--orders must be wide or seeds, got {orders!r}")
    student = None
    if isinstance(mechanism, InteractiveGNMax):
        student = RefittedStudent(default_model(), _features(features, table), table.n_classes)
    folder = StudyFolder(out_folder)
    settings: dict[str, Any] = {
        "votes_are": "predictions" if table.has_teachers else "counts",
        "classes": table.n_classes,
        "personalisation": plan.personalisation,
        "rule": plan.rule,
        "aggregator": {"name": mechanism.name, **vars(mechanism)},
        "guarantee": guarantee,
        "conversion": conversion,
        "orders": orders,
        "max_labels": max_labels,
        "max_queries": max_queries,
        "shuffle_seed": shuffle_seed,
        "noise": "secure" if noise_seed is None else f"seeded with {noise_seed}",
    }
    inputs = {"vote": sha256_of(votes), "budget": sha256_of(budgets)}
    if student is not None and features is not None:
        inputs["feature"] = sha256_of(features)
    order = np.random.default_rng([shuffle_seed, 3]).permutation(table.n_queries)[:max_queries]
    folder.open()
    with folder.locked():
        folder.claim(json.loads(json.dumps(settings)), inputs)
        labels, privacy = label_durably(
            folder,
            table,
            electorate,
            mechanism,
            order,
            guarantee=guarantee,
            orders=SEED_ORDERS if orders == "seeds" else DEFAULT_ORDERS,
            conversion=conversion,
            noise=SecureNoise() if noise_seed is None else SeededNoise(noise_seed),
            max_labels=max_labels,
            owners={name: group.owners for name, group in plan.groups.items()},
            adjacency=ADJACENCY,
            student=student,
        )
        write_release(
            folder,
            labels,
            privacy,
            np.arange(table.n_classes),
            np.arange(table.n_queries),
            {"settings": settings, "versions": versions()},
        )
    if as_json:
        print_json(
            {
                **privacy.to_dict(),
                "queries_asked": labels.n_asked,
                "labels_released": len(labels.labels),
                "stopped_by": labels.stop_reason,
                "labels": str(folder.release / "labels.csv"),
            }
        )
        return
    if not privacy.noise_is_private:
        out.print("NOT PRIVATE: the noise was drawn from a seed.", style="bold red")
    out.print(plan_table(plan))
    out.print(plan_sentence(plan))
    out.print(privacy_table(privacy))
    out.print(
        f"{len(labels.labels):,} labels released after {labels.n_asked:,} queries; "
        f"{STOPPED[labels.stop_reason]}."
    )
    out.print(f"Published: {folder.release}", soft_wrap=True)


@dataclass(frozen=True, eq=False)
class TeacherBudgets:
    """Budgets of teachers, from a file.

    Attributes
    ----------
    groups : dict of str to Budget
        The groups by name.
    group_of_teacher : ndarray of str, shape (n_teachers,), or None
        Group of each teacher; None if one row stands for all, or rows are groups.
    owners : dict of str to int
        Owners of each group, where the file tells (teachers otherwise).
    duplicates : dict of str to int or None
        Teachers that saw each owner of a group, when upsampling.
    """

    groups: dict[str, Budget]
    group_of_teacher: NDArray[Any] | None
    owners: dict[str, int]
    duplicates: dict[str, int] | None


def read_budgets(path: Path) -> TeacherBudgets:
    """Read a table of budgets.

    Raises
    ------
    InputError
        If a column is missing or unknown, or a value is not allowed.
    """
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
    deltas = table["delta"] if "delta" in table.columns else pd.Series(1e-5, index=table.index)
    pairs = [Budget(e, d) for e, d in zip(table["epsilon"], deltas, strict=True)]
    if "group" in table.columns:
        names = [str(name).strip() for name in table["group"]]
        if table["group"].isna().any() or "" in names:
            raise InputError(f"{path}: a cell of column 'group' is empty: name each row's group")
    else:
        names = [f"ε={pair.epsilon:g}" for pair in pairs]
        if len(set(deltas)) > 1:
            names = [f"ε={pair.epsilon:g}, δ={pair.delta:g}" for pair in pairs]
    groups: dict[str, Budget] = {}
    for row, (name, pair) in enumerate(zip(names, pairs, strict=True)):
        if groups.setdefault(name, pair) != pair:
            raise InputError(
                f"{path}: group {name!r} has two budgets (second in row {row}, counted from 0): give one"
            )
    duplicates = None
    if "teachers_per_owner" in table.columns:
        if len(groups) != len(table):
            raise InputError(f"{path}: with teachers_per_owner give one row per group")
        duplicates = dict(zip(names, _counts(table, "teachers_per_owner", path), strict=True))
    owners = dict.fromkeys(groups, 0)
    counted = _counts(table, "owners", path) if "owners" in table.columns else [1] * len(table)
    for name, count in zip(names, counted, strict=True):
        owners[name] += count
    per_teacher = len(table) > 1 and duplicates is None
    return TeacherBudgets(
        groups, np.asarray(names, dtype=object) if per_teacher else None, owners, duplicates
    )


def _by_teacher(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Put rows into the order of the votes' columns: budgets are tied by number, not by place."""
    numbers = pd.to_numeric(table["teacher"], errors="coerce")
    if sorted(numbers.tolist()) != list(range(len(table))):
        raise InputError(
            f"{path}: column 'teacher' must hold each number from 0 to {len(table) - 1} once: it says which "
            "column of the votes a row is about (counted from 0)"
        )
    return table.iloc[np.argsort(numbers.to_numpy())].reset_index(drop=True)


def _counts(table: pd.DataFrame, column: str, path: Path) -> list[int]:
    values = pd.to_numeric(table[column], errors="coerce")
    if values.isna().any() or (values < 1).any() or (values != values.round()).any():
        raise InputError(f"{path}: column {column!r} must hold whole numbers of at least 1")
    return [int(value) for value in values]


def read_votes(
    path: Path, votes_are: str, classes: int | None, budgets: TeacherBudgets
) -> VoteTable:
    """Read votes as predictions or counts; guess only where there is no doubt.

    Raises
    ------
    InputError
        If it is not clear what the columns are, or counts come with several groups.
    """
    if votes_are not in ("auto", "predictions", "counts"):
        raise InputError(f"--votes-are must be predictions, counts or auto, got {votes_are!r}")
    raw = _matrix(path)
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


def _matrix(path: Path) -> NDArray[Any]:
    if path.suffix == ".csv" or path.name.endswith(".csv.gz"):
        if not path.exists():
            raise InputError(f"there is no file {path}: give .npy or .csv")
        try:
            table = pd.read_csv(path, header=None)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read as CSV ({error})") from None
        try:
            return np.asarray(table.to_numpy(dtype=np.float64))
        except ValueError:
            raise InputError(
                f"{path} must hold numbers only, without a header: one row per query"
            ) from None
    loaded = read_any(path)
    array = loaded.to_numpy() if isinstance(loaded, pd.DataFrame) else loaded
    if array.ndim != 2:
        raise InputError(
            f"{path} must be a table (queries × teachers or classes), got {array.shape}"
        )
    return np.asarray(array)


def _electorate(
    budgets: TeacherBudgets, table: VoteTable, method: str, rule: str, seed: int
) -> tuple[Plan, Electorate]:
    personalisation = as_personalisation(method, rule)
    if budgets.duplicates is not None or method == "upsampling":
        return _upsampled(budgets, table, method)
    group_of_teacher = budgets.group_of_teacher
    if group_of_teacher is None:
        group_of_teacher = np.full(table.n_teachers, next(iter(budgets.groups)), dtype=object)
        owners = {name: max(n, table.n_teachers) for name, n in budgets.owners.items()}
    elif len(group_of_teacher) != table.n_teachers:
        raise InputError(
            f"there are votes of {table.n_teachers} teachers, but budgets of {len(group_of_teacher)}: give "
            "one row per teacher, in the order of the columns"
        )
    else:
        owners = budgets.owners
    teachers_of = {
        name: np.flatnonzero(group_of_teacher == name).astype(np.intp) for name in budgets.groups
    }
    sizes = {name: len(teachers) for name, teachers in teachers_of.items()}
    plan = personalisation.plan(budgets.groups, sizes, table.n_teachers)
    groups = {name: replace(group, owners=owners[name]) for name, group in plan.groups.items()}
    plan = replace(plan, groups=groups)
    if plan.mixed:
        return plan, plan.electorate(seed)
    return plan, separate_electorate(plan, teachers_of, seed)


def _upsampled(budgets: TeacherBudgets, table: VoteTable, method: str) -> tuple[Plan, Electorate]:
    """Take the duplicates as they were made: teachers are shared by all groups."""
    if method != "upsampling" or budgets.duplicates is None:
        raise InputError(
            "upsampling needs a column teachers_per_owner (one row per group) in the budgets, and only "
            "upsampling does: it says how many teachers saw each owner's records"
        )
    people = sum(budgets.owners.values())
    copies = sum(budgets.owners[name] * d for name, d in budgets.duplicates.items())
    plan = finish_plan(
        Upsampling(),
        n_nominal=max(1, round(table.n_teachers * people / copies)),
        n_teachers=table.n_teachers,
        mixed=True,
        used=budgets.groups,
        sizes=budgets.owners,
        teachers=dict.fromkeys(budgets.groups, table.n_teachers),
        duplicates=budgets.duplicates,
    )
    return plan, plan.electorate(0)


def _features(path: Path | None, table: VoteTable) -> NDArray[Any]:
    if path is None:
        raise InputError("aggregator 'interactive' needs --features: its student learns from them")
    features = _matrix(path)
    if len(features) != table.n_queries:
        raise InputError(
            f"--features has {len(features)} rows, but there are {table.n_queries} queries: give one each"
        )
    return features
