"""What a study's file says of questions about the private table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from collegium.errors import ConfigError
from collegium.parameters import setting, settings_of
from collegium.statistics.settings import QuerySettings
from collegium.study.sections import Data, Preprocessing, Privacy, StudentSection
from collegium.study.study_settings import Kind, StudyConfig

_OF_A_TABLE = ("private", "owner", "separator", "decimal")  # keys of [data]: of one, all is asked
_OF_BUDGETS = ("levels", "delta", "column", "guarantee")  # keys of [privacy]


@dataclass(frozen=True)
class StatisticsSection(QuerySettings):
    """Questions about the private table, answered with noise (method statistics)."""

    schema: str | None = setting(
        None,
        "File with what is public about the table: `collegium schema init` drafts it from public records.",
        kind="path",
        example='"schema.toml"',
    )
    questions: Sequence[str] = setting(
        [],
        "What is asked, in words: mean income by sex where age >= 40. They share what is spent evenly.",
        items=("text",),
    )
    calibrated: Sequence[str] = setting(
        [],
        "Those of the questions (counts, sums, means, tables) that hear everybody alike, whatever they "
        "granted, and show what each group says by itself: where budgets may go with the data.",
        items=("text",),
    )
    section: ClassVar[str] = "statistics"


class StatisticsKind(Kind):
    """Nothing is learnt; questions about the private table are answered with noise."""

    name = "statistics"
    meaning = (
        "nothing is learnt; questions about the private table are answered with noise, as [statistics] "
        "says."
    )
    method_at = "collegium.study.methods.statistics.method:StatisticsMethod"
    terms_at = "collegium.study.methods.statistics.terms:StatisticsTerms"
    sections = (StatisticsSection,)
    unused = (
        Preprocessing.section,
        StudentSection.section,
        *(f"data.{name}" for name in settings_of(Data) if name not in _OF_A_TABLE),
        *(f"privacy.{name}" for name in settings_of(Privacy) if name not in _OF_BUDGETS),
        "run.streaming",
        "run.engine",
        "run.address",
        "run.data_dir",
    )
    learns = False
    in_words = "what answers promise"
    cannot_forget = ""

    def check(self, config: StudyConfig) -> None:
        """Refuse questions of nothing, or about nobody's schema."""
        needed = {
            "data.private": "the file with the private table",
            "privacy.column": "the column with each row's level, or ε",
            "statistics.schema": "a file that `collegium schema init public.csv` drafts: bounds and "
            "categories must be public",
        }
        for key, what in needed.items():
            if config[key] is None:
                raise ConfigError(f"method.kind = {self.name!r} needs {key}: {what}")
        if not config.of(StatisticsSection).questions:
            raise ConfigError(
                'statistics.questions is empty: ask something, such as questions = ["mean age by sex"]'
            )

    def noise_is_seeded(self, config: StudyConfig) -> bool:
        """Whether there is a seed."""
        return config.of(StatisticsSection).noise_seed is not None

    def how_to_secure(self) -> str:
        """Leave that out."""
        return "leave out statistics.noise_seed"

    def title(self, config: StudyConfig) -> str:
        """Name the table."""
        return f"Statistics of {Path(config.data.private or '').name}"

    def arrangement(self, config: StudyConfig) -> dict[str, Any]:
        """What answers hide."""
        neighbours = config.of(StatisticsSection).neighbours
        return {"blanked_only": neighbours != "replace-one", "direct": True}
