"""Permute-and-flip and the exponential mechanism: what they cost, brute force, and what is drawn."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from collegium import ExponentialMax, PermuteAndFlip
from collegium.accounting import GaussianAccountant, gdp_delta, pure_to_gdp
from collegium.accounting.votes.pure_max import (
    exponential_log_q,
    exponential_rdp,
    permute_and_flip_log_q,
)
from collegium.mechanisms import SecureNoise, SeededNoise
from collegium.noise.exact_sampling import EXPONENTIAL, GUMBEL, MAX_SCALE_STEPS, draw_rounded
from collegium.noise.grid import GRID
from collegium.pate.voting.aggregators import aggregator_from
from collegium.pate.voting.pricing import DataDependentPricing

FALSE_ALARM = 1e-8
GAMMA = 0.3


def permute_and_flip(counts, gamma):
    """Exact distribution by inclusion and exclusion over who else is accepted before j."""
    weights = np.exp(gamma * (np.array(counts, dtype=float) - max(counts)))
    result = []
    for j, own in enumerate(weights):
        others = np.delete(weights, j)
        result.append(
            own
            * sum(
                (-1) ** size / (size + 1) * math.prod(chosen)
                for size in range(len(others) + 1)
                for chosen in itertools.combinations(others, size)
            )
        )
    return np.array(result)


def exponential(counts, gamma):
    weights = np.exp(gamma * (np.array(counts, dtype=float) - max(counts)))
    return weights / weights.sum()


def on_a_grid(counts, scale, law):
    """Exact winner of integer counts plus rounded noise, ties to the first: sum over all atoms."""
    atoms = np.arange(-int(40 * scale), int(60 * scale))
    upper = law.cdf((atoms + 0.5) / scale)
    lower = law.cdf((atoms - 0.5) / scale)
    result = []
    for j, own in enumerate(counts):
        product = upper - lower
        for i, other in enumerate(counts):
            if i != j:  # i < j must be strictly below, i > j may tie
                product = product * law.cdf((own - other + atoms - 0.5 + (i > j)) / scale)
        result.append(product.sum())
    return np.array(result)


def neighbours(counts, delta):
    """Every table that an owner can make: some votes, up to delta, from one class to another."""
    for down, up in itertools.permutations(range(len(counts)), 2):
        for lost, won in itertools.product(range(delta + 1), repeat=2):
            if lost <= counts[down]:
                moved = list(counts)
                moved[down] -= lost
                moved[up] += won
                yield tuple(moved)


TABLES = [t for m in (2, 3) for t in itertools.product(range(7), repeat=m)] + [(9, 0, 0, 9)]


@pytest.mark.parametrize("delta", [1, 2])
@pytest.mark.parametrize("law", [permute_and_flip, exponential])
def test_the_pure_epsilon_is_met_and_tight_on_all_small_tables(law, delta):
    claim = 2 * GAMMA * delta
    worst = 0.0
    for counts in TABLES:
        here = law(counts, GAMMA)
        assert here.sum() == pytest.approx(1, abs=1e-12)
        for moved in neighbours(counts, delta):
            worst = max(worst, np.abs(np.log(here / law(moved, GAMMA))).max())
    assert worst <= claim * (1 + 1e-12)
    far = law((60, 0), GAMMA), law((60 - delta, delta), GAMMA)
    assert np.log(far[1][1] / far[0][1]) > claim * (1 - 1e-6)
    if law is permute_and_flip:
        assert worst == pytest.approx(claim, rel=1e-12)  # no table is needed that is large


@pytest.mark.parametrize("delta", [1, 2])
def test_the_exponential_mechanism_has_bounded_range_and_what_follows_from_it(delta):
    bound = 2 * GAMMA * delta
    mu = pure_to_gdp(bound / 2)
    orders = np.array([1.01, 1.5, 2.0, 5.0, 30.0])
    widest = 0.0
    for counts in TABLES[::3]:
        here = exponential(counts, GAMMA)
        for moved in neighbours(counts, delta):
            there = exponential(moved, GAMMA)
            ratio = np.log(here / there)
            widest = max(widest, np.ptp(ratio))
            moment = np.log((here[:, None] * np.exp(ratio[:, None] * (orders - 1))).sum(axis=0))
            assert (moment / (orders - 1) <= orders * bound**2 / 8 + 1e-13).all()
            for epsilon in (0.0, bound / 4, bound / 2):
                excess = np.maximum(here - math.exp(epsilon) * there, 0).sum()
                assert excess <= gdp_delta(mu, epsilon) + 1e-13
    assert widest <= bound * (1 + 1e-12)
    assert widest == pytest.approx(bound, rel=1e-12)


def test_permute_and_flip_has_not():
    """Between two tied classes its log-ratios are nearly +-e: twice the range, no smaller curve."""
    gamma = 0.01
    here, there = permute_and_flip((5, 4), gamma), permute_and_flip((4, 5), gamma)
    ratio = np.log(here / there)
    assert np.ptp(ratio) > 0.97 * 4 * gamma  # one vote moved: e = 2 gamma
    divergence = (here * ratio).sum()
    assert divergence > 0.95 * (2 * gamma) ** 2 / 2


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_rounding_to_a_coarse_grid_costs_what_is_charged(scale):
    """Counts in steps; permute-and-flip pays nothing extra, the exponential mechanism two steps."""
    for delta in (1, 3):
        pure = 2 * delta / scale
        gumbel = 2 * (delta + 2) / scale
        for counts in [(4, 4), (4, 3, 4), (9, 0, 3), (5, 5, 5), (0, 7), (12, 12, 3, 3)]:
            flip = on_a_grid(counts, scale, stats.expon)
            race = on_a_grid(counts, scale, stats.gumbel_r)
            for moved in neighbours(counts, delta):
                ratio = np.log(flip / on_a_grid(moved, scale, stats.expon))
                assert np.abs(ratio).max() <= pure * (1 + 1e-9)
                ratio = np.log(race / on_a_grid(moved, scale, stats.gumbel_r))
                assert np.abs(ratio).max() <= gumbel * (1 + 1e-9)
                assert np.ptp(ratio) <= gumbel * (1 + 1e-9)


def test_the_grid_of_the_package_changes_nothing_that_can_be_seen():
    fine = on_a_grid((400, 300, 300), 100.0, stats.gumbel_r)
    assert fine == pytest.approx(exponential((400, 300, 300), 0.01), rel=0.02)


def test_worst_mu_is_the_symmetric_pair():
    for bound in (0.01, 0.5, 2.0, 6.0):
        logits = np.linspace(-30, 30, 20001)
        p, q = 1 / (1 + np.exp(-logits - bound / 2)), 1 / (1 + np.exp(-logits + bound / 2))
        gain = stats.norm.ppf(p) - stats.norm.ppf(q)
        inside = (q > 1e-12) & (p < 1 - 1e-9)
        assert gain[inside].max() <= pure_to_gdp(bound / 2) * (1 + 1e-9)
        assert gain[inside].max() == pytest.approx(pure_to_gdp(bound / 2), rel=1e-6)


# ------------------------------------------------------------------------------------- prices


@pytest.mark.parametrize("name", ["pfmax", "expmax"])
def test_worst_case_prices(house, name):
    aggregator = aggregator_from(name, gamma=0.05)
    electorate = house.plan("weighting").electorate(seed=1)
    ballot = electorate.ballot(0)
    check, answer = aggregator.check_event(ballot), aggregator.answer_event(ballot)
    assert not check.mu_squared.any()
    for cohort, moved in enumerate(ballot.sensitivity):
        surcharge = 2 * mpmath.mpf(GRID) if name == "expmax" else 0
        epsilon = 2 * mpmath.mpf(0.05) * (mpmath.mpf(float(moved)) + surcharge)
        epsilon /= mpmath.mpf(ballot.scale)
        assert 1 <= mpmath.mpf(float(answer.pure_epsilon[cohort])) / epsilon < 1 + 1e-13
        mu = pure_to_gdp(float(epsilon) / (2 if name == "expmax" else 1))
        assert answer.mu_squared[cohort] == pytest.approx(mu**2, rel=1e-12)
    account = GaussianAccountant(np.ones(len(ballot.sensitivity)), 1e-5)
    account.charge(answer)
    assert (account.epsilon_spent() <= answer.pure_epsilon * (1 + 1e-12)).all()


def exact_renyi(here, there, orders):
    return [math.log((here**a * there ** (1 - a)).sum()) / (a - 1) for a in orders]


@pytest.mark.parametrize("name", ["pfmax", "expmax"])
def test_data_dependent_prices_bound_the_exact_divergence(house, name):
    law = permute_and_flip if name == "pfmax" else exponential
    orders = np.array([1.5, 2.0, 8.0, 32.0])
    for counts in [(20, 3, 1), (40, 0, 0), (9, 8, 2), (30, 5)]:
        electorate = house.unlimited(sum(counts))
        pricing = DataDependentPricing(aggregator_from(name, gamma=GAMMA), electorate, orders)
        prices = pricing.prices([electorate.ballot(0)], np.array([counts], dtype=float))
        cost = prices[0].answer.sensitive_rdp[0]
        here = law(counts, GAMMA)
        for moved in neighbours(counts, 1):
            assert (np.array(exact_renyi(here, law(moved, GAMMA), orders)) <= cost + 1e-12).all()


def test_log_q_is_exact_or_a_bound():
    for counts in TABLES[60:]:
        top = int(np.argmax(counts))
        q = 1 - exponential(counts, GAMMA)[top]
        assert exponential_log_q([counts], GAMMA)[0] == pytest.approx(math.log(q), abs=1e-10)
        q = 1 - permute_and_flip(counts, GAMMA)[top]
        assert permute_and_flip_log_q([counts], GAMMA)[0] >= math.log(q) - 1e-10
    assert exponential_rdp([-1.0], [0.0], GAMMA, [2.0])[0, 0, 0] == 0


@pytest.mark.parametrize("name", ["gnmax", "confident"])
def test_sharp_bounds_are_never_worse_and_papers_bounds_are_kept_for_the_seeds(house, name):
    electorate = house.plan("uniform", 100).electorate(seed=0)
    counts = np.random.default_rng(0).multinomial(100, [0.6, 0.2, 0.1, 0.1], size=20).astype(float)
    options = {"threshold": 80.0, "sigma_threshold": 60.0} if name == "confident" else {}
    aggregator = aggregator_from(name, sigma=10.0, **options)

    def total(**options):
        pricing = DataDependentPricing(aggregator, electorate, **options)
        prices = pricing.prices([electorate.ballot(i) for i in range(20)], counts)
        return pricing.bounds, sum(
            (prices[i].check + prices[i].answer).sensitive_rdp for i in range(20)
        )

    papers, sharp = total(bounds="papers")[1], total()[1]
    assert total()[0] == "sharp" and total(conversion="mironov")[0] == "papers"
    assert total(orders=np.arange(2, 51))[0] == "papers"
    assert (sharp <= papers * (1 + 1e-5)).all() and sharp.sum() < papers.sum()
    for one in ("sharp-q", "sharp-check"):
        assert (sharp <= total(bounds=one)[1] * (1 + 1e-5)).all()


# ------------------------------------------------------------------------------ what is drawn


def repeated(counts, n_runs):
    return np.tile(np.repeat(np.arange(len(counts)), counts), (n_runs, 1)).astype(np.int32)


@pytest.mark.parametrize("counts", [(10, 7, 3), (0, 12, 8, 12)])
@pytest.mark.parametrize(
    ("aggregator", "law"),
    [(PermuteAndFlip(0.25), permute_and_flip), (ExponentialMax(0.25), exponential)],
    ids=["pfmax", "expmax"],
)
def test_the_winner_of_a_real_job_is_distributed_as_brute_force_says(
    house, aggregator, law, counts
):
    """Chi-square over 3,000 answers of seeded noise; of free noise, false alarms 1e-8."""
    runs = 3000
    electorate = house.unlimited(sum(counts))
    job, _ = house.job(repeated(counts, runs), electorate, aggregator, n_classes=len(counts))
    labels = job.run()
    observed = np.bincount(labels.labels, minlength=len(counts))
    expected = runs * law(counts, 0.25)
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, len(counts) - 1) > FALSE_ALARM


LAWS = {"exponential": stats.expon, "gumbel": stats.gumbel_r}


@pytest.mark.parametrize("name", LAWS)
def test_goodness_of_fit(name):
    """Common atoms at 3 grid steps, and Kolmogorov-Smirnov at scale 40; false alarms 4e-8 in all."""
    draw, size, low, high = getattr(SecureNoise(), name), 200_000, -9, 24
    steps = np.rint(draw(3 * GRID, size, query=0, purpose="answer") / GRID).astype(int)
    observed = np.bincount(np.clip(steps, low, high) - low, minlength=high - low + 1)
    inner = LAWS[name].cdf((np.arange(low, high) + 0.5) / 3)
    expected = size * np.diff(np.concatenate([[0.0], inner, [1.0]]))
    assert observed[expected == 0].sum() == 0
    common = expected > 50
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], max(expected[~common].sum(), 1.0))
    chi = ((observed - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(chi, common.sum()) > FALSE_ALARM
    values = draw(40.0, size, query=0, purpose="answer") / 40.0
    assert stats.kstest(values, LAWS[name].cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", LAWS)
def test_seeded_noise_repeats_and_secure_noise_does_not(name):
    seeded = getattr(SeededNoise(3), name)
    first = seeded(9.0, 5, query=1, purpose="answer")
    assert (first == getattr(SeededNoise(3), name)(9.0, 5, query=1, purpose="answer")).all()
    assert (first != seeded(9.0, 5, query=2, purpose="answer")).any()
    fresh = getattr(SecureNoise(), name)
    once, again = (fresh(9.0, 5, query=1, purpose="answer") for _ in range(2))
    assert (once != again).any()


def test_draws_are_the_nearest_integers_in_ninety_digits():
    """Each word's integer against the inverse distribution function; boundaries, tails and centre."""
    rng = np.random.default_rng(4)
    with mpmath.workdps(90):
        for scale in (0.3, 3.0, 40 / GRID, MAX_SCALE_STEPS):
            numerators = [1, 2**19, 2**20, 2**40, 2**62, 2**63 - 2**20, 2**63 - 2]
            numerators += rng.integers(2**20, 2**63, size=60).tolist()
            for numerator, bit in itertools.product(numerators, (0, 1)):
                tail_words = rng.integers(2**64, size=3, dtype=np.uint64).tolist()
                words = [numerator << 1 | bit, *tail_words]
                u = mpmath.mpf(numerator)
                for place, word in enumerate(tail_words, 1):
                    u += mpmath.mpf(word) / mpmath.mpf(2) ** (64 * place)
                u /= mpmath.mpf(2) ** 63
                below = u / 2 if bit else 1 - u / 2  # the Gumbel distribution function at X
                x = -mpmath.log(-mpmath.log(below))
                assert drawn(GUMBEL, scale, words) == nearest(scale * x)
                assert drawn(EXPONENTIAL, scale, words, signed=False) == nearest(
                    -scale * mpmath.log(u)
                )


