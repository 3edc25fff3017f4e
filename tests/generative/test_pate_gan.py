"""PATE-GAN: its account, its teachers, and what it says of its own result."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from mpmath import mp, mpf

from collegium.accounting.accountants import GaussianAccountant
from collegium.budgets import Budget, Budgets, Policy
from collegium.data.schema import Schema
from collegium.errors import BudgetExceededError, CollegiumError, InputError, PrivacyWarning
from collegium.generative.adversary_collapse import collapse_of
from collegium.generative.adversary_student import StudentDiscriminator
from collegium.generative.adversary_teachers import TeacherDiscriminators
from collegium.generative.adversary_votes import NoisyVotes, sigma_for
from collegium.generative.pate_gan import PATEGAN
from collegium.noise.grid import GRID
from collegium.noise.sources import SeededNoise
from collegium.personalisation import Uniform, Upsampling, Weighting

SCHEMA = Schema(
    {
        "smokes": {"kind": "flag", "missing": False},
        "sex": {"kind": "category", "categories": ["F", "M"], "missing": False},
        "age": {"kind": "whole", "bounds": [0, 99], "bins": [0, 20, 40, 60, 80, 99]},
    }
)
FAST = {"n_teachers": 10, "n_queries": 20, "rounds": 4, "teacher_steps": 1, "random_state": 1}


def people(n=200, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "smokes": rng.random(n) < 0.3,
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(0, 100, n),
        }
    )


def coins(seed=1):
    return torch.Generator().manual_seed(seed)


# ------------------------------------------------------------------------------------- account


@pytest.mark.parametrize(
    ("n_queries", "sigma"), [(100, 37.306), (1_000, 117.973), (12_800, 422.073)]
)
def test_noise_of_everybody_s_equal_votes(n_queries, sigma):
    plan = Uniform().plan({"all": Budget(1.0, 1e-5)}, {"all": 1000}, 100)
    found = sigma_for(plan.electorate(0), n_queries)
    assert found == pytest.approx(sigma, abs=5e-4)
    with mp.workdps(30):
        mu = mp.sqrt(n_queries) / mpf(found)
        x = 1 / mu
        delta = mp.ncdf(-x + mu / 2) - mp.e * mp.ncdf(-x - mu / 2)
    assert 0.999999 < float(delta / mpf("1e-5")) <= 1


@pytest.mark.parametrize("personalisation", [Uniform(), Weighting(), Upsampling()])
@pytest.mark.parametrize("n_queries", [1, 7, 1_000, 123_457])
def test_all_queries_are_affordable_and_hardly_more(personalisation, n_queries):
    groups = {"a": Budget(0.5, 1e-5), "b": Budget(1.0, 1e-6), "c": Budget(3.0, 1e-5)}
    plan = personalisation.plan(groups, {"a": 540, "b": 370, "c": 90}, 100)
    electorate = plan.electorate(0)
    sigma = sigma_for(electorate, n_queries)
    account = GaussianAccountant(
        [b.epsilon for b in electorate.cohort_budgets], [b.delta for b in electorate.cohort_budgets]
    )
    votes = NoisyVotes(electorate, sigma, n_queries, account, SeededNoise(1))
    assert n_queries <= account.how_many(votes.event) <= n_queries * (1 + 1e-9) + 1


def test_weights_let_the_budgets_run_out_together():
    model = PATEGAN(SCHEMA, **FAST, noise_seed=1)
    model.fit(people(), budgets=[1.0] * 120 + [3.0] * 80)
    for group in model.privacy_.groups:
        assert 0.9999 < group.share <= 1
    uniform = PATEGAN(SCHEMA, **FAST, personalisation="uniform", noise_seed=1)
    uniform.fit(people(), budgets=[1.0] * 120 + [3.0] * 80)
    assert uniform.privacy_.groups[1].epsilon_spent < 1.01


def test_nothing_is_drawn_that_was_not_charged_before():
    order = []

    class Ear(SeededNoise):
        def noised(self, *given, **named):
            order.append("draw")
            return super().noised(*given, **named)

    run = PATEGAN(SCHEMA, **FAST).begin(people(), budgets=1.0, noise=Ear(1))
    charge = run.account.charge
    run.account.charge = lambda cost, times=1: order.append(times) or charge(cost, times)
    run.train()
    assert order == [5, "draw"] * 4


def test_an_account_without_enough_left_stops_before_the_draw():
    run = PATEGAN(SCHEMA, **FAST).begin(people(), budgets=1.0, noise=SeededNoise(1))
    run.account.charge(run.votes.event, times=10)
    run.round(0)
    run.round(1)
    asked = run.votes.n_asked
    with pytest.raises(BudgetExceededError, match="refused"):
        run.round(2)
    assert run.votes.n_asked == asked == 10


def test_no_row_beyond_the_plan_is_voted_on():
    run = PATEGAN(SCHEMA, **FAST).begin(people(), budgets=1.0, noise=SeededNoise(1))
    run.train()
    with pytest.raises(InputError, match=r"20 of 20 generated rows were voted on"):
        run.votes.shares(np.zeros((10, 1), dtype=bool))


@pytest.mark.parametrize(("n_queries", "rounds"), [(20, 4), (7, 3), (5, 5), (100, 7)])
def test_rounds_ask_all_queries_evenly(n_queries, rounds):
    model = PATEGAN(SCHEMA, **{**FAST, "n_queries": n_queries, "rounds": rounds})
    run = model.begin(people(), budgets=1.0)
    asked = [run.n_asked(number) for number in range(rounds)]
    assert sum(asked) == n_queries
    assert max(asked) - min(asked) <= 1


def test_a_share_is_the_weighted_share_of_yes_and_noise_on_the_grid():
    plan = Weighting().plan({"a": Budget(1.0), "b": Budget(3.0)}, {"a": 60, "b": 40}, 10)
    electorate = plan.electorate(0)
    account = GaussianAccountant([np.inf, np.inf], 1e-5)
    votes = np.random.default_rng(1).random((10, 50)) < 0.5
    noise = SeededNoise(3)
    shares = NoisyVotes(electorate, 4.0, 50, account, noise).shares(votes)
    drawn = noise.gaussian(4.0, 50, query=0, purpose="vote")
    expected = electorate.ballot(0).weights @ votes + drawn
    assert (np.rint(expected / GRID) * GRID == expected).all()
    assert shares == pytest.approx(expected / electorate.ballot(0).total, rel=1e-15)


# ------------------------------------------------------------------------------------ teachers


def shards(n=6, seed=2, sizes=(2, 3, 4)):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 30, n)
    return [np.stack([rng.integers(0, s, c) for s in sizes], axis=1) for c in counts]


@pytest.mark.parametrize("change", ["replaced", "gone", "more"])
def test_no_teacher_s_arithmetic_depends_on_another_s_rows(change):
    sizes, those = (2, 3, 4), shards()
    others = list(those)
    others[2] = {
        "replaced": np.zeros_like(those[2]),
        "gone": those[2][:0],
        "more": np.concatenate([those[2]] * 5),
    }[change]
    generated = shards(1, 5)[0]
    one, other = (TeacherDiscriminators(s, sizes, coins()) for s in (those, others))
    for _ in range(20):
        one.learn(generated)
        other.learn(generated)
    kept = [0, 1, 3, 4, 5]
    for mine, theirs in zip(one._weights, other._weights, strict=True):
        assert torch.equal(mine[kept], theirs[kept])
        assert not torch.equal(mine[2], theirs[2])


def test_a_teacher_draws_its_own_rows_only_and_each_of_them():
    those, drawn = shards(), []
    teachers = TeacherDiscriminators(those, (2, 3, 4), coins())
    step = teachers.step
    teachers.step = lambda rows, has, fakes: drawn.append(rows.numpy()) or step(rows, has, fakes)
    for _ in range(40):
        teachers.learn(those[0])
    for number, shard in enumerate(those):
        seen = {tuple(row) for rows in drawn for row in rows[number].tolist()}
        if len(shard):
            assert seen == {tuple(row) for row in shard.tolist()}


def test_teachers_learn_to_tell_their_rows_from_others():
    real = np.zeros((60, 3), dtype=np.int64)
    fake = np.stack([np.random.default_rng(1).integers(1, s, 60) for s in (2, 3, 4)], axis=1)
    teachers = TeacherDiscriminators([real[:30], real[30:]], (2, 3, 4), coins(), votes="absolute")
    for _ in range(60):
        teachers.learn(fake)
    assert teachers.votes(real).all()
    assert not teachers.votes(fake).any()


def test_relative_votes_are_for_at_most_half_of_the_rows():
    teachers = TeacherDiscriminators(shards(), (2, 3, 4), coins())
    votes = teachers.votes(shards(1, 7)[0])
    assert (votes.sum(axis=1) <= votes.shape[1] / 2).all()
    assert votes.any()


def test_all_rows_of_an_owner_have_one_teacher():
    owners = [f"person {i % 60}" for i in range(200)]
    budgets = Budgets({"all": Budget(1.0)}, [0] * 200, owners)
    run = PATEGAN(SCHEMA, **FAST).begin(people(), budgets=budgets)
    teacher_of = {}
    for teacher, rows in enumerate(run.plan.assign(budgets, b"1").shards()):
        for row in rows:
            teacher_of.setdefault(owners[row], set()).add(teacher)
    assert all(len(teachers) == 1 for teachers in teacher_of.values())
    assert int(run.teachers._counts.sum()) == 200


# ------------------------------------------------------------------------------------- student


def test_unbiased_shares_are_learnt_where_clipped_ones_are_not():
    """Of rows that a tenth calls real, with noise of 0.5: their mean is off by 0.04 once in 2e6 seeds."""
    rng = np.random.default_rng(4)
    rows = np.zeros((4000, 1), dtype=np.int64)
    shares = 0.1 + rng.normal(0, 0.5, 4000)
    found = {}
    for targets in ("unbiased", "clipped"):
        student = StudentDiscriminator((2,), coins(), targets=targets, memory=4000, rate=1e-2)
        student.learn(rows, shares, 400)
        with torch.no_grad():
            row = student.blocks.one_hot(np.zeros((1, 1), dtype=np.int64))
            found[targets] = float(student.logits(row).sigmoid()[0])
    assert abs(found["unbiased"] - 0.1) < 0.08
    assert found["clipped"] > 0.2


# --------------------------------------------------------------------------------------- face


def test_the_same_seeds_make_the_same_table_and_others_another():
    def table(random_state, noise_seed):
        how = {**FAST, "random_state": random_state}
        model = PATEGAN(SCHEMA, **how, noise_seed=noise_seed).fit(people(), budgets=2.0)
        return model.sample(50, random_state=7)

    assert table(1, 1).equals(table(1, 1))
    assert not table(1, 1).equals(table(2, 1))
    assert not table(1, 1).equals(table(1, 2))


def test_samples_are_read_by_the_schema_and_within_its_bounds():
    model = PATEGAN(SCHEMA, **FAST, noise_seed=1).fit(people(), budgets=1.0)
    made = model.sample(500)
    assert list(made) == ["smokes", "sex", "age"]
    assert set(made["sex"]) <= {"F", "M"}
    assert made["age"].dropna().between(0, 99).all()
    assert not model.sample(50).equals(model.sample(50))


def test_the_statement_says_what_is_promised():
    policy = Policy({"strict": 1.0, "open": 3.0})
    frame = people().assign(level=["strict", "open"] * 100, person=list(range(100)) * 2)
    frame["level"] = np.where(frame["person"] % 3 == 0, "strict", "open")
    model = PATEGAN(SCHEMA, **FAST)
    model.fit(frame, budgets=policy, privacy="level", owner="person")
    said = model.privacy_
    assert said.noise_is_private
    assert said.guarantee == "worst-case"
    assert said.adjacency.startswith("all records of one owner are replaced or blanked")
    assert {group.group: group.owners for group in said.groups} == {"strict": 34, "open": 66}
    assert all(group.epsilon_spent <= group.budget.epsilon for group in said.groups)


def test_seeded_noise_is_not_private():
    assert (
        not PATEGAN(SCHEMA, **FAST, noise_seed=1)
        .fit(people(), budgets=1.0)
        .privacy_.noise_is_private
    )


def test_people_who_granted_nothing_decide_on_nothing():
    silent = people()
    other = silent.copy()
    other.loc[:49, "age"] = 0
    with pytest.warns(PrivacyWarning, match="50 owner"):
        made = [
            PATEGAN(SCHEMA, **FAST, noise_seed=1)
            .fit(frame, budgets=[0.0] * 50 + [2.0] * 150)
            .sample(100, random_state=1)
            for frame in (silent, other)
        ]
    assert made[0].equals(made[1])


def test_public_rows_that_are_private_ones_are_refused():
    frame = people()
    with pytest.raises(InputError, match="public"):
        PATEGAN(SCHEMA, **FAST).fit(frame, budgets=1.0, public=frame)
    allowed = PATEGAN(SCHEMA, **FAST).fit(frame, budgets=1.0, public=frame, public_may_overlap=True)
    assert any("Public records may equal private ones" in s for s in allowed.privacy_.provisos)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"n_teachers": 0}, "n_teachers must be a whole number of at least 1, got 0"),
        ({"n_queries": 0}, "n_queries must be a whole number from 1 to 10,000,000, got 0"),
        ({"rounds": 30}, "rounds must be a whole number from 1 to 20, got 30"),
        ({"votes": "loud"}, "votes must be"),
        ({"targets": "hard"}, "targets must be"),
        ({"delta": 1.0}, "delta"),
        ({"personalisation": "none"}, "unknown personalisation 'none'"),
    ],
)
def test_settings_that_cannot_be(how, message):
    with pytest.raises(CollegiumError, match=message):
        PATEGAN(SCHEMA, **{**FAST, **how})


@pytest.mark.parametrize(
    ("frame", "budgets", "message"),
    [
        (people(0), 1.0, "no rows"),
        (people(), [1.0] * 3, "200 rows, but 3 budgets"),
        (people().drop(columns="age"), 1.0, "age"),
        (people(), 0.0, "granted nothing"),
        (people(5), 1.0, "10 teachers, but only 5 owners"),
        (people(), Budget(1e-9, 1e-15), "ask fewer queries"),
    ],
)
def test_input_that_cannot_be(frame, budgets, message):
    with pytest.raises(CollegiumError, match=message):
        PATEGAN(SCHEMA, **FAST).fit(frame, budgets=budgets)


def test_teachers_that_come_and_go_are_refused():
    model = PATEGAN(SCHEMA, **FAST, personalisation="vanishing")
    with pytest.raises(InputError, match="come and go"):
        model.fit(people(), budgets=[1.0, 3.0] * 100)


def test_what_was_not_fitted_cannot_be_asked():
    model = PATEGAN(SCHEMA, **FAST)
    assert "not fitted" in repr(model)
    for ask in (lambda: model.sample(3), lambda: model.privacy_):
        with pytest.raises(InputError, match="has learnt nothing yet"):
            ask()


@pytest.mark.parametrize("n", [0, -1, 1.5, 10**9])
def test_as_many_rows_as_cannot_be(n):
    model = PATEGAN(SCHEMA, **FAST, noise_seed=1).fit(people(), budgets=1.0)
    with pytest.raises(InputError, match="n must be a whole number from 1 to 10,000,000"):
        model.sample(n)


def test_a_second_fit_is_a_release_of_its_own():
    model = PATEGAN(SCHEMA, **FAST, noise_seed=1).fit(people(), budgets=1.0)
    first = model.privacy_
    with pytest.warns(PrivacyWarning, match="each fit is a release of its own"):
        model.fit(people(), budgets=1.0)
    assert model.privacy_.groups == first.groups  # a new account, with no more than one fit


def test_what_was_spent_is_told_of_an_interrupted_fit(monkeypatch):
    model = PATEGAN(SCHEMA, **FAST, noise_seed=1)

    def stop(run, number):
        raise KeyboardInterrupt

    from collegium.generative.pate_gan_run import PATEGANRun

    monkeypatch.setattr(
        PATEGANRun, "n_asked", lambda run, number: 5 if number < 2 else stop(run, 0)
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(people(), budgets=1.0)
    assert 0.3 < model.privacy_.groups[0].epsilon_spent < 0.9


def test_rows_come_from_generators_of_many_rounds_in_any_order():
    run = PATEGAN(SCHEMA, **{**FAST, "rounds": 12}).begin(people(), budgets=1.0)
    run.train()
    assert len(run._kept) == 8
    generator = run.generator
    for number, kept in enumerate(run._kept):
        kept.codes = lambda n, coins, number=number: np.full((n, 3), number)
    drawn = run.codes(803, coins())
    assert sorted(np.bincount(drawn[:, 0]).tolist()) == [100] * 5 + [101] * 3
    assert (np.diff(drawn[:, 0]) < 0).any()
    assert run.generator is generator


# ------------------------------------------------------------------------------------ collapse


def test_a_collapse_is_seen_in_generated_rows_alone():
    rng = np.random.default_rng(1)
    varied = rng.integers(0, 5, (2000, 4))
    alone = collapse_of(varied, (5,) * 4, "abcd")
    assert not alone.is_collapsed and alone.verdict == "varied rows"
    assert str(alone).endswith("give public rows to see whether they are right")
    half = varied.copy()
    half[:, :2] = 3
    found = collapse_of(half, (5,) * 4, "abcd")
    assert found.is_collapsed
    assert found.single_valued == ("a", "b")
    few = varied[rng.integers(0, 3, 2000)]
    assert collapse_of(few, (50,) * 4, "abcd").effective_rows == pytest.approx(3, abs=0.1)
    assert collapse_of(few, (50,) * 4, "abcd").is_collapsed


def test_public_rows_show_a_collapse_that_varied_rows_hide():
    rng = np.random.default_rng(1)
    public = rng.choice(5, (2000, 4), p=[0.8, 0.1, 0.05, 0.03, 0.02])
    varied = rng.integers(0, 5, (2000, 4))
    assert not collapse_of(varied, (5,) * 4, "abcd").is_collapsed
    found = collapse_of(varied, (5,) * 4, "abcd", public)
    assert found.is_collapsed
    assert found.distance == pytest.approx(0.6, abs=0.05)
    assert not collapse_of(public[:1000], (5,) * 4, "abcd", public[1000:]).is_collapsed


def test_columns_that_are_right_one_by_one_alone_are_told_from_a_table():
    """Shares of dependence are off by 0.25 in fewer than one of 1,000 seeds (none of 1,000 was)."""
    rng = np.random.default_rng(3)

    def rows(n):
        first = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
        other = np.where(rng.random(n) < 0.6, first, rng.choice(4, n))
        return np.stack([first, other, rng.choice(3, n)], axis=1)

    public, good = rows(500), rows(5000)
    alone = good.copy()
    alone[:, 1] = rng.permutation(alone[:, 1])
    half = np.concatenate([good[:2500], alone[2500:]])
    for generated, share in ((good, 1.0), (alone, 0.0), (half, 0.5)):
        found = collapse_of(generated, (4, 4, 3), "abc", public)
        assert found.dependence == pytest.approx(share, abs=0.25)
    assert collapse_of(alone, (4, 4, 3), "abc", public).verdict == "columns alone"
    assert collapse_of(good, (4, 4, 3), "abc", public).verdict == "not collapsed"


def test_the_result_says_whether_it_has_collapsed():
    model = PATEGAN(SCHEMA, **FAST, noise_seed=1)
    model.fit(people(), budgets=1.0, public=people(300, seed=9))
    assert str(model.collapsed_) in repr(model)
    assert model.collapsed_.distance is not None
    assert math.isclose(model.collapsed_.possible_rows, 2 * 2 * 6)
