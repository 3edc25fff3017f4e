"""What the files of studies have in common that publish noisy sums of a table and learn nothing."""

from __future__ import annotations

from typing import Any, ClassVar

from collegium.errors import ConfigError
from collegium.parameters import settings_of
from collegium.study.sections import Data, Features, Preprocessing, Privacy, StudentSection
from collegium.study.study_settings import Kind, StudyConfig, without_folders
from collegium.weighted_sums.settings import REPLACE_ONE

OF_A_TABLE = ("private", "owner", "separator", "decimal")
"""Keys of [data]."""
OF_BUDGETS = ("levels", "delta", "column", "guarantee")
"""Keys of [privacy]."""


def unused_but(data: tuple[str, ...], privacy: tuple[str, ...]) -> tuple[str, ...]:
    """List the sections and keys that mean nothing to them; ``data``, ``privacy``: those that do."""
    return (
        Features.section,
        Preprocessing.section,
        StudentSection.section,
        *(f"data.{name}" for name in settings_of(Data) if name not in data),
        *(f"privacy.{name}" for name in settings_of(Privacy) if name not in privacy),
        "run.streaming",
        "run.engine",
        "run.address",
        "run.data_dir",
    )


class SumsKind(Kind):
    """Its own section comes first, and has the settings ``schema``, ``neighbours`` and ``noise_seed``."""

    unused = unused_but(OF_A_TABLE, OF_BUDGETS)
    learns = False
    cannot_forget = ""
    adds_up = True
    #: What is published, at the beginning of a title.
    published: ClassVar[str]

    def check(self, config: StudyConfig) -> None:
        """Refuse what is about nothing, or about nobody's schema."""
        needed = {
            "data.private": "the file with the private table",
            "privacy.column": "the column with each row's level, or ε",
            f"{self._section}.schema": "a file that `collegium schema init public.csv` drafts: bounds and "
            "categories must be public",
        }
        for key, what in needed.items():
            if config[key] is None:
                raise ConfigError(f"method.kind = {self.name!r} needs {key}: {what}")

    @property
    def _section(self) -> str:
        return self.sections[0].section

    def noise_is_seeded(self, config: StudyConfig) -> bool:
        """Whether there is a seed."""
        return config[f"{self._section}.noise_seed"] is not None

    def how_to_secure(self) -> str:
        """Leave that out."""
        return f"leave out {self._section}.noise_seed"

    def title(self, config: StudyConfig) -> str:
        """Name the table."""
        return f"{self.published} of {without_folders(config.data.private or '')}"

    def arrangement(self, config: StudyConfig) -> dict[str, Any]:
        """What noisy sums hide."""
        return {
            "blanked_only": config[f"{self._section}.neighbours"] != REPLACE_ONE,
            "direct": True,
        }
