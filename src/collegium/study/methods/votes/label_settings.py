"""How votes that were cast elsewhere are counted and accounted: some of a study's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from collegium.errors import ConfigError
from collegium.parameters import settings_of
from collegium.pate.settings import Account
from collegium.study.config import StudyConfig, sections_from
from collegium.study.cross_checks import check_together
from collegium.study.methods.votes.settings import Aggregation, PersonalisationSection, VotesKind
from collegium.study.sections import LedgerPlace, Privacy, Study
from collegium.toml_files import read_toml

#: What the settings may say. Whose votes they are, and what the budgets are, their files say.
_KEYS = {
    Study.section: {"seed"},
    Privacy.section: (settings_of(Account).keys() - {"delta"}) | {"spend"},
    PersonalisationSection.section: {"method", "rule", "shuffle_every"},
    Aggregation.section: settings_of(Aggregation).keys() - {"answers", "query_order"},
    LedgerPlace.section: settings_of(LedgerPlace).keys(),
}


class LabelKind(VotesKind):
    """Votes are there: nothing is learnt but, from what is released, a student that is asked."""

    learns: ClassVar[bool] = False


def read_label_config(path: Path | None, options: Iterable[tuple[str, str, Any]]) -> StudyConfig:
    """Read the settings of a label job from a file, if there is one, and from options beside it.

    ``options``: name of each option, the key that it stands for, and its value; None: not given.
    """
    given: dict[str, Any] = {}
    if path is not None:
        if not path.exists():
            raise ConfigError(f"there is no file {path}: give one with sections like a study's")
        given = read_toml(path)
    for option, key, value in options:
        section, _, name = key.partition(".")
        keys = {} if value is None else given.setdefault(section, {})
        if not isinstance(keys, dict):
            continue  # and is refused below
        if name in keys:
            raise ConfigError(f"{option} and {key} in {path} are one setting: give one of both")
        keys[name] = value
    return label_config(given, Path() if path is None else path.resolve().parent)


def label_config(given: Mapping[str, Any], folder: Path) -> StudyConfig:
    """Check settings of a label job; those that would have no effect are refused.

    ``given``: section, key, value.
    ``folder``: what relative paths are relative to.
    """
    sections = sections_from(given)
    for section, keys in given.items():
        for key in keys:
            if key not in _KEYS.get(section, ()):
                raise ConfigError(
                    f"{section}.{key} means nothing to votes that were cast elsewhere: remove it"
                )
    if "noise_seed" in given.get("aggregation", {}) and sections["aggregation"].noise != "seeded":
        raise ConfigError(
            "aggregation.noise_seed would have no effect: set aggregation.noise = 'seeded', or remove it"
        )
    single = (
        f"{name}.{key}"
        for name, section in sections.items()
        for key in settings_of(section)
        if key not in _KEYS.get(name, ())
    )
    config = StudyConfig.of_sections(
        sections,
        kind=LabelKind(),
        unused=(*(name for name in sections if name not in _KEYS), *single),
        folder=folder,
        has_student=False,
        given=given,
    )
    check_together(config, given)
    return config
