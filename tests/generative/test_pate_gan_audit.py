"""Each way in which public PATE-GANs leak (arXiv 2406.13985) is planted, and noticed by one of five games."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from collegium.accounting.accountants import GaussianAccountant
from collegium.attacks.generative_games import distinguish, play_all
from collegium.attacks.generative_recording import record, replayed
from collegium.budgets import Budget
from collegium.data.cells import Cells
from collegium.generative.pate_gan import PATEGAN
from collegium.noise.sources import SeededNoise
from tests.generative.pate_gan_games import GROUPS, IDENTITY, SCHEMA, SMALL, neighbours


class DealtAnew(PATEGAN):
    """Deals rows to teachers anew in every round."""

    def _parts(self, *given):
        run = super()._parts(*given)
        rng, inner, teachers = np.random.default_rng(1), run.round, run.teachers

        def dealt(number):
            order = rng.permutation(len(teachers._sensitive_rows))
            teachers._sensitive_rows = teachers._sensitive_rows[order]
            inner(number)

        run.round = dealt
        return run


class NewTeachers(PATEGAN):
    """Makes new teachers of newly dealt rows in every round."""

    def _parts(self, *given):
        run = super()._parts(*given)
        inner, others = run.round, super()._parts

        def made_anew(number):
            run.teachers = others(*given).teachers
            inner(number)

        run.round = made_anew
        return run


class MoreThanTheirShare(PATEGAN):
    """Lets each teacher learn from its neighbour's rows, too."""

    def _shards(self, *given):
        shards = super()._shards(*given)
        return [np.concatenate([one, shards[i - 1]]) for i, one in enumerate(shards)]


class EverybodysRows(PATEGAN):
    """Lets each teacher learn from all rows."""

    def _shards(self, codes, budgets, plan, seed):
        return [codes] * plan.n_teachers


class DealtByRank(PATEGAN):
    """Deals people in the order of how many rows they have: each to one teacher, but not by themselves."""

    def _shards(self, codes, budgets, plan, seed):
        ranked = np.argsort(-np.bincount(budgets.record_owner), kind="stable")
        teacher = np.empty(len(ranked), dtype=int)
        teacher[ranked] = np.arange(len(ranked)) % plan.n_teachers
        return [codes[teacher[budgets.record_owner] == number] for number in range(plan.n_teachers)]


class BoundsOfPrivateRows(PATEGAN):
    """Reads the bounds of numbers off the private rows."""

    def _cells(self, frame, public):
        edges = super()._cells(frame, public).edges
        ages = frame["age"].dropna().astype(float)
        return Cells.with_edges(
            self.schema, {**edges, "age": np.linspace(ages.min(), ages.max(), 5).tolist()}
        )


class StudentSeesPrivateRows(PATEGAN):
    """Shows the student private rows as real ones."""

    def _parts(self, *given):
        run = super()._parts(*given)
        inner = run.round

        def shown(number):
            real = run.teachers._sensitive_rows.numpy()
            run.student.learn(real, np.ones(len(real)), 1)
            inner(number)

        run.round = shown
        return run


class StudentSharesParameters(PATEGAN):
    """Gives the student what teachers have learnt, on average."""

    def _parts(self, *given):
        run = super()._parts(*given)
        inner = run.round

        def shared(number):
            inner(number)
            run.student.network[-1].bias.data.copy_(run.teachers._weights[3].data.mean())

        run.round = shared
        return run


class OncePerRound(GaussianAccountant):
    """Charges a round's rows as one."""

    def charge(self, cost, times=1):
        super().charge(cost)


class ChargedByRound(PATEGAN):
    """Plans and charges for rounds, not for the rows that are voted on in them."""

    def _account_of(self, electorate, arrangement):
        right = super()._account_of(electorate, arrangement)
        return OncePerRound(right.epsilon, right.delta, right.names, right.neighbours)

    def _sigma(self, electorate):
        return super()._sigma(electorate) * math.sqrt(self.rounds / self.n_queries)


class ChargedAfterwards(PATEGAN):
    """Charges when the noise was drawn already."""

    def _parts(self, *given):
        run = super()._parts(*given)
        votes, charge, due = run.votes, run.account.charge, []
        run.account.charge = lambda cost, times=1: due.append((cost, times))
        inner = votes.shares

        def late(sensitive_votes):
            noisy = inner(sensitive_votes)
            charge(*due.pop())
            return noisy

        votes.shares = late
        return run


def said_by(formula):
    """Plan and account by a formula for ε of μ and δ, whatever is true."""

    class Account(GaussianAccountant):
        def _exceeds(self, total):
            return np.zeros(len(self), dtype=bool)

        def _epsilon_of(self, total):
            pairs = zip(np.sqrt(total[0]), self.delta, strict=True)
            return np.array([formula(mu, delta) for mu, delta in pairs])

    class Model(PATEGAN):
        def _account_of(self, electorate, arrangement):
            right = super()._account_of(electorate, arrangement)
            return Account(right.epsilon, right.delta, right.names, right.neighbours)

        def _sigma(self, electorate):
            needed = [
                moved
                * math.sqrt(self.n_queries)
                / brentq(lambda mu, b=budget: formula(mu, b.delta) - b.epsilon, 1e-9, 50)
                for moved, budget in zip(
                    electorate.sensitivity, electorate.cohort_budgets, strict=True
                )
            ]
            return max(needed)

    return Model


