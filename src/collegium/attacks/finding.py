"""What an attack showed about one group, whatever was attacked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from collegium.budgets import Budget


@dataclass(frozen=True, kw_only=True)
class Finding(ABC):
    """What an attack showed about one group.

    ``budget``: what each owner of the group granted.
    ``lower_epsilon``, ``claim_epsilon``: empirical lower bound, and what the account charged, at the
        group's δ.
    """

    group: str
    budget: Budget
    lower_epsilon: float
    claim_epsilon: float

    #: What a table says of columns that explain themselves less.
    legend: ClassVar[str] = ""

    @property
    def holds(self) -> bool:
        """Whether the lower bound is below what is claimed."""
        return self.lower_epsilon <= self.claim_epsilon

    @property
    def of_mu(self) -> tuple[float, float, float] | None:
        """Lower bound, claim and budget in μ; None where nothing is claimed in it."""
        return None

    @abstractmethod
    def cells(self) -> dict[str, str]:
        """Write what only this attack shows, by column."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """Say the same for JSON."""

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON."""
        return {
            "lower_epsilon": self.lower_epsilon,
            "claim_epsilon": self.claim_epsilon,
            "budget_epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "holds": self.holds,
            **self.numbers(),
        }
