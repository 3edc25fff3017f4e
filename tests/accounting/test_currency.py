"""The common currency: fitted pairs dominate, just so, and add up."""

import itertools
import math
import sys
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from collegium.accounting import (
    GaussianBound,
    gaussian_bound,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    laplace_bound,
    poisson_gaussian_bound,
    pure_bound,
)
from collegium.accounting.currency import LossDistribution, fit_bound, loss_distributions
from collegium.errors import InputError

pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

# Rate, noise multiplier, steps; mu for delta_0 = 1e-6, 1e-7, 1e-8; the mu of epsilon at 1e-5 alone.
ORACLE = [
    (0.01, 2.518, 9000, (0.3961, 0.3967, 0.3972), 0.3969),
    (0.1, 5, 100, (0.2072, 0.2085, 0.2095), 0.2083),
    (0.01, 1, 1000, (0.461, 0.473, 0.486), 0.4629),
    (0.01, 1, 100, (0.210, 0.243, 0.277), 0.198),
]
INTERVAL = 1e-3  # the oracles are those of this grid
SMALL = {"max_examples": 40}


@cache
def composed(rate, noise_multiplier, steps, interval=INTERVAL):
    one = pld.from_gaussian_mechanism(
        noise_multiplier, sampling_prob=rate, value_discretization_interval=interval
    )
    return one.self_compose(steps)


PLDS = {
    "gaussian": lambda: pld.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3),
    "laplace": lambda: pld.from_laplace_mechanism(1.5, value_discretization_interval=1e-3),
    "laplaces": lambda: pld.from_laplace_mechanism(
        4.0, value_discretization_interval=1e-3
    ).self_compose(20),
    "poisson": lambda: composed(0.1, 5, 100),
    "poisson, little noise": lambda: composed(0.01, 1, 100),
    "poisson, one step": lambda: composed(0.05, 0.7, 1),
}


@cache
def made(name):
    return PLDS[name]()


