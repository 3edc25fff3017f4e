"""What individual budgets do to classes and groups: who shapes the votes, and for whom the student is right.

Where budgets go together with the data (people of one class, or of one kind, grant more), groups with
large budgets have more influence than their share, and the student may serve them better (Boenisch et
al., PoPETs 2023, Section 6.3). These tables show how far. They are made of the public plan, of what was
released, and of public records with known classes: nothing in :class:`Effects` needs a budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from collegium.errors import InputError
from collegium.personalisation.plan import Plan


@dataclass(frozen=True)
class ClassEffect:
    """What became of one class.

    ``public_share``: its share among the people that the student is for, as the user gave it.
    ``true_among_labelled``: labelled public records that truly are of this class; None where no
        truth is known.
    ``label_accuracy``: share of those whose label is right.
    ``test_records``: public test records that truly are of this class.
    ``student_accuracy``: share of those of which the student is right.
    ``named_by_student``: share of all test records that the student gives this class.
    """

    name: str
    public_share: float | None
    labels: int
    true_among_labelled: int | None
    label_accuracy: float | None
    test_records: int
    student_accuracy: float | None
    named_by_student: float | None


@dataclass(frozen=True)
class GroupEffect:
    """What one group contributes, and what it gets.

    ``owner_share``, ``influence_share``: its share of all owners, and of all vote weight that its
        records shape.
    ``influence_per_owner``: their ratio: 1 under equal budgets.
    ``test_records``: public test records that carry the group's level.
    ``student_accuracy``: share of those of which the student is right.
    """

    name: str
    owners: int
    owner_share: float
    influence_share: float
    influence_per_owner: float
    test_records: int
    student_accuracy: float | None


@dataclass(frozen=True)
class Effects:
    """Effects by class and by group; made by :func:`measure_effects`.

    ``classes``: in the order of the public class list.
    ``groups``: in the order of the plan.
    """

    classes: tuple[ClassEffect, ...]
    groups: tuple[GroupEffect, ...]

    def by_class(self) -> pd.DataFrame:
        """Tabulate, indexed by class."""
        return pd.DataFrame([asdict(row) for row in self.classes]).set_index("name")

    def by_group(self) -> pd.DataFrame:
        """Tabulate, indexed by group."""
        return pd.DataFrame([asdict(row) for row in self.groups]).set_index("name")

    def to_dict(self) -> dict[str, Any]:
        """Make a dictionary for JSON."""
        return {
            "classes": [asdict(row) for row in self.classes],
            "groups": [asdict(row) for row in self.groups],
        }


@dataclass(frozen=True, eq=False)
class StudentAnswers:
    """What a student said of public test records.

    ``truth``, ``predicted`` (n_test,): true and predicted classes.
    ``groups`` (n_test,): level that the person behind each test record chose, where it is known.
    """

    truth: NDArray[Any]
    predicted: NDArray[Any]
    groups: NDArray[Any] | None = None

    def with_known_truth(self) -> StudentAnswers:
        """Leave out records whose true class is missing: nothing can be said of them."""
        known = ~pd.isna(self.truth)
        groups = None if self.groups is None else self.groups[known]
        return StudentAnswers(self.truth[known], self.predicted[known], groups)


def measure_effects(
    plan: Plan,
    classes: ArrayLike,
    labels: ArrayLike,
    label_truth: ArrayLike | None = None,
    tested: StudentAnswers | None = None,
    class_shares: ArrayLike | None = None,
) -> Effects:
    """Tabulate effects by class and by group.

    ``plan``: public.
    ``classes`` (n_classes,): the public class list.
    ``labels`` (n_labels,): released labels, values of ``classes``.
    ``label_truth`` (n_labels,): true classes of the same public records.
    ``tested``: what the student said of test records; those whose true class is missing are left
        out.
    ``class_shares`` (n_classes,): public shares of the classes.

    Examples
    --------
    >>> from collegium.budgets import Budget
    >>> from collegium.personalisation import Weighting
    >>> plan = Weighting().plan({"low": Budget(3.0), "high": Budget(1.0)}, {"low": 100, "high": 900}, 100)
    >>> effects = measure_effects(plan, ["no", "yes"], ["no", "yes", "no"], ["no", "yes", "yes"])
    >>> effects.by_class()["label_accuracy"].to_dict()
    {'no': 1.0, 'yes': 0.5}
    >>> effects.by_group()["influence_per_owner"].round(2).to_dict()
    {'low': 2.3, 'high': 0.86}
    """
    owners = {name: group.owners for name, group in plan.groups.items()}
    return effects_of(
        owners, influence_shares(plan), classes, labels, label_truth, tested, class_shares
    )


def effects_of(
    owners: Mapping[str, int],
    influence: Mapping[str, float],
    classes: ArrayLike,
    labels: ArrayLike,
    label_truth: ArrayLike | None = None,
    tested: StudentAnswers | None = None,
    class_shares: ArrayLike | None = None,
) -> Effects:
    """Tabulate effects, however budgets became influence.

    ``owners``: public number of owners of each group.
    ``influence``: each group's share of all influence.
    All else as for :func:`measure_effects`.
    """
    names = np.asarray(classes)
    given = np.asarray(labels)
    truth = None if label_truth is None else np.asarray(label_truth)
    if truth is not None and truth.shape != given.shape:
        raise InputError(
            f"{len(given)} released labels, but {len(truth)} true ones: give one for each label"
        )
    tested = None if tested is None else tested.with_known_truth()
    shares = [None] * len(names) if class_shares is None else np.asarray(class_shares).tolist()
    return Effects(
        tuple(
            _class_effect(name, share, given, truth, tested)
            for name, share in zip(names.tolist(), shares, strict=True)
        ),
        tuple(_group_effect(name, owners, share, tested) for name, share in influence.items()),
    )


def influence_shares(plan: Plan) -> dict[str, float]:
    """Share of all vote weight that each group's records shape, on average over queries.

    Where groups share all teachers (uniform, upsampling, bagging), a group's copies of records among all
    copies; else the weight of its own teachers' votes, times their participation.

    ``plan``: public.

    Examples
    --------
    >>> from collegium.budgets import Budget
    >>> from collegium.personalisation import Upsampling
    >>> plan = Upsampling().plan({"a": Budget(1.0), "b": Budget(2.0)}, {"a": 500, "b": 500}, 100)
    >>> {name: round(share, 3) for name, share in influence_shares(plan).items()}
    {'a': 0.333, 'b': 0.667}
    """
    if plan.mixed or plan.pools:
        votes = {name: group.owners * group.sensitivity for name, group in plan.groups.items()}
    else:
        votes = {
            name: group.teachers * group.weight * group.frequency
            for name, group in plan.groups.items()
        }
    total = sum(votes.values())
    return {name: value / total for name, value in votes.items()}


def _class_effect(
    name: Any,
    share: float | None,
    labels: NDArray[Any],
    truth: NDArray[Any] | None,
    tested: StudentAnswers | None,
) -> ClassEffect:
    of_class = None if truth is None else truth == name
    tested_class = None if tested is None else tested.truth == name
    return ClassEffect(
        name=str(name),
        public_share=share,
        labels=int((labels == name).sum()),
        true_among_labelled=None if of_class is None else int(of_class.sum()),
        label_accuracy=None if of_class is None else _share(labels[of_class] == name),
        test_records=0 if tested_class is None else int(tested_class.sum()),
        student_accuracy=None if tested is None else _share(tested.predicted[tested_class] == name),
        named_by_student=None if tested is None else _share(tested.predicted == name),
    )


def _group_effect(
    name: str, owners: Mapping[str, int], influence: float, tested: StudentAnswers | None
) -> GroupEffect:
    share = owners[name] / sum(owners.values())
    chosen = None
    if tested is not None and tested.groups is not None:
        chosen = np.array([str(level) == name for level in tested.groups.tolist()], dtype=bool)
    return GroupEffect(
        name=name,
        owners=owners[name],
        owner_share=share,
        influence_share=influence,
        influence_per_owner=influence / share,
        test_records=0 if chosen is None else int(chosen.sum()),
        student_accuracy=None
        if tested is None or chosen is None
        else _share((tested.predicted == tested.truth)[chosen]),
    )


def _share(right: NDArray[np.bool_]) -> float | None:
    return float(right.mean()) if right.size else None
