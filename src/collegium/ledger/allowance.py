"""What one release may use of people's budgets, and its reservation: before anything is drawn, and after."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import Arrangement
from collegium.budgets import Budget, Budgets
from collegium.checks import people
from collegium.errors import (
    BudgetExceededError,
    InputError,
    LedgerError,
    LedgerWarning,
    PrivacyWarning,
    frames_to_user,
)
from collegium.ledger.ledger import Balance, Ledger, Reservation
from collegium.ledger.limits import IN_WORDS, Cost, Lifetime
from collegium.personalisation.bins import MOST_BUDGETS, few_groups

SEEDED = (
    "noise from a seed protects nobody, so it cannot be used with a ledger: leave noise_seed out"
)
V = TypeVar("V")
_Part = tuple[Budget, float]  # what a group grants a release, and of δ₀
_STEPS = 10  # what is left is rounded down to tenths, so that groups do not become too small


@dataclass(frozen=True, eq=False)
class Allowance:
    """What one release may use of people's budgets: decided once, before it is planned.

    Attributes
    ----------
    release : str
        Its name in the ledger.
    lifetime : Lifetime
        What the ledger promises everybody, and so in what the release is counted.
    groups : mapping of str to Budget
        What the members of each group grant this release.
    delta_0 : mapping of str to float
        How much of δ₀ they grant it beside that.
    codes : ndarray of int, shape (n_owners,)
        Group of each owner who was offered; -1 for who takes no part.
    n_left : int
        How many of those take no part because they have left.
    """

    release: str
    lifetime: Lifetime
    groups: Mapping[str, Budget]
    delta_0: Mapping[str, float]
    codes: NDArray[np.intp]
    n_left: int = 0

    @classmethod
    def what_is_left(cls, granted: Budgets, left: Balance, least: int) -> Allowance:
        """What people have left, rounded down to tenths, in groups of those who have the same.

        Parameters
        ----------
        granted : Budgets
            Who is offered.
        left : Balance
            Of these.
        least : int
            How many owners a group needs; fewer get what the next group of their level has left.

        Raises
        ------
        BudgetExceededError
            If nobody has anything left.
        """
        _refuse_declared(granted)
        tenths = _merged(granted, _tenths(left), least)
        alike, which = np.unique(
            np.stack([granted.owner_group, tenths]), axis=1, return_inverse=True
        )
        codes, parts = _groups(granted, alike, left.lifetime)
        if not parts:
            raise BudgetExceededError(
                f"no budget is left in the ledger for {people(granted.n_owners)} (less than a tenth "
                f"of their {_unit(left)}){_used_by(left.last_use)}{_of_whom_left(left)}: ask them for more "
                "(`collegium ledger change`), or, to go on with a study that has begun, `collegium run` its "
                "own file and folder; nothing was spent now"
            )
        n_left = int(left.has_left.sum())
        return cls(uuid4().hex, left.lifetime, *_few(parts, codes[which]), n_left)

    @classmethod
    def by_level(cls, granted: Budgets, left: Balance) -> Allowance:
        """What everybody of a level has left, where who is in which group was decided elsewhere.

        Parameters and errors as for :meth:`what_is_left`; refused is also a level of which anybody has
        nothing left.
        """
        _refuse_declared(granted)
        tenths = _tenths(left)
        parts: dict[str, _Part] = {}
        for code, (level, budget) in enumerate(granted.groups.items()):
            its = tenths[granted.owner_group == code]
            if gone := int(left.has_left[granted.owner_group == code].sum()):
                raise LedgerError(
                    f"{gone:,} of {its.size:,} people of level {level!r} have left: take their records out; "
                    "nothing was asked or spent"
                )
            if its.size and not its.min():
                raise BudgetExceededError(
                    f"{(its == 0).sum():,} of {its.size:,} people of level {level!r} have no budget "
                    f"left in the ledger (less than a tenth of their {_unit(left)}): leave their records "
                    "out; nothing was asked or spent"
                )
            parts[level] = _part(budget, int(its.min(initial=_STEPS)), left.lifetime)
        return cls(uuid4().hex, left.lifetime, *_apart(parts), granted.owner_group)

    def sizes(self) -> dict[str, int]:
        """How many people are in each group."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.groups))
        return dict(zip(self.groups, counts.tolist(), strict=True))

    def left_afterwards(
        self, granted: Budgets, left: Balance, used: float = 1.0
    ) -> dict[str, tuple[float, float]]:
        """What it takes of each group at most, and leaves at least, as shares of what members grant.

        ``used``: the share of it that is used.
        """
        found = {}
        for code, (name, part) in enumerate(self.groups.items()):
            its = np.flatnonzero(self.codes == code)
            taken = self.lifetime.all_of(part)
            limits = map(self.lifetime.limit, granted.groups.values())
            shares = [used * limit.share_of(taken) for limit in limits]
            if its.size and not part.is_unlimited:
                takes = np.array(shares)[granted.owner_group[its]]
                after = left.share[its] - takes
                found[name] = float(takes.max()), max(0.0, float(after.min()))
        return found

    def if_raised(self, granted: Budgets, levels: Mapping[str, float]) -> dict[str, Budget]:
        """What groups of these levels would have left if their level meant another ε: what is used stays so.

        Raises BudgetExceededError where a group would have nothing left.
        """
        found = {}
        for code, (name, part) in enumerate(self.groups.items()):
            members = np.flatnonzero(self.codes == code)
            level = granted.group_names[granted.owner_group[members[0]]] if members.size else ""
            if level in levels:
                before = granted.groups[level]
                after = Budget(levels[level], before.delta)
                used = self.lifetime.limit(before).left(self.lifetime.all_of(part))
                share = 1 - self.lifetime.limit(after).share_of(replace(used, delta_0=0.0))
                if share <= 0:
                    raise BudgetExceededError(
                        f"group {name!r} would have nothing left with ε = {levels[level]:g}: it has used more"
                    )
                found[name] = self.lifetime.part(after, share)[0]
        return found

    def part(self, spend: float) -> Allowance:
        """Take only a share of it, of everybody; above 0 and at most 1."""
        if spend == 1:
            return self
        without = replace(self.lifetime, delta_0_share=0.0)  # which is apart already
        groups = {name: without.part(one, spend)[0] for name, one in self.groups.items()}
        delta_0 = {name: leak * spend for name, leak in self.delta_0.items()}
        return replace(self, groups=groups, delta_0=delta_0)


