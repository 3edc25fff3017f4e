"""A study's configuration: read from TOML, checked key by key, with nothing silently ignored."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.budgets import Policy
from collegium.data.class_shares import as_class_shares
from collegium.errors import ConfigError, InputError
from collegium.pate.students.selection import ACTIVE
from collegium.pate.teachers.engines import Engine
from collegium.pate.voting.aggregators import AGGREGATORS, Aggregator, aggregator_from
from collegium.pate.voting.choosing import check_choosing
from collegium.pate.voting.release import LABELS, check_release
from collegium.personalisation import PERSONALISATIONS, Personalisation
from collegium.personalisation.plan import Plan
from collegium.study.key_checks import checked_value, shown
from collegium.study.schema import KEYS, SECTIONS, Key

_RELEVANT = {name: tuple(field.name for field in fields(cls)) for name, cls in AGGREGATORS.items()}
_PERSONALISATION_EXTRAS = {
    "upsampling": ("max_duplicates", "tolerance", "precision"),
    "vanishing": ("shuffle_every",),
}


@dataclass(frozen=True)
class StudyConfig:
    """All settings of a study, with defaults filled in.

    Attributes
    ----------
    values : mapping of str to mapping of str to object
        Section, key, value; None where an optional key was left out.
    folder : Path
        What relative paths are relative to: the TOML file's folder.
    """

    values: Mapping[str, Mapping[str, Any]]
    folder: Path

    def __getitem__(self, path: str) -> Any:
        section, name = path.split(".")
        return self.values[section][name]

    def path(self, key: str) -> Path | None:
        """Resolve a key that names a file."""
        given = self[key]
        return None if given is None else (self.folder / given)

    def public(self) -> dict[str, dict[str, Any]]:
        """Everything that may change a result, for the manifest: all sections but ``run``."""
        return {
            section: {k: _plain(v) for k, v in keys.items() if v is not None}
            for section, keys in self.values.items()
            if section != "run"
        }

    def class_shares(self, section: str, classes: ArrayLike) -> NDArray[np.float64] | None:
        """Read public shares of the classes, in the order of the class list; None where none are given.

        Parameters
        ----------
        section : {"teachers", "student"}
            Who is given them.
        classes : array-like, shape (n_classes,)
            The public class list.
        """
        given = self[f"{section}.class_shares"]
        return None if given is None else as_class_shares(given, classes, f"{section}.class_shares")

    def policy(self) -> Policy | None:
        """Read the levels; None where people gave ε as a number."""
        levels = self["privacy.levels"]
        return None if levels is None else Policy(levels, self["privacy.delta"])

    def personalisation(self) -> Personalisation:
        """Build the personalisation."""
        method = self["personalisation.method"]
        extras = {
            name: self[f"personalisation.{name}"]
            for name in _PERSONALISATION_EXTRAS.get(method, ())
        }
        return PERSONALISATIONS[method](rule=self["personalisation.rule"], **extras)

    def engine(self) -> Engine:
        """Build the engine on which teachers are trained and asked."""
        address = self["run.address"]
        if address is not None and address.endswith(".json"):
            address = str(self.folder / address)
        return Engine(self["run.engine"], address, self["run.jobs"])

    def aggregator(self, plan: Plan | None = None) -> Aggregator:
        """Build the aggregator, with defaults that follow the number of teachers.

        Parameters
        ----------
        plan : Plan, optional
            Of the study; needed where the number of answers decides on the noise, which stays open without
            it.
        """
        name, k = self["aggregation.aggregator"], self["teachers.number"]
        given = {key: self[f"aggregation.{key}"] for key in _RELEVANT[name]}
        electorate = None if plan is None else plan.electorate(self["study.seed"])
        return aggregator_from(name, **given).resolved(k, electorate)


def read_config(path: str | Path) -> StudyConfig:
    """Read and check a TOML file.

    Raises
    ------
    ConfigError
        If the file is missing or no TOML, or a key is unknown, missing or has a value that is not
        allowed.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"there is no file {file}: `collegium init {file}` writes a commented example"
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    try:
        given = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers too long, or lists too deep, to be read
        raise ConfigError(f"{file} is not valid TOML: {' '.join(str(error).split())}") from None
    try:
        return config_from(given, file.resolve().parent)
    except InputError as error:
        raise ConfigError(f"{file}: {error}") from None