ORDERS = np.arange(1, 101)
WRONG = {
    # of Rényi DP: ε = ρ + 2·√(ρ·ln(1/δ)) with ρ = μ²/2, and what is left of it
    "no delta": said_by(lambda mu, delta: mu**2 / 2),
    "logarithm to base 10": said_by(
        lambda mu, delta: mu**2 / 2 + mu * math.sqrt(-2 * math.log10(delta))
    ),
    # of the moments: ε = min over λ of (λ(λ + 1)μ²/2 + ln(1/δ)) / λ
    "moments with the wrong lambda": said_by(
        lambda mu, delta: float(np.min((ORDERS * mu**2 / 2 - math.log(delta)) / ORDERS))
    ),
    "moments at the wrong index": said_by(
        lambda mu, delta: float(
            np.min((ORDERS[:-1] * ORDERS[1:] * mu**2 / 2 - math.log(delta)) / ORDERS[1:] ** 2)
        )
    ),
}

PLANTED = [
    (DealtAnew, "fingerprints"),
    (NewTeachers, "fingerprints"),
    (MoreThanTheirShare, "fingerprints"),
    (EverybodysRows, "fingerprints"),
    (MoreThanTheirShare, "sensitivity"),
    (EverybodysRows, "sensitivity"),
    (BoundsOfPrivateRows, "identical"),
    (StudentSeesPrivateRows, "identical"),
    (StudentSharesParameters, "identical"),
    (ChargedByRound, "recompute"),
    (ChargedAfterwards, "recompute"),
    *((model, "recompute") for model in WRONG.values()),
]
IDS = [f"{model.__name__}-{game}" for model, game in PLANTED[: -len(WRONG)]] + list(WRONG)


@pytest.mark.parametrize("change", ["replaced", "blank", "fewer"])
@pytest.mark.parametrize(
    "how",
    [{}, {"votes": "absolute"}, {"personalisation": "uniform"}, {"personalisation": "upsampling"}],
    ids=str,
)
def test_ours_passes_the_games(change, how):
    verdicts = play_all(neighbours(PATEGAN(SCHEMA, **SMALL, **how), change), IDENTITY, runs=None)
    assert all(verdict.holds for verdict in verdicts.values()), list(map(str, verdicts.values()))


@pytest.mark.parametrize(("model", "game"), PLANTED, ids=IDS)
def test_what_is_planted_is_noticed(model, game):
    verdicts = play_all(neighbours(model(SCHEMA, **SMALL)), IDENTITY, runs=None)
    assert not verdicts[game].holds, list(map(str, verdicts.values()))


def test_one_person_s_rows_that_deal_others_to_other_teachers_are_noticed():
    verdicts = play_all(neighbours(DealtByRank(SCHEMA, **SMALL), "fewer"), IDENTITY, runs=None)
    assert not verdicts["fingerprints"].holds, list(map(str, verdicts.values()))


def test_the_games_see_an_owner_s_votes_move():
    """Else the game of sensitivity would hold of anything."""
    one, other = replayed(neighbours(PATEGAN(SCHEMA, **SMALL)), seed=0)
    assert any((a.sums != b.sums).any() for a, b in zip(one.draws, other.draws, strict=True))


def test_only_the_votes_of_the_owner_s_teacher_change():
    heard = []
    pair = neighbours(PATEGAN(SCHEMA, **SMALL))

    def begin(frame, granted, noise):
        run = PATEGAN(SCHEMA, **SMALL).begin(frame, budgets=granted, noise=noise)
        inner, votes = run.teachers.votes, []
        run.teachers.votes = lambda generated: votes.append(inner(generated)) or votes[-1]
        heard.append((run, votes))
        return run

    first = record(type(pair)(begin, pair.tables, pair.group), 0, SeededNoise(1))
    forced = [draw.noisy for draw in first.draws]
    record(type(pair)(begin, pair.tables, pair.group), 1, SeededNoise(1), forced)
    (run, before), (_, after) = heard
    _, granted = pair.tables[0]
    shards = run.plan.assign(granted, b"5").shards()
    owner_s = [teacher for teacher, rows in enumerate(shards) if 0 in rows]
    changed = {
        int(teacher)
        for a, b in zip(before, after, strict=True)
        for teacher in np.flatnonzero((a != b).any(axis=1))
    }
    assert changed == set(owner_s)
    assert len(owner_s) == 1


BIG_ROUNDS = {**SMALL, "n_queries": 400}
RUNS = 24


def test_the_best_test_finds_no_more_than_is_claimed():
    """Right to find nothing with probability 95 %, over the noise; the seed is fixed."""
    verdict, _ = distinguish(neighbours(PATEGAN(SCHEMA, **BIG_ROUNDS)), RUNS, seed=1)
    assert verdict.holds, str(verdict)


def test_the_best_test_finds_something_where_much_was_granted():
    much = {"strict": Budget(30.0, 1e-5), "generous": Budget(31.0, 1e-5)}
    model = PATEGAN(SCHEMA, **BIG_ROUNDS)
    verdict, lower_mu = distinguish(neighbours(model, groups=much), RUNS, seed=2)
    assert verdict.holds, str(verdict)
    assert lower_mu > 0.5, str(verdict)


def test_the_best_test_finds_more_than_a_wrong_account_claims():
    verdict, _ = distinguish(neighbours(ChargedByRound(SCHEMA, **BIG_ROUNDS)), RUNS, seed=3)
    assert not verdict.holds, str(verdict)
    assert GROUPS["strict"].epsilon == 1
