"""The private table of a study that asks: its rows, what its people granted, and what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from collegium.accounting.neighbours import OWNER, ROW, Arrangement
from collegium.budgets import Budgets
from collegium.checks import listed, nearest
from collegium.data.schema import Schema
from collegium.errors import ConfigError
from collegium.runs.observer import Observer
from collegium.statistics.language import parse_question
from collegium.statistics.query import Query
from collegium.statistics.session import CALIBRATED
from collegium.study.config import StudyConfig
from collegium.study.methods.statistics.settings import StatisticsSection
from collegium.study.query_table import Rows
from collegium.study.schema_table import read_private_rows


@dataclass(frozen=True, eq=False)
class QueryData:
    """What a study asks, and of whom.

    ``rows``: of those who granted anything; or files, and the policy for the levels in them.
    ``schema``: what is public of them.
    ``asked``: in the order of the file. ``calibrated``: those of them that hear everybody alike.
    ``fingerprints``: what was read.
    """

    rows: Rows
    schema: Schema
    asked: tuple[Query, ...]
    fingerprints: dict[str, str]
    arrangement: Arrangement
    made_public: NDArray[Any] | None = None
    calibrated: frozenset[Query] = frozenset()

    @property
    def people(self) -> Budgets:
        """Who granted what, by name. **Sensitive.**"""
        assert isinstance(self.rows.budgets, Budgets), "a ledger's people are read into memory"
        return self.rows.budgets

    @property
    def charged(self) -> tuple[Query, ...]:
        """What costs anything: how many people there are is public."""
        return tuple(one for one in self.asked if not self._is_public(one))

    def how(self, one: Query) -> dict[str, Any]:
        """Options of a question."""
        return {"calibrated": one in self.calibrated}

    def _is_public(self, one: Query) -> bool:
        return one.is_public(self.arrangement.unit == ROW or self.schema.rows_per_owner == 1)


def read_asked(config: StudyConfig, observer: Observer, *, may_stream: bool) -> QueryData:
    """Read the schema, the questions, and those columns of the table that they need.

    ``may_stream``: whether a table in Parquet files or a database may stay there, for each question.
    """
    schema_path = config.path("statistics.schema")
    assert schema_path is not None, "checked with the settings"
    schema = Schema.read(schema_path)
    asked = tuple(
        parse_question(question, schema) for question in config.of(StatisticsSection).questions
    )
    if len(set(asked)) < len(asked):
        twice = [str(one) for one in dict.fromkeys(asked) if asked.count(one) > 1]
        raise ConfigError(
            f"statistics.questions asks {listed(twice)} more than once: the answer would be the same; leave "
            "it out"
        )
    calibrated = _calibrated(config, schema, asked)
    needs = sorted({name for one in asked for name in one.needs})
    rows = read_private_rows(config, schema, needs, observer, may_stream=may_stream)
    data = QueryData(
        rows,
        schema,
        asked,
        {"private": rows.fingerprint, "schema": schema.digest},
        Arrangement(unit=ROW if config.data.owner is None else OWNER, direct=True),
        calibrated=calibrated,
    )
    if free := [str(one) for one in calibrated if one not in data.charged]:
        raise ConfigError(
            f"statistics.calibrated names {listed(free)}, which is public and known exactly: leave it out"
        )
    return data


def _calibrated(config: StudyConfig, schema: Schema, asked: tuple[Query, ...]) -> frozenset[Query]:
    """Find the questions that are to hear everybody alike among those that are asked."""
    found = frozenset(
        parse_question(one, schema) for one in config.of(StatisticsSection).calibrated
    )
    for one in found:
        if one not in asked:
            raise ConfigError(
                f"statistics.calibrated names {one}, which is not asked: "
                f"{nearest(str(one), [str(other) for other in asked])}"
            )
        if one.kind not in CALIBRATED:
            raise ConfigError(
                f"statistics.calibrated names {one}, and calibrated answers are for {listed(CALIBRATED)}: "
                "leave it out"
            )
    return found
