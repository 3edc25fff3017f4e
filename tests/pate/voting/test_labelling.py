"""The labelling job: when it stops, in which order things happen, and what a crash leaves."""

import numpy as np
import pytest

from collegium import Budget, ConfidentGNMax, GNMax, InteractiveGNMax
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise
from collegium.pate.voting.affordable import answers_affordable, queries_at_once
from collegium.pate.voting.labelling import (
    ANSWERED,
    LOST,
    NO_LABEL,
    REJECTED,
    UNAFFORDABLE,
    LabellingJob,
)
from collegium.pate.voting.pricing import worst_case_pricing
from collegium.personalisation import PERSONALISATIONS
from collegium.study.journal import FileJournal

K = 20
EVERYBODY = {"everybody": Budget(1.0)}
RICH = {"high": Budget(8.0), "average": Budget(16.0), "low": Budget(24.0)}  # 20 teachers are few


def noise_events(events):
    return [event for event in events if event[0] == "noise"]


@pytest.fixture
def confident(house):
    return house.aggregator("confident", K)


@pytest.fixture
def recorded(house):
    return house.RecordingNoise(SeededNoise(1))


# ------------------------------------------------------------------------------- reasons to stop


def test_the_job_ends_with_the_queries(house, confident):
    job, _ = house.job(house.predictions(37, K), house.unlimited(K), confident)
    labels = job.run()
    assert (labels.stop_reason, labels.n_asked) == ("queries", 37)


@pytest.mark.parametrize("wanted", [0, 1, 5, 16, 17])
def test_the_job_ends_with_the_labels(house, wanted):
    job, _ = house.job(house.predictions(40, K), house.unlimited(K), GNMax(5), max_labels=wanted)
    labels = job.run()
    assert labels.stop_reason == "labels"
    assert labels.queries.size == labels.labels.size == labels.n_asked == wanted


def test_the_job_ends_on_request_with_everything_settled(house, confident, recorded):
    journal = house.RecordingJournal(recorded.events)
    calls = iter([False] * 6 + [True])
    job, pricing = house.job(
        house.predictions(40, K),
        house.unlimited(K),
        confident,
        noise=recorded,
        journal=journal,
        should_stop=lambda: next(calls),
    )
    labels = job.run()
    assert (labels.stop_reason, labels.n_asked) == ("interrupted", 6)
    assert journal.settled() == labels.outcomes
    paid = house.spent(labels.outcomes, confident, house.unlimited(K))
    assert pricing.accountant.mu_squared == pytest.approx(paid, rel=1e-12)


@pytest.mark.parametrize("personalisation", ["uniform", "upsampling", "weighting", "vanishing"])
@pytest.mark.parametrize("aggregator", ["lnmax", "gnmax", "confident", "interactive"])
def test_the_job_ends_with_the_budget_and_one_more_query_would_exceed_it(
    house, personalisation, aggregator
):
    electorate = house.plan(personalisation, K, groups=RICH).electorate(seed=3)
    aggregator = house.aggregator(aggregator, K)
    job, pricing = house.job(house.predictions(3000, electorate.n_teachers), electorate, aggregator)
    labels = job.run()
    assert labels.stop_reason == "budget"
    assert 5 < labels.n_asked < 3000
    account = pricing.accountant
    assert (account.epsilon_spent() <= account.epsilon).all()
    assert not account.affords(pricing.price(electorate.ballot(labels.n_asked)).reserve)


def test_a_query_is_refused_before_any_noise_is_drawn(house, confident, recorded):
    poor = house.plan("uniform", K, groups={"everybody": Budget(0.01)}).electorate(0)
    job, pricing = house.job(house.predictions(9, K), poor, confident, noise=recorded)
    labels = job.run()
    assert (labels.stop_reason, labels.n_asked) == ("budget", 0)
    assert recorded.events == []
    assert (pricing.accountant.mu_squared == 0).all()


