"""What a release promised, kept in its vault: with the journal enough to read its account without data.

Terms are public, and of one form for every method: who granted what, which data sets are neighbours, under
which guarantee. What only one method has stands in its own subclass, with how its journal is read: what was
spent, how far it is, and what of it is told. Everything that is shown of a release follows from that.
"""

from __future__ import annotations

import contextlib
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.accounting.promises import Promise
from collegium.accounting.spent import Spent
from collegium.budgets import Budget
from collegium.errors import CollegiumError, InputError, StudyMismatchError
from collegium.json_files import number_as_json, parse_json, read_json
from collegium.report.sections import Block, Points
from collegium.study.folder import StudyFolder
from collegium.study.journal import FileJournal
from collegium.study.manifest_check import refuse_links, released_digests
from collegium.study.methods.kinds import KINDS
from collegium.study.released_files import released_content

FORMAT = 3
TERMS = "terms.json"
WORST_CASE = "worst-case"
_ADVICE = "restore it from a backup"


@dataclass(frozen=True)
class Progress:
    """How far a release has come.

    ``counts``: what is counted of it, for programs, by the names that the method gives.
    ``sentences``: the same for people, and what the next run would do.
    ``by_group``: what else programs are told of each group, beside what it granted and spent; if what is
        left is known, as ``epsilon_left`` and ``mu_left``.
    ``rest``: more that programs are told of what is left.
    """

    counts: Mapping[str, Any]
    sentences: tuple[str, ...]
    by_group: Mapping[str, Mapping[str, float]]
    rest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RegistryWords:
    """What a public registry is told of a method: see :mod:`collegium.study.registry`."""

    product_type: str
    description: str
    unprotected: str
    holder: str
    mechanism: str
    noise: str
    composition: str
    post_processing: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Terms(ABC):
    """What a release was agreed on, before its first draw.

    ``groups``, ``people``: what each member of a group granted, and how many members it has.
    ``arrangement``: what was done with owners, group sizes and classes; what is hidden follows from it.
    ``guarantee``: "worst-case", or "data-dependent" where what is spent is sensitive.
    ``private_noise``: whether noise comes from the operating system.
    """

    groups: Mapping[str, Budget]
    people: Mapping[str, int]
    arrangement: Arrangement
    private_noise: bool
    guarantee: str = WORST_CASE

    #: By which terms name their method.
    method: ClassVar[str]
    #: What ends a release of it.
    command: ClassVar[str] = "`collegium run`"
    #: What ``privacy.json`` counts beside what every release says, with its types.
    counted: ClassVar[Mapping[str, Any]]

    def __post_init__(self) -> None:
        if set(self.groups) != set(self.people):
            raise ValueError("budgets and sizes are about different groups")

    @property
    def neighbours(self) -> Neighbours:
        """What is hidden about one person."""
        return self.arrangement.neighbours

    @property
    def adjacency(self) -> str:
        """The same in words, with all that it depends on."""
        return self.arrangement.sentence

    @property
    def unit(self) -> str:
        """What a group's members are: owners, or teachers where nothing is known of owners."""
        return self.arrangement.counts_in

    @abstractmethod
    def own_to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON of what only this method has, exact to the last bit."""

    @classmethod
    @abstractmethod
    def own_from_json(cls, own: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """Read what :meth:`own_to_json` made. ``common``: arguments that all methods have."""

    @abstractmethod
    def spent(self, journal: FileJournal) -> Spent:
        """Charge again what the journal says was drawn."""

    @abstractmethod
    def progress(self, journal: FileJournal, ended: str | None) -> Progress:
        """Tell what is charged, and what may still be.

        ``ended``: why nothing more is drawn, if it is known.
        """

    @abstractmethod
    def mechanism(self) -> dict[str, Any]:
        """Describe what adds the noise, for JSON: with a ``name``, and ``in_words``."""

    @abstractmethod
    def drawn_and_told(self, told: Mapping[str, Any], journal: FileJournal) -> tuple[str, int, int]:
        """Say what is counted, how much of it the journal has, and how much a release tells of.

        ``told``: what the release says of itself.
        """

    @classmethod
    @abstractmethod
    def released(cls, told: Mapping[str, Any]) -> dict[str, Any]:
        """Count what was released, for JSON. ``told``: what the release says of itself."""

    @classmethod
    @abstractmethod
    def released_in_words(cls, released: Mapping[str, Any], unit: str) -> str:
        """Say in a sentence what :meth:`released` counted. ``unit``: whose budgets paid for it."""

    @classmethod
    def released_blocks(cls, told: Mapping[str, Any], folder: Path) -> list[Block]:
        """Say for people what the release in a folder holds. ``told``: as for :meth:`released`."""
        return [Points([cls.released_in_words(cls.released(told), told["unit"])])]

    @abstractmethod
    def for_registry(self, statement: Mapping[str, Any]) -> RegistryWords:
        """Describe a release for a public registry. ``statement``: what JSON says of it."""

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON, exact to the last bit."""
        return {
            "format": FORMAT,
            "method": self.method,
            "groups": {
                name: [number_as_json(one.epsilon), one.delta] for name, one in self.groups.items()
            },
            "people": dict(self.people),
            "arrangement": {
                **_said_of(self.arrangement),
                "promise": self.arrangement.promise.value,
                "public_levels": list(self.arrangement.public_levels),
            },
            "private_noise": self.private_noise,
            "guarantee": self.guarantee,
            "own": self.own_to_json(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_json` made."""
        if content["format"] != FORMAT:
            raise InputError(f"unknown format {content['format']!r} of a release's terms")
        arrangement = dict(content["arrangement"])
        arrangement["public_levels"] = tuple(arrangement["public_levels"])
        arrangement["brought"] = tuple(arrangement.get("brought", ()))
        arrangement["promise"] = Promise(arrangement["promise"])
        return cls.own_from_json(
            content["own"],
            {
                "groups": {
                    name: Budget(float(epsilon), delta)
                    for name, (epsilon, delta) in content["groups"].items()
                },
                "people": content["people"],
                "arrangement": Arrangement(**arrangement),
                "private_noise": content["private_noise"],
                "guarantee": content["guarantee"],
            },
        )


def _said_of(arrangement: Arrangement) -> dict[str, Any]:
    """Leave out what terms of older versions do not have, where there is nothing to say of it."""
    said = asdict(arrangement)
    return said if said.pop("brought") == () else {**said, "brought": list(arrangement.brought)}


def form_of(method: str) -> type[Terms]:
    """Find the terms of a method by its name; raises KeyError if there are none."""
    found: type[Terms] = KINDS[method].terms()
    return found


def read_release(path: Path) -> tuple[dict[str, Any], type[Terms]]:
    """Read what a release says of itself, and find the form of its terms, which the release does not hold.

    Raises InputError if nothing was released yet; StudyMismatchError if it is not what was released.
    """
    source = path / "release" / "privacy.json"
    content = released_content(source)
    if content is None:
        raise InputError(
            f"{path} holds no finished study: there is no {source}; `collegium run` makes one"
        )
    forms = [form_of(method) for method in KINDS]
    said = {"statement": [str], "unit": str}
    told = parse_json(content, source, tuple({**said, **form.counted} for form in forms))
    return told, next(form for form in forms if form.counted.keys() <= told.keys())


def read_terms(path: Path) -> tuple[Terms, FileJournal]:
    """Read what a release promised, and the journal of what was drawn, also while it is running.

    Nothing is changed.
    Raises StudyMismatchError if the journal does not vouch for the terms, and for what was released.
    """
    with _reading(path):
        content, journal = _begun(path)
        return form_of(content["method"]).from_json(content), journal


def relation_as_begun(folder: StudyFolder | None) -> Neighbours | None:
    """Say about which neighbours a release was charged that was begun in a folder; None if none was."""
    if folder is None or not (folder.vault / TERMS).exists():
        return None
    return read_terms(folder.path)[0].neighbours


def keep_or_match(folder: StudyFolder, now: dict[str, Any], what: str, nothing: str) -> None:
    """Write terms into a vault, or check that they are those that stand there.

    ``what``, ``nothing``: what differs then, and what was not done, for the message.
    Raises StudyMismatchError if it was begun with others: an account of two would be of neither.
    """
    path = folder.vault / TERMS
    if not path.exists():
        folder.write_json(path, now)
    elif read_json(path, dict) != now:
        raise StudyMismatchError(
            f"{folder.path} was begun with {what} than these settings and people give now (another version "
            f"of the software?): {nothing}; go on with what it was begun with, or choose another folder "
            "with --out"
        )


def why_it_ended(path: Path) -> str | None:
    """Tell why a job's voting has ended; None if it goes on with the next run.

    Raises StudyMismatchError if the journal does not vouch for that.
    """
    folder = StudyFolder(path)
    source = folder.voting_ended
    if not source.exists():
        return None
    content = source.read_bytes()
    name = source.relative_to(path).as_posix()
    _require_vouched(path, {name: hashlib.sha256(content).hexdigest()}, folder.open_journal())
    reason: str = parse_json(content, source, {"stop_reason": str})["stop_reason"]
    return reason


def _require_vouched(path: Path, digests: dict[str, str], journal: FileJournal) -> None:
    for name, digest in digests.items():
        if digest not in journal.files.get(name, ()):
            raise StudyMismatchError(
                f"{path / name} is not what the journal beside it says: one of them is damaged, or older "
                "than the other, so what was spent is not known; restore the whole folder from one "
                "backup (`collegium verify` tells all that is wrong)"
            )


def _begun(path: Path) -> tuple[dict[str, Any], FileJournal]:
    """Read the terms of a study or label job that was begun, and its journal, which vouches for them."""
    folder = StudyFolder(path)
    source = folder.vault / TERMS
    if not source.exists():
        raise InputError(
            f"{path} is not the folder of a study or label job: there is no {source}; `collegium run` and "
            "`collegium label` make one"
        )
    refuse_links(folder.vault)
    digests = released_digests(path)  # before the journal: a job that is running is ahead of it
    content = source.read_bytes()
    digests[f"vault/{TERMS}"] = hashlib.sha256(content).hexdigest()
    journal = folder.open_journal()
    _require_vouched(path, digests, journal)
    terms: dict[str, Any] = parse_json(content, source, dict, _ADVICE, InputError)
    return terms, journal


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say in one line what is wrong with a folder whose terms are read."""
    try:
        yield
    except CollegiumError:
        raise
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): it is for its owner only"
        ) from None
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        OverflowError,
        MemoryError,
    ):
        raise InputError(f"{path / 'vault' / TERMS} is damaged: {_ADVICE}") from None
