"""Auditing a whole study by running it once, with canaries: Steinke, Nasr & Jagielski 2023.

Canaries are invented owners of each budget group, with a record whose label is wrong; a fair coin of
its own decides for each whether it is in. The study then runs as it would (partition, teachers,
votes, aggregation, account), asking about public copies of the canaries' records. From what is released
the auditor guesses the coins; the number of right guesses bounds ε from below.

**Nothing of such a run may be published**: the labels were bought with real people's budgets, and the
teachers have learnt wrong records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from collegium.attacks.game import OBSERVATIONS, pays_for_noisy_counts
from collegium.attacks.listening import ListeningNoise
from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.noise.sources import NoiseSource, SecureNoise
from collegium.pate.catalogue import build_model, build_preprocessing
from collegium.pate.students.supervised import RefittedStudent
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.histograms import released_histograms
from collegium.pate.voting.labelling import LabellingJob
from collegium.pate.voting.pricing import pricing_for
from collegium.pate.voting.release import HISTOGRAM
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.assignment import Assignment
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan
from collegium.study.config import StudyConfig
from collegium.study.records import StudyData
from collegium.study.stages import plan_study

Floats = NDArray[np.float64]
MOST_CANARIES = 2_000


@dataclass(frozen=True)
class OneRunFinding:
    """What one run with canaries showed about one group.

    Attributes
    ----------
    group : str
    budget : Budget
        What each owner of the group granted.
    guesses : Guesses
        Canaries, guesses made, right guesses.
    lower_epsilon : float
        Empirical lower bound at the group's δ.
    claim_epsilon : float
        What the account charged.
    ceiling_epsilon : float
        The lower bound if every guess had been right: no leak above it can be seen.
    """

    group: str
    budget: Budget
    guesses: Guesses
    lower_epsilon: float
    claim_epsilon: float
    ceiling_epsilon: float

    @property
    def holds(self) -> bool:
        """Whether the lower bound is below what is claimed."""
        return self.lower_epsilon <= self.claim_epsilon


@dataclass(frozen=True, eq=False)
class OneRunSettings:
    """How a study is audited.

    Attributes
    ----------
    canaries : int, optional
        Canaries, dealt to the groups in turn. Default: as many as the budgets pay answers for, so that
        none is spent on a canary that is never asked about.
    copies : int
        Records of each canary, all alike, so that its teacher learns them.
    guess_share : float
        Share of each group's canaries about which a guess is made, the surest ones: 1 sees a complete
        leak best, a smaller share a partial one.
    confidence : float
        Probability that *all* lower bounds hold.
    observe : {"noisy", "released"}
        Whether scores are made from noisy counts (where the account pays for them) or from what is
        released: labels, or, in a study that releases histograms, these very counts.
    """

    canaries: int | None = None
    copies: int = 8
    guess_share: float = 1.0
    confidence: float = 0.95
    observe: str = "noisy"

    def __post_init__(self) -> None:
        for name in ("canaries", "copies"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, got {value}")
        for name in ("guess_share", "confidence"):
            value = getattr(self, name)
            if not 0 < value < 1 and (name, value) != ("guess_share", 1):
                raise InputError(f"{name} must lie between 0 and 1, got {value}")
        if self.observe not in OBSERVATIONS:
            raise InputError(f"observe must be {' or '.join(OBSERVATIONS)}, got {self.observe!r}")


def audit_study(
    config: StudyConfig,
    settings: OneRunSettings | None = None,
    *,
    noise: NoiseSource | None = None,
    generator: np.random.Generator | None = None,
    stage: Callable[[str], None] = lambda name: None,
) -> list[OneRunFinding]:
    """Run a study once with canaries, in memory, and bound what it leaks about each group.

    Parameters
    ----------
    config : StudyConfig
        The study. Its plan, teachers, aggregator, noise and budgets are used as they are; its
        queries are the canaries' records instead of the public ones.
    settings : OneRunSettings, optional
    noise : NoiseSource, optional
        Instead of cryptographic noise, to test the audit.
    generator : Generator, optional
        Draws the canaries and their coins. Default: from the operating system.
    stage : callable, optional
        Told the name of each stage that begins.

    Returns
    -------
    list of OneRunFinding
        One for each group.

    Raises
    ------
    InputError
        If the study cannot be audited, or settings are not allowed.

    Notes
    -----
    For each group the bound is conditional on everything about the other groups' canaries: the study
    is (ε_g, δ_g)-DP for each canary of group g, added or removed, which is what the theorem needs.

    The auditor may know everything but the coins: the votes of teachers without any canary are
    computed beforehand, and who would see which canary is public.
    """
    chosen = settings or OneRunSettings()
    _refuse(config)
    plan, aggregator, data = plan_study(config)
    release = config["aggregation.release"]
    noisy = chosen.observe == "noisy" or release == HISTOGRAM
    noisy = noisy and pays_for_noisy_counts(aggregator)
    random = generator or np.random.default_rng()
    electorate = plan.electorate(config["study.seed"])
    most = min(data.X_public.shape[0], config["aggregation.max_queries"] or MOST_CANARIES)
    number = chosen.canaries or affordable_canaries(aggregator, electorate, most)
    canaries = draw_canaries(data, plan, number, random)
    order = random.permutation(number)[: config["aggregation.max_queries"]]
    school = _School(config, plan, canaries, data)
    stage("teachers without canaries")
    canaries, changes, counts = _expectations(school, electorate, data, order, chosen.copies)
    stage("teachers with canaries")
    votes = school.votes(insert_canaries(data, canaries, canaries.included, chosen.copies))
    stage("labels")
    pricing = pricing_for("worst-case", aggregator, electorate)
    ear = ListeningNoise(noise or SecureNoise())
    released = LabellingJob(
        votes,
        electorate,
        aggregator,
        pricing,
        ear,
        order,
        student=_student(config, aggregator, school.X_queries, votes.n_classes),
        max_labels=config["aggregation.max_labels"],
        release=release,
    ).run()
    if release == HISTOGRAM:
        shown = released_histograms(released, electorate, aggregator, votes.n_classes)
        observed = np.full(counts.shape, np.nan)
        observed[shown.queries] = shown.counts
        observed -= counts
    elif noisy:
        observed = ear.heard(votes.n_queries, votes.n_classes)[1] - counts
    else:
        observed = np.full(counts.shape, np.nan)
        observed[released.queries] = np.eye(votes.n_classes)[released.labels]
    scores = membership_scores(changes, observed)
    spent, cohorts = pricing.accountant.epsilon_spent(), np.array(electorate.cohort_groups)
    return [
        _finding(
            plan.groups[name].budget,
            name,
            guess(
                scores, canaries, canaries.groups == code, chosen.guess_share, 0.5 if noisy else 0.0
            ),
            float(spent[cohorts == name].max()),
            (1 - chosen.confidence) / len(plan.groups),
        )
        for code, name in enumerate(data.budgets.group_names)
        if name in plan.groups
    ]


def _finding(
    budget: Budget, group: str, guesses: Guesses, claim: float, error: float
) -> OneRunFinding:
    best = replace(guesses, correct=guesses.guessed)
    lower, ceiling = (one_run_epsilon(made, budget.delta, error) for made in (guesses, best))
    return OneRunFinding(group, budget, guesses, lower, claim, ceiling)


def _refuse(config: StudyConfig) -> None:
    if config["privacy.guarantee"] != "worst-case":
        raise InputError(
            "only a worst-case study claims something about neighbouring data sets: a data-dependent "
            "one cannot be audited; set privacy.guarantee = 'worst-case'"
        )
    if config["teachers.assignment"] != "hash":
        raise InputError(
            "the audit adds and removes owners, which teachers.assignment = 'balanced' does not protect: "
            "set teachers.assignment = 'hash'"
        )


class _School:
    """Trains the study's teachers on given records, and asks them about the canaries'."""

    def __init__(
        self, config: StudyConfig, plan: Plan, canaries: Canaries, data: StudyData
    ) -> None:
        self.canaries, self._config, self._plan = canaries, config, plan
        preprocessing = build_preprocessing(
            config["preprocessing.kind"],
            categorical=config["preprocessing.categorical"],
            components=config["preprocessing.components"],
            random_state=config["study.seed"],
        )
        self._preprocessing = None if preprocessing is None else preprocessing.fit(data.X_public)
        self.X_queries = self._prepared(canaries.records)

    def _prepared(self, X: Any) -> Any:
        return X if self._preprocessing is None else self._preprocessing.transform(X)

    def assign(self, data: StudyData) -> Assignment:
        """Partition the records as the study does."""
        key = str(self._config["study.seed"]).encode()
        return self._plan.assign(data.budgets, key, self._config["teachers.assignment"])

    def votes(self, data: StudyData) -> VoteTable:
        """Train on the records and ask. **Sensitive.**"""
        config = self._config
        model = build_model("teachers.model", config["teachers.model"], config["teachers.params"])
        ensemble = TeacherEnsemble(model, config["study.seed"], config["run.jobs"])
        teachers = ensemble.train(self._prepared(data.X), data.codes, self.assign(data))
        table = ensemble.ask(teachers, self.X_queries)
        return VoteTable.from_predictions(table, len(data.classes), allow_abstention=True)


def _expectations(
    school: _School, electorate: Electorate, data: StudyData, order: NDArray[np.intp], copies: int
) -> tuple[Canaries, Floats, Floats]:
    """Choose labels; tell how each canary would move its query's counts, and these without canaries."""
    canaries = school.canaries
    everybody = insert_canaries(data, canaries, np.ones(canaries.number, dtype=bool), copies)
    teachers = school.assign(everybody).owner_teachers[-canaries.number :]
    sensitive_votes = school.votes(data)
    weights = np.zeros((canaries.number, electorate.n_teachers))
    for position, query in enumerate(order.tolist()):
        weights[query] = electorate.ballot(position).weights
    counts = sensitive_votes.counts(np.arange(canaries.number), weights)
    table, n_classes = sensitive_votes.sensitive_table, sensitive_votes.n_classes
    labels = contrary_labels(canaries, teachers, table, n_classes)
    canaries = replace(canaries, labels=labels)
    return canaries, expected_changes(canaries, teachers, table, weights, n_classes), counts


def _student(config: StudyConfig, aggregator: Aggregator, X: Any, n_classes: int) -> Any:
    if not aggregator.consults_student:
        return None
    student = build_model("student.model", config["student.model"], config["student.params"])
    return RefittedStudent(student, X, n_classes)
