"""A synthetic table on a ledger: its draws are one release, reserved before the first."""

from __future__ import annotations

from collegium.accounting.promises import ONLY_PURE, Promise
from collegium.errors import InputError
from collegium.ledger.event_spending import EventSpending
from collegium.ledger.limits import Lifetime


class SynthesisSpending(EventSpending):
    """What it does about a ledger: parameters and attributes as of :class:`EventSpending`."""

    method = "synthesis"
    drawn = "noisy marginals"


def require_gaussian(lifetime: Lifetime) -> None:
    """Refuse a ledger that cannot count Gaussian noise.

    Raises InputError.
    """
    if lifetime.promise is Promise.PURE:
        raise InputError(f"{ONLY_PURE}; a synthetic table has Gaussian noise")
