"""Pure accounting of privacy losses: exact conversions, Rényi bounds, and one currency for all mechanisms.

Numbers in, numbers out: nothing here sees a record. A mechanism is an event, an accountant charges events.
"""

from typing import TYPE_CHECKING

from collegium.lazy import lazily

_HOMES = {
    "collegium.accounting.accountants": [
        "GaussianAccountant",
        "PureAccountant",
        "RenyiAccountant",
    ],
    "collegium.accounting.comparison": [
        "ComparedBound",
        "compare",
    ],
    "collegium.accounting.composition": [
        "Guarantee",
        "advanced_composition",
        "basic_composition",
        "bounded_range_composition",
        "group_privacy",
        "optimal_composition",
        "zcdp_epsilon",
    ],
    "collegium.accounting.currency": [
        "GaussianBound",
        "gaussian_bound",
        "laplace_bound",
        "poisson_gaussian_bound",
        "pure_bound",
    ],
    "collegium.accounting.event_words": [
        "event_of_words",
    ],
    "collegium.accounting.events": [
        "BoundedRange",
        "Composition",
        "Gaussian",
        "GaussianArgMax",
        "Laplace",
        "PoissonGaussian",
        "PureNoise",
    ],
    "collegium.accounting.export": ["from_dp_event", "to_dp_event"],
    "collegium.accounting.gaussian": [
        "gdp_delta",
        "gdp_epsilon",
        "gdp_log_delta",
        "gdp_mu",
        "pure_to_gdp",
    ],
    "collegium.accounting.neighbours": ["Neighbours"],
    "collegium.accounting.renyi": ["DEFAULT_ORDERS", "gaussian_rdp", "rdp_to_epsilon"],
}

if TYPE_CHECKING:
    from collegium.accounting.accountants import (
        GaussianAccountant,
        PureAccountant,
        RenyiAccountant,
    )
    from collegium.accounting.comparison import ComparedBound, compare
    from collegium.accounting.composition import (
        Guarantee,
        advanced_composition,
        basic_composition,
        bounded_range_composition,
        group_privacy,
        optimal_composition,
        zcdp_epsilon,
    )
    from collegium.accounting.currency import (
        GaussianBound,
        gaussian_bound,
        laplace_bound,
        poisson_gaussian_bound,
        pure_bound,
    )
    from collegium.accounting.event_words import event_of_words
    from collegium.accounting.events import (
        BoundedRange,
        Composition,
        Gaussian,
        GaussianArgMax,
        Laplace,
        PoissonGaussian,
        PureNoise,
    )
    from collegium.accounting.export import from_dp_event, to_dp_event
    from collegium.accounting.gaussian import (
        gdp_delta,
        gdp_epsilon,
        gdp_log_delta,
        gdp_mu,
        pure_to_gdp,
    )
    from collegium.accounting.neighbours import Neighbours
    from collegium.accounting.renyi import DEFAULT_ORDERS, gaussian_rdp, rdp_to_epsilon
else:  # so that type checkers know every name, and that there are no others
    __getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "DEFAULT_ORDERS",
    "BoundedRange",
    "ComparedBound",
    "Composition",
    "Gaussian",
    "GaussianAccountant",
    "GaussianArgMax",
    "GaussianBound",
    "Guarantee",
    "Laplace",
    "Neighbours",
    "PoissonGaussian",
    "PureAccountant",
    "PureNoise",
    "RenyiAccountant",
    "advanced_composition",
    "basic_composition",
    "bounded_range_composition",
    "compare",
    "event_of_words",
    "from_dp_event",
    "gaussian_bound",
    "gaussian_rdp",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_log_delta",
    "gdp_mu",
    "group_privacy",
    "laplace_bound",
    "optimal_composition",
    "poisson_gaussian_bound",
    "pure_bound",
    "pure_to_gdp",
    "rdp_to_epsilon",
    "to_dp_event",
    "zcdp_epsilon",
]
