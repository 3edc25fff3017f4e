"""A whole run of DP-SGD: what is charged, drawn and lost; what neighbours change; what the plan promises."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from collegium import Budget, Budgets, Policy, plan_dpsgd
from collegium.accounting import Neighbours, gdp_mu
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.tradeoff import TradeOff
from collegium.dpsgd.account import DPSGDAccount
from collegium.dpsgd.by_rule import LARGEST_STEP, signal
from collegium.dpsgd.grid import UNIT
from collegium.dpsgd.memory import DPSGDMemory
from collegium.dpsgd.optimiser import State, stepped
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import BudgetExceededError, InputError
from collegium.mechanisms import SeededNoise
from collegium.models.features import PublicComponents
from collegium.noise.sums import Noise
from collegium.runs.records import Records

LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
WHO = ["high"] * 54 + ["average"] * 37 + ["low"] * 9


def records(n=300, owners=None, levels=LEVELS):
    X, y = load_digits(return_X_y=True)
    who = [WHO[i % 100] for i in range(n)]
    if owners is not None:
        who = [WHO[i % 100] for i in range(owners)] * (n // owners)
        owners = [f"person {i}" for i in range(owners)] * (n // owners)
    budgets = Policy(levels).assign(who, owners=owners)
    return Records(X[:n], y[:n], budgets, np.arange(10), X[1000:1200])


def run(its=None, memory=None, seed=1, **settings):
    recipe = DPSGDRecipe(DPSGDSettings(**{"steps": 6, **settings}), noise_seed=seed)
    return DPSGDRun(recipe, its or records(), memory)


class Listening:
    """Noise that notes what it was asked for, and is none."""

    is_private, description = True, "none"

    def __init__(self):
        self.asked = []

    def noised(self, total, noise, *, query, purpose):
        self.asked.append((query, noise))
        return total


class Watched(DPSGDMemory):
    """Memory that outlives a crash, as a study's does."""

    stride = 1

    def __init__(self):
        self.steps, self.kept, self.log = 0, None, []

    def charged(self):
        return self.steps

    def charge(self, steps):
        self.steps = steps
        self.log.append(("charged", steps))

    def state(self):
        return self.kept

    def keep(self, state):
        self.kept = state
        self.log.append(("kept", state.step))


def test_each_step_is_charged_before_its_noise_is_drawn():
    memory = Watched()
    it = run(memory=memory)

    class Noise(SeededNoise):
        def noised(self, total, noise, *, query, purpose):
            assert memory.steps == query + 1
            memory.log.append(("drawn", query + 1))
            return super().noised(total, noise, query=query, purpose=purpose)

    learnt = it.descend(it.summands(), 65, Noise(0))
    expected = [(what, step) for step in range(1, 7) for what in ("charged", "drawn", "kept")]
    assert memory.log == expected
    assert learnt.account.steps == 6


@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("falls", ["charge", "noise", "keep"])
def test_what_a_crash_took_is_not_taken_again_and_nothing_is_drawn_twice(falls, stride):
    memory, drawn = Watched(), []
    memory.stride = stride

    class CrashError(Exception):
        pass

    class Noise(SeededNoise):
        def noised(self, total, noise, *, query, purpose):
            if falls == "noise" and query == 3 and 3 not in drawn:
                drawn.append(query)
                raise CrashError
            assert query not in drawn
            drawn.append(query)
            return super().noised(total, noise, query=query, purpose=purpose)

    def falling(name):
        real, done = getattr(memory, name), []

        def method(value):
            real(value)
            if name == falls and not done and memory.steps >= 3:
                done.append(name)
                raise CrashError

        return method

    for name in ("charge", "keep"):
        setattr(memory, name, falling(name))
    with pytest.raises(CrashError):
        it = run(memory=memory)
        it.descend(it.summands(), 65, Noise(0))
    it = run(memory=memory)
    learnt = it.descend(it.summands(), 65, Noise(0))
    assert memory.steps == 6 == learnt.account.steps
    assert len(drawn) == len(set(drawn)) <= 6  # never more than were charged
    assert learnt.privacy.groups[0].epsilon_spent <= 1.0


def test_a_dpsgd_that_is_over_draws_nothing_more():
    memory = Watched()
    it = run(memory=memory)
    first = it.descend(it.summands(), 65)
    again, noise = run(memory=memory), Listening()
    second = again.descend(again.summands(), 65, noise)
    assert not noise.asked and (first.state.parameters == second.state.parameters).all()
    with pytest.raises(BudgetExceededError, match="nothing was drawn"):
        DPSGDAccount(it.plan).charge(7)


