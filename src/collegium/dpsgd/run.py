"""The one pipeline of direct training: plan, features, charged and noisy steps, a model.

The estimators, studies, the audit and reproductions are thin faces of it: they hand over a
:class:`DPSGDRecipe`, :class:`~collegium.runs.records.Records` and a
:class:`~collegium.dpsgd.memory.DPSGDMemory`. Everything that decides on the result is in the first two; the
coins of a sample and the noise come from the operating system.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.accounting.statement import PrivacyStatement, large_deltas
from collegium.budgets import Budgets
from collegium.data.tables import take_rows
from collegium.dpsgd.account import DPSGDAccount
from collegium.dpsgd.by_rule import curvature, learning_rate, noise_of, signal, with_components
from collegium.dpsgd.filtered import Filtered
from collegium.dpsgd.footprint import require_room, working_bytes
from collegium.dpsgd.grid import MAX_NOISE, noisy
from collegium.dpsgd.linear_model import as_features, as_rows, linear_model
from collegium.dpsgd.linear_sums import InMemory, Terms, blocks_of, require_exact
from collegium.dpsgd.losses import CrossEntropy, Loss, SquaredError
from collegium.dpsgd.memory import DPSGDMemory
from collegium.dpsgd.optimiser import State, stepped
from collegium.dpsgd.public_labels import PublicLabels, with_public_labels
from collegium.dpsgd.public_solver import (
    FEWEST,
    LEAST_SIGNAL,
    Columns,
    PublicSolver,
    can_solve,
)
from collegium.dpsgd.sampling import Sample
from collegium.dpsgd.settings import COMBINE, FULL_BATCH, PUBLIC, DPSGDSettings
from collegium.dpsgd.taught_view import of_trees, public_view
from collegium.errors import InputError, PrivacyWarning, frames_to_user
from collegium.models.features.network_features import brought_by
from collegium.models.trial import one_line_about
from collegium.noise.sources import noise_from
from collegium.noise.sums import Integers, NoisySum
from collegium.parties.waiting import SumNotOpenedError
from collegium.personalisation.addable_rates import plan_that_adds_up
from collegium.personalisation.bins import few_budgets, said_of
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.personalisation.rates import plan_dpsgd
from collegium.runs.observer import Observer
from collegium.runs.records import Records
from collegium.runs.views import View

Floats = NDArray[np.float64]
RELATIONS = {"zero-out": Neighbours.ADD_OR_REMOVE, "replace-one": Neighbours.ANY_CHANGE}


def planned(
    settings: DPSGDSettings,
    budgets: Budgets,
    relation: Neighbours | None = None,
    delta_0: Mapping[str, float] | None = None,
) -> DPSGDPlan:
    """Plan DP-SGD from public numbers only.

    ``relation``: what a ledger promises about; settings come first.
    ``delta_0``: what each group grants of a ledger's δ₀, beside its budget; None without a ledger.
    Raises InputError if it cannot be planned, or its noise not be drawn.
    """
    plan_for = partial(plan_that_adds_up, delta_0=delta_0) if delta_0 else plan_dpsgd
    plan = plan_for(
        budgets.groups,
        budgets.public_sizes(),
        kind=settings.sampling,
        steps=settings.steps,
        rate=settings.rate,
        neighbours=RELATIONS.get(settings.neighbours or "", relation or Neighbours.ADD_OR_REMOVE),
        accountant=settings.accountant,
    )
    if plan.noise > MAX_NOISE:
        raise InputError(
            f"{plan.steps:,} steps need noise of {plan.noise:.3g} clip norms, and at most {MAX_NOISE:,.0f} "
            "can be drawn: budgets are too small for so many, lower steps"
        )
    return plan


class Summands(Protocol):
    """Private records, wherever they are, seen by one model: all that DP-SGD asks of them."""

    def clipped_sum(self, parameters: Floats, sample: Sample) -> Integers:
        """Sum of the clipped contributions of who takes part, in units of the grid. **Sensitive.**"""
        ...


@dataclass(frozen=True, eq=False)
class DPSGDRecipe:
    """Everything that decides on the result of a run.

    ``dpsgd``: steps, sampling, clipping, learning.
    ``preprocessing``: fitted on public records only; rows are then brought to unit length.
    ``seed``: public randomness.
    ``noise_seed``: of noise and samples, for experiments: not private.
    ``start``: parameters to start from, made of public things alone; default: zeros.
    ``bounds``: of numbers that are predicted, public; None: classes are. Records then hold, in place of class
        numbers, targets that were brought from these bounds to [-1, 1].
    ``columns``: what features are, where records come as they are seen; None: what the preprocessing says.
    ``public_targets`` (n_public,): of public records, as the loss takes them, NaN where unknown: trees may
        learn from them, whom the model hears, and what they teach is combined with what private records did.
    """

    dpsgd: DPSGDSettings = field(default_factory=DPSGDSettings)
    preprocessing: Any = None
    seed: int = 0
    noise_seed: int | None = None
    start: Floats | None = None
    bounds: tuple[float, float] | None = None
    columns: Columns | None = None
    public_targets: NDArray[Any] | None = None

    def noise(self) -> NoisySum:
        """Make the source of privacy noise."""
        return noise_from(self.noise_seed)

    def sample(self, step: int) -> Sample:
        """Throw fresh coins for a step; of a full batch everybody is part."""
        if self.dpsgd.sampling == FULL_BATCH:
            return Sample()
        if self.noise_seed is None:
            return Sample.fresh()
        return Sample.seeded(self.noise_seed, step)


@dataclass(frozen=True, eq=False)
class Learnt:
    """What DP-SGD released, and what it cost.

    ``state``: after the last step.
    ``privacy``: budgets and spending by group.
    ``account``: what was drawn.
    """

    state: State
    privacy: PrivacyStatement
    account: DPSGDAccount


class DPSGDRun:
    """One run of direct training.

    Making it plans and checks, looks at no record and spends nothing.

    Parameters
    ----------
    recipe : DPSGDRecipe
        What to do.
    records : Records
        With what; public ones may be missing where no preprocessing needs them.
    memory : DPSGDMemory, optional
        What outlives the process; default: nothing.
    observer : Observer, optional
        Is told how it gets on.
    relation : Neighbours, optional
        What a ledger promises; default: nothing beyond the recipe.
    n_threads : int, optional
        Of the sums; their bits do not depend on it.

    Attributes
    ----------
    plan : DPSGDPlan
        From public numbers only.
    arrangement : Arrangement
        Which data sets the guarantee is about.
    n_threads : int or None
        As given.

    Raises
    ------
    InputError
        If anything that was given cannot be used.
    """

    def __init__(
        self,
        recipe: DPSGDRecipe,
        records: Records,
        memory: DPSGDMemory | None = None,
        observer: Observer | None = None,
        relation: Neighbours | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.recipe = recipe
        granted = records.budgets
        if not records.arrangement.on_ledger:  # whose groups are those that are reserved for
            records = records.regrouped(few_budgets(granted))
        self.records = records
        self.memory = DPSGDMemory() if memory is None else memory
        self.observer = Observer() if observer is None else observer
        said = said_of(granted, records.budgets)
        if said:
            self.observer.note(said)
        self.n_threads = n_threads
        self._combined: tuple[State, PublicLabels] | None = None
        self._taken: int | None = None
        settings = recipe.dpsgd
        self.plan: DPSGDPlan = planned(settings, records.budgets, relation, records.delta_0)
        self.loss: Loss = (
            CrossEntropy(len(records.classes)) if recipe.bounds is None else SquaredError()
        )
        self.terms = Terms.of(self.plan, settings.clip_norm)
        require_exact(self.terms, [group.owners for group in self.plan.groups.values()])
        self.arrangement: Arrangement = replace(
            records.arrangement,
            blanked_only=self.plan.neighbours is Neighbours.ADD_OR_REMOVE,
            seen_together=not _is_exact(recipe.preprocessing),
            direct=True,
            brought=brought_by(recipe.preprocessing),
        )
        if recipe.preprocessing is not None and records.X_public is not None:
            require_room(self.working_bytes)
        large = large_deltas(
            (name, group.owners, group.budget) for name, group in self.plan.groups.items()
        )
        if large:
            warnings.warn(large, PrivacyWarning, stacklevel=frames_to_user())
        if settings.solver == PUBLIC:
            _ = self.solver  # refused before anything is spent, where it cannot be used

    @cached_property
    def learning_rate(self) -> float:
        """Size of the steps: as asked for, or by rule, from public numbers and public records."""
        settings, rows = self.recipe.dpsgd, None
        if settings.learning_rate is None and self.records.X_public is not None:
            rows = as_rows(self.X_seen, "public records")
        width = None if rows is None else int(rows.shape[1])
        return learning_rate(settings, self.plan, self.loss, curvature(rows), width)

    @cached_property
    def solver(self) -> PublicSolver | None:
        """What makes models of gradients by way of public records; None: steps go along gradients."""
        settings, recipe = self.recipe.dpsgd, self.recipe
        descends = (settings.learning_rate, settings.individual_filter, recipe.start)
        if settings.solver not in (None, PUBLIC) or any(one is not None for one in descends):
            return None
        if settings.solver is None and signal(self.plan) < LEAST_SIGNAL:
            return None
        n_classes = len(self.records.classes) if recipe.bounds is None else None
        public = self.records.X_public
        rows = None
        if n_classes == 2 and public is not None:
            rows = as_rows(self.X_seen, "public records")
        if rows is None or not can_solve(n_classes, rows):
            if settings.solver == PUBLIC:
                raise InputError(
                    f"solver = {PUBLIC!r} is for two classes and at least {FEWEST} public records: leave "
                    "solver out"
                )
            return None
        columns = recipe.columns or Columns.of(self.view.transformer)
        one_each = not self.records.budgets.named
        return PublicSolver(rows, columns, settings.clip_norm, one_each)

    @property
    def _noise_of_gradient(self) -> float:
        return self.plan.noise * self.recipe.dpsgd.clip_norm / self.plan.divisor

    def _recall(self, state: State) -> None:
        """Let the solver know what led to a state, which another run or process may have reached."""
        if self.solver is not None:
            self.solver.recall(state, self._noise_of_gradient)

    def _stepped(self, state: State, gradient: Floats) -> State:
        settings = self.recipe.dpsgd
        if self.solver is None:
            return stepped(state, gradient, settings, self.learning_rate)
        return self.solver.stepped(state, gradient, settings.n_steps_taken, self._noise_of_gradient)

    @property
    def view(self) -> View:
        """What the model sees of records: fitted on public ones."""
        return self._fitted[0]

    @cached_property
    def _fitted(self) -> tuple[View, Any | None]:
        """The view, and public records as it shows them where it learnt from their labels."""
        recipe, records = self.recipe, self.records
        if recipe.preprocessing is None:
            return View(None), None
        if records.X_public is None:  # it needs none: the estimator has seen to that
            return View(clone(recipe.preprocessing, safe=False)), None
        n_classes = None if recipe.bounds is not None else len(records.classes)
        return public_view(
            self._preprocessing,
            records.X_public,
            recipe.public_targets,
            n_classes,
            recipe.dpsgd,
            recipe.seed,
        )

    @property
    def _preprocessing(self) -> Any:
        given, n_public = self.recipe.preprocessing, self.records.X_public.shape[0]
        return with_components(given, self.recipe.dpsgd, self.plan, n_public, self.loss.n_sides)

    @property
    def working_bytes(self) -> int:
        """Memory that it takes beside the records that are there, roughly; 0 where nobody can tell."""
        records = self.records
        if self.recipe.preprocessing is None or records.X_public is None:
            return 0
        n_private = 0 if records.X is None else records.budgets.n_records
        return working_bytes(self._preprocessing, records.X_public, n_private)

    @cached_property
    def X_seen(self) -> Any:  # noqa: N802
        """Public records as the model sees them; labelled ones as it sees those whose label nobody knows."""
        view, seen = self._fitted
        if seen is not None:
            return seen
        with one_line_about(self.view.name, "applied to the public records"):
            return view.of(self.records.X_public, self.memory.folder)

    def summands(self) -> Summands:
        """Let the private records be seen by the model. **Sensitive.**"""
        records = self.records
        blocks = blocks_of(  # what is seen is given up as soon as it is features: it takes room
            as_features(self.view.of_private(records.X, self.memory.folder), "private records"),
            records.codes,
            records.budgets.record_owner,
            self._group_of_owner(),
            self.loss.n_outputs,
        )
        if self.recipe.dpsgd.individual_filter is None:
            return InMemory(list(blocks), self.loss, self.terms, self.n_threads)
        filtered = Filtered(list(blocks), self.loss, self.terms, self.plan.steps, self.n_threads)
        filtered.restore(self.memory.sensitive_accounts(), self.memory.charged())
        return filtered

    def _group_of_owner(self) -> NDArray[np.intp]:
        """Position in the plan of each owner's group: by name."""
        budgets = self.records.budgets
        return self.plan.places_of(budgets)[budgets.owner_group]

    def start(self, n_features: int) -> State:
        """Stand at the start: zeros, or what the recipe says."""
        shape = (n_features, self.loss.n_outputs)
        given = self.recipe.start
        if given is not None and given.shape != shape:
            raise InputError(
                f"start has shape {given.shape}, and the model {shape}: leave start out"
            )
        return State.at(np.zeros(shape) if given is None else np.array(given, dtype=np.float64))

    def descend(
        self,
        summands: Summands,
        n_features: int,
        noise: NoisySum | None = None,
        stop: Callable[[State], bool] = lambda state: False,
    ) -> Learnt:
        """Take all steps: each is charged before it is drawn; a step that a crash took is not taken again.

        Parameters
        ----------
        summands : Summands
            **Sensitive.** Of the private records.
        n_features : int
            Of the model, with the constant.
        noise : NoisySum, optional
            Default: the recipe's.
        stop : callable, optional
            Whether to stop early, from released and public things alone. Saves nothing that was reserved.
        """
        settings, memory, plan = self.recipe.dpsgd, self.memory, self.plan
        noise = self.recipe.noise() if noise is None else noise
        accounts = summands if isinstance(summands, Filtered) else None
        if (accounts is None) != (settings.individual_filter is None):
            raise InputError(
                "DP-SGD with a filter keeps an account of everybody, which is done for records in memory "
                "only: leave filter out"
            )
        account = DPSGDAccount(plan, settings.n_steps_taken)
        state = memory.state() or self.start(n_features)
        account.charge(state.step if memory.takes_up else memory.charged())
        self.observer.stage("steps", settings.n_steps_taken)
        with memory.descending() as should_pause:
            while account.steps < settings.n_steps_taken and not should_pause() and not stop(state):
                # What was charged and is not kept is lost: neither its samples nor its noise come again.
                state = replace(state, step=account.steps)
                last = min(account.steps + memory.stride, settings.n_steps_taken)
                memory.charge(last)
                for step in range(state.step, last):
                    account.charge(step + 1)
                    total = summands.clipped_sum(state.parameters, self.recipe.sample(step))
                    try:
                        released = noisy(total, plan.noise, noise, step=step)
                    except SumNotOpenedError as error:
                        if not memory.takes_up:
                            raise
                        self.observer.note(str(error))
                        state = replace(state, step=step + 1)
                        memory.lose()
                        continue
                    gradient = released * (settings.clip_norm / plan.divisor)
                    state = self._stepped(state, gradient)
                    self.observer.advanced(step + 1, settings.n_steps_taken)
                    if stop(state):
                        break
                account.charge(last)
                if accounts is not None:
                    memory.keep_accounts(accounts.sensitive_state())
                memory.keep(state)
        self._taken = state.step
        if self.solver is not None:  # what was drawn since it solved last counts, too
            state = self.solver.ended(state, self._noise_of_gradient)
        privacy = account.statement(
            self.arrangement,
            noise.is_private,
        )
        return Learnt(state, privacy, account)

    def learn(self) -> Learnt:
        """See the private records, and descend."""
        return self.descend(self.summands(), self.n_parameters)

    @property
    def n_parameters(self) -> int:
        """Length of each output's parameters: the features, and the constant."""
        if self.records.X_public is not None:
            return int(self.X_seen.shape[1]) + 1
        one = take_rows(
            self.records.X, slice(0, 1)
        )  # how many features there are follows from no value
        return int(self.view.of_private(one).shape[1]) + 1

    @property
    def noise_left(self) -> float:
        """Standard deviation that the steps taken left in a score of a row of unit length; after them."""
        if self.solver is not None:
            return self.solver.noise_left
        return noise_of(self.recipe.dpsgd, self.plan, self.learning_rate, self._taken)

    @property
    def weight_of_private(self) -> float:
        """Of what the steps learnt in the model, and so of their noise: 1 but for public labels."""
        return 1.0 if self._combined is None else self._combined[1].weights[0]

    def model(self, learnt: Learnt) -> Any:
        """Make what was learnt an ordinary model, which takes records as :attr:`view` shows them."""
        self._recall(learnt.state)
        found = self.with_public_labels(learnt)
        parameters = learnt.state.parameters if found is None else found.parameters
        return linear_model(parameters, self.records.classes, self.recipe.bounds)

    def with_public_labels(self, learnt: Learnt) -> PublicLabels | None:
        """Combine what was learnt with what public labels teach; None where there are none, or not wanted."""
        if self._combined is not None and self._combined[0] is learnt.state:
            return self._combined[1]
        labelled = self._labelled() if self.recipe.dpsgd.public_labels == COMBINE else None
        if labelled is None:
            return None
        rows, targets = labelled
        self._recall(learnt.state)
        names = self.records.classes if self.recipe.bounds is None else np.empty(0)
        with threadpool_limits(1):  # so that bits do not depend on how many there are
            found = with_public_labels(
                learnt.state.parameters,
                rows,
                targets,
                names,
                self.noise_left,
                self.recipe.seed,
                of_trees(self.view),
            )
        self._combined = learnt.state, found
        return found

    def _labelled(self) -> tuple[Floats, NDArray[Any]] | None:
        """Show public records whose targets are known, also those that owners let be published.

        Returns: rows of unit length, and their targets; None where there are none.
        """
        records, targets = self.records, self.recipe.public_targets
        parts = []
        if targets is not None and not np.isnan(targets).all():
            known = np.flatnonzero(~np.isnan(targets))
            rows = as_rows(take_rows(self.X_seen, known), "public records")
            parts.append((rows, targets[known].astype(records.codes.dtype)))
        if records.given is not None:
            seen = as_rows(self.view.of(records.given.X), "public records")
            parts.append((seen, records.given.codes))
        if not sum(len(one) for _, one in parts):
            return None
        return np.concatenate([rows for rows, _ in parts]), np.concatenate(
            [one for _, one in parts]
        )


def _is_exact(preprocessing: Any) -> bool:
    """Whether no bit of a record's features depends on which other records are there."""
    if preprocessing is None:
        return True
    if isinstance(preprocessing, Pipeline):
        return all(_is_exact(step) for _, step in preprocessing.steps)
    return bool(getattr(preprocessing, "exact_by_record", False))
