"""Aggregators: their parameters, and that answers and checks are distributed as their names promise.

Seeded noise makes the statistical tests repeatable: each would fail for one seed in 10,000 if the
distribution is right (false-alarm rate 1e-4 each).
"""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from collegium import ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise
from collegium.pate.voting.aggregators import AGGREGATORS, aggregator_from
from collegium.pate.voting.labelling import ANSWERED, NO_LABEL, REINFORCED, REJECTED
from collegium.personalisation import Electorate

FALSE_ALARM = 1e-4
N_RUNS = 2500

# ------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("lnmax", {"gamma": 0.0}),
        ("lnmax", {"gamma": -0.1}),
        ("gnmax", {"sigma": 0}),
        ("gnmax", {"sigma": math.nan}),
        ("gnmax", {"sigma": math.inf}),
        ("gnmax", {"sigma": "40"}),
        ("gnmax", {"answers": 0}),
        ("gnmax", {"answers": 2.5}),
        ("gnmax", {"answers": 10, "sigma": 3.0}),
        ("gnmax", {"sigma": True}),
        ("confident", {"sigma_threshold": 0.0}),
        ("confident", {"sigma_threshold": -150.0}),
        ("confident", {"sigma": -40}),
        ("confident", {"threshold": math.nan}),
        ("confident", {"threshold": math.inf}),
        ("interactive", {"confidence": -0.1}),
        ("interactive", {"confidence": 1.1}),
        ("interactive", {"confidence": math.nan}),
        ("interactive", {"refit_every": 0}),
        ("interactive", {"refit_every": 2.5}),
        ("interactive", {"sigma_threshold": 0}),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_name(name, parameters):
    with pytest.raises(InputError, match=f"{name}.*{next(iter(parameters))}") as refusal:
        aggregator_from(name, **parameters)
    assert "\n" not in str(refusal.value)


def test_every_aggregator_is_made_from_its_name_and_parameters():
    assert aggregator_from("lnmax", gamma=0.1) == LNMax(0.1)
    assert aggregator_from("gnmax", sigma=np.float64(3)) == GNMax(3.0)
    assert aggregator_from("confident", threshold=-1) == ConfidentGNMax(threshold=-1)
    assert aggregator_from("interactive", refit_every=7) == InteractiveGNMax(refit_every=7)
    for name, cls in AGGREGATORS.items():
        assert aggregator_from(name) == cls()
        assert cls.name == name


def test_unknown_names_and_parameters_are_refused_with_what_is_allowed():
    with pytest.raises(InputError, match="lnmax, gnmax, confident, interactive"):
        aggregator_from("gnmaxx")
    with pytest.raises(InputError, match=r"allowed are sigma, answers$"):
        aggregator_from("gnmax", gamma=0.05)
    with pytest.raises(InputError, match=r"allowed are threshold, sigma_threshold, sigma$"):
        aggregator_from("confident", sigma_check=150)


def test_an_aggregator_cannot_be_changed_after_it_was_priced():
    for cls in AGGREGATORS.values():
        aggregator = cls()
        for parameter in vars(aggregator):
            with pytest.raises(AttributeError):
                setattr(aggregator, parameter, 1.0)


# ----------------------------------------------------------------------------------- distributions


def repeated(counts, n_runs=N_RUNS):
    """Votes with the same counts at every query."""
    row = np.repeat(np.arange(len(counts)), counts)
    return np.tile(row, (n_runs, 1)).astype(np.int32)


def winning_probabilities(counts, law):
    """Pr[j has the largest noisy count], by numerical integration."""

    def density(value, winner):
        others = [law.cdf(value - count) for j, count in enumerate(counts) if j != winner]
        return law.pdf(value - counts[winner]) * math.prod(others)

    edges = sorted({-400.0, *map(float, counts), 400.0})
    return [
        sum(
            integrate.quad(density, low, high, args=(winner,), limit=200)[0]
            for low, high in itertools.pairwise(edges)
        )
        for winner in range(len(counts))
    ]


