"""The account of many votes at once: the same numbers as a loop, in bounded memory, at any cut."""

import subprocess
import sys
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import reference_loop as loop
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.accounting.accountant import DataDependentAccountant
from collegium.accounting.renyi import DEFAULT_ORDERS, SEED_ORDERS
from collegium.accounting.votes.laplace_max import lnmax_log_q, lnmax_rdp
from collegium.accounting.votes.noisy_max import (
    gnmax_log_q,
    gnmax_rdp,
    threshold_log_q,
    threshold_rdp,
)
from collegium.accounting.votes.stream import account_votes

SENSITIVITY = np.array([0.0, 0.55, 1.03, 1.48])
CHECKED = {"sigma": 40.0, "threshold": 200.0, "sigma_threshold": 150.0}


def votes(n_queries, n_classes=10, seed=0):
    generator = np.random.default_rng(seed)
    counts = np.floor(generator.dirichlet(np.full(n_classes, 0.2), n_queries) * 250)
    counts[:, 0] += 250 - counts.sum(axis=1)
    return counts, generator.random(n_queries) < 0.5


@pytest.mark.parametrize("orders", [SEED_ORDERS, np.array([1.5, 2.0, 17.25, 400.0])])
def test_confident_gnmax_is_what_the_loop_gives(orders):
    counts, answered = votes(400)
    spent = account_votes([(counts, answered)], SENSITIVITY, orders, **CHECKED, total_weight=250)
    rows = counts.tolist()
    for group, moves in enumerate(SENSITIVITY):
        for column, order in enumerate(orders):
            expected = loop.confident_gnmax_total(rows, answered, moves, 200.0, 150.0, 40.0, order)
            assert spent.sensitive_rdp[group, column] == pytest.approx(expected, rel=1e-12)
    assert (spent.n_queries, spent.n_answered) == (400, answered.sum())


@pytest.mark.parametrize(("option", "total"), [("sigma", 25.0), ("gamma", 0.07)])
def test_gnmax_and_lnmax_are_what_the_loop_gives(option, total):
    counts, _ = votes(150)
    of_loop = loop.gnmax_total if option == "sigma" else loop.lnmax_total
    spent = account_votes([counts], SENSITIVITY, SEED_ORDERS, **{option: total})
    for group, moves in enumerate(SENSITIVITY):
        for column in (0, 5, 48):
            expected = of_loop(counts.tolist(), moves, total, SEED_ORDERS[column])
            assert spent.sensitive_rdp[group, column] == pytest.approx(expected, rel=1e-12)


ORDERS = {"seed": SEED_ORDERS, "default": DEFAULT_ORDERS}


@cache
def account_of_2000(orders):
    return account_votes([votes(2000)], SENSITIVITY, ORDERS[orders], **CHECKED)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 1999), max_size=8), st.sampled_from(sorted(ORDERS)))
def test_how_votes_are_cut_into_blocks_does_not_matter(cuts, orders):
    counts, answered = votes(2000)
    whole = account_of_2000(orders)
    edges = [0, *sorted(set(cuts)), 2000]
    blocks = ((counts[first:last], answered[first:last]) for first, last in pairwise(edges))
    cut = account_votes(blocks, SENSITIVITY, ORDERS[orders], **CHECKED)
    assert cut.sensitive_rdp == pytest.approx(whole.sensitive_rdp, rel=1e-14, abs=0)
    assert (cut.n_queries, cut.n_answered) == (whole.n_queries, whole.n_answered)


def test_it_is_the_account_of_a_job_that_charges_query_by_query():
    counts, answered = votes(300)
    account = DataDependentAccountant(np.full(4, np.inf), 1e-5, DEFAULT_ORDERS)
    for row, is_answered in zip(counts, answered, strict=True):
        log_q = threshold_log_q([row.max()], 200.0, 150.0)
        account.charge(threshold_rdp(log_q, SENSITIVITY, 150.0, DEFAULT_ORDERS)[0])
        if is_answered:
            log_q = gnmax_log_q(row[None], 40.0)
            account.charge(gnmax_rdp(log_q, SENSITIVITY, 40.0, DEFAULT_ORDERS)[0])
    spent = account_votes([(counts, answered)], SENSITIVITY, DEFAULT_ORDERS, **CHECKED)
    assert spent.sensitive_rdp == pytest.approx(account.sensitive_rdp, rel=1e-12, abs=0)


def test_sums_are_never_below_the_exact_sum():
    from fractions import Fraction

    counts, _ = votes(500)
    each = lnmax_rdp(lnmax_log_q(counts, 0.05), [1.0], 0.05, [2.0, 30.0])
    spent = account_votes([counts], [1.0], [2.0, 30.0], gamma=0.05).sensitive_rdp
    for column in range(2):
        exact = sum(map(Fraction, each[:, 0, column].tolist()))
        assert exact <= Fraction(float(spent[0, column])) <= exact * (1 + Fraction(1, 10**12))


def test_no_votes_cost_nothing():
    assert not account_votes([], SENSITIVITY, SEED_ORDERS, **CHECKED).sensitive_rdp.any()


def test_memory_stays_bounded():
    """100,000 queries × 3 groups × 130 orders would be 300 MB at once."""
    program = (
        "import numpy as np, resource\n"
        "from collegium.accounting.votes.stream import account_votes\n"
        "from collegium.accounting.renyi import DEFAULT_ORDERS\n"
        "blocks = (np.tile([[200.0, 50.0], [130.0, 120.0]], (5000, 1)) for _ in range(10))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "spent = account_votes(blocks, [0.5, 1.0, 1.5], DEFAULT_ORDERS, sigma=40.0)\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(spent.n_queries, after - before)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    n_queries, kibibytes = map(int, run.stdout.split())
    assert n_queries == 100_000
    assert kibibytes < 60 * 1024
