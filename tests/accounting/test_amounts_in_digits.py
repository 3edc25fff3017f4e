"""Budgets and costs in digits: never more was granted, never less spent, and no budget looks overspent."""

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from collegium import Budget, PrivacyStatement
from collegium.accounting import Neighbours
from collegium.accounting.statement import (
    Answers,
    GroupSpending,
    budget_and_cost,
    budget_in_digits,
    cost_in_digits,
)
from collegium.cli.blocks import rich_table
from collegium.report.promise import spending_table

epsilons = st.floats(1e-300, 1e15, allow_subnormal=False)


@given(epsilons, st.floats(0, 1), st.integers(1, 6))
@example(1e-6, 1.0, 4)
@example(math.log(2), 1.0, 4)
@example(0.1, math.nextafter(1, 0), 4)
@example(999999.99999, 1.0, 4)
def test_what_is_within_a_budget_looks_so(budget, share, digits):
    spent = min(budget, budget * share)
    granted, paid = budget_and_cost(budget, spent, digits)
    if spent == budget:
        assert paid == granted
        return
    assert Decimal(spent) <= Decimal(paid) or float(paid) == spent  # nearest float of its digits
    assert Decimal(granted) <= Decimal(budget) or float(granted) == budget
    assert Decimal(paid) <= Decimal(granted)
    assert (Decimal(granted) > 0) and (Decimal(paid) > 0) == (spent > 0)


@given(epsilons, st.floats(1.001, 10))
def test_what_is_overspent_looks_so(budget, times):
    granted, paid = budget_and_cost(budget, budget * times)
    assert Decimal(paid) > Decimal(granted)


@given(epsilons)
def test_small_numbers_keep_their_digits(value):
    for text in (budget_in_digits(value), cost_in_digits(value)):
        assert float(text) == pytest.approx(value, rel=2e-3)
        assert len(text) <= 12


def statement(guarantee, *groups):
    rows = [GroupSpending(name, 9, Budget(epsilon), spent) for name, epsilon, spent in groups]
    return PrivacyStatement(
        guarantee, "any", True, tuple(rows), Answers.LABELS, Neighbours.ANY_CHANGE
    )


def printed(privacy):
    console = Console(width=200)
    with console.capture() as said:
        console.print(rich_table(spending_table(privacy)))
    return said.get()


def test_tables_and_sentences_do_not_show_a_tiny_budget_as_overspent():
    privacy = statement("worst-case", ("tiny", 1e-6, 9.9e-7), ("log", math.log(2), 0.69314))
    tiny, log = privacy.sentences()[2:4]
    assert "granted ε = 1e-6 at δ = 1e-05 and spent ε = 9.9e-7" in tiny
    assert "granted ε = 0.69314 at δ = 1e-05 and spent ε = 0.69314" in log
    table = printed(privacy)
    assert "1e-6" in table and "9.9e-7" in table and "0.6932" not in table


def test_the_digits_of_a_budget_say_nothing_of_a_sensitive_spending():
    private = statement("data-dependent", ("log", math.log(2), 0.69314))
    other = replace(private, groups=(replace(private.groups[0], epsilon_spent=0.1),))
    assert private.sentences() == other.sentences()
    assert private.to_dict() == other.to_dict()
    assert printed(private) == printed(other)
    assert "0.6931 " in printed(private) and "in the vault" in printed(private)
