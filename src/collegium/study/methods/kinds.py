"""Every way to learn that a study's file can name, and so every section and key that it can have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from collegium.parameters import Setting, Settings, setting, settings_of
from collegium.study.methods.dpsgd.settings import DPSGDKind
from collegium.study.methods.statistics.settings import StatisticsKind
from collegium.study.methods.synthesis.settings import SynthesisKind
from collegium.study.methods.votes.settings import VotesKind
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
from collegium.study.study_settings import Kind

#: Of a file that leaves open how it is learnt, and of one that says how, and names no method.
FALLBACK = VotesKind()
KINDS: dict[str, Kind] = {}
SECTIONS: dict[str, type[Settings]] = {}

_BEFORE = (Study, Data, Privacy, Method, Features, Preprocessing)
_AFTER = (StudentSection, LedgerPlace, PartiesSection, Run)


def register(kind: Kind) -> None:
    """Let studies name a method: its sections are read, and ``method.kind`` may be its name.

    ``kind``: with a name and with sections that no other has.
    """
    own = [cls.section for cls in kind.sections]
    if kind.name in {AUTO, *KINDS} or SECTIONS.keys() & set(own):
        raise ValueError(f"there is another method, or another section, of this name: {kind.name}")
    KINDS[kind.name] = kind
    inner = [cls for one in _by_sections() for cls in one.sections]
    sections: tuple[type[Settings], ...] = (*_BEFORE, *inner, *_AFTER)
    SECTIONS.clear()
    SECTIONS.update({cls.section: cls for cls in sections})
    SECTIONS[Method.section] = _method_section()


def kind_of(given: Mapping[str, Mapping[str, Any]]) -> str:
    """Tell how a file that names no method means it to be learnt; left open if nothing in it says how."""
    return next((one.name for one in _by_sections() if one.meant_by(given)), AUTO)


def _by_sections() -> list[Kind]:
    """Order methods as their sections stand in a file: what is not said otherwise is the last one's."""
    return sorted(KINDS.values(), key=lambda one: one is FALLBACK)


def unused_by(name: str) -> tuple[str, ...]:
    """List the sections and keys that mean nothing to a method, by its name; or to any that may be chosen."""
    if name == AUTO:
        return tuple(
            cls.section for one in _by_sections() if not one.is_chosen for cls in one.sections
        )
    others = (cls.section for one in _by_sections() if one.name != name for cls in one.sections)
    return (*KINDS[name].unused, *others)


def belonging() -> dict[str, Mapping[str, tuple[str, ...]]]:
    """For each key that chooses between classes, the keys that belong to each choice."""
    return {key: choices for one in KINDS.values() for key, choices in one.belonging.items()}


def _method_section() -> type[Method]:
    themselves = [f"[{cls.section}]" for one in _by_sections()[:-1] for cls in one.sections]
    named = " and ".join(filter(None, [", ".join(themselves[:-1]), *themselves[-1:]]))
    meaning = " ".join(
        [
            "auto: chosen from public facts, with everything else that a file leaves open; where a section "
            f"says how it is learnt, that decides: {named} mean themselves, others "
            f"{FALLBACK.name}.",
            *(f"{one.name}: {one.meaning}" for one in KINDS.values()),
        ]
    )

    @dataclass(frozen=True)
    class AnyMethod(Method):
        """How it is learnt."""

        kind: str = setting(AUTO, meaning, choices=(AUTO, *KINDS))

    return AnyMethod


class Key(NamedTuple):
    """One key of the file."""

    section: str
    name: str
    setting: Setting

    @property
    def path(self) -> str:
        """Name with section, as messages call it."""
        return f"{self.section}.{self.name}"


def all_keys() -> tuple[Key, ...]:
    """List all keys."""
    return tuple(
        Key(section, name, about)
        for section, cls in SECTIONS.items()
        for name, about in settings_of(cls).items()
    )


for _kind in (FALLBACK, DPSGDKind(), StatisticsKind(), SynthesisKind()):
    register(_kind)