@pytest.mark.parametrize("counts", [(10, 7, 3), (0, 12, 8, 12)])
@pytest.mark.parametrize(
    ("aggregator", "law"),
    [(GNMax(sigma=4.0), stats.norm(scale=4.0)), (LNMax(gamma=0.25), stats.laplace(scale=4.0))],
    ids=["gnmax", "lnmax"],
)
def test_the_winner_is_distributed_as_brute_force_says(house, aggregator, law, counts):
    electorate = house.unlimited(sum(counts))
    job, _ = house.job(repeated(counts), electorate, aggregator, n_classes=len(counts))
    labels = job.run()
    assert labels.n_answered == N_RUNS
    observed = np.bincount(labels.labels, minlength=len(counts))
    expected = N_RUNS * np.array(winning_probabilities(counts, law))
    assert expected.sum() == pytest.approx(N_RUNS, rel=1e-6)
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, len(counts) - 1) > FALSE_ALARM


@pytest.mark.parametrize("top", [6, 10, 14])
def test_a_check_passes_with_the_probability_that_the_normal_law_gives(house, top):
    aggregator = ConfidentGNMax(threshold=10.0, sigma_threshold=5.0, sigma=1.0)
    counts = (top, 20 - top) if top >= 10 else (top, 5, 5, 4)
    job, _ = house.job(
        repeated(counts), house.unlimited(sum(counts)), aggregator, n_classes=len(counts)
    )
    labels = job.run()
    passing = stats.norm.cdf((max(counts) - 10.0) / 5.0)
    assert stats.binomtest(labels.n_answered, N_RUNS, passing).pvalue > FALSE_ALARM
    verdicts = {outcome.verdict for outcome in labels.outcomes}
    assert verdicts == {ANSWERED, REJECTED}


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_settings_mean_the_same_when_the_total_weight_is_another(house, factor):
    """Threshold and noise follow the total vote weight: the same noise gives the same labels."""
    predictions = house.predictions(300, 20, agreement=0.4)
    aggregator = house.aggregator("confident", 20)
    outcomes = []
    for weight in (1.0, factor):
        electorate = Electorate(
            n_nominal=20,
            weights=np.full(20, weight),
            groups=house.unlimited(20).groups,
            cohort_groups=("everybody",),
            sensitivity=np.full(1, weight),
        )
        job, _ = house.job(predictions, electorate, aggregator)
        outcomes.append(job.run().outcomes)
    assert outcomes[0] == outcomes[1]


def test_check_and_answer_are_independent(house):
    """Correlation of the answer with the check's noise; both come from one seed."""
    aggregator = ConfidentGNMax(threshold=10.0, sigma_threshold=4.0, sigma=4.0)
    noise = SeededNoise(1)
    checks = [noise.gaussian(4.0, 1, query=q, purpose="check")[0] for q in range(N_RUNS)]
    job, _ = house.job(
        repeated((10, 10)), house.unlimited(20), aggregator, n_classes=2, noise=noise
    )
    answered = [outcome for outcome in job.run().outcomes if outcome.verdict == ANSWERED]
    labels = np.array([outcome.label for outcome in answered])
    of_answered = np.array([checks[outcome.query] for outcome in answered])
    assert (of_answered >= 0).all()
    assert stats.pearsonr(of_answered, labels).pvalue > FALSE_ALARM


# ------------------------------------------------------------------------------------- interactive


class Scripted:
    """A student whose beliefs are given, by query; it counts its lessons."""

    def __init__(self, beliefs):
        self.beliefs = beliefs
        self.lessons = []

    def refit(self, queries, labels):
        self.lessons.append((list(queries), list(labels)))

    def probabilities(self, query):
        return self.beliefs[query]


def interactive(house, predictions, beliefs, n_classes=2, **settings):
    """Run without noise: outcomes follow from votes and beliefs alone."""
    student = Scripted(beliefs)
    aggregator = InteractiveGNMax(**{"sigma_threshold": 1.0, "sigma": 1.0, **settings})
    predictions = np.asarray(predictions, dtype=np.int32)
    electorate = house.unlimited(predictions.shape[1])
    job, pricing = house.job(
        predictions,
        electorate,
        aggregator,
        n_classes=n_classes,
        noise=house.NoNoise(),
        student=student,
    )
    return job.run(), student, pricing, electorate, aggregator