def drawn(variable, scale, words, **options):
    left = list(words)

    def source(count):
        return np.array([left.pop(0) for _ in range(count)], dtype=np.uint64)

    return int(draw_rounded(variable, scale, 1, source, **options)[0])


def nearest(value):
    return int(mpmath.floor(value + mpmath.mpf(1) / 2))


def test_gumbel_draws_next_to_a_boundary_are_settled_by_more_bits():
    with mpmath.workdps(90):
        scale = 1000.5
        for integer in (-900, -1, 0, 1, 366, 367, 5000):
            boundary = (mpmath.mpf(integer) + mpmath.mpf(1) / 2) / mpmath.mpf(scale)
            below = mpmath.exp(-mpmath.exp(-boundary))
            bit = int(below < 0.5)
            u = 2 * below if bit else 2 * (1 - below)
            numerator = int(mpmath.floor(u * 2**127))
            for offset in (-1, 0, 1):
                shifted = numerator + offset
                words = [(shifted >> 64) << 1 | bit, shifted & (2**64 - 1), 5, 7]
                value = (mpmath.mpf(shifted) + mpmath.mpf(5) / 2**64) / mpmath.mpf(2) ** 127
                at = value / 2 if bit else 1 - value / 2
                wanted = nearest(mpmath.mpf(scale) * -mpmath.log(-mpmath.log(at)))
                assert drawn(GUMBEL, scale, words) == wanted
