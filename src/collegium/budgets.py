"""Who granted how much: levels in words, budgets in numbers, and the owner of every record.

A :class:`Policy` says what each privacy level means; :meth:`Policy.assign` turns a column of levels into
:class:`Budgets`, which tie every record to its owner, every owner to one group, and every group (by
name, never by position) to one :class:`Budget`. Who granted nothing, or gave the records to everybody, is in
no group: :mod:`collegium.zero_and_public_budgets` sets their records apart.
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from collegium.checks import (
    as_numbers,
    check_is,
    check_whole,
    exact_float,
    exact_floats,
    is_number,
    shown,
)
from collegium.errors import WHERE, InputError, PrivacyWarning, RecordError
from collegium.index_alignment import refuse_other_order
from collegium.names import as_names, spelt_alike
from collegium.notebooks import InNotebooks

DEFAULT_DELTA = 1e-5
MOST_EPSILON = 1e15
"""Largest finite ε of a budget: beyond it floats cannot tell accounts from one another."""
NOTHING, PUBLIC = -1, -2
"""In place of a group: of who granted nothing (ε = 0), and of who lets everybody have the records."""
_OUTSIDE = ("public", "nothing")  # as groups are named, in the order of -2 and -1


@dataclass(frozen=True)
class Budget:
    """What one owner allows to be learnt about all of his or her records together.

    Parameters
    ----------
    epsilon : float
        Bound on the owner's privacy loss, > 0, at most 1e15. ``inf`` is allowed and means *no privacy*.
    delta : float
        In (0, 1). By how much, added up over all that could come out, the probability with the owner's
        records may exceed e^ε times that with others in their place (or blanks), and the reverse. Not the
        probability that the bound fails: see ``docs/guarantees.md``.

    Raises
    ------
    InputError
        If ``epsilon`` is not positive, NaN, or finite and above 1e15, or ``delta`` is outside (0, 1).

    Examples
    --------
    >>> Budget(1.0, 1e-5).is_unlimited, Budget(math.inf).is_unlimited
    (False, True)
    """

    epsilon: float
    delta: float = DEFAULT_DELTA

    def __post_init__(self) -> None:
        epsilon = _as_float(self.epsilon, "epsilon")
        delta = _as_float(self.delta, "delta")
        if math.isnan(epsilon) or epsilon <= 0:
            raise InputError(
                f"epsilon must be greater than 0 (or infinite, for no privacy), got {epsilon:g}: "
                "give a positive budget, or leave these people out of the data"
            )
        if MOST_EPSILON < epsilon < math.inf:
            raise InputError(
                f"epsilon must be at most {MOST_EPSILON:g}, or infinite, got {epsilon:g}: give inf for no "
                "privacy, or a budget that promises something"
            )
        if math.isnan(delta) or not 0 < delta < 1:
            raise InputError(
                f"delta must lie strictly between 0 and 1, got {delta:g}: "
                "choose one well below 1 / number of people, for instance 1e-5"
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    @property
    def is_unlimited(self) -> bool:
        """Whether epsilon is infinite, that is: no privacy."""
        return math.isinf(self.epsilon)


class Policy(InNotebooks):
    """The meaning of each privacy level.

    Parameters
    ----------
    levels : mapping of str to float or Budget
        Level name to ε, or to a whole :class:`Budget`. ε = 0: these people's records are read into nothing.
    delta : float, default=1e-5
        δ of the levels that are given as a number.
    public : sequence of str, default=()
        Levels with ε = ∞ whose people let their records be published: the student learns from them as they
        are. Without this, ε = ∞ promises nothing, and records are learnt from by teachers alone.

    Raises
    ------
    InputError
        If there is no level with a budget, a name is empty, a budget is not allowed, or a public level is
        not one with ε = ∞.

    Examples
    --------
    >>> policy = Policy({"high": 1.0, "average": 2.0, "low": 3.0}, delta=1e-5)
    >>> budgets = policy.assign(["low", "high", "high"])
    >>> budgets.group_sizes()
    {'high': 2, 'average': 0, 'low': 1}
    >>> policy = Policy({"none": 0, "some": 1.0, "gift": math.inf}, public=["gift"])
    >>> policy.assign(["some", "none", "gift", "some"]).record_groups().tolist()
    ['some', 'nothing', 'public', 'some']
    """

    def __init__(
        self,
        levels: Mapping[str, float | Budget],
        delta: float = DEFAULT_DELTA,
        public: Sequence[str] = (),
    ) -> None:
        if not isinstance(levels, Mapping):
            raise InputError(
                "a policy's levels must be a mapping {'name': epsilon}, got "
                f"{type(levels).__name__}: name each level"
            )
        Budget(1.0, delta)  # refuses a wrong delta, also where every level has one of its own
        if not levels:
            raise InputError("a policy needs at least one level, got none: give {'name': epsilon}")
        checked: dict[str, Budget] = {}
        outside: dict[str, int] = {}
        for name, value in levels.items():
            if not isinstance(name, str) or not name.strip():
                raise InputError(f"a level's name must be a word, got {name!r}")
            try:
                if not isinstance(value, Budget) and _as_float(value, "epsilon") == 0:
                    outside[name] = NOTHING
                else:
                    checked[name] = value if isinstance(value, Budget) else Budget(value, delta)
            except InputError as error:
                raise InputError(f"level {name!r}: {error}") from None
        for name in _level_names(public):
            if name not in checked or not checked[name].is_unlimited:
                known = f"ε = {checked[name].epsilon:g}" if name in checked else "not such a one"
                raise InputError(
                    "a public level must be one with ε = inf, whose people let their records be published, "
                    f"got {name!r} ({known}): give it ε = inf, or take it off the public ones"
                )
            outside[name] = PUBLIC
            del checked[name]
        if not checked:
            raise InputError(
                "a policy needs at least one level with a budget: with ε = 0 and public levels alone there "
                "is nothing to protect"
            )
        self._levels, self._outside = checked, outside

    @property
    def levels(self) -> Mapping[str, Budget]:
        """Level name to budget, read-only, in the order given; without ε = 0 and public levels."""
        return MappingProxyType(self._levels)

    @property
    def outside(self) -> Mapping[str, int]:
        """Name of each level without a budget to :data:`NOTHING` or :data:`PUBLIC`, read-only."""
        return MappingProxyType(self._outside)

    @property
    def names(self) -> tuple[str, ...]:
        """All levels' names: those with a budget first."""
        return (*self._levels, *self._outside)

    def __repr__(self) -> str:
        inside = [f"{name!r}: ε={budget.epsilon:g}" for name, budget in self._levels.items()]
        inside += [
            f"{name!r}: {'ε=0' if kind == NOTHING else 'public'}"
            for name, kind in self._outside.items()
        ]
        return f"Policy({', '.join(inside)})"

    def assign(
        self,
        levels: ArrayLike,
        owners: ArrayLike | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> Budgets:
        """Give every record the budget of its level.

        Parameters
        ----------
        levels : array-like of str, shape (n_records,)
            The privacy level of each record's owner.
        owners : array-like, shape (n_records,), optional
            Whose record it is. ``7``, ``7.0`` and ``"7"`` are one name (:func:`~collegium.names.as_names`);
            but pandas drops zeros before a number, so read names as text: ``pandas.read_csv(path,
            dtype={"patient": str})``. Default: every record has an owner of its own, named by its
            position.
        sizes : mapping of str to int, optional
            Declared public number of owners of each level with a budget, from which plans are made and which
            are published; 0 where nobody is expected. Default: owners are counted, and their numbers are
            thereby treated as public; see ``docs/guarantees.md``.

        Returns
        -------
        Budgets

        Raises
        ------
        InputError
            If a level is unknown or missing, the lengths differ, an owner has two levels, declared
            sizes are not those of all levels, or pandas objects have the same index in two orders.
        """
        index = refuse_other_order(privacy_levels=levels, owners=owners)
        column = _one_dimensional(levels, "privacy levels")
        given = as_names(column)
        codes = pd.Index(self.names).get_indexer(pd.Index(given))
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            raise unknown_level(given[unknown[0]], self.names, unknown.size, int(unknown[0]))
        codes = np.array([*range(len(self._levels)), *self._outside.values()], dtype=np.intp)[codes]
        budgets = Budgets(dict(self._levels), codes, owners, sizes)._labelled(index)
        budgets.public_levels = tuple(n for n, kind in self._outside.items() if kind == PUBLIC)
        return budgets


def unknown_level(
    level: str | None, names: Sequence[str], n_unknown: int, position: int | None = None
) -> InputError:
    """Make the error about levels that a policy does not know.

    What stands there is not shown: in another column than that of the levels, it is no public level.

    ``level``: of the first such record; None: it has none.
    ``names``: the levels of the policy.
    ``n_unknown``, ``position``: how many such records there are, and where the first is, from 0; None: rows
    have no places.
    """
    first = "" if position is None else f", first {WHERE}"
    missing = ", which has no privacy level" if level is None else ""
    if level is None and position is None:
        missing = ", or without one"
    alike = {name.casefold(): name for name in names}
    near = difflib.get_close_matches((level or "").strip().casefold(), list(alike), n=1)
    hint = f"; did you mean {alike[near[0]]!r}?" if near else ""
    said = (
        f"{n_unknown:,} record(s) with a privacy level that the policy does not know{first}{missing}: "
        f"allowed are {', '.join(names)}{hint}"
    )
    return InputError(said) if position is None else RecordError(said, position)


def two_budgets(n_owners: int, one: int, other: int) -> RecordError:
    """Make the error about owners whose records have two levels.

    ``one``, ``other``: where two such records of the first of them are, from 0.
    """
    return RecordError(
        f"{n_owners} owner(s) with two budgets, first {WHERE} and {WHERE}: all records of one owner "
        "need the same level",
        min(one, other),
        max(one, other),
    )


def epsilon_group(epsilon: float) -> str:
    """Name the group of all who chose the same ε.

    Examples
    --------
    >>> epsilon_group(2.0), epsilon_group(0.5)
    ('ε=2', 'ε=0.5')
    """
    return "ε=" + repr(float(epsilon)).removesuffix(".0")


class Budgets(InNotebooks):
    """Every record's owner, every owner's group, every group's budget.

    Parameters
    ----------
    groups : mapping of str to Budget
        The groups by name.
    record_groups : array-like of int, shape (n_records,)
        Position in ``groups`` for each record; :data:`NOTHING` or :data:`PUBLIC` for those in no group.
    owners : array-like, shape (n_records,), optional
        Whose record it is; default: the record's position.
    sizes : mapping of str to int, optional
        Declared public number of owners of each group; default: they are counted.

    Attributes
    ----------
    named : bool
        Whether owners were given; otherwise records' positions are their names.
    declared_sizes : dict of str to int, or None
        As given.
    owners : ndarray, shape (n_owners,)
        The different owners, in order of appearance: text, or whole numbers, which are the same names.
    record_owner : ndarray of int, shape (n_records,)
        Position in ``owners`` for each record.
    owner_group : ndarray of int, shape (n_owners,)
        Position in ``group_names`` for each owner; :data:`NOTHING` or :data:`PUBLIC` for those in no group.
    public_levels : tuple of str
        Levels whose owners let their records be published, whether anybody chose them or not.
    index : Index, or None
        Labels of the records' rows, where pandas objects were given.
    kept : float
        Share of what was granted (in μ) that these budgets grant: below 1 where groups were put together.

    Raises
    ------
    InputError
        If an owner belongs to two groups, has no name, the lengths differ, declared sizes are not those of
        all groups, or pandas objects have the same index in two orders.

    Notes
    -----
    Where no owners are given, a record's position in the table is its owner's name. Neighbours are then
    tables in which one row is left blank (or changed), so that all others keep their places.

    Budgets index like an array of records (``budgets[train]``), so scikit-learn's cross-validation
    can split them; owners keep their names, so they keep their teachers as well. Declared sizes are those
    of all records: a part's owners are counted.

    Examples
    --------
    >>> people = {"high": Budget(1.0), "low": Budget(3.0)}
    >>> budgets = Budgets(people, [0, 1, 1], owners=["Ann", "Bob", "Bob"])
    >>> budgets.n_owners, len(budgets[1:])
    (2, 2)
    """

    in_memory: ClassVar[bool] = True
    kept: float = 1.0

    def __init__(
        self,
        groups: Mapping[str, Budget],
        record_groups: ArrayLike,
        owners: ArrayLike | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._groups = checked_groups(groups)
        codes = _codes(record_groups, len(self._groups))
        if codes.ndim != 1 or codes.size == 0:
            raise InputError(f"budgets need at least one record, got shape {codes.shape}")
        self.named = owners is not None
        self.public_levels: tuple[str, ...] = ()
        if owners is None:
            names: NDArray[Any] = np.arange(codes.size)
        else:
            names = _one_dimensional(owners, "owners")
            # Whole numbers are the same names, and need no spelling.
            names = names if names.dtype.kind in "iu" else as_names(names)
        if names.size != codes.size:
            raise InputError(
                f"{codes.size} privacy levels, but {names.size} owners: give one owner per record"
            )
        unnamed = np.flatnonzero(pd.isna(names))
        if unnamed.size:
            raise RecordError(
                f"{unnamed.size:,} record(s) without an owner, first {WHERE}: name the owner of each record",
                unnamed[0],
            )
        self.group_names: tuple[str, ...] = tuple(self._groups)
        record_owner, unique = pd.factorize(names)
        self.record_owner: NDArray[np.intp] = np.asarray(record_owner, dtype=np.intp)
        self.owners: NDArray[Any] = np.asarray(unique)
        self.owner_group: NDArray[np.intp] = np.zeros(len(unique), dtype=np.intp)
        self.owner_group[self.record_owner] = codes
        self.index = refuse_other_order(record_groups=record_groups, owners=owners)
        self._refuse_two_groups(codes)
        self.declare(sizes)
        self._warn()
        alike = spelt_alike(self.owners)
        if alike:
            warnings.warn(
                f"{alike:,} of {self.n_owners:,} owners are called like another one but for upper and "
                "lower case, or blanks around the name: they count as different people, each with a budget "
                "of its own; write a person's name in one way",
                PrivacyWarning,
                stacklevel=3,
            )

    @classmethod
    def from_epsilons(
        cls,
        epsilons: ArrayLike,
        delta: float = DEFAULT_DELTA,
        owners: ArrayLike | None = None,
    ) -> Budgets:
        """Group records by the number that their owner chose.

        Parameters
        ----------
        epsilons : array-like of float, shape (n_records,)
            ε of each record's owner; ``inf`` means no privacy, and 0 that the records are read into nothing.
        delta : float, default=1e-5
            δ for everybody.
        owners : array-like, shape (n_records,), optional
            Whose record it is; default: the record's position.

        Examples
        --------
        >>> Budgets.from_epsilons([1, 2, 2, 0.5]).group_sizes()
        {'ε=0.5': 1, 'ε=1': 1, 'ε=2': 2}
        """
        index = refuse_other_order(privacy_budgets=epsilons, owners=owners)
        column = _one_dimensional(epsilons, "privacy budgets")
        values = exact_floats(column)
        if values is None:
            raise InputError(
                "privacy budgets must be numbers, got text (or more digits than can be computed with): give "
                "ε per record, or name the levels in a policy"
            )
        bad = np.flatnonzero(np.isnan(values) | (values < 0))
        if bad.size:
            raise RecordError(
                f"{bad.size:,} record(s) with a privacy budget that is not a number of at least 0, first "
                f"{WHERE}: give a positive ε, or 0 for people who grant nothing",
                bad[0],
            )
        unique = np.unique(values[values > 0])
        codes = np.where(values > 0, np.searchsorted(unique, values), NOTHING)
        named = {epsilon_group(value): Budget(value, delta) for value in unique.tolist()}
        return cls(named, codes, owners)._labelled(index)

    def _labelled(self, index: pd.Index | None) -> Self:
        self.index = index
        return self

    def _refuse_two_groups(self, codes: NDArray[np.intp]) -> None:
        torn = np.flatnonzero(self.owner_group[self.record_owner] != codes)
        if torn.size:
            first = int(torn[0])
            same = np.flatnonzero(self.record_owner == self.record_owner[first])
            other = int(same[codes[same] != codes[first]][0])
            count = len(np.unique(self.record_owner[torn]))
            raise two_budgets(count, first, other)

    def _warn(self) -> None:
        for name, size in self.group_sizes().items():
            budget = self.groups[name]
            if size and budget.is_unlimited:
                warnings.warn(
                    f"group {name!r} has ε = ∞: NO PRIVACY for its {size} owner(s)",
                    PrivacyWarning,
                    stacklevel=4,
                )

    @property
    def groups(self) -> Mapping[str, Budget]:
        """Group name to budget, read-only, in the order given."""
        return MappingProxyType(self._groups)

    @property
    def n_records(self) -> int:
        """Number of records."""
        return int(self.record_owner.size)

    @property
    def n_owners(self) -> int:
        """Number of different owners."""
        return int(self.owners.size)

    @property
    def shape(self) -> tuple[int]:
        """``(n_records,)``, so that tools which split arrays can split budgets."""
        return (self.n_records,)

    def __len__(self) -> int:
        return self.n_records

    def __iter__(self) -> Iterator[str]:
        return iter(self.record_groups())

    def __getitem__(self, records: Any) -> Budgets:
        chosen = np.atleast_1d(np.arange(self.n_records)[records])
        owner = self.record_owner[chosen]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            part = Budgets(self.groups, self.owner_group[owner], self.owners[owner])
        part.named = self.named  # a row's old position is no name
        part.public_levels = self.public_levels
        return part._labelled(None if self.index is None else self.index[chosen])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.group_sizes().items())
        return f"Budgets({self.n_records} records, {self.n_owners} owners, {{{sizes}}})"

    def group_sizes(self) -> dict[str, int]:
        """Count the owners (not the records) of each group."""
        inside = self.owner_group[self.owner_group >= 0]
        counts = np.bincount(inside, minlength=len(self.group_names))
        return dict(zip(self.group_names, counts.tolist(), strict=True))

    def public_sizes(self) -> dict[str, int]:
        """Number of owners of each group that plans are made from: as declared, or else counted."""
        return self.group_sizes() if self.declared_sizes is None else dict(self.declared_sizes)

    def declare(self, sizes: Mapping[str, int] | None) -> None:
        """Declare public group sizes; None: owners are counted.

        More or fewer owners than declared change the size of shards, and nothing that is published.
        """
        self.declared_sizes = None if sizes is None else _as_sizes(sizes, self.group_names)
        for name, counted in self.group_sizes().items() if self.declared_sizes else ():
            declared = self.public_sizes()[name]
            if counted and not declared:
                raise InputError(
                    f"group {name!r} was declared to have no owner, but somebody is in it: declare at least 1"
                )
            if abs(counted - declared) > 0.1 * declared:
                warnings.warn(
                    f"group {name!r} was declared to have {declared:,} owner(s), and has another number: "
                    "plan and statement follow what was declared",
                    PrivacyWarning,
                    stacklevel=5,
                )

    def record_groups(self) -> NDArray[Any]:
        """Name the group of each record, shape (n_records,); "public" or "nothing" for those in none."""
        names = np.asarray((*self.group_names, *_OUTSIDE), dtype=object)
        return np.asarray(names[self.owner_group[self.record_owner]])

    def regrouped(
        self, groups: Mapping[str, Budget], group_of: Mapping[str, str], kept: float = 1.0
    ) -> Budgets:
        """Put each group that has owners into one of others, which promises its members no less.

        Parameters
        ----------
        groups : mapping of str to Budget
            The new groups by name.
        group_of : mapping of str to str
            New group of each group with owners.
        kept : float, default=1.0
            Share of what was granted (in μ) that the new groups grant.

        Returns
        -------
        Budgets
            Of the same records and owners, in the same order.

        Raises
        ------
        InputError
            If a new group grants more than an old one in it.
        """
        for old, new in group_of.items():
            one, its = groups[new], self.groups[old]
            if one.epsilon > its.epsilon or one.delta > its.delta:
                raise InputError(
                    f"group {old!r} grants ε = {its.epsilon:g} (δ = {its.delta:g}), and was to be part of "
                    f"{new!r}, which grants ε = {one.epsilon:g} (δ = {one.delta:g}): put it where no more is "
                    "granted"
                )
        place = {name: code for code, name in enumerate(groups)}
        codes = np.array(
            [place[group_of[g]] if g in group_of else NOTHING for g in self.group_names],
            dtype=np.intp,
        )
        of_owner = np.where(self.owner_group >= 0, codes[self.owner_group], self.owner_group)
        sizes = self.declared_sizes
        if sizes is not None:
            sizes = dict.fromkeys(groups, 0)
            for old, new in group_of.items():
                sizes[new] += self.public_sizes()[old]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # said about the groups as they were
            made = Budgets(
                groups, of_owner[self.record_owner], self.owners[self.record_owner], sizes
            )
        made.named, made.public_levels, made.kept = self.named, self.public_levels, self.kept * kept
        return made._labelled(self.index)

    def strictest(self) -> Budgets:
        """Give everybody the smallest ε and the smallest δ that anybody chose (uniform PATE)."""
        used = [self.groups[name] for name, size in self.group_sizes().items() if size]
        least = Budget(min(b.epsilon for b in used), min(b.delta for b in used))
        owners = self.owners[self.record_owner]
        groups = np.minimum(self.owner_group[self.record_owner], 0)
        return Budgets({"everybody": least}, groups, owners)


def as_budgets(given: Any, delta: float = DEFAULT_DELTA, n_records: int | None = None) -> Budgets:
    """Accept :class:`Budgets`, one ε per record, or one ε or :class:`Budget` for everybody.

    ``n_records``: how many records everybody has together; default: a single ε is refused.
    """
    if isinstance(given, Budgets):
        return given
    if n_records is not None and isinstance(given, Budget):
        return Budgets({epsilon_group(given.epsilon): given}, np.zeros(n_records, dtype=np.intp))
    try:
        is_single = np.ndim(given) == 0
    except ValueError:
        raise InputError(f"budgets must be one number per record, got {shown(given)}") from None
    if n_records is not None and is_single and is_number(np.asarray(given)[()]):
        given = np.full(n_records, _as_float(given, "epsilon"))
    if isinstance(given, str):
        raise InputError(
            f"budgets must be numbers (one ε per record) or policy.assign(levels), got {given!r}"
        )
    if given is None:
        raise InputError(
            "budgets are missing: pass budgets=policy.assign(column), or one ε per record"
        )
    return Budgets.from_epsilons(given, delta)


def checked_groups(groups: Mapping[str, Budget]) -> dict[str, Budget]:
    """Refuse what does not name groups and their budgets."""
    if not isinstance(groups, Mapping):
        raise InputError(f"groups must be a dict of budgets by name, got {shown(groups)}")
    for budget in groups.values():
        check_is("each group's budget", budget, Budget, "make one with Budget(1.0)")
    return dict(groups)


def _codes(record_groups: ArrayLike, n_groups: int) -> NDArray[np.intp]:
    numbers = as_numbers(record_groups)
    if numbers is None or (numbers != np.floor(numbers)).any():
        raise InputError("record_groups must be the number of each record's group, from 0")
    outside = min(NOTHING, PUBLIC)  # which stand for no group
    if ((numbers < outside) | (numbers >= n_groups)).any():
        raise InputError(
            f"record_groups must lie between 0 and {n_groups - 1}: groups count from 0"
        )
    return numbers.astype(np.intp)


def _level_names(given: Sequence[str]) -> Sequence[str]:
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or not all(isinstance(name, Hashable) for name in given)
    ):
        raise InputError(f"public levels must be a list of names, got {shown(given)}")
    return list(dict.fromkeys(given))


def _as_sizes(sizes: Mapping[str, int], groups: tuple[str, ...]) -> dict[str, int]:
    if not isinstance(sizes, Mapping) or set(sizes) != set(groups):
        raise InputError(
            f"declared group sizes must be a mapping with each of the groups {', '.join(groups)}, got "
            f"{shown(sizes)}: give 0 for a group without owners"
        )
    for name, size in sizes.items():
        check_whole(f"the declared size of group {name!r}", size, least=0)
    return {name: int(sizes[name]) for name in groups}


def _as_float(value: Any, name: str) -> float:
    if isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be a number, got {value!r}")
    try:
        return exact_float(value)
    except OverflowError:
        raise InputError(
            f"{name} is larger than any number that can be computed with: give a smaller one, or inf"
        ) from None
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {shown(value)}") from None


def _one_dimensional(values: ArrayLike, name: str) -> NDArray[Any]:
    # NumPy alone would make text of its own spelling of [1, "x"].
    array = np.asarray(values, dtype=object if isinstance(values, (list, tuple)) else None)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{name} must be one column, got an array of shape {array.shape}")
    return array
