"""One session of questions with canaries: sound ones are believed, broken ones refuted.

Noise is cryptographic: all bounds of a test hold with probability 1 - 1e-7.
"""

import itertools

import numpy as np
import pytest

from collegium import Budget
from collegium.attacks.counted_canaries import audit_statistics
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise, SeededNoise

SURE = 1 - 1e-7
LEVELS = {"high": Budget(1.0, 1e-5), "average": Budget(2.0, 1e-5), "low": Budget(3.0, 1e-5)}
PEOPLE = {"high": 540, "average": 370, "low": 90}


class HalfTheNoise(SecureNoise):
    """Noise of half the scale that was charged."""

    def noised(self, sensitive_sum, noise, *, query, purpose):
        drawn = super().noised(0 * sensitive_sum, noise, query=query, purpose=purpose)
        return sensitive_sum + drawn // 2


def test_a_sound_session_is_believed_and_levels_are_told_apart():
    """What is shown of a level, at 95 %, is above what is claimed of the one below; all is seeded."""
    settings = {"noise": "gaussian", "weights": "proportional"}
    found = audit_statistics(
        LEVELS,
        PEOPLE,
        questions=4,
        settings=settings,
        canaries=9_000,
        noise=SeededNoise(1),
        generator=np.random.default_rng(1),
    )
    assert [one.group for one in found] == list(LEVELS)
    for one in found:
        assert one.holds and one.are_normal
        assert one.lower_epsilon < one.claim_epsilon <= one.budget.epsilon
        assert one.bounds.fit == pytest.approx(one.claim_mu, abs=6 * 2 / np.sqrt(3_000))
    for stricter, one in itertools.pairwise(found):
        assert one.lower_mu > stricter.claim_mu


@pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_every_kind_of_noise_is_believed(noise, neighbours):
    settings = {"noise": noise, "neighbours": neighbours}
    found = audit_statistics(
        LEVELS, PEOPLE, questions=2, settings=settings, canaries=3_000, confidence=SURE
    )
    assert all(one.holds and one.are_normal == (noise == "gaussian") for one in found)


def test_half_of_the_noise_is_refuted():
    settings = {"noise": "gaussian", "weights": "proportional"}
    found = audit_statistics(
        LEVELS,
        PEOPLE,
        questions=2,
        settings=settings,
        canaries=9_000,
        confidence=SURE,
        noise=HalfTheNoise(),
    )
    assert not found[-1].holds and found[-1].lower_mu > found[-1].claim_mu


def test_too_few_or_too_many_canaries_are_one_clear_line():
    with pytest.raises(InputError, match="insert more canaries"):
        audit_statistics(LEVELS, PEOPLE, canaries=12)
    with pytest.raises(InputError, match="at most 10,000"):
        audit_statistics(LEVELS, PEOPLE, canaries=12_000)