@pytest.mark.parametrize("name", ["confident", "lnmax"])
def test_everything_drawn_has_been_charged_by_then(house, name):
    """Whoever looks at the account while noise is drawn finds it paid."""
    aggregator, electorate = house.aggregator(name, K), house.unlimited(K)
    noise = house.RecordingNoise(SeededNoise(1))
    job, pricing = house.job(house.predictions(40, K), electorate, aggregator, noise=noise)
    account, paid = pricing.accountant, []
    drawn = noise.source

    class Watched:
        def __getattr__(self, name):
            paid.append(account.mu_squared[0])
            return getattr(drawn, name)

    noise.source = Watched()
    job.run()
    ballot = electorate.ballot(0)
    costs = {"check": pricing.check(ballot), "answer": pricing.answer(ballot)}
    purposes = [event[1] for event in noise_events(noise.events)]
    owed = np.cumsum([costs[purpose].mu_squared[0] for purpose in purposes])
    assert len(paid) == len(owed) >= 40
    np.testing.assert_allclose(paid, owed, rtol=1e-9)


def test_a_check_is_not_made_if_its_answer_could_not_be_paid(house, recorded):
    """The check alone costs next to nothing, and would always be affordable."""
    aggregator = ConfidentGNMax(threshold=-1e9, sigma_threshold=1e6, sigma=10.0)
    electorate = house.plan("uniform", K, groups=EVERYBODY).electorate(0)
    job, _ = house.job(house.predictions(50, K), electorate, aggregator, noise=recorded)
    labels = job.run()
    assert labels.stop_reason == "budget"
    purposes = [event[1] for event in noise_events(recorded.events)]
    assert purposes == ["check", "answer"] * labels.n_answered
    assert labels.n_answered == labels.n_asked == 3  # μ² = 0.0718; 2/10² each


# -------------------------------------------------------------------------- what is asked and drawn


def test_queries_are_asked_in_the_given_order_and_each_once(house, confident, recorded):
    order = np.random.default_rng(5).permutation(60)[:45]
    job, _ = house.job(
        house.predictions(60, K), house.unlimited(K), confident, noise=recorded, order=order
    )
    labels = job.run()
    assert [outcome.query for outcome in labels.outcomes] == order.tolist()
    assert [outcome.position for outcome in labels.outcomes] == list(range(45))
    checks = [event[2] for event in recorded.events if event[1] == "check"]
    answers = [event[2] for event in recorded.events if event[1] == "answer"]
    assert checks == order.tolist()
    answered = [o.query for o in labels.outcomes if o.verdict == ANSWERED]
    assert answers == answered == labels.queries.tolist()


@pytest.mark.parametrize("order", [[0, 1, 0], [0, 9], [-1, 0]])
def test_an_order_must_name_different_rows(house, confident, order):
    with pytest.raises(InputError, match="order"):
        house.job(house.predictions(9, K), house.unlimited(K), confident, order=np.array(order))


def test_votes_of_other_teachers_are_refused(house, confident):
    with pytest.raises(InputError, match="19 teachers"):
        house.job(house.predictions(9, 19), house.unlimited(K), confident)


def test_a_block_has_at_least_one_query(house, confident):
    with pytest.raises(InputError, match="block"):
        house.job(house.predictions(9, K), house.unlimited(K), confident, block=0)


@pytest.mark.parametrize("personalisation", ["upsampling", "weighting", "vanishing"])
def test_noise_is_drawn_at_the_scale_that_was_priced(house, confident, recorded, personalisation):
    electorate = house.plan(personalisation, K, groups=RICH).electorate(seed=3)
    job, _ = house.job(
        house.predictions(8, electorate.n_teachers), electorate, confident, noise=recorded
    )
    job.run()
    assert len(recorded.events) > 8
    for _, purpose, query, sigma, size in recorded.events:
        scale = electorate.ballot(query).scale
        expected = {"check": (confident.sigma_threshold, 1), "answer": (confident.sigma, 4)}[
            purpose
        ]
        assert (sigma, size) == (expected[0] * scale, expected[1])


