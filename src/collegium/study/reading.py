"""Records of studies from which something is learnt: private ones, and public ones beside them."""

from __future__ import annotations

from dataclasses import replace

from collegium.data.engines.sources import in_its_words
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig
from collegium.study.from_settings import about_the_network, network_of, settled
from collegium.study.streaming import load_streamed_data
from collegium.study.study_data import StudyData, load_study_data


def read_records(config: StudyConfig, observer: Observer) -> tuple[StudyConfig, StudyData]:
    """Read all records of a study; nothing is trained, written or spent.

    ``observer``: is told where rows of a database go.
    Returns: the settings, with a preprocessing that was left out; and the records.
    """
    place = config.place("data.private")
    if place is not None and not place.in_memory:
        goes = (
            "pass through this program into shards in the study's vault, which are removed once all has been "
            "learnt from them"
            if config.run.streaming
            else "are read into this program's memory (run.streaming = true reads them piece by piece)"
        )
        observer.note(f"rows of {place.name} leave the database to be learnt from: they {goes}")
    with in_its_words(place):
        data = load_streamed_data(config) if config.run.streaming else load_study_data(config)
    network = network_of(config)
    if network is not None:
        with about_the_network():
            network.fit(data.X_public)
        observer.note(
            f"records are seen through {network.brought}: what it was trained on is covered by no guarantee "
            "here, and the statement says so"
        )
        fingerprints = {**data.fingerprints, "features.weights": network.sha256_}
        data = replace(data, fingerprints=fingerprints)
    return settled(config, data.X_public), data
