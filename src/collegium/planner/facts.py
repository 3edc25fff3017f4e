"""What a plan is made of: budgets, group sizes, classes and public records. Nothing else is ever seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budget, Budgets
from collegium.data.record_kinds import kind_of_records
from collegium.distillation.goal import ACCURACY
from collegium.dpsgd.by_rule import signal
from collegium.dpsgd.grid import MAX_NOISE
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError
from collegium.ledger.limits import Lifetime
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.personalisation.rates import plan_dpsgd

LABELS = "labels"
"""A goal that only votes reach."""


@dataclass(frozen=True, eq=False)
class Facts:
    """All that a plan may depend on.

    ``groups``: what each group granted, by name.
    ``sizes``: public number of owners of each group.
    ``classes`` (n_classes,): the public list of classes.
    ``X_public``: public records.
    ``known`` (n_public,): class numbers of public records; -1 where nobody knows.
    ``n_records``: private records; only what a run would take in time and memory is told from it, since how
        many records a person has is nobody's public fact.
    ``goal``: what is wanted: "accuracy", "balanced", "auc", or released "labels".
    ``neighbours``: whom the guarantee compares.
    ``class_shares`` (n_classes,): public shares of the classes, if given.
    ``seed``: of public randomness.
    """

    groups: Mapping[str, Budget]
    sizes: Mapping[str, int]
    classes: NDArray[Any]
    X_public: Any
    known: NDArray[np.intp]
    n_records: int
    goal: str = ACCURACY
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE
    class_shares: NDArray[np.float64] | None = None
    seed: int = 0
    dpsgd: DPSGDSettings = field(default_factory=DPSGDSettings)

    def __post_init__(self) -> None:
        if len(self.classes) < 2:
            raise InputError(
                f"classes has {len(self.classes)} class, which leaves nothing to learn: give the "
                "public list of two or more classes"
            )

    @classmethod
    def of(cls, budgets: Budgets, **others: Any) -> Facts:
        """Take the public side of budgets."""
        return cls(dict(budgets.groups), budgets.public_sizes(), **others)

    @property
    def kept_goal(self) -> str:
        """The goal of a student: where labels are wanted, to be right."""
        return ACCURACY if self.goal == LABELS else self.goal

    @property
    def n_people(self) -> int:
        """Owners with a budget."""
        return sum(self.sizes.values())

    @property
    def n_public(self) -> int:
        """Public records."""
        return int(self.X_public.shape[0])

    @cached_property
    def kind(self) -> str:
        """What records are: "images", a "table" with named columns, or "rows" of numbers."""
        return kind_of_records(self.X_public)

    @cached_property
    def labelled(self) -> NDArray[np.intp]:
        """Rows of public records whose class is known."""
        return np.flatnonzero(self.known >= 0)

    def unshown(self, least: int) -> list[str]:
        """Name the classes of which fewer public records than that are known."""
        counts = np.bincount(self.known[self.labelled], minlength=len(self.classes))
        return [str(name) for name in self.classes[counts < least]]

    @cached_property
    def shares(self) -> NDArray[np.float64] | None:
        """Public shares of the classes: given, or counted in public labels; None where neither is there.

        Labels of one class only were selected, and tell no shares.
        """
        if self.class_shares is not None:
            return self.class_shares
        if np.unique(self.known[self.labelled]).size < 2:
            return None
        counts = np.bincount(self.known[self.labelled], minlength=len(self.classes)) + 0.5
        return np.asarray(counts / counts.sum())

    @cached_property
    def dpsgd_plan(self) -> DPSGDPlan:
        """What these budgets buy in a full batch."""
        return plan_dpsgd(
            self.groups,
            self.sizes,
            steps=self.dpsgd.steps,
            kind="full-batch",
            neighbours=self.neighbours,
        )

    def with_share(self, share: float) -> Facts:
        """Let everybody grant only a share of their μ²."""
        if share == 1.0:
            return self
        lifetime = Lifetime(delta_0_share=0.0)  # which is apart already, where a ledger keeps it
        groups = {name: lifetime.part(one, share)[0] for name, one in self.groups.items()}
        return replace(self, groups=groups)

    def require_drawable(self) -> None:
        """Refuse budgets so small that no direct training can draw the noise they ask for.

        Raises InputError.
        """
        noise = self.dpsgd_plan.noise
        if noise > MAX_NOISE:
            smallest = min(budget.epsilon for budget in self.groups.values())
            raise InputError(
                f"budgets are too small (the smallest ε is {smallest:g}): they need "
                f"{noise / MAX_NOISE:.2g} times the largest noise that can be drawn; ask these people "
                "for a larger ε, or leave them out"
            )

    @cached_property
    def signal(self) -> float:
        """Σ of μ over people, as far as a common plan uses it: what accuracy under noise depends on."""
        return signal(self.dpsgd_plan)
