"""Histograms: the very values that labels follow from, at the price of labels, or not at all."""

import numpy as np
import pytest
from scipy import stats

from collegium import Budget, ConfidentGNMax, ExponentialMax, GNMax, PermuteAndFlip, VoteTable
from collegium.errors import InputError
from collegium.mechanisms import SecureNoise, SeededNoise
from collegium.noise.grid import GRID, to_grid
from collegium.pate.voting.aggregators import AGGREGATORS, Aggregator
from collegium.pate.voting.histograms import released_histograms
from collegium.pate.voting.labelling import ANSWERED, LOST, NO_LABEL, REJECTED, Outcome
from collegium.pate.voting.release import HISTOGRAM, LABELS, check_release
from collegium.personalisation import Electorate
from collegium.study.journal import FileJournal

K = 20
RICH = {"high": Budget(8.0), "average": Budget(16.0), "low": Budget(24.0)}
RELEASING = ("lnmax", "gnmax", "confident", "interactive")
each = pytest.mark.parametrize("aggregator", RELEASING)


def played(house, aggregator, personalisation="weighting", release=HISTOGRAM, **options):
    electorate = house.plan(personalisation, K, groups=RICH).electorate(seed=3)
    mechanism = house.aggregator(aggregator, K)
    votes = house.predictions(400, electorate.n_teachers, agreement=0.6)
    job, pricing = house.job(votes, electorate, mechanism, release=release, **options)
    return job.run(), pricing, electorate, mechanism, votes


@each
@pytest.mark.parametrize("personalisation", ["uniform", "upsampling", "weighting", "vanishing"])
def test_nothing_is_drawn_charged_or_decided_otherwise_for_a_histogram(
    house, aggregator, personalisation
):
    """The same seeded noise gives the same labels, requests and account as when labels are released."""
    seen = []
    for release in (LABELS, HISTOGRAM):
        noise = house.RecordingNoise(SeededNoise(1))
        labels, pricing, *_ = played(house, aggregator, personalisation, release, noise=noise)
        seen.append((labels, noise.events, pricing.accountant))
    (plain, asked, paid), (shown, asked_too, paid_too) = seen
    assert asked == asked_too
    assert len(asked) == len({event[1:3] for event in asked}), "each noise is drawn once"
    assert paid.mu_squared.tobytes() == paid_too.mu_squared.tobytes()
    assert paid.pure_epsilon.tobytes() == paid_too.pure_epsilon.tobytes()
    assert [(o.query, o.verdict, o.label) for o in plain.outcomes] == [
        (o.query, o.verdict, o.label) for o in shown.outcomes
    ]
    assert all(o.noisy_counts is None and o.noisy_check is None for o in plain.outcomes)


@each
@pytest.mark.parametrize("personalisation", ["uniform", "upsampling", "weighting", "vanishing"])
def test_a_histogram_is_counts_plus_noise_to_the_last_bit(house, aggregator, personalisation):
    labels, _, electorate, mechanism, votes = played(house, aggregator, personalisation)
    table = VoteTable.from_predictions(votes, 4)
    answered = [outcome for outcome in labels.outcomes if outcome.verdict == ANSWERED]
    assert len(answered) > 5
    for outcome in answered:
        ballot = electorate.ballot(outcome.position)
        counts = table.counts(np.array([outcome.query]), ballot.weights)[0]
        draw = getattr(SeededNoise(1), mechanism.noise)
        scale = mechanism.noise_scale * ballot.scale
        noisy = counts + draw(scale, 4, query=outcome.query, purpose="answer")
        assert outcome.noisy_counts == tuple(noisy.tolist())
        assert outcome.label == int(np.argmax(noisy))
        assert (to_grid(noisy) == noisy).all()


def test_every_check_shows_its_value_also_where_it_failed(house):
    labels, _, electorate, mechanism, votes = played(house, "confident")
    table = VoteTable.from_predictions(votes, 4)
    verdicts = {outcome.verdict for outcome in labels.outcomes}
    assert verdicts == {ANSWERED, REJECTED}
    for outcome in labels.outcomes:
        ballot = electorate.ballot(outcome.position)
        most = table.counts(np.array([outcome.query]), ballot.weights).max()
        sigma = mechanism.sigma_threshold * ballot.scale
        noise = SeededNoise(1).gaussian(sigma, 1, query=outcome.query, purpose="check")
        assert outcome.noisy_check == most + noise[0]
        passed = outcome.noisy_check >= mechanism.threshold * ballot.scale
        assert passed == (outcome.verdict == ANSWERED) == (outcome.noisy_counts is not None)


