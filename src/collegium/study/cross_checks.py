"""What settings of a study need of one another; each alone is checked with its section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collegium.checks import check_separator
from collegium.data.column_types import check_declared
from collegium.data.engines.places import Place
from collegium.errors import ConfigError, InputError
from collegium.parameters import settings_of
from collegium.study.sections import (
    Data,
    Features,
    PartiesSection,
    Privacy,
    Run,
    StudentSection,
    Study,
)
from collegium.study.study_settings import StudyConfig


def check_together(config: StudyConfig, given: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse settings that contradict one another, or would have no effect beside the others.

    ``config``: with defaults filled in.
    ``given``: section, key, value: what stands in the file. Somebody believed in these.
    """
    _check_method(config, given)
    _check_places(config)
    if given.get(Features.section):
        _check_features(config)
    if config.kind.learns:
        _check_records(config.data)
        _check_levels(config)
        _check_use(config)
    policy = config.policy()
    if policy is None and config.privacy.public is not None:
        raise ConfigError(
            "privacy.public names levels, but privacy.levels is not given: name them there"
        )
    if config.privacy.shares is not None:
        _check_shares(config.privacy)
    if config.privacy.sizes is not None and set(config.privacy.sizes) != set(
        () if policy is None else policy.levels
    ):
        outside = "" if policy is None or not policy.outside else ", but none with ε = 0 or public"
        raise ConfigError(
            "privacy.sizes must name the same levels as privacy.levels (0 for a level that nobody has)"
            + outside
        )
    for choice, belonging in config.kind.belonging.items():
        _check_belonging(choice, belonging, config, given)
    config.engine()
    if given.get(PartiesSection.section):
        _check_parties(config)
    config.kind.check(config)