class Entry:
    """A release that is reserved, and not settled: nothing is drawn before, or published without.

    ``settle``: enters what was drawn, as the release's spending takes it.

    Attributes
    ----------
    may_have_drawn : bool
        Whether noise may have been drawn.
    """

    def __init__(self, settle: Callable[..., None]) -> None:
        self._settle = settle
        self.may_have_drawn = False

    def draws(self) -> None:
        """Say that noise may be drawn from now on."""
        self.may_have_drawn = True

    def settle(self, *drawn: Any) -> None:
        """Enter what the release did cost; raises LedgerError if that fails."""
        self._settle(*drawn)


class Spending:
    """What a run does about a ledger: a base for each method's.

    Parameters
    ----------
    people : Budgets
        Whose records are offered, and what they grant over all releases together.
    allowance : Allowance
        What of it this run may use.

    Attributes
    ----------
    people : Budgets
        As given.
    records : ndarray of int
        Positions of the records of those who take part.
    budgets : Budgets
        Of these records, as the run may use them.
    used : float
        Which share of the allowance the run uses at most.
    """

    method: ClassVar[str]
    used = 1.0

    def __init__(self, people: Budgets, allowance: Allowance) -> None:
        self.allowance = allowance
        self.people = people
        present = allowance.codes >= 0
        if not present.all():
            warnings.warn(
                f"{(~present).sum():,} of {len(present):,} people take no part: "
                f"{_why_not(int((~present).sum()), allowance.n_left)}",
                PrivacyWarning,
                stacklevel=3,
            )
        self.records: NDArray[np.intp] = np.flatnonzero(present[people.record_owner])
        self._granted = people[self.records]
        owners = people.record_owner[self.records]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # they were warned of as granted
            self.budgets = Budgets(
                dict(allowance.groups), allowance.codes[owners], people.owners[owners]
            )
        self._reservation: Reservation | None = None

    def of_each_group(self, found: Mapping[str, V], nobody: V) -> list[V]:
        """What an account found for each group of the ledger, in their order.

        ``nobody``: for a group that it does not know, and in which nobody takes part.
        Raises LedgerError for a group that the account does not know: it is not one that cost nothing.
        """
        for name, size in self.allowance.sizes().items():
            if size and name not in found:
                raise LedgerError(
                    f"what {size:,} people of {name!r} pay is not known, since the account has no group of "
                    "that name: nothing more was asked"
                )
        return [found.get(name, nobody) for name in self.allowance.groups]

    def reserve(
        self,
        ledger: Ledger,
        name: str,
        costs: list[Cost],
        arrangement: Arrangement,
        *,
        allow_new_people: bool = False,
        again: bool = False,
        token: str = "",
        held: Collection[str] = (),
    ) -> Reservation:
        """Set aside what the run may cost; nothing may be drawn before."""
        self._reservation = ledger.reserve(
            self.allowance.release,
            name,
            self._granted,
            costs,
            self.allowance.codes[self.allowance.codes >= 0],
            about={"method": self.method, "neighbours": arrangement.sentence},
            neighbours=arrangement.neighbours,
            allow_new_people=allow_new_people,
            again=again,
            token=token,
            held=held,
        )
        return self._reservation

    @contextlib.contextmanager
    def reserved(
        self,
        ledger: Ledger,
        name: str,
        costs: list[Cost],
        arrangement: Arrangement,
        *,
        allow_new_people: bool = False,
        drawn: Callable[[], tuple[Any, ...]] | None = None,
    ) -> Iterator[Entry]:
        """Set aside what a run in this process may cost, and lend what settles it.

        If the block is cut off, what was not drawn is given back where that is known: all, unless the entry
        says that noise may have been drawn; and then what ``drawn``, as :meth:`settle` takes it, leaves.
        Otherwise the ledger keeps all that was reserved. It keeps that, too, with a warning, if settling
        fails: what was drawn is paid for, and is the user's.
        """
        self.reserve(ledger, name, costs, arrangement, allow_new_people=allow_new_people)
        entry = Entry(self._settle_or_warn)
        try:
            yield entry
        except BaseException:
            with contextlib.suppress(LedgerError):
                if not entry.may_have_drawn:
                    self.give_back()
                elif drawn is not None:
                    self.settle(*drawn())
            raise

    def _settle_or_warn(self, *drawn: Any) -> None:
        try:
            self.settle(*drawn)
        except LedgerError as error:
            warnings.warn(
                f"the ledger keeps all that was reserved, which is more than was spent: {error}",
                LedgerWarning,
                stacklevel=frames_to_user(),
            )

    def go_on(
        self, ledger: Ledger, *, all_is_drawn: bool, token: str, held: Collection[str]
    ) -> Reservation:
        """Go on with what was set aside before, whoever has left since."""
        self._reservation = ledger.reservation(
            self.allowance.release,
            self._granted,
            all_is_drawn=all_is_drawn,
            token=token,
            held=held,
        )
        return self._reservation

    def settle(self, *drawn: Any, **named: Any) -> None:
        """Enter what the run did cost: each method knows what it takes for that."""
        raise NotImplementedError

    def give_back(self) -> None:
        """Enter that nothing was drawn."""
        assert self._reservation is not None
        self._reservation.settle([Cost(0.0) for _ in self.allowance.groups])


