"""Scores from shadow runs: their formulas, what they see, and what is refused."""

import math

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.special import logsumexp
from scipy.stats import invgamma, norm

from collegium.attacks import conjugate
from collegium.attacks.conjugate import scores_by_shadows
from collegium.attacks.shadow_runs import infer_membership, model_signal, run_shadows
from collegium.errors import InputError

MU = 0.72


def noisy_answers(mu, n, seed=1):
    """Everybody's own answer under noise that everybody sees at μ; people differ in place and spread."""
    place = np.random.default_rng([seed, 2]).normal(0, 5, n)

    def release(is_in, run):
        return place + mu * is_in + np.random.default_rng([seed, 3, run]).normal(size=n)

    return release


@pytest.fixture(scope="module")
def shadows():
    rng = np.random.default_rng(0)
    is_in = rng.random((33, 50)) < 0.5
    seen = rng.normal(size=50) + is_in + rng.normal(size=(33, 50)) * rng.uniform(0.5, 2, 50)
    return seen[0], seen[1:], is_in[1:]


def test_the_predictive_is_the_integral_over_all_means_and_variances():
    """By quadrature: p(x | data) = ∫∫ N(x; m, v) p(m, v | data), with the prior as it is stated."""
    rng = np.random.default_rng(1)
    data, place, k, a, variance = rng.normal(2, 1.5, 7), 1.2, 3.0, 4.0, 2.0
    side = conjugate._Side.of(data[:, None], np.ones((7, 1), dtype=bool))
    means, variances = np.linspace(-8, 12, 801), np.exp(np.linspace(-4, 6, 801))
    prior = invgamma.logpdf(variances, a, scale=a * variance)[:, None]
    prior = prior + norm.logpdf(means, place, np.sqrt(variances / k)[:, None])
    spread = np.sqrt(variances)[:, None]
    joint = np.exp(prior + sum(norm.logpdf(one, means, spread) for one in data))
    total = simpson(simpson(joint, x=means), x=variances)
    for x in (-1.0, 2.0, 6.0):
        weighted = joint * norm.pdf(x, means, spread)
        expected = math.log(simpson(simpson(weighted, x=means), x=variances) / total)
        arguments = (np.array([x]), side, np.array([place]), k, a, variance)
        assert conjugate._log_predictive(*arguments)[0] == pytest.approx(expected, abs=1e-4)


def test_fixed_is_a_normal_ratio_with_everybodys_variance(shadows):
    attacked, seen, is_in = shadows
    sides = [np.where(chosen, seen, np.nan) for chosen in (is_in, ~is_in)]
    free = sum((~np.isnan(side)).sum(axis=0).sum() - side.shape[1] for side in sides)
    variance = sum(np.nansum((side - np.nanmean(side, axis=0)) ** 2) for side in sides) / free
    logs = [
        norm.logpdf(
            attacked,
            np.nanmean(side, axis=0),
            np.sqrt(variance * (1 + 1 / (~np.isnan(side)).sum(axis=0))),
        )
        for side in sides
    ]
    found = scores_by_shadows(attacked, seen, is_in, "fixed")
    np.testing.assert_allclose(found, logs[0] - logs[1], atol=1e-3)


def test_ratio_is_a_likelihood_over_its_mean(shadows):
    attacked, seen, is_in = shadows
    expected = attacked - (logsumexp(seen, axis=0) - math.log(len(seen)))
    np.testing.assert_allclose(scores_by_shadows(attacked, seen, is_in, "ratio"), expected)


def test_conjugate_takes_variances_that_differ_into_account():
    """People whose noise is 0.2 or 5: true positives at 1 % false ones, 64 runs of 200 people."""
    spread = np.where(np.arange(200) % 2, 0.2, 5.0)

    def release(is_in, run):
        return 0.5 * is_in + spread * np.random.default_rng([9, run]).normal(size=200)

    attack = run_shadows(release, 200)
    found = {
        kind: attack.judged({"all": math.inf}, kind=kind)[0].rates[1].found.value
        for kind in ("conjugate", "fixed")
    }
    assert found["conjugate"] > 0.2 > 0.05 > found["fixed"]


