"""Which settings of a study may change once it has begun."""

from __future__ import annotations

from collegium.study.config import StudyConfig

#: What only measures or names, and changes nothing that was released; and what was decided when it began.
FREE_KEYS = frozenset(
    {"study.name", "data.test", "data.test_labels", "data.not_identifiers", "privacy.spend"}
)
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
