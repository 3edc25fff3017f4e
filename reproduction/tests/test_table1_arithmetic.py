"""The paper's Table 1: an account that ties budgets to groups, and one that sorts both apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproduction.laboratory import Laboratory, Options
from reproduction.table1 import explain_table1, explanation, sorted_apart
from reproduction.votings import History


def history_of(sensitivities, n_queries=200):
    """Costs that grow like the square root of Δ² times the queries; each is answered."""
    asked = np.arange(1, n_queries + 1)
    epsilon = np.sqrt(asked)[:, None] * np.array(sensitivities) / 5
    return History(asked, epsilon, np.zeros_like(epsilon))


@given(st.lists(st.floats(0.1, 2.0), min_size=2, max_size=4, unique=True))
def test_sorting_changes_nothing_if_influence_follows_the_budgets(moves):
    budgets = np.arange(1.0, len(moves) + 1)
    history = history_of(sorted(moves))
    assert sorted_apart(history, budgets) == history.labels_within(budgets)


@given(st.permutations([0.4, 0.9, 1.5]))
@settings(max_examples=6)
def test_sorting_never_releases_fewer_labels(moves):
    budgets = np.array([1.0, 2.0, 3.0])
    history = history_of(moves, 400)
    assert sorted_apart(history, budgets) >= history.labels_within(budgets)


def test_the_strictest_group_pays_twice():
    """Δ = 0.92, 1.25, 0.46 at ε = 1, 2, 3: sorted, the third group stands in for the first."""
    history = history_of([0.9157, 1.2549, 0.4579])
    budgets = np.array([1.0, 2.0, 3.0])
    tied, apart = history.labels_within(budgets), sorted_apart(history, budgets)
    assert apart / tied == pytest.approx((0.9157 / 0.4579) ** 2, rel=0.05)
    assert history.at_labels(apart)[-1, 0] == pytest.approx(2.0, rel=0.02)


@pytest.fixture(scope="module")
def explained():
    return explain_table1(Laboratory(Options(quick=True, n_jobs=1)))


def test_sensitivities_of_the_printed_algorithm(explained):
    moves = {(one.setup[:3], one.variant): one.sensitivities for one in explained}
    # 25 teachers: 14, 9 and 2 in the groups of 54, 37 and 9 percent. Weights ∝ ε·n, Σ of all = 25.
    weights = np.array([1 * 14, 2 * 9, 3 * 2])
    weights = weights * 25 / (weights * np.array([14, 9, 2])).sum()
    np.testing.assert_allclose(moves["54%", "algorithm2"], weights, rtol=1e-5)
    np.testing.assert_allclose(
        np.array(moves["54%", "weighting"]) / moves["54%", "weighting"][0], [1, 2, 3], rtol=1e-5
    )


def test_only_the_printed_algorithm_gains_from_sorting(explained):
    for one in explained:
        if one.variant == "algorithm2":
            assert one.sorted_apart > one.tied
            assert max(np.array(one.spent_apart) / one.budgets) > 1
        else:
            assert one.sorted_apart == one.tied
            assert (np.array(one.spent_apart) <= one.budgets).all()
        assert f"published {one.published} labels" in explanation(one)[1]
