"""The records of a run: private ones in memory, and the public ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import Arrangement
from collegium.budgets import Budgets
from collegium.data.tables import take_rows
from collegium.zero_and_public_budgets import PublicRecords

if TYPE_CHECKING:
    from collegium.ledger.allowance import Spending


@dataclass(frozen=True, eq=False)
class Records:
    """Private records in memory, and the public ones.

    ``X``, ``codes``, ``budgets``: private records, their class numbers, and who granted what. **Sensitive.**
    ``classes``: public list of classes.
    ``X_public``: public records.
    ``y_public``: their true classes, where they are known: only measured with, never learnt from.
    ``given``: records whose owners let them be published: the student learns from them, no teacher does.
    ``made_public``: names of owners whose records become public in this run: those, and those of a split.
    ``arrangement``: where owners, group sizes, levels and classes come from; the run adds what the recipe
        decides.
    ``delta_0``: what each group grants of a ledger's δ₀, beside its budget; none without a ledger.
    """

    X: Any
    codes: NDArray[np.intp]
    budgets: Budgets
    classes: NDArray[Any]
    X_public: Any
    y_public: NDArray[Any] | None = None
    arrangement: Arrangement = field(default_factory=Arrangement)
    given: PublicRecords | None = None
    made_public: NDArray[Any] | None = None
    delta_0: Mapping[str, float] = field(default_factory=dict)

    def with_budgets(
        self, budgets: Budgets, rows: NDArray[np.intp], arrangement: Arrangement
    ) -> Self:
        """Take some of the private records, whose owners have other budgets left than they once granted."""
        return replace(
            self,
            X=take_rows(self.X, rows),
            codes=self.codes[rows],
            budgets=budgets,
            arrangement=arrangement,
        )

    def regrouped(self, budgets: Budgets) -> Self:
        """Put people into the groups of ``budgets``, made of how many granted which; else as they are."""
        if budgets is self.budgets:
            return self
        arrangement = replace(self.arrangement, regrouped=True)
        return replace(self, budgets=budgets, arrangement=arrangement)

    def allowed(self, spending: Spending) -> Self:
        """Take the records of those who take part, with what they have left in a ledger."""
        allowance = spending.allowance
        arrangement = replace(self.arrangement, promise=allowance.lifetime.promise)
        return replace(
            self.with_budgets(spending.budgets, spending.records, arrangement),
            delta_0=allowance.delta_0,
        )