def test_the_check_is_charged_for_every_query_answered_or_not(house, confident):
    electorate = house.unlimited(K)
    job, pricing = house.job(house.predictions(400, K, agreement=0.5), electorate, confident)
    labels = job.run()
    verdicts = [outcome.verdict for outcome in labels.outcomes]
    assert verdicts.count(REJECTED) > 100
    assert verdicts.count(ANSWERED) > 30
    by_hand = 400 / confident.sigma_threshold**2 + 2 * labels.n_answered / confident.sigma**2
    assert pricing.accountant.mu_squared[0] == pytest.approx(by_hand, rel=1e-12)


def test_owners_of_vanished_teachers_are_not_charged(house, confident):
    electorate = house.plan("vanishing", K, groups=RICH).electorate(seed=3)
    job, pricing = house.job(house.predictions(30, K), electorate, confident)
    labels = job.run()
    assert labels.n_asked > 3
    by_hand = np.zeros(K)
    for outcome in labels.outcomes:
        ballot = electorate.ballot(outcome.position)
        cost = (1 / (confident.sigma_threshold * ballot.scale)) ** 2
        if outcome.verdict == ANSWERED:
            cost += 2 / (confident.sigma * ballot.scale) ** 2
        by_hand[ballot.weights > 0] += cost
    assert pricing.accountant.mu_squared == pytest.approx(by_hand, rel=1e-12)
    assert len(np.unique(pricing.accountant.mu_squared)) > 3


def test_vanished_teachers_do_not_vote(house):
    """Votes of teachers who stay away are replaced: no label changes."""
    electorate = house.plan("vanishing", K, groups=RICH).electorate(seed=3)
    predictions = house.predictions(12, K, agreement=0.3)
    changed = predictions.copy()
    for position in range(12):
        away = electorate.ballot(position).weights == 0
        assert 0 < away.sum() < K
        changed[position, away] = (changed[position, away] + 1) % 4
    results = [
        house.job(votes, electorate, GNMax(2))[0].run().outcomes for votes in (predictions, changed)
    ]
    assert results[0] == results[1]


def test_chunks_do_not_show(house, confident, monkeypatch):
    """Ballots and prices are prepared in chunks; the labels and charges do not depend on them."""
    electorate = house.plan("vanishing", K, groups={"a": Budget(400.0), "b": Budget(800.0)})
    electorate = electorate.electorate(seed=3)
    predictions = house.predictions(40, K)
    results = []
    for chunk in (512, 7, 1):
        monkeypatch.setattr("collegium.pate.voting.labelling._CHUNK", chunk)
        job, pricing = house.job(predictions, electorate, confident)
        results.append((job.run().outcomes, pricing.accountant.mu_squared.tobytes()))
    assert len(results[0][0]) == 40
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("block", [1, 2, 16, 1000])
def test_blocks_do_not_show(house, confident, block):
    electorate = house.plan("weighting", K, groups=RICH).electorate(seed=3)
    predictions = house.predictions(100, K)
    job, _ = house.job(predictions, electorate, confident, block=block)
    reference, _ = house.job(predictions, electorate, confident)
    assert job.run().outcomes == reference.run().outcomes


def test_progress_counts_the_queries_that_are_settled(house, confident):
    seen = []
    job, _ = house.job(
        house.predictions(40, K), house.unlimited(K), confident, progress=seen.append, block=16
    )
    job.run()
    assert seen == [16, 32, 40]


# ------------------------------------------------------------------------------ the journal's protocol


def test_a_reservation_is_durable_before_noise_and_a_settlement_before_anything_leaves(
    house, confident, recorded
):
    left = []
    journal = house.RecordingJournal(recorded.events)
    job, _ = house.job(
        house.predictions(50, K),
        house.unlimited(K),
        confident,
        noise=recorded,
        journal=journal,
        block=8,
        progress=lambda asked: left.append((asked, len(journal.settled()))),
    )
    labels = job.run()
    reserved: set[int] = set()
    drawn: set[int] = set()
    for event in recorded.events:
        if event[0] == "reserve":
            assert not reserved, "a block is settled before the next one is reserved"
            reserved = set(event[2])
            drawn = set()
        elif event[0] == "noise":
            assert event[2] in reserved
            drawn.add(event[2])
        else:
            assert {outcome.query for outcome in event[1]} == drawn
            reserved = set()
    assert not reserved
    assert journal.settled() == labels.outcomes
    assert left == [(n, n) for n in (8, 16, 24, 32, 40, 48, 50)]


