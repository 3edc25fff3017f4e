"""What a study's file says of questions about the private table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from collegium.errors import ConfigError
from collegium.parameters import setting
from collegium.statistics.settings import QuerySettings
from collegium.study.study_settings import StudyConfig
from collegium.study.sums_settings import SumsKind


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


class StatisticsKind(SumsKind):
    """Nothing is learnt; questions about the private table are answered with noise."""

    name = "statistics"
    meaning = (
        "nothing is learnt; questions about the private table are answered with noise, as [statistics] "
        "says."
    )
    method_at = "collegium.study.methods.statistics.method:StatisticsMethod"
    terms_at = "collegium.study.methods.statistics.terms:StatisticsTerms"
    sections = (StatisticsSection,)
    in_words = "what answers promise"
    published = "Statistics"

    def check(self, config: StudyConfig) -> None:
        """Refuse questions of nothing, or about nobody's schema."""
        super().check(config)
        if not config.of(StatisticsSection).questions:
            raise ConfigError(
                'statistics.questions is empty: ask something, such as questions = ["mean age by sex"]'
            )
