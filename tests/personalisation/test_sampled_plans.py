"""Plans with sampled owners: the references, no group over budget by another account, and names that hold."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collegium import Budget, Budgets, plan_dpsgd
from collegium.accounting import Neighbours, PoissonGaussian, to_dp_event
from collegium.accounting.subsampled import poisson_gaussian_epsilon
from collegium.errors import InputError

dp_accounting = pytest.importorskip("dp_accounting")
REFERENCE = Path(__file__).resolve().parents[2].parent / "shared" / "reference"
ONE_TWO_THREE = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}


def references(account):
    path = REFERENCE / f"individual_dpsgd_oracles_{account}.jsonl"
    if not path.exists():
        pytest.skip(f"the reference {path.name} is not there")
    return {one["name"]: one for one in map(json.loads, path.read_text("utf-8").splitlines())}


def planned(reference, kind, account):
    sizes = dict(zip(ONE_TWO_THREE, reference["groups"], strict=True))
    backwards = dict(reversed(sizes.items()))
    rate = reference["B"] / reference["N"]
    return plan_dpsgd(
        ONE_TWO_THREE, backwards, steps=reference["T"], kind=kind, rate=rate, accountant=account
    )


def each(plan, name):
    return [getattr(plan.groups[group], name) for group in ONE_TWO_THREE]


@pytest.mark.parametrize("account", ["rdp", "pld"])
def test_the_reference_settings_come_out_to_a_part_in_a_million(account):
    for name, reference in references(account).items():
        if account == "pld" and name != "F":
            continue  # benchmarks/rates.py does the others, and scale and uniform of this one
        sample = planned(reference, "sample", account)
        assert sample.noise == pytest.approx(reference["sample_sigma"], rel=1e-6)
        assert each(sample, "rate") == pytest.approx(reference["sample_q"], rel=1e-6)
        assert each(sample, "clip") == [1.0, 1.0, 1.0]
        if account == "pld":
            continue
        scale = planned(reference, "scale", account)
        assert scale.noise == pytest.approx(reference["scale_sigma"], rel=1e-6)
        assert each(scale, "clip") == pytest.approx(reference["scale_c"], rel=1e-6)
        uniform = planned(reference, "uniform", account)
        assert uniform.noise == pytest.approx(reference["uniform_sigma"][0], rel=1e-6)
        for plan in (sample, scale, uniform):
            for group, spent in plan.epsilon().items():
                assert spent <= ONE_TWO_THREE[group].epsilon


def recounted(plan, interval=1e-3):
    """ε of each group by dp_accounting from the plan's events alone, on a grid of its own."""
    spent = {}
    for cohort, (name, group) in enumerate(plan.groups.items()):
        account = dp_accounting.pld.PLDAccountant(value_discretization_interval=interval)
        account.compose(to_dp_event(plan.event(), cohort))
        spent[name] = account.get_epsilon(group.budget.delta)
    return spent


@pytest.mark.parametrize(
    ("account", "kind"),
    [("rdp", "sample"), ("rdp", "scale"), ("rdp", "uniform"), ("pld", "sample")],
)
def test_no_group_of_random_policies_is_over_budget_by_an_independent_count(kind, account):
    rng = np.random.default_rng(["sample", "scale", "uniform"].index(kind))
    n = int(rng.integers(2, 5))
    epsilons = np.exp(rng.uniform(math.log(0.5), math.log(6), n))
    groups = {f"group {i}": Budget(epsilon) for i, epsilon in enumerate(epsilons.tolist())}
    sizes = dict(zip(groups, rng.integers(1, 100, n).tolist(), strict=True))
    plan = plan_dpsgd(groups, sizes, steps=20, kind=kind, rate=0.3, accountant=account)
    for name, spent in recounted(plan).items():
        # This coarser grid is above the one that counts, by less than a part in 100 here.
        assert spent <= groups[name].epsilon * (1.01 if account == "pld" else 1.0)
    if kind == "sample":
        mean = sum(g.owners * g.rate for g in plan.groups.values()) / sum(sizes.values())
        assert mean == pytest.approx(0.3, rel=1e-9)
    if kind != "uniform":
        assert plan.utilisation > 1 - 1e-6


