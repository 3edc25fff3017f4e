"""The statement: what is said is true, rounded to the safe side, and tells nothing sensitive."""

import json
import math

import numpy as np
import pytest
from amounts import Amounts
from hypothesis import given
from hypothesis import strategies as st

from collegium import Budget, PrivacyStatement, Uniform
from collegium.accounting import GaussianAccountant, Neighbours, gdp_epsilon
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.statement import (
    Answers,
    GroupSpending,
    ceil_decimals,
    floor_decimals,
    percent_left,
    percent_spent,
    statement,
)
from collegium.report.verdict import verdict

VOTES = (Answers.LABELS, Neighbours.REPLACE)
SPENT = {"high": 0.98761234, "low": 2.71828183}


def made(guarantee="worst-case", noise_is_private=True):
    groups = (
        GroupSpending("high", 540, Budget(1.0, 1e-5), SPENT["high"]),
        GroupSpending("low", 90, Budget(2.99999999, 1e-5), SPENT["low"]),
    )
    return PrivacyStatement(
        guarantee, "one owner's records replaced", noise_is_private, groups, *VOTES
    )


positive = st.floats(0, 1e12, allow_subnormal=True)


@given(positive, st.integers(0, 8))
def test_costs_are_never_written_smaller_than_they_are(value, decimals):
    assert (
        value
        <= float(ceil_decimals(value, decimals))
        < value + 10.0**-decimals * 1.001 + 1e-3 * (value > 1e6)
    )


@given(positive, st.integers(0, 8))
def test_budgets_are_never_written_larger_than_they_are(value, decimals):
    assert (
        value
        >= float(floor_decimals(value, decimals))
        > value - 10.0**-decimals * 1.001 - 1e-3 * (value > 1e6)
    )


@given(st.integers(0, 10**8), st.sampled_from([-1, 0, 1]))
def test_neighbours_of_short_numbers_are_rounded_to_the_safe_side_too(ticks, direction):
    value = ticks / 10**4
    near = math.nextafter(value, math.inf * direction) if direction and ticks else value
    assert float(ceil_decimals(near)) >= near
    assert float(floor_decimals(near)) <= near
    if near == value:
        assert float(ceil_decimals(value)) == float(floor_decimals(value)) == value


@pytest.mark.parametrize(
    ("value", "decimals", "up", "down"),
    [
        (0.1, 4, "0.1", "0.1"),
        (0.03, 4, "0.03", "0.03"),
        (0.12345, 4, "0.1235", "0.1234"),
        (1e-12, 4, "0.0001", "0"),
        (10.0, 0, "10", "10"),
        (100.5, 0, "101", "100"),
        (250.0, 4, "250", "250"),
        (0.0, 4, "0", "0"),
        (math.inf, 4, "∞", "∞"),
    ],
)
def test_numbers_are_written_shortly(value, decimals, up, down):
    assert (ceil_decimals(value, decimals), floor_decimals(value, decimals)) == (up, down)


def test_shares_are_percentages():
    assert [percent_spent(share) for share in (0.5, math.nan, 1.0)] == ["50.0 %", "—", "100.0 %"]
    assert (percent_spent(0.12341), percent_left(0.12349)) == ("12.4 %", "12.3 %")
    assert made().groups[0].share == pytest.approx(SPENT["high"])
    assert math.isnan(GroupSpending("x", 1, Budget(math.inf), 3.0).share)


def test_worst_case_table_says_what_each_owner_granted_and_spent():
    table = made().by_group()
    assert table.index.tolist() == ["high", "low"]
    assert table.columns.tolist() == [
        "owners",
        "epsilon",
        "delta",
        "epsilon_spent",
        "spent_share",
        "guarantee",
    ]
    assert table.loc["low", "owners"] == 90
    assert table["epsilon_spent"].to_dict() == SPENT
    assert set(table["guarantee"]) == {"worst-case"}


def test_data_dependent_table_names_its_sensitive_columns():
    columns = made("data-dependent").by_group().columns
    assert {"sensitive_epsilon_spent", "sensitive_spent_share"} <= set(columns)
    assert not {"epsilon_spent", "spent_share"} & set(columns)


def test_sentences_give_each_group_its_own_numbers_rounded_to_the_safe_side():
    lines = made().sentences()
    high = next(line for line in lines if "'high'" in line)
    low = next(line for line in lines if "'low'" in line)
    assert "540 people" in high
    assert "granted ε = 1 at δ = 1e-05 and spent ε = 0.9877" in high
    assert "is right at most 74 times in 100" in high
    assert "granted ε = 2.9999 " in low
    assert "spent ε = 2.7183" in low
    assert any("one owner's records replaced" in line for line in lines)
    assert all("\n" not in line for line in lines)


def test_a_small_budget_is_written_in_full():
    group = GroupSpending("tiny", 1, Budget(0.03, 1e-9), 0.0299)
    lines = PrivacyStatement("worst-case", "", True, (group,), *VOTES).sentences()
    assert any("granted ε = 0.03 at δ = 1e-09" in line for line in lines)