@pytest.mark.parametrize("aggregator", ["lnmax", "gnmax"])
def test_without_a_check_there_is_no_value_of_one(house, aggregator):
    labels, *_ = played(house, aggregator)
    assert all(outcome.noisy_check is None for outcome in labels.outcomes)


def test_the_noise_on_released_counts_is_what_was_paid_for(house):
    """Kolmogorov-Smirnov, 4,000 values of cryptographic noise: false alarms below 1e-8."""
    electorate = house.unlimited(K)
    votes = house.predictions(1000, K)
    job, _ = house.job(votes, electorate, GNMax(3.0), noise=SecureNoise(), release=HISTOGRAM)
    shown = released_histograms(job.run(), electorate, GNMax(3.0), 4)
    counts = VoteTable.from_predictions(votes, 4).counts(shown.queries, np.ones(K))
    test = stats.kstest(((shown.counts - counts) / 3.0).ravel(), "norm")
    assert test.pvalue > 1e-8


# ----------------------------------------------------------------------------------- refusals


def test_only_what_is_paid_for_is_released():
    paid = {name for name, cls in AGGREGATORS.items() if cls.pays_for_histogram}
    assert paid == set(RELEASING)
    assert not Aggregator.pays_for_histogram, "unless it is proved"


@pytest.mark.parametrize("mechanism", [PermuteAndFlip(), ExponentialMax()], ids=lambda m: m.name)
def test_a_winner_that_was_paid_for_alone_shows_no_histogram(house, mechanism):
    with pytest.raises(InputError, match="pays for the winner only") as error:
        house.job(house.predictions(3, K), house.unlimited(K), mechanism, release=HISTOGRAM)
    assert "\n" not in str(error.value)


@each
def test_a_data_dependent_account_pays_for_the_arg_max_only(house, aggregator):
    mechanism = house.aggregator(aggregator, K)
    with pytest.raises(InputError, match="holds for the arg max only") as error:
        house.job(
            house.predictions(3, K),
            house.unlimited(K),
            mechanism,
            guarantee="data-dependent",
            release=HISTOGRAM,
        )
    assert "\n" not in str(error.value)


def test_an_unknown_release_is_refused():
    with pytest.raises(InputError, match="labels, histogram, got 'votes'"):
        check_release("votes", GNMax(), "worst-case")


@pytest.mark.parametrize("release", [LABELS, HISTOGRAM])
@pytest.mark.parametrize(("weight", "said"), [(1 + GRID / 2, "multiples of"), (2.0**33, "2.*33")])
def test_weights_that_would_show_in_the_last_bits_are_refused(house, release, weight, said):
    electorate = Electorate(
        n_nominal=3,
        weights=np.array([1.0, 1.0, weight]),
        groups={"everybody": Budget(np.inf)},
        cohort_groups=("everybody",),
        sensitivity=np.ones(1),
    )
    with pytest.raises(InputError, match=said):
        house.job(house.predictions(3, 3), electorate, GNMax(1e-3), release=release)


def test_noise_off_the_grid_is_never_shown_and_its_query_is_lost(house, tmp_path):
    class Crude:
        is_private, description = False, "floating point"

        def noised(self, total, noise, *, query, purpose):
            return total + noise.scale / 3

    path = tmp_path / "journal"
    job, _ = house.job(
        house.predictions(9, K),
        house.unlimited(K),
        GNMax(1.0),
        noise=Crude(),
        journal=FileJournal(path),
        release=HISTOGRAM,
    )
    with pytest.raises(InputError, match="off the grid"):
        job.run()
    assert FileJournal(path).settled() == [Outcome(0, 0, LOST, NO_LABEL)]


# ------------------------------------------------------------------------------------- replay


