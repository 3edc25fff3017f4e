"""Everything that a histogram release shows is a function of noised values that the account charged."""

import math

import numpy as np
import pytest

from collegium import Budget, Policy
from collegium.pate.voting.histograms import released_histograms
from collegium.pate.voting.labelling import LabellingJob

K, N_CLASSES = 20, 4
RICH = {"high": Budget(8.0), "average": Budget(16.0), "low": Budget(24.0)}
SIZES = {"high": 540, "average": 370, "low": 90}


class Tape(LabellingJob):
    """Writes down every value before and after noise, or plays a tape of noisy values."""

    forced = None

    def run(self):
        self.before, self.after = [], []
        return super().run()

    def _noised(self, sensitive_values, scale, query, purpose):
        self.before.append((query, purpose, scale, sensitive_values.copy()))
        if self.forced is None:
            noisy = super()._noised(sensitive_values, scale, query, purpose)
        else:
            noisy = self.forced[len(self.after)]
        self.after.append(noisy)
        return noisy


@pytest.fixture(scope="module")
def people():
    levels = [name for name, size in SIZES.items() for _ in range(size)]
    return Policy(RICH).assign(levels, np.arange(1000))


def moved_teachers(house, people, personalisation, group):
    plan = house.plan(personalisation, K, groups=RICH, sizes=SIZES)
    owner = int(np.flatnonzero(people.owner_group == people.group_names.index(group))[3])
    teachers = plan.assign(people, b"public").owner_teachers[owner]
    teachers = teachers[teachers >= 0]
    electorate = plan.electorate(seed=3)
    static = electorate.is_static
    cohort = electorate.cohort_groups.index(group) if static else int(teachers[0])
    return electorate, teachers, cohort


@pytest.mark.parametrize("personalisation", ["uniform", "upsampling", "weighting", "vanishing"])
@pytest.mark.parametrize("aggregator", ["lnmax", "gnmax", "confident", "interactive"])
@pytest.mark.parametrize("group", ["high", "low"])
def test_replayed_on_a_neighbour_the_same_noisy_values_show_the_same_histograms(
    house, people, personalisation, aggregator, group
):
    """Nothing else of the votes reaches an outcome, and no value moves further than was charged."""
    electorate, teachers, cohort = moved_teachers(house, people, personalisation, group)
    mechanism = house.aggregator(aggregator, K)
    votes = house.predictions(120, electorate.n_teachers, agreement=0.7)
    opposite = votes.copy()
    votes[:, teachers], opposite[:, teachers] = 2, 3
    job, pricing = house.job(votes, electorate, mechanism, kind=Tape, release="histogram")
    labels = job.run()
    again, repriced = house.job(opposite, electorate, mechanism, kind=Tape, release="histogram")
    again.forced = job.after
    replayed = again.run()
    assert replayed.outcomes == labels.outcomes
    assert repriced.accountant.mu_squared.tobytes() == pricing.accountant.mu_squared.tobytes()
    shown = [o.noisy_counts for o in labels.outcomes if o.noisy_counts is not None]
    shown_checks = [o.noisy_check for o in labels.outcomes if o.noisy_check is not None]
    answers = [
        noisy
        for (_, purpose, *_), noisy in zip(job.before, job.after, strict=True)
        if purpose == "answer"
    ]
    checks = [
        noisy[0]
        for (_, purpose, *_), noisy in zip(job.before, job.after, strict=True)
        if purpose == "check"
    ]
    assert shown == [tuple(noisy.tolist()) for noisy in answers] and shown_checks == checks
    largest = 0.0
    for (query, purpose, scale, one), (_, _, _, two) in zip(job.before, again.before, strict=True):
        check, answer = (
            mechanism.check_event(electorate.ballot(query)),
            mechanism.answer_event(electorate.ballot(query)),
        )
        moved = one - two
        if purpose == "check":
            assert (moved**2).sum() / scale**2 <= check.mu_squared[cohort]
        elif aggregator == "lnmax":  # the vector moves by 2Δ in L1: (2γΔ, 0)-DP
            assert abs(moved).sum() / scale <= answer.pure_epsilon[cohort]
        else:  # by √2·Δ in L2
            assert (moved**2).sum() / scale**2 <= answer.mu_squared[cohort]
            largest = max(largest, np.linalg.norm(moved) / electorate.sensitivity[cohort])
    if aggregator != "lnmax":
        assert largest == pytest.approx(math.sqrt(2), rel=1e-12), "the worst case is reached"


@pytest.mark.parametrize("aggregator", ["lnmax", "gnmax", "confident", "interactive"])
def test_what_stands_beside_a_histogram_is_public(house, people, aggregator):
    """Totals, scales and thresholds are the same for neighbours, and for any votes whatever."""
    electorate, _, _ = moved_teachers(house, people, "vanishing", "low")
    mechanism = house.aggregator(aggregator, K)
    tables = []
    for seed in (0, 1):
        votes = house.predictions(60, electorate.n_teachers, agreement=0.7 * seed, seed=seed)
        job, _ = house.job(votes, electorate, mechanism, release="histogram", max_labels=3)
        tables.append(released_histograms(job.run(), electorate, mechanism, N_CLASSES))
    n = min(len(table) for table in tables)
    for name in ("queries", "totals", "noise_scales", "check_scales", "thresholds"):
        one, two = (getattr(table, name)[:n] for table in tables)
        np.testing.assert_array_equal(one, two)
