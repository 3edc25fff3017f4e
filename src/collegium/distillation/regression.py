"""A student that regresses what was released on public features: for classes that overlap, as in tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from collegium.checks import check_number, check_positive, check_whole
from collegium.distillation.gaussian_kernel import gaussian_kernel
from collegium.distillation.released import (
    Floats,
    ReleasedAnswers,
    as_numbers,
    even_evidence,
    score_released,
)
from collegium.distillation.semi_supervised import SemiSupervisedStudent
from collegium.errors import InputError

_PENALTIES = np.geomspace(1e-3, 1e5, 17)
_TEMPERATURES = np.geomspace(0.25, 64, 17)
#: Clear answers about the records that were answered, spread evenly over the classes, that nobody gave: n
#: answers of one class leave another about 1/(n + 2) of two classes, as Laplace's rule does.
_PSEUDO_ANSWERS = 2.0


class RegressionStudent(SemiSupervisedStudent):
    """Kernel regression of the evidence, averaged over kernels and penalties by their leave-one-out error.

    The evidence log P(r | c) of Gaussian noise is linear in the noisy histogram r, so its regression on
    features estimates by how many votes each class leads, however noisy each answer is, and
    also where teachers are divided, because classes overlap. Clear answers, which ``mistrust`` bounds, count
    alike for frequent and rare classes. (Students that give each record one class,
    such as :class:`~collegium.distillation.graph.GraphStudent`, are wrong there.)

    Parameters
    ----------
    powers : sequence of float, default=(1.0, 2.0)
        Weightings of the features: power p makes a column of public deviation s one of deviation s^p. Best
        on coordinates that public records order by importance, such as those of
        :class:`~collegium.models.preprocessing.PrincipalTable`.
    widths : sequence of float, default=(0.5, 1.0, 2.0)
        Of Gaussian kernels exp(−d²/(2 width²)), where public records lie 1 from their centre in root mean
        square. A linear kernel is always among the models.
    n_landmarks : int, default=500
        Public records whose kernel functions span each regression.
    mistrust : float, default=0.02
        Chance that an answer says nothing.
    temper : float, default=2.0
        A model's weight is exp(−n·e/(2·temper·e₀)), where e is its mean squared leave-one-out error, and e₀
        the smallest. 1 trusts that error most.
    random_state : int, optional
        Draws landmarks. Default: the seed of the run, or 0 without one.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Class numbers.
    beliefs_ : ndarray, shape (n_public, n_classes)
        Probability of each class for every public record.
    temperature_ : float
        Turns leads into probabilities; chosen by the likelihood of answers left out, and of two more that
        are spread evenly over the classes, so that no class is impossible because it was not named.

    Notes
    -----
    Probabilities are of the class that most teachers name, as far as the answered records tell. Where a
    check answers only what teachers agree about (Confident-GNMax), these are the easy ones, and where
    teachers are wrong together nothing released tells: hold them against public records with a known class
    (``calibration_error`` of a quality) before a probability is taken for a chance.

    References
    ----------
    Rasmussen & Williams, *Gaussian processes for machine learning*, 2006, Section 6.5 (least-squares
    classification), 8.1 (Nyström); Craven & Wahba 1979 (leave-one-out in closed form).

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(400, 2))
    >>> noisy = np.stack([X[:, 0], -X[:, 0]], axis=1) + generator.normal(0, 2, (400, 2))
    >>> student = RegressionStudent().fit_released(X, np.arange(400), softmax(noisy, axis=1))
    >>> student.predict([[1.0, 0.0], [-1.0, 0.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        *,
        powers: tuple[float, ...] = (1.0, 2.0),
        widths: tuple[float, ...] = (0.5, 1.0, 2.0),
        n_landmarks: int = 500,
        mistrust: float = 0.02,
        temper: float = 2.0,
        random_state: int | None = None,
    ) -> None:
        self.powers = powers
        self.widths = widths
        self.n_landmarks = n_landmarks
        self.mistrust = mistrust
        self.temper = temper
        self.random_state = random_state

    def _learn(self, released: ReleasedAnswers) -> None:
        self._check_parameters()
        table = released.X.reshape(len(released.X), -1).astype(np.float64)
        evidence = even_evidence(released.targets, self.mistrust)
        leads = evidence - evidence.mean(axis=1, keepdims=True)
        self._views = [_Columns.of(table, power) for power in self.powers]
        generator = np.random.default_rng(self.random_state or 0)
        landmarks = table[generator.permutation(len(table))[: self.n_landmarks]]
        self._bases = [
            _Basis.of(view, landmarks, width)
            for view in self._views
            for width in (None, *self.widths)
        ]
        fits = [_ridge(basis.of_records(table[released.queries]), leads) for basis in self._bases]
        errors = np.concatenate([fit.errors for fit in fits])
        # With so few answers that some model explains them exactly, that model gets all the weight.
        smallest = max(float(errors.min()), 1e-300)
        shares = softmax(-len(leads) * errors / (2 * self.temper * smallest))
        self._fits, held_out, first = [], np.zeros_like(leads), 0
        for fit in fits:
            own = shares[first : first + len(fit.errors)]
            first += len(fit.errors)
            self._fits.append((fit.centre, np.einsum("k,kmc->mc", own, fit.weights), own.sum()))
            held_out += np.einsum("k,knc->nc", own, fit.held_out)
        self._offset = leads.mean(axis=0)
        self.temperature_ = _temperature(held_out, released.targets, self.mistrust)
        self.beliefs_ = self._believe(table)

    def _believe(self, X: Any) -> Floats:
        records = as_numbers(X, "records")
        table = records.reshape(len(records), -1).astype(np.float64)
        if table.shape[1] != self.n_features_in_:
            raise InputError(
                f"records of {table.shape[1]} features were given; the public records have "
                f"{self.n_features_in_}: prepare them in the same way"
            )
        leads = np.tile(self._offset, (len(table), 1))
        for basis, (centre, weights, share) in zip(self._bases, self._fits, strict=True):
            if share > 1e-6:
                leads += (basis.of_records(table) - centre) @ weights
        return np.asarray(softmax(self.temperature_ * leads, axis=1))

    def _check_parameters(self) -> None:
        check_whole("n_landmarks", self.n_landmarks)
        if not len(self.powers) or not all(np.isfinite(power) for power in self.powers):
            raise InputError(f"powers must hold at least one finite number, got {self.powers!r}")
        for width in self.widths:
            check_positive("each of widths", width)
        check_number("mistrust", self.mistrust, least=0, below=1)
        check_number("temper", self.temper, above=0)


def _temperature(held_out: Floats, targets: Floats, mistrust: float) -> float:
    """Choose by the likelihood of answers left out, and of ``_PSEUDO_ANSWERS`` that no answer contradicts.

    Without the latter, answers that all name one class (as those of a check do where teachers agree) are the
    likelier the surer the student is, without end.
    """
    n, n_classes = len(targets), int(targets.shape[1])

    def likelihood(t: float) -> float:
        believed = log_softmax(t * held_out, axis=1)
        pseudo = _PSEUDO_ANSWERS / n_classes * float(believed.mean(axis=0).sum())
        return float(n * score_released(np.exp(believed), targets, mistrust) + pseudo)

    return float(max(_TEMPERATURES, key=likelihood))


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns weighted by a power of their public deviation, and scaled to a root mean square of 1."""

    centre: Floats
    factor: Floats

    @classmethod
    def of(cls, table: Floats, power: float) -> _Columns:
        deviation = table.std(axis=0)
        varies = deviation > 1e-9 * max(float(deviation.max()), 1e-300)
        factor = np.where(varies, np.where(varies, deviation, 1.0) ** (power - 1), 0.0)
        size = float(np.sqrt(((deviation * factor) ** 2).sum()))
        return cls(table.mean(axis=0), factor / (size if size > 0 else 1.0))

    def see(self, table: Floats) -> Floats:
        return np.asarray((table - self.centre) * self.factor)


@dataclass(frozen=True, eq=False)
class _Basis:
    """Features whose inner products are a kernel: the columns themselves, or a Nyström approximation."""

    view: _Columns
    width: float | None
    landmarks: Floats
    half: Floats

    @classmethod
    def of(cls, view: _Columns, landmarks: Floats, width: float | None) -> _Basis:
        points = view.see(landmarks)
        if width is None:
            return cls(view, None, points, np.empty((0, 0)))
        values, vectors = np.linalg.eigh(gaussian_kernel(points, points, width))
        kept = values > 1e-8 * values.max()
        return cls(view, width, points, vectors[:, kept] / np.sqrt(values[kept]))

    def of_records(self, table: Floats) -> Floats:
        points = self.view.see(table)
        if self.width is None:
            return points
        return np.asarray(gaussian_kernel(points, self.landmarks, self.width) @ self.half)


@dataclass(frozen=True, eq=False)
class _Fits:
    """Ridge regressions of one basis, for each penalty."""

    centre: Floats  # (n_basis,)
    weights: Floats  # (n_penalties, n_basis, n_classes)
    held_out: Floats  # (n_penalties, n, n_classes): each answer as foretold by the others
    errors: Floats  # (n_penalties,): mean squares of what they got wrong


def _ridge(basis: Floats, leads: Floats) -> _Fits:
    """Solve for all penalties at once, by one eigendecomposition; the intercept is not penalised."""
    n = len(basis)
    centre, mean = basis.mean(axis=0), leads.mean(axis=0)
    design = basis - centre
    values, vectors = np.linalg.eigh(design.T @ design)
    values = np.maximum(values, 0.0)
    rotated = design @ vectors
    moments = rotated.T @ (leads - mean)
    weights, held_out, errors = [], [], []
    for penalty in _PENALTIES:
        shrunk = moments / (values + penalty)[:, None]
        fitted = rotated @ shrunk + mean
        leverage = 1 / n + (rotated**2 / (values + penalty)).sum(axis=1)
        off = (leads - fitted) / np.maximum(1 - leverage, 1e-6)[:, None]
        weights.append(vectors @ shrunk)
        held_out.append(leads - off)
        errors.append(float(np.mean(off**2)))
    return _Fits(centre, np.stack(weights), np.stack(held_out), np.asarray(errors))
