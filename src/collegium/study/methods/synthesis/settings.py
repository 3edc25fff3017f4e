"""What a study's file says of a synthetic table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from collegium.errors import ConfigError
from collegium.parameters import setting, settings_of
from collegium.study.sections import Data, Preprocessing, Privacy, StudentSection
from collegium.study.study_settings import Kind, StudyConfig
from collegium.synthesis.settings import SynthesisSettings

_OF_TABLES = (  # keys of [data]
    "private", "public", "test", "public_may_overlap", "target", "owner", "separator", "decimal",
)  # fmt: skip
_OF_BUDGETS = ("levels", "delta", "column", "guarantee", "spend")  # keys of [privacy]
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


class SynthesisKind(Kind):
    """A synthetic table is published."""

    name = "synthesis"
    meaning = "a synthetic table is made of noisy counts of columns and pairs, as [synthesis] says."
    method_at = "collegium.study.methods.synthesis.method:SynthesisMethod"
    terms_at = "collegium.study.methods.synthesis.terms:SynthesisTerms"
    sections = (SynthesisSection,)
    unused = (
        Preprocessing.section,
        StudentSection.section,
        *(f"data.{name}" for name in settings_of(Data) if name not in _OF_TABLES),
        *(f"privacy.{name}" for name in settings_of(Privacy) if name not in _OF_BUDGETS),
        "run.streaming",
        "run.engine",
        "run.address",
        "run.data_dir",
    )
    learns = False
    in_words = "what a synthetic table promises"
    cannot_forget = ""

    def check(self, config: StudyConfig) -> None:
        """Refuse a table of nothing, or about nobody's schema."""
        needed = {
            "data.private": "the file with the private table",
            "privacy.column": "the column with each row's level, or ε",
            "synthesis.schema": "a file that `collegium schema init public.csv` drafts: bounds and "
            "categories must be public",
        }
        for key, what in needed.items():
            if config[key] is None:
                raise ConfigError(f"method.kind = {self.name!r} needs {key}: {what}")
        data = config.data
        if data.public_may_overlap is not None and data.public is None and data.test is None:
            raise ConfigError(
                "data.public_may_overlap means nothing without data.public and data.test: remove it"
            )

    def noise_is_seeded(self, config: StudyConfig) -> bool:
        """Whether there is a seed."""
        return config.of(SynthesisSection).noise_seed is not None

    def how_to_secure(self) -> str:
        """Leave that out."""
        return "leave out synthesis.noise_seed"

    def title(self, config: StudyConfig) -> str:
        """Name the table."""
        return f"Synthetic table of {Path(config.data.private or '').name}"

    def arrangement(self, config: StudyConfig) -> dict[str, Any]:
        """What noisy counts hide."""
        neighbours = config.of(SynthesisSection).neighbours
        return {"blanked_only": neighbours != "replace-one", "direct": True}
