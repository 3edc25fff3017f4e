"""Parties with tables of their own that learn together: who they are, and one release of them all."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from collegium.accounting.neighbours import Arrangement
from collegium.budgets import Budget, Budgets
from collegium.checks import check_is, check_whole, listed, shown
from collegium.errors import InputError, PrivacyWarning
from collegium.noise.sources import SeededNoise
from collegium.noise.sums import LocalSum
from collegium.parties.ciphers import encoded
from collegium.parties.mailbox import FolderMailbox, FolderMemory, Mailbox
from collegium.parties.members import Agreement, IdentityKey, Member
from collegium.parties.messages import Label, Post
from collegium.parties.party_sum import PartySum
from collegium.parties.quorum import Quorum
from collegium.parties.waiting import Patience, Steps, Waiting, still_waiting
from collegium.plain_text import harmless
from collegium.toml_files import read_toml, toml_text

_KNOWN = {"drop_outs", "colluders", "party"}
_ADDRESS = re.compile(" at 0x[0-9a-f]+")  # in this process, of an object that a plan names

Census = Sequence[tuple[Mapping[str, str], Any]]
"""What each party has told: its plan, and for each of its groups ε, δ and how many people."""


@dataclass(frozen=True)
class Collective:
    """Parties that learn together and show one another no record; public, and the same for all of them.

    Parameters
    ----------
    members : sequence of Member
        From 3 to 20, in an order that all of them use: ``IdentityKey.member(name)`` of each one's key.
    drop_outs : int, default=0
        So many may stay away from a sum, and it is still opened.
    colluders : int, default=1
        So many may put together all that they know (with whoever reads the files), and still see nothing but
        sums with all the noise that was asked for.

    Raises
    ------
    InputError
        If the numbers contradict each other, or two parties have one name or key.

    Examples
    --------
    >>> keys = [IdentityKey.fresh() for _ in range(4)]
    >>> collective = Collective([key.member(f"Hospital {n}") for key, n in zip(keys, "ABCD")], drop_outs=1)
    >>> collective.quorum.fewest, "Hospital D" in collective.toml()
    (3, True)
    """

    members: Sequence[Member]
    drop_outs: int = 0
    colluders: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        self.agreement(b"")  # which checks them

    @property
    def quorum(self) -> Quorum:
        """What its sums withstand."""
        return Quorum(len(self.members), self.drop_outs, self.colluders)

    def agreement(self, plan: bytes) -> Agreement:
        """What they have in common about one release."""
        return Agreement(plan, self.members, self.quorum)

    def arranged(self, arrangement: Arrangement) -> Arrangement:
        """Say that records lie with these parties."""
        quorum = self.quorum
        return replace(
            arrangement,
            parties=quorum.parties,
            drop_outs=quorum.drop_outs,
            colluders=quorum.colluders,
        )

    def number_of(self, key: IdentityKey) -> int:
        """Find the place of a key's owner, from 1; InputError if it is not listed."""
        return self.agreement(b"").number_of(key)

    def toml(self) -> str:
        """Write it as a file that all parties keep."""
        lines = [f"drop_outs = {self.drop_outs}", f"colluders = {self.colluders}"]
        for one in self.members:
            lines += [
                "",
                "[[party]]",
                f"name = {toml_text(one.name)}",
                f"key = {toml_text(one.key)}",
            ]
        return "\n".join(lines) + "\n"

    @classmethod
    def read(cls, path: str | Path) -> Collective:
        """Read it from such a file. Raises InputError if it is none."""
        given = read_toml(Path(path))
        parties = given.get("party")
        unknown = sorted(given.keys() - _KNOWN)
        if unknown:
            raise InputError(
                f"{path}: unknown key {shown(unknown[0])}; allowed are drop_outs, colluders and [[party]]"
            )
        if not isinstance(parties, list) or not all(
            isinstance(one, dict) and one.keys() == {"name", "key"} for one in parties
        ):
            raise InputError(f"{path}: each [[party]] must have a name and a key, and nothing else")
        numbers = {key: given[key] for key in ("drop_outs", "colluders") if key in given}
        for key, value in numbers.items():
            check_whole(key, value, least=0)
        return cls([Member(one["name"], one["key"]) for one in parties], **numbers)


