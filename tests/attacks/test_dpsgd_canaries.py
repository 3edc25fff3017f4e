"""One run of direct training with canaries: sound steps are believed, broken ones are refuted.

Noise is cryptographic: all bounds of a test hold with probability 1 - 1e-7, unless it says otherwise.
"""

import itertools

import numpy as np
import pytest

from collegium import Budget, Budgets
from collegium.attacks.dpsgd_canaries import audit_dpsgd
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError
from collegium.noise.sources import SecureNoise, SeededNoise
from collegium.runs.records import Records

SURE = 1 - 1e-7
LEVELS = {"high": Budget(1.0, 1e-5), "average": Budget(2.0, 1e-5), "low": Budget(3.0, 1e-5)}


class HalfTheNoise:
    """Noise of half the scale that was charged."""

    is_private, description, excess = True, "half", 1.0

    def noised(self, sensitive_sum, noise, *, query, purpose):
        zero = np.zeros_like(sensitive_sum)
        drawn = SecureNoise().noised(zero, noise, query=query, purpose=purpose)
        return sensitive_sum + drawn // 2


def trained(classes=2, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    codes = rng.integers(0, classes, 600)
    budgets = Budgets(LEVELS, np.repeat([0, 1, 2], [324, 222, 54]))
    records = Records(X, codes, budgets, np.arange(classes), None)
    return DPSGDRun(DPSGDRecipe(DPSGDSettings(steps=5, **settings)), records)


@pytest.mark.parametrize("classes", [2, 5])
def test_a_sound_run_is_believed_and_levels_are_told_apart(classes):
    """At 1 - 1e-7, what is shown of a level is above what is claimed of the one below; all is seeded.

    Of free noise, one in a thousand runs would show too little to tell two levels apart.
    """
    found = audit_dpsgd(
        trained(classes),
        canaries=18_000,
        confidence=SURE,
        noise=SeededNoise(1),
        generator=np.random.default_rng(1),
    )
    assert [one.group for one in found] == list(LEVELS)
    for one in found:
        assert one.holds
        assert 0 < one.bounds.guessed_mu < one.bounds.fitted_mu < one.claim_mu
        assert one.lower_epsilon < one.claim_epsilon <= one.budget.epsilon
        assert one.bounds.fit == pytest.approx(one.claim_mu, abs=6 * 2 / np.sqrt(6_000))
    for stricter, one in itertools.pairwise(found):
        assert one.bounds.fitted_mu > stricter.claim_mu


@pytest.mark.parametrize(
    "settings",
    [{"neighbours": "replace-one"}, {"sampling": "sample", "rate": 0.3}, {"clip_norm": 2.0}],
)
def test_every_kind_of_step_is_believed(settings):
    found = audit_dpsgd(trained(**settings), canaries=3_000, confidence=SURE)
    assert all(one.holds for one in found)
    assert found[-1].bounds.fit > 0.3  # 6 standard deviations off
    assert (found[0].of_mu is None) == ("sampling" in settings)


def test_half_of_the_noise_is_refuted():
    found = audit_dpsgd(trained(), canaries=6_000, confidence=SURE, noise=HalfTheNoise())
    assert not found[-1].holds and found[-1].bounds.fitted_mu > found[-1].claim_mu


def test_sampled_steps_with_hardly_any_noise_are_refuted():
    """At 95 %: about 1 in 6 canaries takes part in no step, and tells nothing."""

    class Hardly(HalfTheNoise):
        def noised(self, sensitive_sum, noise, *, query, purpose):
            noisy = super().noised(0 * sensitive_sum, noise, query=query, purpose=purpose)
            return sensitive_sum + noisy // 50

    run = trained(sampling="sample", rate=0.3)
    found = audit_dpsgd(run, canaries=6_000, noise=Hardly())
    assert not found[0].holds and found[0].lower_epsilon > 1.2 * found[0].claim_epsilon


def test_nothing_of_the_run_is_changed():
    run = trained()
    memory, recipe = run.memory, run.recipe
    audit_dpsgd(run, canaries=300)
    assert run.memory is memory and run.recipe is recipe and memory.charged() == 0


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(InputError, match="individual_filter"):
        audit_dpsgd(trained(individual_filter=0.5))
    with pytest.raises(InputError, match="insert more canaries"):
        audit_dpsgd(trained(), canaries=20)
