"""Which settings a study cannot change any more, once it has begun."""

from __future__ import annotations

from typing import Any

from collegium.distillation.goal import ACCURACY, wants_balanced_votes
from collegium.pate.queries.selection import ACTIVE
from collegium.pate.voting.aggregators import Aggregator
from collegium.study.config import StudyConfig

Settings = dict[str, dict[str, Any]]

#: What only measures or names: it changes nothing that was released.
FREE_KEYS = frozenset({"study.name", "data.test", "data.test_labels", "data.not_identifiers"})
FREE_INPUTS = frozenset({"test", "test labels"})


def free_keys(config: StudyConfig, voting_has_ended: bool) -> frozenset[str]:
    """Keys, or sections, that may differ from what the manifest says.

    A student that steered the voting, or the choice of questions, steers nothing once that has ended, and
    may be replaced like any other; but a data-dependent account of Interactive-GNMax is computed from its
    opinions each time.

    ``voting_has_ended``: whether all that will be asked was asked.
    """
    if voting_has_ended and config.privacy.guarantee == "worst-case":
        return FREE_KEYS | {"student"}
    return FREE_KEYS


def frozen_settings(config: StudyConfig, aggregator: Aggregator) -> Settings:
    """Settings for the manifest: those that a study cannot change any more (but for :func:`free_keys`).

    The student may change, and so may what it sees of the records: it is computed from what was released,
    and costs nobody anything. Not so where its opinion steers the voting, or the choice of questions.
    """
    settings = config.public()
    if config.is_direct or config.only_asks:
        settings.pop("student", None)
        return settings
    if not (aggregator.consults_student or config.aggregation.query_order == ACTIVE):
        del settings["student"]
    else:  # shares correct the student that is published, not the one that steers
        settings["student"].pop("class_shares", None)
        settings["student"].pop("goal", None)
    # Teachers that voted for one goal cannot be asked for another.
    if wants_balanced_votes(config.student.goal):
        settings["teachers"]["votes"] = f"balanced (student.goal is not {ACCURACY!r})"
    return settings
