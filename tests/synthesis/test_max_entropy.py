"""The fitted distribution: its gradient, its optimum, and iterative proportional fitting beside it."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from collegium.synthesis import max_entropy
from collegium.synthesis.junction_tree import JunctionTree
from collegium.synthesis.max_entropy import SOFTNESS, Marginal, fit

SIZES = (3, 4, 2, 3)
PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3)]


def summed(table, columns):
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in columns))


def spread(table, columns):
    return table.reshape([SIZES[axis] if axis in columns else 1 for axis in range(len(SIZES))])


def joint_of(beliefs, thetas):
    found = np.ones(SIZES)
    for factor, theta in zip(beliefs.factors, thetas, strict=True):
        found = found * spread(np.exp(theta), factor)
    return found / found.sum()


def truth(seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(SIZES)), 0.7)).reshape(SIZES)


def proportionally_fitted(marginals, possible=None):
    """Iterative proportional fitting over all rows (Deming & Stephan 1940): the maximum-entropy solution."""
    found = np.ones(SIZES) if possible is None else possible.astype(float)
    for _ in range(3000):
        for one in marginals:
            now = summed(found, one.columns)
            ratio = np.divide(one.shares, now, out=np.zeros_like(now), where=now > 0)
            found = found * spread(ratio, one.columns)
    return found


def exact(table, sd=1e-6):
    return [Marginal(pair, summed(table, pair), np.asarray(sd)) for pair in PAIRS]


def test_the_gradient_is_that_of_the_dual(monkeypatch):
    """Numerical differentiation at random points, with noise that differs from cell to cell, and zeros."""
    duals = []

    def listened(dual, start, **named):
        duals.append((dual, start))
        return minimize(dual, start, **named)

    minimize = max_entropy.minimize
    monkeypatch.setattr(max_entropy, "minimize", listened)
    rng = np.random.default_rng(3)
    marginals = [
        Marginal(
            pair,
            summed(truth(), pair) + rng.normal(0, 0.02, [SIZES[c] for c in pair]),
            rng.uniform(0.005, 0.05, [SIZES[c] for c in pair]),
        )
        for pair in PAIRS
    ]
    zeros = {(0, 3): rng.random((3, 3)) < 0.3}
    tree = JunctionTree.of(SIZES, [*PAIRS, (0, 3)])
    fit(tree, marginals, zeros)
    (dual, start), *_ = duals
    for _ in range(5):
        at = rng.normal(0, 0.5, len(start))
        _, gradient = dual(at)
        expected = approx_fprime(at, lambda where: dual(where)[0], 1e-6)
        assert gradient == pytest.approx(expected, abs=2e-5)


def test_each_cell_is_missed_by_its_share_of_the_penalty():
    """At the optimum p - ȳ = -κ s² θ with κ = ρ/s of a typical cell: what the module says, cell by cell."""
    rng = np.random.default_rng(4)
    marginals = [
        Marginal(
            pair,
            summed(truth(1), pair) + rng.normal(0, 0.02, [SIZES[c] for c in pair]),
            rng.uniform(0.01, 0.04, [SIZES[c] for c in pair]),
        )
        for pair in PAIRS
    ]
    beliefs, thetas = fit(JunctionTree.of(SIZES, PAIRS), marginals)
    table = joint_of(beliefs, thetas)
    typical = np.sqrt(np.mean(np.concatenate([one.sd.ravel() for one in marginals]) ** 2))
    for one, theta in zip(marginals, thetas[: len(marginals)], strict=True):
        missed = summed(table, one.columns) - one.shares
        assert missed == pytest.approx(-SOFTNESS / typical * one.sd**2 * theta, abs=2e-4)


def test_consistent_marginals_come_back_and_nothing_else_is_assumed():
    """Without noise the fit is the maximum-entropy table: that of iterative proportional fitting."""
    marginals = exact(truth(2))
    beliefs, thetas = fit(JunctionTree.of(SIZES, PAIRS), marginals)
    table, expected = joint_of(beliefs, thetas), proportionally_fitted(marginals)
    for one in marginals:
        assert summed(table, one.columns) == pytest.approx(one.shares, abs=1e-4)
    assert table == pytest.approx(expected, abs=1e-4)
    # The real table has the same marginals and less entropy: its further structure is not made up.
    real = truth(2)
    assert -(table * np.log(table)).sum() > -(real * np.log(real)).sum() + 0.01


def test_known_zeros_stay_zero_and_the_rest_fits():
    rng = np.random.default_rng(5)
    possible = np.ones(SIZES, dtype=bool)
    impossible = np.zeros((SIZES[0], SIZES[3]), dtype=bool)
    impossible[0, 1] = impossible[2, 0] = impossible[1, 2] = True
    possible &= spread(~impossible, (0, 3))
    real = rng.dirichlet(np.ones(possible.size)).reshape(SIZES) * possible
    real /= real.sum()
    marginals = exact(real)
    tree = JunctionTree.of(SIZES, [*PAIRS, (0, 3)])
    beliefs, thetas = fit(tree, marginals, {(0, 3): impossible})
    table = joint_of(beliefs, thetas)
    assert (summed(table, (0, 3))[impossible] == 0).all()
    assert table == pytest.approx(proportionally_fitted(marginals, possible), abs=2e-4)
    unaware, plain = fit(tree, marginals)  # without being told, it takes them for possible
    assert (summed(joint_of(unaware, plain), (0, 3))[impossible] > 0).all()


def test_nothing_measured_is_the_uniform_table():
    beliefs, thetas = fit(
        JunctionTree.of(SIZES, [(0,)]), [], {(0,): np.array([True, False, False])}
    )
    found = beliefs.marginal(beliefs.tables(thetas)[0], (0,))
    assert found == pytest.approx([0, 0.5, 0.5], abs=1e-15)


def test_what_contradicts_itself_is_averaged_by_the_inverse_of_variances():
    """Two measurements of one column, one with half the error: the fit is nearer to it, as 4 to 1."""
    sizes = (2, 2)
    certain = Marginal((0,), np.array([0.6, 0.4]), np.asarray(0.01))
    vague = Marginal((0, 1), np.full((2, 2), 0.25), np.asarray(0.02 / np.sqrt(2)))
    tree = JunctionTree.of(sizes, [(0,), (0, 1)])
    beliefs, thetas = fit(tree, [certain, vague], softness=1e-3)
    share = beliefs.marginal(beliefs.tables(thetas)[0], (0,))[0]
    # The pair's sums have the standard deviation .02, so the mean is (4 · .6 + .5) / 5 = .58.
    assert share == pytest.approx(0.58, abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_noise_makes_the_fit_no_further_from_the_truth_than_it_is_itself(seed):
    """The fit of noisy marginals is a projection: in total its squares are below those of the noise."""
    rng = np.random.default_rng(seed)
    real, sd = truth(seed), 0.02
    pairs = list(combinations(range(4), 2))
    marginals = [
        Marginal(
            pair, summed(real, pair) + rng.normal(0, sd, [SIZES[c] for c in pair]), np.asarray(sd)
        )
        for pair in pairs
    ]
    beliefs, thetas = fit(JunctionTree.of(SIZES, pairs), marginals)
    table = joint_of(beliefs, thetas)
    fitted = sum(
        ((summed(table, one.columns) - summed(real, one.columns)) ** 2).sum() for one in marginals
    )
    noise = sum(((one.shares - summed(real, one.columns)) ** 2).sum() for one in marginals)
    assert fitted < 0.75 * noise