@each
@pytest.mark.parametrize("pause", [1, 7, 16])
def test_a_job_goes_on_with_the_histograms_that_are_durable(house, tmp_path, aggregator, pause):
    whole, paid, *_ = played(house, aggregator, max_labels=20)
    path = tmp_path / "journal"
    calls = iter([False] * pause + [True])
    first, *_ = played(
        house, aggregator, max_labels=20, journal=FileJournal(path), should_stop=lambda: next(calls)
    )
    assert first.stop_reason == "interrupted" and first.n_asked == pause
    noise = house.RecordingNoise(SeededNoise(1))
    again, paid_again, *_ = played(
        house, aggregator, max_labels=20, journal=FileJournal(path), noise=noise
    )
    assert again.outcomes == whole.outcomes
    assert {event[2] for event in noise.events}.isdisjoint(o.query for o in first.outcomes)
    assert paid_again.accountant.mu_squared.tobytes() == paid.accountant.mu_squared.tobytes()


@pytest.mark.parametrize("first", [LABELS, HISTOGRAM])
@pytest.mark.parametrize("aggregator", ["gnmax", "confident"])
def test_a_job_cannot_be_switched(house, tmp_path, first, aggregator):
    path = tmp_path / "journal"
    played(house, aggregator, release=first, journal=FileJournal(path), max_labels=3)
    before = path.read_bytes()
    other = HISTOGRAM if first == LABELS else LABELS
    with pytest.raises(InputError, match="cannot be changed once it has begun") as error:
        played(house, aggregator, release=other, journal=FileJournal(path), max_labels=5)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "wrong",
    [
        Outcome(0, 0, ANSWERED, 1, (3.0, 1.0, 0.0, 0.0)),
        Outcome(0, 0, ANSWERED, 0, (3.0, 1.0)),
        Outcome(0, 0, REJECTED, NO_LABEL, (3.0, 1.0, 0.0, 0.0)),
    ],
    ids=["label is not the arg max", "other classes", "rejected"],
)
def test_a_histogram_that_contradicts_its_outcome_is_refused(house, wrong):
    journal = house.RecordingJournal([], [wrong])
    job, _ = house.job(
        house.predictions(9, K), house.unlimited(K), GNMax(1.0), journal=journal, release=HISTOGRAM
    )
    with pytest.raises(InputError, match="left untouched"):
        job.run()


# -------------------------------------------------------------------------------- as a table


@pytest.mark.parametrize("personalisation", ["weighting", "vanishing"])
def test_the_table_holds_all_that_is_needed_to_read_a_histogram(house, personalisation):
    labels, _, electorate, mechanism, _ = played(house, "confident", personalisation)
    shown = released_histograms(labels, electorate, mechanism, 4)
    assert len(shown) == labels.n_asked and shown.noise == "gaussian"
    assert shown.queries[shown.labelled].tolist() == labels.queries.tolist()
    assert shown.counts[shown.answered].argmax(axis=1).tolist() == labels.labels.tolist()
    for row, outcome in enumerate(labels.outcomes):
        ballot = electorate.ballot(outcome.position)
        assert shown.totals[row] == ballot.total
        assert shown.noise_scales[row] == mechanism.sigma * ballot.scale
        assert shown.check_scales[row] == mechanism.sigma_threshold * ballot.scale
        assert (shown.checks[row] >= shown.thresholds[row]) == bool(shown.answered[row])
    frame = shown.to_frame(["a", "b", "c", "d"], 100 + np.arange(400))
    assert frame["row"].tolist() == (100 + shown.queries).tolist()
    assert frame["label"].notna().tolist() == shown.labelled.tolist()
    np.testing.assert_array_equal(frame.filter(like="count: "), shown.counts)
    few = shown.rows(shown.answered)
    assert len(few) == labels.n_answered and few.verdicts == (ANSWERED,) * len(few)


def test_a_histogram_under_laplace_noise_says_so(house):
    labels, _, electorate, mechanism, _ = played(house, "lnmax")
    shown = released_histograms(labels, electorate, mechanism, 4)
    assert shown.noise == "laplace"
    assert shown.noise_scales == pytest.approx(1 / mechanism.gamma * shown.totals / K)
    assert np.isnan(shown.checks).all() and np.isnan(shown.thresholds).all()


def test_lost_queries_show_nothing(house):
    journal = house.RecordingJournal([], [Outcome(0, 0, LOST, NO_LABEL)])
    mechanism = ConfidentGNMax(5.0, 1.0, 1.0)
    job, _ = house.job(
        house.predictions(3, K), house.unlimited(K), mechanism, journal=journal, release=HISTOGRAM
    )
    shown = released_histograms(job.run(), house.unlimited(K), mechanism, 4)
    assert shown.verdicts[0] == LOST
    assert np.isnan(shown.counts[0]).all() and np.isnan(shown.checks[0])
