"""What a study's file says of a synthetic table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from collegium.errors import ConfigError
from collegium.parameters import setting
from collegium.study.study_settings import StudyConfig
from collegium.study.sums_settings import OF_A_TABLE, OF_BUDGETS, SumsKind, unused_but
from collegium.synthesis.settings import SynthesisSettings

MOST_ROWS = 1_000_000_000


@dataclass(frozen=True)
class SynthesisSection(SynthesisSettings):
    """A synthetic table, from noisy counts (method synthesis)."""

    schema: str | None = setting(
        None,
        "File with what is public about the table: `collegium schema init` drafts it from public records.",
        kind="path",
        example='"schema.toml"',
    )
    rows: int | None = setting(
        None,
        "How many rows are published. Left out: as many as there are people. More can be drawn later: "
        "`collegium sample`.",
        kind="whole number",
        most=MOST_ROWS,
        example="10000",
    )
    section: ClassVar[str] = "synthesis"


class SynthesisKind(SumsKind):
    """A synthetic table is published."""

    name = "synthesis"
    meaning = "a synthetic table is made of noisy counts of columns and pairs, as [synthesis] says."
    method_at = "collegium.study.methods.synthesis.method:SynthesisMethod"
    terms_at = "collegium.study.methods.synthesis.terms:SynthesisTerms"
    sections = (SynthesisSection,)
    unused = unused_but(
        (*OF_A_TABLE, "public", "test", "public_may_overlap", "target"), (*OF_BUDGETS, "spend")
    )
    in_words = "what a synthetic table promises"
    published = "Synthetic table"

    def check(self, config: StudyConfig) -> None:
        """Refuse a table of nothing, or about nobody's schema."""
        super().check(config)
        data = config.data
        if data.public_may_overlap is not None and data.public is None and data.test is None:
            raise ConfigError(
                "data.public_may_overlap means nothing without data.public and data.test: remove it"
            )
