"""Teachers that vote as if all classes were equally frequent.

Where one class is rare, a teacher that names what is most probable names the others for nearly every
record, and so do all teachers: what they release says next to nothing about the rare class. A balanced
teacher names the class for which a record speaks most, however frequent that is; votes are then divided
where classes meet, which is what noisy counts can show.

With beliefs that are chances, that is the class whose chance is largest beside its share. A teacher of
some hundred records has no such beliefs: they are drawn towards the shares, or sure of everything. So a
balanced teacher asks its own shard what its beliefs mean: parts of the shard are left out in turn, and
what the rest believes about them shows from where on a record speaks for a class: where as large a share of
the class's own records lies above as of all others below. Which scale beliefs have does not matter to
this. Beyond, a record speaks for the class the more the further, in units of the distance between the medians
of both (or of the class's share, where that is larger).

A student that is to be right as often as possible needs both: balanced teachers tell where a record
speaks for a rare class, and plain ones where it speaks so clearly that naming the class is more often
right than wrong. Of :class:`MostlyBalancedTeachers` two of three are balanced, by a public die. Where most
balanced teachers name a rare class, and some plain ones do, it leads.

**Privacy.** Means and shares are of the teacher's *own shard*: a part of what this teacher learnt, as its
weights are. Nothing of all private records together is computed. A teacher still depends on its own shard
and on public numbers only, so an owner still changes the votes of the same teachers: sensitivities, prices
and accounts stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from collegium.checks import check_choice
from collegium.data.tables import take_rows
from collegium.errors import InputError, ModelError
from collegium.models.batched import BatchedEstimator, Shard
from collegium.models.closed_form.logistic import LogisticTeachers
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.models.closed_form.tabular import TabularTeachers

Floats = NDArray[np.float64]
PARTS = 4
"""Into how many parts a shard is split to learn what its beliefs mean: each is a training more."""
_BY_NAME: dict[str, type] = {
    "tabular": TabularTeachers,
    "logistic": LogisticTeachers,
    "ridge": RidgeTeachers,
}


@dataclass(frozen=True, eq=False)
class SensitiveMiddles:
    """From where on a record speaks for a class, as one shard shows it. **Sensitive.**

    ``present`` (n_present,): class numbers of the shard.
    ``middles`` (n_present,): beliefs above which lie as many of the class's records as of others below.
    ``units`` (n_present,): in which what lies beyond is counted.
    """

    present: NDArray[np.intp]
    middles: Floats
    units: Floats

    @classmethod
    def of(cls, y: NDArray[np.intp], held_out: Floats) -> SensitiveMiddles:
        """Learn them from what was believed about left-out records.

        ``y`` (n_shard,): class numbers.
        ``held_out`` (n_shard, n_present): beliefs of models that did not see the record; NaN where there
            is none.

        Examples
        --------
        >>> y = np.array([0, 0, 0, 1, 1])
        >>> rare = np.array([0.1, 0.2, 0.0, 0.3, 0.5])
        >>> SensitiveMiddles.of(y, np.stack([1 - rare, rare], axis=1)).middles
        array([0.75, 0.25])
        """
        present, counts = np.unique(y, return_counts=True)
        shares = counts / counts.sum()
        middles, units = shares.copy(), shares.copy()  # what takes the place of a class seen once
        for place, label in enumerate(present.tolist()):
            own, others = (held_out[rows, place] for rows in (y == label, y != label))
            own, others = own[~np.isnan(own)], others[~np.isnan(others)]
            if len(own) and len(others):
                middles[place] = _middle(own, others)
                units[place] = max(np.median(own) - np.median(others), shares[place])
        return cls(present.astype(np.intp), middles, units)

    def vote(self, beliefs: Floats) -> NDArray[np.intp]:
        """Name the class for which each record speaks most.

        ``beliefs`` (n, n_present), or of all classes.
        Returns (n,): class numbers.
        """
        own = _of_present(beliefs, self.present)
        return np.asarray(self.present[((own - self.middles) / self.units).argmax(axis=1)])


class BalancedTeacher(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that votes as if the classes of its shard were equally frequent.

    One without ``predict_proba`` is trained with weights under which the classes of its shard weigh alike.

    Parameters
    ----------
    estimator : estimator
        With ``predict_proba``, or a ``fit`` (of a pipeline: of its last step) that takes ``sample_weight``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(400, 1))
    >>> y = 1 * (np.random.default_rng(1).random(400) < 0.3 / (1 + np.exp(-X[:, 0])))
    >>> plain, fair = LogisticRegression(), BalancedTeacher(LogisticRegression())
    >>> [bool(100 < model.fit(X, y).predict(X).sum() < 300) for model in (plain, fair)]
    [False, True]
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: NDArray[np.intp]) -> Self:
        """Train on one shard; ``y``: class numbers."""
        codes = np.asarray(y, dtype=np.intp)
        self.classes_, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
        if not hasattr(self.estimator, "predict_proba"):
            weights = (len(codes) / (len(counts) * counts))[place]
            is_pipeline = isinstance(self.estimator, Pipeline)
            step = f"{self.estimator.steps[-1][0]}__" if is_pipeline else ""
            with config_context(enable_metadata_routing=False):
                self.sensitive_model_ = clone(self.estimator, safe=False).fit(
                    X, codes, **{f"{step}sample_weight": weights}
                )
            return self
        held_out = np.full((len(codes), len(self.classes_)), np.nan)
        for seen, left_out in _parts(codes):
            part = clone(self.estimator, safe=False).fit(take_rows(X, seen), codes[seen])
            believed = part.predict_proba(take_rows(X, left_out))
            columns = np.searchsorted(self.classes_, np.asarray(part.classes_, dtype=np.intp))
            held_out[np.ix_(left_out, columns)] = believed
        self.sensitive_middles_ = SensitiveMiddles.of(codes, held_out)
        self.sensitive_model_ = clone(self.estimator, safe=False).fit(X, codes)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Name class numbers, shape (n_records,)."""
        model = self.sensitive_model_
        if not hasattr(model, "predict_proba"):
            return np.asarray(model.predict(X))
        return self.sensitive_middles_.vote(np.asarray(model.predict_proba(X), dtype=np.float64))


