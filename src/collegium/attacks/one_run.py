"""Auditing a whole study by running it once, with canaries: Steinke, Nasr & Jagielski 2023.

Canaries are invented owners of each budget group, with a record whose label is wrong; a fair coin of
its own decides for each whether it is in. The study then runs as it would (partition, teachers,
votes, aggregation, account), asking about public copies of the canaries' records. From what is released
the auditor guesses the coins; the number of right guesses bounds ε from below.

**Nothing of such a run may be published**: the labels were bought with real people's budgets, and the
teachers have learnt wrong records.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.statement import floor_decimals
from collegium.attacks.bounds import Guesses, one_run_epsilon
from collegium.attacks.canaries import (
    Canaries,
    affordable_canaries,
    contrary_labels,
    draw_canaries,
    expected_changes,
    guess,
    insert_canaries,
    membership_scores,
)
from collegium.attacks.finding import Finding
from collegium.attacks.game import OBSERVATIONS, pays_for_noisy_counts
from collegium.attacks.noise_capture import ListeningNoise
from collegium.budgets import Budget
from collegium.checks import check_choice, check_number, check_whole
from collegium.data.tables import one_hot
from collegium.distillation.supervised import RefittedStudent
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise
from collegium.noise.sums import NoisySum
from collegium.pate.memory import Memory
from collegium.pate.pipeline import PateRun
from collegium.pate.voting.release import HISTOGRAM

Floats = NDArray[np.float64]
MOST_CANARIES = 2_000


@dataclass(frozen=True, kw_only=True)
class OneRunFinding(Finding):
    """What one run with canaries showed about one group.

    ``guesses``: canaries, guesses made, right guesses.
    ``ceiling_epsilon``: the lower bound if every guess had been right: no leak above it can be
        seen.
    """

    guesses: Guesses
    ceiling_epsilon: float

    legend: ClassVar[str] = "ceiling: what could be shown if all guesses were right"

    def cells(self) -> dict[str, str]:
        """Write the ceiling, and count guesses."""
        return {
            "ceiling": floor_decimals(self.ceiling_epsilon, 3),
            "guesses": str(self.guesses.guessed),
            "right": str(self.guesses.correct),
        }

    def numbers(self) -> dict[str, Any]:
        """The same."""
        return {
            "ceiling_epsilon": self.ceiling_epsilon,
            "canaries": self.guesses.canaries,
            "guessed": self.guesses.guessed,
            "correct": self.guesses.correct,
        }


@dataclass(frozen=True, eq=False)
class OneRunSettings:
    """How a study is audited.

    ``canaries``: canaries, dealt to the groups in turn. Default: as many as the budgets pay answers
        for, so that none is spent on a canary that is never asked about.
    ``copies``: records of each canary, all alike, so that its teacher learns them.
    ``guess_share``: share of each group's canaries about which a guess is made, the surest ones: 1
        sees a complete leak best, a smaller share a partial one.
    ``confidence``: probability that *all* lower bounds hold.
    ``observe``: whether scores are made from noisy counts (where the account pays for them) or from
        what is released: labels, or, in a study that releases histograms, these very counts.
    """

    canaries: int | None = None
    copies: int = 8
    guess_share: float = 1.0
    confidence: float = 0.95
    observe: str = "noisy"

    def __post_init__(self) -> None:
        for name in ("canaries", "copies"):
            value = getattr(self, name)
            if value is not None:
                check_whole(name, value)
        check_number("guess_share", self.guess_share, above=0, most=1)
        check_number("confidence", self.confidence, above=0, below=1)
        check_choice("observe", self.observe, OBSERVATIONS)


def audit_run(
    run: PateRun,
    settings: OneRunSettings | None = None,
    *,
    noise: NoisySum | None = None,
    generator: np.random.Generator | None = None,
    stage: Callable[[str], None] = lambda name: None,
) -> list[OneRunFinding]:
    """Run PATE once with canaries, in memory, and bound what it leaks about each group.

    ``run``: its plan, teachers, aggregator, noise and budgets are used as they are; its queries are
        the canaries' records instead of the public ones.
    ``noise``: instead of cryptographic noise, to test the audit.
    ``generator``: draws the canaries and their coins. Default: from the operating system.
    ``stage``: told the name of each stage that begins.
    Returns: one for each group.

    Notes
    -----
    For each group the bound is conditional on everything about the other groups' canaries: the run
    is (ε_g, δ_g)-DP for each canary of group g, added or removed, which is what the theorem needs.

    The auditor may know everything but the coins: the votes of teachers without any canary are
    computed beforehand, and who would see which canary is public.
    """
    chosen = settings or OneRunSettings()
    _refuse(run)
    run = copy.copy(run)
    run.memory = (
        Memory()
    )  # nothing of an audit goes into a study, and no kept votes come out of one
    plan, aggregator, electorate = run.plan, run.aggregator, run.electorate
    queries, records = run.recipe.queries, run.records
    noisy = chosen.observe == "noisy" or queries.release == HISTOGRAM
    noisy = noisy and pays_for_noisy_counts(aggregator)
    # Who sees noisy counts is held against an account of them, whatever the study's charges.
    price = HISTOGRAM if noisy else run.price.name
    random = generator or np.random.default_rng()
    most = min(records.X_public.shape[0], queries.max_queries or MOST_CANARIES)
    number = chosen.canaries or affordable_canaries(aggregator, electorate, most, price)
    canaries = draw_canaries(records, plan, number, random)
    order = random.permutation(number)[: queries.max_queries]
    X_asked = run.teachers_view.of(canaries.records)
    stage("teachers without canaries")
    canaries, changes, counts = _expectations(run, canaries, X_asked, order, chosen.copies)
    stage("teachers with canaries")
    votes = run.votes_on(
        X_asked, insert_canaries(records, canaries, canaries.included, chosen.copies)
    )
    stage("labels")
    ear = ListeningNoise(noise or SecureNoise())
    student = None
    if aggregator.consults_student:
        X_seen = run.student_view.of(canaries.records)
        student = RefittedStudent(run.recipe.student, X_seen, votes.n_classes)
    released = run.voting.at(price).release(votes, order, ear, student, observer=run.observer)
    labels = released.labels
    if released.histograms is not None:
        observed = np.full(counts.shape, np.nan)
        observed[released.histograms.queries] = released.histograms.counts
        observed -= counts
    elif noisy:
        observed = ear.heard(votes.n_queries, votes.n_classes)[1] - counts
    else:
        observed = np.full(counts.shape, np.nan)
        observed[labels.queries] = one_hot(labels.labels, votes.n_classes)
    scores = membership_scores(changes, observed)
    spent = {row.group: row.epsilon_spent for row in released.privacy.groups}
    return [
        _finding(
            plan.groups[name].budget,
            name,
            guess(
                scores, canaries, canaries.groups == code, chosen.guess_share, 0.5 if noisy else 0.0
            ),
            float(spent[name]),
            (1 - chosen.confidence) / len(plan.groups),
        )
        for code, name in enumerate(records.budgets.group_names)
        if name in plan.groups
    ]


def _finding(
    budget: Budget, group: str, guesses: Guesses, claim: float, error: float
) -> OneRunFinding:
    best = replace(guesses, correct=guesses.guessed)
    lower, ceiling = (one_run_epsilon(made, budget.delta, error) for made in (guesses, best))
    return OneRunFinding(
        group=group,
        budget=budget,
        lower_epsilon=lower,
        claim_epsilon=claim,
        guesses=guesses,
        ceiling_epsilon=ceiling,
    )


def _refuse(run: PateRun) -> None:
    guarantee, assignment = run.recipe.account.guarantee, run.recipe.assignment
    if guarantee != "worst-case":
        raise InputError(
            "only a worst-case study claims something about neighbouring data sets: a data-dependent "
            "one cannot be audited; set privacy.guarantee = 'worst-case'"
        )
    if assignment != "hash":
        raise InputError(
            f"the audit adds and removes owners, which teachers.assignment = {assignment!r} does not "
            "protect: set teachers.assignment = 'hash'"
        )


def _expectations(
    run: PateRun, canaries: Canaries, X_asked: Any, order: NDArray[np.intp], copies: int
) -> tuple[Canaries, Floats, Floats]:
    """Choose labels; tell how each canary would move its query's counts, and these without canaries."""
    everybody = insert_canaries(run.records, canaries, np.ones(canaries.number, dtype=bool), copies)
    recipe = run.recipe
    assignment = run.plan.assign(everybody.budgets, recipe.key, recipe.assignment)
    teachers = assignment.owner_teachers[-canaries.number :]
    sensitive_votes = run.votes_on(X_asked, run.records)
    weights = np.zeros((canaries.number, run.electorate.n_teachers))
    for position, query in enumerate(order.tolist()):
        weights[query] = run.electorate.ballot(position).weights
    counts = sensitive_votes.counts(np.arange(canaries.number), weights)
    table, n_classes = sensitive_votes.sensitive_table, sensitive_votes.n_classes
    labels = contrary_labels(canaries, teachers, table, n_classes)
    canaries = replace(canaries, labels=labels)
    return canaries, expected_changes(canaries, teachers, table, weights, n_classes), counts
