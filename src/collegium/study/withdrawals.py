"""Who has left a study, as its vault remembers it, and the plan that stays what it was."""

from __future__ import annotations

import hmac
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np

from collegium.budgets import Budget, Budgets
from collegium.errors import InputError, PrivacyWarning
from collegium.json_files import number_as_json, read_json
from collegium.names import spelling
from collegium.runs.records import Records
from collegium.study.folder import StudyFolder
from collegium.study.manifest_check import LEAVERS
from collegium.study.sealing import read_key

R = TypeVar("R", bound=Records)

_NOW = {
    "who": str,
    "teachers": [int],
    "position": (int, type(None)),
    "owners": int,
    "before": str,
    "after": str,
    "records": int,
    "taken_out": bool,
}
_SHAPE = {"groups": dict, "people": [str], "now": (_NOW, type(None))}


@dataclass(frozen=True)
class Leaving:
    """Somebody who is being forgotten: all that the same command needs to go on after a crash.

    ``who``: keyed hash of the name.
    ``teachers``: who learnt from the person.
    ``position``: among the owners of whom the folder remembers what a ledger had left; None: it does not.
    ``owners``: how many these were before.
    ``before``, ``after``: digests of the file of private records, with this person's and without.
    ``records``: how many go.
    ``taken_out``: whether records, and what was learnt from them, are gone already.
    """

    who: str
    teachers: list[int]
    position: int | None
    owners: int
    before: str
    after: str
    records: int
    taken_out: bool = False


@dataclass(frozen=True)
class Leavers:
    """What a vault remembers of people who left.

    ``groups``: budget of each group, and how many owners it had when the study was planned: the plan was made
        of these numbers, which are public, and stays what it was.
    ``people``: keyed hashes of the names of those who left.
    ``now``: who is being forgotten.
    """

    groups: Mapping[str, tuple[Budget, int]]
    people: tuple[str, ...] = ()
    now: Leaving | None = None

    @classmethod
    def of(cls, folder: StudyFolder) -> Leavers | None:
        """Read what a vault remembers; None if nobody left."""
        path = folder.path / LEAVERS
        if not path.exists():
            return None
        kept = read_json(path, _SHAPE)
        groups = {
            name: (Budget(float(epsilon), delta), size)
            for name, (epsilon, delta, size) in kept["groups"].items()
        }
        now = kept["now"]
        return cls(groups, tuple(kept["people"]), None if now is None else Leaving(**now))

    @classmethod
    def planned_with(cls, budgets: Budgets) -> Leavers:
        """Begin to remember, with everybody still there."""
        sizes = budgets.public_sizes()
        return cls({name: (one, sizes[name]) for name, one in budgets.groups.items()})

    def keep(self, folder: StudyFolder) -> None:
        """Write it into the vault."""
        groups: dict[str, Any] = {
            name: [number_as_json(one.epsilon), one.delta, size]
            for name, (one, size) in self.groups.items()
        }
        now = None if self.now is None else asdict(self.now)
        folder.write_json(
            folder.path / LEAVERS, {"groups": groups, "people": self.people, "now": now}
        )

    @property
    def is_planned_again(self) -> bool:
        """Whether the study's plan stays what it was; if not, it was finished, and is only shown."""
        return bool(self.groups)

    def as_planned(self, given: Budgets) -> Budgets:
        """Count these people among the owners of whom a plan is made: they have no records any more."""
        codes = {name: code for code, name in enumerate(self.groups)}
        code_of = np.array([codes[name] for name in given.group_names], dtype=np.intp)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # they were warned of as granted
            budgets = Budgets(
                {name: one for name, (one, _) in self.groups.items()},
                code_of[given.owner_group[given.record_owner]],
                given.owners[given.record_owner],
                {name: size for name, (_, size) in self.groups.items()},
            )
        budgets.public_levels = given.public_levels
        return budgets


def tag_of(folder: StudyFolder, name: str) -> str:
    """Hash a name under the vault's own key."""
    return hmac.new(read_key(folder.vault), b"leaver " + spelling(name), "sha256").hexdigest()


def planned_as_begun(folder: StudyFolder | None, records: R) -> R:
    """Count those who have left since a study was planned: its plan stays what it was."""
    return replace(records, budgets=budgets_as_begun(folder, records.budgets))


def budgets_as_begun(folder: StudyFolder | None, given: Budgets) -> Budgets:
    """The same, of budgets alone."""
    left = None if folder is None else Leavers.of(folder)
    return given if left is None else left.as_planned(given)


def refuse_half_forgotten(folder: StudyFolder) -> None:
    """Refuse to go on with a study while somebody is being forgotten, or that is only shown since then."""
    left = Leavers.of(folder)
    if left is not None and left.now is None and not left.is_planned_again:
        raise InputError(
            f"{folder.path} is finished, and somebody has left since, so it is not made again: `collegium "
            "report` shows what it released; nothing was changed"
        )
    if left is not None and left.now is not None:
        raise InputError(
            f"in {folder.path}, `collegium forget` was cut off: give the same command again; nothing was "
            "asked"
        )
