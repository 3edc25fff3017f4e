"""Budgets and settings that no plan can be made of are refused by name, in one line."""

import math

import pytest

from collegium import Budget, Budgets, Policy, Upsampling
from collegium.accounting import gdp_mu
from collegium.budgets import MOST_EPSILON
from collegium.errors import InputError
from collegium.personalisation import PERSONALISATIONS
from collegium.personalisation.rules import RULES, relative_influence


def test_a_finite_budget_ends_where_accounts_do():
    assert gdp_mu(Budget(MOST_EPSILON).epsilon, 1e-5) == pytest.approx(
        math.sqrt(2 * MOST_EPSILON), rel=1e-6
    )
    assert Budget(math.inf).is_unlimited
    for epsilon in (math.nextafter(MOST_EPSILON, math.inf), 1e300):
        with pytest.raises(InputError, match=r"at most 1e\+15, or infinite"):
            Budget(epsilon)
        with pytest.raises(InputError, match=r"level 'low': epsilon must be at most"):
            Policy({"high": 1.0, "low": epsilon})
    for wrong in (10**400, "1e5x", [1]):
        with pytest.raises(InputError, match="epsilon"):
            Budget(wrong)
    with pytest.raises(InputError, match="must be numbers"):
        Budgets.from_epsilons([1.0, 10**400])


@pytest.mark.parametrize("name", PERSONALISATIONS)
@pytest.mark.parametrize("least", [1e-6, 5e-324])
def test_the_widest_budgets_are_planned_or_refused(name, least):
    budgets = {"least": Budget(least), "most": Budget(MOST_EPSILON), "all": Budget(math.inf)}
    plan = PERSONALISATIONS[name]().plan(budgets, dict.fromkeys(budgets, 100), 30)
    for group in plan.groups.values():
        assert math.isfinite(group.weight) and group.weight > 0
        assert 0 < group.frequency <= 1 and 0 <= group.utilisation <= 1


@pytest.mark.parametrize("rule", RULES)
def test_budgets_without_any_ratio_are_refused(rule):
    budgets = {"least": Budget(5e-324), "most": Budget(MOST_EPSILON)}
    if rule == "exact":  # δ alone buys some influence
        assert relative_influence(budgets, rule)["least"] > 1e-13
        return
    with pytest.raises(InputError, match=r"'least' .* and 'most' .* cannot be planned together"):
        relative_influence(budgets, rule)


@pytest.mark.parametrize("most", [0, 1001, 10**30])
def test_duplicates_have_a_limit(most):
    with pytest.raises(InputError, match=r"max_duplicates must be at (least 1|most 1,000), got"):
        Upsampling(max_duplicates=most)


def test_algorithm_1_makes_no_more_teachers_than_can_be_trained():
    budgets = {"high": Budget(1.000001), "low": Budget(2.0)}
    sizes = dict.fromkeys(budgets, 100)
    with pytest.raises(InputError, match=r"'algorithm1' would train [0-9,]+ teachers"):
        Upsampling(rule="algorithm1", precision=6).plan(budgets, sizes, 50)
    assert Upsampling(rule="algorithm1", precision=1).plan(budgets, sizes, 50).n_teachers == 75


@pytest.mark.parametrize("name", ["weighting", "vanishing"])
@pytest.mark.parametrize(
    ("sizes", "least"), [([3, 297, 300], 100), ([7, 500, 101], 44), ([9, 9, 9], 3)]
)
def test_a_group_too_small_for_a_teacher_is_told_how_many_teachers_would_do(name, sizes, least):
    budgets = {"high": Budget(1.0), "average": Budget(2.0), "low": Budget(3.0)}
    people, made = dict(zip(budgets, sizes, strict=True)), PERSONALISATIONS[name]()
    with pytest.raises(InputError, match=f"at least {least} teachers"):
        made.plan(budgets, people, 2)
    with pytest.raises(InputError, match=f"at least {least} teachers"):
        made.plan(budgets, people, least - 1)
    assert made.plan(budgets, people, least).groups["high"].teachers >= 1
