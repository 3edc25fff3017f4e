"""The audit of a histogram release attacks what leaves; claims and findings stay what they were."""

from dataclasses import replace

import numpy as np
import pytest

from collegium import Budget, ConfidentGNMax, GNMax, LNMax
from collegium.attacks.game import play_game
from collegium.attacks.mechanism import mechanism_from
from collegium.attacks.noise_capture import ListeningNoise
from collegium.mechanisms import SecureNoise
from collegium.pate.voting.labelling import ANSWERED

RICH = {"strict": Budget(20.0), "generous": Budget(60.0)}
MECHANISMS = [GNMax(1.2), ConfidentGNMax(8.0, 10.0, 1.2), LNMax(1.0)]


@pytest.mark.parametrize("aggregator", MECHANISMS, ids=lambda aggregator: aggregator.name)
def test_what_is_released_is_what_the_auditor_overhears(house, aggregator):
    ear = ListeningNoise(SecureNoise())
    job, _ = house.job(
        house.predictions(40, 10), house.unlimited(10), aggregator, noise=ear, release="histogram"
    )
    outcomes = job.run().outcomes
    checks, answers = ear.heard(40, 4)
    for outcome in outcomes:
        if outcome.verdict == ANSWERED:
            assert outcome.noisy_counts == tuple(answers[outcome.query].tolist())
        if outcome.noisy_check is not None:
            assert outcome.noisy_check == checks[outcome.query]
    assert any(outcome.verdict == ANSWERED for outcome in outcomes)


@pytest.mark.parametrize(
    ("aggregator", "observe"),
    [(MECHANISMS[0], "noisy"), *[(aggregator, "released") for aggregator in MECHANISMS]],
    ids=lambda value: getattr(value, "name", value),
)
def test_released_histograms_give_something_away_and_not_too_much(house, aggregator, observe):
    """500 jobs a side; all bounds hold together but with probability 1e-7.

    Where least is given away, with a check, the lower bound is 8 of its standard deviations above 0.
    """
    plan = house.plan("weighting", 10, groups=RICH, sizes={"strict": 50, "generous": 50})
    made = {
        release: mechanism_from(plan, aggregator, 4, release=release)
        for release in ("labels", "histogram")
    }
    findings = play_game(
        made["histogram"], runs=500, queries=4, confidence=1 - 1e-7, observe=observe
    )
    plain = play_game(made["labels"], runs=100, queries=4, observe="noisy")
    assert all(finding.holds for finding in findings)
    assert findings[-1].lower_mu > 0
    if isinstance(aggregator, ConfidentGNMax):
        return  # how much a job is charged depends on its checks
    assert [f.claim_mu for f in findings] == [f.claim_mu for f in plain]


def test_half_the_noise_is_caught_in_the_histograms(house):
    class HalfNoise:
        is_private, description = False, "broken on purpose"

        def noised(self, total, noise, *, query, purpose):
            half = replace(noise, scale=noise.scale / 2)
            return SecureNoise().noised(total, half, query=query, purpose=purpose)

    plan = house.plan("uniform", 10, groups=RICH, sizes={"strict": 50, "generous": 50})
    # As much as eight queries with σ = 3 give away; found by 12 standard deviations more than is claimed.
    made = mechanism_from(plan, GNMax(3 / 8**0.5), 1, release="histogram")
    object.__setattr__(made, "noise", HalfNoise())
    findings = play_game(made, runs=2500, queries=1, confidence=1 - 1e-6)
    assert not any(finding.holds for finding in findings)
    assert all(np.isfinite(finding.lower_mu) for finding in findings)