def numbers_in(value):
    """All numbers in a JSON document, those inside text as text."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers_in(part)]
    if isinstance(value, list):
        return [number for part in value for number in numbers_in(part)]
    return [value]


def test_data_dependent_statement_holds_no_amount_spent_in_whatever_form():
    for document in (made("data-dependent"), made("data-dependent").without_spending()):
        exported = document.to_dict()
        text = json.dumps(exported, ensure_ascii=False, allow_nan=False)
        for spent in SPENT.values():
            share = spent / {0.98761234: 1.0, 2.71828183: 2.99999999}[spent]
            for digits in (3, 4, 5):
                assert f"{spent:.{digits}g}" not in text
                assert f"{share:.{digits}g}" not in text
            assert f"{100 * share:.1f}" not in text
        assert all("epsilon_spent" not in group for group in exported["groups"])
        assert "sensitive" in exported["meaning"]


def test_worst_case_statement_is_json_with_everything():
    exported = json.loads(json.dumps(made().to_dict(), allow_nan=False))
    assert [group["epsilon_spent"] for group in exported["groups"]] == list(SPENT.values())
    assert exported["guarantee"] == "worst-case"
    assert exported["private_noise"] is True
    assert exported["adjacency"] == "one owner's records replaced"


def test_infinite_budgets_are_named_as_no_privacy_and_stay_valid_json():
    group = GroupSpending("open", 3, Budget(math.inf), 12.5)
    document = PrivacyStatement("worst-case", "x", True, (group,), *VOTES)
    assert (
        json.loads(json.dumps(document.to_dict(), allow_nan=False))["groups"][0]["epsilon"] == "inf"
    )
    assert any("NO PRIVACY" in line and "'open'" in line for line in document.sentences())


def test_seeded_noise_voids_the_statement_wherever_a_guarantee_is_stated():
    document = made(noise_is_private=False)
    assert document.sentences()[0].startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in document.title
    assert document.by_group()["guarantee"].str.contains("NOT PRIVATE").all()
    assert document.to_dict()["private_noise"] is False
    assert "NOT PRIVATE" not in made().title


def test_forgetting_the_spending_leaves_the_rest():
    forgotten = made("data-dependent").without_spending()
    assert all(math.isnan(group.epsilon_spent) for group in forgotten.groups)
    assert forgotten.sentences() == made("data-dependent").sentences()


@pytest.mark.parametrize(
    ("people", "delta", "epsilon", "is_large"),
    [
        (11, 0.1, 1.0, True),
        (10, 0.1, 1.0, False),
        (626, 0.5, 1.0, True),
        (626, 0.5, math.inf, False),
    ],
)
def test_a_delta_above_one_in_the_number_of_people_is_said_everywhere(
    people, delta, epsilon, is_large
):
    rows = (
        GroupSpending("a", 1, Budget(epsilon, delta), 0.5),
        GroupSpending("b", people - 1, Budget(1.0, 1e-9), 0.5),
    )
    document = PrivacyStatement("worst-case", "x", True, rows, *VOTES)
    said = f"δ is large for group a ({delta:g}): it is more than 1 / number of people ({people})"
    assert document.large_deltas.startswith(said) == is_large
    plan = Uniform().plan(
        {row.group: row.budget for row in rows}, {row.group: row.owners for row in rows}, 1
    )
    assert plan.large_deltas() == document.large_deltas
    for text in (str(document), " ".join(document.sentences())):
        assert ("δ is large" in text) == is_large
    assert verdict(document).tone == ("good" if not is_large and epsilon == 1 else "caution")


def test_printed_it_says_the_most_important_in_a_few_lines():
    lines = str(made()).splitlines()
    assert lines[0] == "Guarantee: worst-case" and "one owner's records replaced" in lines[1]
    assert (
        lines[2]
        == "Each of the 540 people of level 'high' granted ε = 1 at δ = 1e-05 and spent ε = 0.9877"
    )
    assert len(lines) == 5
    assert "NOT PRIVATE" in str(made(noise_is_private=False))
    assert "stays in the vault" in str(made("data-dependent")) and "0.98" not in str(
        made("data-dependent")
    )


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_statement_reads_the_largest_spending_of_each_group_by_name(order):
    names = ["a", "b", "b"]
    spent = np.array([0.01, 0.02, 0.09])
    epsilon = np.array([1.0, 2.0, 2.0])
    take = list(order)
    account = GaussianAccountant(epsilon[take], 1e-5, [names[i] for i in take])
    account.charge(Amounts(spent[take], np.full(3, np.inf)))
    budgets = {"b": Budget(2.0, 1e-5), "a": Budget(1.0, 1e-5)}
    table = statement(
        account, {"a": 10, "b": 20}, budgets, Arrangement(), True, Answers.LABELS
    ).by_group()
    expected = {"b": gdp_epsilon(math.sqrt(0.09), 1e-5), "a": gdp_epsilon(math.sqrt(0.01), 1e-5)}
    for name, value in expected.items():
        assert table.loc[name, "epsilon_spent"] == pytest.approx(float(value), rel=1e-9)
        assert table.loc[name, "epsilon_spent"] >= float(value)
        assert table.loc[name, "epsilon"] == budgets[name].epsilon
    assert table["owners"].to_dict() == {"b": 20, "a": 10}
