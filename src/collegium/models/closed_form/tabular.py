"""Teachers for tables: Gaussian processes in closed form, averaged by how well each leaves one out.

A teacher sees some hundred records, too few to choose a model by hand and few enough to solve several
exactly. For each kernel (lines and bumps of three widths, on two weightings of the columns) one
eigendecomposition of the shard's kernel matrix gives the regression on class indicators for every amount
of smoothing, and what each of them predicts for every record when that record is left out. Predictions
are averaged with weights that fall with that error. All of it is linear in the end, so a trained teacher
holds one matrix of coefficients per kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from collegium.checks import check_choice, check_number
from collegium.errors import InputError, ModelError
from collegium.models.batched import Shard
from collegium.models.closed_form.kernel_regression import (
    LEVEL,
    KernelFit,
    bumps_of,
    regress,
    squared_distances,
)
from collegium.models.threads import in_threads

Floats = NDArray[np.float64]
_ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class _Weighting:
    """One weighting of the columns, and what was learnt with it."""

    weights: Floats  # of the columns, shape (n_features,)
    anchors: NDArray[np.float32]  # weighted records, shape (n_anchors, n_features)
    slopes: NDArray[np.float32]  # of the linear kernel, shape (n_features, n_present)
    coefficients: list[NDArray[np.float32]]  # one per width, shape (n_anchors, n_present)


@dataclass(frozen=True)
class TabularModel:
    """The teacher of one shard; ``predict`` returns class numbers. Holds records: **sensitive**.

    ``centre`` (n_features,): mean of the shard.
    ``rotation`` (n_features, n_coordinates): from centred columns to coordinates
        (``scale="shard"``).
    ``views``: what was learnt, by weighting of the columns.
    ``level`` (n_present,): constant of each class.
    ``present`` (n_present,): class numbers that occur in the shard.
    ``widths``: of the bumps.
    """

    centre: Floats
    rotation: Floats | None
    views: list[_Weighting]
    level: Floats
    present: NDArray[np.intp]
    widths: tuple[float, ...]

    def scores(self, X: Any) -> Floats:
        """Predict the indicator of each class that the shard shows, shape (n_records, n_present)."""
        records = _matrix(X, "the records to predict")
        if records.shape[1] != len(self.centre):
            raise InputError(
                f"records with {records.shape[1]} features were given; allowed are the "
                f"{len(self.centre)} that the model was trained on; encode them alike"
            )
        scores = np.tile(self.level, (len(records), 1))
        for first in range(0, len(records), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            placed = records[rows] - self.centre
            if self.rotation is not None:
                placed = placed @ self.rotation
            for view in self.views:
                weighted = (placed * view.weights).astype(np.float32)
                scores[rows] += weighted @ view.slopes
                bumps = bumps_of(squared_distances(weighted, view.anchors), self.widths)
                for bump, coefficients in zip(bumps, view.coefficients, strict=True):
                    scores[rows] += bump @ coefficients
        return scores

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the class number of each record, shape (n_records,)."""
        winners: NDArray[np.intp] = self.present[self.scores(X).argmax(axis=1)]
        return winners


