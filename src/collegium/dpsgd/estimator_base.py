"""What the estimators of direct training share: settings, a plan, and DP-SGD from start to end."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget, Budgets, as_budgets
from collegium.checks import shown
from collegium.data.record_kinds import kind_of_records
from collegium.data.tables import as_records
from collegium.dpsgd.account import DPSGDAccount
from collegium.dpsgd.between_parties import for_parties, together
from collegium.dpsgd.by_rule import USUAL_VIEW, few_public, mostly_noise, with_components
from collegium.dpsgd.footprint import GIGABYTE, PROGRAM, bytes_of, require_room, working_bytes
from collegium.dpsgd.linear_model import as_rows, linear_model
from collegium.dpsgd.memory import DPSGDMemory
from collegium.dpsgd.optimiser import State
from collegium.dpsgd.progress import Lines, OnStep, Watch
from collegium.dpsgd.public_labels import PublicLabels
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun, planned
from collegium.dpsgd.settings import (
    FULL_BATCH,
    MOST_COMPONENTS,
    SAMPLE,
    DPSGDSettings,
    Sampling,
)
from collegium.dpsgd.steadiness import Steadiness, too_large_for_noise
from collegium.errors import InputError, StudentWarning, frames_to_user
from collegium.models.catalogue import build_preprocessing
from collegium.noise.sums import NoisySum
from collegium.parameters import settings_of
from collegium.personalisation.bins import few_budgets
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.runs.callers import needs_no_records, with_what_called
from collegium.runs.estimator_base import (
    Face,
    check_running,
    seed_of,
    share_to_spend,
    tell_of_fits_before,
)
from collegium.runs.fit_inputs import FitInputs
from collegium.runs.views import View
from collegium.zero_and_public_budgets import has_budget, split_by_level, subset

if TYPE_CHECKING:
    from collegium.dpsgd.ledgered import DPSGDSpending
    from collegium.ledger.allowance import Entry
    from collegium.ledger.balances import Balance
    from collegium.ledger.ledger import Ledger
    from collegium.parties.collective import Party

Floats = NDArray[np.float64]
Answering = Callable[[Any], Any]
AUTO = "auto"


class DPSGDEstimator(Face):
    """An estimator that is trained directly; a base for those of this package."""

    _fitted = "model_"
    sampling: str | Sampling
    preprocessing: Any
    noise_seed: int | None
    random_state: Any
    delta: float
    n_jobs: int | None
    verbose: int

    def plan(
        self,
        budgets: Budgets | Budget | ArrayLike,
        *,
        n_records: int | None = None,
        X_public: Any = None,
        ledger: Ledger | None = None,
        spend: float | None = None,
    ) -> DPSGDPlan:
        """Plan a fit: what each group's budget buys. Looks at no record and spends nothing.

        Parameters
        ----------
        budgets : Budgets, array-like of float of shape (n_records,), float or Budget
            As for :meth:`fit`.
        n_records : int, optional
            How many records there are, where everybody has the same budget; each counts as an owner.
        X_public : array-like or DataFrame, shape (n_public, n_features), optional
            Public records, as for :meth:`fit`: the plan then says what memory that takes.
        ledger : Ledger, optional
            Plan with what it has left of these budgets.
        spend : float, optional
            As for :meth:`fit`.

        Returns
        -------
        DPSGDPlan
            ``print`` shows it as a table.

        Raises
        ------
        InputError
            If settings or budgets cannot be used, so many steps cannot be afforded, or a fit takes more
            memory than is free.
        """
        share = share_to_spend(ledger, spend)
        granted = as_budgets(budgets, self.delta, n_records)
        granted = subset(granted, has_budget(granted, _silent))
        granted = split_by_level(granted, _silent).budgets
        recipe = DPSGDRecipe(self._descent(), noise_seed=self.noise_seed)
        if ledger is None:
            made = planned(recipe.dpsgd, few_budgets(granted))
        else:
            relation, spending = _on_ledger(ledger, ledger.left(granted), recipe, granted, share)
            made = planned(recipe.dpsgd, spending.budgets, relation, spending.allowance.delta_0)
        if X_public is None:
            return made
        return replace(made, gigabytes=self._gigabytes(made, X_public, granted.n_records))

    def _gigabytes(self, plan: DPSGDPlan, X_public: Any, n_private: int) -> float:
        """Tell what memory a fit takes with records like the public ones; refuse it if that is not free."""
        recipe, public = self._recipe(X_public), as_records(X_public, "public")
        seen = with_components(recipe.preprocessing, recipe.dpsgd, plan, public.shape[0])
        records = bytes_of(public) * n_private // public.shape[0]
        needed = records + working_bytes(seen, public, n_private)
        require_room(needed)
        return float((PROGRAM + bytes_of(public) + records + needed) / GIGABYTE)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def _setting(self, name: str, given: Any = None) -> Any:
        found = super()._setting(name, given)
        return Sampling(found) if name == "sampling" and isinstance(found, str) else found

    def _descent(self) -> DPSGDSettings:
        """Check the settings of DP-SGD, which are parameters of the same names."""
        names = [name for name in settings_of(DPSGDSettings) if hasattr(self, name)]
        given = {name: getattr(self, name) for name in names}
        if isinstance(self.sampling, Sampling):
            given |= self.sampling.settings()
        elif not isinstance(self.sampling, str):
            raise InputError(
                f"sampling must be a word such as {FULL_BATCH!r}, or one such as "
                f"Sampling({SAMPLE!r}, rate=0.1), got {shown(self.sampling)}"
            )
        try:
            return DPSGDSettings(**given)
        except InputError as error:
            raise InputError(str(error).removeprefix(f"{DPSGDSettings.section}.")) from None

    def _recipe(self, X_public: Any) -> DPSGDRecipe:
        """Check every setting, whatever the records are."""
        dpsgd = self._descent()
        check_running(self)
        preprocessing = self.preprocessing
        if isinstance(preprocessing, str) and preprocessing != AUTO:
            raise InputError(
                f"preprocessing must be 'auto', None or a transformer, got {shown(preprocessing)}"
            )
        if X_public is None:
            if isinstance(preprocessing, str):
                preprocessing = None
            elif preprocessing is not None and not needs_no_records(preprocessing):
                raise InputError(
                    f"preprocessing ({type(preprocessing).__name__}) is fitted on public records, and there "
                    "are none: give X_public, or leave preprocessing out"
                )
        elif isinstance(preprocessing, str):
            preprocessing = usual_preprocessing(X_public)
        return DPSGDRecipe(
            dpsgd, preprocessing, seed_of(self.random_state), noise_seed=self.noise_seed
        )

    def _learn(
        self,
        recipe: DPSGDRecipe,
        given: FitInputs,
        y_public: NDArray[Any] | None,
        on_step: OnStep | None,
        ledger: Ledger | None,
        share: float,
        release_name: str,
        parties: Party | None = None,
    ) -> DPSGDRun:
        """Descend, and remember what may be published.

        ``share``: of what people have left in the ledger.
        ``y_public`` (n_public,): targets of public records, as the loss takes them; NaN where unknown.
        """
        if on_step is not None and not callable(on_step):
            raise InputError(
                f"on_step must be a function that is told of each step, got {shown(on_step)}"
            )
        if parties is not None:
            recipe = for_parties(recipe, on_step)
        self._remember(given)
        recipe = replace(recipe, public_targets=y_public)
        records, spending, relation = given.records, None, None
        if ledger is not None:
            if records.made_public is not None and len(records.made_public):
                ledger.refuse_published(records.made_public)
            left = ledger.left(records.budgets)
            relation, spending = _on_ledger(ledger, left, recipe, records.budgets, share)
            records = records.allowed(spending)
        noise: NoisySum | None = None
        if parties is not None:
            records, release = together(records, recipe, y_public, relation, parties, release_name)
            noise = release.noise
        memory, observer = _InProcess(), Lines(int(self.verbose))
        run = DPSGDRun(recipe, records, memory, observer, relation, _threads(self.n_jobs))
        self.plan_ = run.plan
        self.preprocessing_ = run.view.transformer
        self._rehearse(run)
        if recipe.preprocessing is not None and records.X_public is not None:
            warn_user(few_public(records.X_public))
        warn_user(mostly_noise(run.plan, run.loss))
        warn_user(too_large_for_noise(recipe.dpsgd, run.plan, run.learning_rate, run.loss))
        if recipe.noise_seed is None:
            tell_of_fits_before(run.records, ledger is None)
        # Whoever keeps a told progress keeps this, too: of the run, only what is published is in it.
        answering = self._answering(run)
        published = partial(_published, run.view, records.classes, recipe.bounds, answering)

        def drawn() -> tuple[DPSGDAccount]:
            account = DPSGDAccount(run.plan, recipe.dpsgd.n_steps_taken)
            account.charge(memory.steps)
            return (account,)

        remembered: AbstractContextManager[Entry | None] = nullcontext()
        if spending is not None and ledger is not None:
            remembered = spending.reserved(
                ledger,
                release_name,
                spending.at_most(run.plan),
                run.arrangement,
                allow_new_people=True,  # all who are offered were asked about when they were looked up
                drawn=drawn,
            )
        with remembered as entry:
            steadiness = Steadiness(recipe.dpsgd, run.plan, run.loss)
            watch = Watch(run.plan, published, on_step, steadiness, recipe.dpsgd.n_steps_taken)
            summands = run.summands()
            if entry is not None:
                entry.draws()
            learnt = run.descend(summands, run.n_parameters, noise, watch)
            if entry is not None:
                entry.settle(learnt.account)
        warn_user(steadiness.complaint(run.learning_rate))
        self.privacy_: PrivacyStatement = with_what_called(learnt.privacy)
        self.steps_taken_: int = learnt.account.steps
        self.public_labels_: PublicLabels | None = run.with_public_labels(learnt)
        self.noise_ = run.noise_left * run.weight_of_private
        for line in () if self.public_labels_ is None else self.public_labels_.to_tell:
            warn_user(line)
        self.model_ = run.view.published(answering(run.model(learnt)))
        return run

    def _rehearse(self, run: DPSGDRun) -> None:
        """Try on public records what comes after the steps, before anything is spent."""

    def _answering(self, run: DPSGDRun) -> Answering:
        """Tell how a model is to answer."""
        return _as_it_is

    def _ready(self, X: Any) -> tuple[Any, Any]:
        """Give what is published, and records as it takes them."""
        records = self._like_fitted(X)
        return self._ready_for(View(self.preprocessing_).of(records))

    def _ready_for(self, seen: Any) -> tuple[Any, Any]:
        """Give what is published, and records, shown by the preprocessing, as it takes them."""
        return self._last(self.model_), as_rows(seen, "records")

    def _last(self, published: Any) -> Any:
        return published if self.preprocessing_ is None else published[-1]


def _on_ledger(
    ledger: Ledger, left: Balance, recipe: DPSGDRecipe, people: Budgets, share: float
) -> tuple[Neighbours, DPSGDSpending]:
    """Find out what a ledger allows."""
    from collegium.dpsgd.ledgered import (  # a database comes with it
        DPSGDSpending,
        allow,
        relation_of,
    )

    relation = relation_of(ledger, recipe.dpsgd)
    allowance = allow(left, recipe.noise_seed, people).part(share)
    return relation, DPSGDSpending(people, allowance)


def _published(
    view: View,
    classes: NDArray[Any],
    bounds: tuple[float, float] | None,
    answering: Answering,
    state: State,
) -> Any:
    return view.published(answering(linear_model(state.parameters, classes, bounds)))


def _as_it_is(model: Any) -> Any:
    return model


class _InProcess(DPSGDMemory):
    """Knows how many steps were charged; forgets everything with the process."""

    stride = 1

    def __init__(self) -> None:
        self.steps = 0

    def charge(self, steps: int) -> None:
        self.steps = steps


def usual_preprocessing(X_public: Any) -> Any:
    """Choose what shows records to a linear model, where public ones are there to fit it."""
    public = X_public if isinstance(X_public, pd.DataFrame) else as_records(X_public, "public")
    return build_preprocessing(
        USUAL_VIEW[kind_of_records(public)],
        categorical="ordinal",
        components=MOST_COMPONENTS,
        random_state=0,
    )


def warn_user(line: str) -> None:
    """Warn of what became of a model; an empty line says nothing."""
    if line:
        warnings.warn(line, StudentWarning, stacklevel=frames_to_user())


def _silent(line: str) -> None:
    """Say nothing: a plan alone uses no record."""


def _threads(n_jobs: int | None) -> int | None:
    if n_jobs is None or n_jobs > 0:
        return n_jobs
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs)