@pytest.mark.filterwarnings("ignore:group .* was declared")
@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_record_and_replay_one_owner_moves_no_sum_by_more_than_was_charged(relation):
    """Forcing what was released, the sums of neighbours differ by at most the sensitivity of the event."""
    its = records(200, owners=100)
    it = run(its, neighbours=relation, clip_norm=0.05)
    summands, states = it.summands(), []
    it.descend(summands, 65, stop=lambda state: states.append(state) or False)
    event = it.plan.event(1)
    names = list(it.plan.groups)
    moved = []
    for person in (0, 60, 95):
        rows = np.flatnonzero(its.budgets.record_owner == person)
        X, codes = its.X.copy(), its.codes.copy()
        X[rows], codes[rows] = 16 - X[rows], (codes[rows] + 1) % 10
        if relation == "zero-out":
            kept = np.setdiff1d(np.arange(200), rows)
            other = replace(its, X=its.X[kept], codes=its.codes[kept], budgets=its.budgets[kept])
            other.budgets.declare(its.budgets.group_sizes())  # public, and the same in both
        else:
            other = replace(its, X=X, codes=codes)
        theirs = run(other, neighbours=relation, clip_norm=0.05).summands()
        cohort = names.index(WHO[person])
        most = np.sqrt(event.towards(cohort).mu_squared[0]) * it.plan.noise
        for state in states:
            sample = it.recipe.sample(state.step)
            apart = summands.clipped_sum(state.parameters, sample) - theirs.clipped_sum(
                state.parameters, sample
            )
            moved.append(np.linalg.norm(apart.astype(float)) * UNIT / most)
    assert max(moved) <= 1
    assert max(moved) > (0.9 if relation == "zero-out" else 0.6)


@pytest.mark.filterwarnings("ignore:group .* was declared")
def test_the_sum_is_divided_by_a_public_constant_whoever_is_there():
    its = records(300)
    settings = {"steps": 1, "learning_rate": 1, "momentum": 0}
    noise = Listening()
    whole = run(its, **settings)
    model = whole.descend(whole.summands(), 65, noise).state.parameters
    half = replace(its, X=its.X[:150], codes=its.codes[:150], budgets=its.budgets[:150])
    half.budgets.declare(its.budgets.group_sizes())
    rest = replace(its, X=its.X[150:], codes=its.codes[150:], budgets=its.budgets[150:])
    rest.budgets.declare(its.budgets.group_sizes())
    parts = [run(part, **settings) for part in (half, rest)]
    models = [it.descend(it.summands(), 65, Listening()).state.parameters for it in parts]
    assert np.allclose(model, models[0] + models[1], atol=1e-12)  # a mean would not add up
    assert noise.asked == [(0, Noise("gaussian", whole.plan.noise * 2.0**30))]


def test_same_seed_same_bits_and_other_noise_every_time_without_one():
    its = records()
    one, two = (run(its, seed=5).learn().state.parameters for _ in range(2))
    assert (one == two).all()
    free = DPSGDRecipe(DPSGDSettings(steps=2))
    assert (
        DPSGDRun(free, its).learn().state.parameters != DPSGDRun(free, its).learn().state.parameters
    ).any()
    assert not run(its).learn().privacy.noise_is_private
    assert DPSGDRun(free, its).learn().privacy.noise_is_private


def test_against_replacement_the_noise_is_twice_as_large_and_the_sentence_says_which():
    blanked, replaced = run(), run(neighbours="replace-one")
    assert replaced.plan.noise == pytest.approx(2 * blanked.plan.noise, rel=1e-12)
    assert "there or blanked" in blanked.arrangement.sentence
    assert "replaced" not in blanked.arrangement.sentence
    assert "replaced or blanked" in replaced.arrangement.sentence
    assert blanked.arrangement.neighbours is Neighbours.ADD_OR_REMOVE
    assert blanked.plan.event().neighbours is Neighbours.ADD_OR_REMOVE
    assert replaced.arrangement.neighbours is Neighbours.ANY_CHANGE
    promised = DPSGDRun(DPSGDRecipe(), records(), relation=Neighbours.ANY_CHANGE)
    assert promised.plan.neighbours is Neighbours.ANY_CHANGE


def test_groups_are_tied_by_name_and_not_by_place():
    mixed = dict(reversed(LEVELS.items()))
    one, two = run(records()), run(records(levels=mixed))
    assert list(one.plan.groups) == list(reversed(two.plan.groups))
    assert (one.learn().state.parameters == two.learn().state.parameters).all()