@dataclass(frozen=True, eq=False)
class BalancedModel:
    """One teacher of :class:`BalancedTeachers`.

    ``sensitive_model``: as the estimator trained it.
    ``sensitive_middles``: what its shard says of its beliefs; None: it names what is most probable.
    ``present`` (n_present,): class numbers of its shard.
    """

    sensitive_model: Any
    sensitive_middles: SensitiveMiddles | None
    present: NDArray[np.intp]

    def vote(self, beliefs: Floats) -> NDArray[np.intp]:
        """Name a class for each record; ``beliefs`` (n, n_present), or of all classes."""
        if self.sensitive_middles is not None:
            return self.sensitive_middles.vote(beliefs)
        return np.asarray(self.present[_of_present(beliefs, self.present).argmax(axis=1)])


class BalancedTeachers(BaseEstimator):  # type: ignore[misc]
    """The same for an estimator that trains many teachers at once.

    Parameters
    ----------
    estimator : BatchedEstimator
        With ``believe_shards(models, X_public)``: for each model the probabilities, or estimates of them,
        of the classes of its shard in ascending order, shape (n_public, n_present), or of all classes,
        shape (n_public, n_classes).
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @property
    def _each(self) -> Any:
        """What trains and asks the teachers."""
        return self.estimator

    @property
    def teachers_at_once(self) -> int:
        """How many teachers one call gets at most."""
        return int(self._each.teachers_at_once)

    @property
    def exact_together(self) -> bool:
        """Whether a teacher's bits are the same whatever others are in the call."""
        return bool(getattr(self._each, "exact_together", False))

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
        """Train one model per shard, and those of its parts."""
        models = self._each.fit_shards(shards, seeds, n_classes)
        balanced = [self._is_balanced(seed) for seed in seeds]
        held_out = [np.full((len(y), len(np.unique(y))), np.nan) for _, y in shards]
        wanted = [
            _parts(np.asarray(y)) if one else iter(())
            for (_, y), one in zip(shards, balanced, strict=True)
        ]
        for parts in zip_longest(*wanted):
            numbers = [number for number, part in enumerate(parts) if part is not None]
            seen = [
                (take_rows(X, parts[number][0]), np.asarray(y)[parts[number][0]])
                for number in numbers
                for X, y in [shards[number]]
            ]
            trained = self._each.fit_shards(seen, [seeds[number] for number in numbers], n_classes)
            for number, part, (_, known) in zip(numbers, trained, seen, strict=True):
                (X, y), left_out = shards[number], parts[number][1]
                present = np.unique(known)
                (believed,) = self._each.believe_shards([part], take_rows(X, left_out))
                columns = np.searchsorted(np.unique(y), present)
                held_out[number][np.ix_(left_out, columns)] = _of_present(believed, present)
        return [
            BalancedModel(
                model, SensitiveMiddles.of(np.asarray(y), held) if one else None, np.unique(y)
            )
            for model, (_, y), held, one in zip(models, shards, held_out, balanced, strict=True)
        ]

    def _is_balanced(self, seed: int) -> bool:
        """Tell whether the teacher of a seed votes balanced: all do."""
        return True

    def predict_shards(
        self, models: Sequence[BalancedModel], X_public: Any
    ) -> list[NDArray[np.intp]]:
        """Ask models about the same records; class numbers, shape (n_public,) each."""
        beliefs = self._each.believe_shards([one.sensitive_model for one in models], X_public)
        return [model.vote(own) for model, own in zip(models, beliefs, strict=True)]