class TabularTeachers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify tables from few records, in closed form; many teachers at once.

    Best on :class:`~collegium.models.preprocessing.PrincipalTable` coordinates, which public records order by
    importance. Works on any matrix of numbers; for columns in units of their own, such as those of
    :class:`~collegium.models.preprocessing.TabularEncoder`, use ``scale="shard"``.

    Parameters
    ----------
    scale : {"given", "shard"}, default="given"
        ``"given"``: columns count as much as they vary. ``"shard"``: columns are standardised and turned
        to principal axes within the shard first.
    powers : sequence of float, default=(1.0, 2.0)
        Weightings of the columns: power p makes a column of deviation s within the shard one of
        deviation s^p. 2 trusts the leading coordinates more.
    widths : sequence of float, default=(0.5, 1.0, 2.0)
        Widths of the bumps exp(−d² / (2 width²)), where records lie 1 from the shard's centre in root
        mean square.
    amplitudes : sequence of float, default=(0.1, 0.32, 1, 3.2, 10, 32, 100, 316)
        Prior variances of the function, in units of the noise. Larger ones smooth less.
    temper : float, default=4.0
        A model's weight is its mean squared error of leaving one record out to the power −n / (2
        ``temper``), n records. 1 trusts that error most; larger values average more evenly.
    boldness : float, default=3.0
        After amplitudes were weighed, functions get so many times the prior variance. 1 makes each
        teacher as right as it can be; a larger value makes teachers differ more and their majority, which
        averages the differences out, more often right.
    max_anchors : int, default=1000
        Shards with more records represent functions by so many of them, drawn by ``random_state``; all
        records are learnt from.
    random_state : int, default=0
        Public seed of that draw.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes that :meth:`fit` saw.
    n_features_in_ : int
        Number of columns.
    teachers_at_once : int
        Teachers per batch, see :class:`~collegium.models.batched.BatchedEstimator`.

    Notes
    -----
    Everything is computed from one shard: centre, deviations, kernels and weights of the models. How
    the defaults were chosen, Adult among the data, stands in ``docs/results/pate.md``.

    Time per shard of n records, with w = widths + 1 kernels per power: O(w n³) to train,
    O(w n) per record to predict (n at most ``max_anchors``).

    References
    ----------
    Rasmussen & Williams (2006), *Gaussian Processes for Machine Learning*, §6.5 (least-squares
    classification) and eq. 5.12 (leaving one out in closed form). Rifkin & Klautau (2004), *In defense of
    one-vs-all classification*, JMLR 5. Williams & Seeger (2001), *Using the Nyström method to speed up
    kernel machines*, NIPS 13 (more than ``max_anchors`` records).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = TabularTeachers(scale="shard").fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    teachers_at_once: int = 32
    exact_together: ClassVar[bool] = True  # each shard by itself, on one thread

    def __init__(
        self,
        scale: Literal["given", "shard"] = "given",
        powers: Sequence[float] = (1.0, 2.0),
        widths: Sequence[float] = (0.5, 1.0, 2.0),
        amplitudes: Sequence[float] = (0.1, 0.32, 1.0, 3.2, 10.0, 32.0, 100.0, 316.0),
        temper: float = 4.0,
        boldness: float = 3.0,
        max_anchors: int = 1000,
        random_state: int = 0,
    ) -> None:
        self.scale = scale
        self.powers = powers
        self.widths = widths
        self.amplitudes = amplitudes
        self.temper = temper
        self.boldness = boldness
        self.max_anchors = max_anchors
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on one set of records.

        Parameters
        ----------
        X : array-like of shape (n_records, n_features)
            Finite numbers.
        y : array-like of shape (n_records,)
            Labels of any kind.

        Returns
        -------
        TabularTeachers
            Itself.

        Raises
        ------
        InputError
            If a setting is not allowed.
        ModelError
            If records are no finite numbers, or not as many as labels.
        """
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        seed = 0 if self.random_state is None else int(self.random_state)
        self.sensitive_model_ = self.fit_shards([(X, codes)], [seed], len(self.classes_))[0]
        self.n_features_in_ = len(self.sensitive_model_.centre)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of each record, shape (n_records,)."""
        check_is_fitted(self)
        predicted: NDArray[Any] = self.classes_[self.sensitive_model_.predict(X)]
        return predicted

    def predict_proba(self, X: Any) -> Floats:
        """Return estimates of the classes' probabilities, shape (n_records, n_classes).

        They are the predicted indicators, clipped to [0, 1] and divided by their sum.
        """
        check_is_fitted(self)
        scores = np.clip(self.sensitive_model_.scores(X), 1e-6, 1.0)
        shares: Floats = scores / scores.sum(axis=1, keepdims=True)
        return shares

    def fit_shards(
        self, shards: Sequence[Shard], seeds: Sequence[int], n_classes: int
    ) -> list[TabularModel]:
        """Train one model per shard, see :class:`~collegium.models.batched.BatchedEstimator`."""
        self._check_settings()

        def train(given: tuple[Shard, int]) -> TabularModel:
            (X, y), seed = given
            return self._fit_shard(_matrix(X, "a shard"), np.asarray(y), seed)

        return in_threads(train, zip(shards, seeds, strict=True))

    def predict_shards(
        self, models: Sequence[TabularModel], X_public: Any
    ) -> list[NDArray[np.intp]]:
        """Ask models about the same records, see :class:`~collegium.models.batched.BatchedEstimator`."""
        records = _matrix(X_public, "the public records")
        return in_threads(lambda model: model.predict(records), models)

    def believe_shards(self, models: Sequence[TabularModel], X_public: Any) -> list[Floats]:
        """Estimate the probabilities of the classes of each shard, shape (n_public, n_present) each."""
        records = _matrix(X_public, "the public records")
        return in_threads(lambda model: model.scores(records), models)

    def _check_settings(self) -> None:
        check_choice("scale", self.scale, ("given", "shard"), ModelError)
        for name in ("powers", "widths", "amplitudes"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or values.size == 0 or not ((values > 0) & (values < np.inf)).all():
                raise ModelError(
                    f"{name}={getattr(self, name)!r} was given; allowed are positive numbers, at least "
                    "one; leave it out for the default"
                )
        for name, least in (("temper", 1e-6), ("boldness", 1e-6), ("max_anchors", 2)):
            check_number(name, getattr(self, name), least=least, below=np.inf, error=ModelError)

    def _fit_shard(self, X: Floats, codes: NDArray[Any], seed: int) -> TabularModel:
        if len(X) != len(codes) or len(X) == 0:
            raise ModelError(
                f"a shard has {len(X)} records and {len(codes)} labels; allowed is one label for each of "
                "at least one record; check how the records were split"
            )
        present, positions = np.unique(codes, return_inverse=True)
        indicators = np.eye(len(present))[positions]
        centre = X.mean(axis=0)
        placed, rotation = X - centre, None
        # A constant column is one whose differences are rounding of its own values.
        placed[:, placed.std(axis=0) <= 1e-12 * np.abs(X).max(axis=0)] = 0.0
        if self.scale == "shard":
            rotation = _principal_axes(placed)
            placed = placed @ rotation
        chosen = np.arange(len(X))
        if len(X) > self.max_anchors:
            generator = np.random.default_rng(seed)
            chosen = np.sort(generator.choice(len(X), int(self.max_anchors), replace=False))
        fits = []
        views = [_weighted(placed, power) for power in self.powers]
        for _, records in views:
            fits += self._fit_kernels(records, chosen, indicators)
        # Weights of all models of all kernels, by their errors of leaving one out.
        errors = np.concatenate([fit.errors for fit in fits])
        logs = -len(X) / (2.0 * self.temper) * np.log(np.maximum(errors, 1e-12))
        shares = np.exp(logs - logs.max()).reshape(len(fits), -1)
        shares /= shares.sum()
        return self._assemble(centre, rotation, views, chosen, fits, shares, present)

    def _fit_kernels(
        self, records: Floats, chosen: NDArray[np.intp], indicators: Floats
    ) -> list[KernelFit]:
        """Regress on indicators with the linear kernel and with bumps of every width."""
        anchors = records[chosen]
        kernels = [records @ anchors.T, *bumps_of(squared_distances(records, anchors), self.widths)]
        return [
            regress(kernel, chosen, indicators, self.amplitudes, self.boldness)
            for kernel in kernels
        ]

    def _assemble(
        self,
        centre: Floats,
        rotation: Floats | None,
        views: list[tuple[Floats, Floats]],
        chosen: NDArray[np.intp],
        fits: list[KernelFit],
        shares: Floats,
        present: NDArray[np.intp],
    ) -> TabularModel:
        """Add up the models, which are linear in their coefficients."""
        mixed = [
            np.einsum("a,anc->nc", share, fit.coefficients)
            for share, fit in zip(shares, fits, strict=True)
        ]
        n_kernels = 1 + len(self.widths)
        learnt = []
        for number, (weights, records) in enumerate(views):
            linear, *bumps = mixed[number * n_kernels : (number + 1) * n_kernels]
            learnt.append(
                _Weighting(
                    weights,
                    records[chosen].astype(np.float32),
                    (records[chosen].T @ linear).astype(np.float32),
                    [coefficients.astype(np.float32) for coefficients in bumps],
                )
            )
        level = LEVEL * sum(coefficients.sum(axis=0) for coefficients in mixed)
        return TabularModel(
            centre, rotation, learnt, level, present.astype(np.intp), tuple(self.widths)
        )


def _weighted(placed: Floats, power: float) -> tuple[Floats, Floats]:
    """Weight centred columns by a power of their deviation; records get mean squared norm 1."""
    deviations = placed.std(axis=0)
    varies = deviations > 0.0
    weights = np.where(varies, np.where(varies, deviations, 1.0) ** (power - 1.0), 0.0)
    size = float(np.sqrt(np.sum((weights * deviations) ** 2)))
    weights = weights / size if size > 0.0 else weights
    return weights, placed * weights


def _principal_axes(placed: Floats) -> Floats:
    """Return the matrix that standardises centred columns and turns them to their principal axes."""
    deviations = placed.std(axis=0)
    varies = deviations > 0.0
    inverse = np.where(varies, 1.0 / np.where(varies, deviations, 1.0), 0.0)
    _, sizes, axes = np.linalg.svd(placed * inverse, full_matrices=False)
    kept = sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)
    turned: Floats = inverse[:, None] * axes[kept].T
    return turned


def _matrix(X: Any, what: str) -> Floats:
    """Return records as float64, or refuse them without quoting a value."""
    X = X.toarray() if hasattr(X, "toarray") else X
    try:
        records = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        records = None
    if records is None or records.ndim != 2:
        raise ModelError(
            f"{what} is no table of numbers; allowed are two dimensions of numbers; encode categories "
            "with preprocessing kind 'principal' or 'tabular'"
        )
    if not np.isfinite(records).all():
        raise ModelError(
            f"{what} contains NaN or infinity; allowed are finite numbers; fill missing values, which "
            "preprocessing kinds 'principal' and 'tabular' do by public medians"
        )
    return records
