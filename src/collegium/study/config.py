"""A study's TOML file, read and checked key by key: nothing is silently ignored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from collegium.checks import nearest, shown
from collegium.dpsgd.settings import MOST_COMPONENTS
from collegium.errors import ConfigError, InputError
from collegium.parameters import settings_of
from collegium.pate.settings import Account
from collegium.study.cross_checks import check_together
from collegium.study.sections import (
    AUTO,
    DPSGD,
    HOW,
    OPEN_KEYS,
    PATE,
    SECTIONS,
    STATISTICS,
    DPSGDSection,
    StatisticsSection,
)
from collegium.study.study_settings import StudyConfig
from collegium.toml_files import read_toml

__all__ = ["StudyConfig", "config_from", "read_config"]


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
    for section, keys in given.items():
        if section not in SECTIONS:
            raise ConfigError(_unknown(f"section [{section}]", section, SECTIONS))
        if not isinstance(keys, Mapping):
            raise ConfigError(f"[{section}] must be a section with keys, got {shown(keys)}")
        check_names(section, keys)
    sections: dict[str, Any] = {
        section: cls(**given.get(section, {})) for section, cls in SECTIONS.items()
    }
    if sections["method"].kind == AUTO:
        sections["method"] = replace(sections["method"], kind=_kind_of(given))
    if sections["method"].kind == DPSGD and "components" not in given.get("preprocessing", {}):
        seen = sections["preprocessing"]
        if seen.kind in (None, "principal", "binned", "scattering", "kernel", "components"):
            sections["preprocessing"] = replace(seen, components=MOST_COMPONENTS)
    # Without a student, the goal is the direct model's.
    asked_for = set(given.get("student", {})) - {"goal"}
    kind = sections["method"].kind
    has_student = kind == PATE or (bool(asked_for) and kind != STATISTICS)
    config = StudyConfig(**sections, folder=folder, has_student=has_student, given=given)
    check_together(config, given)
    return config


def _kind_of(given: Mapping[str, Mapping[str, Any]]) -> str:
    """Tell how a file that names no method means it to be learnt; left open if nothing in it says how."""
    if given.get(DPSGDSection.section):
        return DPSGD
    if given.get(StatisticsSection.section):
        return STATISTICS
    says = any(set(given.get(section, {})) - set(OPEN_KEYS.get(section, ())) for section in HOW)
    of_votes = settings_of(Account).keys() - {"delta", "guarantee"}
    privacy = given.get("privacy", {})
    if says or of_votes & privacy.keys() or privacy.get("guarantee", "worst-case") != "worst-case":
        return PATE
    return AUTO


def check_names(section: str, keys: Collection[str]) -> None:
    """Refuse keys that a section does not have."""
    allowed = settings_of(SECTIONS[section])
    for name in keys:
        if name not in allowed:
            raise ConfigError(_unknown(f"key {section}.{name}", name, allowed))


def _unknown(what: str, name: str, allowed: Collection[str]) -> str:
    return f"unknown {what}: {nearest(name, allowed)}"