def test_rates_belong_to_names_rise_with_epsilon_and_to_one_noise():
    """No stale rates, none by position, and none rounded up."""
    names = ["b", "d", "a", "c"]
    groups = {name: Budget(epsilon) for name, epsilon in zip(names, [3, 0.5, 1, 2], strict=True)}
    sizes = {"a": 40, "b": 5, "c": 20, "d": 35}
    plan = plan_dpsgd(groups, sizes, steps=100, kind="sample", rate=0.05, accountant="rdp")
    assert list(plan.groups) == names
    by_epsilon = sorted(names, key=lambda name: groups[name].epsilon)
    rates = [plan.groups[name].rate for name in by_epsilon]
    assert rates == sorted(rates)
    assert len(set(rates)) == 4
    for name, group in plan.groups.items():
        assert (group.owners, group.budget) == (sizes[name], groups[name])
        spent = poisson_gaussian_epsilon(
            group.rate, plan.noise / group.clip, 100, group.budget.delta, "rdp"
        )
        assert group.budget.epsilon * (1 - 2e-7) <= spent <= group.budget.epsilon
    again = plan_dpsgd(
        dict(sorted(groups.items())), sizes, steps=100, kind="sample", rate=0.05, accountant="rdp"
    )
    for name in names:
        assert again.groups[name].rate == pytest.approx(plan.groups[name].rate, rel=1e-6)


def test_a_group_whose_rate_would_pass_1_takes_part_always_and_moves_further():
    groups = {**ONE_TWO_THREE, "open": Budget(10.0), "all": Budget(math.inf)}
    sizes = {"high": 54, "average": 37, "low": 9, "open": 3, "all": 1}
    plan = plan_dpsgd(groups, sizes, steps=50, kind="sample", rate=0.5, accountant="rdp")
    assert plan.groups["open"].rate == plan.groups["all"].rate == 1
    assert plan.groups["open"].clip == plan.groups["all"].clip > 1
    assert plan.groups["high"].clip == plan.groups["low"].clip == 1
    assert plan.epsilon()["open"] == pytest.approx(10.0, rel=1e-6)
    assert plan.epsilon()["open"] <= 10.0
    assert isinstance(plan.event(3), PoissonGaussian)
    expected = sum(g.owners * g.rate * g.clip for g in plan.groups.values())
    assert plan.divisor == pytest.approx(expected, rel=1e-12)


def test_one_budget_per_person_is_binned_and_rounded_down():
    rng = np.random.default_rng(1)
    budgets = Budgets.from_epsilons(np.round(np.exp(rng.normal(0, 0.7, 500)), 4))
    options = {"steps": 200, "kind": "sample", "rate": 0.05, "accountant": "rdp"}
    plan = plan_dpsgd(budgets.groups, budgets.group_sizes(), **options)
    assert len({group.rate for group in plan.groups.values()}) <= 16
    order = sorted(plan.groups, key=lambda name: budgets.groups[name].epsilon)
    rates = [plan.groups[name].rate for name in order]
    assert rates == sorted(rates)
    spent = plan.epsilon()
    assert all(spent[name] <= budgets.groups[name].epsilon for name in order)
    finer = plan_dpsgd(budgets.groups, budgets.group_sizes(), bins=24, **options)
    assert 0.7 < plan.utilisation < finer.utilisation < 1


def test_a_group_of_one_alone_and_steps_not_yet_taken():
    plan = plan_dpsgd(
        {"only": Budget(1.0)}, {"only": 1}, steps=64, kind="sample", rate=0.25, accountant="rdp"
    )
    assert plan.groups["only"].rate == 0.25
    assert plan.epsilon(0) == {"only": 0.0}
    assert 0 < plan.epsilon(16)["only"] < plan.epsilon()["only"] <= 1.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["sample", "scale", "uniform"])
def test_a_budget_larger_than_losses_show_is_refused_in_one_line(kind):
    people, sizes = {"all": Budget(1000.0)}, {"all": 26_561}
    with pytest.raises(InputError, match=r"'pld'.* below 600 .* got 1000: use .*'rdp'") as error:
        plan_dpsgd(people, sizes, steps=1000, kind=kind, rate=0.01)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": None}, "needs the mean rate"),
        ({"rate": 1.0}, "full-batch"),
        ({"rate": 1.5}, "full-batch"),
        ({"rate": 0}, "above 0 and below 1"),
        ({"rate": "often"}, "rate must be a number"),
        ({"neighbours": Neighbours.ANY_CHANGE}, "take everybody in every step"),
        ({"neighbours": Neighbours.REPLACE}, "take everybody in every step"),
        ({"bins": 0}, "bins"),
    ],
)
def test_what_cannot_be_sampled_is_said_in_one_line(change, message):
    settings = {"steps": 10, "kind": "sample", "rate": 0.1, "accountant": "rdp", **change}
    with pytest.raises(InputError, match=message) as error:
        plan_dpsgd(ONE_TWO_THREE, dict.fromkeys(ONE_TWO_THREE, 5), **settings)
    assert "\n" not in str(error.value)


def test_no_plan_of_samples_is_relabelled_as_one_about_replacement():
    plan = plan_dpsgd(
        {"a": Budget(1.0)}, {"a": 10}, steps=5, kind="scale", rate=0.2, accountant="rdp"
    )
    with pytest.raises(InputError, match="who are there or not"):
        replace(plan, neighbours=Neighbours.ANY_CHANGE)
