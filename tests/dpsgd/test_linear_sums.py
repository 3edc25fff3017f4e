"""Clipped sums of linear models: beside brute force, at their bounds, and between neighbours."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.dpsgd import linear_sums
from collegium.dpsgd.grid import MAX_NOISE, UNIT, noisy
from collegium.dpsgd.linear_sums import (
    InMemory,
    Terms,
    blocks_of,
    exact_scores,
    require_exact,
    to_features,
)
from collegium.dpsgd.losses import CrossEntropy, SquaredError
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError
from collegium.mechanisms import SecureNoise


def terms(clips, weights=None, rates=None, clip_norm=0.5):
    clips = np.asarray(clips, dtype=float)
    weights = np.ones(len(clips)) if weights is None else np.asarray(weights, dtype=float)
    rates = np.ones(len(clips)) if rates is None else np.asarray(rates, dtype=float)
    return Terms(rates, clips, weights, clip_norm)


def table(seed, n, d=5, owners=None, n_groups=3):
    random = np.random.default_rng(seed)
    owner = np.arange(n) if owners is None else random.integers(owners, size=n)
    owner = np.unique(owner, return_inverse=True)[1]
    X = random.normal(size=(n, d)) * 0.4
    y = random.integers(3, size=n)
    return X, y, owner, random.integers(n_groups, size=owner.max() + 1)


def total(X, y, owner, groups, its, parameters, loss=None, sample=None, threads=None):
    loss = CrossEntropy(3) if loss is None else loss
    blocks = list(blocks_of(to_features(X), y, owner, groups, loss.n_outputs))
    return InMemory(blocks, loss, its, threads).clipped_sum(
        parameters, Sample() if sample is None else sample
    )


def by_hand(X, y, owner, groups, its, parameters, loss):
    """Every record's gradient is formed, every owner's clipped, in the plainest way."""
    features = to_features(X) / 2.0**15
    clipped = np.zeros((groups.size, *parameters.shape))
    for one in range(groups.size):
        gradient = np.zeros(parameters.shape)
        for row in np.flatnonzero(owner == one):
            error = loss.errors(features[[row]] @ parameters, y[[row]])[0]
            gradient += np.outer(features[row], error)
        norm = np.linalg.norm(gradient) / its.clip_norm
        weight, clip = its.weights[groups[one]], its.clips[groups[one]]
        clipped[one] = gradient / its.clip_norm * min(weight, clip / norm if norm else weight)
    return clipped


@pytest.mark.parametrize("owners", [None, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_gradients_formed_and_clipped_one_by_one(owners, weighted):
    X, y, owner, groups = table(0, 60, owners=owners)
    clips = [0.4, 1.0, 1.7]
    its = terms(clips, clips if weighted else None)
    parameters = np.random.default_rng(1).normal(size=(6, 3))
    expected = by_hand(X, y, owner, groups, its, parameters, CrossEntropy(3)).sum(axis=0)
    found = total(X, y, owner, groups, its, parameters) * UNIT
    # Errors are rounded to 2^-15 clip norms, each at most once per record.
    assert np.abs(found - expected).max() < 60 * 2.0**-15
    assert np.abs(expected).max() > 1


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 7, 40]),
    st.sampled_from([1e-3, 0.3, 30.0]),
    st.sampled_from([0.05, 0.5, 4.0]),
    st.booleans(),
)
def test_one_owner_moves_the_sum_by_no_more_than_the_clip(seed, records, size, clip_norm, weighted):
    random = np.random.default_rng(seed)
    X = np.clip(random.normal(size=(records, 4)) * size, -1, 1)
    y = random.integers(3, size=records)
    clip = float(random.uniform(0.01, 3))
    its = terms([clip], [clip] if weighted else None, clip_norm=clip_norm)
    owner, groups = np.zeros(records, dtype=int), np.zeros(1, dtype=int)
    parameters = random.normal(size=(5, 3)) * size
    units = total(X, y, owner, groups, its, parameters)
    squared = sum(int(unit) ** 2 for unit in units.ravel().tolist())  # exact
    assert squared <= int(clip**2 * 2.0**60)
    gradient = by_hand(X, y, owner, groups, its, parameters, CrossEntropy(3))[0]
    assert squared**0.5 * UNIT >= np.linalg.norm(gradient) * 0.9 - records * 2.0**-14


def test_who_stays_beyond_the_bound_however_often_it_is_shrunk_moves_nothing():
    """20 records that all but cancel each other: rounded one by one, they add up to 1.29 clips."""
    features = to_features(np.ones((20, 1)))
    errors = np.repeat([[1.0], [-0.999]], 10, axis=0)
    for clip, is_nothing in ((2.0**-12, True), (2.0**-10, False)):
        units = features.astype(float)
        lengths = linear_sums.lengths_of(features)
        rounded = linear_sums.bounded(errors, units, lengths, np.array([clip]), np.ones(1), 0.5, 20)
        assert np.linalg.norm(units.T @ rounded * UNIT) <= clip
        assert (not rounded.any()) == is_nothing


def test_other_owners_sums_are_the_same_bits_without_one_owner_and_on_any_number_of_threads():
    X, y, owner, groups = table(3, 9000, owners=8000)
    its = terms([0.4, 1.0, 1.7])
    parameters = np.random.default_rng(4).normal(size=(6, 3))
    whole = total(X, y, owner, groups, its, parameters, threads=1)
    assert (whole == total(X, y, owner, groups, its, parameters, threads=2)).all()
    for one in (0, 4000, int(owner.max())):
        kept = owner != one
        rest = np.delete(groups, one), np.where(owner > one, owner - 1, owner)[kept]
        without = total(X[kept], y[kept], rest[1], rest[0], its, parameters)
        alone = ~kept
        only = total(
            X[alone], y[alone], np.zeros(alone.sum(), dtype=int), groups[[one]], its, parameters
        )
        assert (whole - without == only).all()


@pytest.mark.parametrize("change", ["gone", "dark"])
def test_how_an_owner_is_rounded_does_not_depend_on_who_stands_beside(change):
    """With 20 records, a clip of 0.02 leaves room for rounding in dark records only, of 1.0 in all."""
    n, per_owner = 100, 20
    owner, X = np.repeat(np.arange(n), per_owner), np.zeros((n * per_owner, 4))
    X[:, 0] = 1.0
    groups = np.where(np.arange(n) == 0, 0, 1)
    its, parameters, y = terms([0.02, 1.0], [0.02, 1.0]), np.zeros((5, 3)), np.zeros(len(X), int)
    everybody = total(X, y, owner, groups, its, parameters)
    if change == "gone":
        rest = owner > 0
        without = total(X[rest], y[rest], owner[rest] - 1, groups[1:], its, parameters)
        allowed = 0.02
    else:
        X[owner == 0] = 0.0
        without, allowed = total(X, y, owner, groups, its, parameters), 2 * 0.02
    assert np.linalg.norm((everybody - without) * UNIT) <= allowed


@pytest.mark.parametrize("size", [1e-300, 5e-324, 1e300])
def test_scores_are_numbers_also_of_parameters_at_the_ends_of_floats(size):
    units = to_features(np.eye(3)).astype(float)
    scores = exact_scores(units, np.full((4, 2), size))
    assert np.abs(scores - size * 1.25).max() <= max(1.25 * size * 2.0**-12, 2.0**-1000)
    assert np.isnan(exact_scores(units, np.full((4, 2), 1.7e308))).all()


def test_scores_are_exact_so_that_no_other_record_can_change_them():
    random = np.random.default_rng(13)
    units = random.integers(-(2**15) + 1, 2**15, size=(70, 300)).astype(float)
    parameters = random.normal(size=(300, 3)) * np.exp(random.normal(size=(300, 3)) * 5)
    scores = exact_scores(units, parameters)
    for rows in (slice(0, 1), slice(3, 8), slice(11, 70)):
        assert (exact_scores(units[rows], parameters) == scores[rows]).all()
        assert (exact_scores(units[rows, ::-1], parameters[::-1]) == scores[rows]).all()
    true = units @ parameters / 2.0**15
    assert np.abs(scores - true).max() <= 300 * np.abs(parameters).max() * 2.0**-28
    assert np.isnan(exact_scores(units, np.full((300, 3), np.inf))).all()


def test_several_records_of_one_owner_are_clipped_together_and_not_one_by_one():
    X = np.tile(np.array([[0.5, 0.5]]), (100, 1))
    y, owner, groups = np.zeros(100, dtype=int), np.zeros(100, dtype=int), np.zeros(1, dtype=int)
    its = terms([1.0])
    one_owner = total(X, y, owner, groups, its, np.zeros((3, 3))) * UNIT
    assert 0.99 < np.linalg.norm(one_owner) <= 1
    many = total(X, y, np.arange(100), np.zeros(100, dtype=int), its, np.zeros((3, 3))) * UNIT
    assert np.linalg.norm(many) > 99


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_no_number_counts_as_none_and_harms_nobody(strange):
    X, y, owner, groups = table(5, 30)
    its = terms([0.4, 1.0, 1.7])
    X[7] = strange
    parameters = np.random.default_rng(6).normal(size=(6, 3))
    found = total(X, y, owner, groups, its, parameters)
    without = np.delete(np.arange(30), 7)
    rest = total(X[without], y[without], np.arange(29), groups[without], its, parameters)
    assert np.linalg.norm((found - rest) * UNIT) <= its.clips[groups[7]]
    wild = total(X, y, owner, groups, its, np.full((6, 3), strange))
    assert np.isfinite(wild * UNIT).all()


def test_squared_errors_and_two_classes_have_one_score():
    X, y, owner, groups = table(8, 40)
    its = terms([0.4, 1.0, 1.7])
    for loss, targets in product([CrossEntropy(2)], [np.minimum(y, 1)]):
        parameters = np.random.default_rng(9).normal(size=(6, 1))
        expected = by_hand(X, targets, owner, groups, its, parameters, loss).sum(axis=0)
        found = total(X, targets, owner, groups, its, parameters, loss) * UNIT
        assert np.abs(found - expected).max() < 40 * 2.0**-15
    targets = np.random.default_rng(10).uniform(-1, 1, size=40)
    parameters = np.random.default_rng(9).normal(size=(6, 1))
    expected = by_hand(X, targets, owner, groups, its, parameters, SquaredError()).sum(axis=0)
    found = total(X, targets, owner, groups, its, parameters, SquaredError()) * UNIT
    assert np.abs(found - expected).max() < 40 * 2.0**-15


def test_owners_are_sampled_and_not_records_each_at_the_rate_of_their_group():
    # 4,000 owners of 1, 2 or 3 records. A count is beyond 5 standard deviations once in 1.7 million.
    random = np.random.default_rng(11)
    counts = random.integers(1, 4, size=4000)
    owner = np.repeat(np.arange(4000), counts)
    groups = np.repeat([0, 1], 2000)
    X = np.zeros((len(owner), 2))
    rates = np.array([0.1, 0.3])
    its = terms([1.0, 1.0], rates=rates, clip_norm=1e-2)
    blocks = list(blocks_of(to_features(X), np.zeros(len(owner), int), owner, groups, 3))
    sample = Sample.seeded(0, 0)
    taken = np.concatenate([sample.takes_part(rates[b.groups], b.name) for b in blocks])
    of_group = np.concatenate([b.groups for b in blocks])
    for group, rate in enumerate(rates):
        expected, spread = 2000 * rate, np.sqrt(2000 * rate * (1 - rate))
        assert abs(taken[of_group == group].sum() - expected) < 5 * spread
    # Everybody's contribution is one unit long: the sum of those who take part is as long as they are many.
    found = InMemory(blocks, CrossEntropy(3), its).clipped_sum(np.zeros((3, 3)), sample) * UNIT
    assert np.linalg.norm(found) == pytest.approx(taken.sum(), rel=1e-3)


def test_coins_are_fresh_for_every_step_and_the_same_for_who_asks_again():
    rates = np.full(1000, 0.5)
    one, other = Sample.fresh(), Sample.fresh()
    assert (one.takes_part(rates, "a") == one.takes_part(rates, "a")).all()
    agree = (one.takes_part(rates, "a") == other.takes_part(rates, "a")).mean()
    assert 0.4 < agree < 0.6  # beyond 6 standard deviations: once in 500 million
    assert 0.4 < (one.takes_part(rates, "a") == one.takes_part(rates, "b")).mean() < 0.6
    assert one.takes_part(np.ones(50), "a").all() and not one.takes_part(np.zeros(50), "a").any()


@pytest.mark.parametrize("rate", [2.0**-64, 1e-9, 0.1, 0.5, 2 / 3, 0.99, 1 - 2.0**-53])
def test_a_coin_of_64_bits_falls_below_its_rate_exactly(rate, monkeypatch):
    """Of 2^64 coins those below ⌊rate · 2^64⌋ take part: a rate that is a little larger is noticed."""
    bound = int(Fraction(rate) * 2**64)
    coins = np.array([0, bound - 1, bound, 2**64 - 1], dtype="<u8")

    class Thrown:
        def __init__(self, _): ...

        def digest(self, length):
            assert length == coins.nbytes
            return coins.tobytes()

    monkeypatch.setattr("collegium.dpsgd.sampling.hashlib.shake_256", Thrown)
    assert Sample(b"key").takes_part(np.full(4, rate), "").tolist() == [True, True, False, False]


def test_an_empty_sample_is_noised_as_any_other():
    X, y, owner, groups = table(12, 30)
    its = terms([1.0] * 3, rates=[1e-18] * 3)
    found = total(X, y, owner, groups, its, np.zeros((6, 3)), sample=Sample.fresh())
    assert not found.any()
    released = noisy(found, 2.0, SecureNoise(), step=0)
    # 18 values with standard deviation 2 are all below 1e-3 once in 1e60.
    assert np.abs(released).max() > 1e-3
    assert (released / UNIT == np.rint(released / UNIT)).all()


def test_noise_is_on_the_grid_and_as_large_as_was_said():
    released = noisy(np.zeros((200, 100), dtype=np.int64), 37.5, SecureNoise(), step=0)
    assert (released / UNIT == np.rint(released / UNIT)).all()
    # Standard deviation of 20,000 values: beyond 6 of its own standard deviations once in 500 million.
    assert abs(released.std() / 37.5 - 1) < 6 / np.sqrt(2 * 20000)
    with pytest.raises(InputError, match="clip norms"):
        noisy(np.zeros(3, dtype=np.int64), MAX_NOISE * 1.01, SecureNoise(), step=0)


def test_clips_that_could_leave_the_whole_numbers_are_refused():
    require_exact(terms([1.0], clip_norm=0.01), [10**7])
    with pytest.raises(InputError, match="too small for exact sums"):
        require_exact(terms([1.0], clip_norm=1e-4), [10**7])
    with pytest.raises(InputError, match="too small for exact sums"):
        require_exact(terms([500.0], clip_norm=1.0), [10**8])


@pytest.mark.parametrize("per_owner", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("spread", [1.0, 1e-9])
def test_norms_that_are_not_formed_are_bounds_that_lose_nothing(per_owner, spread):
    """Also where an owner's gradients all but cancel each other, which leaves little but rounding."""
    random = np.random.default_rng(13)
    rows = 40 * per_owner
    units = random.integers(-(2**15) + 1, 2**15, size=(rows, 12)).astype(float)
    errors = random.normal(size=(rows, 8))
    if per_owner > 1:
        units = np.repeat(units[::per_owner], per_owner, axis=0)
        signs = np.resize([1.0, -1.0], per_owner)
        signs[-1] -= signs.sum()
        errors = np.repeat(errors[::per_owner], per_owner, axis=0) * np.tile(signs, 40)[:, None]
        errors += spread * random.normal(size=errors.shape)
    lengths = np.sqrt((units**2).sum(axis=1)) * 2.0**-15
    found = linear_sums._norms(errors, units, lengths, per_owner)
    for owner in range(40):
        some = slice(owner * per_owner, (owner + 1) * per_owner)
        exact = [
            sum(Fraction(e) * int(x) for e, x in zip(errors[some, i], units[some, j], strict=True))
            for i in range(8)
            for j in range(12)
        ]
        square = float(sum(value**2 for value in exact) / 2**30)
        assert found[owner] * (1 + 2.0**-45) >= np.sqrt(square)
        together = (np.linalg.norm(errors[some], axis=1) * lengths[some]).sum()
        assert found[owner] ** 2 <= square * (1 + 2.0**-40) + 2.0**-40 * together**2
