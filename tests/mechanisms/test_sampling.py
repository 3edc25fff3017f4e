"""The sample mechanism: rates, what is lost with a δ or by replacement, and what must not be seen."""

import warnings

import numpy as np
import pytest
from mpmath import mp, mpf

from collegium import Budget, Budgets, GNMax, PATEClassifier, Policy, PrivacyWarning
from collegium.accounting import Neighbours
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise, sample, sampled_count
from collegium.mechanisms.sampling import keeping_rate, sampled_epsilon


@pytest.fixture(autouse=True)
def _seeded():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def counted(rate, epsilon, present, others=6):
    """Exact chances of the exponential mechanism's count, where one person is kept by a coin."""

    def of(count):
        logs = -epsilon * np.abs(np.arange(others + 2) - count) / 2
        return np.exp(logs - np.logaddexp.reduce(logs))

    return rate * of(others // 2 + present) + (1 - rate) * of(others // 2)


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 0.9])
def test_the_rate_is_that_of_the_definition_and_its_loss_the_budget(epsilon):
    rate = keeping_rate(epsilon, 1.0)
    assert rate == pytest.approx(np.expm1(epsilon) / np.expm1(1.0), rel=1e-12)
    assert sampled_epsilon(rate, 1.0) <= epsilon * (1 + 1e-13)
    assert keeping_rate(1.0, 1.0) == 1.0


def test_thresholds_that_are_no_exponents_of_floats_keep_the_budget_too():
    for epsilon, threshold in (
        (990.0, 1000.0),
        (0.1, 600.0),
        (1.0, 40.0),
        (0.1, 1e6),
        (1e-9, 1e-8),
    ):
        rate = keeping_rate(epsilon, threshold)
        with mp.workdps(60):
            exact = mp.log1p(mpf(rate) * mp.expm1(mpf(threshold)))
        assert exact <= epsilon
        assert float(exact) <= sampled_epsilon(rate, threshold) <= epsilon + threshold * 1e-14


def test_the_loss_with_a_coin_is_below_the_bound_and_the_bound_is_reached():
    for rate, epsilon in ((0.2, 1.0), (0.6, 2.5)):
        # Of all mechanisms of this ε, one whose chances are as far apart as they may be.
        with_it = np.array([np.exp(epsilon), 1.0]) / (1 + np.exp(epsilon))
        mixed = rate * with_it + (1 - rate) * with_it[::-1]
        ratios = np.log(mixed / with_it[::-1])
        assert np.abs(ratios).max() == pytest.approx(sampled_epsilon(rate, epsilon), rel=1e-9)
        ratios = np.log(counted(rate, epsilon, True) / counted(rate, epsilon, False))
        assert 0 < np.abs(ratios).max() < sampled_epsilon(rate, epsilon)


def test_with_a_delta_both_directions_hold_and_one_is_tight():
    rate, epsilon, delta = 0.3, 1.2, 0.01
    low = (1 - delta) / (1 + np.exp(epsilon))
    kept = np.array(
        [delta, low * np.exp(epsilon), low, 0.0]
    )  # the pair that dominates all of (ε, δ)
    left_out = kept[::-1]
    mixed, bound = rate * kept + (1 - rate) * left_out, np.exp(sampled_epsilon(rate, epsilon))
    there = np.maximum(mixed - bound * left_out, 0).sum()
    back = np.maximum(left_out - bound * mixed, 0).sum()
    assert there == pytest.approx(rate * delta, rel=1e-9)
    assert back <= rate * delta


def test_replacement_would_lose_more_than_was_granted():
    rate, threshold = keeping_rate(0.5, 2.0), 2.0
    odds = np.exp(np.array([threshold, 0.0, -threshold]))  # a value of +1, nobody, a value of -1
    kept = rate * odds[0] + (1 - rate) * odds[1]
    other = rate * odds[2] + (1 - rate) * odds[1]
    assert 0.55 < np.log(kept / other) <= 2 * 0.5
    budgets = Policy({"a": 0.5}).assign(["a"] * 4)
    for neighbours in (Neighbours.REPLACE, Neighbours.ANY_CHANGE):
        with pytest.raises(InputError, match="loses up to twice"):
            sample(budgets, 1.0, neighbours=neighbours)


def people(n=3000):
    return Policy({"high": 0.5, "low": 2.0, "none": 0}).assign(
        np.resize(["high", "low", "high", "none"], n),
        owners=[f"owner {row // 4 * 4 + row % 4}" for row in range(n)],
    )


def test_all_of_an_owner_is_kept_or_nothing_and_rates_are_those_promised():
    rng = np.random.default_rng(0)
    owner = rng.integers(0, 2000, 6000)
    budgets = Budgets({"high": Budget(0.5), "low": Budget(2.0)}, owner % 2, owner)
    kept = sample(budgets, 1.5, noise=SeededNoise(0))
    in_it = np.zeros(6000, dtype=bool)
    in_it[kept.sensitive_records] = True
    assert all(np.ptp(in_it[owner == one].astype(int)) == 0 for one in np.unique(owner)[:200])
    names = budgets.owners[budgets.record_owner]
    high = np.unique(names[(owner % 2 == 0) & in_it]).size / np.unique(names[owner % 2 == 0]).size
    rate = keeping_rate(0.5, 1.5)
    assert abs(high - rate) < 5 * np.sqrt(rate * (1 - rate) / 900)  # false alarms below 1e-6
    assert in_it[owner % 2 == 1].all() and kept.rates["low"] == 1.0


