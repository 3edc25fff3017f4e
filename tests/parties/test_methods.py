"""Votes and steps of direct training go through a sum of parties as they are: all parties get the same."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from collegium.budgets import Budget, Policy
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.parties.waiting import Patience
from collegium.pate.voting.labelling import ANSWERED
from collegium.runs.records import Records
from tests.parties.company import Company

PATIENCE = Patience(poll_s=0.001, give_up_s=600.0)


class Recorded:
    """A sum of parties, and what this party gave and got."""

    def __init__(self, inner):
        self.inner, self.given, self.got = inner, [], []
        self.is_private, self.description = inner.is_private, inner.description

    def noised(self, sensitive_sum, noise, *, query, purpose):
        self.given.append(sensitive_sum.copy())
        self.got.append(self.inner.noised(sensitive_sum, noise, query=query, purpose=purpose))
        return self.got[-1]


def at_once(work):
    """Every party in a thread of its own; returns what each made, and its sums."""
    company = Company()
    sums = {n: Recorded(company.party(n, patience=PATIENCE)) for n in company.numbers}
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda number: work(number, sums[number]), company.numbers))
    return made, list(sums.values())


def check_sums(sums, sigma_of):
    """What is opened is the sum over all, and noise of not more than 8 standard deviations."""
    first = sums[0]
    for place, got in enumerate(first.got):
        assert all((one.got[place] == got).all() for one in sums)
        error = got - sum(one.given[place] for one in sums)
        assert 0 < np.abs(error).max() < 8 * sigma_of * np.sqrt(1.5)
    assert any((first.given[0] != one.given[0]).any() for one in sums[1:])


def test_steps_of_direct_training():
    noise = []

    def work(number, sums):
        rng = np.random.default_rng(number)
        X = rng.uniform(-1, 1, (60, 3))
        budgets = Policy({"a": 1.0, "b": 3.0}).assign(["a", "b"] * 30)
        y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
        its = Records(X, y, budgets, np.arange(2), None)
        run = DPSGDRun(DPSGDRecipe(DPSGDSettings(steps=4), noise_seed=3), its)
        noise.append(run.plan.noise * 2**30)
        return run.descend(run.summands(), run.n_parameters, sums).state.parameters.tobytes()

    made, sums = at_once(work)
    assert made[0] == made[1] == made[2]
    assert len(sums[0].got) == 4
    check_sums(sums, noise[0])


def test_votes(house):
    electorate = house.plan("weighting", 20, groups={"a": Budget(90.0)}).electorate(0)
    mechanism = house.aggregator("confident", 20)

    def work(number, sums):
        votes = house.predictions(10, electorate.n_teachers, agreement=0.8, seed=number)
        job, _ = house.job(votes, electorate, mechanism, noise=sums)
        return job.run().outcomes

    made, sums = at_once(work)
    assert made[0] == made[1] == made[2]
    assert any(outcome.verdict == ANSWERED for outcome in made[0])
    check_sums(sums, 2**20 * 150.0)