class MostlyBalancedTeachers(BalancedTeachers):
    """Many teachers at once, two of three of which vote balanced, as their public seeds say.

    For students that are to be right as often as possible where classes are not equally frequent.

    Parameters
    ----------
    estimator : {"tabular", "logistic", "ridge"} or BatchedEstimator, default="tabular"
        Each teacher, as for :class:`BalancedTeachers`.
    """

    def __init__(self, estimator: Any = "tabular") -> None:
        super().__init__(estimator)

    @property
    def _each(self) -> Any:
        if not isinstance(self.estimator, str):
            return self.estimator
        check_choice("estimator", self.estimator, tuple(_BY_NAME), ModelError)
        return _BY_NAME[self.estimator]()

    def _is_balanced(self, seed: int) -> bool:
        return bool(seed % 3)


def balanced(teacher: Any, name: str = "teacher") -> Any:
    """Make of a teacher one whose votes are balanced.

    ``teacher``: not changed; one that is balanced is returned as it is.
    ``name``: what messages call it.
    Raises InputError if it neither tells probabilities nor takes weights.
    """
    if isinstance(teacher, MostlyBalancedTeachers):
        return BalancedTeachers(teacher._each)
    if isinstance(teacher, BalancedTeacher | BalancedTeachers):
        return teacher
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
        f"{name} ({type(teacher).__name__}) cannot vote as if classes were equally frequent, which the goal "
        f"asks for: it needs {need}; give another one, or goal 'accuracy'"
    )


def _middle(own: Floats, others: Floats) -> float:
    """Find the belief above which lies as large a share of some records as of others below."""
    below = np.linspace(0.0, 1.0, 201)
    lower, upper = np.quantile(own, below), np.quantile(others, 1 - below)
    place = min(int(np.searchsorted(lower - upper, 0.0)), len(below) - 1)  # the difference grows
    return float((lower[place] + upper[place]) / 2)


def _of_present(beliefs: Any, present: NDArray[np.intp]) -> Floats:
    """Take the columns of classes that occur; a model may tell those of all classes."""
    table = np.asarray(beliefs, dtype=np.float64)
    return table if table.shape[1] == len(present) else table[:, present]


def _parts(y: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Split a shard into rows that are seen and rows that are left out, each class alike.

    Parts that leave fewer than two classes to learn from are left out altogether.
    """
    turn = np.empty(len(y), dtype=np.intp)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        turn[rows] = np.arange(len(rows)) % PARTS
    for part in range(PARTS):
        seen, left_out = np.flatnonzero(turn != part), np.flatnonzero(turn == part)
        if len(left_out) and len(np.unique(y[seen])) > 1:
            yield seen, left_out
