"""Settings of PATE that every face shares: study files, the estimator, the command line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.renyi import DEFAULT_ORDERS, SEED_ORDERS
from collegium.parameters import Searchable


@dataclass(frozen=True)
class Account(Searchable):
    """Which guarantee people get, and how it is computed."""

    guarantee: str = "worst-case"
    conversion: str = "canonne"
    orders: str | tuple[float, ...] = "wide"
    bounds: str | None = None
    delta: float = 1e-5

    @property
    def renyi_orders(self) -> NDArray[np.float64]:
        """Rényi orders of the data-dependent account."""
        named = {"wide": DEFAULT_ORDERS, "seeds": SEED_ORDERS}
        given = self.orders
        return named[given] if isinstance(given, str) else np.asarray(given, dtype=np.float64)


@dataclass(frozen=True)
class Queries(Searchable):
    """What is asked, and what is shown of the answers."""

    query_order: str = "random"
    max_queries: int | None = None
    max_labels: int | None = None
    release: str = "labels"
    targets: str = "mixture"
