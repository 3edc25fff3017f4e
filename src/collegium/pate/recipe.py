"""The recipe of a run: everything that decides on its result, as one frozen value."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.checks import shown
from collegium.data.class_shares import as_class_shares
from collegium.distillation.goal import ACCURACY, check_goal, wants_balanced_votes
from collegium.distillation.supervised import require_comparable, seeded
from collegium.errors import InputError
from collegium.models.balanced import balanced
from collegium.models.batched import BatchedEstimator, check_teachers_at_once
from collegium.models.classifiers import check_classifier
from collegium.noise.sources import noise_from
from collegium.noise.sums import NoisySum
from collegium.pate.queries.active_choice import require_beliefs
from collegium.pate.queries.selection import ACTIVE, CHOSEN
from collegium.pate.settings import Account, Queries
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.choosing import check_choosing
from collegium.pate.voting.price_choice import check_price
from collegium.pate.voting.release import check_release
from collegium.personalisation import Personalisation, Weighting
from collegium.runs.views import SAME

#: What messages call the parts of a recipe; a study's file calls them by its own keys.
NAMES = {
    **{name: name for name in ("teacher", "student", "preprocessing", "goal", "test")},
    "student_preprocessing": "preprocessing of the student",
    "teacher_class_shares": "class_shares of the teacher",
    "student_class_shares": "class_shares of the student",
}


@dataclass(frozen=True, eq=False)
class Recipe:
    """Everything that decides on the result of a run; the same recipe and records give the same bits.

    Attributes
    ----------
    teacher, student : estimator
        Not fitted; never changed. A student without a seed of its own gets the recipe's.
    n_teachers : int
        Nominal number of teachers k, for which the aggregator's numbers are given.
    personalisation : Personalisation
        How budgets become influence, and how owners get their teachers.
    aggregator : Aggregator
        How votes become labels.
    account : Account
        Which guarantee.
    queries : Queries
        What is asked, and what is shown of the answers.
    preprocessing, student_preprocessing : transformer, None or "same"
        What teachers and student see of records; fitted on public ones only.
    teacher_class_shares, student_class_shares : mapping, array-like or None
        Public shares of the classes.
    goal : {"accuracy", "balanced", "auc"}
        What the student is to be good at: :mod:`collegium.distillation.goal`. With ``balanced`` and ``auc``
        :attr:`teacher` is made one whose votes are balanced.
    seed : int
        Public randomness: assignment of owners (keyed by its decimal digits), training (as it is), order
        of the questions (``default_rng([seed, 3])``), participation, splits. Never used for noise.
    noise_seed : int or None
        Seeded noise for experiments: not private.
    names : mapping of str to str
        What messages call the parts.

    Raises
    ------
    InputError
        If parts do not fit together; see :func:`check_together`.
    """

    teacher: Any
    student: Any
    n_teachers: int
    aggregator: Aggregator
    personalisation: Personalisation = field(default_factory=Weighting)
    account: Account = field(default_factory=Account)
    queries: Queries = field(default_factory=Queries)
    preprocessing: Any = None
    student_preprocessing: Any = SAME
    teacher_class_shares: Mapping[Any, float] | ArrayLike | None = None
    student_class_shares: Mapping[Any, float] | ArrayLike | None = None
    goal: str = ACCURACY
    seed: int = 0
    noise_seed: int | None = None
    names: Mapping[str, str] = field(default_factory=lambda: NAMES)

    def __post_init__(self) -> None:
        check_classifier(self.teacher, self.names["teacher"])
        check_teachers_at_once(self.teacher)
        check_classifier(self.student, self.names["student"], learns_by=("fit", "fit_released"))
        check_together(self.aggregator, self.account, self.queries)
        if self.queries.query_order == ACTIVE:
            require_beliefs(self.student)
        if self.aggregator.consults_student:
            require_comparable(self.student)
        for name in ("preprocessing", "student_preprocessing"):
            _check_transformer(self.names[name], getattr(self, name), name != "preprocessing")
        check_goal(self.goal)
        if wants_balanced_votes(self.goal):
            object.__setattr__(self, "teacher", balanced(self.teacher, self.names["teacher"]))
        object.__setattr__(self, "student", seeded(self.student, self.seed))

    @property
    def assignment(self) -> str:
        """How owners get their teachers."""
        return self.personalisation.assignment

    @property
    def key(self) -> bytes:
        """Key of the assignment of owners to teachers."""
        return str(self.seed).encode()

    @property
    def same_view(self) -> bool:
        """Whether the student sees records as the teachers do."""
        return isinstance(self.student_preprocessing, str)

    @property
    def together(self) -> bool:
        """Whether teachers of one call may change one another by rounding, as far as settings tell."""
        batched = isinstance(self.teacher, BatchedEstimator)
        return batched and not getattr(self.teacher, "exact_together", False)

    def noise(self) -> NoisySum:
        """Make the source of privacy noise."""
        return noise_from(self.noise_seed)

    def class_shares(self, whose: str, classes: ArrayLike) -> NDArray[np.float64] | None:
        """Read public shares of the classes, in the order of the class list; None where none are given.

        Parameters
        ----------
        whose : {"teacher", "student"}
            Who is given them.
        classes : array-like, shape (n_classes,)
            The public class list.
        """
        name = f"{whose}_class_shares"
        given = getattr(self, name)
        return None if given is None else as_class_shares(given, classes, self.names[name])


def check_together(aggregator: Aggregator, account: Account, queries: Queries) -> None:
    """Refuse a release, a price, a choice of questions, or a number of answers that do not go together.

    Raises
    ------
    InputError
        See :func:`~collegium.pate.voting.release.check_release`,
        :func:`~collegium.pate.voting.price_choice.check_price` and
        :func:`~collegium.pate.voting.choosing.check_choosing`.
    """
    check_release(queries.release, aggregator, account.guarantee)
    check_price(account.price, queries.release, aggregator, account.guarantee)
    if queries.query_order in CHOSEN:
        check_choosing(aggregator, account.guarantee)
    if getattr(aggregator, "answers", None) is not None and account.guarantee != "worst-case":
        raise InputError(
            "answers finds the noise for a number of answers, but only the worst-case guarantee knows "
            "beforehand what an answer costs: change one of both"
        )


def _check_transformer(name: str, given: Any, may_be_same: bool) -> None:
    if given is None or (may_be_same and isinstance(given, str) and given == SAME):
        return
    usable = all(callable(getattr(given, method, None)) for method in ("fit", "transform"))
    if inspect.isclass(given) or not usable:
        allowed = f"{SAME!r}, None" if may_be_same else "None"
        raise InputError(
            f"{name} must be {allowed} or a transformer such as TabularEncoder(), got {shown(given)}"
        )
