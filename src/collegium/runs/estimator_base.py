"""What estimators of every method share: scikit-learn's manners, and what is checked before a fit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_number, check_whole, exact_floats, is_whole, listed, shown
from collegium.data.column_types import ColumnTypes
from collegium.data.tables import as_records
from collegium.distillation.goal import ACCURACY, AUC, BALANCED
from collegium.errors import InputError, StudentWarning, frames_to_user
from collegium.evaluation.quality import (
    HELD_OUT,
    TEST,
    Quality,
    beliefs_about,
    beside_the_list,
    measure_quality,
)
from collegium.index_alignment import refuse_other_order
from collegium.ledger.limits import HALF
from collegium.ledger.places import NONE, VARIABLE, is_unwanted
from collegium.parameters import Searchable
from collegium.runs.callers import fits_often, tell_of_held_out
from collegium.runs.fit_inputs import FitInputs
from collegium.runs.records import Records
from collegium.runs.repeated_fits import anything_before, fits_before, hashes_of, note_fit
from collegium.runs.user_warnings import Warner


class Face(BaseEstimator):  # type: ignore[misc]
    """What estimators remember of the records they were fitted to, and how they look at others."""

    _fitted: ClassVar[str]  # the attribute that holds what was learnt
    _column_types: ColumnTypes | None

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of frozen settings by ``name__field``, such as ``queries__max_labels``."""
        inner: dict[str, dict[str, Any]] = {}
        for key in [key for key in params if "__" in key]:
            name, _, field = key.partition("__")
            if isinstance(self._setting(name, params.get(name)), Searchable):
                inner.setdefault(name, {})[field] = params.pop(key)
        super().set_params(**params)
        for name, changes in inner.items():
            current = self._setting(name)
            unknown = sorted(set(changes) - set(current.get_params()))
            if unknown:
                raise InputError(
                    f"{name} ({type(current).__name__}) has no parameter {unknown[0]!r}: allowed are "
                    f"{', '.join(current.get_params())}"
                )
            setattr(self, name, replace(current, **changes))
        return self

    def _setting(self, name: str, given: Any = None) -> Any:
        """Tell what a parameter stands for: itself, or an object that its name or default means."""
        return getattr(self, name, None) if given is None else given

    def _ready(self, X: Any) -> tuple[Any, Any]:
        """Give what predicts, and the records as that sees them."""
        raise NotImplementedError

    def _remember(self, given: FitInputs) -> None:
        self._column_types = given.types
        self.n_features_in_ = given.n_features
        self._of_each = tuple(int(size) for size in given.records.X.shape[1:])
        if given.feature_names is not None:
            self.feature_names_in_ = given.feature_names

    def _like_fitted(self, X: Any) -> Any:
        """Take new records with the columns and types of those that were given to fit."""
        check_is_fitted(self, self._fitted)
        records = as_records(X, "new")
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(records, "columns"):
            records = _in_order(records, names)
        if len(self._of_each) > 1:
            self._require_shape(records)
        elif records.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {records.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        if names is None and hasattr(records, "columns"):
            self._tell_of_names("X has feature names, but {} was fitted without feature names")
            records = records.to_numpy()
        elif names is not None and not hasattr(records, "columns"):
            self._tell_of_names(
                "X does not have valid feature names, but {} was fitted with feature names: its columns are "
                "taken in the order of those of fit"
            )
            if isinstance(records, np.ndarray):
                records = pd.DataFrame(records, columns=list(names))
        if self._column_types is not None and hasattr(records, "columns"):
            records = self._column_types.applied(records, "new", tell=False)
        return records

    def _require_shape(self, images: Any) -> None:
        """Refuse images of another size; whether they are flattened is the view's to judge."""
        given = tuple(int(size) for size in images.shape[1:])
        if np.prod(given) != np.prod(self._of_each):
            raise InputError(
                f"X has records of shape {given}, and the model was fitted to records of shape "
                f"{self._of_each}: bring them to that size"
            )

    def _tell_of_names(self, line: str) -> None:
        """Warn as scikit-learn does, and in its class of warnings."""
        warnings.warn(line.format(type(self).__name__), UserWarning, stacklevel=frames_to_user())

    def _forget(self) -> None:
        """Drop what an earlier fit learnt: a refit that fails must leave no model of other data."""
        for name in [
            name for name in vars(self) if name.endswith("_") and not name.startswith("_")
        ]:
            delattr(self, name)


def _in_order(table: pd.DataFrame, names: NDArray[Any]) -> pd.DataFrame:
    """Bring the columns of a table into the order of the fit; refuse a table that has others."""
    lacking = [name for name in names if name not in table.columns]
    unseen = [name for name in table.columns if name not in set(names)]
    if lacking or unseen:
        what = [f"lacks {listed(lacking)}"] * bool(lacking)
        what += [f"also has {listed(unseen)}"] * bool(unseen)
        raise InputError(
            f"the feature names should match those that were passed during fit: X {' and '.join(what)}"
        )
    return table[list(names)]


class ClassifierFace(ClassifierMixin, Face):  # type: ignore[misc]
    """A classifier that knows how good it is beside one that always gives the same answer."""

    classes_: NDArray[Any]
    goal: str

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_records, n_features)
            Any records.

        Returns
        -------
        ndarray, shape (n_records,)
            Class labels.
        """
        model, prepared = self._ready(X)
        return np.asarray(model.predict(prepared))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of right answers; warns where always naming the most frequent class would do as well.

        Classes that are not on the list count as wrong, and are warned of.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_test, n_features)
            Test records.
        y : array-like, shape (n_test,)
            Their classes.
        sample_weight : array-like, shape (n_test,), optional
            Of the records, in the share; the warning counts every record alike.

        Returns
        -------
        float

        Raises
        ------
        InputError
            If a class is missing, there is not one class (and weight) for each record, or pandas objects
            have the same index in two orders.
        """
        refuse_other_order(test_records=X, classes=y, sample_weight=sample_weight)
        model, prepared = self._ready(X)
        predicted = np.asarray(model.predict(prepared))
        truth = one_each(y, len(predicted), "test records", "classes")
        weights = checked_weights(sample_weight, len(truth))
        missing = int(np.count_nonzero(pd.isna(truth)))
        if missing:
            raise InputError(
                f"{missing:,} of {len(truth):,} test records have no class: drop them, or ask quality(X, y), "
                "which leaves them out"
            )
        self._tell_of_other_classes(y)
        beliefs = beliefs_about(model, prepared, self.classes_) if self.goal == AUC else None
        measured_on = HELD_OUT if tell_of_held_out() else TEST
        found = measure_quality(self.classes_, y, predicted, beliefs, measured_on, self.goal)
        if found is not None and found.tone == "caution":
            warn_of_quality(self._worded(found))
        return float(accuracy_score(y, predicted, sample_weight=weights))

    def quality(self, X: Any, y: ArrayLike) -> Quality:
        """Judge the model by test records: beside always giving one answer.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_test, n_features)
            Public test records.
        y : array-like, shape (n_test,)
            Their classes; records whose class is missing are left out.

        Returns
        -------
        Quality
            ``verdict``, ``better``, accuracy beside the most frequent class, balanced accuracy, ROC AUC and
            calibration; see :mod:`collegium.evaluation.quality`.

        Raises
        ------
        InputError
            If lengths do not fit, no class is known, or pandas objects have the same index in two orders.
        """
        check_is_fitted(self, self._fitted)
        refuse_other_order(test_records=X, classes=y)
        truth = one_each(y, int(as_records(X, "new").shape[0]), "test records", "classes")
        model, prepared = self._ready(X)
        beliefs = beliefs_about(model, prepared, self.classes_)
        self._tell_of_other_classes(truth)
        found = measure_quality(
            self.classes_, truth, model.predict(prepared), beliefs, goal=self.goal
        )
        if found is None:
            raise InputError("the class of every test record is missing: nothing can be measured")
        return self._worded(found)

    def _worded(self, found: Quality) -> Quality:
        """Speak of what predicts as it is called."""
        return found

    def _tell_of_other_classes(self, truth: ArrayLike) -> None:
        strange = beside_the_list(self.classes_, truth)
        if strange:
            warnings.warn(strange, StudentWarning, stacklevel=3)


