"""Which public records are asked about."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from collegium.distillation.nearest import similarity_graph
from collegium.errors import InputError
from collegium.pate.queries.selection import ORDERS, next_queries, query_order

IMAGES, DIGITS = load_digits(return_X_y=True)
PUBLIC = IMAGES[:400] / 16


@pytest.mark.parametrize("kind", ORDERS)
def test_an_order_is_a_permutation_that_the_seed_decides(kind):
    order = query_order(kind, PUBLIC, seed=3)
    assert sorted(order.tolist()) == list(range(400))
    assert np.array_equal(order, query_order(kind, PUBLIC, seed=3))
    assert not np.array_equal(order, query_order(kind, PUBLIC, seed=4)) or kind == "coverage"


def test_coverage_is_the_plain_greedy_choice():
    points, n_neighbors = PUBLIC[:60], 10
    graph = similarity_graph(points, n_neighbors)[0].toarray() + np.eye(60)
    covered, total = np.zeros(60), []
    order = query_order("coverage", points, seed=0, n_neighbors=n_neighbors)
    for row in order:
        gains = np.maximum(graph - covered, 0).sum(axis=1)
        assert gains[row] == pytest.approx(gains.max(), abs=1e-9)
        covered = np.maximum(covered, graph[row])
        total.append(covered.sum())
    assert (np.diff(total) >= 0).all()


def test_coverage_represents_more_than_chance():
    def covered(rows):
        nearest = ((PUBLIC[:, None] - PUBLIC[rows][None]) ** 2).sum(axis=2).min(axis=1)
        return nearest.mean()

    best = covered(query_order("coverage", PUBLIC, seed=0)[:30])
    chance = [covered(query_order("random", PUBLIC, seed=seed)[:30]) for seed in range(20)]
    assert best < min(chance)


def test_bad_orders_are_refused():
    with pytest.raises(InputError, match="random, coverage"):
        query_order("best", PUBLIC, seed=0)
    with pytest.raises(InputError, match="at least one record"):
        query_order("coverage", np.empty((0, 3)), seed=0)
    assert query_order("coverage", PUBLIC[:2], seed=0).size == 2


def test_next_queries_are_uncertain_fresh_and_apart():
    line = np.linspace(0, 1, 101)[:, None]
    beliefs = np.stack([line.ravel(), 1 - line.ravel()], axis=1)
    rows = next_queries(beliefs, line, asked=[50], n=5, n_neighbors=4)
    assert 50 not in rows
    assert np.abs(rows - 50).max() <= 20
    assert np.diff(np.sort(rows)).min() > 1
    assert np.array_equal(rows, next_queries(beliefs, line, [50], 5, 4))


def test_next_queries_ask_about_everybody_in_the_end():
    beliefs = np.full((30, 2), 0.5)
    rows = next_queries(beliefs, PUBLIC[:30], asked=[1, 2, 3], n=100)
    assert sorted(rows.tolist()) == [0, *range(4, 30)]
    with pytest.raises(InputError, match="one row for each of the 30"):
        next_queries(beliefs[:5], PUBLIC[:30], [], 2)
    with pytest.raises(InputError, match="n must be a whole number of at least 1"):
        next_queries(beliefs, PUBLIC[:30], [], 0)
