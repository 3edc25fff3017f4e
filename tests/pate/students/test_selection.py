"""Which public records are asked about, and which student is chosen."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

from collegium.errors import InputError
from collegium.pate.students.graph import GraphStudent
from collegium.pate.students.model_selection import select_student
from collegium.pate.students.neighbours import similarity_graph
from collegium.pate.students.selection import ORDERS, next_queries, query_order

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


def released(signal, n=400, seed=0):
    generator = np.random.default_rng(seed)
    noisy = signal * np.eye(10)[DIGITS[:n]] + generator.normal(size=(n, 10))
    return np.arange(n), softmax(signal * noisy, axis=1)


def test_the_better_student_is_chosen_by_noisy_answers():
    queries, targets = released(signal=1.5)
    candidates = {
        "dummy": DummyClassifier(),
        "stump": DecisionTreeClassifier(max_depth=1, random_state=0),
        "graph": GraphStudent(n_components=30, coupling=8.0, mistrust=0.02),
    }
    chosen = select_student(candidates, PUBLIC, queries, targets)
    assert chosen.name == "graph"
    assert chosen.scores["graph"] > chosen.scores["stump"]
    assert chosen.student.score(IMAGES[400:] / 16, DIGITS[400:]) > 0.8
    assert not hasattr(candidates["graph"], "beliefs_")


def test_candidates_that_fail_are_left_out_unless_all_do():
    queries, targets = released(signal=4.0)
    broken = GraphStudent(method="magic")
    chosen = select_student({"a": broken, "b": DummyClassifier()}, PUBLIC, queries, targets)
    assert (chosen.name, chosen.scores["a"]) == ("b", -np.inf)
    with pytest.raises(InputError, match="no candidate could be fitted"):
        select_student({"a": broken, "b": broken}, PUBLIC, queries, targets)


def test_a_choice_needs_candidates_probabilities_and_answers():
    queries, targets = released(signal=4.0)
    with pytest.raises(InputError, match="no candidates"):
        select_student({}, PUBLIC, queries, targets)
    with pytest.raises(InputError, match="no predict_proba"):
        select_student({"ridge": RidgeClassifier()}, PUBLIC, queries, targets)
    two = {"a": DummyClassifier(), "b": LogisticRegression()}
    with pytest.raises(InputError, match="too few to choose"):
        select_student(two, PUBLIC, queries[:5], targets[:5])
    with pytest.raises(InputError, match="cv"):
        select_student(two, PUBLIC, queries, targets, cv=1)
    assert select_student({"a": DummyClassifier()}, PUBLIC, queries[:5], targets[:5]).name == "a"


def test_one_candidate_is_judged_as_among_others():
    queries, targets = released(signal=1.5)
    stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    alone = select_student({"a": stump}, PUBLIC, queries, targets)
    beside = select_student({"a": stump, "b": DummyClassifier()}, PUBLIC, queries, targets)
    assert alone.scores["a"] == beside.scores["a"]
    few = select_student({"a": stump}, PUBLIC, queries[:9], targets[:9])
    assert few.name == "a" and np.isnan(few.scores["a"])
