"""The models of teachers and students, by name: which view of the records they learn from, and how."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray

from collegium.data.tables import take_rows
from collegium.distillation.supervised import fit_released
from collegium.errors import InputError
from collegium.models.batched import BatchedEstimator
from collegium.models.catalogue import build_model
from collegium.pate.teachers.ensemble import train_teacher, train_teachers
from collegium.pate.voting.targets import class_posterior
from reproduction.records import Scene, Split, shows

_Kind = TypeVar("_Kind", "TeacherKind", "StudentKind")


@dataclass(frozen=True)
class TeacherKind:
    """A model of teachers.

    Attributes
    ----------
    name : str
    view : str
        The view of the records (:data:`reproduction.records.VIEWS`).
    make : callable
        Makes the estimator, given a split.
    words : str
        For the tables.
    least_side : int
        Pixels along one side of the smallest images that it takes.
    """

    name: str
    view: str
    make: Callable[[Split], Any]
    words: str
    least_side: int = 0


def _named(name: str, **params: Any) -> Callable[[Split], Any]:
    return lambda split: build_model("model", name, params)


def _named_student(name: str, **params: Any) -> Callable[[Split], Any]:
    return lambda split: build_model("student.model", name, params)


def _network(name: str, **params: Any) -> Callable[[Split], Any]:
    def make(split: Split) -> Any:
        from collegium.models.neural.neural_classifier import NeuralClassifier

        return NeuralClassifier(name, **params)

    return make


TEACHERS = {
    kind.name: kind
    for kind in (
        TeacherKind("forest", "tabular", _named("random-forest"), "random forest of 100 trees"),
        TeacherKind("seed-cnn", "pixels", _network("seed-cnn"), "the sources' small CNN"),
        TeacherKind("small-cnn", "pixels", _network("small-cnn"), "a stronger small CNN", 11),
        TeacherKind(
            "scattering-ridge",
            "scattering",
            _named("ridge"),
            "ridge regression on scattering coefficients",
        ),
        TeacherKind(
            "tabular",
            "principal",
            _named("tabular"),
            "Gaussian processes on principal coordinates of the public table",
        ),
        TeacherKind(
            "components-svm",
            "components",
            _named("svm", C=10.0),
            "support vector machine on 50 principal components of the public images",
        ),
        TeacherKind(
            "kernel-ridge",
            "scattering-20",
            _named("ridge", kernel="rbf", alpha=1e-3),
            "kernel ridge regression on 20 principal scattering coefficients, as accurate as seed-cnn",
        ),
        TeacherKind("pixel-ridge", "pixels", _named("ridge"), "ridge regression on pixels"),
        TeacherKind(
            "table-ridge",
            "onehot",
            _named("ridge"),
            "ridge regression on one-hot columns",
        ),
    )
}
"""Kinds of teachers by name."""


@dataclass(frozen=True, eq=False)
class Released:
    """What a voting released: all that a student may see of the private records.

    Attributes
    ----------
    queries : ndarray of int, shape (n_labels,)
        Rows of the public records.
    labels : ndarray of int, shape (n_labels,)
        Their noisy labels.
    noisy_counts : ndarray of float, shape (n_labels, n_classes), or (0, n_classes)
        Where histograms were released.
    sigma : float
        Standard deviation of the noise on each count, public.
    """

    queries: NDArray[np.intp]
    labels: NDArray[np.intp]
    noisy_counts: NDArray[np.float64]
    sigma: float


@dataclass(frozen=True)
class StudentKind:
    """A model of students.

    Attributes
    ----------
    name : str
    view : str
        The view of the records (:data:`reproduction.records.VIEWS`).
    learn : callable
        ``learn(split, released, seeds, n_jobs)``: trains one student for each element of ``released``, and
        returns the class numbers that each predicts for the test records; None for a student that
        got no label.
    words : str
        For the tables.
    least_side : int
        Pixels along one side of the smallest images that it takes.
    """

    name: str
    view: str
    learn: Callable[
        [Split, Sequence[Released], Sequence[int], int | None],
        list[NDArray[np.intp] | None],
    ]
    words: str
    least_side: int = 0


def supervised(name: str, view: str, make: Callable[[Split], Any], words: str) -> StudentKind:
    """Make a kind of students that learn from the labelled records alone.

    Parameters
    ----------
    name, words : str
        See :class:`StudentKind`.
    view : str
        The view of the records.
    make : callable
        Makes the estimator, given a split. A
        :class:`~collegium.models.batched.BatchedEstimator` trains all students together.
    """

    def learn(
        split: Split, released: Sequence[Released], seeds: Sequence[int], n_jobs: int | None
    ) -> list[NDArray[np.intp] | None]:
        _, public, test = split.view(view)
        estimator = make(split)
        known = [number for number, one in enumerate(released) if len(one.labels)]
        shards = [(take_rows(public, released[i].queries), released[i].labels) for i in known]
        if isinstance(estimator, BatchedEstimator):
            models = train_teachers(estimator, shards, [seeds[i] for i in known], split.n_classes)
        else:
            models = joblib.Parallel(n_jobs=n_jobs)(
                joblib.delayed(train_teacher)(estimator, X, y, seeds[i])
                for i, (X, y) in zip(known, shards, strict=True)
            )
        predicted: list[NDArray[np.intp] | None] = [None] * len(released)
        for number, model in zip(known, models, strict=True):
            predicted[number] = model.vote(test).astype(np.intp)
        return predicted

    return StudentKind(name, view, learn, words)


def released_students(
    name: str, view: str, make: Callable[[Split], Any], words: str
) -> StudentKind:
    """Make a kind of students that learn from all public records and everything that was released.

    Targets are the posterior over classes given the noisy histogram and its known noise
    (:func:`collegium.pate.voting.targets.class_posterior`), or the label where that is all there is.

    Parameters
    ----------
    name, words : str
        See :class:`StudentKind`.
    view : str
        The view of the records.
    make : callable
        Makes the estimator, given a split; see :func:`collegium.distillation.supervised.fit_released`.
    """

    def one(split: Split, X: tuple[Any, Any], seen: Released, seed: int) -> NDArray[np.intp] | None:
        if not len(seen.labels):
            return None
        targets = None
        if len(seen.noisy_counts):
            total = float(split.scene.n_teachers)
            targets = class_posterior(seen.noisy_counts, seen.sigma, total)
        estimator = make(split)
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            student = fit_released(
                estimator, X[0], seen.queries, seen.labels, range(split.n_classes), targets
            )
        return np.asarray(student.predict(X[1]), dtype=np.intp)

    def learn(
        split: Split, released: Sequence[Released], seeds: Sequence[int], n_jobs: int | None
    ) -> list[NDArray[np.intp] | None]:
        _, public, test = split.view(view)
        return [
            one(split, (public, test), seen, seed)
            for seen, seed in zip(released, seeds, strict=True)
        ]

    return StudentKind(name, view, learn, words)


def _self_training(split: Split) -> Any:
    from collegium.distillation.neural_student import NeuralStudent

    return NeuralStudent(features="scattering")


_LONGER = 100  # epochs: the sources gave students more time than teachers
_SUPERVISED = {
    kind.name: replace(
        supervised(kind.name, kind.view, kind.make, kind.words), least_side=kind.least_side
    )
    for kind in TEACHERS.values()
    if kind.name != "seed-cnn"
}
STUDENTS = _SUPERVISED | {
    kind.name: kind
    for kind in (
        supervised(
            "seed-cnn", "pixels", _network("seed-cnn", epochs=_LONGER), "the sources' small CNN"
        ),
        released_students(
            "graph",
            "coefficients",
            _named_student("graph"),
            "graph of similar public images, noisy histograms",
        ),
        released_students(
            "scattering-process",
            "points",
            _named_student("gaussian-process", n_components=None),
            "Gaussian process on scattering coefficients of public images, noisy histograms",
        ),
        released_students(
            "self-training",
            "pixels",
            _self_training,
            "graph, then a network on its pseudo-labels, noisy histograms",
        ),
        released_students(
            "gaussian-process",
            "principal",
            _named_student("gaussian-process"),
            "Gaussian process on principal coordinates, noisy histograms",
        ),
        released_students(
            "evidence-regression",
            "principal",
            _named_student("evidence-regression"),
            "regression on the evidence in noisy histograms",
        ),
        released_students(
            "pixel-ridge-soft",
            "pixels",
            _named("logistic-regression"),
            "logistic regression on pixels, soft targets",
        ),
        released_students(
            "table-ridge-soft",
            "onehot",
            _named("logistic-regression"),
            "logistic regression on one-hot columns, soft targets",
        ),
    )
}
"""Kinds of students by name: those of the teachers, and what :mod:`collegium.distillation` offers."""


def teacher_kind(name: str) -> TeacherKind:
    """Return the kind of teachers of a name; raises InputError if there is none."""
    return _kind(TEACHERS, "teachers", name)


def student_kind(name: str) -> StudentKind:
    """Return the kind of students of a name; raises InputError if there is none."""
    return _kind(STUDENTS, "students", name)


def check_teacher(name: str, scene: Scene) -> None:
    """Refuse a kind of teachers that cannot learn from a scene's records.

    Raises
    ------
    InputError
        If there is no such kind, or it does not fit.
    """
    _check(TEACHERS, "--teacher", teacher_kind(name), scene)


def check_student(name: str, scene: Scene) -> None:
    """Refuse a kind of students that cannot learn from a scene's records; see :func:`check_teacher`."""
    _check(STUDENTS, "--student", student_kind(name), scene)


def _kind(kinds: Mapping[str, _Kind], whose: str, name: str) -> _Kind:
    if name not in kinds:
        raise InputError(f"unknown {whose} {name!r}: allowed are {', '.join(kinds)}")
    return kinds[name]


def _check(kinds: Mapping[str, _Kind], option: str, kind: _Kind, scene: Scene) -> None:
    if _fits(kind, scene):
        return
    learns_from = {"tables": "images", "images": "tables"}[scene.holds]
    holds = scene.holds
    if shows(kind.view, scene):
        learns_from = f"images of at least {kind.least_side} pixels a side"
        holds = f"images of {scene.side}"
    fitting = ", ".join(name for name, one in kinds.items() if _fits(one, scene))
    raise InputError(
        f"{option} {kind.name} learns from {learns_from}, but {scene.name} holds {holds}: kinds that fit are "
        f"{fitting}"
    )


def _fits(kind: TeacherKind | StudentKind, scene: Scene) -> bool:
    return shows(kind.view, scene) and scene.side >= kind.least_side