def config_from(given: Mapping[str, Any], folder: Path) -> StudyConfig:
    """Check settings that were read already.

    Parameters
    ----------
    given : mapping
        Section, key, value.
    folder : Path
        What relative paths are relative to.
    """
    for section in given:
        if section not in SECTIONS:
            raise ConfigError(_unknown(f"section [{section}]", section, list(SECTIONS)))
        if not isinstance(given[section], Mapping):
            raise ConfigError(
                f"[{section}] must be a section with keys, got {shown(given[section])}"
            )
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for key in KEYS:
        values[key.section][key.name] = checked_value(key, given.get(key.section, {}).get(key.name))
    for section, keys in given.items():
        for name in keys:
            if name not in values[section]:
                raise ConfigError(_unknown(f"key {section}.{name}", name, list(values[section])))
    config = StudyConfig(values, folder)
    _check_together(config, given)
    return config


def _check_together(config: StudyConfig, given: Mapping[str, Any]) -> None:
    data = config.values["data"]
    if (data["dataset"] is None) == (data["private"] is None):
        raise ConfigError(
            "give either data.dataset (a named data set) or data.private (a file of your own)"
        )
    split = [data[name] is not None for name in ("private_records", "public_records")]
    if data["public"] is None and not all(split):
        raise ConfigError(
            "there are no public records: give data.public (a file), or data.private_records and "
            "data.public_records to split one data set"
        )
    if data["public"] is not None and any(split):
        raise ConfigError("give data.public or a split, not both")
    privacy = config.values["privacy"]
    sources = [name for name in ("column", "file", "shares") if privacy[name] is not None]
    if len(sources) != 1:
        raise ConfigError(
            "privacy levels must come from exactly one of privacy.column, privacy.file and "
            f"privacy.shares, got {' and '.join(sources) or 'none'}"
        )
    _check_use(config, given)
    config.policy()
    if privacy["shares"] is not None:
        _check_shares(privacy)
    config.personalisation()
    config.engine()
    _check_answers(config)
    check_release(config["aggregation.release"], config.aggregator(), privacy["guarantee"])
    if config["aggregation.query_order"] == ACTIVE:
        check_choosing(config.aggregator(), privacy["guarantee"])
    if config["student.targets"] is not None and config["aggregation.release"] == LABELS:
        raise ConfigError(
            "student.targets would have no effect: only labels are released: remove it, or set "
            "aggregation.release = 'histogram'"
        )
    for key in given.get("aggregation", {}):
        owners = [name for name, keys in _RELEVANT.items() if key in keys]
        if owners and config["aggregation.aggregator"] not in owners:
            raise ConfigError(
                f"aggregation.{key} means nothing to aggregator "
                f"{config['aggregation.aggregator']!r} (it belongs to {', '.join(owners)}): remove it"
            )


def _check_answers(config: StudyConfig) -> None:
    """Refuse a number of answers that does not decide on the noise."""
    if config["aggregation.answers"] is None:
        return
    reasons = [
        (
            config["aggregation.aggregator"] != "gnmax",
            f"aggregator {config['aggregation.aggregator']!r} is not 'gnmax'",
        ),
        (config["aggregation.sigma"] is not None, "aggregation.sigma is given, too"),
        (
            config["privacy.guarantee"] != "worst-case",
            "only the worst-case guarantee knows beforehand what an answer costs",
        ),
    ]
    for wrong, reason in reasons:
        if wrong:
            raise ConfigError(
                f"aggregation.answers finds the noise for a number of answers, but {reason}: "
                "change one of both"
            )