def warn_of_quality(found: Quality) -> None:
    """Say that a model is no better than one that always gives the same answer, or looks like one."""
    line = f"{found.verdict}. {found.reason}"
    if found.goal == ACCURACY and (found.names_one_class or found.tells_apart):
        line += (
            f" Where a rare class matters as much as a frequent one, fit with goal={BALANCED!r}."
        )
    warnings.warn(line, StudentWarning, stacklevel=frames_to_user())


def one_each(given: ArrayLike, n_records: int, records: str, what: str) -> NDArray[Any]:
    """Take one thing for each record."""
    column = np.asarray(given)
    if column.shape != (n_records,):
        have = str(len(column)) if column.ndim == 1 else f"an array of shape {column.shape} of"
        raise InputError(f"{n_records} {records}, but {have} {what}: give one per record")
    return column


def checked_weights(sample_weight: Any, n_records: int) -> NDArray[np.float64] | None:
    """Take one weight for each test record; None: they count alike."""
    if sample_weight is None:
        return None
    weights = exact_floats(one_each(sample_weight, n_records, "test records", "weights"))
    if weights is None or not (np.isfinite(weights).all() and weights.min() >= 0 < weights.max()):
        raise InputError(
            "sample_weight must be finite numbers of at least 0, not all of them 0: give one per record"
        )
    return weights


