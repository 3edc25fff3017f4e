"""A study's settings, section by section, and what is built from them; and what a method says of them.

Both stand in one file, as each is about the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from collegium.budgets import Policy
from collegium.data.engines.places import Place, place_of
from collegium.distillation.goal import ACCURACY
from collegium.parameters import Settings, settings_of
from collegium.pate.settings import Account
from collegium.study.sections import (
    AUTO,
    Data,
    Features,
    LedgerPlace,
    Method,
    PartiesSection,
    Preprocessing,
    Privacy,
    Run,
    StudentSection,
    Study,
)
from collegium.workers.engines import Engine

T = TypeVar("T", bound=Settings)

#: Keys that all studies' sections have, and that mean something to votes alone.
OF_VOTES_ALONE = (
    *(f"privacy.{name}" for name in settings_of(Account) if name not in ("delta", "guarantee")),
    "student.targets",
)


@dataclass(frozen=True)
class StudyConfig:
    """All settings of a study, with defaults filled in.

    ``study``, ``data``, ``privacy``, ``method``, ``features``, ``preprocessing``, ``student``, ``ledger``,
        ``parties``, ``run``: the sections that all studies have, as :mod:`collegium.study.sections` describes
        them.
    ``own``: the sections of methods, by name; see :meth:`of`.
    ``kind``: how it is learnt, as far as settings go; that of votes where this is open.
    ``unused``: sections and keys that mean nothing to that.
    ``folder``: what relative paths are relative to: the TOML file's folder.
    ``has_student``: whether a student is published; without one, what was trained.
    ``given``: what stands in the file.
    """

    study: Study
    data: Data
    privacy: Privacy
    method: Method
    features: Features
    preprocessing: Preprocessing
    student: StudentSection
    ledger: LedgerPlace
    parties: PartiesSection
    run: Run
    own: Mapping[str, Settings]
    kind: Kind
    unused: tuple[str, ...]
    folder: Path
    has_student: bool = True
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def of_sections(cls, sections: Mapping[str, Any], **more: Any) -> StudyConfig:
        """Make it of all sections, by name; ``more``: what else it has."""
        shared = {one.name for one in fields(cls)}
        own = {name: keys for name, keys in sections.items() if name not in shared}
        return cls(
            **{name: keys for name, keys in sections.items() if name in shared}, own=own, **more
        )

    @property
    def is_open(self) -> bool:
        """Whether nothing says how it is learnt, so that this is still to be chosen."""
        return self.method.kind == AUTO

    @property
    def noise_is_seeded(self) -> bool:
        """Whether its noise protects nobody."""
        return self.kind.noise_is_seeded(self)

    @property
    def sections(self) -> dict[str, Settings]:
        """All of them, by name."""
        before = (self.study, self.data, self.privacy, self.method)
        seen = (self.features, self.preprocessing)
        after = (self.student, self.ledger, self.parties, self.run)
        return {one.section: one for one in (*before, *seen, *self.own.values(), *after)}

    def of(self, cls: type[T]) -> T:
        """Take a section of a method, by its class."""
        found = self.own[cls.section]
        assert isinstance(found, cls)
        return found

    def __getitem__(self, path: str) -> Any:
        section, name = path.split(".")
        return getattr(self.own[section] if section in self.own else getattr(self, section), name)

    def path(self, key: str) -> Path | None:
        """Resolve a key that names a file."""
        given = self[key]
        return None if given is None else (self.folder / given)

    def place(self, key: str) -> Place | None:
        """Read a key that names a table in a database or workbook; None: it names none."""
        return place_of(self[key], self.folder, look=False)

    def source(self, key: str) -> Path | Place | None:
        """Resolve a key that names records: a file, or a table that is there."""
        place = place_of(self[key], self.folder)
        return self.path(key) if place is None else place

    def public(self) -> dict[str, dict[str, Any]]:
        """Everything that may change a result: all but ``ledger``, ``run`` and what means nothing to it.

        Nor ``parties``: who they are is a fingerprint of their file.
        """
        outside = {LedgerPlace.section, PartiesSection.section, Run.section, *self.unused}
        if not self.has_student:
            outside.add(StudentSection.section)
        if self.features.weights is None:
            outside.add(Features.section)
        said = {
            section: {
                name: _plain(value)
                for name in settings_of(inside)
                if f"{section}.{name}" not in outside
                and (value := getattr(inside, name)) is not None
            }
            for section, inside in self.sections.items()
            if section not in outside
        }
        if self.student.goal != ACCURACY:  # also where what was trained itself is published
            said.setdefault(StudentSection.section, {})["goal"] = self.student.goal
        return said

    def published(self) -> dict[str, dict[str, Any]]:
        """The same for a release, which says of files what they are called, and not where they lie."""
        sections = self.sections
        return {
            section: {
                name: _without_folders(value, known[name].kind) for name, value in keys.items()
            }
            for section, keys in self.public().items()
            for known in [settings_of(sections[section])]
        }

    def files(self) -> dict[str, Path]:
        """List the files that may change a result, by their keys.

        A database is none: what is read of it is of one state, whoever writes.
        """
        sections = self.sections
        named = {
            f"{section}.{name}"
            for section, keys in self.public().items()
            for known in [settings_of(sections[section])]
            for name in keys
            if known[name].kind == "path"
        }
        places = {key: self.place(key) for key in sorted(named)}
        found = {
            key: self.path(key) if place is None else place.file if place.in_memory else None
            for key, place in places.items()
        }
        return {key: path for key, path in found.items() if path is not None}

    def title(self) -> str:
        """Name the report: as the user did, or else by what is predicted and from what."""
        if self.study.name != Study.name:
            return self.study.name
        return self.kind.title(self)

    def policy(self) -> Policy | None:
        """Read the levels; None where people gave ε as a number."""
        levels = self.privacy.levels
        return (
            None
            if levels is None
            else Policy(levels, self.privacy.delta, self.privacy.public or ())
        )

    def engine(self) -> Engine:
        """Build the engine on which teachers are trained and asked."""
        address = self.run.address
        if address is not None and address.endswith(".json"):
            address = str(self.folder / address)
        return Engine(self.run.engine, address, self.run.n_jobs)

    def account(self) -> Account:
        """Which guarantee people get, and how it is computed."""
        return Account(**{name: getattr(self.privacy, name) for name in settings_of(Account)})


class Kind:
    """How a study is learnt, as far as its file goes: nothing here needs a record, or is slow to import.

    Examples
    --------
    A method of one's own, whose studies say ``[method] kind = "counting"`` and have a section
    ``[counting]``, is a subclass with ``name``, ``meaning``, ``sections``, ``method_at`` and
    ``terms_at``, made known by :func:`collegium.study.methods.kinds.register`.
    """

    #: What ``method.kind`` calls it, and what that means: part of a sentence.
    name: ClassVar[str]
    meaning: ClassVar[str]
    #: Where its :class:`~collegium.study.methods.protocol.Method` and its terms are: "module:Class".
    method_at: ClassVar[str]
    terms_at: ClassVar[str]
    #: Its own sections of a file.
    sections: ClassVar[tuple[type[Settings], ...]]
    #: Other sections and keys that mean nothing to it; those of other methods do not anyway.
    unused: ClassVar[tuple[str, ...]] = (*OF_VOTES_ALONE, StudentSection.section)
    #: For each key that chooses between classes, the keys of each choice; and which values of other keys.
    belonging: ClassVar[Mapping[str, Mapping[str, tuple[str, ...]]]] = {}
    narrowed: ClassVar[Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]] = {}
    #: Whether the planner may choose it.
    is_chosen: ClassVar[bool] = False
    #: Whether it learns to predict, and so needs public records beside the private ones.
    learns: ClassVar[bool] = True
    #: What learns from public records, in words.
    learner: ClassVar[str] = "the model"
    #: What holds whatever the data are; empty where a guarantee may depend on them.
    in_words: ClassVar[str] = "what this method promises"
    #: Whether records in memory are no matter for an engine: it takes threads.
    takes_threads: ClassVar[bool] = False
    #: How far it whitens scattering features where nothing is said; None: as teachers do.
    whitening: ClassVar[float | None] = None
    #: Why a study that has begun, and not ended, cannot go on without somebody; empty where it can.
    cannot_forget: ClassVar[str] = "what it has learnt cannot be taken back"
    #: Whether it draws through sums to which several parties may add.
    adds_up: ClassVar[bool] = False

    def method(self) -> Any:
        """Load what plans and runs studies of it."""
        return _load(self.method_at)()

    def terms(self) -> Any:
        """Load the class of its terms."""
        return _load(self.terms_at)

    def meant_by(self, given: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether a file that names no method means it."""
        return any(given.get(cls.section) for cls in self.sections)

    def has_student(self, given: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether a student is published."""
        return False

    def settled(
        self, sections: dict[str, Any], given: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Replace defaults of shared sections that do not suit it."""
        return sections

    def check(self, config: StudyConfig) -> None:
        """Refuse what its own keys make impossible."""

    def usual_view(self, is_table: bool, has_text: bool, are_images: bool = False) -> str:
        """Name the preprocessing of records for which none is given.

        ``are_images``: whether they come as images, and not as rows.
        """
        return "tabular" if is_table and has_text else "none"

    def noise_is_seeded(self, config: StudyConfig) -> bool:
        """Whether its noise protects nobody: never, where no key gives it a seed."""
        return False

    def how_to_secure(self) -> str:
        """Say which key makes its noise private again."""
        return ""

    def title(self, config: StudyConfig) -> str:
        """Name a study that has no name."""
        data = config.data
        records = data.dataset or without_folders(data.private or "")
        return f"Predicting {data.target} ({records})" if data.target else f"Study of {records}"

    def arrangement(self, config: StudyConfig) -> dict[str, Any]:
        """What is known of its ``Arrangement`` before any record is read."""
        return {}

    def frozen(self, config: StudyConfig) -> dict[str, dict[str, Any]]:
        """What a study cannot change any more once it has begun: all but the student, which costs nobody
        anything.
        """
        settings = config.public()
        settings.pop(StudentSection.section, None)
        return settings

    def unstreamed(self, config: StudyConfig) -> str:
        """Say why records cannot be read piece by piece; empty where they can."""
        return ""


def is_asked_for(given: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a file says more of a student than what it is to be good at."""
    return bool(set(given.get(StudentSection.section, {})) - {"goal"})


def _load(at: str) -> Any:
    module, _, name = at.partition(":")
    return getattr(import_module(module), name)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers, and NaN would not even equal itself
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _without_folders(value: Any, kind: str) -> Any:
    """Name files without their folders: in keys for paths, and in tables (of a model's parameters)."""
    if isinstance(value, Mapping):
        return {name: _without_folders(inner, kind) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_folders(inner, kind) for inner in value]
    if isinstance(value, str) and (
        kind == "path" or (kind == "table" and Path(value).is_absolute())
    ):
        return without_folders(value)
    return value


def without_folders(given: str) -> str:
    """Name a file, or a table, without where it lies."""
    place = place_of(given, look=False)
    return Path(given).name if place is None else place.name