def test_the_check_compares_counts_with_what_the_student_expects(house):
    """8 of 10 teachers vote 0: max(n − 10 p) is 8 without beliefs, 8 − 10 p₀ or 2 − 10 p₁ with them."""
    votes = [[0] * 8 + [1] * 2] * 5
    beliefs = [None, *(np.array([p, 1 - p]) for p in (0.25, 0.3125, 0.75, 1.0))]
    labels, *_ = interactive(house, votes, beliefs, threshold=5.0, confidence=0.99)
    verdicts = [outcome.verdict for outcome in labels.outcomes]
    # 8 ≥ 5; 5.5 ≥ 5; 4.875 < 5; 0.5 < 5; max(−2, 2) < 5 and surer than 0.99: reinforced.
    assert verdicts == [ANSWERED, ANSWERED, REJECTED, REJECTED, REINFORCED]


def test_the_teachers_correct_a_student_who_is_sure_and_wrong(house):
    labels, *_ = interactive(
        house, [[0] * 8 + [1] * 2], [np.array([0.0, 1.0])], threshold=5.0, confidence=0.5
    )
    assert [(o.verdict, o.label) for o in labels.outcomes] == [(ANSWERED, 0)]


def test_a_student_is_reinforced_with_its_own_label_only_when_surer_than_the_confidence(house):
    votes = [[1] * 10] * 3
    beliefs = [np.array(p) for p in ([0.25, 0.75], [0.1, 0.9], [1.0, 0.0])]
    labels, *_ = interactive(house, votes, beliefs, threshold=50.0, confidence=0.75)
    assert [(o.verdict, o.label) for o in labels.outcomes] == [
        (REJECTED, NO_LABEL),
        (REINFORCED, 1),
        (REINFORCED, 0),
    ]
    assert labels.n_answered == 0
    assert labels.queries.tolist() == [1, 2]


def test_a_reinforced_label_costs_the_check_and_an_answer_costs_both(house):
    votes = [[0] * 10] * 4
    beliefs = [np.array(p) for p in ([1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.9, 0.1])]
    labels, _, pricing, electorate, aggregator = interactive(
        house, votes, beliefs, threshold=6.0, confidence=0.95
    )
    assert [o.verdict for o in labels.outcomes] == [REINFORCED, REJECTED, ANSWERED, REJECTED]
    paid = house.spent(labels.outcomes, aggregator, electorate)
    assert pricing.accountant.mu_squared == pytest.approx(paid, rel=1e-12)
    assert paid[0] == 4 * 1.0 + 1 * 2.0


def test_the_student_learns_after_every_so_many_labels_from_all_of_them(house):
    """Rejected queries do not count; answered and reinforced ones do."""
    sure, unsure = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    votes = [[0] * 10] * 8
    beliefs = [None, sure, unsure, None, sure, sure, sure, None]
    labels, student, *_ = interactive(
        house, votes, beliefs, threshold=6.0, confidence=0.9, refit_every=3
    )
    assert labels.queries.tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert [queries for queries, _ in student.lessons] == [[0, 1, 3], [0, 1, 3, 4, 5, 6]]
    assert [len(taught) for _, taught in student.lessons] == [3, 6]


def test_before_the_first_fit_the_check_is_that_of_confident_gnmax(house):
    predictions = house.predictions(200, 20, agreement=0.4)
    settings = {"threshold": 10.0, "sigma_threshold": 5.0, "sigma": 3.0}
    electorate = house.unlimited(20)
    interactive_job, _ = house.job(
        predictions, electorate, InteractiveGNMax(**settings), student=Scripted([None] * 200)
    )
    confident_job, _ = house.job(predictions, electorate, ConfidentGNMax(**settings))
    assert interactive_job.run().outcomes == confident_job.run().outcomes


def test_the_interactive_aggregator_needs_a_student(house):
    with pytest.raises(InputError, match="student"):
        house.job(house.predictions(3, 5), house.unlimited(5), InteractiveGNMax(), student=None)