def share_to_spend(ledger: Any, spend: float | None) -> float:
    """Say which share of what a ledger has left a fit takes; half, if nothing is said.

    Raises InputError for what is no ledger (a path, say), and for a share of no ledger.
    """
    if ledger is not None and not hasattr(ledger, "reserve"):
        raise InputError(
            f"ledger must be a collegium.Ledger, got {shown(ledger)}: open it with Ledger(url)"
        )
    if ledger is not None and fits_often():
        raise InputError(
            "a search or cross-validation fits many times, and every fit with a ledger spends what people "
            "have left there, for good: search without the ledger (on public records, or with noise_seed, "
            "keeping what comes out to yourself), then fit once with it"
        )
    if spend is None:
        return HALF
    if ledger is None:
        raise InputError(
            "spend is a share of what people have left in a ledger: give the ledger, or leave spend out"
        )
    check_number("spend", spend, above=0, most=1)
    return float(spend)


def tell_of_fits_before(records: Records | pd.DataFrame, without_ledger: bool) -> None:
    """Say that an earlier fit spent these people's budgets, too; remember that this one does.

    ``records``: of a run, or a table of rows as they are read.
    """
    hashes = hashes_of(records)
    before = fits_before(hashes)
    if without_ledger and not anything_before() and not is_unwanted():
        Warner().note(
            "nobody remembers what this fit spends, and the next one spends it anew: give ledger=, or set "
            f"{VARIABLE}={NONE}"
        )
    note_fit(hashes)
    if before and without_ledger:
        Warner().note(
            f"these people's budgets were spent {before + 1} times in this process, with this fit: each is a "
            "release of its own, what each person granted holds for one of them, and for all together what "
            "they spent adds up (searches and cross-validation fit often)"
        )


def check_running(model: Any, elsewhere: type | tuple[type, ...] = ()) -> None:
    """Refuse settings that every estimator has of how it runs: ``noise_seed``, ``n_jobs``, ``verbose``.

    ``elsewhere``: types of ``n_jobs`` that say where it runs, which are not looked at here.
    """
    if model.noise_seed is not None:
        check_whole("noise_seed", model.noise_seed, least=0)
    n_jobs, verbose = model.n_jobs, model.verbose
    is_number = n_jobs is None or (is_whole(n_jobs) and n_jobs != 0)
    if not is_number and not isinstance(n_jobs, elsewhere):
        raise InputError(
            "n_jobs must be a whole number of at least 1, -1 for all cores, or None, got "
            f"{shown(n_jobs)}"
        )
    if not isinstance(verbose, (bool, np.bool_)):
        check_whole("verbose", verbose, least=0)


def seed_of(random_state: Any) -> int:
    """Take a number as it is, and draw one from anything else."""
    try:
        generator = check_random_state(random_state)
    except (ValueError, TypeError):
        raise InputError(
            "random_state must be None, a whole number from 0 to 4294967295 or a "
            f"numpy.random.RandomState, got {shown(random_state)}"
        ) from None
    return int(random_state) if is_whole(random_state) else int(generator.randint(2**31 - 1))
