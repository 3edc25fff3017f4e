"""Whose records are whose, and who is drawn: what a network's private step reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import TensorDataset, default_collate

from collegium.budgets import Budgets
from collegium.checks import check_is, listed
from collegium.dpsgd.networks.own_randomness import (
    another,
    names_as_numbers,
    seed_of_all,
    seeds_of_records,
)
from collegium.dpsgd.networks.owner_sums import Drawn
from collegium.dpsgd.networks.redacted_errors import unquoted
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError
from collegium.models.global_generators import kept_generators, seed_generators
from collegium.personalisation.dpsgd_plan import DPSGDPlan

Floats = NDArray[np.float64]
Augment = Callable[[Tensor], Tensor]
_TOGETHER = 1024  # targets that are read together
_TIMES_READ = 8
_PAIRS = "give (X, y), two tensors, or anything with positions whose items are pairs of record and target"


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
        plan: DPSGDPlan,
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
        self._owner = owner = budgets.record_owner
        self._order = np.argsort(owner, kind="stable")
        self._names = names_as_numbers(budgets.owners)
        self._counts = np.bincount(owner, minlength=budgets.n_owners)
        self._starts = np.cumsum(self._counts) - self._counts
        group = groups_of(budgets, plan)
        each = list(plan.groups.values())
        outside = [0.0]  # of who is in no group: last, where -1 finds it
        self._rates = np.array([g.rate for g in each] + outside)[group]
        self._clips = np.array([g.clip for g in each] + outside)[group]
        self._weights = self._clips if plan.bound == "weight" else np.sign(self._clips)

    @property
    def _taking_part(self) -> NDArray[np.intp]:
        """Rows of all who ever do: nothing is read of anybody else."""
        return np.flatnonzero((self._clips > 0)[self._owner])

    @property
    def a_record(self) -> Tensor:
        """One record: for its shape and type.

        Raises InputError if it is another whenever it is read: a generator that nobody else can seed is drawn
        from by all records in turn, so that one person's absence changes what all behind get.
        """

        def first() -> Tensor:
            return self.read(self._taking_part[:1], torch.zeros(1, dtype=torch.int64))[0][0][0]

        record = unquoted(first, "reading the first record", _PAIRS)
        for _ in range(_TIMES_READ - 1):
            again = unquoted(first, "reading the first record", _PAIRS)
            if not torch.equal(record.nan_to_num(), again.nan_to_num()):
                raise InputError(
                    f"{'augment' if self._augment else 'the dataset'} draws from a generator of its own (the "
                    "same record came out differently under the same seeds): draw from the global generators "
                    "of torch, numpy or random, which are seeded for each person's records"
                )
        return record

    def targets(self) -> Iterator[tuple[NDArray[np.intp], Tensor]]:
        """Read the targets of all who take part, some at a time, with their rows."""
        taking_part = self._taking_part
        for first in range(0, len(taking_part), _TOGETHER):
            rows = taking_part[first : first + _TOGETHER]

            def some(rows: NDArray[np.intp] = rows) -> Tensor:
                if self._tensors is None:
                    with kept_generators():
                        found = [self._dataset[row][1] for row in rows.tolist()]
                    read: Tensor = default_collate(found)
                    return read
                targets = self._tensors[1]
                return targets[torch.from_numpy(rows).to(targets.device)]

            read = unquoted(some, "reading targets", _PAIRS)
            if not isinstance(read, Tensor):
                raise InputError(
                    f"targets must be numbers or tensors, got values of type {type(read).__name__} when "
                    "collated: number them"
                )
            yield rows, read

    def draw(self, sample: Sample) -> Drawn:
        """Find the records of the owners who take part."""
        present = sample.takes_part(self._rates, "") & (self._clips > 0) & (self._counts > 0)
        owners = np.flatnonzero(present)
        counts, starts = self._counts[owners], self._starts[owners]
        begins = np.cumsum(counts) - counts
        numbers = np.arange(counts.sum()) - np.repeat(begins, counts)  # of an owner's records
        return Drawn(
            self._order[np.repeat(starts, counts) + numbers],
            begins,
            self._clips[owners],
            self._weights[owners],
            seeds_of_records(sample, np.repeat(self._names[owners], counts), numbers),
            seed_of_all(sample),
        )

    def read(self, rows: NDArray[np.intp], seeds: Tensor) -> Sequence[tuple[Tensor, Tensor]]:
        """Read records and targets, in as many variants as are made of each.

        ``seeds`` (n,): of each record, for a dataset and an ``augment`` that draw from global generators.
        """
        if self._tensors is not None:
            chosen = torch.from_numpy(np.ascontiguousarray(rows))
            records, targets = (values[chosen.to(values.device)] for values in self._tensors)
        else:
            with kept_generators():
                items = []
                for row, own in zip(rows.tolist(), seeds.tolist(), strict=True):
                    seed_generators(own)
                    items.append(self._dataset[row])
            records, targets = default_collate([(item[0], item[1]) for item in items])
        if self._augment is None:
            return [(records, targets)]
        return [
            (self._variants(self._augment, records, seeds, number + 1), targets)
            for number in range(self._times)
        ]

    @staticmethod
    def _variants(augment: Augment, records: Tensor, seeds: Tensor, number: int) -> Tensor:
        made = []
        with kept_generators():
            for record, own in zip(records, seeds.tolist(), strict=True):
                seed_generators(another(own, number))
                made.append(augment(record))
        return torch.stack(made)


def _tensors(dataset: Any) -> tuple[Tensor, Tensor] | None:
    given = dataset.tensors if type(dataset) is TensorDataset else dataset
    if not isinstance(given, tuple):
        has_positions = hasattr(given, "__len__") and hasattr(given, "__getitem__")
        if not has_positions or hasattr(given, "columns"):
            raise InputError(
                f"the dataset, of type {type(given).__name__}, has no positions: {_PAIRS}"
            )
        return None
    if len(given) != 2:
        raise InputError(
            f"the dataset is a tuple of {len(given)}, not of records and targets: {_PAIRS}"
        )
    records, targets = (unquoted(partial(_tensor, one), "making a tensor", _PAIRS) for one in given)
    if not (records.dim() and targets.dim()) or len(records) != len(targets):
        raise InputError(
            f"the dataset's records have shape {tuple(records.shape)}, and its targets "
            f"{tuple(targets.shape)}: give one target for each record"
        )
    return records, targets


def _tensor(given: Any) -> Tensor:
    return torch.as_tensor(np.array(given) if hasattr(given, "to_numpy") else given)


def check_agreed(plan: Any, budgets: Any) -> None:
    """Refuse what is no plan, or no budgets."""
    check_is("plan", plan, DPSGDPlan, "make it with collegium.plan_dpsgd")
    check_is("budgets", budgets, Budgets, "make them with Policy.assign or Budgets.from_epsilons")


def groups_of(budgets: Budgets, plan: DPSGDPlan) -> NDArray[np.intp]:
    """Find each owner's group in the plan, by name; -1 for who is in no group.

    Raises InputError if the plan is for others, or somebody would spend more by it than was granted.
    """
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
    over = plan.over_budget
    if over:
        spent, granted = plan.epsilon()[over[0]], plan.groups[over[0]].budget
        raise InputError(
            f"by this plan each owner of group {over[0]!r} would spend ε = {spent:.6g}, and granted "
            f"{granted.epsilon:g} at δ = {granted.delta:g}: make the plan with collegium.plan_dpsgd, and "
            "change nothing of it"
        )
    positions = np.array([*plan.places_of(budgets), -1, -1])  # -1 and -2 are levels without a group
    return np.asarray(positions[budgets.owner_group])
