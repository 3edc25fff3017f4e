"""The ways in which a study learns from people's records, by name."""

from __future__ import annotations

from typing import Any

from collegium.study.config import StudyConfig
from collegium.study.methods.dpsgd import DPSGD
from collegium.study.methods.protocol import Method
from collegium.study.methods.statistics import StatisticsMethod
from collegium.study.methods.votes import Votes
from collegium.study.sections import PATE

METHODS: dict[str, Method[Any, Any]] = {
    one.name: one for one in (Votes(), DPSGD(), StatisticsMethod())
}


def method_of(config: StudyConfig) -> Method[Any, Any]:
    """Find how a study learns: one that leaves that open, by votes."""
    return METHODS[PATE if config.is_open else config.method.kind]
