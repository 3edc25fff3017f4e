"""Conditions as weights of cells: above 0 exactly where some value of the cells satisfies them."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from collegium import Schema
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import as_budgets
from collegium.data.cells import Cells
from collegium.errors import InputError
from collegium.synthesis.coarsening import Coarsening
from collegium.synthesis.rules import rules_of, where_of
from collegium.synthesis.run import Synthesis
from collegium.synthesis.settings import SynthesisSettings
from collegium.weighted_sums.tables import InMemory

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [0, 99], "bins": [0, 18, 30, 31, 65, 99]},
        "years": {"kind": "whole", "bounds": [0, 60], "bins": [0, 7, 20, 60], "missing": False},
        "rooms": {"kind": "whole", "bounds": [1, 6]},
        "married": {"kind": "flag"},
        "ward": {"kind": "category", "categories": ["a", "b", "c"], "missing": False},
        "from": {"kind": "date", "bounds": ["2024-01-01", "2024-02-29"]},
        "to": {"kind": "date", "bounds": ["2024-01-15", "2024-03-31"]},
        "pay": {"kind": "number", "bounds": [0, 2], "step": 0.25, "bins": [0, 0.6, 1.1, 2]},
        "name": {"kind": "text"},
    }
)
CELLS = Cells(SCHEMA)
CONDITIONS = [
    "age >= 18",
    "age > 17.5",
    "age == 30",
    "age > 29 and age < 31",
    "age in (3, 30, 64)",
    "age != 30",
    "age is missing",
    "age is not missing",
    "age >= 18 or not married",
    "married or age < 18",
    "ward == 'a' or age >= 65",
    "ward in ('a', 'b') and married or rooms > 4",
    "ward != 'c' or years >= 20",
    "years <= age",
    "years < age",
    "years > age",
    "years >= age",
    "years == age",
    "years != age",
    "rooms == years",
    "from <= to",
    "from > to",
    "from == to",
    "from >= 2024-02-29 or to == 2024-01-15",
    "pay > 0.5 and pay < 1.0 or married",
    "pay == 0.75",
    "pay < 0.25 or pay > 1.75",
    "pay <= 0.999 or rooms in (1, 2)",
    "month(from) == 2 or married",
    "age >= 18 or age is missing or ward == 'c'",
]


def every_value(name):
    """All values that a column can have, as its arrays do, and the cell of each."""
    one = CELLS.columns[CELLS.names.index(name)]
    column = one.column
    if column.kind in ("flag", "category"):
        values = np.arange(-1 if column.missing else 0, one.n_values)
    else:
        values = column.lower + np.arange(column.n_steps) * column.grid
        values = np.append(values, np.nan) if column.missing else values
    return values, one.codes(values)


def possible_cells(rule):
    """By brute force: whether any combination of values in a combination of cells satisfies a rule."""
    names = [CELLS.names[one] for one in rule.columns]
    values, cells = zip(*(every_value(name) for name in names), strict=True)
    grids = np.meshgrid(*(np.arange(len(one)) for one in values), indexing="ij")
    arrays = {n: v[g.ravel()] for n, v, g in zip(names, values, grids, strict=True)}
    holds = rule.holds(arrays)
    found = np.zeros(rule.weights.shape)
    places = tuple(c[g.ravel()] for c, g in zip(cells, grids, strict=True))
    np.add.at(found, places, holds)
    total = np.zeros(rule.weights.shape)
    np.add.at(total, places, 1)
    return found, found / total


@pytest.mark.parametrize("read", ["known", "asked"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_cell_has_weight_exactly_where_a_value_satisfies(condition, read):
    rules = rules_of([condition], CELLS) if read == "known" else where_of(condition, CELLS)
    for rule in rules:
        found, share = possible_cells(rule)
        assert ((rule.weights > 0) == (found > 0)).all(), str(rule)
        assert (rule.weights <= 1).all()
        # Weights are shares of the values, as far as a grid of points can tell.
        assert np.abs(rule.weights - share)[share > 0].max() <= 0.2, str(rule)


def test_numbers_between_two_steps_of_a_grid_are_no_values():
    """Only those whose value is missing are left; asked for, nobody is."""
    (rule,) = rules_of(["pay == 0.3"], CELLS)
    assert rule.weights.tolist() == [0, 0, 0, 1]
    with pytest.raises(InputError, match="can hold for no row that the schema allows"):
        where_of("pay == 0.3", CELLS)


def test_a_missing_value_satisfies_what_is_known_and_nothing_that_is_asked_for():
    """As a CHECK of SQL is satisfied by NULL, and a WHERE is not."""
    table = pd.DataFrame({name: [None] for name in SCHEMA}).assign(years=3, ward="a")
    arrays = SCHEMA.arrays(table, list(CELLS.names))
    for condition in ("age >= 18", "age < 18", "age >= 18 or not married", "from <= to"):
        (known,), asked = rules_of([condition], CELLS), where_of(condition, CELLS)
        assert known.holds(arrays).all() and not any(one.holds(arrays).any() for one in asked)
        assert known.weights[(-1,) * known.weights.ndim] == 1
        assert asked[0].weights[(-1,) * asked[0].weights.ndim] == 0
    # One that asks whether a value is missing means what it says.
    (said,) = rules_of(["age is not missing"], CELLS)
    assert not said.holds(arrays).any() and said.weights[-1] == 0


def test_what_must_hold_together_is_told_apart():
    rules = rules_of(["age >= 18 and married and (ward == 'a' or years > 3)"], CELLS)
    assert [len(one.columns) for one in rules] == [1, 1, 2]


def test_coarse_cells_have_the_average_weight_and_are_impossible_only_if_all_are():
    (rule,) = rules_of(["years <= age"], CELLS)
    coarse = [Coarsening.none(size) for size in CELLS.sizes]
    assert np.exp(rule.log_weights(coarse)) == pytest.approx(rule.weights)
    place = np.array([0, 0, 1, 1, 1, 2])
    coarse[0] = Coarsening(place, np.array([0.2, 0.8, 0.5, 0.25, 0.25, 1.0]))
    found = np.exp(rule.log_weights(coarse))
    for cell, other in product(range(3), range(3)):
        inside = place == cell
        expected = (coarse[0].within[inside] * rule.weights[inside, other]).sum()
        assert found[cell, other] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("age > 99", "nobody can be >= 100"),
        ("age == 30.5", "nobody can be == 30.5"),
        ("age > 50 and age < 20", "at once"),
        ("age >= 20 or ward == 'x'", "'x'"),
        ("name == 'Ann'", "name"),
        ("height > 3", "height"),
        ("married <= age", "holds no numbers"),
        ("ward <= age", "holds no numbers"),
        ("age >=", "age >="),
        ("age > 1 or rooms > 1 or married or ward == 'a' or years > 3", "5 columns at once"),
        (3, "must be text"),
    ],
)
def test_what_is_no_condition_is_refused_in_one_line(condition, said):
    for read in (lambda: rules_of([condition], CELLS), lambda: where_of(condition, CELLS)):
        with pytest.raises(InputError) as error:
            read()
        assert said in str(error.value) and "\n" not in str(error.value)


def run_of(*constraints):
    people = pd.DataFrame({name: [None] * 3 for name in SCHEMA}).assign(years=3, ward="a")
    table = InMemory(people, as_budgets(1.0, 1e-5, 3), SCHEMA)
    settings = SynthesisSettings(constraints=list(constraints))
    return Synthesis(table, CELLS, None, settings, Neighbours.ADD_OR_REMOVE)


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        (["years >= 20", "years < 7"], "no row can satisfy"),
        (["years > 20 or ward == 'a'", "years <= 20", "ward != 'a'"], "no row can satisfy"),
        # A row without an age satisfies both; that all are so is not what anybody means.
        (["age > 50", "age < 20"], "leave no value for 'age'"),
        (["years > age", "years < age"], "leave no value for 'age', 'years'"),
        (
            ["from > 2024-02-20", "to < 2024-02-01", "from <= to"],
            "leave no value for 'from', 'to'",
        ),
        (["age > 50", "age < 20 or age is not missing and married"], None),
        (["age is missing"], None),
        (["age is missing or age >= 18", "age is missing or age < 18"], None),
        (["years == age", "from == to"], None),
        (["age > 50", "age < 60"], None),
        (["years >= 20", "years < 30"], None),
    ],
)
def test_rules_that_contradict_one_another_are_refused(constraints, said):
    if said is None:
        run_of(*constraints)
        return
    with pytest.raises(InputError) as error:
        run_of(*constraints)
    assert said in str(error.value) and "\n" not in str(error.value)
