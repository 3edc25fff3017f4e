"""What one mechanism costs each cohort. A cost says which guarantee and which neighbours it is about.

Costs of another guarantee or about other neighbours mean something else and never add up: mixing them
is refused, here and by every account.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium.errors import InputError

Floats = NDArray[np.float64]

#: The neighbours of nearly every cost: what holds for them holds for each kind of change alone.
ANY_CHANGE = "all records of one owner are added, removed or replaced"


@dataclass(frozen=True, eq=False)
class WorstCaseCost:
    """What one mechanism costs each cohort, whatever the data are.

    Attributes
    ----------
    mu_squared : ndarray of float64, shape (n_cohorts,)
        The mechanism is μ-Gaussian-DP for each owner of the cohort.
    pure_epsilon : ndarray of float64, shape (n_cohorts,)
        The mechanism is also (ε, 0)-DP for each owner; ``inf`` where it is not.
    adjacency : str
        Which neighbours this is about, in words.
    """

    mu_squared: Floats
    pure_epsilon: Floats
    adjacency: str = ANY_CHANGE
    _stacked: Floats | None = field(default=None, init=False, repr=False)
    guarantee: ClassVar[str] = "worst-case"

    def stacked(self, n_cohorts: int) -> Floats:
        """Both amounts, checked, as an array of shape (2, n_cohorts); made once, then not changed.

        Raises
        ------
        InputError
            If there are not as many amounts, or one is negative or NaN.
        """
        if self._stacked is None:
            check_amounts(self.mu_squared, (n_cohorts,))
            check_amounts(self.pure_epsilon, (n_cohorts,))
            object.__setattr__(self, "_stacked", np.stack([self.mu_squared, self.pure_epsilon]))
        stacked = self._stacked
        assert stacked is not None
        if stacked.shape[1] != n_cohorts:
            check_amounts(self.mu_squared, (n_cohorts,))
        return stacked

    def __add__(self, other: WorstCaseCost) -> WorstCaseCost:
        if not isinstance(other, WorstCaseCost):
            return NotImplemented
        _require_one_adjacency(self.adjacency, other.adjacency)
        return WorstCaseCost(
            add_up(self.mu_squared, other.mu_squared),
            add_up(self.pure_epsilon, other.pure_epsilon),
            self.adjacency,
        )


@dataclass(frozen=True, eq=False)
class RenyiCost:
    """What one mechanism costs each cohort on this one data set. **Sensitive.**

    An account also takes the bare array, as a cost at its own orders and about its own neighbours.

    Attributes
    ----------
    sensitive_rdp : ndarray of float64, shape (n_cohorts, n_orders)
        Rényi-DP ε at each order.
    orders : ndarray of float64, shape (n_orders,)
        Orders α > 1.
    adjacency : str
        Which neighbours this is about, in words.
    """

    sensitive_rdp: Floats
    orders: Floats
    adjacency: str = ANY_CHANGE
    guarantee: ClassVar[str] = "data-dependent"

    def __add__(self, other: RenyiCost) -> RenyiCost:
        if not isinstance(other, RenyiCost):
            return NotImplemented
        _require_one_adjacency(self.adjacency, other.adjacency)
        if not np.array_equal(self.orders, other.orders):
            raise InputError(
                "two costs at different orders do not add up: compute them at the same"
            )
        return RenyiCost(
            add_up(self.sensitive_rdp, other.sensitive_rdp), self.orders, self.adjacency
        )


def add_up(total: Floats, cost: Floats) -> Floats:
    """Add, rounded up: a sum of floats is never below the sum of the numbers."""
    summed = np.asarray(total + cost)
    np.nextafter(summed, np.inf, out=summed, where=cost > 0)
    return summed


def check_amounts(amounts: Floats, shape: tuple[int, ...]) -> None:
    """Refuse a cost of another shape, or with a negative amount or NaN (inf is allowed)."""
    given = getattr(amounts, "shape", None)
    if given != shape:
        raise InputError(f"a cost of shape {given} was given to an account of shape {shape}")
    if not (amounts >= 0).all():
        raise InputError("a cost must be 0 or more at every cohort, got a negative number or NaN")


def _require_one_adjacency(one: str, other: str) -> None:
    if one != other:
        raise InputError(
            f"costs about different neighbours ({one!r}, and {other!r}) do not add up: compute them for "
            "the same"
        )
