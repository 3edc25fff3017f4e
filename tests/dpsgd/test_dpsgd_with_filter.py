"""A whole run of DP-SGD with a filter: more steps at the price of the plan, accounts in the vault alone."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import collegium as cg
from collegium import Ledger, Policy
from collegium.dpsgd.filtered import CENT_BITS, Filtered
from collegium.dpsgd.grid import UNIT
from collegium.dpsgd.memory import DPSGDMemory
from collegium.dpsgd.optimiser import State
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise
from collegium.runs.records import Records
from collegium.study.methods.dpsgd.page import spending_by_step

LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
WHO = ["high"] * 54 + ["average"] * 37 + ["low"] * 9
N_FEATURES = 65


def records(n: int = 200, owners: int = 100) -> Records:
    X, y = load_digits(return_X_y=True)
    names = [f"person {i % owners}" for i in range(n)]
    budgets = Policy(LEVELS).assign([WHO[i % owners] for i in range(n)], owners=names)
    return Records(X[:n], y[:n], budgets, np.arange(10), X[1000:1200])


def run(its: Records, memory: DPSGDMemory | None = None, **given: Any) -> DPSGDRun:
    settings = {
        "steps": 4,
        "individual_filter": 2.0,
        "clip_norm": 0.2,
        "learning_rate": 10.0,
        **given,
    }
    return DPSGDRun(DPSGDRecipe(DPSGDSettings(**settings), noise_seed=1), its, memory)


class Kept(DPSGDMemory):
    """Memory that outlives a crash, as a study's does."""

    stride = 2

    def __init__(self) -> None:
        self.steps, self.kept, self.accounts = 0, None, None

    def charged(self) -> int:
        return self.steps

    def charge(self, steps: int) -> None:
        self.steps = steps

    def state(self) -> State | None:
        return self.kept

    def keep(self, state: State) -> None:
        self.kept = state

    def sensitive_accounts(self) -> dict[str, NDArray[Any]] | None:
        return self.accounts

    def keep_accounts(self, sensitive_accounts: dict[str, NDArray[Any]]) -> None:
        self.accounts = sensitive_accounts


def test_more_steps_are_taken_at_the_price_of_the_planned_ones():
    its = records()
    plain, filtered = run(its, individual_filter=None), run(its)
    without = plain.descend(plain.summands(), N_FEATURES)
    learnt = filtered.descend(filtered.summands(), N_FEATURES)
    assert learnt.state.step == learnt.account.steps == 8
    assert filtered.plan == plain.plan
    assert [g.epsilon_spent for g in learnt.privacy.groups] == [
        g.epsilon_spent for g in without.privacy.groups
    ]
    assert all(g.epsilon_spent <= g.budget.epsilon for g in learnt.privacy.groups)
    assert "each of 8 steps" in learnt.privacy.released
    np.testing.assert_array_equal(learnt.account.event.mu_squared, plain.plan.event().mu_squared)


@pytest.mark.filterwarnings("ignore:group .* was declared")
def test_over_a_whole_dpsgd_nobody_moves_the_sums_by_more_than_the_plan_pays_for():
    """Forcing what was released, Σ‖difference‖² of neighbours' sums is within the owner's allowance."""
    its = records()
    it = run(its, steps=2, individual_filter=6.0)
    states: list[State] = []
    summands = it.summands()
    learnt = it.descend(summands, N_FEATURES, stop=lambda state: states.append(state) or False)
    visited = [it.start(N_FEATURES), *dict.fromkeys(s for s in states if s.step)][
        : learnt.account.steps
    ]
    everybody = it.summands()
    sums = [everybody.clipped_sum(s.parameters, it.recipe.sample(s.step)) for s in visited]
    shares = []
    for person in (0, 60, 95):
        kept = its.budgets.record_owner != person
        other = replace(
            its, X=its.X[kept], codes=its.codes[kept], budgets=its.budgets[np.flatnonzero(kept)]
        )
        other.budgets.declare(its.budgets.group_sizes())
        theirs = run(other, steps=2, individual_filter=6.0).summands()
        moved = sum(
            float(
                (
                    ((total - theirs.clipped_sum(s.parameters, it.recipe.sample(s.step))) * UNIT)
                    ** 2
                ).sum()
            )
            for total, s in zip(sums, visited, strict=True)
        )
        clip = it.plan.groups[WHO[person]].clip
        shares.append(moved / (2 * clip**2))
    assert len(visited) == 12
    assert max(shares) <= 1 + 1e-12
    assert max(shares) > 0.9  # a sum over 12 steps without a filter would be up to 6


@pytest.mark.filterwarnings("ignore:group .* was declared")
def test_what_is_released_becomes_a_model_in_the_same_way_whoever_is_used_up():
    """The update is a function of released sums and public numbers: never of who is active."""

    class Forced(SeededNoise):
        """What is added takes the secret sum away again: the released sum is the same for all."""

        def noised(self, total, noise, *, query, purpose):
            released = super().noised(total, noise, query=query, purpose=purpose)
            return released - sums[query]

    models = []
    its = records()
    few = its.budgets[np.arange(30)]
    few.declare(its.budgets.group_sizes())
    for some in (its, replace(its, X=its.X[:30], codes=its.codes[:30], budgets=few)):
        it = run(some)
        summands = it.summands()
        sums: list[NDArray[np.int64]] = []
        real = summands.clipped_sum

        def noted(parameters, sample, real=real, sums=sums):
            sums.append(real(parameters, sample))
            return sums[-1]

        summands.clipped_sum = noted
        models.append(it.descend(summands, N_FEATURES, Forced(3)).state.parameters)
    assert np.isfinite(models[0]).all()
    np.testing.assert_array_equal(*models)


