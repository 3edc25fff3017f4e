"""Full batch in closed form: the oracle, budgets by name, replacement, and one budget per person."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Budget, plan_dpsgd
from collegium.accounting import GaussianAccountant, Neighbours, gdp_epsilon, gdp_mu
from collegium.errors import BudgetExceededError, InputError

ONE_TWO_THREE = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
SHARES = {"low": 9, "high": 54, "average": 37}  # in another order


def test_the_closed_form_of_the_design():
    plan = plan_dpsgd(ONE_TWO_THREE, SHARES, steps=100)
    assert plan.noise == pytest.approx(25.31374483785796, rel=1e-12)
    clips = {name: group.clip for name, group in plan.groups.items()}
    expected = {
        "high": 0.6785377736471934,
        "average": 1.2696151482637346,
        "low": 1.8203555263659308,
    }
    assert clips == pytest.approx(expected, rel=1e-12)
    assert plan.divisor == pytest.approx(100, rel=1e-12)
    assert plan.utilisation == pytest.approx(1, rel=1e-9)
    assert (plan.accountant, plan.bound, plan.gradient_norm) == ("gaussian", "weight", 1.0)


@settings(max_examples=50, deadline=None)
@given(
    people=st.dictionaries(
        st.text(min_size=1, max_size=3),
        st.tuples(st.floats(1e-3, 50), st.sampled_from([1e-5, 1e-7, 0.01]), st.integers(0, 50)),
        min_size=1,
        max_size=6,
    ).filter(lambda people: any(size for _, _, size in people.values())),
    steps=st.integers(1, 10**6),
    neighbours=st.sampled_from(Neighbours),
    kind=st.sampled_from(["full-batch", "uniform"]),
)
def test_no_group_is_over_budget_and_an_account_lets_every_step_pass(
    people, steps, neighbours, kind
):
    groups = {name: Budget(epsilon, delta) for name, (epsilon, delta, _) in people.items()}
    sizes = {name: size for name, (_, _, size) in people.items()}
    plan = plan_dpsgd(groups, sizes, steps=steps, neighbours=neighbours, kind=kind)
    assert set(plan.groups) == {name for name, size in sizes.items() if size}
    moves = 1 if neighbours is Neighbours.ADD_OR_REMOVE else 2
    for name, spent in plan.epsilon().items():
        group, budget = plan.groups[name], groups[name]
        mu = math.sqrt(steps) * moves * group.clip / plan.noise
        assert gdp_epsilon(mu, budget.delta) <= budget.epsilon * (1 + 1e-12)
        assert spent == pytest.approx(gdp_epsilon(mu, budget.delta), rel=1e-8, abs=1e-12)
        if kind == "full-batch":
            assert mu == pytest.approx(gdp_mu(budget.epsilon, budget.delta), rel=1e-9)
    for number, group in enumerate(plan.groups.values()):
        budget = group.budget
        account = GaussianAccountant([budget.epsilon], budget.delta, neighbours=neighbours)
        account.charge(plan.event().towards(number))
        if group.utilisation > 0.999:
            with pytest.raises(BudgetExceededError):
                account.charge(plan.event(max(1, steps // 100)).towards(number))


def test_what_is_left_of_the_steps_is_what_was_not_spent():
    plan = plan_dpsgd(ONE_TWO_THREE, SHARES, steps=100)
    assert plan.epsilon(0) == dict.fromkeys(plan.groups, 0.0)
    spent = plan.epsilon(25)
    for name, budget in ONE_TWO_THREE.items():
        half = gdp_mu(budget.epsilon, budget.delta) / 2
        assert spent[name] == pytest.approx(gdp_epsilon(half, budget.delta), rel=1e-9)


def test_replacement_has_twice_the_noise_and_the_same_clips():
    there_or_not = plan_dpsgd(ONE_TWO_THREE, SHARES, steps=100)
    replaced = plan_dpsgd(ONE_TWO_THREE, SHARES, steps=100, neighbours=Neighbours.ANY_CHANGE)
    assert replaced.noise == pytest.approx(2 * there_or_not.noise, rel=1e-12)
    assert replaced.groups == there_or_not.groups
    assert replaced.event().neighbours is Neighbours.ANY_CHANGE
    assert replaced.epsilon() == pytest.approx(there_or_not.epsilon(), rel=1e-9)


def test_unlimited_budgets_have_the_influence_of_the_most_generous_finite_one():
    groups = {"some": Budget(1.0), "more": Budget(2.0), "all": Budget(math.inf)}
    plan = plan_dpsgd(groups, {"some": 5, "more": 1, "all": 4}, steps=10)
    assert plan.groups["all"].clip == plan.groups["more"].clip
    assert plan.groups["all"].utilisation == 0
    assert plan.epsilon()["all"] == pytest.approx(2.0)
    with pytest.raises(InputError, match="every budget is unlimited"):
        plan_dpsgd({"all": Budget(math.inf)}, {"all": 4}, steps=10)


def test_thousands_of_budgets_each_of_its_own():
    epsilons = np.exp(np.random.default_rng(0).normal(0, 1, 5_000))
    groups = {f"person {i}": Budget(epsilon) for i, epsilon in enumerate(epsilons.tolist())}
    plan = plan_dpsgd(groups, dict.fromkeys(groups, 1), steps=1000)
    mean = math.fsum(gdp_mu(epsilons, 1e-5)) / 5_000
    assert plan.noise == pytest.approx(math.sqrt(1000) / mean, rel=1e-9)
    for name in ("person 0", "person 4999"):
        alone = gdp_mu(groups[name].epsilon, 1e-5)
        assert plan.groups[name].clip == pytest.approx(alone / mean, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": {"high": 1}}, "one of them only: average, low"),
        ({"sizes": {"high": 0, "average": 0, "low": 0}}, "no group has an owner"),
        ({"sizes": {"high": -1, "average": 1, "low": 1}}, "size of group 'high'"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"kind": "half"}, "kind must be one of"),
        ({"bound": "loose"}, "bound must be one of"),
        ({"accountant": "hope"}, "accountant must be one of"),
        ({"rate": 0.1}, "leave it out"),
        (
            {"groups": {"high": Budget(1e-300, 1e-300), "average": Budget(2), "low": Budget(3)}},
            "'high'.*'low'.*cannot be planned together",
        ),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_line(change, message):
    settings = {"groups": ONE_TWO_THREE, "sizes": SHARES, "steps": 10, **change}
    with pytest.raises(InputError, match=message) as error:
        plan_dpsgd(settings.pop("groups"), settings.pop("sizes"), **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"groups": [Budget(1.0)]}, r"groups must be of type Mapping, got one of type list: .*groups"),
        ({"groups": None}, "groups must be of type Mapping, got None"),
        ({"groups": {"high": 1.0}}, r"budget of group 'high' must be of type Budget.*write Budget"),
        ({"sizes": [54, 37, 9]}, r"sizes must be of type Mapping.*public_sizes"),
        ({"sizes": {1: 54, "high": 5}}, "sizes must name the same groups"),
        ({"sizes": {**SHARES, "low": "nine"}}, "size of group 'low' must be a whole number"),
        ({"neighbours": "replace-one"}, r"neighbours must be Neighbours\.ADD_OR_REMOVE"),
        ({"kind": None}, "kind must be one of"),
        ({"steps": "many"}, "steps must be a whole number"),
    ],
)  # fmt: skip
def test_what_is_of_another_type_is_refused_in_one_line(given, said):
    with pytest.raises(InputError, match=said) as refusal:
        plan_dpsgd(**{"groups": ONE_TWO_THREE, "sizes": SHARES, "steps": 5, **given})
    assert "\n" not in str(refusal.value)
