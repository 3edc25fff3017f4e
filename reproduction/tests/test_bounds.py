"""The comparison of bounds: what it computes itself."""

import math

import pytest

from collegium.accounting import DEFAULT_ORDERS, rdp_to_epsilon
from reproduction.benchmarks.bounds import zcdp_budget


def test_zcdp_budget_is_what_the_conversion_of_curves_allows():
    for epsilon in (0.1, math.log(2), 3.0, 20.0):
        rho = zcdp_budget(epsilon, 1e-5)
        spent = rdp_to_epsilon(rho * DEFAULT_ORDERS, DEFAULT_ORDERS, 1e-5)[0]
        assert float(spent) == pytest.approx(epsilon, rel=2e-3)
        assert float(spent) >= epsilon * (1 - 1e-8)
