"""DP-SGD with a filter: nobody pays less than they moved the sum, and nobody more than they have."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from collegium.dpsgd.filtered import CENT_BITS, Filtered, allowances_of
from collegium.dpsgd.grid import UNIT_BITS
from collegium.dpsgd.linear_sums import Block, InMemory, Terms, blocks_of, to_features
from collegium.dpsgd.losses import CrossEntropy
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError

Floats = NDArray[np.float64]
LOSS = CrossEntropy(3)
EVERYBODY = Sample()
CLIPS = np.array([0.4, 1.3])
TERMS = Terms(np.ones(2), CLIPS, CLIPS, 0.7)


def people(n_owners: int = 9, most: int = 3, seed: int = 0) -> dict[str, Any]:
    """Owners with one to ``most`` records each, in two groups."""
    draw = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_owners), draw.integers(1, most + 1, n_owners))
    records = draw.normal(size=(len(owner), 4))
    records /= np.linalg.norm(records, axis=1, keepdims=True)
    return {
        "features": to_features(records),
        "targets": draw.integers(0, 3, len(owner)),
        "owner": owner,
        "groups": np.arange(n_owners) % 2,
    }


def blocks(given: dict[str, Any], without: int | None = None) -> list[Block]:
    """All blocks; or as if one owner's records were not there."""
    keep = given["owner"] != (-1 if without is None else without)
    arrays = {name: given[name][keep] for name in ("features", "targets", "owner")}
    return list(blocks_of(groups=given["groups"], n_outputs=3, **arrays))


def history(steps: int, seed: int, size: float = 3.0) -> list[Floats]:
    """Whatever was released before each step: an adversary's choice."""
    draw = np.random.default_rng(seed)
    return [size * draw.normal(size=(5, 3)) for _ in range(steps)]


def left_of(filtered: Filtered, given: dict[str, Any]) -> dict[int, int]:
    """What each owner has left, in cents, by owner."""
    counts = np.bincount(given["owner"], minlength=len(given["groups"]))
    left = {}
    for name, amounts in filtered.sensitive_left.items():
        _, per_owner, first = name.split("|")
        owners = np.flatnonzero(counts == int(per_owner))[int(first) :]
        left.update(zip(owners.tolist(), amounts.tolist(), strict=False))
    return left


def squared(units: NDArray[np.int64]) -> Fraction:
    """Squared norm of a vector on the grid, in squared clip norms: exact."""
    return Fraction(sum(int(value) ** 2 for value in units.ravel()), 2 ** (2 * UNIT_BITS))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    planned=st.integers(1, 3),
    taken=st.integers(1, 7),
    size=st.sampled_from([0.0, 0.5, 20.0]),
)
def test_what_an_owner_moves_is_what_that_owner_paid_and_never_more_than_there_was(
    seed: int, planned: int, taken: int, size: float
) -> None:
    given = people(seed=seed)
    released = history(taken, seed, size)
    with_all = Filtered(blocks(given), LOSS, TERMS, planned, n_threads=1)
    start = left_of(with_all, given)
    sums, paid = [], []
    for parameters in released:
        before = left_of(with_all, given)
        sums.append(with_all.clipped_sum(parameters, EVERYBODY))
        after = left_of(with_all, given)
        paid.append({owner: before[owner] - after[owner] for owner in before})
    for owner in (0, 1):  # one of each group: replay without them, on the same released history
        without = Filtered(blocks(given, owner), LOSS, TERMS, planned, n_threads=1)
        moved = Fraction(0)
        for step, parameters in enumerate(released):
            square = squared(sums[step] - without.clipped_sum(parameters, EVERYBODY))
            assert square <= Fraction(paid[step][owner], 2**CENT_BITS)
            assert square >= Fraction(paid[step][owner] - 2, 2**CENT_BITS)  # and no more than that
            assert square <= Fraction(float(CLIPS[owner])) ** 2
            moved += square
        assert moved <= Fraction(float(CLIPS[owner])) ** 2 * planned
        assert 0 <= left_of(with_all, given)[owner] == start[owner] - sum(p[owner] for p in paid)


def test_nobody_elses_account_depends_on_an_owner() -> None:
    given = people()
    with_all = Filtered(blocks(given), LOSS, TERMS, 2)
    without = Filtered(blocks(given, 4), LOSS, TERMS, 2)
    for parameters in history(5, seed=3):
        with_all.clipped_sum(parameters, EVERYBODY)
        without.clipped_sum(parameters, EVERYBODY)
    accounts = left_of(with_all, given)
    counts = np.bincount(given["owner"], minlength=9)
    counts[4] = 0
    theirs = {}
    for name, amounts in without.sensitive_left.items():
        _, per_owner, first = name.split("|")
        owners = np.flatnonzero(counts == int(per_owner))[int(first) :]
        theirs.update(zip(owners.tolist(), amounts.tolist(), strict=False))
    assert theirs == {owner: left for owner, left in accounts.items() if owner != 4}


