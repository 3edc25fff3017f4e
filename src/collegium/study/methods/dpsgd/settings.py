"""What a study's file says of direct training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from collegium.dpsgd.settings import MOST_COMPONENTS, WHITENING, DPSGDSettings
from collegium.study.sections import NOISE, NOISE_SEED, Preprocessing
from collegium.study.study_settings import OF_VOTES_ALONE, Kind, StudyConfig, is_asked_for

_WITH_COMPONENTS = (None, "principal", "binned", "crossed", "scattering", "kernel", "components")


@dataclass(frozen=True)
class DPSGDSection(DPSGDSettings):
    """Direct training (method dpsgd): noisy steps, each over clipped gradients of the private records."""

    noise: str = NOISE
    noise_seed: int = NOISE_SEED

    def build(self) -> DPSGDSettings:
        """Take what decides on the steps."""
        return DPSGDSettings(
            **{field.name: getattr(self, field.name) for field in fields(DPSGDSettings)}
        )


class DPSGDKind(Kind):
    """One model learns from the private records directly, by noisy steps."""

    name = "dpsgd"
    meaning = (
        "one model learns from the private records directly, by noisy steps; it is a linear one, and goes "
        "with [dpsgd] instead of [teachers], [personalisation] and [aggregation]."
    )
    method_at = "collegium.study.methods.dpsgd.method:DPSGD"
    terms_at = "collegium.study.methods.dpsgd.terms:DPSGDTerms"
    sections = (DPSGDSection,)
    unused = OF_VOTES_ALONE
    is_chosen = True
    in_words = "direct training"
    takes_threads = True
    whitening = WHITENING
    cannot_forget = ""
    adds_up = True

    def has_student(self, given: Mapping[str, Mapping[str, Any]]) -> bool:
        """Where something besides a goal is said of one: the goal is else the direct model's."""
        return is_asked_for(given)

    def settled(
        self, sections: dict[str, Any], given: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Take as many components as help a model that sees all records."""
        seen = sections[Preprocessing.section]
        if "components" in given.get(seen.section, {}) or seen.kind not in _WITH_COMPONENTS:
            return sections
        return {**sections, seen.section: replace(seen, components=MOST_COMPONENTS)}

    def usual_view(self, is_table: bool, has_text: bool, are_images: bool = False) -> str:
        """See of any table in which bin each number is, and how columns act together."""
        if are_images:
            return "kernel"
        return "crossed" if is_table else super().usual_view(is_table, has_text)

    def noise_is_seeded(self, config: StudyConfig) -> bool:
        """Whether it says so."""
        return config.of(DPSGDSection).noise == "seeded"

    def how_to_secure(self) -> str:
        """Unsay it."""
        return f"set {DPSGDSection.section}.noise = 'secure'"

    def arrangement(self, config: StudyConfig) -> dict[str, Any]:
        """What steps do with records."""
        neighbours = config.of(DPSGDSection).neighbours
        return {"blanked_only": neighbours != "replace-one", "direct": True}

    def unstreamed(self, config: StudyConfig) -> str:
        """Refuse a filter."""
        if config.of(DPSGDSection).individual_filter is None:
            return ""
        return "a filter keeps an account of everybody in memory: leave dpsgd.individual_filter out"
