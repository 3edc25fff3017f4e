"""A study's TOML file, read and checked key by key: nothing is silently ignored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from collegium.checks import nearest, shown
from collegium.errors import ConfigError, InputError
from collegium.parameters import settings_of
from collegium.study.cross_checks import check_together
from collegium.study.methods.kinds import FALLBACK, KINDS, SECTIONS, kind_of, unused_by
from collegium.study.sections import AUTO
from collegium.study.study_settings import StudyConfig, is_asked_for
from collegium.toml_files import read_toml

__all__ = ["StudyConfig", "config_from", "read_config", "sections_from"]


def read_config(path: str | Path) -> StudyConfig:
    """Read and check a TOML file."""
    file = Path(path)
    given = read_toml(file)
    try:
        return config_from(given, file.resolve().parent)
    except InputError as error:
        raise ConfigError(f"{file}: {error}") from None


def config_from(given: Mapping[str, Any], folder: Path) -> StudyConfig:
    """Check settings that were read already.

    ``folder``: what relative paths are relative to.
    """
    sections = sections_from(given)
    if sections["method"].kind == AUTO:
        sections["method"] = replace(sections["method"], kind=kind_of(given))
    name = sections["method"].kind
    kind = KINDS.get(name, FALLBACK)
    config = StudyConfig.of_sections(
        kind.settled(sections, given),
        kind=kind,
        unused=unused_by(name),
        folder=folder,
        has_student=is_asked_for(given) if name == AUTO else kind.has_student(given),
        given=given,
    )
    check_together(config, given)
    return config


def sections_from(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check settings section by section, each by itself, and fill in defaults."""
    for section, keys in given.items():
        if section not in SECTIONS:
            raise ConfigError(_unknown(f"section [{section}]", section, SECTIONS))
        if not isinstance(keys, Mapping):
            raise ConfigError(f"[{section}] must be a section with keys, got {shown(keys)}")
        check_names(section, keys)
    return {section: cls(**given.get(section, {})) for section, cls in SECTIONS.items()}


def check_names(section: str, keys: Collection[str]) -> None:
    """Refuse keys that a section does not have."""
    allowed = settings_of(SECTIONS[section])
    for name in keys:
        if name not in allowed:
            raise ConfigError(_unknown(f"key {section}.{name}", name, allowed))


def _unknown(what: str, name: str, allowed: Collection[str]) -> str:
    return f"unknown {what}: {nearest(name, allowed)}"
