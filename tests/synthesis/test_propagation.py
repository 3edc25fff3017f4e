"""Junction trees and belief propagation, against definitions and against enumeration of every row."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.synthesis.belief import Beliefs
from collegium.synthesis.junction_tree import JunctionTree, cells_needed


@st.composite
def graphs(draw, most_columns=6, most_cells=4, most_factors=7):
    """Sizes of some columns, and sets of up to three of them that are measured together."""
    sizes = draw(st.lists(st.integers(1, most_cells), min_size=1, max_size=most_columns))
    columns = st.integers(0, len(sizes) - 1)
    sets = st.sets(columns, min_size=1, max_size=min(3, len(sizes)))
    factors = draw(st.lists(sets, max_size=most_factors))
    return sizes, [tuple(sorted(one)) for one in factors]


def joint(sizes, factors, thetas, masks=None):
    """The weight of every row, one axis for each column."""
    found = np.ones(sizes)
    for factor, theta in zip(factors, thetas, strict=True):
        found = found * np.exp(theta).reshape(
            [size if place in factor else 1 for place, size in enumerate(sizes)]
        )
    for column, mask in (masks or {}).items():
        found = found * mask.reshape([-1 if place == column else 1 for place in range(len(sizes))])
    return found


def summed(table, columns):
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in columns))


@given(graphs(most_columns=9, most_factors=14))
def test_cliques_cover_every_column_and_factor_and_meet_where_they_must(graph):
    sizes, factors = graph
    tree = JunctionTree.of(sizes, factors)
    assert set().union(*map(set, tree.cliques)) == set(range(len(sizes)))
    assert all(parent < child for child, parent in enumerate(tree.parents))
    for factor in factors:
        assert set(factor) <= set(tree.cliques[tree.home_of(factor)])
    # Running intersection: what two cliques share is in every clique on the way between them.
    ways = []
    for node in range(len(tree.cliques)):
        way = [node]
        while tree.parents[way[-1]] >= 0:
            way.append(tree.parents[way[-1]])
        ways.append(way)
    for a, b in product(range(len(tree.cliques)), repeat=2):
        shared = set(tree.cliques[a]) & set(tree.cliques[b])
        if shared:
            meeting = next((one for one in ways[a] if one in ways[b]), None)
            assert meeting is not None, "two cliques share a column, and no edges join them"
            between = ways[a][: ways[a].index(meeting) + 1] + ways[b][: ways[b].index(meeting)]
            assert all(shared <= set(tree.cliques[one]) for one in between)
    # No clique is within another one: their cells would be counted twice.
    sets = [set(one) for one in tree.cliques]
    assert not any(one < other for one in sets for other in sets) and len(set(tree.cliques)) == len(
        sets
    )
    assert tree.n_cells == cells_needed(sizes, factors)
    assert tree.n_cells == sum(math.prod(sizes[c] for c in one) for one in tree.cliques)


def test_small_graphs_have_the_trees_of_the_textbook():
    """A chain needs its edges alone; a square needs one diagonal, across the smaller columns."""
    chain = JunctionTree.of([3, 4, 5, 6], [(0, 1), (1, 2), (2, 3)])
    assert sorted(chain.cliques) == [(0, 1), (1, 2), (2, 3)] and chain.n_cells == 12 + 20 + 30
    square = JunctionTree.of([2, 9, 2, 9], [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert sorted(square.cliques) == [(0, 1, 2), (0, 2, 3)] and square.n_cells == 36 + 36
    star = JunctionTree.of([7, 2, 2, 2], [(0, 1), (0, 2), (0, 3)])
    assert star.n_cells == 3 * 14 and {one for s in star.separators for one in s} == {0}
    apart = JunctionTree.of([3, 3], [])
    assert apart.parents == (-1, -1) and apart.separators == ((), ())


@given(graphs(), st.integers(0, 2**32 - 1), st.booleans())
def test_marginals_are_those_of_every_row_enumerated(graph, seed, zeros):
    sizes, factors = graph
    rng = np.random.default_rng(seed)
    thetas = [rng.normal(0, 2, [sizes[c] for c in factor]) for factor in factors]
    if zeros:
        thetas = [np.where(rng.random(one.shape) < 0.3, -np.inf, one) for one in thetas]
    masked = rng.integers(0, len(sizes))
    masks = {int(masked): (rng.random(sizes[masked]) < 0.7).astype(float)} if zeros else None
    every_row = joint(sizes, factors, thetas, masks)
    beliefs = Beliefs(JunctionTree.of(sizes, factors), factors)
    tables, log_z = beliefs.tables(thetas, masks)
    total = every_row.sum()
    if total == 0:
        assert log_z == -math.inf and all(not one.any() for one in tables)
        return
    assert log_z == pytest.approx(math.log(total), abs=1e-9)
    for clique, table in zip(beliefs.tree.cliques, tables, strict=True):
        assert table == pytest.approx(summed(every_row, clique) / total, abs=1e-12)
    for factor, found in zip(factors, beliefs.marginals(tables), strict=True):
        assert found == pytest.approx(summed(every_row, factor) / total, abs=1e-12)
        assert beliefs.marginal(tables, factor) == pytest.approx(found, abs=1e-15)
    for column in range(len(sizes)):
        one = summed(every_row, (column,)) / total
        assert beliefs.marginal(tables, (column,)) == pytest.approx(one, abs=1e-12)


def test_potentials_that_no_float_can_exponentiate_are_no_trouble():
    """θ of ±2,000 is e^2000: tables are scaled, so that log Z is right to the last digits."""
    factors = [(0, 1), (1, 2)]
    thetas = [np.array([[2000.0, 0.0], [-2000.0, 1999.0]]), np.array([[1.0, 0.0], [0.0, 3.0]])]
    beliefs = Beliefs(JunctionTree.of([2, 2, 2], factors), factors)
    tables, log_z = beliefs.tables(thetas)
    # Row (0, 0, ·) weighs e^2000 (e + 1), row (1, 1, ·) weighs e^1999 (1 + e³); the others nothing.
    top, next_one = math.e + 1, math.exp(-1) * (1 + math.exp(3))
    assert log_z == pytest.approx(2000 + math.log(top + next_one), abs=1e-9)
    found = beliefs.marginals(tables)[0]
    share = top / (top + next_one)
    assert found == pytest.approx(np.array([[share, 0], [0, 1 - share]]), abs=1e-12)


def test_what_was_given_is_not_changed():
    factors = [(0, 1), (0,)]
    thetas = [np.arange(6.0).reshape(2, 3), np.array([0.0, 1.0])]
    kept = [one.copy() for one in thetas]
    beliefs = Beliefs(JunctionTree.of([2, 3], factors), factors)
    first = beliefs.tables(thetas)
    again = beliefs.tables(thetas)
    assert all((one == other).all() for one, other in zip(thetas, kept, strict=True))
    assert first[1] == again[1]
