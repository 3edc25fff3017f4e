"""The public terms of teachers who vote, and what a journal of their answers amounts to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from collegium.accounting.bookkeeping import as_json, from_json
from collegium.accounting.spent import Spent
from collegium.accounting.statement import LABELS_CHARGED
from collegium.errors import InputError
from collegium.json_files import read_json
from collegium.pate.pipeline import PlannedVoting
from collegium.pate.voting.affordable import MOST, answers_affordable
from collegium.pate.voting.aggregators import Aggregator, aggregator_from
from collegium.pate.voting.composition import Replay, replay
from collegium.pate.voting.labelling import NO_LABEL, Outcome
from collegium.pate.voting.pricing import (
    IN_MU,
    IN_PURE,
    PRICES,
    WorstCasePricing,
    worst_case_pricing,
)
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.personalisation.electorate import Electorate, Participation
from collegium.study.folder import StudyFolder
from collegium.study.journal import FileJournal
from collegium.study.methods.votes.settings import VotesKind
from collegium.study.methods.votes.stop_reasons import stopped
from collegium.study.registry import EXACT_NOISE, FILTER
from collegium.study.terms import TERMS, WORST_CASE, Progress, RegistryWords, Terms


@dataclass(frozen=True, eq=False, kw_only=True)
class JobTerms(Terms):
    """What teachers were asked for, and how their votes are counted.

    ``n_queries``: public records that may be asked about.
    ``price``: what an answer is charged in the worst case.
    """

    method: ClassVar[str] = VotesKind.name
    command: ClassVar[str] = "`collegium run` (or `label`)"
    counted: ClassVar[Mapping[str, Any]] = {
        "queries_asked": int, "labels_released": int, "stopped_by": str,
    }  # fmt: skip

    aggregator: Aggregator
    electorate: Electorate
    n_queries: int
    price: str = HISTOGRAM

    @classmethod
    def of(
        cls,
        voting: PlannedVoting,
        n_public: int,
        private_noise: bool,
    ) -> Self:
        """Agree on a job about so many public records."""
        return cls(
            groups=dict(voting.electorate.groups),
            people=voting.owners,
            arrangement=voting.arrangement,
            guarantee=voting.account.guarantee,
            private_noise=private_noise,
            aggregator=voting.aggregator,
            electorate=voting.electorate,
            n_queries=min(n_public, voting.queries.max_queries or n_public),
            price=voting.price.name,
        )

    def pricing(self) -> WorstCasePricing:
        """Make the job's prices anew; worst case only."""
        return worst_case_pricing(self.price, self.aggregator, self.electorate, self.neighbours)

    def replayed(self, outcomes: Sequence[Outcome]) -> Replay:
        """Charge released outcomes again; worst case only."""
        return replay(self.aggregator, self.electorate, outcomes, self.neighbours, self.price)

    def spent(self, journal: FileJournal) -> Spent:
        """Charge again what was asked; what costs depend on votes stays in the vault."""
        if self.guarantee != WORST_CASE:
            return Spent(sensitive=True)
        replayed = self.replayed(journal.settled())
        spent = replayed.account.epsilon_spent_by_name()
        return Spent(
            {name: tuple(uses) for name, uses in replayed.composition.items()},
            {name: spent[name] for name in self.groups},
            gaussian=replayed.account.is_gaussian,
        )

    def progress(self, journal: FileJournal, ended: str | None) -> Progress:
        """Tell what was asked, and how many more answers the budgets pay for."""
        outcomes = journal.settled()
        account = self.replayed(outcomes).account
        left, names = account.remaining(), np.asarray(account.names, dtype=object)
        by_group = {
            name: {
                "epsilon_left": float(left.epsilon[names == name].min()),
                **({} if left.mu is None else {"mu_left": float(left.mu[names == name].min())}),
            }
            for name in self.groups
        }
        answers = answers_affordable(
            self.pricing(), self.electorate, MOST, first=len(outcomes), account=account
        )
        labels = _labels(outcomes)
        counts = {
            "aggregator": self.aggregator.settings(),
            "price": self.price,
            "queries_asked": len(outcomes),
            "checks": len(outcomes) if self.aggregator.has_check else 0,
            "labels": labels,
        }
        sentences = [
            f"{len(outcomes):,} queries asked and {labels:,} labels so far; {self.aggregator}."
        ]
        if self.price == LABELS:
            sentences.append(LABELS_CHARGED)
        if ended is None:
            more = self.n_queries - len(outcomes)
            sentences.append(
                f"Voting has not ended: the next run asks at most {more:,} more questions."
            )
        else:
            sentences.append(
                f"Voting has ended: {stopped(ended, self.unit)}. Nothing more will be asked in this folder."
            )
        pay = "pay" if ended is None else "would pay"
        bound = "at least " if answers == MOST else ""
        sentences.append(
            f"The budgets {pay} for {bound}{answers:,} more answers if every query is answered."
        )
        return Progress(
            counts, tuple(sentences), by_group, {"stopped_by": ended, "answers_left": answers}
        )

    def mechanism(self) -> dict[str, Any]:
        """Describe the aggregator."""
        return {
            **self.aggregator.settings(),
            "in_words": str(self.aggregator),
            "price": self.price,
        }

    def drawn_and_told(self, told: Mapping[str, Any], journal: FileJournal) -> tuple[str, int, int]:
        """Count queries."""
        return "questions were asked", len(journal.settled()), told["queries_asked"]

    @classmethod
    def released(cls, told: Mapping[str, Any]) -> dict[str, Any]:
        """Count queries and labels."""
        return {
            "queries_asked": told["queries_asked"],
            "labels": told["labels_released"],
            "stopped_by": told["stopped_by"],
        }

    @classmethod
    def released_in_words(cls, released: Mapping[str, Any], unit: str) -> str:
        """Say how many labels there are, and why no more."""
        return (
            f"{released['labels']:,} labels were released after {released['queries_asked']:,} queries; "
            f"{stopped(released['stopped_by'], unit)}."
        )

    def for_registry(self, statement: Mapping[str, Any]) -> RegistryWords:
        """Describe labels, and the student if one learnt from them."""
        released = statement["released"]
        has_student = released["student"]
        student = ", and a classifier that learnt from them" if has_student else ""
        more = "" if self.guarantee == WORST_CASE else " How many labels were released."
        first = (
            "The label is the largest of the released noisy counts"
            if released["what"] == HISTOGRAM
            else "Labels are released as drawn"
        )
        learnt = "; the student is trained on public records with them" if has_student else ""
        return RegistryWords(
            product_type="Machine learning model" if has_student else "Dataset",
            description=f"{released['labels']:,} labels of public records{student}. The labels come from "
            "noisy votes of teachers, each trained on some of the private records (PATE); teachers and votes "
            "are not published.",
            unprotected="Budgets and who is in which group, group sizes, the list of classes, all settings, "
            f"and all public records.{more}",
            holder="Whoever runs Collegium holds the records, the teachers and their votes.",
            mechanism=f"{self.aggregator}: noise on the weighted votes of teachers",
            noise=f"{EXACT_NOISE} Queries are not asked interactively; times are not hidden.",
            composition=self._composition(statement),
            post_processing=f"{first}{learnt}.",
        )

    def _composition(self, statement: Mapping[str, Any]) -> str:
        if self.guarantee != WORST_CASE:
            return (
                "Renyi differential privacy of this one data set, computed from raw votes. What was spent is "
                "sensitive and is not published; the number of labels depends on private data."
            )
        if statement["guarantee"]["gaussian"]:
            return f"{FILTER} exact Gaussian differential privacy (squares of mu add up)."
        if self.price == LABELS:
            return f"{FILTER} Renyi differential privacy of labels alone, at one order fixed beforehand."
        if self.price == IN_PURE:
            return f"{FILTER} pure differential privacy (epsilons add up)."
        return f"{FILTER} Gaussian differential privacy, or the sum of pure epsilons where that is less."

    def own_to_json(self) -> dict[str, Any]:
        """Describe aggregator and electorate."""
        electorate = self.electorate
        schedule = electorate.participation
        return {
            "n_queries": self.n_queries,
            "price": self.price,
            "aggregator": self.aggregator.settings(),
            "n_nominal": electorate.n_nominal,
            "cohort_groups": list(electorate.cohort_groups),
            "weights": as_json(electorate.weights),
            "sensitivity": as_json(electorate.sensitivity),
            "participation": None
            if schedule is None
            else {
                "groups": [group.tolist() for group in schedule.groups],
                "frequencies": list(schedule.frequencies),
                "seed": schedule.seed,
                "shuffle_every": schedule.shuffle_every,
            },
        }

    @classmethod
    def own_from_json(cls, own: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """Read aggregator and electorate."""
        mechanism = dict(own["aggregator"])
        weights = from_json(own["weights"], "weights", (len(own["weights"]),))
        cohorts = tuple(own["cohort_groups"])
        schedule = own["participation"]
        participation = None
        if schedule is not None:
            groups = [np.asarray(group, dtype=np.intp) for group in schedule["groups"]]
            participation = Participation(
                groups, schedule["frequencies"], schedule["seed"], schedule["shuffle_every"]
            )
        electorate = Electorate(
            n_nominal=own["n_nominal"],
            weights=weights,
            groups=common["groups"],
            cohort_groups=cohorts,
            sensitivity=from_json(own["sensitivity"], "sensitivity", (len(cohorts),)),
            participation=participation,
        )
        return cls(
            **common,
            aggregator=aggregator_from(mechanism.pop("name"), **mechanism),
            electorate=electorate,
            n_queries=own["n_queries"],
            price=_known_price(own["price"]),
        )


def _labels(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.label != NO_LABEL for outcome in outcomes)


def _known_price(price: Any) -> str:
    known = (*PRICES, IN_MU, IN_PURE)
    if price not in known:
        raise InputError(
            f"unknown price {price!r} in a job's terms: allowed are {', '.join(known)}"
        )
    return str(price)


def kept_price(folder: StudyFolder | None) -> str | None:
    """Read what a job that was begun in a folder charges an answer; None if it was not begun."""
    path = None if folder is None else folder.vault / TERMS
    if path is None or not path.exists():
        return None
    content = read_json(path, {"own": {"price": str}}, "restore it from a backup")
    return _known_price(content["own"]["price"])