def test_the_number_that_is_published_is_the_expected_one_whatever_the_coins():
    sizes = set()
    for seed in range(4):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            kept = sample(people(), Budget(2.0, 1e-5), noise=SeededNoise(seed))
        assert all("seeded" in str(one.message) for one in said)
        sizes.add(tuple(kept.budgets.public_sizes().items()))
        assert str(len(kept.sensitive_records)) not in repr(kept)
    expected = round(750 + 1500 * keeping_rate(0.5, 2.0))
    assert sizes == {(("sampled", expected),)}
    assert len({len(sample(people(), 2.0, noise=SeededNoise(s)).budgets) for s in range(4)}) > 1


def test_who_granted_nothing_is_never_kept():
    budgets = people()
    kept = sample(budgets, 2.0, noise=SeededNoise(1))
    groups = budgets.record_groups()[kept.sensitive_records]
    assert set(groups) == {"high", "low"}


def test_guarantees_are_within_what_was_granted_and_smaller_deltas_keep_fewer():
    budgets = Budgets({"a": Budget(1.0, 1e-5), "b": Budget(3.0, 1e-7)}, [0, 1] * 50)
    kept = sample(budgets, Budget(2.0, 1e-6), noise=SeededNoise(0))
    assert kept.rates["b"] == pytest.approx(0.1)
    for name in "ab":
        held = kept.guarantee(name)
        assert held.epsilon <= budgets.groups[name].epsilon * (1 + 1e-12)
        assert held.delta <= budgets.groups[name].delta * (1 + 1e-12)
    half = kept.guarantee("a", Budget(1.0, 1e-6))
    assert half.epsilon < kept.guarantee("a").epsilon
    bound = kept.bound("a")
    # The profile of leaky randomised response is below that of the bound.
    for epsilon in (0.0, 0.3, 1.0):
        e = kept.guarantee("a").epsilon
        leak = 1e-6 * kept.rates["a"]
        pure = max(0.0, (np.exp(e) - np.exp(epsilon)) / (1 + np.exp(e)))
        assert leak + (1 - leak) * pure <= bound.delta(epsilon) * (1 + 1e-9)


def test_the_published_error_of_a_sampled_count():
    epsilons = np.repeat([0.01, 0.2, 1.0], [540, 370, 90])
    rates = np.array([keeping_rate(epsilon, 0.2) for epsilon in epsilons])
    factor = 1 / rates.mean()
    noise, people = 2 / 0.2**2, (0.3 * rates * (1 - 0.3 * rates)).sum()
    assert round(factor * np.sqrt(noise + people), 2) == 25.60
    rng, errors = np.random.default_rng(0), []
    for run in range(1500):
        has_it, seeded = rng.random(1000) < 0.3, SeededNoise(7)
        count = sampled_count(has_it, epsilons, 0.2, noise=seeded, coins=seeded, query=run)
        errors.append(count.value - 300)
    # Six standard errors of the root mean square error.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(25.60, rel=0.13)
    assert count.event.epsilon == pytest.approx([0.01, 0.2, 0.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample([1.0], 1.0), "policy.assign"),
        (lambda: sample(people(40), np.inf), "threshold"),
        (lambda: sample(people(40), 0.0), "threshold"),
        (lambda: sampled_count([True], [0.0], 1.0), "above 0"),
        (lambda: sampled_count([1], [1.0], 1.0), "true or false"),
    ],
)
def test_bad_input_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_weights_in_place_of_coins_cost_less_and_are_nearer():
    for epsilon in (0.05, 0.5, 1.7):
        rate = keeping_rate(epsilon, 2.0)
        assert rate * 2.0 < epsilon  # the price of the weight; the coin costs epsilon


def test_pate_on_a_sample_publishes_what_was_to_be_expected_and_groups_keep_their_budgets():
    rng = np.random.default_rng(0)
    features, public = rng.normal(size=(900, 2)), rng.normal(size=(60, 2))
    labels = (features[:, 0] > 0).astype(int)
    budgets = Policy({"high": 7.0, "low": 8.0}).assign(
        ["high", "low"] * 450, owners=[f"owner {row}" for row in range(900)]
    )
    kept = sample(budgets, 8.0, noise=SeededNoise(0))
    rows = kept.sensitive_records
    model = PATEClassifier(n_teachers=20, aggregator=GNMax(sigma=6), classes=[0, 1], noise_seed=0)
    model.fit(features[rows], labels[rows], budgets=kept.budgets, X_public=public)
    (row,) = model.privacy_.groups
    assert row.owners == round(450 * (1 + keeping_rate(7.0, 8.0))) != len(rows)
    spent = Budget(row.epsilon_spent, 1e-5)
    assert (
        kept.guarantee("high", spent).epsilon <= 7.0 and kept.guarantee("low", spent).epsilon <= 8.0
    )
    assert "loses at most ε = " in kept.sentences(spent)[0]
    assert "added, removed or replaced" in str(model.privacy_)