@dataclass(frozen=True)
class Party:
    """One party of a collective, on its own machine, with its own records, budgets and ledger.

    Give it to whatever learns, as ``parties``: to :class:`~collegium.Statistics`, or to ``fit`` of
    :class:`~collegium.Synthesizer`, :class:`~collegium.PATEClassifier` or
    :class:`~collegium.DPSGDClassifier`. All parties do so, with the same settings, schema and name of the
    release, each with its own table; all get the same answers, table or model. A release has a folder of its
    own in the one that they share, and what a party has posted for it stands.

    Parameters
    ----------
    collective : Collective
        The same for all.
    key : IdentityKey
        This party's own.
    folder : str or Path
        That all parties see: shared, synchronised or carried.
    memory : str or Path
        That nobody else sees, and that is never restored from an older copy; made, if it is not there.
    patience : Patience, optional
        How long it waits for others.

    Raises
    ------
    InputError
        If the key is none of the collective's, or there is no such folder.

    Notes
    -----
    Who sees what, and what a dishonest party can do: ``docs/parties.md``.

    Examples
    --------
    Three hospitals, each in a thread instead of on a machine of its own:

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from collegium import Schema, Statistics
    >>> schema = Schema({"age": {"kind": "whole", "bounds": [0, 99]}})
    >>> keys = [IdentityKey.fresh() for _ in range(3)]
    >>> collective = Collective([key.member(f"Hospital {n}") for key, n in zip(keys, "ABC")])
    >>> shared, own = TemporaryDirectory(), TemporaryDirectory()
    >>> def hospital(number):
    ...     party = Party(collective, keys[number], shared.name, Path(own.name) / str(number))
    ...     people = pd.DataFrame({"age": [20 + 10 * number, 40 + 10 * number] * 500})
    ...     with Statistics(people, 1.0, schema=schema, parties=party) as ask:
    ...         return ask.mean("age").value
    >>> with ThreadPoolExecutor() as threads:
    ...     means = list(threads.map(hospital, range(3)))
    >>> means[0] == means[1] == means[2], 38 < means[0] < 42
    (True, True)
    >>> shared.cleanup(), own.cleanup()
    (None, None)
    """

    collective: Collective
    key: IdentityKey
    folder: str | Path
    memory: str | Path
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        check_is("collective", self.collective, Collective, "Collective.read(path) reads one")
        check_is("key", self.key, IdentityKey, "IdentityKey.read(path) reads one")
        self.collective.number_of(self.key)
        FolderMailbox(Path(self.folder))

    @property
    def name(self) -> str:
        """As the others know it."""
        return self.collective.members[self.collective.number_of(self.key) - 1].name

    def release(self, name: str, *, goes_on: bool = False) -> PartyRelease:
        """Begin a release, once, or go on waiting for the others' numbers.

        ``goes_on``: or take it up wherever it was cut off.
        """
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f"name must be a line of text, got {shown(name)}: name the release")
        place = _folder_of(name)
        shared = Path(self.folder) / place
        shared.mkdir(exist_ok=True)
        memory = FolderMemory(Path(self.memory) / place)
        if not goes_on and any(one.startswith(("keys", "secrets")) for one in memory.names("")):
            memory.close()
            raise InputError(
                f"{self.name} has begun {shown(name)} before, and what it posted stands: give the release "
                "another name, the same at all parties"
            )
        return PartyRelease(self, name, FolderMailbox(shared), memory)


class PartyRelease:
    """One release of all parties: first they tell one another what is public of it, then they sum.

    ``noise``: the sum, after :meth:`everybody`.
    """

    noise: PartySum

    def __init__(self, party: Party, name: str, mailbox: Mailbox, memory: FolderMemory) -> None:
        self.party, self.name = party, name
        self._mailbox, self._memory = mailbox, memory

    def close(self) -> None:
        """Let other processes go on with it."""
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let go of it where it did not begin."""
        if kind is not None:
            self.close()

    def everybody(
        self, budgets: Budgets, plan: Mapping[str, object], source: LocalSum | None = None
    ) -> Budgets:
        """Tell the others how many people granted what, and wait for theirs.

        ``plan``: what must be the same at all parties, in words.
        ``source``: of this party's share of the noise.
        Returns the same budgets, with the groups of all parties, and their numbers of people: what is planned
        from them is the same at all parties. Own groups keep their names.

        Raises InputError if another party plans something else.
        """
        census = self.census(budgets, plan, source)
        self.noise = self.sum_with(census, source)
        return with_everybody(budgets, census)

    def census(
        self, budgets: Budgets, plan: Mapping[str, object], source: LocalSum | None = None
    ) -> Census:
        """Tell the others how many people granted what, once, and wait for theirs: see :meth:`everybody`."""
        agreement = self.party.collective.agreement(f"census of {self.name}".encode())
        post = Post(agreement, self.party.key, self._mailbox, self._memory)
        if source is not None:
            plan = {**plan, "whether noise is drawn from a seed": not source.is_private}
        said = {key: _ADDRESS.sub("", str(value)) for key, value in plan.items()}
        return self.party.patience.drive(_take_census(post, said, _written(budgets)))

    def sum_with(
        self, census: Census, source: LocalSum | None = None, *, attempts: int | None = None
    ) -> PartySum:
        """Make the sum of all whose numbers these are. ``attempts``: as for :class:`PartySum`."""
        if isinstance(source, SeededNoise):
            source = source.of_party(self.party.collective.number_of(self.party.key))
        said = {"release": self.name, "plan": dict(census[0][0]), "people": _written_of(census)}
        return PartySum(
            self.party.collective.agreement(encoded(said)),
            self.party.key,
            self._mailbox,
            self._memory,
            source=source,
            patience=self.party.patience,
            attempts=attempts,
        )

    def arranged(self, arrangement: Arrangement) -> Arrangement:
        """Say that records lie with several parties."""
        return self.party.collective.arranged(arrangement)


def _folder_of(name: str) -> str:
    """Name a release's folder; where letters of its name cannot stand in one, a digest tells it apart."""
    place = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
    if name.isascii() and place:
        return place
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return "-".join([*filter(None, [place]), mark])


