"""The experiments about pairs and about membership: what they compute, by definition and by replay."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

from benchmarks import synthesis_pairs, synthetic_membership
from benchmarks.synthesis_pairs import Case, Fit, counts, measured, noise_in_odds, ordered_pairs
from benchmarks.synthetic_membership import Attacked, Scored, attacked, curve, judged
from collegium import Budgets, Schema
from collegium.accounting.gaussian import gdp_mu
from collegium.data.cells import Cells
from collegium.noise.sources import SeededNoise
from collegium.synthesis.settings import SynthesisSettings
from collegium.synthesis.stages import PAIRS, SCORES

SIZES = (4, 7, 4, 3, 2)


def schema():
    columns = {
        f"c{place}": {"kind": "category", "categories": list("abcdefg"[:size]), "missing": False}
        for place, size in enumerate(SIZES)
    }
    return Schema(columns)


def records(n, seed):
    """Columns 0 and 2 nearly say the same, column 1 has rare cells, and the target is the last."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, n)
    again = np.where(rng.random(n) < 0.9, first, rng.integers(0, 4, n))
    rare = np.minimum(rng.geometric(0.6, n) - 1, 6)
    other = rng.integers(0, 3, n)
    target = (rng.random(n) < 0.1 + 0.15 * first + 0.1 * other).astype(int)
    return np.stack([first, rare, again, other, target], axis=1)


def frame_of(codes):
    return pd.DataFrame(
        {f"c{place}": np.array(list("abcdefg"))[column] for place, column in enumerate(codes.T)}
    )


# -------------------------------------------------------------------------- a few pairs


def test_pairs_that_say_the_same_come_first():
    codes = records(3_000, 0)
    assert counts(codes, (0, 4), SIZES).sum() == 3_000
    assert counts(codes, (3, 4), SIZES)[2, 1] == np.sum((codes[:, 3] == 2) & (codes[:, 4] == 1))
    ordered = ordered_pairs(codes, SIZES)
    assert ordered[0] == (0, 2) and len(ordered) == 6


def test_without_pairs_weights_are_logarithms_of_ratios():
    """Of p(x|1)/p(x|0), without noise, and where n is so large that softness hardly counts."""
    codes = records(200_000, 1)
    made = Fit(measured(Case("", noise=0.0), codes, SIZES, np.random.default_rng(0)), SIZES)
    for place in (0, 2, 3):
        given = counts(codes, (place, 4), SIZES)
        ratio = np.log(given[:, 1] / given[:, 0])
        assert made.weights[place] - made.weights[place].mean() == pytest.approx(
            ratio - ratio.mean(), abs=0.03
        )


@pytest.mark.parametrize("pairs", [0, 1, 3])
def test_the_log_odds_are_those_of_the_fitted_table(pairs):
    """Read off the joint table, by multiplying cliques and dividing by separators."""
    codes = records(2_000, 2)
    case = Case("", pairs=pairs, pairs_noise=0.0)
    made = Fit(measured(case, codes, SIZES, np.random.default_rng(3)), SIZES)
    joint = np.ones(SIZES)
    for clique, separator, table in zip(
        made.tree.cliques, made.tree.separators, made.tables, strict=True
    ):
        outside = tuple(axis for axis, one in enumerate(clique) if one not in separator)
        below = table.sum(axis=outside, keepdims=True)
        part = np.divide(table, below, out=np.zeros_like(table), where=below > 0)
        joint *= part.reshape([SIZES[one] if one in clique else 1 for one in range(5)])
    odds = np.log(joint[..., 1] / joint[..., 0])[tuple(codes[:, :4].T)]
    found = made.log_odds(codes)
    assert found - found.mean() == pytest.approx(odds - odds.mean(), abs=1e-6)


def test_what_is_known_exactly_is_met_although_most_cells_are():
    """Softness is that of noisy marginals, not of the median cell: the target pairs still count."""
    codes = records(2_000, 4)
    case = Case("", pairs=6, pairs_noise=0.0)
    marginals = measured(case, codes, SIZES, np.random.default_rng(5))
    assert np.median(np.repeat([m.sd for m in marginals], [m.shares.size for m in marginals])) < (
        marginals[0].sd / 5
    )
    made = Fit(marginals, SIZES)
    assert made.missed < 0.1
    clean = Fit(
        measured(Case("", noise=0.0), codes, SIZES, np.random.default_rng(5)), SIZES
    ).log_odds(codes)
    assert np.corrcoef(made.log_odds(codes), clean)[0, 1] > 0.8


def test_noise_in_the_log_odds_grows_with_noise():
    data = synthesis_pairs.Data(Cells(schema()), frame_of(records(4_000, 6)), records(1_000, 7))
    none, some, much = (noise_in_odds(data, 3, 0, noise) for noise in (0.0, 1.0, 2.0))
    assert none["noise"] == 0 < some["noise"] < much["noise"]
    assert none["AUC with"] == none["AUC without"] == some["AUC without"]


# --------------------------------------------------------------------------- membership