class Crash(BaseException):
    """The power fails."""


class Fuse:
    """Fails at the given event; before it happens, or right after."""

    def __init__(self, events_left, after):
        self.events_left, self.after = events_left, after

    def burn(self, action):
        self.events_left -= 1
        if self.events_left == 0 and not self.after:
            raise Crash
        result = action()
        if self.events_left == 0:
            raise Crash
        return result


class FailingNoise:
    is_private = False
    description = "fails"

    def __init__(self, source, fuse):
        self.source, self.fuse = source, fuse

    def noised(self, *args, **labels):
        return self.fuse.burn(lambda: self.source.noised(*args, **labels))


class FailingJournal:
    def __init__(self, journal, fuse):
        self.journal, self.fuse = journal, fuse

    def settled(self):
        return self.journal.settled()

    def reserve(self, first, queries):
        self.fuse.burn(lambda: self.journal.reserve(first, queries))

    def settle(self, outcomes):
        self.fuse.burn(lambda: self.journal.settle(outcomes))


def crash_and_resume(house, path, events, after, electorate, aggregator, predictions, **options):
    """Run until the fuse burns, then resume; return what was durable, the labels and the account."""
    drawn = []
    fuse = Fuse(events, after)
    noise = house.RecordingNoise(SeededNoise(1), drawn)
    job, _ = house.job(
        predictions,
        electorate,
        aggregator,
        noise=FailingNoise(noise, fuse),
        journal=FailingJournal(FileJournal(path), fuse),
        **options,
    )
    try:
        job.run()
    except Crash:
        crashed = True
    else:
        crashed = False
    durable = FileJournal(path).settled()
    job, pricing = house.job(
        predictions, electorate, aggregator, noise=noise, journal=FileJournal(path), **options
    )
    labels = job.run()
    return crashed, durable, labels, pricing.accountant, drawn


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("personalisation", ["weighting", "vanishing"])
def test_a_job_resumes_from_every_possible_point(house, tmp_path, personalisation, after):
    aggregator = ConfidentGNMax(
        threshold=12.0, sigma_threshold=6.0, sigma=3.0 if personalisation == "weighting" else 4.0
    )
    electorate = house.plan(personalisation, K, groups=RICH).electorate(seed=3)
    predictions = house.predictions(120, K, agreement=0.6)
    whole, pricing = house.job(predictions, electorate, aggregator, block=3)
    reference = whole.run()
    verdicts = [outcome.verdict for outcome in reference.outcomes]
    assert reference.stop_reason == "budget"
    assert {ANSWERED, REJECTED} <= set(verdicts)
    crashed, events, interesting = True, 0, 0
    while crashed:
        events += 1
        crashed, durable, labels, account, drawn = crash_and_resume(
            house,
            tmp_path / str(events),
            events,
            after,
            electorate,
            aggregator,
            predictions,
            block=3,
        )
        # Nothing that was durable is changed, and everything else is as without the crash, or lost.
        assert labels.outcomes[: len(durable)] == durable[: len(labels.outcomes)]
        lost = [outcome for outcome in labels.outcomes if outcome.verdict == LOST]
        assert len(lost) <= 3
        for outcome in labels.outcomes:
            if outcome.verdict == LOST:
                assert outcome.label == NO_LABEL
            else:
                assert outcome == reference.outcomes[outcome.position]
        if not lost:
            assert labels.outcomes == reference.outcomes
        interesting += bool(lost)
        # Each query is drawn once, whatever happened.
        requests = [(query, purpose) for _, purpose, query, *_ in drawn]
        assert len(set(requests)) == len(requests)
        # Lost queries are charged in full; nobody pays more than granted.
        paid = house.spent(labels.outcomes, aggregator, electorate)
        assert account.mu_squared == pytest.approx(paid, rel=1e-12)
        released = [outcome for outcome in labels.outcomes if outcome.verdict != LOST]
        assert (account.mu_squared >= house.spent(released, aggregator, electorate)).all()
        assert (account.epsilon_spent() <= account.epsilon).all()
    assert events > 3 * reference.n_asked / 2
    assert interesting > 10
    assert labels.outcomes == reference.outcomes
    assert account.mu_squared.tobytes() == pricing.accountant.mu_squared.tobytes()


