"""All that a ledger's entries say: who has which history, what was released, and who paid what.

Nothing is computed from anything but entries whose chain holds; the same function takes in old entries and
new ones. Only the way from an owner to a cohort stands in a table of its own, and each cohort's entry proves
who is in it.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.promises import Promise
from collegium.budgets import Budget
from collegium.errors import LedgerError
from collegium.json_files import number_as_json
from collegium.ledger.chain import Entry, Key, add_members
from collegium.ledger.limits import Cost, Lifetime, Limit

_limit_of = lru_cache(maxsize=1000)(Lifetime.limit)  # thousands of cohorts have a few budgets

BEGIN, JOIN, CHANGE, LEAVE = "begin", "join", "change", "leave"
RESERVE, TAKE, SETTLE = "reserve", "take", "settle"


@dataclass(frozen=True)
class Cohort:
    """Owners with one history: the same budgets granted, the same releases, the same costs.

    ``parent``: the cohort that they were in before the entry ``since``; None for where people join.
    ``proof``: of who they are: :meth:`Key.members <collegium.ledger.chain.Key.members>`, masked by the cohort
        and the entry ``written`` that says so.
    """

    id: int
    parent: int | None
    since: int
    level: str
    epsilon: float
    delta: float
    members: int
    proof: int
    written: int
    has_left: bool

    @property
    def budget(self) -> Budget:
        """What its owners grant now."""
        return Budget(self.epsilon, self.delta)


@dataclass(frozen=True)
class Release:
    """One release: what it may cost each part of its owners, or did cost, once it is settled."""

    id: str
    name: str
    about: Any
    opened: Entry
    costs: tuple[Cost, ...]
    closed: Entry | None = None
    n_owners: int = 0
    token: str = ""  # of who may go on with it, and settle it: of several copies of a folder, one

    @property
    def is_settled(self) -> bool:
        """Whether it has ended."""
        return self.closed is not None

    @property
    def reserved(self) -> tuple[Cost, ...]:
        """What it was to cost each part at most."""
        return tuple(cost_from_json(cost) for _, _, cost in self.opened.body["parts"])

    @property
    def ended_by_hand(self) -> str | None:
        """Why somebody ended it whose program was gone; None where it settled by itself, or is open."""
        return None if self.closed is None else self.closed.body.get("by_hand")


@dataclass(frozen=True)
class Charge:
    """What a release costs the owners of one cohort."""

    release: Release
    part: int

    @property
    def cost(self) -> Cost:
        """Of each owner."""
        return self.release.costs[self.part]


@dataclass(frozen=True)
class Standing:
    """Owners with one history, and how they stand.

    Attributes
    ----------
    level : str
        As their policy calls it.
    budget : Budget
        What each of them grants now.
    owners : int
        How many they are.
    has_left : bool
        Whether they have left: nothing more is released about them.
    spent : Cost
        By each of them, over all releases; reservations included.
    limit : Limit
        The most that it may become.
    n_releases : int
        That used their records.
    """

    level: str
    budget: Budget
    owners: int
    has_left: bool
    spent: Cost
    limit: Limit
    n_releases: int

    @property
    def epsilon_spent(self) -> float:
        """ε per owner at their δ of everything so far."""
        spent = self.limit.epsilon_of(self.spent, self.budget.delta)
        # The filter promises ε itself; conversions to μ and back both round outwards.
        return min(spent, self.budget.epsilon) if self.limit.allows(self.spent) else spent

    @property
    def left(self) -> Cost:
        """What further releases may cost each of them."""
        return self.limit.left(self.spent)

    @property
    def share_left(self) -> float:
        """The same as a share of μ², or of ε where that is promised: what a release without a δ₀ may use."""
        if self.has_left:
            return 0.0
        if self.limit.is_unlimited:
            return 1.0
        if self.limit.promise is Promise.PURE:
            return self.left.pure_epsilon / self.limit.pure_epsilon
        return self.left.mu_squared / self.limit.mu_squared


@dataclass(frozen=True)
class Grant:
    """What a person chose, and when.

    ``at``: UTC, ISO 8601. ``has_left``: that nothing more may be released.
    """

    at: str
    level: str
    budget: Budget
    has_left: bool


@dataclass(frozen=True)
class Account:
    """One person's account.

    Attributes
    ----------
    grants : list of Grant
        What the person chose over time, oldest first.
    charges : list of Charge
        All releases that used the person's records, oldest first.
    standing : Standing
        How the person stands now (``owners``: with how many others).
    lifetime : Lifetime
        What the ledger promises everybody.
    """

    grants: list[Grant]
    charges: list[Charge]
    standing: Standing
    lifetime: Lifetime

    @property
    def has_ended(self) -> bool:
        """Whether all releases are settled."""
        return all(charge.release.is_settled for charge in self.charges)


class _Charged(NamedTuple):
    """Beginning of a charge; one for all cohorts that a part of a release has."""

    number: int  # of the release's entry
    release: str
    part: int


@dataclass
class Books:
    """What entries say, up to one of them."""

    lifetime: Lifetime = Lifetime()  # noqa: RUF009
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE
    cohorts: dict[int, Cohort] = field(default_factory=dict)
    releases: dict[str, Release] = field(default_factory=dict)
    charged: dict[int, list[_Charged]] = field(default_factory=dict)
    times: dict[int, str] = field(default_factory=dict)

    def take(self, entry: Entry) -> None:
        """Take in the next entry."""
        body = entry.body
        if (entry.number == 1) != (entry.kind == BEGIN):
            raise LedgerError(
                "the ledger's first entry is missing, or is not the first: restore its newest backup"
            )
        self.times[entry.number] = entry.at
        for content in body["cohorts"]:
            numbers = {"epsilon": float(content["epsilon"]), "proof": int(content["proof"], 16)}
            cohort = Cohort(**{**content, **numbers})
            self.cohorts[cohort.id] = cohort
        if entry.kind == BEGIN:
            self.lifetime = Lifetime(body["promise"], float(body["delta_0_share"]))
            self.neighbours = Neighbours(body["neighbours"])
        if entry.kind == RESERVE:
            costs = tuple(cost_from_json(cost) for _, _, cost in body["parts"])
            n_owners = sum(
                people
                for (people, _, _), cost in zip(body["parts"], costs, strict=True)
                if not cost.is_nothing
            )
            release = Release(
                body["release"],
                body["name"],
                body["about"],
                entry,
                costs,
                n_owners=n_owners,
                token=body.get("token", ""),
            )
            self.releases[release.id] = release
            of_part = [_Charged(entry.number, release.id, part) for part in range(len(costs))]
            for cohort_id, part in body["charges"]:
                self.charged.setdefault(cohort_id, []).append(of_part[part])
        if entry.kind == TAKE:
            release = self.releases[body["release"]]
            self.releases[release.id] = replace(release, token=body["token"])
        if entry.kind == SETTLE:
            release = self.releases[body["release"]]
            costs = tuple(cost_from_json(cost) for cost in body["costs"])
            self.releases[release.id] = replace(release, costs=costs, closed=entry)

    @property
    def n_owners(self) -> int:
        """How many people are known, those who have left included."""
        return sum(cohort.members for cohort in self.cohorts.values())

    def charges_of(self, cohort: int) -> list[Charge]:
        """Collect all that the owners of a cohort were charged, also in cohorts before, oldest first."""
        return [Charge(self.releases[id], part) for _, id, part in self._charged(cohort)]

    def _charged(self, cohort: int) -> list[_Charged]:
        found: list[_Charged] = []
        for its, before in reversed(list(self.lineage(cohort))):
            charged = self.charged.get(its.id, [])
            found += charged[: bisect_left(charged, before, key=_number)]
        return found

    def overdrawn_by(self, release: str) -> int:
        """Count the owners who paid a release, and have spent more than they grant."""
        return sum(
            its.members
            for its in self.cohorts.values()
            if any(id == release for _, id, _ in self._charged(its.id))
            and not (standing := self.standing(its.id)).limit.allows(standing.spent)
        )

    def account(self, cohort: int) -> Account:
        """Account of each owner of a cohort."""
        grants: list[Grant] = []
        for its, _ in reversed(list(self.lineage(cohort))):
            chosen = Grant(self.times[its.since], its.level, its.budget, its.has_left)
            if not grants or replace(chosen, at="") != replace(grants[-1], at=""):
                grants.append(chosen)
        return Account(grants, self.charges_of(cohort), self.standing(cohort), self.lifetime)

    def lineage(self, cohort: int) -> Iterator[tuple[Cohort, float]]:
        """Name a cohort and those that its owners were in before, each with the entry that ended it."""
        at: Cohort | None = self.cohorts[cohort]
        before = math.inf
        while at is not None:
            yield at, before
            before = at.since
            at = None if at.parent is None else self.cohorts[at.parent]

    def standing(self, cohort: int, also: Cost | None = None) -> Standing:
        """How the owners of a cohort stand, or would if something else were charged."""
        costs = [self.releases[id].costs[part] for _, id, part in self._charged(cohort)]
        its = self.cohorts[cohort]
        return Standing(
            level=its.level,
            budget=its.budget,
            owners=its.members,
            has_left=its.has_left,
            spent=Cost.total(costs if also is None else [*costs, also]),
            limit=_limit_of(self.lifetime, its.budget),
            n_releases=len(costs),
        )


def _number(charged: _Charged) -> int:
    return charged.number


class Changes:
    """Cohorts that the next entry will write, and owners who move between them."""

    def __init__(self, books: Books, entry: int, key: Key) -> None:
        self._books, self._entry, self._key = books, entry, key
        self._changed: dict[int, Cohort] = {}
        self._next = max(books.cohorts, default=0) + 1
        self.joining: list[tuple[int, Sequence[bytes]]] = []
        self.moving: list[tuple[int, Sequence[bytes]]] = []

    def __getitem__(self, cohort: int) -> Cohort:
        return self._changed.get(cohort) or self._books.cohorts[cohort]

    def join(self, level: str, budget: Budget, ids: Sequence[bytes], tags: int) -> int:
        """Let new people join, together; returns their cohort."""
        cohort = self._new(None, level, budget, has_left=False)
        self._count(cohort.id, +len(ids), +tags)
        self.joining.append((cohort.id, ids))
        return cohort.id

    def split(
        self,
        cohort: int,
        ids: Sequence[bytes],
        tags: int,
        *,
        level: str | None = None,
        budget: Budget | None = None,
        has_left: bool = False,
    ) -> int:
        """Make a cohort of some owners of another, with its history; returns its id."""
        old = self[cohort]
        new = self._new(cohort, level or old.level, budget or old.budget, has_left=has_left)
        self._count(cohort, -len(ids), -tags)
        self._count(new.id, +len(ids), +tags)
        self.moving.append((new.id, ids))
        return new.id

    def as_json(self) -> list[dict[str, Any]]:
        """Write them into an entry."""
        return [
            {
                **asdict(cohort),
                "epsilon": number_as_json(cohort.epsilon),
                "proof": f"{cohort.proof:032x}",
            }
            for _, cohort in sorted(self._changed.items())
        ]

    def _new(self, parent: int | None, level: str, budget: Budget, *, has_left: bool) -> Cohort:
        new = Cohort(
            id=self._next,
            parent=parent,
            since=self._entry,
            level=level,
            epsilon=budget.epsilon,
            delta=budget.delta,
            members=0,
            proof=self._key.mask(self._next, self._entry),
            written=self._entry,
            has_left=has_left,
        )
        self._next += 1
        self._changed[new.id] = new
        return new

    def _count(self, cohort: int, members: int, tags: int) -> None:
        old = self[cohort]
        total = add_members(members_sum(old, self._key), tags)
        proof = add_members(total, self._key.mask(cohort, self._entry))
        self._changed[cohort] = replace(
            old, members=old.members + members, proof=proof, written=self._entry
        )


def members_sum(cohort: Cohort, key: Key) -> int:
    """Unmask what proves who is in a cohort."""
    return add_members(cohort.proof, -key.mask(cohort.id, cohort.written))


def cost_as_json(cost: Cost) -> list[Any]:
    """Write a cost, exactly: ``[μ², Σε of pure DP, δ₀]``."""
    return [number_as_json(one) for one in (cost.mu_squared, cost.pure_epsilon, cost.delta_0)]


def cost_from_json(content: Sequence[Any]) -> Cost:
    """Read what :func:`cost_as_json` wrote."""
    return Cost(*map(float, content))


def as_text(body: Mapping[str, Any]) -> str:
    """Spell a body for the chain: the same body is the same text."""
    return json.dumps(body, sort_keys=True, allow_nan=False)
