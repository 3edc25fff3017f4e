"""Publishing costs: the noise's own cost against mpmath, coverage, and what is refused."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.accounting import gdp_epsilon, rdp_to_epsilon
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise
from reproduction.smooth.cost_profiles import answer_profile, check_profile, constant_profile
from reproduction.smooth.smooth_release import (
    RESOLUTION,
    ReleasePlan,
    noise_scale,
    release_epsilon,
    release_rdp,
)
from reproduction.smooth.smooth_sensitivity import Owners


def divergence(alpha, mean, scale, other_mean, other_scale):
    """Rényi divergence of two normal distributions, by quadrature."""
    with mpmath.workdps(30):
        alpha, mean, scale, other_mean, other_scale = map(
            mpmath.mpf, (alpha, mean, scale, other_mean, other_scale)
        )
        mixed = alpha * other_scale**2 + (1 - alpha) * scale**2
        peak = (alpha * other_scale**2 * mean + (1 - alpha) * scale**2 * other_mean) / mixed
        width = scale * other_scale / mpmath.sqrt(mixed)

        def log_normal(x, centre, spread):
            return -((x - centre) ** 2) / (2 * spread**2) - mpmath.log(
                spread * mpmath.sqrt(2 * mpmath.pi)
            )

        def integrand(x):
            first, second = log_normal(x, mean, scale), log_normal(x, other_mean, other_scale)
            return mpmath.exp(alpha * first + (1 - alpha) * second)

        edges = [peak + k * width for k in (-30, -12, -4, 0, 4, 12, 30)]
        return float(mpmath.log(mpmath.quad(integrand, edges)) / (alpha - 1))


CASES = [
    (2.0, 1, ReleasePlan(0.05, 3.0, 0.5)),
    (20.0, 1, ReleasePlan(0.01, 6.0, 1e-6)),
    (8.0, 3, ReleasePlan(0.012, 4.0, 0.05)),
    (1.5, 2, ReleasePlan(0.2, 10.0, 1e-3)),
]


@pytest.mark.parametrize(("order", "steps", "plan"), CASES)
def test_cost_is_the_divergence_of_the_worst_pair(order, steps, plan):
    claimed = float(release_rdp(order, steps, plan))
    ratio = math.exp(-plan.beta * steps)  # the neighbour's noise is narrower
    shift = steps * ratio + plan.offset * plan.sigma * (1 - ratio)
    worst = divergence(order, 0.0, plan.sigma, -shift, plan.sigma * ratio)
    assert worst <= claimed <= worst * (1 + 2e-3)


@pytest.mark.parametrize(("order", "steps", "plan"), CASES)
def test_no_allowed_pair_is_worse(order, steps, plan):
    claimed = float(release_rdp(order, steps, plan))
    for ratio in np.exp(np.linspace(-plan.beta * steps, plan.beta * steps, 41)):
        for share in np.linspace(-1, 1, 9):
            shift = share * steps * min(1.0, ratio) + plan.offset * plan.sigma * (ratio - 1)
            mixed = order * ratio**2 + 1 - order  # closed form, checked by quadrature above
            exact = order * shift**2 / (2 * plan.sigma**2 * mixed)
            exact += (order * math.log(ratio) - math.log(mixed) / 2) / (order - 1)
            assert exact <= claimed


def test_quadrature_agrees_with_the_closed_form():
    order, ratio, shift, sigma = 6.0, 0.97, 1.3, 5.0
    mixed = order * ratio**2 + 1 - order
    exact = order * shift**2 / (2 * sigma**2 * mixed)
    exact += (order * math.log(ratio) - math.log(mixed) / 2) / (order - 1)
    assert divergence(order, 0, sigma, shift, sigma * ratio) == pytest.approx(exact, rel=1e-9)


def theorem_23(order, beta, sigma):
    """Papernot et al. 2018, as their released code has it, for 1 < order < 1/(2 beta)."""
    noise = (-math.log1p(-2 * order * beta) / 2 + beta * order) / (order - 1)
    return order * math.exp(2 * beta) / sigma**2 + noise


@pytest.mark.parametrize("order", [3.0, 14.0, 30.0])
@pytest.mark.parametrize("share", [0.05, 0.25, 0.5])
def test_cost_without_offset_is_below_theorem_23_for_small_beta(order, share):
    beta = share / (2 * order)
    assert release_rdp(order, 1, ReleasePlan(beta, 5.0, 0.5)) < theorem_23(order, beta, 5.0)


def test_theorem_23_as_released_is_no_bound_near_its_limit():
    # S = 1 and S' = exp(-beta), and costs that differ by S': an allowed pair for beta < 1/(2 order).
    order, beta, sigma = 14.0, 0.49 / 14, 5.0
    ratio = math.exp(-beta)
    exact = divergence(order, 0.0, sigma, ratio, sigma * ratio)
    assert exact > 5 * theorem_23(order, beta, sigma)
    assert exact <= release_rdp(order, 1, ReleasePlan(beta, sigma, 0.5))


@settings(max_examples=100)
@given(
    order=st.floats(1.05, 60.0),
    share=st.floats(0.01, 0.45),
    sigma=st.floats(0.5, 50.0),
    failure=st.floats(1e-9, 0.5),
)
def test_cost_is_monotone(order, share, sigma, failure):
    beta = share * -math.log1p(-1 / order) / 2
    cost = release_rdp(order, [0, 1, 2], ReleasePlan(beta, sigma, failure))
    assert cost[0] == 0
    assert 0 < cost[1] < cost[2]
    assert release_rdp(order, 1, ReleasePlan(beta / 2, sigma, failure)) < cost[1]
    assert release_rdp(order, 1, ReleasePlan(beta, 2 * sigma, 0.5)) < cost[1]
    assert release_rdp(1 + (order - 1) / 2, 1, ReleasePlan(beta, sigma, failure)) < cost[1]


def profile_of(counts, orders=4.0):
    owners = Owners([1.0, 2.0], orders)
    return answer_profile(counts, owners, 12.0, total=100.0) + check_profile(
        np.max(counts, axis=1), owners, 60.0, 30.0, total=100.0
    )


VOTES = np.array([[70.0, 20.0, 10.0], [50.0, 48.0, 2.0], [97.0, 2.0, 1.0]])
PLAN = ReleasePlan(beta=0.02, sigma=4.0, failure=0.05)


def test_neighbouring_profiles_diverge_less_than_claimed():
    # Every owner who moves votes of all queries, from each class to each other.
    base = profile_of(VOTES)
    scale = noise_scale(base, PLAN)
    mean = base.sensitive_cost + PLAN.offset * scale
    for group, delta in enumerate([1.0, 2.0]):
        claimed = float(release_rdp(4.0, base.steps[group], PLAN))
        for source in range(3):
            for target in range(3):
                other = VOTES.copy()
                other[:, source] -= np.minimum(delta, VOTES[:, source])
                other[:, target] += np.minimum(delta, VOTES[:, source])
                near = profile_of(other)
                ratio = noise_scale(near, PLAN) / scale
                shift = near.sensitive_cost + PLAN.offset * noise_scale(near, PLAN) - mean
                mixed = 4.0 * ratio**2 - 3.0
                exact = 4.0 * (shift / scale) ** 2 / (2 * mixed)
                exact += (4.0 * np.log(ratio) - np.log(mixed) / 2) / 3.0
                assert (exact <= claimed).all()
                assert source == target or (exact > 0).all()


def test_published_costs_are_too_low_as_rarely_as_planned():
    # 6,000 draws for each of two groups; outside with probability below 1e-6 (normal, 5 sigma).
    profile = profile_of(VOTES)
    scale, draws = noise_scale(profile, PLAN), 6000
    loose = profile + constant_profile([50.0, 50.0], Owners([1.0, 2.0], 4.0))
    noise = np.stack(
        [
            SeededNoise(5).gaussian(value * 2**10, draws, query=group, purpose="answer") / 2**10
            for group, value in enumerate(scale)
        ],
        axis=1,
    )
    low = np.array(
        [release_epsilon(loose, PLAN, row).rdp < loose.sensitive_cost for row in noise]
    ).mean(axis=0)
    spread = math.sqrt(PLAN.failure * (1 - PLAN.failure) / draws)
    assert (np.abs(low - PLAN.failure) < 5 * spread).all()


def test_published_epsilon_includes_every_group_s_number():
    profile = profile_of(VOTES, [4.0, 3.0])
    published = release_epsilon(profile, PLAN, [0.0, 0.0])
    assert (published.rdp >= profile.sensitive_cost).all()
    assert (published.rdp <= profile.worst_case).all()
    for group, order in enumerate([4.0, 3.0]):
        own = 2 * float(release_rdp(order, profile.steps[group], PLAN))
        assert published.release_rdp[group] == own
        total = published.rdp[group] + own
        epsilon = rdp_to_epsilon([total], [order], PLAN.delta)[0]
        assert published.epsilon[group] == epsilon


def test_published_costs_are_on_the_grid_unless_cut():
    profile = profile_of(np.tile(VOTES, (40, 1)))
    published = release_epsilon(profile, PLAN, np.array([-3.0, 5.0]) * RESOLUTION)
    inside = (published.rdp > 0) & (published.rdp < profile.worst_case)
    steps = published.rdp[inside] / RESOLUTION
    assert (steps == np.rint(steps)).all()
    assert (release_epsilon(profile, PLAN, [-100.0, -100.0]).rdp == 0).all()
    assert (release_epsilon(profile, PLAN, [100.0, 100.0]).rdp == profile.worst_case).all()


def test_owners_without_influence_pay_nothing():
    owners = Owners([0.0, 1.0], 4.0)
    profile = answer_profile(VOTES, owners, 12.0, total=100.0)
    published = release_epsilon(profile, PLAN, [0.0, 0.0])
    assert published.epsilon[0] == 0
    assert published.release_rdp[0] == 0
    assert published.epsilon[1] > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": 0.0}, "beta"),
        ({"sigma": -1.0}, "sigma"),
        ({"failure": 0.6}, "failure"),
        ({"failure": 0.0}, "failure"),
        ({"delta": 0.0}, "delta"),
        ({"conversion": "moments"}, "conversion"),
    ],
)
def test_plans_refuse(changes, message):
    with pytest.raises(InputError, match=message):
        ReleasePlan(**{"beta": 0.01, "sigma": 4.0} | changes)


def test_releases_refuse():
    profile = profile_of(VOTES)
    with pytest.raises(InputError, match="one number per group"):
        release_epsilon(profile, PLAN, [0.0])
    with pytest.raises(InputError, match="exact sampler"):
        release_epsilon(profile, PLAN, [0.1, 0.2])
    with pytest.raises(InputError, match="smaller beta"):
        release_rdp(20.0, 1, ReleasePlan(beta=0.026, sigma=4.0))


def test_holding_back_gives_two_sided_privacy_on_a_small_ensemble():
    """Labels leave only if the published epsilon fits: both directions hold, at delta + failure.

    The mechanism is enumerated: labels of 40 queries at two neighbouring tables of two classes,
    passed with the probability that the published number allows, or withheld.
    """
    n_queries, teachers, sigma, order, delta, limit = 40, 1600.0, 10.0, 8.0, 1e-3, 1.5
    plan = ReleasePlan(beta=0.02, sigma=8.0, failure=1e-4, delta=delta)
    own = float(release_rdp(order, 1, plan))
    allowed = limit - float(rdp_to_epsilon([own], [order], delta)[0])

    def passing(left):
        table = np.tile([left, teachers - left], (n_queries, 1))
        profile = answer_profile(table, Owners([1.0], order), sigma, total=teachers)
        scale = float(noise_scale(profile, plan)[0])
        raised = float(profile.sensitive_cost[0]) + plan.offset * scale
        return 0.5 * math.erfc((raised - allowed) / scale / math.sqrt(2))

    def labels(left):
        error = 0.5 * math.erfc((2 * left - teachers) / (2 * sigma))
        wrong = np.arange(n_queries + 1)
        choose = np.array([math.comb(n_queries, int(count)) for count in wrong], dtype=float)
        return choose * error**wrong * (1 - error) ** (n_queries - wrong)

    seen = []
    for left in range(802, 1598, 12):
        pair = [(labels(n), passing(n)) for n in (float(left), float(left + 1))]
        for (here, kept), (there, other) in (pair, pair[::-1]):
            beyond = np.maximum(kept * here - math.exp(limit) * other * there, 0).sum()
            withheld = max(1 - kept - math.exp(limit) * (1 - other), 0.0)
            assert beyond + withheld <= delta + plan.failure
            seen.append(kept)
    assert max(seen) > 0.99
    assert min(seen) < 1e-4
    assert any(0.05 < kept < 0.95 for kept in seen)
    worst = gdp_epsilon(math.sqrt(2 * n_queries) / sigma, delta)
    assert worst > limit  # what the worst-case account would refuse