@pytest.mark.parametrize("kind", ["conjugate", "fixed"])
def test_what_is_found_is_close_below_the_bound(kind):
    """25,600 scores at μ = 0.72: the best test there is would reach the bound, which is never refuted."""
    names = ["all"] * 400
    [found] = infer_membership(noisy_answers(MU, 400), {"all": MU}, names, kind=kind)
    assert found.holds and found.verdict == "detected"
    assert found.auc.value == pytest.approx(found.most_auc, abs=0.02)
    assert 0.9 * found.most_auc < found.auc.value < found.most_auc + 0.01
    assert 0.5 * MU < found.lower_mu < MU


def test_half_of_the_claimed_noise_is_refuted_and_no_noise_is_seen_far_above():
    names = ["all"] * 400
    [half] = infer_membership(noisy_answers(2 * MU, 400), {"all": MU}, names)
    assert half.verdict == "more than the account allows" and not half.holds
    [bare] = infer_membership(noisy_answers(20.0, 400), {"all": MU}, names)
    assert bare.rates[1].found.value > 0.99 > 10 * bare.rates[1].most


def test_nothing_is_detected_where_nothing_is_released():
    """At 95 % of all limits; the seed is fixed."""
    [found] = infer_membership(noisy_answers(0.0, 400), {"all": MU}, ["all"] * 400)
    assert found.verdict == "not detected" and found.holds


def test_groups_are_told_apart():
    """ε = 1, 2, 3 of one release: each lower bound on μ is above the claim of the group below."""
    mus = {"high": 0.268, "average": 0.502, "low": 0.719}
    groups = list(mus) * 300
    each = np.array([mus[group] for group in groups])
    found = infer_membership(noisy_answers(each, 900), mus, groups)
    assert all(one.holds for one in found)
    assert found[1].lower_mu > mus["high"] and found[2].lower_mu > mus["average"]


def test_a_model_that_knows_a_class_by_heart_has_a_finite_signal():
    class Sure:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, X):
            return np.array([[0.0, 1.0], [0.0, 1.0], [0.25, 0.75]])

    found = model_signal(Sure(), np.zeros((3, 1)), ["yes", "no", "yes"])
    assert found.tolist() == [50.0, -50.0, pytest.approx(math.log(3))]
    with pytest.raises(InputError, match="does not know class 'maybe'"):
        model_signal(Sure(), np.zeros((1, 1)), ["maybe"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: run_shadows(noisy_answers(1.0, 5), 5, runs=8), "at least 32"),
        (lambda: run_shadows(lambda is_in, run: np.zeros(5), 6), "one number for each of 6 people"),
        (lambda: infer_membership(noisy_answers(1.0, 2), {"a": 1.0}, ["a", "b"]), "'b' has no mu"),
        (lambda: infer_membership(noisy_answers(1.0, 1), {"a": 1.0}, "a", kind="lira"), "kind"),
        (
            lambda: scores_by_shadows(np.zeros(2), np.zeros((20, 2)), np.ones((20, 2))),
            "only 0 of 20",
        ),
        (lambda: scores_by_shadows(np.zeros(3), np.zeros((20, 2)), np.ones((20, 2))), "shape"),
        (lambda: scores_by_shadows(np.full(1, np.nan), np.zeros((20, 1)), np.ones((20, 1))), "NaN"),
        (
            lambda: scores_by_shadows(np.zeros(1), np.full((20, 1), np.inf), np.ones((20, 1))),
            "what is seen of the shadow runs must be finite, got 0 NaN and 20 infinite of 20",
        ),
        (
            lambda: infer_membership(
                lambda is_in, run: np.full(6, -math.inf), {"a": 1.0}, ["a"] * 6
            ),
            "what is seen of run 0 must be finite, got 0 NaN and 6 infinite",
        ),
    ],
)
def test_bad_input_is_one_clear_line(wrong, message):
    with pytest.raises(InputError, match=message) as error:
        wrong()
    assert "\n" not in str(error.value)
