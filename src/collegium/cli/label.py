"""The label command: bring your own votes, get the private aggregation only."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.renyi import DEFAULT_ORDERS, SEED_ORDERS
from collegium.cli.account import (
    AggregatorName,
    Gamma,
    Method,
    Rule,
    Sigma,
    SigmaThreshold,
    Threshold,
)
from collegium.cli.console import STOPPED, out, plan_sentence, plan_table, print_json, privacy_table
from collegium.cli.vote_files import TeacherBudgets, read_budgets, read_matrix, read_votes
from collegium.data.datasets import sha256_of
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise, SeededNoise
from collegium.pate.classifier import default_model
from collegium.pate.students.supervised import RefittedStudent
from collegium.pate.voting.affordable import refuse_unaffordable
from collegium.pate.voting.aggregators import aggregator_from
from collegium.pate.voting.histograms import released_histograms
from collegium.pate.voting.release import HISTOGRAM, LABELS, check_release
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation import Upsampling, as_personalisation
from collegium.personalisation.base import finish_plan
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan, separate_electorate
from collegium.study.folder import HISTOGRAMS_FILE, StudyFolder, versions
from collegium.study.job import label_durably, write_release

_MOST_CLASSES = 100_000
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
        int | None,
        typer.Option(help="Number of classes. Needed for predictions.", max=_MOST_CLASSES),
    ] = None,
    personalisation: Method = "weighting",
    rule: Rule = "exact",
    aggregator: AggregatorName = "confident",
    sigma: Sigma = None,
    sigma_threshold: SigmaThreshold = None,
    threshold: Threshold = None,
    gamma: Gamma = None,
    confidence: Annotated[
        float | None, typer.Option(help="interactive: how sure a student must be.")
    ] = None,
    refit_every: Annotated[
        int | None, typer.Option(help="interactive: labels between two fits of the student.")
    ] = None,
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
    release: Annotated[
        str,
        typer.Option(
            help="labels, or histogram: the noisy counts of all classes and the noisy checks as well, at the "
            "same price (worst-case; lnmax, gnmax, confident, interactive)."
        ),
    ] = LABELS,
    shuffle_seed: Annotated[
        int, typer.Option(help="Public randomness: order of queries, participation.", min=0)
    ] = 0,
    noise_seed: Annotated[
        int | None, typer.Option(help="Seeded noise, for experiments: NOT PRIVATE.", min=0)
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
    mechanism = aggregator_from(
        aggregator,
        sigma=sigma,
        sigma_threshold=sigma_threshold,
        threshold=threshold,
        gamma=gamma,
        confidence=confidence,
        refit_every=refit_every,
    ).resolved(plan.n_nominal)
    check_release(release, mechanism, guarantee)
    refuse_unaffordable(mechanism, plan, guarantee, shuffle_seed)
    if orders not in ("wide", "seeds"):
        raise InputError(f"--orders must be wide or seeds, got {orders!r}")
    student = None
    if mechanism.consults_student:
        student = RefittedStudent(default_model(), _features(features, table), table.n_classes)
    folder = StudyFolder(out_folder)
    settings: dict[str, Any] = {
        "votes_are": "predictions" if table.has_teachers else "counts",
        "classes": table.n_classes,
        "personalisation": plan.personalisation,
        "rule": plan.rule,
        "aggregator": mechanism.settings(),
        "guarantee": guarantee,
        "conversion": conversion,
        "orders": orders,
        "max_labels": max_labels,
        "max_queries": max_queries,
        "shuffle_seed": shuffle_seed,
        "noise": "secure" if noise_seed is None else f"seeded with {noise_seed}",
        # Left out for labels, so that folders begun before there was a choice go on.
        **({"release": release} if release != LABELS else {}),
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
            neighbours=Neighbours.ANY_CHANGE,
            adjacency=ADJACENCY,
            student=student,
            release=release,
        )
        histograms = None
        if release == HISTOGRAM:
            histograms = released_histograms(labels, electorate, mechanism, table.n_classes)
        write_release(
            folder,
            labels,
            privacy,
            np.arange(table.n_classes),
            np.arange(table.n_queries),
            {"settings": settings, "versions": versions()},
            histograms,
        )
    if as_json:
        print_json(
            {
                **privacy.to_dict(),
                "queries_asked": labels.n_asked,
                "labels_released": len(labels.labels),
                "stopped_by": labels.stop_reason,
                "labels": str(folder.release / "labels.csv"),
                **(
                    {"histograms": str(folder.release / HISTOGRAMS_FILE)}
                    if histograms is not None
                    else {}
                ),
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
    if histograms is not None:
        out.print(
            f"Noisy counts of {int(histograms.answered.sum()):,} answered queries, and all noisy checks: "
            f"{HISTOGRAMS_FILE}.",
            soft_wrap=True,
        )
    out.print(f"Published: {folder.release}", soft_wrap=True)


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
    features = read_matrix(path)
    if len(features) != table.n_queries:
        raise InputError(
            f"--features has {len(features)} rows, but there are {table.n_queries} queries: give one each"
        )
    return features