def _check_method(config: StudyConfig, given: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse what belongs to another way to learn."""
    kind, unused = config.method.kind, config.unused
    sections = [f"[{section}]" for section, keys in given.items() if keys and section in unused]
    keys = [f"{section}.{key}" for section in given for key in given[section]]
    single = [key for key in keys if key in unused]
    if sections or single:
        mean, them = ("means", "it") if len(sections) + len(single) == 1 else ("mean", "them")
        raise ConfigError(
            f"{_and([*sections, *single])} {mean} nothing to method.kind = {kind!r}: remove {them}"
        )
    if config.kind.in_words and config.privacy.guarantee != "worst-case":
        raise ConfigError(
            f"{config.kind.in_words} holds whatever the data are, and privacy.guarantee = "
            f"{config.privacy.guarantee!r} would promise less: remove it"
        )
    for key in ("engine", "address") if config.kind.takes_threads else ():
        if getattr(config.run, key) != settings_of(Run)[key].default and not config.run.streaming:
            raise ConfigError(
                f"run.{key} means nothing to {config.kind.in_words} on records in memory, which takes "
                "threads: set run.streaming = true, or remove it"
            )


def _check_features(config: StudyConfig) -> None:
    """Refuse half of what names a network, and what shows models anything but rows of numbers behind it."""
    for key in ("weights", "network"):
        if config[f"features.{key}"] is None:
            meant = settings_of(Features)[key].meaning.split(". ")[0].split(": ")[0]
            raise ConfigError(
                f"[features] needs features.{key} ({meant}): give it, or remove [features]"
            )
    for key, kinds in {
        "preprocessing.kind": (None, *BEHIND_A_NETWORK),
        "student.preprocessing": (StudentSection.preprocessing, *BEHIND_A_NETWORK),
    }.items():
        if config[key] not in kinds:
            raise ConfigError(
                f"{key} = {config[key]!r} does not go with [features], whose network makes rows of numbers: "
                f"choose one of {', '.join(BEHIND_A_NETWORK)}, or leave it out"
            )


def _check_places(config: StudyConfig) -> None:
    """Refuse databases where they cannot be read, and what ties something to rows by their position."""
    for section, keys in config.sections.items():
        for name, about in settings_of(keys).items():
            key = f"{section}.{name}"
            if about.kind != "path":
                continue
            try:
                place = config.place(key)
            except InputError as error:
                raise ConfigError(f"{key}: {error}") from None
            if place is None:
                continue
            if key not in _TABLES:
                raise ConfigError(
                    f"{key} names a table in a database or workbook, and must be a file: export it (tables "
                    f"are named in {', '.join(_TABLES)})"
                )
            _check_without_order(config, key, place)


def _check_without_order(config: StudyConfig, key: str, place: Place) -> None:
    """Refuse that somebody's row is known by its position, in a table whose rows have none that stays."""
    labels = f"{key}_labels"
    reasons: list[tuple[bool, str]] = [
        (
            config[labels] is not None,
            f"{labels} is tied to it by position: give data.target, a column",
        ),
        (
            key == _TABLES[0] and config.privacy.file is not None,
            "privacy.file is tied to it by position: give privacy.column",
        ),
        (
            key == _TABLES[0] and config.kind.learns and config.data.owner is None,
            "a record without a named owner is known by its position: give data.owner, such as the column of "
            "its key",
        ),
    ]
    for is_so, reason in reasons:
        if is_so and not place.has_order:
            raise ConfigError(
                f"{key} lies in a database, whose rows have no order that stays, and {reason}"
            )


#: Kinds of preprocessing that take what a network makes of records.
BEHIND_A_NETWORK = ("components", "embeddings", "none")
_TABLES = ("data.private", "data.public", "data.test")


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _check_records(data: Data) -> None:
    if (data.dataset is None) == (data.private is None):
        raise ConfigError(
            "give either data.dataset (a named data set) or data.private (a file of your own)"
        )
    split = [data.private_records is not None, data.public_records is not None]
    if data.public is None and not all(split):
        raise ConfigError(
            "there are no public records: give data.public (a file), or data.private_records and "
            "data.public_records to split one data set"
        )
    if data.public is not None and any(split):
        raise ConfigError("give data.public or a split, not both")
    try:
        for column, kind in (data.types or {}).items():
            check_declared(column, kind)
    except InputError as error:
        raise ConfigError(f"data.types: {error}") from None
    try:
        check_separator(data.separator, "data.separator")
    except InputError as error:
        raise ConfigError(str(error)) from None


def _check_levels(config: StudyConfig) -> None:
    names = ("column", "file", "shares")
    sources = [name for name in names if config[f"privacy.{name}"] is not None]
    if len(sources) != 1:
        raise ConfigError(
            "privacy levels must come from exactly one of privacy.column, privacy.file and "
            f"privacy.shares, got {' and '.join(sources) or 'none'}"
        )


def _check_use(config: StudyConfig) -> None:
    """Refuse keys that the others make meaningless: somebody believed in them."""
    data = config.data
    own = data.dataset is not None
    column = data.target is not None and not own and "data.target names the labels' column"
    unused: list[tuple[str, bool | str]] = [
        ("data.test_records", data.test is not None and "data.test is a file of its own"),
        (
            "data.test_records",
            data.public is not None
            and "nothing is split where data.public is a file; give data.test",
        ),
        ("data.private_labels", own and "data.dataset knows its own labels"),
        ("data.target", own and "data.dataset knows its own target"),
        ("data.owner", own and "data.dataset knows its own owners"),
        (
            "privacy.column",
            own and "data.dataset has no such column; use privacy.file or privacy.shares",
        ),
        ("data.public_labels", data.public is None and "there is no file data.public"),
        ("data.test_labels", data.test is None and "there is no file data.test"),
        *[(f"data.{role}_labels", column) for role in ("private", "public", "test")],
    ]
    for path, reason in unused:
        if reason and config[path] is not None:
            raise ConfigError(f"{path} would have no effect: {reason}: remove it")


def _check_parties(config: StudyConfig) -> None:
    """Refuse what parties cannot do together, or would do differently."""
    for key in ("collective", "key", "folder"):
        if config[f"parties.{key}"] is None:
            raise ConfigError(f"[parties] needs parties.{key}: {_MEANT[key]}")
    if config.is_open or not config.kind.adds_up:
        chosen = "nothing says how it is learnt" if config.is_open else config.method.kind
        raise ConfigError(
            "[parties] is for studies whose method.kind is one of 'pate', 'dpsgd', 'statistics' and "
            f"'synthesis', and here it is {chosen!r}: choose one of them, or remove [parties]"
        )
    if config.study.name == Study.name:
        raise ConfigError("[parties] needs study.name: the parties know the release by it")
    for key, is_there in {
        "data.dataset": config.data.dataset is not None,
        "privacy.public": config.privacy.public is not None,
        "run.streaming": config.run.streaming,
    }.items():
        if is_there:
            raise ConfigError(
                f"{key} does not go with [parties], each of which learns from a file of its own, in memory: "
                "remove it"
            )


_MEANT = {
    "collective": "the file of who they are, which `collegium party collective` writes",
    "key": "the file of this party's own key, which `collegium party key` makes",
    "folder": "the folder that all parties see",
}


def _check_shares(privacy: Privacy) -> None:
    levels, shares = privacy.levels, privacy.shares or {}
    if levels is None or set(levels) != set(shares):
        raise ConfigError("privacy.shares must name the same levels as privacy.levels")
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise ConfigError(f"privacy.shares must add up to 1, got {sum(shares.values()):g}")


def _check_belonging(
    choice: str,
    belonging: Mapping[str, tuple[str, ...]],
    config: StudyConfig,
    given: Mapping[str, Mapping[str, Any]],
) -> None:
    """Refuse keys that belong to something else than what was chosen."""
    section, name = choice.split(".")
    for key in given.get(section, {}):
        owners = [owner for owner, keys in belonging.items() if key in keys]
        if owners and config[choice] not in owners:
            raise ConfigError(
                f"{section}.{key} means nothing to {name} {config[choice]!r} (it belongs to "
                f"{', '.join(owners)}): remove it"
            )
