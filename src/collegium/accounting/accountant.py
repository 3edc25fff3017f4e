"""What every account does: filter and odometer for adaptively chosen events.

An account ties budgets, costs and spending by cohort. Reading it and asking it (``affords``,
``preview``, ``how_many``, ``remaining``) change nothing; ``charge`` and ``restore`` first check, then
change, so a refusal leaves the account as it was.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.accounting._inputs import as_floats
from collegium.accounting.bookkeeping import (
    MOST_CHARGES,
    add_repeatedly,
    add_up,
    as_json,
    from_json,
    left_over,
    require_same,
)
from collegium.accounting.events import Event, SensitiveCurve
from collegium.accounting.neighbours import Neighbours
from collegium.checks import shown
from collegium.errors import BudgetExceededError, InputError

Floats = NDArray[np.float64]
Cost = Event | SensitiveCurve

#: What users call an account of public costs, and one that was computed from votes.
PUBLIC, SENSITIVE = "worst-case", "data-dependent"
_KEPT = 8


@dataclass(frozen=True, eq=False)
class Remaining:
    """What the owners of each cohort have left. Sensitive if the account is.

    Attributes
    ----------
    epsilon : ndarray of float64, shape (n_cohorts,)
        Budget minus what was spent, at the cohort's δ, rounded down. Further mechanisms compose with
        what was released already, so their ε do not simply add up to this.
    mu : ndarray of float64, shape (n_cohorts,), or None
        Every further mechanism that is μ-GDP for the owner with at most this μ is affordable; rounded
        down. None where the account does not count in μ.
    """

    epsilon: Floats
    mu: Floats | None


class Accountant(ABC):
    """Filter and odometer, for one release or many.

    A subclass says how an event is priced in its notion of privacy (:meth:`_price`), when a total is too
    much (:meth:`_exceeds`), and what a total is in ε (:meth:`_epsilon_of`).

    Parameters
    ----------
    epsilon, delta : array-like of float, shape (n_cohorts,)
        Budget of each cohort's owners; ``epsilon`` may be infinite.
    names : sequence of str, optional
        Name of each cohort's group, for messages.
    neighbours : Neighbours, optional
        What the account hides about an owner; costs that do not hold about it are refused.

    Attributes
    ----------
    notion : {"gaussian", "renyi", "pure"}
        What is added up.
    sensitive : bool
        Whether costs may be computed from private data: then everything read off the account is
        sensitive, too.
    any_order : bool
        Whether it goes on while any Rényi order is within the budget: the papers' rule, not proved.
    """

    notion: ClassVar[str]
    sensitive: bool = False
    any_order: bool = False
    _total: Floats  # all that was charged; the first or the last axis is that of the cohorts

    def __init__(
        self,
        epsilon: ArrayLike,
        delta: ArrayLike,
        names: Sequence[str] | None = None,
        neighbours: Neighbours = Neighbours.ANY_CHANGE,
    ) -> None:
        self.epsilon: Floats = np.atleast_1d(np.array(as_floats("epsilon", epsilon)))
        deltas = as_floats("delta", delta)
        if deltas.shape not in ((), (1,), self.epsilon.shape):
            raise InputError(
                f"delta must be a number, or one for each cohort, got shape {deltas.shape}"
            )
        self.delta: Floats = np.broadcast_to(deltas, self.epsilon.shape).copy()
        if self.epsilon.ndim != 1 or not self.epsilon.size:
            raise InputError("an account needs at least one cohort: give one epsilon per cohort")
        if np.isnan(self.epsilon).any() or (self.epsilon <= 0).any():
            raise InputError("every cohort's epsilon must be greater than 0 (or infinite)")
        self._check_delta()
        if names is not None and (isinstance(names, str) or not isinstance(names, Sequence)):
            raise InputError(
                f"names must be a list of names, one for each cohort, got {shown(names)}"
            )
        self.names = tuple(names) if names is not None else tuple(map(str, range(len(self))))
        if len(self.names) != len(self):
            raise InputError(f"{len(self)} cohorts, but {len(self.names)} names: give one each")
        self.neighbours = neighbours
        self._priced: dict[int, tuple[Event, Floats]] = {}  # a job charges the same few, often

    def __len__(self) -> int:
        return int(self.epsilon.size)

    def without_limits(self) -> Self:
        """Make an odometer: the same account, of people who grant anything."""
        odometer = copy.copy(self)
        odometer.epsilon = np.full(len(self), np.inf)
        odometer._priced = {}
        return odometer

    @property
    def is_gaussian(self) -> bool:
        """Whether what was released is Gaussian-DP within each budget's μ, and not only (ε, δ)-DP."""
        return False

    @property
    def guarantee(self) -> str:
        """Kind of the guarantee, as users know it: "worst-case" or "data-dependent"."""
        return SENSITIVE if self.sensitive else PUBLIC

    def overspent(self, cost: Cost) -> NDArray[np.bool_]:
        """Which cohorts a cost would overspend, shape (n_cohorts,); changes nothing."""
        part = self._checked(cost)
        return self._over(add_up(self._total, part), part)

    def affords(self, cost: Cost) -> bool:
        """Whether nobody would overspend; changes nothing."""
        return not self.overspent(cost).any()

    def charge(self, cost: Cost, times: int = 1) -> None:
        """Charge an event to everybody, or to nobody.

        Parameters
        ----------
        cost : Event or SensitiveCurve
            The latter only to a sensitive account.
        times : int, default=1
            How often: bit for bit as if it were charged so many times in a row, or not at all.

        Raises
        ------
        InputError
            If this account cannot take it: wrong notion, neighbours or cohorts; the account is as before.
        BudgetExceededError
            If it would overspend some cohort; the account is as before.
        """
        part = self._checked(cost)
        after = add_up(self._total, part) if times == 1 else self._after_many(part, times)
        over = self._over(after, part)
        if over.any():
            first = int(np.flatnonzero(over)[0])
            raise BudgetExceededError(
                f"refused: {cost} would overspend group {self.names[first]!r}, whose budget is "
                f"ε = {self.epsilon[first]:g} at δ = {self.delta[first]:g} per owner "
                f"({self.guarantee}): stop here, or plan with more noise"
            )
        self._total = after

    def _after_many(self, part: Floats, times: int) -> Floats:
        if not 0 <= times <= MOST_CHARGES:
            raise InputError(f"times must lie between 0 and {MOST_CHARGES:,}, got {times:,}")
        return add_repeatedly(self._total, part, times)

    def epsilon_spent_by_name(self) -> dict[str, float]:
        """Look up the most that owners of any cohort of each name have spent. Sensitive like the account."""
        spent, names = self.epsilon_spent(), np.asarray(self.names, dtype=object)
        return {name: float(spent[names == name].max()) for name in dict.fromkeys(self.names)}

    def epsilon_spent(self) -> Floats:
        """Compute ε spent by the owners of each cohort at their δ, rounded up, shape (n_cohorts,).

        Sensitive like the account.
        """
        return self._epsilon_of(self._total)

    def preview(self, cost: Cost) -> Floats:
        """What :meth:`epsilon_spent` would say after a cost, even one that nobody can afford.

        Changes nothing. Shape (n_cohorts,). Sensitive like the account.
        """
        return self._epsilon_of(add_up(self._total, self._checked(cost)))

    def remaining(self) -> Remaining:
        """What is left to the owners of each cohort; changes nothing. Sensitive like the account."""
        return Remaining(left_over(self.epsilon, self.epsilon_spent()), None)

    def how_many(self, cost: Cost, most: int = MOST_CHARGES) -> int | float:
        """How often a cost can be charged until some cohort refuses; changes nothing.

        Sensitive like the account.

        Parameters
        ----------
        cost : Event or SensitiveCurve
            As for :meth:`charge`.
        most : int, default=2**53
            Count no further: a larger answer is not told from ``inf``.

        Returns
        -------
        int or float
            Exactly as often as :meth:`charge` would succeed in a row, rounding included; ``inf`` if it
            never refuses (or not within ``most`` times).
        """
        part = self._checked(cost)
        if not (self._touched(part) & np.isfinite(self.epsilon)).any():
            return math.inf
        low, at_low, high = 0, self._total, 1
        while not self._over(after := add_repeatedly(at_low, part, high - low), part).any():
            if high >= most:
                return math.inf
            low, at_low, high = high, after, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            after = add_repeatedly(at_low, part, middle - low)
            if self._over(after, part).any():
                high = middle
            else:
                low, at_low = middle, after
        return low

    def state(self) -> dict[str, Any]:
        """Everything that was charged, and to whom, for JSON; as sensitive as the account itself."""
        return {**self._identity(), "spent": as_json(self._total)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put back what :meth:`state` returned; what was charged since then is forgotten.

        Raises
        ------
        InputError
            If the state is damaged, or that of an account of another kind, with other cohorts or budgets,
            or about other neighbours; the account is as before.
        """
        require_same(state, self._identity())
        self._total = from_json(state.get("spent"), "spent", self._total.shape)

    def _identity(self) -> dict[str, Any]:
        return {
            "notion": self.notion,
            "guarantee": self.guarantee,
            "neighbours": self.neighbours.value,
            "names": list(self.names),
            "epsilon": as_json(self.epsilon),
            "delta": as_json(self.delta),
        }

    def _check_delta(self) -> None:
        if not ((self.delta > 0) & (self.delta < 1)).all():
            raise InputError("every cohort's delta must lie strictly between 0 and 1")

    def _checked(self, cost: Cost) -> Floats:
        """Check that a cost is one for this account, and price it in the shape of ``_total``."""
        known = self._priced.get(id(cost))
        if known is not None and known[0] is cost:
            return known[1]
        part = self._checked_anew(cost)
        if isinstance(cost, Event):
            if len(self._priced) == _KEPT:
                self._priced.clear()
            self._priced[id(cost)] = (cost, part)
        return part

    def _checked_anew(self, cost: Cost) -> Floats:
        if not isinstance(cost, Event | SensitiveCurve):
            raise InputError(
                f"{type(cost).__name__!r} is no cost: give an event that says what was noised; nothing was "
                "charged"
            )
        if cost.sensitive and not self.sensitive:
            raise InputError(
                f"a {SENSITIVE} cost was given to a {PUBLIC} account: they mean different things "
                "and do not add up; nothing was charged"
            )
        if not cost.neighbours.include(self.neighbours):
            raise InputError(
                f"a cost about other neighbours ({cost.neighbours.in_words!r}) was given to an account about "
                f"{self.neighbours.in_words!r}: nothing was charged"
            )
        if len(cost) != len(self):
            raise InputError(
                f"a cost of {len(cost)} cohorts was given to an account of {len(self)}: nothing was charged"
            )
        part = self._price(cost)
        if part.shape != self._total.shape:
            raise InputError(
                f"a cost of shape {part.shape} was given to an account of shape {self._total.shape}"
            )
        if not (part >= 0).all():
            raise InputError(
                "a cost must be 0 or more at every cohort, got a negative number or NaN"
            )
        return part

    def _over(self, total: Floats, part: Floats) -> NDArray[np.bool_]:
        """Who would have overspent; an owner whom the cost does not touch never does."""
        over = self._exceeds(total)
        return over & self._touched(part) if over.any() else over

    @abstractmethod
    def _price(self, cost: Any) -> Floats:
        """Amounts of a cost, at least 0, in the shape of ``_total``."""

    @abstractmethod
    def _touched(self, part: Floats) -> NDArray[np.bool_]: ...

    @abstractmethod
    def _exceeds(self, total: Floats) -> NDArray[np.bool_]: ...

    @abstractmethod
    def _epsilon_of(self, total: Floats) -> Floats: ...
