"""A program that makes releases about the same people, one after the other, until a refusal.

It writes what it "released" into a file of its own, after the reservation and before it settles, as any
method must: μ² of every release, one line each.
"""

import os
from pathlib import Path

from collegium import Budget, Budgets, Ledger
from collegium.accounting import Neighbours
from collegium.errors import BudgetExceededError
from collegium.ledger import Cost

RESERVED, COST = 4e-3, 3e-3  # in μ², per release: what it may cost, and does


def main(place: str, key: Path, who: str, released: Path) -> None:
    """Release as long as everybody can afford it."""
    ledger = Ledger(place, key)
    owners = [f"p{number}" for number in range(20)]
    budgets = Budgets({"all": Budget(1.0)}, [0] * len(owners), owners)
    with released.open("a+") as file:
        file.seek(0)
        number = len(file.readlines())  # a program that was killed goes on where it was
        while True:
            try:
                made = ledger.reserve(
                    f"{who}-{number}",
                    who,
                    budgets,
                    {"all": Cost(RESERVED)},
                    neighbours=Neighbours.ANY_CHANGE,
                    again=True,  # what was "drawn" is the same each time
                )
            except BudgetExceededError:
                return
            if not made.is_settled:
                file.write(f"{COST}\n")
                file.flush()
                os.fsync(file.fileno())
                made.settle([Cost(COST)])
            number += 1
