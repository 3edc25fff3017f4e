"""Candidates are drawn with exactly proportional chances: bit strings at the boundaries, beyond floats."""

from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf

from collegium.mechanisms import SecureNoise, SeededNoise
from collegium.noise import exact_choice
from collegium.noise.exact_choice import EXP_ERROR, draw_candidates

RNG = np.random.default_rng(5)
CASES = {
    "a few": (np.array([3, 1, 4, 1, 5]), 0.3),
    "equal": (np.zeros(7, dtype=np.int64), 1.0),
    "far apart": (np.array([0, -40, -700, -800, -30, 0]), 1.0),
    "many": (RNG.integers(-(10**6), 10**6, 600), 1e-5),
    "huge numbers": (np.array([2**61, -(2**61), 2**61 - 1, 2**61 - 3]), 0.7),
}


def exact_boundaries(scores, unit):
    """Cumulated probabilities in 120 digits, by mpmath alone."""
    with mp.workdps(120):
        weights = [mp.exp((int(s) - int(max(scores))) * mpf(unit)) for s in scores]
        total, sums, so_far = mp.fsum(weights), [], mpf(0)
        for weight in weights:
            so_far += weight
            sums.append(so_far / total)
        return sums


class Scripted:
    """Words of given numbers u: 64 bits each, and what follows them."""

    def __init__(self, first, later):
        self.first, self.later, self.asked = first, later, 0

    def __call__(self, count):
        if self.first is not None:
            words, self.first = self.first, None
            return np.array(words, dtype=np.uint64)
        self.asked += 1
        return np.array([self.later.pop(0)], dtype=np.uint64)


@pytest.mark.parametrize("name", CASES)
def test_bits_at_a_boundary_fall_on_the_right_side(name):
    scores, unit = CASES[name]
    sums = exact_boundaries(scores, unit)
    asked = 0
    for position in range(0, len(scores) - 1, max(1, len(scores) // 3)):
        with mp.workdps(120):
            bits = int(mp.floor(sums[position] * mpf(2) ** 192))
        # The next candidate that has any chance in so many bits.
        at = bits + 1
        for u in (bits - 1, bits, at, at + 1, bits - 2**100, bits + 2**100):
            if not 0 <= u < 2**192:
                continue
            words = Scripted([u >> 128], [(u >> 64) & (2**64 - 1), u & (2**64 - 1), 2**63])
            (chosen,) = draw_candidates(scores, unit, 1, words)
            with mp.workdps(120):
                true = (mpf(u) + mpf(1) / 2) / mpf(2) ** 192
                expected = sum(1 for boundary in sums if boundary <= true)
            assert chosen == expected
            asked += words.asked
    assert asked or name == "equal"  # floats could not tell these


@pytest.mark.parametrize("name", ["a few", "equal", "many"])
def test_equidistant_numbers_count_the_probabilities(name):
    scores, unit = CASES[name]
    n = 2**16
    middles = (np.arange(n, dtype=np.uint64) << np.uint64(48)) + np.uint64(2**47)
    counted = np.bincount(
        draw_candidates(scores, unit, n, lambda _: middles), minlength=len(scores)
    )
    sums = [0, *exact_boundaries(scores, unit)]
    chances = np.array([float(b - a) for a, b in pairwise(sums)])
    assert np.abs(counted - n * chances).max() <= 1


def test_both_paths_agree(monkeypatch):
    scores, unit = RNG.integers(-60, 60, 40), 0.11
    words = RNG.integers(0, 2**64, 400, dtype=np.uint64)
    fast = draw_candidates(scores, unit, 400, lambda _: words)
    monkeypatch.setattr(exact_choice, "EXP_ERROR", 1.0)  # nothing is settled by floats
    source = Scripted(words.tolist(), RNG.integers(0, 2**63, 400).tolist())
    assert (draw_candidates(scores, unit, 400, source) == fast).all()


def test_the_exponential_function_is_as_good_as_assumed():
    points = np.concatenate(
        [-RNG.random(1500) * 40, -RNG.random(500) * 700, -RNG.random(500) * 1e-3]
    )
    with mp.workdps(40):
        worst = max(
            abs(mpf(float(value)) / mp.exp(mpf(float(x))) - 1)
            for x, value in zip(points, np.exp(points), strict=True)
        )
    assert worst < EXP_ERROR / 8


def test_seeded_words_repeat_and_fresh_ones_do_not():
    seeded = SeededNoise(3).words(query=1, purpose="x")(4)
    assert (seeded == SeededNoise(3).words(query=1, purpose="x")(4)).all()
    assert not (seeded == SeededNoise(3).words(query=2, purpose="x")(4)).any()
    assert not (seeded == SecureNoise().words(query=1, purpose="x")(4)).any()


def test_coins_fall_on_the_right_side_of_their_probability():
    for score, unit in ((-1, 0.5), (-(2**40), 2.0**-41), (-7, 0.3), (-60, 1.0)):
        with mp.workdps(120):
            bits = int(mp.floor(mp.exp(mpf(score) * mpf(unit)) * mpf(2) ** 128))
        for u, heads in ((bits - 1, True), (bits + 1, False)):
            words = Scripted([u >> 64], [u & (2**64 - 1), 0])
            assert exact_choice.is_accepted(score, unit, words) is heads
            assert words.asked
            # Several at once: each is settled by itself, with further bits where its first do not tell.
            words = Scripted([2**64 - 1, u >> 64, 2**64 - 1], [u & (2**64 - 1), 0])
            coins = exact_choice.are_accepted(np.array([0, score, -(2**44)]), unit, words)
            assert coins.tolist() == [True, heads, False]


def test_whole_numbers_are_fair():
    words = Scripted([2**64 - 1], [5])
    assert (
        exact_choice.whole_below(3, words) == 2 and words.asked == 1
    )  # the odd one out is drawn anew
    assert (
        exact_choice.whole_below(2**63, lambda count: np.array([2**63 + 4], dtype=np.uint64)) == 4
    )