def test_an_interactive_student_knows_after_a_crash_what_it_knew_before(house, tmp_path):
    """A crash between two blocks loses nothing: the refits are repeated at the same labels."""
    aggregator = house.aggregator("interactive", K)
    electorate = house.unlimited(K)
    predictions = house.predictions(30, K, agreement=0.6)
    reference = house.job(predictions, electorate, aggregator, block=1)[0].run()
    assert {outcome.verdict for outcome in reference.outcomes} >= {"answered", "reinforced"}
    for settled in range(1, 30):
        path = tmp_path / str(settled)
        stop = iter([False] * settled + [True] * 99)
        first, _ = house.job(
            predictions,
            electorate,
            aggregator,
            block=1,
            journal=FileJournal(path),
            should_stop=lambda stop=stop: next(stop),
        )
        assert first.run().n_asked == settled
        second, _ = house.job(
            predictions, electorate, aggregator, block=1, journal=FileJournal(path)
        )
        assert second.run().outcomes == reference.outcomes


def test_a_crash_in_every_block_never_overspends_and_never_asks_twice(house, tmp_path, confident):
    """Resume again and again, each time losing a block: the account still counts everything."""
    electorate = house.plan("weighting", K, groups=RICH).electorate(seed=3)
    predictions = house.predictions(200, K)
    drawn = []
    noise = house.RecordingNoise(SeededNoise(1), drawn)
    crashes = 0
    while True:
        fuse = Fuse(6, after=True)
        job, pricing = house.job(
            predictions,
            electorate,
            confident,
            noise=FailingNoise(noise, fuse),
            journal=FailingJournal(FileJournal(tmp_path / "journal"), fuse),
            block=4,
        )
        try:
            labels = job.run()
        except Crash:
            crashes += 1
            assert crashes < 200
            continue
        break
    assert crashes > 3
    assert labels.stop_reason == "budget"
    requests = [(query, purpose) for _, purpose, query, *_ in drawn]
    assert len(set(requests)) == len(requests)
    account = pricing.accountant
    assert account.mu_squared == pytest.approx(
        house.spent(labels.outcomes, confident, electorate), rel=1e-12
    )
    assert (account.epsilon_spent() <= account.epsilon).all()


def test_a_finished_job_asks_nothing_more_when_run_again(house, tmp_path, confident):
    electorate = house.plan("weighting", K, groups=RICH).electorate(seed=3)
    predictions = house.predictions(100, K)
    results = []
    for _ in range(3):
        noise = house.RecordingNoise(SeededNoise(1))
        job, pricing = house.job(
            predictions, electorate, confident, noise=noise, journal=FileJournal(tmp_path / "j")
        )
        results.append((job.run().outcomes, pricing.accountant.mu_squared.tobytes()))
    assert noise.events == []
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("order", [np.arange(40)[::-1], np.arange(5), np.arange(1, 40)])
def test_a_journal_of_another_order_is_refused(house, tmp_path, confident, order):
    path = tmp_path / "journal"
    predictions, electorate = house.predictions(40, K), house.unlimited(K)
    house.job(predictions, electorate, confident, journal=FileJournal(path), order=np.arange(20))[
        0
    ].run()
    before = path.read_bytes()
    noise = house.RecordingNoise(SeededNoise(1))
    job, _ = house.job(
        predictions, electorate, confident, noise=noise, journal=FileJournal(path), order=order
    )
    with pytest.raises(InputError, match="another order"):
        job.run()
    assert noise.events == []
    assert path.read_bytes() == before


