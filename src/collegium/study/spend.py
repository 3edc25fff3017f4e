"""How much of what people have left a release takes: as its settings say, or as is chosen, and told."""

from __future__ import annotations

from collections.abc import Callable

from collegium.errors import InputError
from collegium.ledger.allowance import Allowance
from collegium.planner.share import Share
from collegium.runs.observer import Observer
from collegium.study.config import StudyConfig


def refuse_to_spend(config: StudyConfig) -> None:
    """Refuse to take a share of what people have left in a ledger, where none remembers a study.

    Raises InputError.
    """
    if config.privacy.spend is not None:
        raise InputError(
            f"privacy.spend = {config.privacy.spend:g} is a share of what people have left in a ledger, "
            "and none remembers this study: leave it out, or name a ledger"
        )


def to_spend(
    config: StudyConfig,
    everything: Allowance,
    choose: Callable[[], Share | None],
    observer: Observer,
) -> Allowance:
    """Take a share of what people have left.

    ``choose``: chooses one where the settings say none; None: all, since other settings say how much.
    """
    spend = config.privacy.spend
    if spend is None:
        chosen = choose()
        if chosen is None:
            return everything
        spend = chosen.value
        # A method with a setting of its own names it in the reason.
        where = "" if "privacy.spend" in config.unused else "; set privacy.spend for another share"
        observer.note(
            f"this release takes {100 * spend:.0f} % of what people have left ({chosen.why}){where}"
        )
    return everything.part(spend)
