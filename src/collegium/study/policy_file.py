"""What privacy levels mean, read from a file: a study's, or one that says nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collegium.accounting.neighbours import OWNER, ROW, Arrangement
from collegium.accounting.promises import Promise
from collegium.budgets import Policy
from collegium.checks import shown
from collegium.errors import ConfigError, InputError
from collegium.study.config import check_names, config_from
from collegium.study.methods.kinds import SECTIONS
from collegium.study.on_ledger import place_of
from collegium.study.sections import Privacy
from collegium.study.study_settings import StudyConfig
from collegium.toml_files import read_toml


@dataclass(frozen=True)
class StatedPolicy:
    """The levels that people can choose from, and what the file says of their records.

    ``promise``: of the ledger that a study has; None: there is none yet.
    """

    policy: Policy
    arrangement: Arrangement
    promise: Promise | None = None


def read_policy(path: Path) -> StatedPolicy:
    """Read a study's file, or one with ``levels`` and ``delta`` alone, in a section ``[privacy]`` or not.

    Raises
    ------
    ConfigError
        If it names no levels, or what is said about levels would not hold of the study.
    """
    given = read_toml(path)
    try:
        if SECTIONS.keys() & given.keys() - {Privacy.section}:
            config = config_from(given, path.resolve().parent)
            place = place_of(config)
            ledger = None if place is None else place.of_anybody()[1]
            promise = None if ledger is None else ledger.lifetime.promise
            return StatedPolicy(_promised(config), _arrangement(config), promise)
        keys = given.get(Privacy.section, given)
        if not isinstance(keys, Mapping):
            raise ConfigError(f"[{Privacy.section}] must be a section with keys, got {shown(keys)}")
        return StatedPolicy(_alone(keys), Arrangement())
    except InputError as error:
        raise ConfigError(f"{path}: {error}") from None


def _alone(keys: Mapping[str, Any]) -> Policy:
    check_names(Privacy.section, keys)
    privacy = Privacy(**keys)
    return _named(
        privacy,
        None
        if privacy.levels is None
        else Policy(privacy.levels, privacy.delta, privacy.public or ()),
    )


def _promised(config: StudyConfig) -> Policy:
    """Refuse a study that promises nothing in advance."""
    if config.noise_is_seeded:
        raise ConfigError(
            "the noise is drawn from a seed, so nothing is promised to anybody: "
            f"{config.kind.how_to_secure()}"
        )
    return _named(config.privacy, config.policy())


def _named(privacy: Privacy, policy: Policy | None) -> Policy:
    if privacy.guarantee != "worst-case":
        raise ConfigError(
            "a data-dependent guarantee is a statement about one data set, and no promise to people who are "
            "yet to choose: set privacy.guarantee = 'worst-case'"
        )
    if policy is None:
        raise ConfigError(
            "there are no levels to explain: name them, for instance levels = { high = 1.0, low = 3.0 }"
        )
    return policy


def _arrangement(config: StudyConfig) -> Arrangement:
    """What is known of it before any record is read."""
    by_row = config.data.owner is None and config.data.private is not None
    return Arrangement(
        unit=ROW if by_row else OWNER,
        sizes_declared=config.privacy.sizes is not None,
        split=config.data.public_records is not None,
        levels_by_lot=config.privacy.shares is not None,
        **config.kind.arrangement(config),
    )
