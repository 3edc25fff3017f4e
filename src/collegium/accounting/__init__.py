"""Pure accounting of privacy losses: exact conversions, Rényi bounds, and one currency for all mechanisms.

Numbers in, numbers out: nothing here sees a record, and nothing is spent.
"""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

# Accountants, events and neighbours are to be added here, in the page of public names and in __all__.
_HOMES = {
    "collegium.accounting.currency": [
        "GaussianBound",
        "gaussian_bound",
        "laplace_bound",
        "poisson_gaussian_bound",
        "pure_bound",
    ],
    "collegium.accounting.gaussian": [
        "gdp_delta",
        "gdp_epsilon",
        "gdp_log_delta",
        "gdp_mu",
        "pure_to_gdp",
    ],
    "collegium.accounting.renyi": ["DEFAULT_ORDERS", "gaussian_rdp", "rdp_to_epsilon"],
}

if TYPE_CHECKING:
    from collegium.accounting.currency import (
        GaussianBound,
        gaussian_bound,
        laplace_bound,
        poisson_gaussian_bound,
        pure_bound,
    )
    from collegium.accounting.gaussian import (
        gdp_delta,
        gdp_epsilon,
        gdp_log_delta,
        gdp_mu,
        pure_to_gdp,
    )
    from collegium.accounting.renyi import DEFAULT_ORDERS, gaussian_rdp, rdp_to_epsilon
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "DEFAULT_ORDERS",
    "GaussianBound",
    "gaussian_bound",
    "gaussian_rdp",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_log_delta",
    "gdp_mu",
    "laplace_bound",
    "poisson_gaussian_bound",
    "pure_bound",
    "pure_to_gdp",
    "rdp_to_epsilon",
]
