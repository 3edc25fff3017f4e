"""What every study begins with: its records are read, and its folder is claimed for it."""

from __future__ import annotations

from typing import Protocol

from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder
from collegium.study.from_settings import (
    dpsgd_recipe_of,
    recipe_of,
    settled,
    student_of,
    student_preprocessing_of,
)
from collegium.study.frozen import FREE_INPUTS, Settings, free_keys, frozen_settings
from collegium.study.streaming import load_streamed_data
from collegium.study.study_data import StudyData, load_study_data


def read_study(config: StudyConfig) -> tuple[StudyConfig, StudyData]:
    """Read all records of a study; nothing is trained, written or spent.

    Returns: the settings, with a preprocessing that was left out; and the records.
    """
    # Nobody should wait for records to be read to learn of a typo.
    if config.is_direct:
        dpsgd_recipe_of(config)
        if config.has_student:
            student_of(config)
            student_preprocessing_of(config)
    else:
        recipe_of(config)
    data = load_streamed_data(config) if config.run.streaming else load_study_data(config)
    return settled(config, data.X_public), data


class Fingerprinted(Protocol):
    """What records of a study were read from."""

    @property
    def fingerprints(self) -> dict[str, str]: ...  # noqa: D102


def claim(folder: StudyFolder, config: StudyConfig, data: Fingerprinted) -> None:
    """Begin a study in a folder, or check that it holds this very study."""
    folder.claim(*_identity(config, data), *_free(config, folder))


def holds_same_study(folder: StudyFolder, config: StudyConfig, data: Fingerprinted) -> bool:
    """Tell whether a folder holds this very study, begun before; nothing is written.

    Raises StudyMismatchError if it holds another: before its ledger, in which that one has used what people
        had, is asked what is left of it.
    """
    told = (*_identity(config, data), *_free(config, folder))
    if folder.holds(*told):
        return True
    folder.refuse_another(*told)
    return False


def _identity(config: StudyConfig, data: Fingerprinted) -> tuple[Settings, dict[str, str]]:
    """Settings and inputs that make it this study and no other."""
    return frozen_settings(config, config.aggregator()), data.fingerprints


def _free(config: StudyConfig, folder: StudyFolder) -> tuple[frozenset[str], frozenset[str]]:
    """Settings and inputs that may have changed since it began."""
    return free_keys(config, folder.voting_has_ended()), FREE_INPUTS
