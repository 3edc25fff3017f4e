"""Hybrid: pools of people who grant alike; and budgets as fine as people are."""

import importlib.util
import itertools
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Budget, Budgets, GNMax, Hybrid, Uniform, Upsampling, Vanishing, Weighting
from collegium.accounting import gdp_mu
from collegium.budgets import NOTHING
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.personalisation.bins import equal_waste, few_budgets, gathered, said_of
from collegium.personalisation.hybrid import best_bound
from collegium.personalisation.rules import relative_influence

KEY = b"public key"


@pytest.fixture(scope="module")
def measured():
    """The benchmark: its policies, and how it measures a plan."""
    path = Path(__file__).parents[2] / "benchmarks" / "fine_budgets.py"
    spec = importlib.util.spec_from_file_location("fine_budgets", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_on_ten_awkward_policies_it_is_as_good_as_the_best_of_the_others(measured):
    """Used share where weights are not bounded, and signal where they are: 0.1 % of slack."""
    assert len(measured.POLICIES) == 10
    refused = 0
    for groups, n_teachers in measured.POLICIES.values():
        others = []
        for kind in (Uniform(), Weighting(), Upsampling(), Vanishing()):
            try:
                others.append(measured.used(*measured.planned(kind, groups, n_teachers)))
            except InputError:
                refused += 1
        free = measured.used(*measured.planned(Hybrid(noise_to_votes=1e9), groups, n_teachers))
        bounded = measured.used(*measured.planned(Hybrid(), groups, n_teachers))
        assert free[0] >= max(share for share, _, _ in others) - 1e-3
        assert bounded[2] >= max(signal for _, _, signal in others) - 1e-3
    assert refused == 12  # weighting and vanishing, six policies each: hybrid refuses none


groups_of_people = st.lists(
    st.tuples(st.sampled_from([0.1, 0.5, 1.0, 1.3, 2.0, 4.0, 20.0, math.inf]), st.integers(1, 40)),
    min_size=1,
    max_size=9,
)


def people_of(groups):
    """Budgets by name, and records of one owner each."""
    named = {f"g{i}": Budget(epsilon) for i, (epsilon, _) in enumerate(groups)}
    codes = np.repeat(np.arange(len(groups)), [size for _, size in groups])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Budgets(named, codes, np.arange(len(codes)) + 1000)


@settings(max_examples=25, deadline=None)
@given(
    groups=groups_of_people, n_teachers=st.integers(1, 25), most=st.integers(1, 8), data=st.data()
)
def test_an_owner_moves_the_weights_of_exactly_the_teachers_who_see_the_owner(
    groups, n_teachers, most, data
):
    """By brute force: the owner is taken out, and whichever training set is another one is counted."""
    budgets = people_of(groups)
    n_teachers = min(n_teachers, budgets.n_owners)
    plan = Hybrid(max_duplicates=most).plan_for(budgets, n_teachers)
    electorate = plan.electorate(0)
    leaver = data.draw(st.integers(0, budgets.n_owners - 1))
    stay = np.arange(budgets.n_owners) != leaver
    before = plan.assign(budgets, KEY).shards()
    after = [set()] * plan.n_teachers
    if stay.any():
        others = budgets[stay]
        shards = plan.assign(others, KEY).shards()
        after = [set(others.owners[others.record_owner[shard]].tolist()) for shard in shards]
    moved = [
        set(budgets.owners[budgets.record_owner[shard]].tolist()) != other
        for shard, other in zip(before, after, strict=True)
    ]
    name = budgets.group_names[budgets.owner_group[leaver]]
    said = electorate.sensitivity[electorate.cohort_groups.index(name)]
    assert electorate.weights[moved].sum() == said == plan.groups[name].sensitivity > 0
    assert sum(moved) == plan.groups[name].duplicates <= most


@settings(max_examples=25, deadline=None)
@given(groups=groups_of_people, n_teachers=st.integers(1, 25))
def test_each_pool_has_teachers_and_somebody_who_uses_everything(groups, n_teachers):
    budgets = people_of(groups)
    n_teachers = min(n_teachers, budgets.n_owners)
    plan = Hybrid(noise_to_votes=1e9).plan_for(budgets, n_teachers)
    ranges = plan.teacher_ranges()
    assert sorted(itertools.chain(*plan.pools)) == sorted(plan.groups)
    ends = [ranges[pool[0]] for pool in plan.pools]
    assert [first for first, _ in ends] == [0, *(end for _, end in ends[:-1])]
    assert ends[-1][1] == plan.n_teachers == plan.electorate(0).n_teachers
    for pool in plan.pools:
        assert (
            len({ranges[name] for name in pool}) == len({plan.groups[g].weight for g in pool}) == 1
        )
        weight = plan.groups[pool[0]].weight
        # Weights lie on a grid: the first to run out anywhere decides, by so much at most.
        assert max(plan.groups[g].utilisation for g in pool) >= 1 - 2 * GRID / weight - 40 * GRID


epsilons = st.lists(
    st.floats(0.05, 30).map(lambda e: round(e, 2)) | st.just(math.inf), min_size=4, max_size=60
)


@settings(max_examples=25, deadline=None)
@given(epsilons=epsilons, most=st.integers(1, 6), n_teachers=st.integers(1, 12))
def test_nobody_is_ever_charged_more_than_their_own_budget(epsilons, most, n_teachers):
    """Everybody's own ε beside what their group was charged when the voting ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        budgets = Budgets.from_epsilons(epsilons)
    few = few_budgets(budgets, most)
    plan = Hybrid().plan_for(few, min(n_teachers, len(epsilons)))
    pricing = WorstCasePricing(GNMax(sigma=20.0 * n_teachers), plan.electorate(0))
    price = pricing.price(plan.electorate(0).ballot(0))
    account = pricing.accountant
    for _ in range(int(min(account.how_many(price.reserve, 300), 300))):
        account.charge(price.answer)
    spent = account.epsilon_spent_by_name()
    names = few.record_groups()
    assert len(set(names.tolist()) - {"ε=inf"}) <= max(most, 1)
    for own, name in zip(epsilons, names.tolist(), strict=True):
        assert spent[name] <= few.groups[name].epsilon <= own


@settings(max_examples=25, deadline=None)
@given(epsilons=epsilons, most=st.integers(1, 6), order=st.randoms())
def test_bins_follow_from_budgets_and_sizes_alone(epsilons, most, order):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        budgets = Budgets.from_epsilons(epsilons)
        rows = list(range(len(epsilons)))
        order.shuffle(rows)
        shuffled = Budgets.from_epsilons(np.array(epsilons)[rows])
    few, other = few_budgets(budgets, most), few_budgets(shuffled, most)
    assert few.groups == other.groups
    assert few.group_sizes() == other.group_sizes()
    assert few.record_groups()[rows].tolist() == other.record_groups().tolist()
    finite = [i for i, epsilon in enumerate(epsilons) if math.isfinite(epsilon)]
    own = [gdp_mu(epsilons[i], 1e-5) for i in finite]
    given_ = [gdp_mu(few.groups[few.record_groups()[i]].epsilon, 1e-5) for i in finite]
    assert few.kept == pytest.approx(sum(given_) / sum(own) if own else 1.0, rel=1e-9)
    assert few.owners.tolist() == budgets.owners.tolist()
    assert few.named == budgets.named


def test_few_budgets_are_left_as_they_are():
    budgets = people_of([(1.0, 3), (2.0, 4)])
    assert few_budgets(budgets, 2) is budgets
    assert Hybrid().few_budgets(budgets, 3) is budgets
    assert said_of(budgets, budgets) == ""


def test_declared_sizes_decide_on_bins_and_stay():
    groups = {f"g{i}": Budget(0.5 + i / 10) for i in range(6)}
    sizes = {"g0": 50, "g1": 1, "g2": 1, "g3": 1, "g4": 1, "g5": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [
            few_budgets(Budgets(groups, codes, sizes=sizes), 2)
            for codes in ([0, 0, 1, 2, 3, 4], [0, 1, 2, 2, 3, 4, 4, 4])
        ]
    assert made[0].groups == made[1].groups
    assert made[0].public_sizes() == made[1].public_sizes()
    assert sum(made[0].public_sizes().values()) == 54
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few_there = Budgets(groups, [0, 1], sizes=sizes)  # and four levels more are declared
    assert few_budgets(few_there, 2).groups == made[0].groups


def test_different_deltas_do_not_mix():
    groups = {f"{d:g}-{i}": Budget(1 + i / 10, d) for d in (1e-5, 1e-9) for i in range(10)}
    few = few_budgets(Budgets(groups, np.arange(20)), 6)
    assert len(few.groups) <= 6
    for name, old in groups.items():
        assert few.groups[few.record_groups()[list(groups).index(name)]].delta == old.delta


def test_those_who_are_put_together_promise_the_smallest_epsilon_and_the_smallest_delta():
    groups = {
        "a": Budget(1.0, 1e-5),
        "b": Budget(3.0, 1e-9),
        "c": Budget(2.0),
        "nobody": Budget(0.1),
    }
    sizes = {"a": 2, "b": 2, "c": 1, "nobody": 0}
    found = gathered(groups, sizes, {"a": 0, "b": 0})
    assert dict(found.groups) == {"ε=1 to 3": Budget(1.0, 1e-9), "c": Budget(2.0)}
    assert found.group_of == {"a": "ε=1 to 3", "b": "ε=1 to 3", "c": "c"}
    own = 2 * gdp_mu(1.0, 1e-5) + 2 * gdp_mu(3.0, 1e-9) + gdp_mu(2.0, 1e-5)
    assert found.kept == pytest.approx((4 * gdp_mu(1.0, 1e-9) + gdp_mu(2.0, 1e-5)) / own)


def test_a_group_that_grants_more_than_its_members_is_refused():
    budgets = people_of([(1.0, 3), (2.0, 4)])
    with pytest.raises(InputError, match="group 'g0' grants ε = 1"):
        budgets.regrouped({"both": Budget(1.5)}, {"g0": "both", "g1": "both"})
    with pytest.raises(InputError, match="put it where no more is granted"):
        budgets.regrouped({"both": Budget(1.0, 1e-3)}, {"g0": "both", "g1": "both"})
    assert budgets.regrouped({"g0": Budget(1.0)}, {"g0": "g0"}).owner_group.tolist() == (
        [0] * 3 + [NOTHING] * 4
    )


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=2, max_size=9, unique=True), st.integers(1, 5))
def test_bins_of_equal_waste_waste_little_more_than_the_best(values, most):
    granted = np.sort(np.array(values, dtype=float))
    owners = np.ones(len(granted))

    def wasted(starts):
        lowest = np.repeat(granted[list(starts)], np.diff([*starts, len(granted)]))
        return float((granted - lowest).sum())

    found = equal_waste(granted, owners, most)
    cuts = itertools.combinations(range(1, len(granted)), min(most, len(granted)) - 1)
    best = min(wasted((0, *cut)) for cut in cuts)
    assert len(found) <= most
    # The largest of any bins' wastes is least: no cut can waste less than that bin's share of it.
    assert wasted(found) <= most * best + 1e-9 if best else wasted(found) <= 1e-9


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(0.1, 50), min_size=2, max_size=5, unique=True),
    st.floats(0.01, 30),
    st.randoms(use_true_random=False),
)
def test_bounded_weights_carry_the_most_signal_of_all(values, ratio, random):
    """Beside random weights within the budgets, and small steps away from the bounded ones."""
    mu = np.sort(np.array(values))
    owners = np.ones(len(mu))
    noise = ratio * mu.mean() ** 2

    def signal(weights):
        return weights.mean() ** 2 / ((weights**2).mean() + noise)

    best = np.minimum(mu, best_bound(mu, owners, ratio))
    for _ in range(60):
        tried = mu * [random.random() for _ in mu]
        near = np.clip(best * [random.uniform(0.97, 1.03) for _ in mu], 0, mu)
        assert max(signal(tried), signal(near)) <= signal(best) * (1 + 1e-12)


def test_thousands_of_budgets_use_nearly_all_that_is_granted():
    """Lognormal ε of 6,000 people, all different, and 40 teachers."""
    epsilon = np.exp(np.random.default_rng(0).normal(0, 0.7, 6_000))
    budgets = Budgets.from_epsilons(epsilon)
    few = Hybrid().few_budgets(budgets, 40)
    plan = Hybrid().plan_for(few, 40)
    assert len(few.groups) <= 60
    assert few.kept >= plan.efficiency >= 0.955
    assert said_of(budgets, few).startswith("6,000 different budgets were put into ")
    own = relative_influence(dict(budgets.groups))
    given_ = relative_influence(dict(few.groups))
    assert max(own.values()) == max(given_.values()) == 1
