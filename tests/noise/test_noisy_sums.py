"""Noisy sums: all that is released goes through them, and the noise is what was asked for.

A sum of several machines is played here by a fake: whatever votes, steps and answers tell of private records,
they tell through ``noised``, with public shapes, scales and names.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from collegium import Budget, Policy, Schema, Statistics
from collegium.dpsgd.grid import UNIT
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError
from collegium.mechanisms import SecureNoise, SeededNoise
from collegium.noise.exact_sampling import MAX_SCALE_STEPS
from collegium.noise.grid import GRID
from collegium.noise.sums import MAX_SCALE, MOST_TOTAL, Integers, LocalSum, Noise, NoisySum
from collegium.pate.voting.aggregators import AGGREGATORS
from collegium.pate.voting.labelling import ANSWERED
from collegium.runs.records import Records

FALSE_ALARM = 1e-8
LAWS: dict[str, Any] = {
    "gaussian": stats.norm,
    "laplace": stats.laplace,
    "exponential": stats.expon,
    "gumbel": stats.gumbel_r,
}
each_kind = pytest.mark.parametrize("kind", LAWS)
each_source = pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(4)], ids=type)


@dataclass
class Replayed:
    """A noisy sum that is kept elsewhere: nothing of what is given to it can be in what it returns."""

    results: dict[tuple[int, str], Integers] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    sums: list[Integers] = field(default_factory=list)
    is_private = False
    description = "a recording"

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        assert sensitive_sum.dtype == np.int64
        self.calls.append((sensitive_sum.shape, noise, query, purpose))
        self.sums.append(sensitive_sum)
        if (query, purpose) not in self.results:
            drawn = SeededNoise(1).noised(sensitive_sum, noise, query=query, purpose=purpose)
            self.results[query, purpose] = drawn
        return self.results[query, purpose]


# ------------------------------------------------------------------------------ what is drawn


@each_kind
@each_source
def test_goodness_of_fit_in_steps(kind: str, source: LocalSum) -> None:
    """Chi-square over common atoms at a scale of 3 steps; false alarms 2e-8 (or decided by the seed)."""
    size, edge, total = 200_000, 9, 10**15 + 7
    sums = np.full((size // 2, 2), total)
    noisy = source.noised(sums, Noise(kind, 3.0), query=0, purpose="answer")
    assert noisy.dtype == np.int64 and noisy.shape == sums.shape and (sums == total).all()
    steps = np.clip(noisy.ravel() - total, -edge, 4 * edge)
    observed = np.bincount(steps + edge, minlength=5 * edge + 1)
    inner = LAWS[kind].cdf((np.arange(-edge, 4 * edge) + 0.5) / 3)
    expected = size * np.diff(np.concatenate([[0.0], inner, [1.0]]))
    some = expected > 50  # of rare ones the law is not chi-square
    rest = observed[~some].sum() - expected[~some].sum()
    statistic = float(((observed - expected)[some] ** 2 / expected[some]).sum())
    assert stats.chi2.sf(statistic, int(some.sum()) - 1) > FALSE_ALARM
    assert abs(rest) < 6 * math.sqrt(max(expected[~some].sum(), 1.0)) + 6


@each_kind
def test_a_noisy_sum_is_the_sum_and_the_noise_to_the_last_bit(kind: str) -> None:
    source, sums = SeededNoise(3), np.array([[5, -(2**61)], [MOST_TOTAL - 1, 0]])
    noisy = source.noised(sums, Noise.in_votes(kind, 40.0), query=2, purpose="x")
    drawn = getattr(source, kind)(40.0, 4, query=2, purpose="x")
    assert ((noisy - sums).ravel() * GRID == drawn).all()
    assert source.noised(np.array(9), Noise(kind, 2.0), query=0, purpose="x").shape == ()


@each_kind
def test_the_largest_noise_fits_beside_the_largest_sum(kind: str) -> None:
    ends = np.array([MOST_TOTAL - 1, 1 - MOST_TOTAL] * 500)
    noisy = SeededNoise(1).noised(ends, Noise(kind, MAX_SCALE_STEPS), query=0, purpose="x")
    assert (np.sign(noisy) == np.sign(ends)).all()
    assert MOST_TOTAL + 2**53 < 2**63


def test_what_protects_the_sums_is_what_may_be_shown_of_votes() -> None:
    for aggregator in AGGREGATORS.values():
        assert Noise(aggregator.noise, 1.0).protects_sums is aggregator.pays_for_histogram


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2 * MAX_SCALE_STEPS])
def test_noise_that_cannot_be_drawn_is_refused_before(scale: float) -> None:
    with pytest.raises(InputError, match="grid steps"):
        Noise("gaussian", scale)
    with pytest.raises(InputError, match="cannot be a noise scale"):
        Noise.in_votes("laplace", scale)
    with pytest.raises(InputError, match="allowed are gaussian, laplace"):
        Noise("uniform", 1.0)
    assert Noise.in_votes("laplace", MAX_SCALE).scale == MAX_SCALE_STEPS


# ------------------------------------------- votes, steps and answers go through it, and nothing else


def differ(sums: Replayed) -> bool:
    """Whether the two halves of the sums were of different records."""
    half = len(sums.sums) // 2
    pairs = zip(sums.sums[:half], sums.sums[half:], strict=True)
    return any((one != other).any() for one, other in pairs)


@pytest.mark.parametrize("aggregator", sorted(set(AGGREGATORS) - {"interactive"}))
def test_votes_are_seen_through_noisy_sums_alone(house: Any, aggregator: str) -> None:
    """Other votes and the same noisy sums: the same outcomes."""
    sums, outcomes = Replayed(), []
    electorate = house.plan("weighting", 20, groups={"a": Budget(90.0)}).electorate(0)
    mechanism = house.aggregator(aggregator, 20)
    calls = []
    for seed in (0, 1):
        votes = house.predictions(40, electorate.n_teachers, agreement=0.6, seed=seed)
        sums.calls = []
        job, _ = house.job(votes, electorate, mechanism, noise=sums)
        outcomes.append(job.run().outcomes)
        calls.append(sums.calls)
    assert outcomes[0] == outcomes[1] and calls[0] == calls[1] and len(outcomes[0]) == 40
    kinds = {("check", "gaussian"), ("answer", mechanism.noise)}
    assert {(purpose, noise.kind) for _, noise, _, purpose in calls[0]} <= kinds
    assert any(outcome.verdict == ANSWERED for outcome in outcomes[0])
    assert differ(sums)


@pytest.mark.parametrize("how", [{}, {"sampling": "sample", "rate": 0.5, "accountant": "rdp"}])
def test_steps_are_seen_through_noisy_sums_alone(how: dict[str, Any]) -> None:
    """Other records and the same noisy sums: the same model, byte for byte."""
    sums, found = Replayed(), []
    rng = np.random.default_rng(0)
    for _ in range(2):
        X = rng.uniform(-1, 1, (60, 3))
        budgets = Policy({"a": 1.0, "b": 3.0}).assign(["a", "b"] * 30)
        its = Records(
            X, (X[:, 0] + rng.normal(size=60) > 0).astype(int), budgets, np.arange(2), None
        )
        run = DPSGDRun(DPSGDRecipe(DPSGDSettings(steps=4, **how), noise_seed=3), its)
        learnt = run.descend(run.summands(), run.n_parameters, sums)
        found.append(learnt.state.parameters.tobytes())
        noise = Noise("gaussian", run.plan.noise / UNIT)
        assert sums.calls[-4:] == [((4, 1), noise, step, "gradient 0") for step in range(4)]
    assert found[0] == found[1]
    assert differ(sums)


class Told(SeededNoise):
    """The noisy sums of a recording; quantiles are no sums, and draw words."""

    __slots__ = ("sums", "wanted")

    def __init__(self, sums: Replayed) -> None:
        super().__init__(1)
        self.sums, self.wanted = sums, 0

    def noised(self, *given: Any, **named: Any) -> Integers:
        return self.sums.noised(*given, **named)

    def words(self, *, query: int, purpose: str) -> Any:
        self.wanted += 1
        return super().words(query=query, purpose=purpose)


QUESTIONS = (
    "count by sex",
    "mean income",
    "sum income where sex = 'F'",
    "var income",
    "histogram age",
    "cov age, income",
)
SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [18, 90], "bins": [18, 40, 65, 90]},
        "income": {"kind": "number", "bounds": [0, 100]},
        "sex": {"kind": "category", "categories": ["F", "M"]},
    }
)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_answers_are_seen_through_noisy_sums_alone(noise: str) -> None:
    """Other records and the same noisy sums: the same answers, errors and intervals."""
    sums, found = Replayed(), []
    rng = np.random.default_rng(1)
    for _ in range(2):
        people = pd.DataFrame(
            {
                "age": rng.integers(18, 91, 200),
                "income": rng.uniform(0, 100, 200),
                "sex": rng.choice(["F", "M"], 200),
            }
        )
        grants = np.repeat([1.0, 3.0], 100)
        ask = Statistics(people, grants, schema=SCHEMA, questions=7, noise=noise, noise_seed=1)
        ask._noise = told = Told(sums)
        found.append([ask.ask(question).to_frame().to_csv() for question in QUESTIONS])
        assert told.wanted == 0
    assert found[0] == found[1] and differ(sums)
    calls = len(sums.calls) // 2
    assert sums.calls[:calls] == sums.calls[calls:] and calls >= len(QUESTIONS)
    assert {call[1].kind for call in sums.calls} == {noise}
    before = len(sums.calls)
    ask.ask("median age")  # the value by words, the interval through a sum
    assert told.wanted == 1 and len(sums.calls) == before + 1


def test_every_source_is_a_noisy_sum() -> None:
    sources: list[NoisySum] = [SecureNoise(), SeededNoise(1), Replayed()]
    assert [source.is_private for source in sources] == [True, False, False]
    with pytest.raises(TypeError, match="abstract"):
        LocalSum()  # type: ignore[abstract]
