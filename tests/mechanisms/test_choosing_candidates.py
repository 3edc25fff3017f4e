"""Choices: exact probabilities, drawn and on neighbours, and what dominates what."""

from itertools import permutations, product

import numpy as np
import pytest

from collegium.mechanisms import SeededNoise, exponential, permute_and_flip, report_noisy_max
from collegium.mechanisms.selection import choose_by_coins

SCORES = np.array([3.0, 2.0, 0.0, 2.5])


def exponential_chances(scores, scale):
    weights = np.exp((scores - np.max(scores)) / scale)
    return weights / weights.sum()


def flip_chances(scores, scale):
    heads = np.exp((scores - np.max(scores)) / scale)
    chances = np.zeros(len(scores))
    for order in permutations(range(len(scores))):
        left = 1.0
        for candidate in order:
            chances[candidate] += left * heads[candidate]
            left *= 1 - heads[candidate]
    return chances / chances.sum()


def noisy_max_chances(scores, scale):
    """Of two candidates: the difference of two Laplace variables."""
    gap = (scores[0] - scores[1]) / scale
    tail = 0.5 * np.exp(-abs(gap)) * (1 + abs(gap) / 2)
    return np.array([1 - tail, tail] if gap > 0 else [tail, 1 - tail])


CASES = [
    (exponential, exponential_chances, SCORES),
    (permute_and_flip, flip_chances, SCORES),
    (report_noisy_max, noisy_max_chances, SCORES[:2]),
]


def loss_of(release, event):
    return float((event.eta if release is exponential else event.epsilon)[0])


@pytest.mark.parametrize(("release", "chances", "scores"), CASES)
def test_what_is_drawn_has_the_textbook_probabilities(release, chances, scores):
    runs = 3000
    drawn = [
        release(scores, 1.0, 1.5, noise=SeededNoise(2), query=run).value for run in range(runs)
    ]
    expected = chances(scores, 1.5)
    seen = np.bincount(drawn, minlength=len(scores)) / runs
    # Five standard deviations for at most four frequencies: false alarms below 1e-5.
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected * (1 - expected) / runs)).all()


def test_all_coins_at_once_choose_as_in_random_order():
    # 4,000 groups in one call. Five standard deviations for four frequencies: false alarms below 1e-5.
    groups = np.tile((SCORES * 2).astype(np.int64), (4000, 1))
    drawn = choose_by_coins(groups, unit=1 / 3, noise=SeededNoise(7), purpose="coins")
    expected = flip_chances(SCORES, 1.5)
    seen = np.bincount(drawn, minlength=4) / 4000
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected * (1 - expected) / 4000)).all()
    one = choose_by_coins([-5, 0, -(2**61)], unit=1.0, noise=SeededNoise(0))
    assert one.shape == () and int(one) in (0, 1)


@pytest.mark.parametrize(("release", "chances", "scores"), CASES)
@pytest.mark.parametrize("monotone", [False, True])
def test_probabilities_on_neighbours_differ_by_what_is_charged_and_no_less(
    release, chances, scores, monotone
):
    event = release(scores, 1.0, 1.5, monotone=monotone, exact=True).event
    claim, worst, n = loss_of(release, event), 0.0, len(scores)
    starts = [scores, np.zeros(n), np.array([60.0, *[0.0] * (n - 1)])]
    moves = list(product([0.0, 1.0] if monotone else [-1.0, 0.0, 1.0], repeat=n))
    for start, move in product(starts, moves):
        ratios = np.log(chances(start, 1.5) / chances(start + move, 1.5))
        worst = max(worst, np.ptp(ratios) if release is exponential else np.abs(ratios).max())
    assert claim * 0.75 < worst <= claim * (1 + 1e-9)


def test_permute_and_flip_is_never_worse_at_the_same_price():
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.exponential(2, 4)
        assert (
            flip_chances(scores, 1.0) @ scores >= exponential_chances(scores, 1.0) @ scores - 1e-12
        )


def test_scores_off_the_grid_pay_for_rounding():
    event = exponential([0.1, 0.2], [1.0, 2.0], 2.0, noise=SeededNoise(0)).event
    assert (event.eta > [1.0, 2.0]).all() and (event.eta < [1.00001, 2.00001]).all()
