"""Ledgers to test with: in a file, and on a real PostgreSQL server."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from collegium import Budget, Budgets, Ledger
from collegium.accounting import Neighbours
from collegium.ledger import Cost, Reservation


def people(levels: dict[str, str], policy: dict[str, float] | None = None) -> Budgets:
    """Owner's name -> level."""
    epsilons = {"high": 1.0, "low": 3.0} if policy is None else policy
    groups = {name: Budget(epsilon) for name, epsilon in epsilons.items()}
    codes = [list(groups).index(level) for level in levels.values()]
    return Budgets(groups, codes, list(levels))


def ask(
    ledger: Ledger,
    id: str,
    budgets: Budgets,
    costs: Sequence[Cost],
    parts: Sequence[int] | None = None,
    **options: Any,
) -> Reservation:
    """Reserve; without parts, costs are those of the levels, in order."""
    options = {"neighbours": Neighbours.ANY_CHANGE, **options}
    if parts is not None:
        return ledger.reserve(id, "study", budgets, costs, parts, **options)
    named = dict(zip(budgets.group_names, costs, strict=True))
    return ledger.reserve(id, "study", budgets, named, **options)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "people.ledger")


@pytest.fixture(params=["file", "server"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """Where a new ledger may be made, and its key."""
    key = tmp_path / "people.key"
    if request.param == "file":
        return str(tmp_path / "people.ledger"), key
    return request.getfixturevalue("server").new_database(), key
