"""Which pairs are measured, what public records add, and what must hold of both."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.synthesis.junction_tree import cells_needed
from collegium.synthesis.max_entropy import Marginal
from collegium.synthesis.measurements import joined, public_marginal
from collegium.synthesis.selection import chosen_pairs

SIZES = (5, 6, 4, 7, 5, 6, 4, 7, 5, 6)
PAIRS = [(a, b) for a in range(10) for b in range(a + 1, 10)]
FIXED = [(one,) for one in range(10)]


def chosen(sigma, seed=0, most_cells=1 << 16, n=10_000, signal=0.2):
    """Pairs of ten columns: a third of them differ from what is expected, by a share of the people."""
    rng = np.random.default_rng(seed)
    own = [rng.dirichlet(np.ones(size)) for size in SIZES]
    expected = [n * np.outer(own[a], own[b]) for a, b in PAIRS]
    apart = np.where(np.arange(len(PAIRS)) % 3 == 0, signal * n * rng.random(len(PAIRS)), 0)
    return chosen_pairs(
        apart, 0.0, PAIRS, expected, lambda m: sigma * math.sqrt(m), SIZES, FIXED, most_cells
    ), apart


def test_the_noisier_the_fewer():
    counts = [len(chosen(sigma)[0]) for sigma in (1.0, 10.0, 30.0, 100.0, 1000.0, 1e5)]
    assert counts == sorted(counts, reverse=True) and counts[0] >= 10 and counts[-1] == 0
    assert len(set(counts)) >= 4  # it is not one threshold


def test_what_gains_nothing_is_not_measured_and_the_best_come_first():
    pairs, apart = chosen(1.0)
    assert 0 not in apart[[PAIRS.index(one) for one in pairs]]
    few, _ = chosen(30.0)
    ranked = [PAIRS[place] for place in np.argsort(-apart)]
    # With equal noise, what is taken is about what differs most.
    assert set(few[: len(few) // 2]) <= set(ranked[: 2 * len(few)])


@given(st.sampled_from([300, 700, 2_000, 20_000]), st.integers(0, 20))
def test_the_tree_keeps_its_cells(most_cells, seed):
    pairs, _ = chosen(1.0, seed, most_cells, signal=0.5)
    assert cells_needed(SIZES, [*FIXED, *pairs]) <= most_cells
    assert len(set(pairs)) == len(pairs)
    larger, _ = chosen(1.0, seed, 10 * most_cells, signal=0.5)
    assert len(larger) >= len(pairs)


def test_a_tree_that_is_large_anyway_may_grow_to_twice_its_size():
    """What must be in the tree exceeds the limit alone: pairs that cost little more are still measured."""
    sizes = (40, 50, 2, 2)
    expected = np.full((2, 2), 2500.0)
    pairs = chosen_pairs(
        np.array([5000.0]),
        0.0,
        [(2, 3)],
        [expected],
        lambda m: 1.0,
        sizes,
        [(0, 1)],
        most_cells=100,
    )
    assert pairs == [(2, 3)]


def test_no_candidates_are_no_pairs():
    assert chosen_pairs(np.array([]), 0.0, [], [], lambda m: 1.0, SIZES, FIXED) == []
    even = np.ones((5, 6))
    assert chosen_pairs(np.array([0.0]), 0.0, [(0, 1)], [even], lambda m: 1.0, SIZES, FIXED) == []


# ------------------------------------------------------------------- public records beside noisy counts


@given(st.integers(0, 2**32 - 1), st.floats(1e-4, 0.1), st.floats(1e-4, 0.1))
def test_what_agrees_never_adds_variance(seed, own, its):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(12)).reshape(3, 4)
    one = Marginal((0, 1), shares, np.asarray(own))
    other = Marginal((0, 1), shares, rng.uniform(0.5, 1, (3, 4)) * its)
    found = joined(one, other)
    assert found.bias == 0
    assert (found.marginal.sd <= np.minimum(own, other.sd) * (1 + 1e-12)).all()
    exact = 1 / np.sqrt(1 / own**2 + 1 / other.sd**2)
    assert found.marginal.sd == pytest.approx(exact)
    assert found.marginal.shares == pytest.approx(shares)


def test_joining_is_better_than_either_where_both_are_right():
    """Mean squared error over 400 pairs of noisy marginals; two thirds is 20 standard errors away."""
    rng = np.random.default_rng(1)
    real = rng.dirichlet(np.ones(20))
    errors = np.zeros(3)
    for _ in range(400):
        a, b = (real + rng.normal(0, 0.01, 20) for _ in range(2))
        both = joined(
            Marginal((0,), a, np.asarray(0.01)), Marginal((0,), b, np.asarray(0.01))
        ).marginal.shares
        errors += [((one - real) ** 2).sum() for one in (a, b, both)]
    assert errors[2] < 0.67 * min(errors[:2])


def test_what_is_about_other_people_is_discounted():
    """A biased other: found to be so, and the further off it is, the less it moves what was measured."""
    rng = np.random.default_rng(2)
    real, elsewhere = rng.dirichlet(np.ones(20)), rng.dirichlet(np.ones(20))
    trusted = Marginal((0,), real + rng.normal(0, 0.005, 20), np.asarray(0.005))
    moved, errors = [], []
    for part in (0.0, 0.2, 0.5, 1.0):
        other = Marginal((0,), real + part * (elsewhere - real), np.asarray(0.0005))
        found = joined(trusted, other)
        distance = np.abs(other.shares - trusted.shares).sum()
        moved.append(np.abs(found.marginal.shares - trusted.shares).sum() / distance)
        errors.append(float(np.sqrt(((found.marginal.shares - real) ** 2).sum())))
        assert (found.marginal.sd <= 0.005).all()
    assert moved == sorted(moved, reverse=True) and moved[0] > 0.95 and moved[-1] < 0.3
    alone = float(np.sqrt(((trusted.shares - real) ** 2).sum()))
    assert errors[0] < 0.2 * alone and errors[-1] < 1.5 * alone
    naive = np.abs(elsewhere - real)  # what believing the other would have cost
    assert errors[-1] < 0.2 * float(np.sqrt((naive**2).sum()))


def test_public_marginals_have_binomial_errors_and_none_is_zero():
    rng = np.random.default_rng(3)
    codes = np.stack([rng.choice(4, 500, p=[0.7, 0.2, 0.1, 0.0]), rng.integers(0, 3, 500)], axis=1)
    one = public_marginal(codes, (0, 1), (4, 3), np.inf)
    assert one.shares.sum() == pytest.approx(1) and (one.shares[3] == 0).all()
    assert (one.sd > 0).all() and one.sd[3].max() < one.sd[:3].min()
    p = one.shares[0]
    assert one.sd[0] == pytest.approx(np.sqrt(p * (1 - p) / 500), rel=0.02)
