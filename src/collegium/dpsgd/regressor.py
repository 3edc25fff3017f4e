"""Numbers predicted by direct training: private records and budgets in, a publishable linear model out."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score

from collegium.budgets import DEFAULT_DELTA, Budget, Budgets
from collegium.checks import check_number, check_truth, is_number, shown
from collegium.data.overlap_checks import Likeness
from collegium.dpsgd.estimator_base import AUTO, DPSGDEstimator
from collegium.dpsgd.intervals import around, fewest_records, reach, refuse_seen
from collegium.dpsgd.progress import OnStep
from collegium.dpsgd.settings import DPSGDSettings, Sampling
from collegium.errors import WHERE, InputError, RecordError, StudentWarning, frames_to_user
from collegium.index_alignment import refuse_other_order
from collegium.runs.callers import tell_of_held_out
from collegium.runs.estimator_base import checked_weights, one_each, share_to_spend
from collegium.runs.fit_inputs import given_records

if TYPE_CHECKING:
    from collegium.ledger.ledger import Ledger
    from collegium.parties.collective import Party

Floats = NDArray[np.float64]
_DEFAULT = DPSGDSettings()


class DPSGDRegressor(RegressorMixin, DPSGDEstimator):  # type: ignore[misc]
    """A regressor that is trained directly, under individual privacy budgets.

    As :class:`~collegium.DPSGDClassifier`, for numbers: targets are cut at public bounds, and the squared
    error is fitted (linear where a prediction is off by more than half of what lies between the bounds). The
    model is linear in what public records make of the columns: of a table bins and a kernel, which bend and
    cross them. Public records with known targets that are kept apart give intervals (:meth:`calibrate`).

    Parameters
    ----------
    bounds : (float, float), optional
        Public: between which targets lie. Those beyond are cut, and so are predictions. Default: the least
        and largest of ``y_public``. Never take them from private records.
    sampling, steps, clip_norm, learning_rate, components, momentum
        As of :class:`~collegium.DPSGDClassifier`.
    neighbours, delta, preprocessing, noise_seed, random_state
        As of :class:`~collegium.DPSGDClassifier`.
    n_jobs, verbose
        As of :class:`~collegium.DPSGDClassifier`.

    Attributes
    ----------
    bounds_ : (float, float)
        Between which predictions lie.
    model_ : Pipeline
        What is published: a fitted scikit-learn pipeline that takes records as they are. It does not cut.
    residuals_ : ndarray, shape (n_calibration,)
        How far predictions were off for the records of :meth:`calibrate`, ascending.
    preprocessing_, privacy_, plan_, steps_taken_, n_features_in_, feature_names_in_
        As of :class:`~collegium.DPSGDClassifier`.

    Notes
    -----
    Searches and cross-validation: as of :class:`~collegium.DPSGDClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from collegium import DPSGDRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPSGDRegressor(bounds=(0, 350), noise_seed=1)
    >>> model = model.fit(X[:300], y[:300], budgets=5.0, X_public=X[300:370])
    >>> model.privacy_.by_group()["epsilon_spent"].round(6).to_dict()
    {'ε=5': 5.0}
    >>> bool(model.score(X[370:], y[370:]) > 0.2)
    True
    """

    def __init__(
        self,
        *,
        bounds: tuple[float, float] | None = None,
        sampling: str | Sampling = _DEFAULT.sampling,
        steps: int = _DEFAULT.steps,
        clip_norm: float = _DEFAULT.clip_norm,
        learning_rate: float | None = _DEFAULT.learning_rate,
        components: int | None = _DEFAULT.components,
        momentum: float = _DEFAULT.momentum,
        neighbours: str | None = _DEFAULT.neighbours,
        delta: float = DEFAULT_DELTA,
        preprocessing: Any = AUTO,
        noise_seed: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.bounds = bounds
        self.sampling = sampling
        self.steps = steps
        self.clip_norm = clip_norm
        self.learning_rate = learning_rate
        self.components = components
        self.momentum = momentum
        self.neighbours = neighbours
        self.delta = delta
        self.preprocessing = preprocessing
        self.noise_seed = noise_seed
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        budgets: Budgets | Budget | ArrayLike,
        X_public: Any = None,
        y_public: ArrayLike | None = None,
        public_may_overlap: bool = False,
        scales_may_differ: bool = False,
        ledger: Ledger | None = None,
        spend: float | None = None,
        release_name: str = "DPSGDRegressor.fit",
        on_step: OnStep | None = None,
        parties: Party | None = None,
    ) -> DPSGDRegressor:
        """Plan, and take all steps.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_records, n_features)
            Private records.
        y : array-like, shape (n_records,)
            Their targets.
        budgets, X_public, public_may_overlap, scales_may_differ, ledger, spend, release_name, on_step
            As for :meth:`DPSGDClassifier.fit <collegium.DPSGDClassifier.fit>`.
        y_public : array-like, shape (n_public,), optional
            Targets of the public records; missing ones are allowed. A model of those that are known
            is combined with that of the private records if that is better (``public_labels_``); 200 and more
            of a table also teach trees, whose answer is one more column; and their range is what ``bounds``
            are if none are given.

        parties : Party, optional
            Take the steps over the records of several parties, which show one another none of them; all call
            this with the same settings and public records, and get the same model.

        Returns
        -------
        DPSGDRegressor

        Raises
        ------
        InputError
            If anything given cannot be used; nothing has been spent then.
        BudgetExceededError
            If nobody has anything left in the ledger.
        """
        self._forget()
        share = share_to_spend(ledger, spend)
        check_truth("public_may_overlap", public_may_overlap)
        check_truth("scales_may_differ", scales_may_differ)
        recipe = self._recipe(X_public)
        known = _public_targets(y_public, X_public)
        low, high = self.bounds_ = _checked_bounds(self.bounds, known)
        given = given_records(
            X,
            y,
            budgets,
            X_public,
            encode=partial(_encoded, low=low, high=high),
            delta=self.delta,
            private_classes=False,
            public_may_overlap=public_may_overlap,
            scales_may_differ=scales_may_differ,
            learner="the model",
        )
        if known is not None:
            known = one_each(
                known, int(given.records.X_public.shape[0]), "public records", "targets"
            )
            known = _scaled(known, low, high)
        recipe = replace(recipe, bounds=(low, high))
        self._learn(recipe, given, known, on_step, ledger, share, release_name, parties)
        public = given.records.X_public
        self._seen_public = None if public is None else Likeness(public)
        return self

    def calibrate(self, X: Any, y: ArrayLike) -> DPSGDRegressor:
        """Learn from public records how far predictions are off, for :meth:`predict_interval`.

        Costs nobody anything, since no private record is looked at. Another call replaces what was learnt.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_calibration, n_features)
            Public records that fit was not given, and that are like those to be predicted. Never private
            ones: no budget pays for what intervals would tell of them.
        y : array-like, shape (n_calibration,)
            Their targets, cut at the bounds; records whose target is missing are left out.

        Returns
        -------
        DPSGDRegressor

        Raises
        ------
        InputError
            If no target is known, lengths differ, or records were given to fit as ``X_public``.
        """
        refuse_other_order(calibration_records=X, targets=y)
        predicted = self.predict(X)
        truth = one_each(
            _as_floats(y, "y of calibrate"), len(predicted), "calibration records", "targets"
        )
        if self._seen_public is not None:
            refuse_seen(self._seen_public, self._like_fitted(X))
        residuals = np.abs(np.clip(truth, *self.bounds_) - predicted)
        residuals = np.sort(residuals[~np.isnan(truth)])
        if not residuals.size:
            raise InputError(
                f"no target is known of {len(truth):,} records to calibrate with: give public ones whose "
                "targets are known"
            )
        self.residuals_ = residuals
        return self

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Predict intervals that hold the target with a stated probability, within the bounds.

        Whatever the model: a target (cut at the bounds) is in its interval with at least the probability
        ``coverage`` if its record and those of :meth:`calibrate` are exchangeable, such as random members of
        one population. The probability is over all of these; for one calibration with n records the share of
        intervals that hold is ``coverage`` up to about √(coverage·(1 − coverage)/n). All intervals are
        equally wide, but where they are cut at the bounds: they may hold more often for some groups of
        records and less often for others.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_records, n_features)
            Any records.
        coverage : float, default=0.9
            In (0, 1). Too much for few calibration records (0.9 takes 9, 0.95 takes 19) gives the bounds,
            with a warning.

        Returns
        -------
        ndarray, shape (n_records, 2)
            Lower and upper ends.

        Raises
        ------
        InputError
            If coverage is not allowed, or :meth:`calibrate` was not called.

        References
        ----------
        V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random World* (2005). J. Lei et al.,
        *Distribution-free predictive inference for regression*, JASA 113 (2018).

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = DPSGDRegressor(bounds=(0, 350), noise_seed=1)
        >>> model = model.fit(X[:300], y[:300], budgets=5.0).calibrate(X[300:370], y[300:370])
        >>> low, high = model.predict_interval(X[370:], coverage=0.8).T
        >>> bool(((low <= y[370:]) & (y[370:] <= high)).mean() > 0.7)
        True
        """
        check_number("coverage", coverage, above=0, below=1)
        predicted = self.predict(X)
        if not hasattr(self, "residuals_"):
            raise InputError(
                "how far predictions are off is not known: call calibrate(X, y) with public records whose "
                "targets are known and that fit was not given"
            )
        if reach(self.residuals_, coverage) is None:
            warnings.warn(
                f"{len(self.residuals_):,} calibration record(s) are too few for a coverage of {coverage:g}, "
                f"which takes {fewest_records(coverage):,}: intervals are all between the bounds",
                StudentWarning,
                stacklevel=frames_to_user(),
            )
        return around(predicted, self.residuals_, coverage, self.bounds_)

    def predict(self, X: Any) -> Floats:
        """Predict numbers, within the bounds.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_records, n_features)
            Any records.

        Returns
        -------
        ndarray, shape (n_records,)
        """
        model, prepared = self._ready(X)
        return np.asarray(np.clip(model.predict(prepared), *self.bounds_))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predictions: 1 is perfect, 0 no better than always naming the mean.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_test, n_features)
            Test records.
        y : array-like, shape (n_test,)
            Their targets.
        sample_weight : array-like, shape (n_test,), optional
            Of the records.

        Raises
        ------
        InputError
            If a target is missing, there is not one target (and weight) for each record, or pandas objects
            have the same index in two orders.
        """
        refuse_other_order(test_records=X, targets=y, sample_weight=sample_weight)
        tell_of_held_out()
        predicted = self.predict(X)
        truth = one_each(_numbers(y), len(predicted), "test records", "targets")
        weights = checked_weights(sample_weight, len(predicted))
        return float(r2_score(truth, predicted, sample_weight=weights))


_LEAST_WIDTH, _MOST_WIDTH = 1e-12, 1e12


def _checked_bounds(given: Any, known: Floats | None) -> tuple[float, float]:
    if given is None:
        if known is None or np.isnan(known).all():
            raise InputError(
                "bounds are missing: give bounds=(low, high), public, or y_public with public targets"
            )
        given = (float(np.nanmin(known)), float(np.nanmax(known)))
    try:
        low, high = given
    except (TypeError, ValueError):
        raise InputError(f"bounds must be a pair (low, high), got {shown(given)}") from None
    if not (is_number(low) and is_number(high)) or not -math.inf < low < high < math.inf:
        raise InputError(f"bounds must be two finite numbers, low below high, got {shown(given)}")
    if not _LEAST_WIDTH <= float(high) - float(low) <= _MOST_WIDTH:
        raise InputError(
            f"bounds must lie between {_LEAST_WIDTH:g} and {_MOST_WIDTH:g} apart, got {shown(given)}: give "
            "targets in another unit"
        )
    return float(low), float(high)


def _numbers(y: Any) -> Floats:
    """Take targets as numbers; what is wrong is told without quoting any."""
    if y is None:
        raise InputError("targets are missing: requires y to be passed, but the target y is None")
    try:
        targets = np.asarray(y)
        if targets.dtype.kind in "cmM" or not targets.ndim:
            raise TypeError
        if targets.dtype.kind not in "buif":
            targets = pd.to_numeric(pd.Series(targets.ravel()), errors="coerce").to_numpy(
                np.float64
            )
    except (TypeError, ValueError):
        raise InputError("targets must be one column of numbers, got something else") from None
    targets = targets.astype(np.float64)
    if targets.ndim == 2 and targets.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: its one column is taken",
            DataConversionWarning,
            stacklevel=frames_to_user(),
        )
        targets = targets[:, 0]
    if targets.ndim != 1:
        raise InputError(f"targets must be one column, got shape {targets.shape}")
    missing = np.flatnonzero(~np.isfinite(targets))
    if missing.size:
        raise RecordError(
            f"{missing.size:,} record(s) whose target is no finite number, first {WHERE}: correct or drop "
            "them",
            missing[0],
        )
    return targets


def _public_targets(y_public: Any, X_public: Any) -> Floats | None:
    if y_public is None:
        return None
    if X_public is None:
        raise InputError("y_public are targets of public records: give X_public, too")
    return _as_floats(y_public, "y_public")


def _as_floats(targets: Any, name: str) -> Floats:
    """Take public targets as numbers, of which some may be missing."""
    try:
        return np.asarray(targets, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, or missing, got something else") from None


def _encoded(y: Any, low: float, high: float) -> tuple[NDArray[Any], Floats]:
    return np.empty(0), _scaled(_numbers(y), low, high)


def _scaled(targets: Floats, low: float, high: float) -> Floats:
    """Bring numbers between the bounds to [-1, 1], and cut the others."""
    middle = low + (high - low) / 2
    return np.clip((targets - middle) / ((high - low) / 2), -1.0, 1.0)
