"""A study over the tables of several parties: what they have in common, who is waited for, and their sum.

What is written here is all that a study does about other parties. A method hands over what its own people
granted, and gets the groups of everybody; it hands over its source of noise, and gets the sum through which
it draws. A study with one table hands both back as they were.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from collegium.accounting.neighbours import Arrangement
from collegium.budgets import Budgets
from collegium.errors import InputError
from collegium.json_files import read_json
from collegium.noise.sums import Integers, LocalSum, Noise, NoisySum
from collegium.parameters import settings_of
from collegium.parties.collective import (
    Census,
    Collective,
    Party,
    PartyRelease,
    with_everybody,
)
from collegium.parties.members import IdentityKey
from collegium.parties.party_sum import NoiseOfParties, PartySum
from collegium.parties.waiting import Patience, Waiting
from collegium.runs.observer import Observer
from collegium.runs.public_digests import facts_of
from collegium.runs.records import Records
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.manifest_check import PARTIES
from collegium.study.sections import Data, Privacy, Study

R = TypeVar("R", bound=Records)
PARTY_MEMORY = "parties"
"""Folder of the vault: what this party has posted, and the secrets of its sessions."""
_KEPT = {"release": str, "census": [[dict]]}
#: What each party may have otherwise: where its records are, whose they are, and what levels mean there.
_ITS_OWN = {
    f"{Study.section}.name",
    *(f"{Data.section}.{name}" for name in ("owner", "separator", "decimal", "not_identifiers")),
    *(f"{Privacy.section}.{name}" for name in settings_of(Privacy) if name != "guarantee"),
}


class Alone:
    """A study of one table: there are no other parties.

    ``takes_up``: whether a draw that was charged, and has no result, is taken up again: what was posted for
        it stands, so the same numbers come of it. Without parties it is lost.
    """

    takes_up = False
    fingerprints: Mapping[str, str] = {}

    def everybody(self, budgets: Budgets, facts: Mapping[str, object]) -> Budgets:
        """Add the groups of all parties to what people here granted.

        ``facts``: what else must be the same at all parties, beside settings, public files and the schema.
        """
        return budgets

    def noise(self, local: LocalSum) -> NoisySum:
        """Find through what sum a method draws that has this source of noise; after :meth:`everybody`."""
        return local

    def arranged(self, arrangement: Arrangement) -> Arrangement:
        """Say with whom records lie."""
        return arrangement

    def ask_about(self, what: str) -> None:
        """Say what the next sums are about: parties that ask differently then sum nothing."""

    @contextlib.contextmanager
    def joined(self, folder: StudyFolder, observer: Observer) -> Iterator[bool]:
        """Tell the other parties how many people granted what, and wait for what they tell; once.

        ``folder``: claimed; it remembers what all have told.
        Lends whether a plan has to be made with everybody now.
        """
        yield False


ALONE = Alone()


class Others(Alone):
    """A study over the tables of several parties, of which this is one.

    Parameters
    ----------
    config : StudyConfig
        With a section [parties].
    fingerprints : mapping
        What was read, by the names that a study gives it.
    begun_in : StudyFolder, optional
        That holds this very study, begun before.

    Raises
    ------
    InputError
        If the collective or the key cannot be read, or do not go together.

    Attributes
    ----------
    census : list or None
        What all have told, once they have.
    number : int
        This party's, from 1.
    """

    takes_up = True

    def __init__(
        self, config: StudyConfig, fingerprints: Mapping[str, str], begun_in: StudyFolder | None
    ) -> None:
        self._config, self._read = config, fingerprints
        path, key, shared = (
            config.path(f"parties.{name}") for name in ("collective", "key", "folder")
        )
        assert path is not None and key is not None and shared is not None, "checked together"
        self.collective, self._key, self._shared = (
            Collective.read(path),
            IdentityKey.read(key),
            shared,
        )
        self.number = self.collective.number_of(self._key)
        agreed = hashlib.sha256(self.collective.toml().encode()).hexdigest()
        self.fingerprints = {"parties": f"{agreed} {self.number}"}
        self._name, self.census = config.study.name, _kept_in(begun_in)
        self._budgets: Budgets | None = None
        self._plan: dict[str, object] = {}
        self._release: PartyRelease | None = None
        self._sum: PartySum | None = None
        if self.census is not None and begun_in is not None:
            self._name = read_json(begun_in.path / PARTIES, _KEPT)["release"]

    def everybody(self, budgets: Budgets, facts: Mapping[str, object]) -> Budgets:
        """Add the groups of all parties, if they have told theirs; see :meth:`Alone.everybody`."""
        own = {"people are named": budgets.named, **facts, **self._records()}
        self._budgets, self._plan = budgets, {**_settings_of(self._config), **own}
        return budgets if self.census is None else with_everybody(budgets, self.census)

    def noise(self, local: LocalSum) -> NoisySum:
        """Find the sum of all parties; one that cannot be drawn yet, while a study is only planned."""
        if self._release is None or self.census is None:
            return PlannedSum(self.collective.quorum, local)
        self._sum = self._release.sum_with(self.census, local, attempts=1)
        return self._sum

    def arranged(self, arrangement: Arrangement) -> Arrangement:
        """Say with how many parties records lie, and what their sums withstand."""
        return self.collective.arranged(arrangement)

    def ask_about(self, what: str) -> None:
        """Add it to the name of the next sums."""
        if self._sum is not None:
            self._sum.about = what

    @contextlib.contextmanager
    def joined(self, folder: StudyFolder, observer: Observer) -> Iterator[bool]:
        """See :meth:`Alone.joined`: the folder's vault remembers this party's part in every sum."""
        memory = folder.vault / PARTY_MEMORY
        party = Party(self.collective, self._key, self._shared, memory, self._patience(observer))
        self._release = party.release(self._name, goes_on=True)
        try:
            if self.census is None:
                self._take_census(folder, observer)
            yield True
        finally:
            self._release.close()

    def _take_census(self, folder: StudyFolder, observer: Observer) -> None:
        assert self._budgets is not None, "a study is planned before it joins others"
        assert self._release is not None
        observer.stage("census")
        self.census = self._release.census(self._budgets, self._plan)
        kept = {"release": self._name, "census": [list(one) for one in self.census]}
        folder.write_json(folder.path / PARTIES, kept)
        observer.waits("")

    def _patience(self, observer: Observer) -> Patience:
        def told(waiting: Waiting) -> None:
            observer.waits(f"waits for {', '.join(waiting.parties)}: no {waiting.what} yet")

        section = self._config.parties
        return Patience(section.collect_s, section.give_up_s, section.poll_s, told)

    def _records(self) -> dict[str, object]:
        """Digests of all records that everybody must have: public ones, and the schema."""
        shared = {name: digest for name, digest in self._read.items() if name in _SHARED}
        return {f"{name} records": digest for name, digest in sorted(shared.items())}


_SHARED = ("public", "public labels", "schema")


class PlannedSum(NoiseOfParties):
    """The sum of a study that has not joined the other parties: nothing is drawn through it."""

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        """Refuse."""
        raise RuntimeError("a study draws nothing before it has joined the other parties")


def parties_of(
    config: StudyConfig, fingerprints: Mapping[str, str], begun_in: StudyFolder | None
) -> Alone:
    """Find a study's other parties, if its file names any."""
    return ALONE if config.parties.collective is None else Others(config, fingerprints, begun_in)


def learnt_together(parties: Alone, records: R, **facts: object) -> R:
    """Add the people of other parties, who must see records and classes alike.

    ``facts``: what else must be the same at all parties.
    """
    if records.arrangement.private_classes:
        raise InputError(
            "the list of classes is read off this party's labels, and all parties need the same one: give "
            "data.classes"
        )
    budgets = parties.everybody(records.budgets, {**facts_of(records), **facts})
    return replace(records, budgets=budgets, arrangement=parties.arranged(records.arrangement))


def _kept_in(folder: StudyFolder | None) -> Census | None:
    path: Path | None = None if folder is None else folder.path / PARTIES
    if path is None or not path.exists():
        return None
    return [(plan, groups) for plan, groups in read_json(path, _KEPT)["census"]]


def _settings_of(config: StudyConfig) -> dict[str, Any]:
    """List what the parties' files must say alike: all that decides on a result, but no names of files."""
    sections = config.sections
    return {
        f"{section}.{name}": value
        for section, keys in config.public().items()
        for name, value in keys.items()
        if settings_of(sections[section])[name].kind != "path"
        and f"{section}.{name}" not in _ITS_OWN
    }