def test_within_the_planned_steps_a_filter_changes_no_bit() -> None:
    given = people(40)
    plain = InMemory(blocks(given), LOSS, TERMS)
    filtered = Filtered(blocks(given), LOSS, TERMS, 6)
    for parameters in history(6, seed=5, size=20.0):
        np.testing.assert_array_equal(
            plain.clipped_sum(parameters, EVERYBODY), filtered.clipped_sum(parameters, EVERYBODY)
        )


def test_small_gradients_last_longer_and_who_has_nothing_left_gives_nothing() -> None:
    given = people(40, most=1)
    plain = InMemory(blocks(given), LOSS, TERMS)
    filtered = Filtered(blocks(given), LOSS, TERMS, 3)
    far = history(1, seed=7, size=50.0)[0]  # wrong by far about many: they pay in full
    seen = [filtered.clipped_sum(far, EVERYBODY) for _ in range(5)]
    left = np.concatenate(list(filtered.sensitive_left.values()))
    allowed = allowances_of(TERMS, 3)[given["groups"]]
    gone = left < 2**-20 * allowed
    assert gone.any() and not gone.all()  # who was rightly guessed has paid little
    np.testing.assert_array_equal(seen[2], plain.clipped_sum(far, EVERYBODY))
    assert np.abs(seen[4]).sum() < np.abs(seen[2]).sum()
    for _ in range(20):
        filtered.clipped_sum(far, EVERYBODY)
    used_up = np.concatenate(list(filtered.sensitive_left.values())) < 2**-20 * allowed
    assert (used_up | ~gone).all()


def test_after_a_crash_what_was_charged_and_forgotten_is_paid_in_full() -> None:
    given = people()
    steps = history(4, seed=11)
    whole = Filtered(blocks(given), LOSS, TERMS, 9)
    for parameters in steps:
        whole.clipped_sum(parameters, EVERYBODY)
    stored = Filtered(blocks(given), LOSS, TERMS, 9)
    for parameters in steps[:2]:
        stored.clipped_sum(parameters, EVERYBODY)
    state = stored.sensitive_state()

    exact = Filtered(blocks(given), LOSS, TERMS, 9)
    exact.restore(state, charged=2)
    for parameters in steps[2:]:
        exact.clipped_sum(parameters, EVERYBODY)
    assert left_of(exact, given) == left_of(whole, given)

    resumed = Filtered(blocks(given), LOSS, TERMS, 9)
    resumed.restore(state, charged=4)
    never_stored = Filtered(blocks(given), LOSS, TERMS, 9)
    never_stored.restore(None, charged=4)
    assert resumed.steps_charged == never_stored.steps_charged == 4
    before, true = left_of(stored, given), left_of(whole, given)
    for owner, left in left_of(resumed, given).items():
        clip = float(CLIPS[given["groups"][owner]])
        assert 2 * clip**2 * 2**CENT_BITS <= before[owner] - left <= 2.001 * clip**2 * 2**CENT_BITS
        assert left_of(never_stored, given)[owner] <= left <= true[owner]


def test_accounts_of_others_or_newer_than_the_journal_are_refused() -> None:
    given = people()
    filtered = Filtered(blocks(given), LOSS, TERMS, 3)
    filtered.clipped_sum(history(1, 1)[0], EVERYBODY)
    state = filtered.sensitive_state()
    fresh = Filtered(blocks(given), LOSS, TERMS, 3)
    with pytest.raises(InputError, match="older copy"):
        fresh.restore(state, charged=0)
    other = Filtered(blocks(people(10)), LOSS, TERMS, 3)
    with pytest.raises(InputError, match="other people"):
        other.restore(state, charged=1)
    assert fresh.steps_charged == other.steps_charged == 0


def test_lots_and_too_many_steps_are_refused() -> None:
    given = blocks(people())
    with pytest.raises(InputError, match="rate below 1"):
        Filtered(given, LOSS, Terms(np.array([1.0, 0.5]), CLIPS, CLIPS, 0.7), 3)
    with pytest.raises(InputError, match="takes no samples"):
        Filtered(given, LOSS, TERMS, 3).clipped_sum(np.zeros((5, 3)), Sample.seeded(0, 0))
    with pytest.raises(InputError, match="too many to keep accounts of"):
        allowances_of(TERMS, 10**7)


def test_gradients_that_are_no_numbers_cost_nothing() -> None:
    given = people()
    filtered = Filtered(blocks(given), LOSS, TERMS, 3)
    before = left_of(filtered, given)
    total = filtered.clipped_sum(np.full((5, 3), np.nan), EVERYBODY)
    assert not total.any()
    assert left_of(filtered, given) == before
