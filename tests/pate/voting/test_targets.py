"""Targets against brute force, and calibrated: when they say 80 %, they are right 80 % of the time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf, ncdf, npdf, quad
from scipy import stats
from scipy.special import logsumexp

from collegium import ConfidentGNMax, GNMax, InteractiveGNMax
from collegium.errors import InputError
from collegium.pate.voting.histograms import released_histograms
from collegium.pate.voting.labelling import ANSWERED, REINFORCED
from collegium.pate.voting.targets import (
    LEVEL_COUNT,
    METHODS,
    ConsensusMixture,
    class_posterior,
    released_targets,
)

W = 250.0
each_method = pytest.mark.parametrize("method", METHODS)
each_noise = pytest.mark.parametrize("noise", ["gaussian", "laplace"])


def simulated(n, m, sigma, seed, shares=None, noise="gaussian", dissent=(1.0, 4.0)):
    """Classes, and noisy histograms of teachers whose dissent is Beta distributed and spread evenly."""
    generator = np.random.default_rng(seed)
    truth = generator.choice(m, n, p=shares)
    t = generator.beta(*dissent, n)[:, None]
    votes = W * ((1 - t) * np.eye(m)[truth] + t / m)
    drawn = getattr(generator, {"gaussian": "normal"}.get(noise, noise))(0, sigma, votes.shape)
    return truth, votes + drawn


# ----------------------------------------------------------------------------------- any method


@each_method
@each_noise
@settings(max_examples=25)
@given(data=st.data())
def test_rows_are_probabilities_however_extreme_the_numbers(method, noise, data):
    m = data.draw(st.integers(2, 6))
    value = st.floats(-1e9, 1e9, allow_nan=False)
    rows = data.draw(st.lists(st.lists(value, min_size=m, max_size=m), min_size=0, max_size=4))
    scale = data.draw(st.floats(1e-6, 1e7))
    total = data.draw(st.floats(1e-3, 1e7))
    table = np.array(rows).reshape(-1, m)
    posterior = class_posterior(table, scale, total, method, noise=noise)
    assert posterior.shape == table.shape
    assert np.isfinite(posterior).all() and (posterior >= 0).all()
    assert posterior.sum(axis=1) == pytest.approx(1)


@each_method
@each_noise
def test_classes_are_treated_alike(method, noise):
    _, noisy = simulated(40, 5, 60, 1, noise=noise)
    order = np.random.default_rng(0).permutation(5)
    posterior = class_posterior(noisy, 60, W, method, noise=noise)
    np.testing.assert_allclose(
        class_posterior(noisy[:, order], 60, W, method, noise=noise), posterior[:, order], atol=1e-9
    )
    of_label = posterior[np.arange(40), noisy.argmax(axis=1)]
    assert (of_label >= posterior.max(axis=1) - 1e-9).all(), "no other class is likelier"


@each_method
@each_noise
def test_the_unit_of_votes_does_not_matter_and_may_differ_by_query(method, noise):
    _, noisy = simulated(40, 4, 60, 2, noise=noise)
    unit = np.random.default_rng(0).uniform(0.1, 10, 40)
    expected = class_posterior(noisy, 60, W, method, noise=noise)
    found = class_posterior(noisy * unit[:, None], 60 * unit, W * unit, method, noise=noise)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("method", ["noise", "mixture"])
def test_what_was_believed_before_multiplies_the_likelihood(method):
    _, noisy = simulated(30, 3, 80, 3)
    flat = class_posterior(noisy, 80, W, method)
    for prior in (np.array([0.7, 0.2, 0.1]), np.random.default_rng(1).dirichlet(np.ones(3), 30)):
        if method == "mixture":
            model = ConsensusMixture.fit(noisy, 80, W, prior)
            flat = np.exp(model.log_likelihood(noisy, 80, W))
        product = flat * prior
        product /= product.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(class_posterior(noisy, 80, W, method, prior), product, atol=1e-9)
    sure = np.tile([0.0, 1.0, 0.0], (30, 1))
    np.testing.assert_array_equal(class_posterior(noisy, 80, W, method, sure), sure)


# ------------------------------------------------------------------------- noise: brute force


@pytest.mark.parametrize("gap", [0.0, 0.3, 2.0, 9.0, -5.0])
def test_of_two_classes_the_larger_follows_from_the_difference(gap):
    found = class_posterior([[gap * 7 + 11, 11.0]], 7.0, W, "noise")[0]
    expected = [stats.norm.cdf(gap / np.sqrt(2)), stats.norm.sf(gap / np.sqrt(2))]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    found = class_posterior([[gap * 7 + 11, 11.0]], 7.0, W, "noise", noise="laplace")[0]
    tail = (0.5 + abs(gap) / 4) * np.exp(-abs(gap))  # Pr[Lap − Lap' > |gap|]
    np.testing.assert_allclose(sorted(found), sorted([tail, 1 - tail]), atol=2e-4)


def test_the_integral_agrees_with_high_precision():
    seen = [110.0, 95.0, 30.0, -20.0]
    with mp.workdps(20):
        z = [mpf(value) / 40 for value in seen]

        def largest(j):
            return quad(
                lambda v: npdf(v - z[j]) * mp.fprod(ncdf(v - o) for i, o in enumerate(z) if i != j),
                [-10, -4, 0, 2, 4, 12],
                maxdegree=5,
            )

        expected = [float(largest(j)) for j in range(4)]
    np.testing.assert_allclose(class_posterior([seen], 40, W, "noise")[0], expected, rtol=1e-9)


def test_the_known_sum_alone_tells_nothing_about_the_largest():
    """200,000 draws of n given r and Σ n = W: 5 standard errors, false alarms below 1e-5."""
    seen, sigma, draws = np.array([120.0, 90.0, 60.0]), 40.0, 200_000
    generator = np.random.default_rng(5)
    centre = seen - (seen.sum() - W) / 3
    deviation = generator.multivariate_normal(np.zeros(3), np.eye(3) - 1 / 3, draws)
    votes = centre + sigma * deviation
    np.testing.assert_allclose(votes.sum(axis=1), W, atol=1e-3)
    shares = np.bincount(votes.argmax(axis=1), minlength=3) / draws
    found = class_posterior([seen], sigma, W, "noise")[0]
    assert (abs(shares - found) < 5 * np.sqrt(found * (1 - found) / draws)).all()


# ----------------------------------------------------------------------- mixture: brute force


def brute_force(noisy, scale, model):
    """Log-likelihood by adding up densities of every coordinate, class and level."""
    law = stats.norm if model.noise == "gaussian" else stats.laplace
    m = noisy.shape[1]
    result = np.empty(noisy.shape)
    for row, seen in enumerate(noisy):
        for c in range(m):
            terms = [
                np.log(weight) + law.logpdf(seen, W * ((1 - t) * np.eye(m)[c] + t / m), scale).sum()
                for t, weight in zip(model.levels, model.level_weights, strict=True)
            ]
            result[row, c] = logsumexp(terms)
    return result


@each_noise
def test_the_likelihood_is_what_densities_add_up_to(noise):
    _, noisy = simulated(12, 4, 50, 7, noise=noise)
    model = ConsensusMixture.fit(noisy, 50, W, noise=noise)
    expected, found = brute_force(noisy, 50, model), model.log_likelihood(noisy, 50, W)
    constant = expected - found
    np.testing.assert_allclose(constant, np.tile(constant[:, :1], 4), atol=1e-8)


def test_what_was_estimated_is_a_fixed_point():
    """One more step of expectation maximisation, by brute force, changes nothing to speak of."""
    _, noisy = simulated(300, 3, 60, 8)
    model = ConsensusMixture.fit(noisy, 60, W)
    means = W * ((1 - model.levels)[:, None, None] * np.eye(3) + model.levels[:, None, None] / 3)
    logs = stats.norm.logpdf(noisy[:, None, None, :], means, 60).sum(axis=3)
    logs += np.log(model.level_weights)[:, None]
    shares = np.exp(logs - logsumexp(logs, axis=(1, 2), keepdims=True))
    again = shares.sum(axis=(0, 2)) + LEVEL_COUNT
    np.testing.assert_allclose(again / again.sum(), model.level_weights, atol=2e-4)


def test_memory_is_bounded_by_chunks_that_do_not_show(monkeypatch):
    _, noisy = simulated(12, 4, 60, 9)
    whole = [class_posterior(noisy, 60, W, method) for method in METHODS]
    monkeypatch.setattr("collegium.pate.voting.targets._CELLS", 700)
    for method, expected in zip(METHODS, whole, strict=True):
        np.testing.assert_allclose(class_posterior(noisy, 60, W, method), expected, atol=1e-12)


# -------------------------------------------------------------------------------- calibration


def miscalibration(posterior, truth):
    """p-value: do the surest classes come true as often as they say? Ten cells of equal size."""
    sure, right = posterior.max(axis=1), posterior.argmax(axis=1) == truth
    cells = np.array_split(np.argsort(sure), 10)
    scores = [
        (right[cell].sum() - sure[cell].sum()) ** 2 / max((sure * (1 - sure))[cell].sum(), 1e-9)
        for cell in cells
        if (sure * (1 - sure))[cell].sum() > 5
    ]
    assert len(scores) >= 4
    return stats.chi2.sf(sum(scores), len(scores))


@pytest.mark.parametrize(("m", "sigma"), [(2, 120), (4, 70), (10, 60), (10, 200)])
@each_noise
def test_the_mixture_is_calibrated(m, sigma, noise):
    """4,000 queries, fixed seeds; were they drawn anew, false alarms below 1e-4 for each case."""
    truth, noisy = simulated(4000, m, sigma, 10, noise=noise)
    assert miscalibration(class_posterior(noisy, sigma, W, noise=noise), truth) > 1e-4


def test_calibration_would_notice_targets_that_are_too_sure():
    truth, noisy = simulated(4000, 10, 200, 10)
    assert miscalibration(class_posterior(noisy, 200 / 1.4, W), truth) < 1e-4


def test_the_noise_alone_is_calibrated_where_counts_are_uniform():
    """Same test, same rate: counts uniform on a range that is wide against the noise."""
    generator = np.random.default_rng(11)
    votes = generator.uniform(0, 20_000, (4000, 4))
    close = np.sort(votes, axis=1)
    noisy = votes + generator.normal(0, 1500, votes.shape)
    inside = (close[:, -1] < 17_000) & (noisy.max(axis=1) < 16_000)
    posterior = class_posterior(noisy[inside], 1500, 40_000, "noise")
    assert miscalibration(posterior, votes[inside].argmax(axis=1)) > 1e-4


def test_shares_of_the_classes_can_be_estimated():
    shares = np.array([0.7, 0.2, 0.1])
    truth, noisy = simulated(4000, 3, 120, 12, shares)
    model = ConsensusMixture.fit(noisy, 120, W, "estimated")
    assert abs(model.class_prior - shares).max() < 0.05
    posterior = class_posterior(noisy, 120, W, prior="estimated")
    assert miscalibration(posterior, truth) > 1e-4
    even = class_posterior(noisy, 120, W)
    right = [(targets.argmax(axis=1) == truth).mean() for targets in (posterior, even)]
    assert right[0] > right[1] + 0.05


def test_students_name_rare_classes_right_with_even_priors_and_not_with_the_true_shares():
    """The mean target of a rare class's records points to it, though no single histogram does."""
    shares = np.array([0.9, 0.05, 0.05])
    truth, noisy = simulated(8000, 3, 400, 13, shares)
    even = class_posterior(noisy, 400, W)
    known = class_posterior(noisy, 400, W, prior=shares)
    for c in range(3):
        assert even[truth == c].mean(axis=0).argmax() == c
        assert known[truth == c].mean(axis=0).argmax() == 0
    means = np.array([even[truth == c].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(means.diagonal(), means.trace() / 3, atol=0.02)


# ----------------------------------------------------------------------------- from a whole job


def test_targets_of_a_job_stand_in_the_order_of_its_labels(house):
    mechanism = ConfidentGNMax(10.0, 5.0, 4.0)
    electorate = house.unlimited(20)
    votes = house.predictions(200, 20, agreement=0.5)
    job, _ = house.job(votes, electorate, mechanism, release="histogram")
    labels = job.run()
    shown = released_histograms(labels, electorate, mechanism, 4)
    targets = released_targets(labels, 4, shown)
    assert targets.shape == (len(labels.labels), 4)
    assert (targets.argmax(axis=1) == labels.labels).all()
    answered = [outcome for outcome in labels.outcomes if outcome.verdict == ANSWERED]
    counts = np.array([outcome.noisy_counts for outcome in answered])
    np.testing.assert_allclose(targets, class_posterior(counts, 4.0, 20.0), atol=1e-12)
    np.testing.assert_array_equal(released_targets(labels, 4), np.eye(4)[labels.labels])


def test_a_reinforced_label_is_believed(house):
    mechanism = InteractiveGNMax(4.0, 3.0, 3.0, confidence=0.6, refit_every=3)
    electorate = house.unlimited(20)
    job, _ = house.job(
        house.predictions(80, 20, agreement=0.3), electorate, mechanism, release="histogram"
    )
    labels = job.run()
    shown = released_histograms(labels, electorate, mechanism, 4)
    targets = released_targets(labels, 4, shown)
    verdicts = [o.verdict for o in labels.outcomes if o.label >= 0]
    own = np.array([verdict == REINFORCED for verdict in verdicts])
    assert 0 < own.sum() < own.size
    np.testing.assert_array_equal(targets[own], np.eye(4)[labels.labels[own]])
    assert (targets[~own].max(axis=1) < 1).all()


def test_without_any_label_there_are_no_targets(house):
    mechanism = ConfidentGNMax(1e4, 1.0, 1.0)
    job, _ = house.job(
        house.predictions(5, 20), house.unlimited(20), mechanism, release="histogram"
    )
    labels = job.run()
    shown = released_histograms(labels, house.unlimited(20), mechanism, 4)
    assert released_targets(labels, 4, shown).shape == (0, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"histograms": [1.0, 2.0]}, "one row per query"),
        ({"histograms": [[1.0]]}, "at least 2"),
        ({"histograms": [[1.0, np.nan]]}, "finite"),
        ({"noise_scale": 0.0}, "noise_scale must be finite and greater than 0"),
        ({"noise_scale": [1.0, 2.0]}, "one for each of 1 queries"),
        ({"total": np.inf}, "total must be finite"),
        ({"method": "em"}, "argmax, noise, mixture, got 'em'"),
        ({"noise": "gumbel"}, "gaussian, laplace, got 'gumbel'"),
        ({"prior": [1.0, 1.0, 1.0]}, "prior must have shape"),
        ({"prior": [0.0, 0.0]}, "not all 0"),
        ({"prior": "flat"}, "'estimated', got 'flat'"),
    ],
)
def test_bad_input_is_one_clear_line(given, message):
    arguments = {"histograms": [[3.0, 4.0]], "noise_scale": 1.0, "total": 7.0, **given}
    with pytest.raises(InputError, match=message) as error:
        class_posterior(**arguments)
    assert "\n" not in str(error.value)


def test_plain_numbers_do_for_a_mechanism_without_check(house):
    job, _ = house.job(
        house.predictions(30, 20), house.unlimited(20), GNMax(5.0), release="histogram"
    )
    shown = released_histograms(job.run(), house.unlimited(20), GNMax(5.0), 4)
    whole = class_posterior(shown.counts, shown.noise_scales, shown.totals)
    np.testing.assert_array_equal(whole, class_posterior(shown.counts, 5.0, 20.0))
