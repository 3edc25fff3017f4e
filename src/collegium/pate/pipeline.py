"""The one pipeline of PATE: plan, rehearsal, teachers, votes, labels, student.

The estimator, studies (in memory and streamed), votes from elsewhere, audits and reproductions are thin faces
of it: they hand over a :class:`~collegium.pate.recipe.Recipe`, :class:`~collegium.runs.records.Records`, a
:class:`~collegium.pate.memory.Memory` and an observer. Everything that decides on a result is in the first
two, and every random number but the privacy noise follows from the recipe's seed.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import Arrangement
from collegium.accounting.statement import Answers, PrivacyStatement, statement
from collegium.data.tables import one_hot, stack_rows, take_rows
from collegium.distillation.goal import answering_as_voted, wants_balanced_votes
from collegium.distillation.rehearsal import rehearse_student, try_student
from collegium.distillation.share_matching import match_shares, require_probabilities
from collegium.distillation.supervised import RefittedStudent, fit_released
from collegium.errors import InputError, PrivacyWarning, frames_to_user
from collegium.models.features.network_features import brought_by
from collegium.models.trial import one_line_about
from collegium.noise.sums import NoisySum
from collegium.pate.between_parties import JointVotes
from collegium.pate.memory import Memory
from collegium.pate.queries.order import check_order, chooser_of, order_of_asking
from collegium.pate.recipe import Recipe
from collegium.pate.rehearsal import rehearse_teacher
from collegium.pate.settings import Account, Queries
from collegium.pate.teachers.class_balance import rows_in_shares
from collegium.pate.teaching import LendWorkers, Teaching
from collegium.pate.voting.affordable import queries_at_once, refuse_unaffordable
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.choosing import QueryChooser
from collegium.pate.voting.histograms import NoisyHistograms, released_histograms
from collegium.pate.voting.joint_labelling import JointLabelling
from collegium.pate.voting.labelling import LabellingJob, Labels
from collegium.pate.voting.price_choice import ChosenPrice, choose_price
from collegium.pate.voting.pricing import LabelPricing, Pricing, WorstCasePricing, pricing_for
from collegium.pate.voting.release import HISTOGRAM
from collegium.pate.voting.targets import released_targets
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.assignment import check_assignment
from collegium.personalisation.bins import said_of
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan
from collegium.runs.observer import Observer
from collegium.runs.records import Records
from collegium.runs.views import View, fitted_view
from collegium.workers.engines import Workers


@dataclass(frozen=True, eq=False)
class Released:
    """What voting released, and what it cost.

    Attributes
    ----------
    labels : Labels
        Outcomes of all questions.
    privacy : PrivacyStatement
        Budgets and spending by group; without spending where that is sensitive.
    electorate : Electorate
        Who voted.
    aggregator : Aggregator
        The mechanism.
    histograms : NoisyHistograms or None
        Noisy counts, where they are released.
    n_classes : int
        Length of the public list of classes.
    """

    labels: Labels
    privacy: PrivacyStatement
    electorate: Electorate
    aggregator: Aggregator
    histograms: NoisyHistograms | None
    n_classes: int


@dataclass(frozen=True, eq=False)
class PlannedVoting:
    """What teachers are asked, and what an answer costs: public numbers alone, whoever trained the teachers.

    Attributes
    ----------
    plan : Plan
        How much influence everybody has.
    electorate, aggregator
        Who votes, with which weight, and how votes become labels.
    account, queries
        Which guarantee; what is asked, and what is shown.
    arrangement : Arrangement
        Which data sets the guarantee is about.
    price : ChosenPrice
        What a worst-case account charges an answer.
    """

    plan: Plan
    electorate: Electorate
    aggregator: Aggregator
    account: Account
    queries: Queries
    arrangement: Arrangement
    price: ChosenPrice

    @classmethod
    def of(
        cls,
        plan: Plan,
        electorate: Electorate,
        aggregator: Aggregator,
        account: Account,
        queries: Queries,
        arrangement: Arrangement,
        *,
        most: int,
        seed: int,
    ) -> PlannedVoting:
        """Choose the price, where none is set.

        Parameters
        ----------
        most : int
            Answers that may be asked for.
        seed : int
            Public randomness.

        Raises
        ------
        InputError
            If no group could afford an answer.
        """
        guarantee = account.guarantee
        price = choose_price(
            account.price,
            queries.release,
            aggregator,
            electorate,
            guarantee,
            most,
            arrangement.promise,
        )
        refuse_unaffordable(aggregator, plan, guarantee, seed, price.name)
        return cls(plan, electorate, aggregator, account, queries, arrangement, price)

    @property
    def owners(self) -> dict[str, int]:
        """Public number of owners of each group."""
        return {name: group.owners for name, group in self.plan.groups.items()}

    def at(self, price: str | None) -> PlannedVoting:
        """Charge another price, with which it was begun; None: this one."""
        return self if price in (None, self.price.name) else replace(self, price=ChosenPrice(price))

    def release(
        self,
        votes: VoteTable,
        asking: NDArray[np.intp] | QueryChooser,
        noise: NoisySum,
        student: RefittedStudent | None = None,
        memory: Memory | None = None,
        observer: Observer | None = None,
        jointly: bool = False,
    ) -> Released:
        """Let votes become labels; where the memory is durable, a finished job is only read again.

        Parameters
        ----------
        votes : VoteTable
            **Sensitive.**
        asking : ndarray of int, or QueryChooser
            Which public records, in which order.
        noise : NoisySum
            Of the mechanism.
        student : RefittedStudent, optional
            For an aggregator that consults one.
        memory, observer
            As for :class:`PateRun`.
        jointly : bool, default=False
            Whether other parties have the rest of the votes, and many queries are asked in one sum.
        """
        memory = Memory() if memory is None else memory
        observer = Observer() if observer is None else observer
        account, queries = self.account, self.queries
        pricing = pricing_for(
            account.guarantee,
            self.aggregator,
            self.electorate,
            account.renyi_orders,
            account.conversion,
            self.arrangement.neighbours,
            account.bounds,
            self.price.name,
        )
        shows = queries.release == HISTOGRAM
        excess = noise.excess  # at most: a run that goes on has not seen who took part before
        labels = self._asked(pricing, votes, asking, noise, student, memory, observer, jointly)
        privacy = statement(
            pricing.accountant,
            self.owners,
            dict(self.electorate.groups),
            self.arrangement,
            noise.is_private,
            Answers(queries.release),
            self.price.name,
            pricing.mu_by_name() if isinstance(pricing, LabelPricing) else None,
        )
        if not privacy.may_publish_spending:
            privacy = memory.keep_spending(privacy)
        n_classes, histograms = votes.n_classes, None
        if shows:
            histograms = released_histograms(
                labels, self.electorate, self.aggregator, n_classes, excess
            )
        return Released(labels, privacy, self.electorate, self.aggregator, histograms, n_classes)

    def _asked(
        self,
        pricing: Pricing,
        votes: VoteTable,
        asking: NDArray[np.intp] | QueryChooser,
        noise: NoisySum,
        student: RefittedStudent | None,
        memory: Memory,
        observer: Observer,
        jointly: bool,
    ) -> Labels:
        """Ask one query after the other, or many at once, as far as the memory does not know the answers."""
        queries = self.queries
        limits = (votes.n_queries, queries.max_queries, queries.max_labels)
        most = min(limit for limit in limits if limit is not None)
        block = queries_at_once(self.price.name, self.aggregator, self.electorate, most)
        journal = memory.journal(votes.n_classes + 1 if queries.release == HISTOGRAM else 0)
        ended = memory.ended()
        limit = queries.max_queries if ended is None else ended[0]
        with memory.asking() as should_stop:
            if jointly:
                assert isinstance(pricing, WorstCasePricing)
                labels = JointLabelling(
                    votes,
                    self.electorate,
                    self.aggregator,
                    pricing,
                    noise,
                    asking,
                    max_queries=limit,
                    max_labels=queries.max_labels,
                    journal=journal,
                    progress=observer.advanced,
                    tell=observer.note,
                ).run()
            else:
                labels = LabellingJob(
                    votes,
                    self.electorate,
                    self.aggregator,
                    pricing,
                    noise,
                    asking,
                    student=student,
                    max_queries=limit,
                    max_labels=queries.max_labels,
                    journal=journal,
                    block=block,
                    should_stop=should_stop,
                    progress=observer.advanced,
                    release=queries.release,
                ).run()
        if ended is not None:
            labels = Labels(labels.outcomes, labels.queries, labels.labels, ended[1])
        else:
            memory.end(labels)
        return labels


@contextlib.contextmanager
def _alone() -> Iterator[Workers]:
    yield Workers()


class PateRun:
    """One run of PATE.

    Making it plans and checks, trains nothing and spends nothing.

    Parameters
    ----------
    recipe : Recipe
        What to do.
    records : Records
        With what.
    memory : Memory, optional
        What outlives the process; default: nothing.
    observer : Observer, optional
        Is told how it gets on.
    lend_workers : callable, optional
        ``with lend_workers() as workers:`` lends those who train and ask; default: this process.
    verbose : int
        Of training, as in joblib.
    teaching : type
        How teachers learn from these records: in memory, unless they are streamed.
    joint : JointVotes, optional
        This party's part in the votes of several; the records have the groups of all of them.

    Attributes
    ----------
    granted : Budgets
        What people granted; those of the records are in few groups.
    voting : PlannedVoting
        What teachers are asked, and what an answer costs.
    plan : Plan
        From public numbers only.
    aggregator : Aggregator
        With all its numbers.
    arrangement : Arrangement
        Which data sets the guarantee is about.
    price : ChosenPrice
        What a worst-case account charges an answer, unless it was begun with another one.

    Raises
    ------
    InputError
        If anything that was given cannot be used, or no group could afford an answer.
    """

    def __init__(
        self,
        recipe: Recipe,
        records: Records,
        memory: Memory | None = None,
        observer: Observer | None = None,
        lend_workers: LendWorkers = _alone,
        verbose: int = 0,
        teaching: type[Teaching] = Teaching,
        joint: JointVotes | None = None,
    ) -> None:
        self.recipe = recipe
        self.granted = records.budgets
        self._joint = joint
        if joint is None and not records.arrangement.on_ledger:  # whose groups are reserved for
            few = recipe.personalisation.few_budgets(self.granted, recipe.n_teachers)
            records = records.regrouped(few)
        self.records = records
        self.memory = Memory() if memory is None else memory
        self.observer = Observer() if observer is None else observer
        self._lend_workers = lend_workers
        self._verbose = verbose
        self._kind_of_teaching = teaching
        self.plan: Plan = (
            recipe.personalisation.plan_for(records.budgets, recipe.n_teachers)
            if joint is None
            else joint.plan
        )
        large = self.plan.large_deltas(records.arrangement.counts_in)
        if large:
            warnings.warn(large, PrivacyWarning, stacklevel=frames_to_user())
        check_assignment(recipe.assignment)
        for whose in ("teacher", "student"):
            shares = recipe.class_shares(whose, records.classes)
            if whose == "student" and shares is not None:
                require_probabilities(recipe.student)
        electorate = self.plan.electorate(recipe.seed)
        self.voting = PlannedVoting.of(
            self.plan,
            electorate,
            recipe.aggregator.resolved(recipe.n_teachers, electorate),
            recipe.account,
            recipe.queries,
            replace(
                records.arrangement,
                assignment=recipe.assignment,
                together=recipe.together,
                brought=brought_by(recipe.preprocessing, recipe.student_preprocessing),
            ),
            most=self._most_answers(),
            seed=recipe.seed,
        )
        self.electorate, self.aggregator = electorate, self.voting.aggregator
        self.arrangement, self.price = self.voting.arrangement, self.voting.price

    def _most_answers(self) -> int:
        """Count the answers that may be asked for.

        Noise for more than that is refused: most of the budgets would buy nothing.
        """
        wanted, queries = getattr(self.recipe.aggregator, "answers", None), self.recipe.queries
        given = {
            "public records": int(self.records.X_public.shape[0]),
            "max_queries": queries.max_queries,
            "max_labels": queries.max_labels,
        }
        limits = {name: limit for name, limit in given.items() if limit is not None}
        for name, limit in limits.items():
            if wanted is not None and wanted > limit:
                raise InputError(
                    f"answers = {wanted:,} is more than can be asked ({name}: {limit:,}): lower it, and each "
                    "answer gets less noise"
                )
        return min(limits.values()) if wanted is None else int(wanted)

    @cached_property
    def teachers_view(self) -> View:
        """What teachers see of records."""
        recipe = self.recipe
        return fitted_view(
            recipe.preprocessing, self.records.X_public, recipe.names["preprocessing"]
        )

    @cached_property
    def student_view(self) -> View:
        """What the student sees of records: the same object, where both see the same."""
        recipe = self.recipe
        if recipe.same_view:
            return self.teachers_view
        name = recipe.names["student_preprocessing"]
        return fitted_view(recipe.student_preprocessing, self.records.X_public, name)

    @cached_property
    def X_asked(self) -> Any:  # noqa: N802
        """Public records as teachers see them."""
        return self._public_as(self.teachers_view)

    @cached_property
    def X_seen(self) -> Any:  # noqa: N802
        """Public records as the student sees them."""
        if self.student_view is self.teachers_view:
            return self.X_asked
        return self._public_as(self.student_view)

    def _public_as(self, view: View) -> Any:
        with one_line_about(view.name, "applied to the public records"):
            return view.of(self.records.X_public, self.memory.folder)

    def rehearse(self, X_test: Any = None) -> Any | None:
        """Train both models on some public records with synthetic labels: a typo must cost nothing.

        Parameters
        ----------
        X_test : array-like or DataFrame, optional
            Public records that the student will be asked about.

        Returns
        -------
        object or None
            The student that was trained, as it would be published; None where there was nothing to try.

        Raises
        ------
        InputError
            If one of them fails: nothing has been spent.
        """
        recipe, classes = self.recipe, self.records.classes
        said = said_of(self.granted, self.records.budgets)
        if said:
            self.observer.note(said)
        X_asked, X_seen = self.X_asked, self.X_seen  # a view that fails is told before any model
        check_order(recipe, X_asked)
        rehearse_teacher(
            recipe.teacher,
            X_asked,
            len(classes),
            -(-self.records.budgets.n_records // self.plan_of_own.n_teachers),
            recipe.names["teacher"],
        )
        queries = recipe.queries
        limits = [limit for limit in (queries.max_queries, queries.max_labels) if limit is not None]
        student = rehearse_student(
            recipe.student,
            X_seen,
            classes,
            most_labels=min(limits, default=None),
            soft=queries.release == HISTOGRAM and queries.targets != "argmax",
            tells_beliefs=self.aggregator.consults_student or self._is_chosen,
            class_shares=recipe.class_shares("student", classes),
            name=recipe.names["student"],
        )
        if student is None:
            return None
        student = self.student_view.published(student)
        if X_test is not None:
            with one_line_about(recipe.names["test"], "predicted"):
                student.predict(X_test)
        return student

    @property
    def _is_chosen(self) -> bool:
        return self.recipe.queries.query_order == "active"

    def votes(self) -> VoteTable:
        """Train teachers and let them vote on the public records. **Sensitive.**"""
        return self.votes_on(self.X_asked, self.records)

    def votes_on(self, X_asked: Any, records: Records) -> VoteTable:
        """Train teachers on some private records, and let them vote on others. **Sensitive.**

        Parameters
        ----------
        X_asked : array-like
            As teachers see them.
        records : Records
            Whose private ones are learnt; the run's, but in an audit.
        """
        votes = self._teaching(X_asked).votes(records)
        return votes if self._joint is None else self._joint.among_all(votes)

    def votes_of(self, numbers: Sequence[int]) -> NDArray[np.int32]:
        """Let some teachers vote on the public records, trained before if the memory lacks them.

        **Sensitive.**

        Returns
        -------
        ndarray of int32, shape (n_public, n_numbers)
            Class numbers, -1 for abstentions.
        """
        return self._teaching(self.X_asked).votes_of(self.records, numbers)

    @property
    def plan_of_own(self) -> Plan:
        """Of the teachers that learn here."""
        return self.plan if self._joint is None else self._joint.own

    def votes_of_own(self, votes: VoteTable) -> VoteTable:
        """Take the votes of the teachers that learnt here. **Sensitive.**"""
        return votes if self._joint is None else self._joint.among_own(votes)

    def _teaching(self, X_asked: Any) -> Teaching:
        return self._kind_of_teaching(
            self.recipe,
            self.plan_of_own,
            self.teachers_view,
            X_asked,
            self._lend_workers,
            self.memory,
            self.observer,
            self._verbose,
        )

    def release(self, votes: VoteTable, price: str | None = None) -> Released:
        """Ask about public records until a budget, or what may be asked, runs out.

        Parameters
        ----------
        votes : VoteTable
            **Sensitive.**
        price : str, optional
            What an answer is charged, where it was begun with another than :attr:`price`.

        Raises
        ------
        StudyInterrupted
            After Ctrl-C, where the memory is durable.
        """
        recipe, observer = self.recipe, self.observer
        order = order_of_asking(recipe, self.memory, self.X_asked)
        student = None
        if self.aggregator.consults_student:
            student = RefittedStudent(recipe.student, self.X_seen, votes.n_classes, observer.note)
        asking = chooser_of(
            recipe,
            self.X_seen,
            self.X_asked,
            order,
            self.electorate,
            self.aggregator,
            votes.n_classes,
            observer.note,
        )
        observer.stage("labels", len(order[: recipe.queries.max_queries]))
        voting = self.voting.at(price)
        joint = self._joint
        noise = recipe.noise() if joint is None else joint.noise
        return voting.release(
            votes, asking, noise, student, self.memory, observer, joint is not None
        )

    def teach(self, released: Released, targets: NDArray[np.float64] | None = None) -> Any:
        """Train the student on what was released, and try it. Costs nobody anything.

        Returns
        -------
        object
            It predicts the classes of records as :attr:`student_view` shows them.

        Raises
        ------
        NothingReleasedError
            If there is no label.
        Exception
            Whatever a student raises that cannot learn from these labels.
        """
        recipe, classes, labels = self.recipe, self.records.classes, released.labels
        targets = self.targets(released) if targets is None else targets
        X, queries, codes, targets = self._learnt_from(labels, targets)
        student = fit_released(
            recipe.student, X, queries, codes, classes, targets, tell=self.observer.note
        )
        shares = recipe.class_shares("student", classes)
        if shares is not None:
            student = match_shares(student, self.X_seen, classes, shares)
        return answering_as_voted(recipe.goal, student)

    def _learnt_from(
        self, labels: Labels, targets: NDArray[np.float64]
    ) -> tuple[Any, NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Put records that were given to everybody below the public ones, each with the class that it has.

        To a student, whatever it is, they are public records that were answered beyond doubt.
        """
        X, queries, codes, given = self.X_seen, labels.queries, labels.labels, self.records.given
        if given is None or not len(
            queries
        ):  # with no label at all, the student's own words say so
            return X, queries, codes, targets
        with one_line_about(self.student_view.name, "applied to the records of public levels"):
            seen = self.student_view.of(given.X, self.memory.folder)
        known = given.codes
        if wants_balanced_votes(self.recipe.goal):  # beside balanced votes, equally frequent
            even = np.full(targets.shape[1], 1 / targets.shape[1])
            rows = rows_in_shares(known, even, self.recipe.seed)
            seen, known = take_rows(seen, rows), known[rows]
        return (
            stack_rows(X, seen),
            np.concatenate([queries, np.arange(len(known)) + X.shape[0]]),
            np.concatenate([codes, known]),
            np.concatenate([targets, one_hot(known, targets.shape[1])]),
        )

    def try_student(self, student: Any) -> None:
        """Ask a trained student about some public records; what it raises is not caught."""
        try_student(student, self.X_seen, self.records.classes, self.recipe.names["student"])

    def targets(self, released: Released) -> NDArray[np.float64]:
        """What the student learns of each label, shape (n_labels, n_classes)."""
        method = self.recipe.queries.targets
        return released_targets(
            released.labels, len(self.records.classes), released.histograms, method
        )