def _why_not(n: int, n_left: int) -> str:
    """Say why people take no part. ``n_left``: how many of them have left."""
    gone = f"{n_left:,} {'has' if n_left == 1 else 'have'} left" if n_left else ""
    if n_left == n:
        return gone
    others = "the others" if n_left else "they"
    none = (
        f"{others} have no budget left in the ledger, or too few others have as little left as they"
    )
    return "; ".join(filter(None, (gone, none)))


def _of_whom_left(left: Balance) -> str:
    n_left = int(left.has_left.sum())
    return f"; {n_left:,} of them {'has' if n_left == 1 else 'have'} left" if n_left else ""


def _used_by(last_use: tuple[str, str] | None) -> str:
    return (
        "" if last_use is None else f", which {last_use[0]!r} was the last to use, on {last_use[1]}"
    )


def _refuse_declared(granted: Budgets) -> None:
    if granted.declared_sizes is not None:
        raise InputError(
            "sizes are declared, but with a ledger they are counted, since people of one level may "
            "have different budgets left: leave sizes out"
        )


def _tenths(left: Balance) -> NDArray[np.intp]:
    return np.floor(left.share * _STEPS + 1e-9).astype(np.intp)


def _merged(granted: Budgets, tenths: NDArray[np.intp], least: int) -> NDArray[np.intp]:
    """Lower what is left to those of too small a group, to that of the next group of their level.

    Where that is the last one, they take no part: a few people must not stop a release about all others.
    """
    tenths = tenths.copy()
    for level in range(len(granted.group_names)):
        its = granted.owner_group == level
        steps = sorted(set(tenths[its].tolist()) - {0}, reverse=True)
        while len(steps) > 1 and (its & (tenths == steps[-1])).sum() < least:
            tenths[its & (tenths == steps.pop())] = 0
        for step, lower in pairwise(steps):
            if (its & (tenths == step)).sum() < least:
                tenths[its & (tenths == step)] = lower
    return tenths