def test_budgets_too_small_for_so_many_steps_are_told_before_anything_is_seen():
    with pytest.raises(InputError, match="lower steps"):
        run(records(levels=dict.fromkeys(LEVELS, 1e-6)), steps=100_000)


def test_rate_and_sampling_go_together():
    for wrong in ({"rate": 0.1}, {"sampling": "sample"}, {"sampling": "scale"}):
        with pytest.raises(InputError, match="rate goes with sampling"):
            DPSGDSettings(**wrong)


def test_step_size_and_components_follow_from_public_numbers():
    its = records()
    its_run, stricter = (
        run(its),
        run(records(levels={name: value / 10 for name, value in LEVELS.items()})),
    )
    granted = sum(
        gdp_mu(group.budget.epsilon, group.budget.delta) * group.owners
        for group in its_run.plan.groups.values()
    )
    assert signal(its_run.plan) == pytest.approx(granted, rel=1e-9)
    assert (
        stricter.learning_rate < its_run.learning_rate / 3 < its_run.learning_rate <= LARGEST_STEP
    )
    assert run(its, learning_rate=3.0).learning_rate == 3.0
    recipe = DPSGDRecipe(DPSGDSettings(), PublicComponents(n_components=50, whiten=0.5))
    view = DPSGDRun(recipe, its).view
    assert view.transformer.n_components == min(50, round((10 * signal(its_run.plan)) ** 0.5))
    wanted = DPSGDRecipe(
        DPSGDSettings(components=7), make_pipeline(PublicComponents(n_components=50))
    )
    assert DPSGDRun(wanted, its).X_seen.shape == (200, 7)
    assert DPSGDRun(DPSGDRecipe(DPSGDSettings(), PublicComponents()), its).X_seen.shape == (200, 64)


def test_each_step_repeats_a_share_of_the_last_one():
    its = DPSGDSettings(steps=3, momentum=0.5)
    states = [State.at(np.zeros((2, 1)))]
    for _ in range(3):
        states.append(stepped(states[-1], np.ones((2, 1)), its, 2.0))
    steps = [(a.parameters - b.parameters)[0, 0] / 2 for a, b in pairwise(states)]
    assert steps == [1, 1.5, 1.75]


def test_a_sampled_descents_statement_says_of_tests_what_the_pair_of_its_account_says():
    """Beside the best test of the mechanism, drawn: its power is within five standard errors, or below."""
    its = Budgets.from_epsilons(np.full(500, 3.0))
    plan = plan_dpsgd(
        its.groups, its.public_sizes(), steps=40, kind="scale", rate=0.1, bound="clip"
    )
    account = DPSGDAccount(plan)
    account.charge(40)
    statement = account.statement(Arrangement(blanked_only=True), noise_is_private=True)
    generator, runs = np.random.default_rng(3), 20_000
    for row, told in zip(statement.groups, statement.to_dict()["groups"], strict=True):
        group, bound = plan.groups[row.group], plan.bounds[row.group]
        assert told["within"] == {"mu": bound.mu, "delta_0": pytest.approx(1e-6)}
        found = told["found_at_most"]["0.05"]
        assert found == statement.trade_off(row).most_found(0.05)
        general = TradeOff(row.budget).most_found(0.05)
        assert found < min(0.7 * general, TradeOff(row.budget, gaussian=True).most_found(0.051))
        noise = generator.normal(0, plan.noise, (2, runs, 40))
        noise[1] += group.clip * (generator.random((runs, 40)) < group.rate)
        ratio = group.rate * np.expm1((noise - group.clip / 2) * group.clip / plan.noise**2)
        without, there = np.log1p(ratio).sum(axis=2)
        power = np.mean(there > np.quantile(without, 0.95))
        assert 0.75 * found < power <= found + 5 * np.sqrt(2 * 0.2 / runs)
    full_batch = plan_dpsgd(its.groups, its.public_sizes(), steps=40)
    for without_pair in (replace(plan, accountant="rdp"), full_batch):
        assert [one.mu for one in without_pair.bounds.values()] == [np.inf] * len(its.groups)


def test_who_is_in_a_group_that_a_plan_does_not_know_is_refused_and_not_put_into_another():
    plan = plan_dpsgd({"a": Budget(1.0), "b": Budget(2.0)}, {"a": 5, "b": 5}, steps=2)
    groups = {"b": Budget(2.0), "empty": Budget(1.0), "a": Budget(1.0)}
    assert plan.places_of(Budgets(groups, [0, 2, 2])).tolist() == [1, -1, 0]
    with pytest.raises(InputError, match="group 'empty' has owners but no place in the plan"):
        plan.places_of(Budgets(groups, [0, 1, 2]))