def exact_delta(mu, delta_0, epsilon):
    """The definition, at any real epsilon; enough digits remain after its cancellation."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    gain = mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)
    gaussian = mpmath.ncdf(-epsilon / mu + mu / 2) - gain
    return mpmath.mpf(delta_0) + (1 - mpmath.mpf(delta_0)) * gaussian


def profile(distribution, epsilons):
    """The textbook sum for all epsilons, which need not be on the grid."""
    losses, probabilities = distribution.losses, distribution.probabilities
    return distribution.infinity_mass + np.array(
        [np.sum(probabilities * np.maximum(-np.expm1(e - losses), 0.0)) for e in epsilons]
    )


def delicate_epsilons(bound, distribution):
    """In every interval of the grid the epsilon >= 0 where bound - profile is smallest.

    There the profile is linear in exp(epsilon) with slope -S, S = the sum of p exp(-loss) above; the
    bound's slope is -(1 - delta_0) Phi(-epsilon/mu - mu/2), which has to be the same.
    """
    points = np.unique(np.maximum(distribution.losses, 0.0))
    order = np.argsort(distribution.losses)
    losses = distribution.losses[order]
    mass = (distribution.probabilities * np.exp(-distribution.losses))[order]
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    slopes = above[np.searchsorted(losses, points[:-1], side="right")]
    with np.errstate(divide="ignore"):
        quantile = ndtri(np.minimum(slopes / (1 - bound.delta_0), 1.0))
    touching = -bound.mu * (quantile + bound.mu / 2)
    return np.clip(touching, points[:-1], points[1:])


def dominates(bound, distribution, thin=1):
    """Whether the bound is above the profile at delicate epsilons and at grid points, but for rounding."""
    at = np.concatenate([delicate_epsilons(bound, distribution), distribution.losses])[::thin]
    at = np.append(at[at >= 0], 0.0)
    wanted = profile(distribution, at)
    given = np.array([bound.delta(float(epsilon)) for epsilon in at])
    return bool((given >= wanted * (1 - 1e-12) - 1e-16).all())


@pytest.mark.parametrize("delta_0", [1e-5, 1e-8])
@pytest.mark.parametrize("name", PLDS)
def test_the_fit_dominates_everywhere_and_nothing_smaller_does(name, delta_0):
    directions = loss_distributions(made(name))
    bound = fit_bound(*directions, delta_0)
    smaller = GaussianBound(bound.mu * (1 - 1e-6), delta_0)
    thin = max(1, directions[0].losses.size // 400)
    assert all(dominates(bound, one, thin) for one in set(directions))
    assert any(_fails(smaller, one) for one in set(directions))


def _fails(bound, distribution):
    """Whether the bound is below the profile where, of all delicate epsilons, most mu is needed."""
    epsilons = delicate_epsilons(bound, distribution)
    deltas = (profile_fast(distribution, epsilons) - bound.delta_0) / (1 - bound.delta_0)
    epsilons, deltas = epsilons[deltas > 1e-12], deltas[deltas > 1e-12]

    def dearest(of, how_many):
        needed = [gdp_mu(float(epsilons[one]), float(deltas[one])) for one in of]
        return of[np.argsort(needed)[-how_many:]]

    # It changes slowly: first every 25th, then all that are near the dearest of these.
    few = dearest(np.arange(0, len(epsilons), 25), 4)
    near = np.unique(np.clip(few[:, None] + np.arange(-25, 26), 0, len(epsilons) - 1))
    worst = epsilons[dearest(near, 5)]
    wanted = profile(distribution, worst)
    return any(bound.delta(float(e)) < w for e, w in zip(worst, wanted, strict=True))


def profile_fast(distribution, epsilons):
    order = np.argsort(distribution.losses)
    losses, p = distribution.losses[order], distribution.probabilities[order]
    likely = np.append(np.cumsum(p[::-1])[::-1], 0.0) + distribution.infinity_mass
    unlikely = np.append(np.cumsum((p * np.exp(-losses))[::-1])[::-1], 0.0)
    first = np.searchsorted(losses, epsilons, side="right")
    return likely[first] - np.exp(epsilons) * unlikely[first]


@pytest.mark.parametrize(("rate", "noise_multiplier", "steps", "mus", "alone"), ORACLE)
def test_oracles_of_poisson_samples(rate, noise_multiplier, steps, mus, alone):
    made = composed(rate, noise_multiplier, steps)
    directions = loss_distributions(made)
    digits = 4 if len(str(mus[0])) > 5 else 3
    for delta_0, mu in zip((1e-6, 1e-7, 1e-8), mus, strict=True):
        assert fit_bound(*directions, delta_0).mu == pytest.approx(mu, abs=0.6 * 10**-digits)
    same_epsilon = gdp_mu(made.get_epsilon_for_delta(1e-5), 1e-5)
    assert same_epsilon == pytest.approx(alone, abs=2e-4)


def test_a_finer_grid_costs_less():
    coarse = poisson_gaussian_bound(0.01, 2.518, 2000, 1e-7, interval=2e-3).mu
    fine = poisson_gaussian_bound(0.01, 2.518, 2000, 1e-7, interval=5e-4).mu
    assert 0.97 * coarse < fine < coarse


def test_an_optimistic_distribution_is_refused():
    optimistic = pld.from_laplace_mechanism(
        1.0, value_discretization_interval=0.01, pessimistic_estimate=False
    )
    with pytest.raises(InputError, match="pessimistic"):
        loss_distributions(optimistic)


def test_gaussian_noise_costs_its_exact_mu():
    assert gaussian_bound(2.0).mu == pytest.approx(0.5, rel=1e-14)
    assert gaussian_bound(2.0, steps=16).mu == pytest.approx(2.0, rel=1e-14)
    fitted = fit_bound(*loss_distributions(made("gaussian")), 1e-9).mu
    assert 0.5 * (1 - 1e-6) < fitted < 0.5 * (1 + 1e-3)


@pytest.mark.parametrize("scale", [0.2, 0.7, 1.5, 4.0])
def test_laplace_noise_costs_what_its_loss_distribution_needs(scale):
    exact = laplace_bound(scale)
    made = pld.from_laplace_mechanism(scale, value_discretization_interval=1e-3)
    fitted = fit_bound(*loss_distributions(made), 2e-11).mu
    assert fitted == pytest.approx(exact.mu, rel=2e-3)
    assert exact.mu < pure_bound(1 / scale).mu
    epsilons = np.linspace(0, 1.2 / scale, 25)
    truth = np.maximum(-np.expm1((epsilons - 1 / scale) / 2), 0)
    assert all(exact.delta(e) >= d for e, d in zip(epsilons, truth, strict=True))
    touch = max(
        d - gdp_delta(exact.mu * (1 - 1e-9), e) for e, d in zip(epsilons, truth, strict=True)
    )
    assert touch > 0  # at epsilon = 0


@pytest.mark.parametrize("scale", [1e-3, 0.5, 0.999999, 1.000001, 1e6])
def test_laplace_is_rounded_up_by_less_than_a_part_in_1e12(scale):
    with mpmath.workdps(50):
        half = 1 / (2 * mpmath.mpf(scale))
        mu = mpmath.mpf(laplace_bound(scale).mu)
        for factor, side in ((1, 1), (1 - mpmath.mpf("1e-12"), -1)):
            tail = 2 * mpmath.ncdf(-mu * factor / 2)  # exp(-half) at the exact mu
            assert side * (mpmath.exp(-half) - tail) >= 0


def test_without_sampling_or_without_steps_no_loss_distribution_is_needed():
    assert poisson_gaussian_bound(1.0, 3.0, 9, 1e-7) == gaussian_bound(3.0, 9)
    assert poisson_gaussian_bound(0.0, 3.0, 9, 1e-7) == GaussianBound(0.0)
    assert poisson_gaussian_bound(0.3, 3.0, 0, 1e-7) == GaussianBound(0.0)
    sampled = poisson_gaussian_bound(0.3, 3.0, 9, 1e-7, interval=1e-3)
    assert sampled.mu < gaussian_bound(3.0, 9).mu


# Small mechanisms, brute force over all events.


def profile_over_events(with_owner, without, epsilon):
    """The definition: the largest P(S) - exp(epsilon) Q(S) of all sets S of outcomes."""
    outcomes = range(len(with_owner))
    events = itertools.chain.from_iterable(
        itertools.combinations(outcomes, size) for size in range(len(with_owner) + 1)
    )
    return max(
        with_owner[list(event)].sum() - math.exp(epsilon) * without[list(event)].sum()
        for event in events
    )


def directions_of(p, q):
    def one(p, q):
        both = (p > 0) & (q > 0)
        leak = float(p[(p > 0) & (q == 0)].sum())
        return LossDistribution(np.log(p[both] / q[both]), p[both], leak)

    return one(p, q), one(q, p)


def geometric(shift, n=8, loss=0.9):
    p = np.exp(-loss * np.abs(np.arange(n) - n // 2 - shift))
    return p / p.sum()


SMALL_MECHANISMS = {
    "randomised response": (np.array([0.8, 0.2]), np.array([0.2, 0.8])),
    "response or leak": (np.array([0.6, 0.399, 0.001, 0]), np.array([0.5, 0.499, 0, 0.001])),
    "subsampled geometric": (0.3 * geometric(1) + 0.7 * geometric(0), geometric(0)),
    "uneven": (np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.05, 0.05, 0.1, 0.8])),
}
GRID = np.linspace(-4, 4, 81)


@pytest.mark.parametrize("name", SMALL_MECHANISMS)
@pytest.mark.parametrize("delta_0", [0.0, 1e-3, 0.01, 0.1])
def test_no_event_of_a_small_mechanism_is_above_its_bound(name, delta_0):
    p, q = SMALL_MECHANISMS[name]
    if delta_0 == 0 and (p * q == 0).any():
        with pytest.raises(InputError, match="infinite loss"):
            fit_bound(*directions_of(p, q), delta_0)
        return
    bound = fit_bound(*directions_of(p, q), delta_0)
    smaller = GaussianBound(bound.mu * (1 - 1e-9), delta_0)
    touching = [e for one in directions_of(p, q) for e in delicate_epsilons(bound, one)]
    fails = False
    for epsilon in [*GRID, *touching]:
        for with_owner, without in ((p, q), (q, p)):
            worst = profile_over_events(with_owner, without, epsilon)
            assert worst <= bound.delta(epsilon) + 1e-15
            fails |= worst > smaller.delta(epsilon)
    assert fails


def test_checking_grid_points_only_would_be_too_optimistic():
    p, q = SMALL_MECHANISMS["uneven"]
    at_grid_points = max(
        gdp_mu(epsilon, delta)
        for a, b in ((p, q), (q, p))
        for epsilon in [0.0, *np.log(a / b)]
        if epsilon >= 0 and (delta := profile_over_events(a, b, epsilon)) > 1e-12
    )
    assert at_grid_points < fit_bound(*directions_of(p, q), 0.0).mu * (1 - 1e-3)


@pytest.mark.parametrize("delta_0", [0.002, 0.02])
def test_a_study_chosen_in_the_light_of_another_stays_under_the_filter(delta_0):
    """Two steps; the second mechanism depends on the first output; all paths keep the same limits."""
    first = SMALL_MECHANISMS["response or leak"]
    after = ("randomised response", "subsampled geometric", "response or leak", "uneven")
    paid = fit_bound(*directions_of(*first), delta_0)
    paths_p, paths_q, totals = [], [], []
    for k, name in enumerate(after):
        then = SMALL_MECHANISMS[name]
        chosen_delta = delta_0 * (1 + k)
        totals.append(
            GaussianBound.composed([paid, fit_bound(*directions_of(*then), chosen_delta)])
        )
        paths_p.append(first[0][k] * then[0])
        paths_q.append(first[1][k] * then[1])
    p, q = np.concatenate(paths_p), np.concatenate(paths_q)
    limit = GaussianBound(max(t.mu for t in totals), max(t.delta_0 for t in totals))
    for epsilon in GRID:
        for a, b in ((p, q), (q, p)):
            assert np.maximum(a - math.exp(epsilon) * b, 0).sum() <= limit.delta(epsilon)


# The pair itself.

mus = st.floats(-4, 1.3).map(lambda exponent: 10.0**exponent)
leaks = st.floats(-12, -0.5).map(lambda exponent: 10.0**exponent)


@settings(**SMALL)
@given(mu=mus, delta_0=st.one_of(st.just(0.0), leaks), epsilon=st.floats(-8, 8))
def test_delta_is_rounded_up_at_every_real_epsilon(mu, delta_0, epsilon):
    with mpmath.workdps(110):
        exact = exact_delta(mu, delta_0, epsilon)
        delta = GaussianBound(mu, delta_0).delta(epsilon)
        assert exact <= delta <= exact * (1 + mpmath.mpf("1e-11")) + mpmath.mpf("1e-300")


@pytest.mark.parametrize(
    ("mu", "delta_0", "epsilon"),
    [(1e-4, 1e-9, 1e-3), (30, 1e-9, 400), (1, 0.0, 37), (0.2, 1e-15, 30)],
)
def test_delta_at_extreme_values(mu, delta_0, epsilon):
    with mpmath.workdps(600):
        for sign in (1, -1):
            exact = exact_delta(mu, delta_0, sign * epsilon)
            delta = GaussianBound(mu, delta_0).delta(sign * epsilon)
            assert exact <= delta <= exact * (1 + mpmath.mpf("1e-11"))


def test_limits():
    bound = GaussianBound(0.5, 1e-6)
    assert (bound.delta(math.inf), bound.delta(-math.inf)) == (1e-6, 1.0)
    assert (bound.epsilon(1e-6), bound.epsilon(0.9)) == (math.inf, 0.0)
    assert GaussianBound(0.0, 1e-6).epsilon(1e-6) == 0.0
    assert GaussianBound(0.0, 1e-6).epsilon(1e-7) == math.inf
    assert GaussianBound(math.inf).delta(3.0) == 1.0


@settings(**SMALL)
@given(mu=mus, delta_0=leaks, epsilon=st.floats(0, 20))
def test_the_other_direction_follows_at_negative_epsilon(mu, delta_0, epsilon):
    bound = GaussianBound(mu, delta_0)
    other_way = 1 - math.exp(-epsilon) + math.exp(-epsilon) * bound.delta(epsilon)
    assert bound.delta(-epsilon) == pytest.approx(min(other_way, 1.0), rel=1e-13)


@settings(**SMALL)
@given(mu=mus, delta_0=leaks, factor=st.floats(1.001, 1e4))
def test_epsilon_is_rounded_up(mu, delta_0, factor):
    delta = min(delta_0 * factor, 0.9)
    bound = GaussianBound(mu, delta_0)
    epsilon = bound.epsilon(delta)
    if delta <= delta_0:
        assert epsilon == math.inf
        return
    with mpmath.workdps(110):
        assert exact_delta(mu, delta_0, epsilon) <= delta
        lower = epsilon * (1 - 1e-9) - 1e-12
        assert lower <= 0 or exact_delta(mu, delta_0, lower) > delta * (1 - 1e-12)
    assert epsilon >= gdp_epsilon(mu, delta)


@settings(**SMALL)
@given(pairs=st.lists(st.tuples(mus, leaks), min_size=1, max_size=6))
def test_composition_adds_squares_and_leaks_rounded_up(pairs):
    bounds = [GaussianBound(*pair) for pair in pairs]
    total = GaussianBound.composed(bounds)
    with mpmath.workdps(60):
        squares = mpmath.fsum(mpmath.mpf(b.mu) ** 2 for b in bounds)
        mass = mpmath.fsum(mpmath.mpf(b.delta_0) for b in bounds)
        any_leak = 1 - mpmath.fprod(1 - mpmath.mpf(b.delta_0) for b in bounds)
        assert squares <= mpmath.mpf(total.mu) ** 2 <= squares * (1 + mpmath.mpf("1e-14"))
        assert any_leak <= total.delta_0
        assert min(mass, 1) <= total.delta_0 <= mass * (1 + mpmath.mpf("1e-14"))


def test_nothing_costs_nothing_and_one_costs_itself():
    bound = GaussianBound(0.1, 1e-7)
    assert GaussianBound.composed([]) == GaussianBound(0.0)
    assert GaussianBound.composed([GaussianBound(0.0), bound]) == bound


def test_composed_bounds_cover_the_composed_distribution():
    steps = [composed(0.1, 5, 100), composed(0.01, 1, 100)]
    bounds = [fit_bound(*loss_distributions(one), 1e-7) for one in steps]
    together = fit_bound(*loss_distributions(steps[0].compose(steps[1])), 2e-7)
    assert together.mu <= GaussianBound.composed(bounds).mu


@settings(**SMALL)
@given(
    weights=st.lists(st.floats(0.01, 1), min_size=4, max_size=10),
    delta_0=st.floats(0, 0.2),
    more=st.floats(0, 0.2),
)
def test_more_leak_never_needs_more_mu(weights, delta_0, more):
    half = len(weights) // 2
    p, q = np.array(weights[:half]), np.array(weights[half : 2 * half])
    directions = directions_of(p / p.sum(), q / q.sum())
    less = fit_bound(*directions, delta_0)
    assert fit_bound(*directions, delta_0 + more).mu <= less.mu * (1 + 1e-12)
    assert all(dominates(less, one) for one in directions)


def test_exactly_representable_distributions_need_the_exact_mu():
    """Against mpmath: rounded up, by less than a part in 1e12."""
    p, q = np.array([0.5, 0.375, 0.125]), np.array([0.125, 0.375, 0.5])
    for delta_0 in (0.0, 2.0**-10):
        mu = fit_bound(*directions_of(p, q), delta_0).mu
        with mpmath.workdps(40):
            leak = mpmath.mpf(delta_0)

            def quantile(x):
                return mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1)

            likely, unlikely = (
                (mpmath.mpf("0.5") - leak) / (1 - leak),
                mpmath.mpf("0.125") / (1 - leak),
            )
            exact = quantile(likely) - quantile(unlikely)
            at_zero = 2 * quantile((1 + (mpmath.mpf("0.375") - leak) / (1 - leak)) / 2)
            exact = max(exact, at_zero)
            assert exact <= mpmath.mpf(mu) <= exact * (1 + mpmath.mpf("1e-12"))


def test_scipys_quantiles_are_as_exact_as_assumed():
    with mpmath.workdps(400):
        for x in [
            1e-300,
            1e-100,
            1e-16,
            1e-9,
            1e-3,
            0.1,
            0.13,
            0.14,
            0.3,
            0.499,
            0.51,
            0.9,
            0.999,
            1 - 1e-12,
        ]:
            z = mpmath.mpf(float(ndtri(x)))
            # One Newton step from z to the exact quantile, of size off by a relative square.
            step = (mpmath.ncdf(z) - mpmath.mpf(x)) / mpmath.npdf(z)
            assert abs(step) < 1e-15 * abs(z)


def test_no_privacy_is_told_so():
    p, q = np.array([1 - 1e-17, 1e-17]), np.array([1e-17, 1 - 1e-17])
    assert fit_bound(*directions_of(p, q), 0.0).mu > 15


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: GaussianBound(-1.0), "mu"),
        (lambda: GaussianBound(1.0, 1.5), "delta_0"),
        (lambda: LossDistribution(np.zeros(2), np.ones(3)), "shape"),
        (lambda: LossDistribution(np.array([np.inf]), np.ones(1)), "infinity_mass"),
        (lambda: LossDistribution(np.array([1.0, 0.0]), np.array([0.5, 0.4])), "add up to 1"),
        (lambda: LossDistribution(np.array([1.0, 0.0]), np.array([0.5, -0.5])), "at least 0"),
        (lambda: fit_bound(*directions_of(*SMALL_MECHANISMS["uneven"]), 1.0), "delta_0"),
        (lambda: poisson_gaussian_bound(1.5, 1.0, 3, 1e-7), "rate"),
        (lambda: poisson_gaussian_bound(0.5, 0.0, 3, 1e-7), "noise_multiplier"),
        (lambda: poisson_gaussian_bound(0.5, 1.0, -3, 1e-7), "steps"),
        (lambda: poisson_gaussian_bound(0.5, 1.0, 3, 1e-14, interval=0.01), "infinite loss"),
    ],
)
def test_bad_input_is_refused_in_one_line(wrong, message):
    with pytest.raises(InputError, match=message) as error:
        wrong()
    assert "\n" not in str(error.value)


def test_without_dp_accounting_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    with pytest.raises(InputError, match="extra 'dp-accounting'"):
        poisson_gaussian_bound(0.1, 1.0, 10, 1e-7)
