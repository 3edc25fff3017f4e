"""Records of studies from which something is learnt: private ones, and public ones beside them."""

from __future__ import annotations

from collegium.study.config import StudyConfig
from collegium.study.from_settings import settled
from collegium.study.streaming import load_streamed_data
from collegium.study.study_data import StudyData, load_study_data


def read_records(config: StudyConfig) -> tuple[StudyConfig, StudyData]:
    """Read all records of a study; nothing is trained, written or spent.

    Returns: the settings, with a preprocessing that was left out; and the records.
    """
    data = load_streamed_data(config) if config.run.streaming else load_study_data(config)
    return settled(config, data.X_public), data
