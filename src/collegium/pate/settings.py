"""Settings of PATE that every face shares: study files, the estimator, the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.renyi import (
    CONVERSIONS,
    DEFAULT_ORDERS,
    SEED_ORDERS,
    validate_orders,
)
from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.parameters import Searchable
from collegium.pate.students.selection import QUERY_ORDERS
from collegium.pate.students.targets import METHODS
from collegium.pate.voting.pricing import BOUNDS, GUARANTEES
from collegium.pate.voting.release import RELEASES

_ORDERS = {"wide": DEFAULT_ORDERS, "seeds": SEED_ORDERS}


@dataclass(frozen=True)
class Account(Searchable):
    """Which guarantee people get, and how it is computed."""

    guarantee: str = "worst-case"
    conversion: str = "canonne"
    orders: str | Sequence[float] = "wide"
    bounds: str | None = None
    delta: float = 1e-5

    def __post_init__(self) -> None:
        _check_choice("guarantee", self.guarantee, GUARANTEES)
        _check_choice("conversion", self.conversion, CONVERSIONS)
        if self.bounds is not None:
            _check_choice("bounds", self.bounds, BOUNDS)
        if isinstance(self.orders, str):
            _check_choice("orders", self.orders, tuple(_ORDERS))
        else:
            validate_orders(self.orders)
        Budget(1.0, self.delta)

    @property
    def renyi_orders(self) -> NDArray[np.float64]:
        """Rényi orders of the data-dependent account."""
        given = self.orders
        return _ORDERS[given] if isinstance(given, str) else validate_orders(given)


@dataclass(frozen=True)
class Queries(Searchable):
    """What is asked, and what is shown of the answers."""

    query_order: str = "random"
    max_queries: int | None = None
    max_labels: int | None = None
    release: str = "labels"
    targets: str = "mixture"

    def __post_init__(self) -> None:
        _check_choice("query_order", self.query_order, QUERY_ORDERS)
        for name in ("max_queries", "max_labels"):
            limit = getattr(self, name)
            whole = isinstance(limit, (int, np.integer)) and not isinstance(limit, bool)
            if limit is not None and (not whole or limit < 1):
                raise InputError(f"{name} must be a whole number of at least 1, got {limit!r}")
        _check_choice("release", self.release, RELEASES)
        _check_choice("targets", self.targets, METHODS)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