def _groups(
    granted: Budgets, alike: NDArray[np.intp], lifetime: Lifetime
) -> tuple[NDArray[np.intp], dict[str, _Part]]:
    """Make a group of those who have the same left; -1 for those who have nothing.

    ``alike`` (2, n): pairs of a level and of how many tenths of its budget are left.
    """
    groups: dict[str, _Part] = {}
    numbers = np.full(alike.shape[1], -1, dtype=np.intp)
    for place, (code, tenths) in enumerate(alike.T.tolist()):
        level = granted.group_names[code]
        if not tenths:
            continue
        name = level if tenths == _STEPS else f"{level}, {tenths}/{_STEPS} left"
        groups[name] = _part(granted.groups[level], tenths, lifetime)
        numbers[place] = len(groups) - 1
    return numbers, groups


def _few(
    parts: Mapping[str, _Part], codes: NDArray[np.intp]
) -> tuple[Mapping[str, Budget], Mapping[str, float], NDArray[np.intp]]:
    """Put groups together where nearly everybody has one: each grants what its strictest member does."""
    groups, delta_0 = _apart(parts)
    if len(groups) <= MOST_BUDGETS:
        return groups, delta_0, codes
    sizes = np.bincount(codes[codes >= 0], minlength=len(groups)).tolist()
    found = few_groups(groups, dict(zip(groups, sizes, strict=True)), MOST_BUDGETS)
    place = {name: number for number, name in enumerate(found.groups)}
    new = np.array([place[found.group_of[name]] for name in groups], dtype=np.intp)
    least = dict.fromkeys(found.groups, 1.0)
    for name, leak in delta_0.items():
        least[found.group_of[name]] = min(least[found.group_of[name]], leak)
    return found.groups, least, np.where(codes >= 0, new[codes], codes)


def _apart(parts: Mapping[str, _Part]) -> tuple[dict[str, Budget], dict[str, float]]:
    budgets = {name: budget for name, (budget, _) in parts.items()}
    return budgets, {name: delta_0 for name, (_, delta_0) in parts.items()}


def _part(budget: Budget, tenths: int, lifetime: Lifetime) -> _Part:
    return lifetime.part(budget, tenths / _STEPS)


def _unit(left: Balance) -> str:
    return IN_WORDS[left.lifetime.promise]