def people_by_party(merged: Budgets, census: Census) -> dict[str, tuple[int, ...]]:
    """Tell how many people of each group each party has, in the order of the parties.

    ``merged``: from :func:`with_everybody`. Groups are in the same order at all parties, but a party's own
    groups keep its names.
    """
    found = {}
    for name, (epsilon, delta, said, _) in zip(merged.groups, _written_of(census), strict=True):
        budget = float(epsilon), float(delta)
        its = [groups.get(said, (-1, -1, 0)) for _, groups in census]
        found[name] = tuple(
            int(one[2]) if (float(one[0]), float(one[1])) == budget else 0 for one in its
        )
    return found


def _written(budgets: Budgets) -> dict[str, list[str]]:
    sizes = budgets.public_sizes()
    return {
        name: [repr(one.epsilon), repr(one.delta), str(sizes[name])]
        for name, one in budgets.groups.items()
        if sizes[name]
    }


def _take_census(post: Post, plan: dict[str, str], groups: dict[str, list[str]]) -> Steps[Census]:
    label = Label(post.agreement.digest)
    mine = post.own("census", label)
    if mine is None:
        post.send("census", label, {"plan": plan, "groups": groups})
    elif mine.content["plan"] != plan or mine.content["groups"] != groups:
        raise post.refuse(
            "census",
            label,
            post.number,
            "says something else than is planned now, and what was posted stands: give the release another "
            "name, the same at all parties",
        )
    late = False
    while True:
        found = {number: post.received("census", label, number) for number in post.everybody}
        for number, one in found.items():
            if one is not None:
                _refuse_other_plan(post, label, number, plan, one.content["plan"])
        missing = tuple(post.name_of(number) for number, one in found.items() if one is None)
        if not missing:
            return [(one.content["plan"], one.content["groups"]) for one in found.values() if one]
        waiting = Waiting("numbers of people", missing)
        if late:
            raise still_waiting(waiting)
        late = yield waiting


def _refuse_other_plan(
    post: Post, label: Label, number: int, mine: Mapping[str, str], theirs: Mapping[str, str]
) -> None:
    other = sorted(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key))
    if other:
        raise post.refuse(
            "census",
            label,
            number,
            f"plans something else: {listed(other)} must be the same at all parties; nothing was drawn",
        )


def _people_of(census: Census) -> dict[tuple[float, float, str], int]:
    """Count the people of all parties by budget and name of their group."""
    people: dict[tuple[float, float, str], int] = {}
    try:
        for _, groups in census:
            for name, (epsilon, delta, count) in groups.items():
                key = float(epsilon), float(delta), str(name)
                if not key[2].isprintable() or harmless(key[2]) != key[2]:
                    raise ValueError
                Budget(key[0], key[1])
                check_whole("the number of people", int(count), least=1, most=10**12)
                people[key] = people.get(key, 0) + int(count)
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise InputError(
            "a party's numbers of people cannot be read: ask which version it runs"
        ) from None
    return people


def _written_of(census: Census) -> list[list[str]]:
    people = _people_of(census)
    return [[repr(key[0]), repr(key[1]), key[2], str(people[key])] for key in sorted(people)]


def with_everybody(budgets: Budgets, census: Census) -> Budgets:
    """Add the groups of all parties to these budgets: those of one name and budget are one.

    See :meth:`PartyRelease.everybody`.
    """
    people = _people_of(census)
    mine = {(one.epsilon, one.delta, name): name for name, one in budgets.groups.items()}
    taken = set(mine.values())
    names: dict[tuple[float, float, str], str] = {}
    for key in sorted(people):
        name = mine.get(key) or key[2]
        if key not in mine and name in taken:
            name = f"{key[2]} (ε = {key[0]!r}, δ = {key[1]!r})"
            while name in taken:  # somebody's level is called like that
                name += " (another)"
        names[key] = name
        taken.add(name)
    groups = {names[key]: Budget(key[0], key[1]) for key in names}
    place = {name: number for number, name in enumerate(groups)}
    codes = np.array([place.get(name, -1) for name in budgets.group_names], dtype=np.intp)
    of_owner = np.where(budgets.owner_group >= 0, codes[budgets.owner_group], budgets.owner_group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # that here are fewer people than in all
        made = Budgets(
            groups,
            of_owner[budgets.record_owner],
            budgets.owners[budgets.record_owner],
            {names[key]: count for key, count in people.items()},
        )
    made.named, made.public_levels, made.kept = budgets.named, budgets.public_levels, budgets.kept
    return made
