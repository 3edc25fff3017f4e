"""Settings of PATE that every face shares: study files, the estimator, the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.renyi import CONVERSIONS, DEFAULT_ORDERS, SEED_ORDERS, validate_orders
from collegium.budgets import DEFAULT_DELTA
from collegium.parameters import Settings, setting
from collegium.pate.queries.selection import QUERY_ORDERS, RANDOM
from collegium.pate.voting.pricing import GUARANTEES, PRICES
from collegium.pate.voting.release import LABELS, RELEASES
from collegium.pate.voting.targets import METHODS

_ORDERS = {"wide": DEFAULT_ORDERS, "seeds": SEED_ORDERS}


@dataclass(frozen=True)
class Account(Settings):
    """Which guarantee people get, and how it is computed.

    Examples
    --------
    >>> Account(guarantee="data-dependent", orders=[2, 3, 4.5]).renyi_orders
    array([2. , 3. , 4.5])
    """

    guarantee: str = setting(
        "worst-case",
        "worst-case: holds whatever the data are. data-dependent: the papers' account of this one data "
        "set, which is itself sensitive and stays in the vault.",
        choices=GUARANTEES,
    )
    conversion: str = setting(
        "canonne",
        "From Rényi DP to (ε, δ) in the data-dependent account.",
        choices=tuple(CONVERSIONS),
    )
    orders: str | Sequence[float] = setting(
        "wide",
        "Rényi orders of the data-dependent account: wide; seeds, the papers' 2, 3 … 50; or a list of "
        "numbers above 1.",
        kind="text or list",
        choices=tuple(_ORDERS),
        items=("number",),
        above=1,
    )
    bounds: str | None = setting(
        None,
        "Bounds of the data-dependent account. papers: as published, also in that any Rényi order may be "
        "within the budget. sharp: the exact divergence of the check and the exact probability of another "
        "winner, at one order, fixed beforehand. Default: papers where conversion or orders are the papers', "
        "else sharp.",
        kind="text",
        choices=("papers", "sharp"),
        example='"papers"',
    )
    delta: float = setting(
        DEFAULT_DELTA,
        "δ of every level; well below 1 / number of people.",
        above=0,
        below=1,
        advice="choose one well below 1 / number of people, for instance 1e-5",
    )
    price: str | None = setting(
        None,
        "What an answer of which only the label is released is charged in the worst-case account (gnmax, "
        "confident, interactive). histogram: what all noisy counts would cost, in exact Gaussian DP. labels: "
        "less, in Rényi DP. Left out: the one that pays for more answers, decided before the first query.",
        kind="text",
        choices=PRICES,
        example='"histogram"',
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.orders, str):
            validate_orders(self.orders)

    @property
    def renyi_orders(self) -> NDArray[np.float64]:
        """The Rényi orders themselves, shape (n_orders,)."""
        if isinstance(self.orders, str):
            return _ORDERS[self.orders]
        return validate_orders(self.orders)


@dataclass(frozen=True)
class Queries(Settings):
    """What is asked, and what is shown of the answers."""

    query_order: str = setting(
        RANDOM,
        "Which public records are asked about first. coverage: those that represent the others best. "
        "active: those of which the student, fitted again as labels are released, is least certain "
        "(worst-case guarantee only; costs nothing). doubtful: half of them at random, then those of which "
        "linear regression of the first half is least certain (likewise). All but random compare records "
        "after preprocessing.",
        choices=QUERY_ORDERS,
    )
    max_queries: int | None = setting(
        None, "Stop after so many queries.", kind="whole number", example="9000"
    )
    max_labels: int | None = setting(
        None, "Stop after so many labels.", kind="whole number", example="2000"
    )
    release: str = setting(
        LABELS,
        "labels: the winner of each vote. histogram: the noisy counts of all classes and the noisy value "
        "of each check (worst-case guarantee; lnmax, gnmax, confident and interactive only); labels alone "
        "may cost less, see price. Cannot be changed once a study has begun.",
        choices=RELEASES,
    )
    targets: str = setting(
        "mixture",
        "What the student learns where histograms are released. mixture: the probability of each class, "
        "with the teachers' agreement learnt from all histograms. noise: the same from the noise alone. "
        "argmax: the label.",
        choices=METHODS,
    )