# -------------------------------------------------------------------------------- data-dependent


def nearly_broke(house, predictions, aggregator, noise, **options):
    """A data-dependent job whose budget ends between a check and its answer."""
    electorate = house.plan("uniform", K, groups={"everybody": Budget(3.0)}).electorate(0)
    return house.job(
        predictions, electorate, aggregator, guarantee="data-dependent", noise=noise, **options
    )


def test_an_answer_that_cannot_be_paid_is_not_drawn_and_ends_a_data_dependent_job(
    house, recorded, tmp_path
):
    aggregator = ConfidentGNMax(threshold=-100.0, sigma_threshold=20.0, sigma=4.0)
    predictions = house.predictions(300, K, agreement=0.2)
    path = tmp_path / "journal"
    job, pricing = nearly_broke(house, predictions, aggregator, recorded, journal=FileJournal(path))
    labels = job.run()
    assert labels.stop_reason == "budget"
    assert labels.outcomes[-1].verdict == UNAFFORDABLE
    assert labels.outcomes[-1].label == NO_LABEL
    assert labels.n_answered == labels.n_asked - 1 > 0
    last = labels.outcomes[-1].query
    assert [event[1] for event in recorded.events if event[2] == last] == ["check"]
    assert pricing.accountant.epsilon_spent()[0] <= 3.0
    spent = pricing.accountant.sensitive_rdp.tobytes()
    # The same after a restart, without a single draw.
    recorded.events.clear()
    job, pricing = nearly_broke(house, predictions, aggregator, recorded, journal=FileJournal(path))
    again = job.run()
    assert (again.outcomes, again.stop_reason) == (labels.outcomes, "budget")
    assert recorded.events == []
    assert pricing.accountant.sensitive_rdp.tobytes() == spent


def test_a_data_dependent_job_answers_more_where_teachers_agree(house):
    electorate = house.plan("uniform", K, groups={"everybody": Budget(4.0)}).electorate(0)
    asked = []
    for agreement in (0.1, 1.0):
        job, pricing = house.job(
            house.predictions(400, K, agreement=agreement),
            electorate,
            GNMax(sigma=4.0),
            guarantee="data-dependent",
        )
        asked.append(job.run().n_asked)
        assert pricing.accountant.epsilon_spent()[0] <= 4.0
    assert asked[1] > 3 * asked[0] > 0


def test_a_student_is_only_asked_by_the_interactive_aggregator(house, confident):
    class Nosy:
        def refit(self, queries, labels):
            raise AssertionError

        def probabilities(self, query):
            raise AssertionError

    job, _ = house.job(house.predictions(20, K), house.unlimited(K), confident, student=Nosy())
    assert isinstance(job, LabellingJob)
    assert job.run().n_asked == 20
    assert not issubclass(ConfidentGNMax, InteractiveGNMax)


@pytest.mark.parametrize(
    ("epsilon", "most", "at_once"),
    [(1e3, 10_000, 16), (1e3, 100, 10), (1e3, 5, 1), (1.0, 10_000, 5), (0.2, 10_000, 1)],
)
def test_a_crash_takes_a_tenth_of_what_budgets_buy_at_most(epsilon, most, at_once):
    """A block of 16 was all that a small budget bought, and one kill lost it."""
    groups, sizes = {"all": Budget(epsilon)}, {"all": 100}
    electorate = PERSONALISATIONS["weighting"]().plan(groups, sizes, 100).electorate(0)
    aggregator = GNMax(sigma=40)
    pricing = worst_case_pricing("histogram", aggregator, electorate)
    bought = answers_affordable(pricing, electorate, most)
    assert queries_at_once("histogram", aggregator, electorate, most) == at_once
    assert at_once == max(1, min(16, bought // 10))
