"""A distinguishing game against the steps of DP-SGD: what an attacker finds stays below what was charged.

The attacker knows everything but whether one owner's record is there, sees every noisy step, and has made the
record so that its clipped gradient is always as long as its bound, in a direction of its own. An event is
learnt on half of the runs and judged on the other. Noise is the operating system's. Lower bounds hold with
probability 1 - 1e-6, so that a sound mechanism fails at most once in a million runs of this test. That an
attacker finds more than 0.8 μ is 6 standard deviations from failing (ε = 1: lower bounds of 0.89 ± 0.014 μ
in 100 repetitions of the test; ε = 4: 0.959 ± 0.006 μ), and that half of the noise is noticed more than 50.
"""

import numpy as np
import pytest

from collegium import Budget, Budgets
from collegium.accounting import gdp_mu
from collegium.attacks.bounds import binomial_bounds, epsilon_from_rates, mu_from_rates
from collegium.dpsgd.grid import noisy
from collegium.dpsgd.linear_sums import CONSTANT
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.sampling import Sample
from collegium.dpsgd.settings import DPSGDSettings
from collegium.mechanisms import SecureNoise
from collegium.runs.records import Records

RUNS, STEPS, DELTA = 100_000, 3, 1e-2
GROUPS = {"strict": Budget(1.0, DELTA), "generous": Budget(4.0, DELTA)}
pytestmark = pytest.mark.filterwarnings("ignore:group .* was declared", "ignore:δ is large")


def world(group, there):
    """Everybody's records are blank, but for the owner's, which is there or not."""
    X = np.zeros((20, 3))
    X[0] = [1.0, 0.0, 0.0]
    budgets = Budgets(GROUPS, [list(GROUPS).index(group)] + [0, 1] * 9 + [0])
    rows = np.arange(0 if there else 1, 20)
    records = Records(X[rows], np.zeros(len(rows), int), budgets[rows], np.arange(2), None)
    records.budgets.declare({"strict": 10, "generous": 10})
    its = DPSGDSettings(steps=STEPS, clip_norm=0.3)
    run = DPSGDRun(DPSGDRecipe(its), records)
    return run, run.summands()


def played(group, there, noise):
    """Sum of the noisy steps of many runs, along the direction in which this owner moves them."""
    run, summands = world(group, there)
    moved = summands.clipped_sum(np.zeros((4, 1)), Sample())[
        [0, 3], 0
    ]  # its feature, and the constant
    steps = np.broadcast_to(moved, (RUNS, STEPS, 2)).copy()
    seen = noisy(steps, run.plan.noise * noise, SecureNoise(), step=0)
    return (seen @ [1, CONSTANT]).sum(axis=1)


def found(group, noise=1.0):
    seen, blank = (played(group, there, noise) for there in (True, False))
    run = world(group, True)[0]
    half = RUNS // 2
    sign = np.sign(seen[:half].mean() - blank[:half].mean())
    lower_epsilon = lower_mu = 0.0
    for bound in np.quantile(sign * blank[:half], [0.5, 0.8, 0.95]):
        hits = np.array([(sign * values[half:] > bound).sum() for values in (seen, blank)])
        low, high = binomial_bounds(hits, RUNS - half, 1e-6 / 6)
        lower_epsilon = max(lower_epsilon, float(epsilon_from_rates(low[0], high[1], DELTA)))
        lower_mu = max(lower_mu, float(mu_from_rates(low[0], high[1])))
    return lower_epsilon, lower_mu, run


@pytest.mark.parametrize("group", GROUPS)
def test_an_attacker_finds_less_than_was_charged_and_more_than_nothing(group):
    lower_epsilon, lower_mu, run = found(group)
    claim = run.plan.epsilon()[group]
    assert lower_epsilon <= claim <= GROUPS[group].epsilon
    mu = gdp_mu(GROUPS[group].epsilon, DELTA)
    assert 0.8 * mu < lower_mu <= mu


def test_the_game_notices_half_of_the_noise():
    _, lower_mu, _ = found("generous", noise=0.5)
    assert lower_mu > gdp_mu(GROUPS["generous"].epsilon, DELTA)
