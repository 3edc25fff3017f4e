"""The distinguishing game against the real mechanism, for one owner of each budget group.

Two neighbouring vote tables differ in how one owner's teachers vote. Whole labelling jobs are run on
both, tens of thousands of times, with real noise and a real account. An event is learnt on half of
the runs and judged on the other half; Clopper-Pearson limits of its two probabilities give lower
bounds on ε (at the δ of the group) and on μ, to hold against what the account charged.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.statement import ceil_decimals, floor_decimals
from collegium.attacks.bounds import binomial_bounds, epsilon_from_rates, mu_from_rates
from collegium.attacks.distinguishers import Lens, Runs, choose_events
from collegium.attacks.finding import Finding
from collegium.attacks.mechanism import AuditedMechanism
from collegium.attacks.noise_capture import ListeningNoise
from collegium.checks import check_choice, check_number, check_whole
from collegium.errors import InputError
from collegium.pate.voting.labelling import LabellingJob, Outcome
from collegium.pate.voting.noisy_maxima import Aggregator
from collegium.pate.voting.release import HISTOGRAM
from collegium.pate.voting.vote_table import VoteTable

Floats = NDArray[np.float64]
OBSERVATIONS = ("noisy", "released")
FEWEST_RUNS = 100


@dataclass(frozen=True, kw_only=True)
class GameFinding(Finding):
    """What the game showed about one group.

    ``lower_mu``, ``claim_mu``: lower bound and claim for Gaussian DP.
    ``true_positive_rate``, ``false_positive_rate``: observed, of the event that bounds μ.
    """

    lower_mu: float
    claim_mu: float
    true_positive_rate: float
    false_positive_rate: float

    @property
    def budget_mu(self) -> float:
        """μ of the budget."""
        return gdp_mu(self.budget.epsilon, self.budget.delta)

    @property
    def holds(self) -> bool:
        """Whether both lower bounds are below what is claimed."""
        return super().holds and self.lower_mu <= self.claim_mu

    @property
    def of_mu(self) -> tuple[float, float, float] | None:
        """All of them, unless steps are sampled."""
        if math.isinf(self.claim_mu):
            return None
        return self.lower_mu, self.claim_mu, self.budget_mu

    def cells(self) -> dict[str, str]:
        """Write μ."""
        return {
            "lower μ": floor_decimals(self.lower_mu, 3),
            "claimed μ": ceil_decimals(self.claim_mu, 3),
            "budget μ": floor_decimals(self.budget_mu, 3),
        }

    def numbers(self) -> dict[str, Any]:
        """The same, and how often the attacker was right and wrong."""
        return {
            "lower_mu": self.lower_mu,
            "claim_mu": self.claim_mu if math.isfinite(self.claim_mu) else None,
            "budget_mu": self.budget_mu,
            "true_positive_rate": self.true_positive_rate,
            "false_positive_rate": self.false_positive_rate,
        }


def play_game(
    mechanism: AuditedMechanism,
    *,
    runs: int = 20_000,
    queries: int = 8,
    n_classes: int = 2,
    confidence: float = 0.95,
    observe: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[GameFinding]:
    """Play the game for one owner of each group.

    ``runs``: labelling jobs on each side (one side for all owners unmoved, one for each group).
    ``queries``: queries of each job; their votes are alike, so that the job composes them all.
    ``n_classes``: at least 2; the owner's teachers move their votes between the first two.
    ``confidence``: probability that *all* lower bounds of all groups hold, in (0, 1).
    ``observe``: what the adversary sees: the noisy values, or what jobs release. Default: noisy
        values where the account pays for them (Gaussian and Laplace noise), labels otherwise. Where
        histograms are released, both are the same values, and are read off the outcomes of the
        jobs.
    ``progress``: called with (jobs done, jobs in all).
    Returns: one for each group.

    Notes
    -----
    On even queries the owner's teachers vote for class 0 on one side and for class 1 on the other,
    on odd queries the other way round. All other teachers vote for class 0, so that both counts and
    the maximum move by Δ, as far as one owner can move them; or, if only labels are seen, every other
    one votes for class 1, because labels change where it is close.

    The claim is the most that a job of the training half was charged, c say. A job of the judged half
    that was charged more is taken to have stopped, which the mechanism with budget c would have done,
    and never counts as the event: what is judged is exactly that mechanism, whatever the verdicts.
    """
    observe = observe or ("noisy" if pays_for_noisy_counts(mechanism.aggregator) else "released")
    _refuse(mechanism, runs, queries, n_classes, confidence, observe)
    if mechanism.release == HISTOGRAM:
        observe = "noisy"
    tied = observe == "released"
    groups = list(mechanism.owner_teachers)
    total = runs * (1 + len(groups))
    error = (1 - confidence) / (4 * len(groups))  # two events, two limits each
    base, weights = _votes(mechanism, queries, None, tied), _weights(mechanism, queries)
    reference = play_votes(mechanism, base, n_classes, runs, lambda done: progress(done, total))
    counts = np.stack([((base == label) * weights).sum(axis=1) for label in range(n_classes)], 1)
    findings = []
    for number, group in enumerate(groups, start=1):
        before = number * runs
        moved = play_votes(
            mechanism,
            _votes(mechanism, queries, group, tied),
            n_classes,
            runs,
            lambda done, before=before: progress(before + done, total),  # type: ignore[misc]
        )
        present = weights[:, mechanism.owner_teachers[group]].sum(axis=1) > 0
        lens = Lens(counts, present, observe == "noisy")
        findings.append(_judge(mechanism, group, lens, reference, moved, error))
    return findings


def pays_for_noisy_counts(aggregator: Aggregator) -> bool:
    """Whether the noisy counts might be released as they are at the same cost."""
    return aggregator.pays_for_histogram


def _refuse(
    mechanism: AuditedMechanism,
    runs: int,
    queries: int,
    n_classes: int,
    confidence: float,
    observe: str,
) -> None:
    if mechanism.pricing.accountant.sensitive:
        raise InputError(
            "only a worst-case account claims something about neighbouring vote tables: a "
            "data-dependent one cannot be audited by this game"
        )
    if runs < FEWEST_RUNS:
        raise InputError(f"an audit needs at least {FEWEST_RUNS} runs on each side, got {runs}")
    check_whole("queries", queries)
    check_whole("n_classes", n_classes, least=2)
    check_number("confidence", confidence, above=0, below=1)
    check_choice("observe", observe, OBSERVATIONS)
    if observe == "noisy" and not pays_for_noisy_counts(mechanism.aggregator):
        raise InputError(
            f"the account of aggregator {mechanism.aggregator.name!r} pays for the winner, not for noisy "
            "counts: observe 'released'"
        )


def _votes(
    mechanism: AuditedMechanism, queries: int, moved: str | None, tied: bool
) -> NDArray[np.int32]:
    """Votes of all teachers; the owner of the group ``moved`` has the other record."""
    votes = np.zeros((queries, mechanism.electorate.n_teachers), dtype=np.int32)
    if tied:
        votes[:, ::2] = 1
    odd = np.arange(queries) % 2
    for teachers in mechanism.owner_teachers.values():
        votes[:, teachers] = odd[:, None]
    if moved is not None:  # last: two groups' owners may share teachers
        votes[:, mechanism.owner_teachers[moved]] = 1 - odd[:, None]
    return votes


def _weights(mechanism: AuditedMechanism, queries: int) -> Floats:
    return np.array([mechanism.electorate.ballot(p).weights for p in range(queries)])


class _SilentStudent:
    """Never learns: the interactive check is then made on the counts themselves."""

    def refit(self, queries: list[int], labels: list[int]) -> None:
        """Do nothing."""

    def probabilities(self, query: int) -> Floats | None:
        """Believe nothing."""
        return None


def play_votes(
    mechanism: AuditedMechanism,
    votes: NDArray[np.int32],
    n_classes: int,
    runs: int,
    progress: Callable[[int], None],
) -> Runs:
    """Run whole labelling jobs on one vote table, each with a fresh account.

    ``votes`` (queries, n_teachers). ``progress``: called with how many are done.
    """
    queries, table = len(votes), VoteTable.from_predictions(votes, n_classes)
    order = np.arange(queries, dtype=np.intp)
    n_cohorts = len(mechanism.electorate.cohort_groups)
    checks, answers = np.empty((runs, queries)), np.empty((runs, queries, n_classes))
    labels = np.full((runs, queries), -1, dtype=np.intp)
    mu_squared, epsilon = np.empty((runs, n_cohorts)), np.empty((runs, n_cohorts))
    known: dict[bytes, Floats] = {}  # ε of what was spent: few runs spend differently
    student = _SilentStudent() if mechanism.aggregator.consults_student else None
    ear = ListeningNoise(mechanism.noise)
    for run in range(runs):
        pricing = copy.copy(mechanism.pricing)
        pricing.accountant = copy.copy(
            mechanism.pricing.accountant
        )  # prices that it knows are shared
        released = LabellingJob(
            table,
            mechanism.electorate,
            mechanism.aggregator,
            pricing,
            ear,
            order,
            student=student,
            block=queries,
            release=mechanism.release,
        ).run()
        checks[run], answers[run] = ear.heard(queries, n_classes)
        if mechanism.release == HISTOGRAM:
            checks[run], answers[run] = _released_values(released.outcomes, queries, n_classes)
        labels[run, released.queries] = released.labels
        account = pricing.accountant
        assert isinstance(account, GaussianAccountant)
        mu_squared[run] = account.mu_squared
        state = mu_squared[run].tobytes()
        if state not in known:
            known[state] = account.epsilon_spent()
        epsilon[run] = known[state]
        if run % 500 == 499:
            progress(run + 1)
    return Runs(checks, answers, labels, mu_squared, epsilon)


def _released_values(
    outcomes: list[Outcome], queries: int, n_classes: int
) -> tuple[Floats, Floats]:
    """Noisy checks and counts by query, as outcomes show them; NaN where there is none."""
    checks, answers = np.full(queries, np.nan), np.full((queries, n_classes), np.nan)
    for outcome in outcomes:
        if outcome.noisy_check is not None:
            checks[outcome.query] = outcome.noisy_check
        if outcome.noisy_counts is not None:
            answers[outcome.query] = outcome.noisy_counts
    return checks, answers


def _judge(
    mechanism: AuditedMechanism, group: str, lens: Lens, reference: Runs, moved: Runs, error: float
) -> GameFinding:
    cohort, budget = mechanism.cohort(group), mechanism.electorate.groups[group]
    learnt = (reference.half(second=False), moved.half(second=False))
    judged = (reference.half(second=True), moved.half(second=True))
    mu_squared = max(float(runs.mu_squared[:, cohort].max()) for runs in learnt)
    epsilon = max(float(runs.epsilon[:, cohort].max()) for runs in learnt)
    events = choose_events(lens.features(learnt[0]), lens.features(learnt[1]), budget.delta, error)
    counted = []
    for runs in judged:
        allowed = (runs.mu_squared[:, cohort] <= mu_squared) & (runs.epsilon[:, cohort] <= epsilon)
        features = lens.features(runs)
        counted.append([event.count(features, allowed) for event in events])
    sizes = [len(runs.labels) for runs in judged]
    _, false_high = binomial_bounds(counted[0], sizes[0], error)
    true_low, _ = binomial_bounds(counted[1], sizes[1], error)
    return GameFinding(
        group=group,
        budget=budget,
        lower_epsilon=float(epsilon_from_rates(true_low[0], false_high[0], budget.delta)),
        claim_epsilon=epsilon,
        lower_mu=float(mu_from_rates(true_low[1], false_high[1])),
        claim_mu=float(np.nextafter(np.sqrt(mu_squared), np.inf)) if mu_squared else 0.0,
        true_positive_rate=counted[1][1] / sizes[1],
        false_positive_rate=counted[0][1] / sizes[0],
    )