class Replayed(SeededNoise):
    """Noise whose result is given; what it was to be added to is remembered."""

    def __init__(self, drawn):
        super().__init__(0)
        self.drawn, self.sums = drawn, {}

    __slots__ = ("drawn", "sums")

    def noised(self, sensitive_sum, noise, *, query, purpose):
        self.sums[query] = np.asarray(sensitive_sum, dtype=np.float64)
        return np.asarray(self.drawn[query]["steps"], dtype=np.int64)


def small(goal="both", n=900, epsilons=(2.0, 4.0, 8.0)):
    each = np.array(epsilons)[np.arange(n) % len(epsilons)]
    return Attacked(
        frame_of(records(n, 8)),
        Budgets.from_epsilons(each, 1e-5),
        schema(),
        "c4",
        SynthesisSettings(goal=goal, weights="proportional"),
        frame_of(records(2_000, 9)),
    )


@pytest.mark.parametrize("goal", ["both", "target", "fidelity"])
def test_the_best_score_is_the_likelihood_ratio_of_all_draws(goal):
    """Both worlds of a person are run again with what came out; only their sums differ."""
    known = small(goal)
    blank = np.zeros(900, dtype=bool)
    blank[::7] = True
    run, drawn = known.released(blank, 11)
    stages = [one["stage"] for one in drawn.values()]
    assert (SCORES in stages) == (PAIRS in stages) == (goal != "target")
    assert not run.model(drawn).coarse[1].is_none  # so that pairs are counted in other cells
    asked = np.array([0, 1, 2, 7, 14, 40, 21, 899])
    found, _ = known.scores(run, drawn, asked)
    for person, score in zip(asked, found, strict=True):
        sums = []
        for there in (True, False):
            known.table.blank = blank.copy()
            known.table.blank[person] = not there
            noise, again = Replayed(drawn), known.planned()
            for number in drawn:
                assert again.draw(number, drawn, noise) == drawn[number]
            sums.append(noise.sums)
        ratio = 0.0
        for number, one in drawn.items():
            seen, variance = np.array(one["steps"], dtype=np.float64), (one["sd"] * 2.0**20) ** 2
            with_, without = (of[number] for of in sums)
            ratio += (((seen - without) ** 2 - (seen - with_) ** 2) / (2 * variance)).sum()
        assert score == pytest.approx(ratio, rel=1e-9, abs=1e-9)


def test_levels_are_told_apart_and_the_control_is_found():
    """1,200 people of each level, and 240: an area 3.5 standard errors off fails once in 2,000."""
    case = synthetic_membership.Case("", asked=4, with_rows=0)
    known = small("target")
    assert known.charged == pytest.approx([gdp_mu(one, 1e-5) for one in (2.0, 4.0, 8.0)], rel=1e-5)
    found = attacked(known, case, 300)["knows all others"]
    areas = []
    for group, mu in enumerate(known.charged):
        value, low, high = judged(found.of_group(group))[0]
        bound = ndtr(mu / math.sqrt(2))
        assert value == pytest.approx(bound, abs=3.5 * (high - low) / 3.92)
        areas.append(value)
    assert areas[0] < areas[1] < areas[2]
    control = attacked(small("both", epsilons=(1e6,)), case, 60)
    for value in judged(control["knows all others"]):
        assert value.tolist() == [1.0, 1.0, 1.0]


def test_a_curve_by_hand():
    """In, out, in, out, with the second person in counted twice; and with one false alarm allowed."""
    inside, outside = np.array([1.0, 0, 2, 0]), np.array([0, 1.0, 0, 1])
    assert curve(inside, outside, [0.0, 0.5]) == pytest.approx([(1 * 2 + 2 * 1) / 6, 1 / 3, 1.0])
    assert curve(outside, inside, [0.1]) == pytest.approx([(1 * 2 + 1 * 0) / 6, 0.0])


def test_intervals_hold_although_people_share_noise():
    """A Gaussian attack of μ = 1, 100 releases of 20 people with a correlation of 0.4, 100 times.

    All people of a release are in, or all are out, so that what they share does not cancel. Intervals that
    hold 90 % of the time hold fewer than 80 times with probability 0.002; those that take people for
    independent hold 43 times.
    """
    rng = np.random.default_rng(12)
    held = np.zeros(2)
    release = np.repeat(np.arange(100), 20)
    truth = [ndtr(1 / math.sqrt(2)), ndtr(ndtri(0.05) + 1)]
    for seed in range(100):
        is_in = (rng.random(100) < 0.5)[release]
        noise = math.sqrt(0.4) * rng.normal(size=100)[release]
        scores = is_in + noise + math.sqrt(0.6) * rng.normal(size=2_000)
        one = Scored(scores, is_in, np.zeros(2_000, dtype=np.intp), release)
        for at, (_, low, high) in enumerate(judged(one, [0.05], seed)):
            held[at] += low <= truth[at] <= high
    assert held.min() >= 80


def test_rows_and_population_are_scored_too():
    known = small("target", n=300)
    found = attacked(known, synthetic_membership.Case("", asked=5, with_rows=2), 3)
    assert {name: len(one.scores) for name, one in found.items()} == {
        "knows all others": 45,
        "knows the population": 45,
        "sees rows": 30,
    }
    told = list(synthetic_membership.lines_of(known, found))
    assert len(told) == 9 and told[0].startswith("| knows all others | ε=2 | ")
