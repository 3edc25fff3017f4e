"""Traps 27 to 31, on whole trainings: each test fails if the trap is sprung (details: ``tests/dpsgd``)."""

import inspect
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from collegium import Budget, Policy, plan_dpsgd
from collegium.accounting import DEFAULT_ORDERS, rdp_to_epsilon
from collegium.accounting.renyi import poisson_gaussian_rdp
from collegium.dpsgd.account import DPSGDAccount
from collegium.dpsgd.filtered import Filtered
from collegium.dpsgd.grid import UNIT
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.sampling import Sample
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import BudgetExceededError, InputError
from collegium.runs.records import Records

LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
GROUPS = {name: Budget(epsilon) for name, epsilon in LEVELS.items()}
SIZES = {"high": 540, "average": 370, "low": 90}


def digits(n=200, level=None):
    X, y = load_digits(return_X_y=True)
    who = (["high"] * 54 + ["average"] * 37 + ["low"] * 9) * 10
    budgets = Policy(LEVELS).assign([level] * n if level else who[:n])
    return Records(X[:n], y[:n], budgets, np.arange(10), None)


def dpsgd(records=None, **settings):
    recipe = DPSGDRecipe(DPSGDSettings(**{"steps": 4, **settings}), noise_seed=3)
    return DPSGDRun(recipe, records or digits())


@pytest.mark.parametrize("kind", ["sample", "scale"])
def test_27_rates_and_clips_rise_with_budgets_by_name_and_cost_nobody_more(kind):
    """Recounted from the numbers of the plan alone, by an account of its own."""
    seen = {}
    for names in (list(GROUPS), ["low", "high", "average"]):
        groups = {name: GROUPS[name] for name in names}
        sizes = {name: SIZES[name] for name in names}
        plan = plan_dpsgd(groups, sizes, kind=kind, steps=50, rate=0.1, accountant="rdp")
        seen[tuple(names)] = {n: (g.rate, g.clip) for n, g in plan.groups.items()}
        say = [g.rate * g.clip for g in (plan.groups[n] for n in ("high", "average", "low"))]
        assert say[0] < say[1] < say[2]  # the most generous are heard most
        for name, group in plan.groups.items():
            curve = 50 * poisson_gaussian_rdp(group.rate, plan.noise / group.clip, DEFAULT_ORDERS)
            spent = float(rdp_to_epsilon(curve, DEFAULT_ORDERS, 1e-5)[0])
            assert 0.97 * LEVELS[name] < spent <= LEVELS[name]
    first, *others = seen.values()
    for other in others:
        for name in GROUPS:
            assert other[name] == pytest.approx(first[name], rel=1e-6)


def test_28_an_empty_batch_is_charged_and_noised_and_the_divisor_is_public():
    its = digits()
    run = DPSGDRun(
        DPSGDRecipe(
            DPSGDSettings(steps=3, sampling="sample", rate=0.005, accountant="rdp", momentum=0.0)
        ),
        its,
    )
    states = []

    class Empty:
        def clipped_sum(self, parameters, sample):
            return np.zeros(parameters.shape, dtype=np.int64)

    learnt = run.descend(Empty(), 65, stop=lambda state: states.append(state) or False)
    assert learnt.account.steps == 3 and states[-1].parameters.any()  # noise alone moved it
    moved = (states[1].parameters - states[0].parameters) / run.learning_rate
    noise = run.plan.noise * run.recipe.dpsgd.clip_norm / run.plan.divisor
    # 650 values: their deviation is off by more than 15 % once in 10 million
    assert abs(moved.std() / noise - 1) < 0.15
    owners = sum(g.owners * g.rate * g.clip for g in run.plan.groups.values())
    assert run.plan.divisor == pytest.approx(owners)


def test_29_what_one_owner_gives_is_bounded_and_nobody_else_changes_it():
    its = digits()
    run = dpsgd(its)
    parameters = np.random.default_rng(0).normal(size=(65, 10)) * 5
    whole = run.summands().clipped_sum(parameters, Sample())
    for row, value in ((0, np.nan), (60, np.inf), (95, -1e30), (199, 0.0)):
        X = its.X.copy()
        X[row] = value
        other = DPSGDRun(run.recipe, replace(its, X=X)).summands()
        moved = np.linalg.norm((whole - other.clipped_sum(parameters, Sample())) * UNIT)
        clip = run.plan.groups[its.budgets.record_groups()[row]].clip
        assert moved <= 2 * clip  # one goes and another comes
        rest = replace(its, X=np.delete(X, row, 0), codes=np.delete(its.codes, row))
        kept = np.delete(np.arange(200), row)
        rest = replace(rest, budgets=its.budgets[kept])
        rest.budgets.declare(its.budgets.group_sizes())
        blank = DPSGDRun(run.recipe, rest).summands().clipped_sum(parameters, Sample())
        assert np.linalg.norm((whole - blank) * UNIT) <= clip


def test_30_a_filter_takes_no_samples_and_what_is_sensitive_stays_in_it():
    run = dpsgd(sampling="sample", rate=0.2, accountant="rdp")
    with pytest.raises(InputError, match="full-batch"):
        Filtered(run.summands().blocks, run.loss, run.terms, 4)
    learnt = dpsgd().learn()
    text = pickle.dumps((learnt.state, learnt.privacy))
    for row in digits().X[:50]:
        assert row.tobytes() not in text
    public = {"step", "parameters", "velocity", "looks", "counts"}
    assert set(vars(learnt.state)) == public


def test_31_steps_are_fixed_and_who_may_stop_sees_released_things_only():
    run = dpsgd()
    account = DPSGDAccount(run.plan)
    account.charge(4)
    with pytest.raises(BudgetExceededError):
        account.charge(5)
    seen = []
    learnt = run.descend(
        run.summands(), 65, stop=lambda *given: seen.append(given) or len(seen) > 2
    )
    assert all(len(given) == 1 and type(given[0]).__name__ == "State" for given in seen)
    assert learnt.state.step < 4
    # What was reserved is not given back: fewer steps are told, and never more than were planned.
    assert learnt.account.steps <= 4
    assert "loss" not in " ".join(inspect.signature(run.descend).parameters)