def test_a_resumed_dpsgd_is_the_one_that_was_not_interrupted():
    its = records()
    whole = run(its)
    summands = whole.summands()
    learnt = whole.descend(summands, N_FEATURES)
    memory = Kept()
    first = run(its, memory)
    first.descend(first.summands(), N_FEATURES, stop=lambda state: state.step >= 4)
    memory.kept = replace(memory.kept, step=4)
    again = run(its, memory)
    resumed = again.summands()
    assert resumed.steps_charged == 4
    last = again.descend(resumed, N_FEATURES)
    np.testing.assert_array_equal(last.state.parameters, learnt.state.parameters)
    for name, left in summands.sensitive_left.items():
        np.testing.assert_array_equal(left, resumed.sensitive_left[name])


@pytest.mark.parametrize("falls", ["noise", "keep_accounts", "keep"])
def test_after_a_crash_nobody_has_more_left_than_if_all_that_was_drawn_was_counted(falls):
    its, drawn, memory = records(), [], Kept()

    class CrashError(Exception):
        pass

    class Noise(SeededNoise):
        def noised(self, total, noise, *, query, purpose):
            assert query not in drawn
            drawn.append(query)
            if falls == "noise" and query == 3:
                raise CrashError
            return super().noised(total, noise, query=query, purpose=purpose)

    def falling(value):
        if memory.steps >= 4:
            setattr(memory, falls, real)
            raise CrashError
        real(value)

    if falls != "noise":
        real = getattr(memory, falls)
        setattr(memory, falls, falling)
    it = run(its, memory)
    before = it.summands()
    with pytest.raises(CrashError):
        it.descend(before, N_FEATURES, Noise(0))
    it = run(its, memory)
    after = it.summands()
    assert after.steps_charged == memory.steps == 4
    for name, left in before.sensitive_left.items():  # all sums that were made, also the lost ones
        assert (after.sensitive_left[name] <= left).all()
    learnt = it.descend(after, N_FEATURES, Noise(0))
    assert learnt.account.steps == 8
    assert all((left >= 0).all() for left in after.sensitive_left.values())


def test_accounts_are_in_nothing_that_leaves():
    its = records()
    it = run(its)
    summands = it.summands()
    learnt = it.descend(summands, N_FEATURES)
    assert isinstance(summands, Filtered)
    left = np.concatenate(list(summands.sensitive_left.values()))
    assert (left < 2 ** (CENT_BITS - 10)).any()  # somebody is used up
    out = pickle.dumps((learnt.state, learnt.privacy, it.model(learnt)))
    for name, amounts in summands.sensitive_left.items():
        assert amounts.tobytes() not in out
        assert name.encode() not in out


def test_a_filter_needs_full_batches_and_records_in_memory():
    with pytest.raises(InputError, match="no such account is valid"):
        DPSGDSettings(sampling="sample", rate=0.1, individual_filter=1.5)
    with pytest.raises(InputError, match=r"dpsgd.individual_filter must lie between 1 and 100"):
        DPSGDSettings(individual_filter=0.5)
    it = run(records())
    plain = run(records(), individual_filter=None)
    with pytest.raises(InputError, match="in memory only"):
        it.descend(plain.summands(), N_FEATURES)


@pytest.mark.filterwarnings("error::collegium.errors.LedgerWarning")  # of costs that do not fit
def test_an_estimator_takes_more_steps_and_a_ledger_is_charged_for_the_planned_ones(tmp_path):
    X, y = load_digits(return_X_y=True)
    budgets = Policy(LEVELS).assign(WHO, owners=[f"person {i}" for i in range(100)])
    told: list[Any] = []
    ledger = Ledger.create(tmp_path / "people.ledger")
    model = cg.DPSGDClassifier(
        sampling=cg.Sampling(individual_filter=1.5), steps=4, classes=range(10)
    )
    model.fit(
        X[:100],
        y[:100],
        budgets=budgets,
        X_public=X[1000:1200],
        ledger=ledger,
        spend=1.0,
        on_step=told.append,
    )
    assert model.steps_taken_ == 6
    assert [(step.step, step.steps) for step in told] == [(step, 6) for step in range(1, 7)]
    assert told[-1].epsilon == told[3].epsilon != told[2].epsilon
    assert (ledger.left(budgets).share < 1e-6).all()
    assert not ledger.left(budgets).untouched.any()


def test_a_report_shows_nobody_beyond_what_the_planned_steps_cost():
    plan = run(records()).plan
    history = [point.epsilon_spent for point in spending_by_step(plan, 8)]
    assert history[-1] == history[-2] == plan.epsilon()
    assert all(history[-1][name] <= LEVELS[name] for name in LEVELS)
