"""Rare cells put together: sums stay, nothing is lost, numbers keep their order, values lie within."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.synthesis.coarsening import RARE, Coarsening
from collegium.synthesis.max_entropy import Marginal
from collegium.synthesis.measurements import coarse_marginal


@st.composite
def noisy_columns(draw):
    """Shares of a column's cells with noise, some of them rare."""
    n = draw(st.integers(1, 60))
    seed = draw(st.integers(0, 2**32 - 1))
    sd = draw(st.sampled_from([1e-4, 0.01, 0.1]))
    n_ordered = draw(st.sampled_from([0, n, n - 1]))
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n, 0.2)) + rng.normal(0, sd, n)
    return shares, sd, max(n_ordered, 0)


@given(noisy_columns())
def test_every_cell_has_one_place_and_within_adds_up(column):
    shares, sd, n_ordered = column
    one = Coarsening.of(shares, sd, n_ordered)
    assert one.place.shape == one.within.shape == shares.shape
    assert sorted(set(one.place.tolist())) == list(range(one.size))
    assert (one.within >= 0).all()
    assert np.bincount(one.place, weights=one.within) == pytest.approx(np.ones(one.size), abs=1e-12)
    # Only rare cells are put together with others.
    n_of = np.bincount(one.place)
    assert (shares[n_of[one.place] > 1] < RARE * sd).sum() >= (n_of[one.place] > 1).sum() - (
        n_of > 1
    ).sum()
    if n_ordered and not one.is_none:
        assert (np.diff(one.place[:n_ordered]) >= 0).all(), "intervals of numbers are neighbours"
        assert (np.diff(one.place[:n_ordered]) <= 1).all()
        missing = one.place[n_ordered:]
        assert not set(missing.tolist()) & set(one.place[:n_ordered].tolist())


@given(noisy_columns(), st.integers(1, 4))
def test_sums_of_a_marginal_stay_and_variances_add_up(column, others):
    shares, sd, n_ordered = column
    one = Coarsening.of(shares, sd, n_ordered)
    table = np.outer(shares, np.arange(1.0, others + 1))
    errors = np.broadcast_to(np.linspace(0.1, 0.2, len(shares))[:, None], table.shape)
    found = coarse_marginal(Marginal((0, 1), table, errors), [one, Coarsening.none(others)])
    assert found.shares.shape == (one.size, others)
    for cell in range(one.size):
        inside = one.place == cell
        assert found.shares[cell] == pytest.approx(table[inside].sum(axis=0))
        assert found.sd[cell] ** 2 == pytest.approx((errors[inside] ** 2).sum(axis=0))
    # And over a second axis.
    turned = coarse_marginal(Marginal((0, 1), table.T, errors.T), [Coarsening.none(others), one])
    assert turned.shares == pytest.approx(found.shares.T)


@given(noisy_columns(), st.integers(0, 3000), st.integers(0, 2**32 - 1))
def test_values_are_drawn_within_their_coarse_cell_in_its_shares(column, n, seed):
    shares, sd, n_ordered = column
    one, rng = Coarsening.of(shares, sd, n_ordered), np.random.default_rng(seed)
    coarse = rng.integers(0, one.size, n)
    drawn = one.drawn(coarse, rng)
    assert (one.place[drawn] == coarse).all()
    expected = np.bincount(coarse, minlength=one.size)[one.place] * one.within
    assert (np.abs(np.bincount(drawn, minlength=len(shares)) - expected) < 1 + 1e-6).all()
    assert (one.within[drawn] > 0).all()


def test_what_is_frequent_or_has_few_cells_stays_as_it_is():
    assert Coarsening.of(np.full(6, 0.001), 1.0).is_none  # six cells at most
    assert Coarsening.of(np.full(50, 0.02), 0.001).is_none  # nothing is rare
    assert Coarsening.of(np.array([0.5] * 9 + [0.0]), 0.01).is_none  # one alone has nobody to join


def test_rare_categories_are_one_cell_and_rare_numbers_runs_of_neighbours():
    shares = np.array([0.3, 0.001, 0.3, 0.002, 0.001, 0.001, 0.3, 0.0])
    categories = Coarsening.of(shares, 0.01)
    assert len(set(categories.place[[1, 3, 4, 5, 7]].tolist())) == 1 and categories.size == 4
    numbers = Coarsening.of(shares, 0.01, n_ordered=8)
    assert numbers.place.tolist() == [0, 1, 2, 3, 3, 3, 4, 5]


def test_a_run_ends_where_it_holds_enough():
    """Each of the runs of a long flat tail is worth three deviations of noise, so that some shape is left."""
    one = Coarsening.of(np.full(40, 0.02), 0.02, n_ordered=40)
    sums = np.bincount(one.place, weights=np.full(40, 0.02))
    assert (sums[:-1] >= RARE * 0.02 - 1e-12).all() and one.size >= 10


def test_parts_are_shrunk_towards_equal_ones_as_far_as_noise_explains_them():
    frequent = np.full(8, 0.1)
    rng = np.random.default_rng(0)
    noise = Coarsening.of(
        np.append(frequent, np.clip(rng.normal(0.001, 0.01, 20), -1, 0.0099)), 0.01
    )
    assert noise.within[8:] == pytest.approx(np.full(20, 0.05))  # nothing but noise: equal parts
    # One of five is 2.9 deviations up, more than noise explains: shrunk, and still the largest by far.
    place = np.append(np.arange(8), np.full(5, 8))
    signal = Coarsening.at(place, np.append(frequent, [0.029, 0.0, 0.0, 0.0, 0.0]), 0.01)
    kept = 1 - 4 * 0.01**2 / (0.029**2 * 0.8)
    assert signal.within[8] == pytest.approx(kept + (1 - kept) / 5)
    assert signal.within[9:] == pytest.approx(np.full(4, (1 - kept) / 5))


def test_averages_are_those_of_the_rows_that_are_spread_within():
    one = Coarsening(np.array([0, 0, 1]), np.array([0.25, 0.75, 1.0]))
    values = np.array([[1.0, 0.0, 0.5], [0.2, 0.4, 0.6]])
    assert one.averaged(values, 1) == pytest.approx(np.array([[0.25, 0.5], [0.35, 0.6]]))
