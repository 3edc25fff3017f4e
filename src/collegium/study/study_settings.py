"""A study's settings, section by section, and what is built from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collegium.budgets import Policy
from collegium.distillation.goal import ACCURACY
from collegium.parameters import settings_of
from collegium.pate.settings import Account, Queries
from collegium.pate.voting.aggregators import Aggregator, aggregator_from
from collegium.study.sections import (
    AUTO,
    BELONGING,
    DPSGD,
    OF_OTHER_METHODS,
    SECTIONS,
    STATISTICS,
    Aggregation,
    Data,
    DPSGDSection,
    LedgerPlace,
    Method,
    PersonalisationSection,
    Preprocessing,
    Privacy,
    Run,
    StatisticsSection,
    StudentSection,
    Study,
    Teachers,
)
from collegium.workers.engines import Engine


@dataclass(frozen=True)
class StudyConfig:
    """All settings of a study, with defaults filled in.

    ``study``, ``data``, ``privacy``, ``method``, ``preprocessing``, ``dpsgd``, ``statistics``,
        ``teachers``, ``personalisation``, ``aggregation``, ``student``, ``ledger``, ``run``: the sections, as
        :mod:`collegium.study.sections` describes them.
    ``folder``: what relative paths are relative to: the TOML file's folder.
    ``has_student``: whether a student is published; without one, what DP-SGD trained.
    ``given``: what stands in the file.
    """

    study: Study
    data: Data
    privacy: Privacy
    method: Method
    preprocessing: Preprocessing
    dpsgd: DPSGDSection
    statistics: StatisticsSection
    teachers: Teachers
    personalisation: PersonalisationSection
    aggregation: Aggregation
    student: StudentSection
    ledger: LedgerPlace
    run: Run
    folder: Path
    has_student: bool = True
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether nothing says how it is learnt, so that this is still to be chosen."""
        return self.method.kind == AUTO

    @property
    def is_direct(self) -> bool:
        """Whether it trains on private records directly."""
        return self.method.kind == DPSGD

    @property
    def only_asks(self) -> bool:
        """Whether nothing is learnt: questions about the private table are answered with noise."""
        return self.method.kind == STATISTICS

    @property
    def learner(self) -> str:
        """What learns from public records, in words."""
        return "the model" if self.is_direct else "the student"

    @property
    def noise_is_seeded(self) -> bool:
        """Whether its noise protects nobody."""
        if self.only_asks:
            return self.statistics.noise_seed is not None
        return (self.dpsgd if self.is_direct else self.aggregation).noise == "seeded"

    def __getitem__(self, path: str) -> Any:
        section, name = path.split(".")
        return getattr(getattr(self, section), name)

    def path(self, key: str) -> Path | None:
        """Resolve a key that names a file."""
        given = self[key]
        return None if given is None else (self.folder / given)

    def public(self) -> dict[str, dict[str, Any]]:
        """Everything that may change a result: all but ``ledger``, ``run`` and other methods' sections."""
        outside = {LedgerPlace.section, Run.section, *OF_OTHER_METHODS[self.method.kind]}
        if self.method.kind == AUTO:
            outside.add(StatisticsSection.section)
        if not self.has_student:
            outside.add(StudentSection.section)
        said = {
            section: {
                name: _plain(value)
                for name in settings_of(cls)
                if f"{section}.{name}" not in outside
                and (value := self[f"{section}.{name}"]) is not None
            }
            for section, cls in SECTIONS.items()
            if section not in outside
        }
        if self.student.goal != ACCURACY:  # also where what DP-SGD trained is published
            said.setdefault(StudentSection.section, {})["goal"] = self.student.goal
        return said

    def published(self) -> dict[str, dict[str, Any]]:
        """The same for a release, which says of files what they are called, and not where they lie."""
        return {
            section: {
                name: _without_folders(value, settings_of(SECTIONS[section])[name].kind)
                for name, value in keys.items()
            }
            for section, keys in self.public().items()
        }

    def title(self) -> str:
        """Name the report: as the user did, or else by what is predicted and from what."""
        if self.study.name != Study.name:
            return self.study.name
        data = self.data
        records = data.dataset or Path(data.private or "").name
        if self.only_asks:
            return f"Statistics of {records}"
        return f"Predicting {data.target} ({records})" if data.target else f"Study of {records}"

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

    def queries(self) -> Queries:
        """What is asked, and what is shown of the answers."""
        given = {
            name: getattr(self.student if name == "targets" else self.aggregation, name)
            for name in settings_of(Queries)
        }
        return Queries(**{name: value for name, value in given.items() if value is not None})

    def aggregator(self) -> Aggregator:
        """Build the aggregator; numbers that were left out follow the teachers when a run resolves it."""
        chosen = self.aggregation
        names = BELONGING["aggregation.aggregator"][chosen.aggregator]
        return aggregator_from(chosen.aggregator, **{name: getattr(chosen, name) for name in names})


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
        return Path(value).name
    return value