def _check_use(config: StudyConfig, given: Mapping[str, Any]) -> None:
    """Refuse keys that the others make meaningless: somebody believed in them."""
    data = config.values["data"]
    own = data["dataset"] is not None
    column = data["target"] is not None and not own and "data.target names the labels' column"
    unused: list[tuple[str, bool | str]] = [
        ("data.test_records", data["test"] is not None and "data.test is a file of its own"),
        (
            "data.test_records",
            data["public"] is not None
            and "nothing is split where data.public is a file; give data.test",
        ),
        ("data.private_labels", own and "data.dataset knows its own labels"),
        ("data.target", own and "data.dataset knows its own target"),
        ("data.owner", own and "data.dataset knows its own owners"),
        (
            "privacy.column",
            own and "data.dataset has no such column; use privacy.file or privacy.shares",
        ),
        ("data.public_labels", data["public"] is None and "there is no file data.public"),
        ("data.test_labels", data["test"] is None and "there is no file data.test"),
        *[(f"data.{role}_labels", column) for role in ("private", "public", "test")],
    ]
    for path, reason in unused:
        if reason and config[path] is not None:
            raise ConfigError(f"{path} would have no effect: {reason}: remove it")
    method = config["personalisation.method"]
    for key in given.get("personalisation", {}):
        owners = [name for name, keys in _PERSONALISATION_EXTRAS.items() if key in keys]
        if owners and method not in owners:
            raise ConfigError(
                f"personalisation.{key} means nothing to method {method!r} (it belongs to "
                f"{', '.join(owners)}): remove it"
            )


def _check_shares(privacy: Mapping[str, Any]) -> None:
    levels, shares = privacy["levels"], privacy["shares"]
    if levels is None or set(levels) != set(shares):
        raise ConfigError("privacy.shares must name the same levels as privacy.levels")
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ConfigError(f"privacy.shares.{name} must lie between 0 and 1, got {share!r}")
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise ConfigError(f"privacy.shares must add up to 1, got {sum(shares.values()):g}")


def _unknown(what: str, name: str, allowed: list[str]) -> str:
    near = difflib.get_close_matches(name, allowed, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"allowed are {', '.join(allowed)}"
    return f"unknown {what}: {hint}"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers, and NaN would not even equal itself
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list) else value


def example_config(name: str = "study") -> str:
    """Write the commented example: every key, with its meaning, values and default."""
    lines = [
        "# A Collegium study: `collegium plan` shows what it would cost, `collegium run` runs it.",
        "# Keys that are commented out show their default, or an example where there is none.",
    ]
    used = {
        "study.name": f'"{name}"', "data.private": '"private.csv"', "data.public": '"public.csv"',
        "data.test": '"test.csv"', "data.target": '"income"', "privacy.column": '"privacy"',
        "privacy.levels": "{ high = 1.0, average = 2.0, low = 3.0 }", "privacy.delta": "1e-5",
        "preprocessing.kind": '"tabular"', "teachers.model": '"random-forest"',
        "teachers.number": "250", "personalisation.method": '"weighting"',
        "aggregation.aggregator": '"confident"', "student.model": '"random-forest"',
    }  # fmt: skip
    for section, purpose in SECTIONS.items():
        lines += ["", f"[{section}]  # {purpose}"]
        for key in (key for key in KEYS if key.section == section):
            lines += _comment(key)
            shown = used.get(key.path)
            default = key.example if key.default is None else _toml(key.default)
            lines.append(f"{key.name} = {shown}" if shown else f"# {key.name} = {default}")
    return "\n".join(lines) + "\n"


def _comment(key: Key) -> list[str]:
    text = key.meaning + (f" One of: {', '.join(key.choices)}." if key.choices else "")
    lines, line = [], "#"
    for word in text.split():
        if len(line) + 1 + len(word) > 100:
            lines.append(line)
            line = "#"
        line += f" {word}"
    return ["", *lines, line]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{}"
    return str(value)
