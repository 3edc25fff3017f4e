"""Whose records are whose, and who is drawn: what a network's private step reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import TensorDataset, default_collate

from collegium.budgets import Budgets
from collegium.checks import listed
from collegium.errors import InputError
from collegium.personalisation.descent_plan import DescentPlan
from collegium.sgd.networks.owner_sums import Drawn
from collegium.sgd.sampling import Sample

Floats = NDArray[np.float64]
Augment = Callable[[Tensor], Tensor]


class Dataset(Protocol):
    """Records with targets, by position."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> Any: ...


class Owned:
    """Private records with their owners, and how a plan treats them. **Sensitive.**

    ``dataset``: pairs of record and target: tensors (``TensorDataset``, a pair), or anything that has
        positions.
    ``augment``: makes a variant of one record; is asked ``augmentations`` times for each.
    """

    def __init__(
        self,
        dataset: Dataset,
        budgets: Budgets,
        plan: DescentPlan,
        augment: Augment | None = None,
        augmentations: int = 1,
    ) -> None:
        self._tensors = _tensors(dataset)
        self._dataset = dataset
        n = len(dataset) if self._tensors is None else len(self._tensors[0])
        if n != len(budgets):
            raise InputError(
                f"{n} records, but budgets of {len(budgets)}: give one for each record"
            )
        self._augment, self._times = augment, augmentations if augment else 1
        owner = budgets.record_owner
        self._order = np.argsort(owner, kind="stable")
        self._counts = np.bincount(owner, minlength=budgets.n_owners)
        self._starts = np.cumsum(self._counts) - self._counts
        group = groups_of(budgets, plan)
        each = list(plan.groups.values())
        outside = [0.0]  # of who is in no group: last, where -1 finds it
        self._rates = np.array([g.rate for g in each] + outside)[group]
        self._clips = np.array([g.clip for g in each] + outside)[group]
        self._weights = self._clips if plan.bound == "weight" else np.sign(self._clips)

    @property
    def a_record(self) -> Tensor:
        """One record: for its shape and type."""
        return self.read(np.zeros(1, dtype=np.intp))[0][0][0]

    def draw(self, sample: Sample) -> Drawn:
        """Find the records of the owners who take part."""
        present = sample.takes_part(self._rates, "") & (self._clips > 0) & (self._counts > 0)
        owners = np.flatnonzero(present)
        counts, starts = self._counts[owners], self._starts[owners]
        begins = np.cumsum(counts) - counts
        places = np.arange(counts.sum()) + np.repeat(starts - begins, counts)
        return Drawn(self._order[places], begins, self._clips[owners], self._weights[owners])

    def read(self, rows: NDArray[np.intp]) -> Sequence[tuple[Tensor, Tensor]]:
        """Read records and targets, in as many variants as are made of each."""
        if self._tensors is not None:
            chosen = torch.from_numpy(np.ascontiguousarray(rows))
            records, targets = (values[chosen.to(values.device)] for values in self._tensors)
        else:
            items = [self._dataset[row] for row in rows.tolist()]
            records, targets = default_collate([(item[0], item[1]) for item in items])
        if self._augment is None:
            return [(records, targets)]
        return [
            (torch.stack([self._augment(record) for record in records]), targets)
            for _ in range(self._times)
        ]


def _tensors(dataset: Any) -> tuple[Tensor, Tensor] | None:
    given = dataset.tensors if type(dataset) is TensorDataset else dataset
    if not isinstance(given, tuple):
        return None
    if len(given) != 2 or len(given[0]) != len(given[1]):
        raise InputError(
            "the dataset must have records and targets, as many of one as of the other: give (X, y), or "
            "anything with positions whose items are such pairs"
        )
    return torch.as_tensor(given[0]), torch.as_tensor(given[1])


def groups_of(budgets: Budgets, plan: DescentPlan) -> NDArray[np.intp]:
    """Find each owner's group in the plan, by name; -1 for who is in no group."""
    place = {name: position for position, name in enumerate(plan.groups)}
    sizes = {name: size for name, size in budgets.public_sizes().items() if size}
    planned = {name: group.owners for name, group in plan.groups.items()}
    if sizes != planned:
        raise InputError(
            f"the plan is for groups of {listed(f'{n}: {s:,}' for n, s in planned.items())}, and the "
            f"budgets are of {listed(f'{n}: {s:,}' for n, s in sizes.items())}: plan with "
            "budgets.groups and budgets.public_sizes()"
        )
    for name, group in plan.groups.items():
        granted = budgets.groups[name]
        if group.budget != granted:
            planned_for = f"ε = {group.budget.epsilon:g} at δ = {group.budget.delta:g}"
            raise InputError(
                f"the plan gives group {name!r} {planned_for}, and its owners granted ε = "
                f"{granted.epsilon:g} at δ = {granted.delta:g}: plan with budgets.groups"
            )
    named = [place.get(name, -1) for name in budgets.group_names]
    positions = np.array([*named, -1, -1], dtype=np.intp)  # -1 and -2 are levels without a group
    return np.asarray(positions[budgets.owner_group])
