"""The published MNIST votes give the published epsilon."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from collegium.accounting import gdp_epsilon, rdp_to_epsilon
from collegium.accounting.renyi import SEED_ORDERS
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    lnmax_log_q,
    lnmax_rdp,
    threshold_log_q,
    threshold_rdp,
    threshold_rdp_data_independent,
)


def published(name):
    roots = [Path(__file__).resolve().parents[3].parent / "shared" / "data"]
    if os.environ.get("COLLEGIUM_DATA"):
        roots.insert(0, Path(os.environ["COLLEGIUM_DATA"]))
    for root in roots:
        if (root / "pate_votes" / name).exists():
            return np.load(root / "pate_votes" / name)
    return pytest.skip(f"needs pate_votes/{name}: set COLLEGIUM_DATA to the folder of pate_votes/")


def test_published_epsilon_of_lnmax():
    votes = published("mnist_250_teachers.npy")
    asked = published("mnist_250_teachers_100_indices_used_by_student.npy")
    orders = np.arange(1, 9) + 1.0  # moments 1..8
    rdp = lnmax_rdp(lnmax_log_q(votes[asked], 0.1), [1.0], 0.1, orders).sum(axis=0)
    epsilon, order = rdp_to_epsilon(rdp, orders, 1e-5, "mironov")
    assert epsilon[0] == pytest.approx(2.0486, abs=1e-4)
    assert order[0] == 9


class ConfidentRun:
    """T = 200, sigma_T = 150, sigma = 40 on the published votes, in file order, to 286 answers."""

    def __init__(self, votes, seed):
        rng = np.random.default_rng(seed)
        passed = votes.max(axis=1) + rng.normal(0, 150, len(votes)) >= 200
        self.n_checks = int(np.searchsorted(np.cumsum(passed), 286)) + 1
        checked = votes[: self.n_checks]
        log_q = gnmax_log_q(checked[passed[: self.n_checks]], 40.0)
        self.answers = gnmax_rdp(log_q, [1.0], 40.0, SEED_ORDERS).sum(axis=0)[0]
        log_q = threshold_log_q(checked.max(axis=1), 200.0, 150.0)
        self.checks = threshold_rdp(log_q, [1.0], 150.0, SEED_ORDERS).sum(axis=0)[0]

    def epsilon(self, conversion):
        return float(rdp_to_epsilon(self.answers + self.checks, SEED_ORDERS, 1e-5, conversion)[0])


def test_published_epsilon_of_confident_gnmax():
    votes = published("mnist_250_teachers.npy")
    run = ConfidentRun(votes, seed=2)
    assert run.epsilon("mironov") == pytest.approx(1.97, abs=0.03)
    assert run.epsilon("canonne") <= 1.72
    runs = [ConfidentRun(votes, seed) for seed in range(40)]
    spent = np.array([run.epsilon("mironov") for run in runs])
    # The noise decides which queries are answered: 400 seeds have mean 2.013, deviation 0.038.
    assert spent.mean() == pytest.approx(2.013, abs=4 * 0.038 / math.sqrt(40))
    assert spent.min() < 1.97 < spent.max()
    assert np.mean([run.n_checks for run in runs]) == pytest.approx(647, abs=4 * 27 / math.sqrt(40))


def test_at_published_scales_the_data_dependent_check_is_never_cheaper():
    votes = published("mnist_250_teachers.npy")
    log_q = threshold_log_q(votes.max(axis=1), 200.0, 150.0)
    dependent = threshold_rdp(log_q, [1.0], 150.0, SEED_ORDERS)
    independent = threshold_rdp_data_independent([1.0], 150.0, SEED_ORDERS)
    np.testing.assert_allclose(dependent, np.broadcast_to(independent, dependent.shape), rtol=1e-12)


def test_worst_case_of_the_published_run():
    mu = math.sqrt(640 / 150**2 + 2 * 283 / 40**2)
    assert gdp_epsilon(mu, 1e-5) == pytest.approx(2.53, abs=0.03)
