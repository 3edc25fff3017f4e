"""One durable account per person, over all that is ever learnt from their records.

``docs/ledger.md`` says what is promised, and proves it.
"""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOMES = {
    "collegium.ledger.entries": ["Standing"],
    "collegium.ledger.ledger": ["Balance", "Ledger", "Reservation"],
    "collegium.ledger.limits": ["Cost", "Lifetime", "Limit"],
}

if TYPE_CHECKING:
    from collegium.ledger.entries import Standing
    from collegium.ledger.ledger import Balance, Ledger, Reservation
    from collegium.ledger.limits import Cost, Lifetime, Limit
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = ["Balance", "Cost", "Ledger", "Lifetime", "Limit", "Reservation", "Standing"]
