"""The label command: bring your own votes, get the private aggregation only."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.account import (
    AggregatorName,
    Gamma,
    Method,
    PriceName,
    Rule,
    Sigma,
    SigmaThreshold,
    Threshold,
)
from collegium.cli.console import (
    hush,
    last_line,
    out,
    plan_sentence,
    plan_table,
    print_cautions,
    print_json,
    print_statement,
    privacy_table,
    warn_of,
)
from collegium.cli.options import (
    GUARANTEE,
    HOW_VOTES_COUNT,
    ON_LEDGER,
    PATH_OPTION,
    AllowNewPeople,
    Key,
    NoiseSeed,
    Quiet,
)
from collegium.cli.outputs import refuse_among_a_studys_files
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.budgets import Budgets
    from collegium.cli.vote_files import TeacherBudgets
    from collegium.ledger.ledger import Balance
    from collegium.pate.voting.aggregators import Aggregator
    from collegium.pate.voting.price_choice import ChosenPrice
    from collegium.personalisation.electorate import Electorate
    from collegium.personalisation.plan import Plan

_MOST_CLASSES = 10_000  # as in data/tables.py, which is slow to import


def _refuse_one_for_two(inputs: dict[str, str]) -> None:
    """Refuse one file for two things: a student that learns from the votes publishes them."""
    if len(set(inputs.values())) < len(inputs):
        raise InputError(
            f"one file was given twice among {', '.join(inputs)}: votes are private, features public; give "
            "each its own file"
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
        Path,
        typer.Option(
            "--out", help="Folder for vault/ and release/.", show_default=False, **PATH_OPTION
        ),
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
        float | None,
        typer.Option(
            help="interactive: how sure a student must be.", rich_help_panel=HOW_VOTES_COUNT
        ),
    ] = None,
    refit_every: Annotated[
        int | None,
        typer.Option(
            help="interactive: labels between two fits of the student.",
            rich_help_panel=HOW_VOTES_COUNT,
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="interactive: features of the queries (.npy or .csv), for the student.",
            rich_help_panel=HOW_VOTES_COUNT,
        ),
    ] = None,
    guarantee: Annotated[
        str, typer.Option(help="worst-case or data-dependent.", rich_help_panel=GUARANTEE)
    ] = "worst-case",
    conversion: Annotated[
        str, typer.Option(help="data-dependent: canonne or mironov.", rich_help_panel=GUARANTEE)
    ] = "canonne",
    orders: Annotated[
        str, typer.Option(help="data-dependent: wide or seeds.", rich_help_panel=GUARANTEE)
    ] = "wide",
    price: PriceName = None,
    max_labels: Annotated[
        int | None,
        typer.Option(help="Stop after so many labels.", min=1, rich_help_panel=GUARANTEE),
    ] = None,
    max_queries: Annotated[
        int | None,
        typer.Option(help="Stop after so many queries.", min=1, rich_help_panel=GUARANTEE),
    ] = None,
    release: Annotated[
        str,
        typer.Option(
            help="labels, or histogram: the noisy counts of all classes and the noisy checks as well "
            "(worst-case; lnmax, gnmax, confident, interactive); labels alone may cost less.",
            rich_help_panel=GUARANTEE,
        ),
    ] = "labels",
    people: Annotated[
        Path | None,
        typer.Option(
            help="Whose records the teachers learnt from: a table with columns owner and group. A ledger "
            "then keeps one account per person over all releases.",
            rich_help_panel=ON_LEDGER,
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="A file, postgresql://USER@HOST/DATABASE, or none. Default: COLLEGIUM_LEDGER, else "
            "people.ledger beside the table of people.",
            rich_help_panel=ON_LEDGER,
        ),
    ] = None,
    key: Key = None,
    allow_new_people: AllowNewPeople = False,
    shuffle_seed: Annotated[
        int,
        typer.Option(
            help="Public randomness: order of queries, participation.",
            min=0,
            rich_help_panel=GUARANTEE,
        ),
    ] = 0,
    noise_seed: NoiseSeed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Quiet = False,
) -> None:
    """Aggregate votes of an ensemble of your own: any framework's predictions, only the privacy.

    Groups are taken from the budgets' `group` column, else teachers with equal budgets are one group.
    With upsampling, give one row per group: `group`, `epsilon`, `owners`, and `teachers_per_owner`. Without
    `owners`, what is protected is one teacher's data, not a person's.

    Example: collegium label --votes votes.npy --budgets budgets.csv --classes 10 --out labels/
    """
    import numpy as np

    from collegium.accounting.neighbours import OWNER, TEACHER, Arrangement
    from collegium.cli.progress import NoteObserver, watching
    from collegium.cli.vote_budgets import electorate_of, refuse_fewer_people
    from collegium.cli.vote_files import read_budgets, read_features, read_people, read_votes
    from collegium.data.datasets import sha256_of
    from collegium.distillation.supervised import RefittedStudent
    from collegium.ledger.allowance import Allowance
    from collegium.ledger.places import find_place
    from collegium.noise.sources import noise_from
    from collegium.pate.classifier import default_model
    from collegium.pate.ledgered import NO_PROMISE, LedgeredRun, require_mu, takes_the_whole
    from collegium.pate.pipeline import release as release_votes
    from collegium.pate.queries.order import random_order
    from collegium.pate.settings import Account, Queries
    from collegium.pate.voting.affordable import refuse_unaffordable
    from collegium.pate.voting.aggregators import aggregator_from
    from collegium.pate.voting.price_choice import choose_price
    from collegium.pate.voting.release import HISTOGRAM, check_release
    from collegium.study.folder import HISTOGRAMS_FILE, StudyFolder, versions
    from collegium.study.on_ledger import begin
    from collegium.study.published import summary, write_release
    from collegium.study.stop_reasons import stopped
    from collegium.study.votes_checkpoint import FolderMemory
    from collegium.study.votes_terms import kept_price

    hush(quiet)
    refuse_among_a_studys_files(out_folder)
    ballots = read_budgets(budgets)
    granted: Budgets | None = None
    if people is not None:
        granted, ballots = read_people(people, ballots)
    chosen = Account(guarantee, conversion, orders, price=price)
    table = read_votes(votes, votes_are, classes, ballots)
    if granted is not None:
        refuse_fewer_people(ballots, table)
    limits = [limit for limit in (max_labels, max_queries, table.n_queries) if limit is not None]

    def planned(
        ballots: TeacherBudgets, price: str | None
    ) -> tuple[Plan, Electorate, Aggregator, ChosenPrice]:
        plan, electorate = electorate_of(ballots, table, personalisation, rule, shuffle_seed)
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
        charged = choose_price(price, release, mechanism, electorate, guarantee, min(limits))
        refuse_unaffordable(mechanism, plan, guarantee, shuffle_seed, charged.name)
        return plan, electorate, mechanism, charged

    plan, electorate, mechanism, charged = planned(ballots, price)
    unit = OWNER if ballots.knows_owners else TEACHER
    warn_of(plan.large_deltas(unit))
    student = None
    if mechanism.consults_student:
        student = RefittedStudent(default_model(), read_features(features, table), table.n_classes)
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
        "release": release,
        **({"price": price} if price is not None else {}),
    }
    inputs = {"vote": sha256_of(votes), "budget": sha256_of(budgets)}
    if student is not None and features is not None:
        inputs["feature"] = sha256_of(features)
    if people is not None:
        inputs["people"] = sha256_of(people)
    _refuse_one_for_two(inputs)

    def who() -> Budgets:
        assert granted is not None
        return granted

    def decide(left: Balance, share: float) -> Allowance:
        if left.untouched.all() and takes_the_whole(mechanism, charged.name):
            return Allowance.everything(who())
        require_mu(mechanism, price)
        return Allowance.by_level(who(), left, share)

    settings = json.loads(json.dumps(settings))
    reason = ""
    if granted is None:
        reason = "nobody is named whose records the teachers learnt from; --people does"
    if guarantee != "worst-case":
        reason = NO_PROMISE
    if noise_seed is not None:
        reason = "its noise is seeded"
    remembered = begin(
        find_place(ledger, key, people or votes),
        reason,
        who,
        decide,
        folder if folder.holds(settings, inputs) else None,
        NoteObserver(),
        spend=LedgeredRun,
        allow_new_people=allow_new_people,
    )
    what_is_left = remembered is not None and not remembered.spending.allowance.whole
    if remembered is not None and what_is_left:
        ballots = replace(ballots, groups=dict(remembered.spending.allowance.groups))
        plan, electorate, mechanism, charged = planned(ballots, HISTOGRAM)
    arrangement = Arrangement(
        unit=unit,
        assignment="elsewhere",
        on_ledger=remembered is not None,
        what_is_left=what_is_left,
    )
    order = random_order(shuffle_seed, table.n_queries)[:max_queries]
    folder.open()
    with folder.locked(), watching(not as_json) as observer:
        folder.claim(settings, inputs)
        if remembered is not None:
            remembered.keep(folder)
            costs = remembered.spending.at_most(
                mechanism, electorate, arrangement.neighbours, kept_price(folder) or charged.name
            )
            remembered.reserve(folder, "labels", costs, arrangement)
        observer.stage("labels", len(order))
        released = release_votes(
            table,
            electorate,
            mechanism,
            order,
            account=chosen,
            queries=Queries(max_labels=max_labels, release=release),
            price=charged.name,
            noise=noise_from(noise_seed),
            owners={name: group.owners for name, group in plan.groups.items()},
            arrangement=arrangement,
            student=student,
            memory=FolderMemory(folder),
            observer=observer,
        )
        if remembered is not None:
            remembered.settle(folder, released, arrangement.neighbours)
        write_release(
            folder,
            released,
            np.arange(table.n_classes),
            np.arange(table.n_queries),
            {"settings": settings, "versions": versions()},
        )
    labels, privacy, histograms = released.labels, released.privacy, released.histograms
    if as_json:
        print_json(
            {
                **summary(released),
                **({} if remembered is None else {"ledger": str(remembered.place)}),
                "labels": str(folder.release / "labels.csv"),
                **(
                    {"histograms": str(folder.release / HISTOGRAMS_FILE)}
                    if histograms is not None
                    else {}
                ),
            }
        )
        return
    print_cautions(privacy)
    out.print(plan_table(plan, privacy.unit))
    out.print(plan_sentence(plan))
    out.print(privacy_table(privacy))
    print_statement(privacy.sentences())
    if charged.why and charged.name == privacy.price:
        out.print(charged.why, soft_wrap=True)
    said = f"{len(labels.labels):,} labels released after {labels.n_asked:,} queries"
    out.print(f"{said}; {stopped(labels.stop_reason, privacy.unit)}.")
    if histograms is not None:
        out.print(
            f"Noisy counts of {int(histograms.answered.sum()):,} answered queries, and all noisy checks: "
            f"{HISTOGRAMS_FILE}.",
            soft_wrap=True,
        )
    if remembered is not None:
        out.print(remembered.in_words, soft_wrap=True)
    out.print(f"Published: {folder.release}", soft_wrap=True)
    last_line(privacy, said, f"published: {folder.release}")
