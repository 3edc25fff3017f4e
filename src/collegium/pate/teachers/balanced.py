"""Teachers that vote as if all classes were equally frequent.

Where one class is rare, a teacher that names what is most probable names the others for nearly every record, and
so do all teachers: what they release says next to nothing about the rare class. A balanced teacher names the
class whose probability is largest beside its share, p(c | x)/π_c: by how much a record speaks for a class, not
how frequent the class is. Votes are then divided where classes meet, which is what noisy counts can show.

**Privacy.** π_c are the shares of the classes in the teacher's *own shard*: a part of what this teacher learnt, as
its weights are. No share of all private records together is computed. A teacher still depends on its own shard
and on public numbers only, so an owner still changes the votes of the same teachers: sensitivities, prices
and accounts stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from collegium.errors import InputError
from collegium.models.batched import BatchedEstimator, Shard

Floats = NDArray[np.float64]


class BalancedTeacher(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that votes as if the classes of its shard were equally frequent.

    One with ``predict_proba`` names the largest probability beside the share of the class in its shard. Any
    other is trained with weights under which the classes of its shard weigh alike.

    Parameters
    ----------
    estimator : estimator
        With ``predict_proba``, or a ``fit`` (of a pipeline: of its last step) that takes ``sample_weight``.

    Attributes
    ----------
    classes_ : ndarray, shape (n_present,)
        Classes of the shard.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> plain, fair = (model.fit(X, X[:, 0] > 15) for model in (
    ...     LogisticRegression(), BalancedTeacher(LogisticRegression())))
    >>> int(plain.predict(X).sum()), int(fair.predict(X).sum())
    (4, 6)
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        """Train on one shard."""
        self.classes_, place, counts = np.unique(y, return_inverse=True, return_counts=True)
        self.sensitive_shares_ = counts / counts.sum()
        model = clone(self.estimator, safe=False)
        if hasattr(model, "predict_proba"):
            self.sensitive_model_ = model.fit(X, y)
        else:
            weights = (1 / (len(counts) * self.sensitive_shares_))[place]
            step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
            self.sensitive_model_ = model.fit(X, y, **{f"{step}sample_weight": weights})
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Name classes, shape (n_records,)."""
        model = self.sensitive_model_
        if not hasattr(model, "predict_proba"):
            return np.asarray(model.predict(X))
        shares = dict(zip(self.classes_.tolist(), self.sensitive_shares_.tolist(), strict=True))
        known = np.asarray(model.classes_)
        own = np.array([shares[label] for label in known.tolist()])
        return np.asarray(known[(np.asarray(model.predict_proba(X)) / own).argmax(axis=1)])


@dataclass(frozen=True, eq=False)
class BalancedModel:
    """One teacher of :class:`BalancedTeachers`.

    ``sensitive_model``: as the estimator trained it.
    ``present`` (n_present,): class numbers of its shard.
    ``sensitive_shares`` (n_present,): their shares in it.
    """

    sensitive_model: Any
    present: NDArray[np.intp]
    sensitive_shares: Floats

    def vote(self, beliefs: Floats) -> NDArray[np.intp]:
        """Name the class whose probability is largest beside its share; shape (n_records,)."""
        own = beliefs if beliefs.shape[1] == len(self.present) else beliefs[:, self.present]
        return np.asarray(self.present[(own / self.sensitive_shares).argmax(axis=1)])


class BalancedTeachers(BaseEstimator):  # type: ignore[misc]
    """The same for an estimator that trains many teachers at once.

    Parameters
    ----------
    estimator : BatchedEstimator
        With ``believe_shards(models, X_public)``: for each model the probabilities, or estimates of them, of the
        classes of its shard in ascending order, shape (n_public, n_present), or of all classes, shape
        (n_public, n_classes).
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @property
    def teachers_at_once(self) -> int:
        """How many teachers one call gets at most."""
        return int(self.estimator.teachers_at_once)

    @property
    def exact_together(self) -> bool:
        """Whether a teacher's bits are the same whatever others are in the call."""
        return bool(getattr(self.estimator, "exact_together", False))

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        """Train one teacher on class numbers."""
        codes = np.asarray(y, dtype=np.intp)
        self.sensitive_model_ = self.fit_shards([(X, codes)], [0], int(codes.max()) + 1)[0]
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Name class numbers, shape (n_records,)."""
        return self.predict_shards([self.sensitive_model_], X)[0]

    def fit_shards(
        self, shards: Sequence[Shard], seeds: Sequence[int], n_classes: int
    ) -> list[BalancedModel]:
        """Train one model per shard."""
        models = self.estimator.fit_shards(shards, seeds, n_classes)
        return [
            BalancedModel(model, *_shares_of(y)) for model, (_, y) in zip(models, shards, strict=True)
        ]

    def predict_shards(
        self, models: Sequence[BalancedModel], X_public: Any
    ) -> list[NDArray[np.intp]]:
        """Ask models about the same records; class numbers, shape (n_public,) each."""
        beliefs = self.estimator.believe_shards([one.sensitive_model for one in models], X_public)
        return [model.vote(own) for model, own in zip(models, beliefs, strict=True)]


def balanced(teacher: Any, name: str = "teacher") -> Any:
    """Make of a teacher one whose votes are balanced.

    ``teacher``: not changed.
    ``name``: what messages call it.
    Raises InputError if it neither tells probabilities nor takes weights.
    """
    if isinstance(teacher, BatchedEstimator):
        if hasattr(teacher, "believe_shards"):
            return BalancedTeachers(teacher)
        need = "believe_shards (see BalancedTeachers)"
    else:
        last = teacher.steps[-1][1] if isinstance(teacher, Pipeline) else teacher
        if hasattr(teacher, "predict_proba") or has_fit_parameter(last, "sample_weight"):
            return BalancedTeacher(teacher)
        need = "predict_proba, or a fit that takes sample_weight"
    raise InputError(
        f"{name} ({type(teacher).__name__}) cannot vote as if classes were equally frequent, which the goal asks "
        f"for: it needs {need}; give another one, or goal 'accuracy'"
    )


def _shares_of(y: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
    present, counts = np.unique(y, return_counts=True)
    return present.astype(np.intp), counts / counts.sum()
