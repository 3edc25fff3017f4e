"""Queries chosen as outcomes come in: at the same price, never twice, from what was released only."""

import os
import signal
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Budget, ConfidentGNMax, GNMax
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise
from collegium.pate.voting.choosing import Agenda, QueryChooser, check_choosing
from collegium.pate.voting.labelling import LOST, LabellingJob
from collegium.study.journal import FileJournal

K = 20
RICH = {"high": Budget(8.0), "average": Budget(16.0), "low": Budget(24.0)}


class Whim:
    """Chooses rows that were not asked about, by a hash of everything released so far."""

    def __init__(self, n_rows):
        self.n_rows = n_rows
        self.seen = []

    def next(self, n, outcomes):
        self.seen.append(outcomes)
        asked = {outcome.query for outcome in outcomes}
        story = repr([(o.query, o.verdict, o.label, o.noisy_counts) for o in outcomes])
        generator = np.random.default_rng(zlib.crc32(story.encode()))
        left = [row for row in generator.permutation(self.n_rows).tolist() if row not in asked]
        return left[:n]


class Fixed:
    """Returns what it was told to return."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def next(self, n, outcomes):
        return self.answers.pop(0)


@pytest.fixture
def recorded(house):
    return house.RecordingNoise(SeededNoise(1))


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0, 1, 1], []),
        ([-1], []),
        ([9], []),
        ([0, 1, 2, 3], [3]),
        ([0, 1, 2, 3], [4, 0]),
        ([0, 1, 2, 3, 4], []),
    ],
)
def test_rows_asked_twice_not_there_or_too_many_are_refused_before_they_are_reserved(
    house, recorded, first, second
):
    journal = house.RecordingJournal(recorded.events)
    job, _ = house.job(
        house.predictions(9, K),
        house.unlimited(K),
        GNMax(5),
        noise=recorded,
        journal=journal,
        block=4,
        order=Fixed(first, second),
    )
    with pytest.raises(InputError, match=r"Fixed chose rows .* nothing was asked"):
        job.run()
    reserved = [row for event in recorded.events if event[0] == "reserve" for row in event[2]]
    assert reserved == (first if second else [])
    assert len(journal.settled()) == len(reserved)


def test_choosing_is_refused_where_its_price_depends_on_votes_and_for_interactive(house):
    confident = house.aggregator("confident", K)
    with pytest.raises(
        InputError, match="data-dependent guarantee: its price depends on the votes"
    ):
        house.job(
            house.predictions(9, K),
            house.unlimited(K),
            confident,
            guarantee="data-dependent",
            order=Whim(9),
        )
    with pytest.raises(InputError, match="'interactive'"):
        house.job(
            house.predictions(9, K),
            house.unlimited(K),
            house.aggregator("interactive", K),
            order=Whim(9),
        )
    check_choosing(confident, "worst-case")


def test_a_chooser_is_told_from_an_order():
    assert isinstance(Whim(3), QueryChooser)
    assert not isinstance(np.arange(3), QueryChooser)


@given(st.permutations(range(7)), st.integers(0, 9), st.integers(1, 4))
@settings(max_examples=30)
def test_a_fixed_agenda_deals_out_the_order(order, limit, block):
    agenda = Agenda(order, 7, limit)
    dealt = []
    while rows := agenda.block(len(dealt), block, []):
        assert len(rows) <= block
        dealt += rows
    assert dealt == list(order[:limit]) and agenda.limit == min(limit, 7)


# ----------------------------------------------------------------------------- order of events


@pytest.mark.parametrize("personalisation", ["uniform", "upsampling", "weighting", "vanishing"])
@pytest.mark.parametrize("aggregator", ["lnmax", "gnmax", "confident", "pfmax", "expmax"])
def test_a_chosen_query_costs_what_any_query_at_its_position_costs(
    house, personalisation, aggregator
):
    electorate = house.plan(personalisation, K, groups=RICH).electorate(seed=3)
    aggregator = house.aggregator(aggregator, K)
    predictions = house.predictions(400, electorate.n_teachers)
    chosen, pricing = house.job(predictions, electorate, aggregator, order=Whim(400))
    labels = chosen.run()
    rows = [outcome.query for outcome in labels.outcomes]
    assert len(set(rows)) == len(rows) > 5
    # The same rows in the same order, fixed beforehand: same outcomes, same account, to the last bit.
    fixed, repriced = house.job(predictions, electorate, aggregator, order=np.array(rows))
    assert fixed.run().outcomes == labels.outcomes
    mine, other = pricing.accountant, repriced.accountant
    assert mine.mu_squared.tobytes() == other.mu_squared.tobytes()
    # Any other rows cost the same, as long as the verdicts are the same.
    if "confident" not in aggregator.name:
        wrong, unlike = house.job(predictions[::-1], electorate, aggregator)
        wrong.run()
        assert unlike.accountant.mu_squared.tobytes() == mine.mu_squared.tobytes()


def test_rows_are_durable_before_noise_is_drawn_and_limits_hold(house, recorded):
    journal = house.RecordingJournal(recorded.events)
    job, _ = house.job(
        house.predictions(50, K),
        house.unlimited(K),
        GNMax(5),
        noise=recorded,
        journal=journal,
        order=Whim(50),
        max_queries=21,
        block=8,
    )
    labels = job.run()
    assert (labels.stop_reason, labels.n_asked) == ("queries", 21)
    reserved = set()
    for event in recorded.events:
        if event[0] == "reserve":
            reserved |= set(event[2])
        if event[0] == "noise":
            assert event[2] in reserved
    job, _ = house.job(
        house.predictions(50, K), house.unlimited(K), GNMax(5), order=Whim(50), max_labels=7
    )
    labels = job.run()
    assert (labels.stop_reason, labels.n_asked) == ("labels", 7)


def test_a_chooser_that_has_nothing_more_to_ask_ends_the_job(house):
    job, _ = house.job(
        house.predictions(9, K), house.unlimited(K), GNMax(5), order=Fixed([3, 1], [])
    )
    labels = job.run()
    assert labels.stop_reason == "queries" and labels.queries.tolist() == [3, 1]


def test_fixed_orders_can_be_limited_too(house):
    job, _ = house.job(house.predictions(9, K), house.unlimited(K), GNMax(5), max_queries=4)
    assert job.run().n_asked == 4


# ------------------------------------------------------------------------------- neighbouring data


class Forced(LabellingJob):
    """Noise that makes noisy values what they were on a tape, whatever the votes are."""

    tape = None

    def run(self):
        self.after = []
        return super().run()

    def _noised(self, sensitive_values, scale, query, purpose):
        drawn = super()._noised(sensitive_values, scale, query, purpose)
        self.after.append(drawn if self.tape is None else self.tape[len(self.after)])
        return self.after[-1]


@pytest.mark.parametrize("release", ["labels", "histogram"])
@pytest.mark.parametrize("aggregator", ["gnmax", "confident", "lnmax"])
def test_other_votes_with_the_same_noisy_outcomes_lead_to_the_same_questions(
    house, aggregator, release
):
    electorate = house.plan("weighting", K, groups=RICH).electorate(seed=3)
    mechanism = house.aggregator(aggregator, K)
    jobs = []
    for seed in (0, 1):  # not even neighbours: all votes differ
        predictions = house.predictions(200, electorate.n_teachers, agreement=0.6, seed=seed)
        chooser = Whim(200)
        job, pricing = house.job(
            predictions, electorate, mechanism, kind=Forced, order=chooser, release=release
        )
        if jobs:
            job.tape = jobs[0][0].after
        jobs.append((job, job.run(), pricing.accountant, chooser))
    (_, one, account, chooser), (_, other, account_too, chooser_too) = jobs
    assert other.outcomes == one.outcomes and one.n_asked > 20
    assert account_too.mu_squared.tobytes() == account.mu_squared.tobytes()
    assert chooser_too.seen == chooser.seen
    if release == "labels":
        shown = [outcome for seen in chooser.seen for outcome in seen]
        assert all(o.noisy_counts is None and o.noisy_check is None for o in shown)


def test_what_was_released_changes_what_is_asked_next(house):
    """So that the test above cannot pass because nothing steers."""
    rows = []
    for seed in (1, 2):
        job, _ = house.job(
            house.predictions(200, K, agreement=0.5),
            house.unlimited(K),
            GNMax(5),
            noise=SeededNoise(seed),
            order=Whim(200),
        )
        rows.append([outcome.query for outcome in job.run().outcomes])
    assert rows[0][:16] == rows[1][:16] and rows[0] != rows[1]


# -------------------------------------------------------------------------------------- crashes


class PowerFailsError(BaseException):
    """Nothing is done after it, as after a power failure."""


@pytest.mark.parametrize("crash_after", [1, 2, 5, 9, 14, 20])
@pytest.mark.parametrize("limit", [None, "poor"])
def test_killed_between_reservation_and_settlement_nothing_is_asked_twice_or_for_less(
    house, tmp_path, crash_after, limit
):
    path, events = tmp_path / "journal", []
    votes = house.predictions(30, K)
    electorate = house.unlimited(K)
    if limit:
        electorate = house.plan("uniform", K, groups={"all": Budget(4.0)}).electorate(0)
    aggregator = ConfidentGNMax(threshold=12, sigma_threshold=8, sigma=8)

    class Mortal(house.RecordingNoise):
        def noised(self, total, noise, *, query, purpose):
            waiting = [o.query for o in FileJournal(path).settled() if o.verdict == LOST]
            assert query in waiting, "what is drawn now is durable as perhaps drawn"
            if len(self.events) == crash_after:
                raise PowerFailsError
            return super().noised(total, noise, query=query, purpose=purpose)

    def job(noise):
        return house.job(
            votes,
            electorate,
            aggregator,
            noise=noise,
            journal=FileJournal(path),
            block=4,
            order=Whim(30),
        )

    mortal, _ = job(Mortal(SeededNoise(1), events))
    with pytest.raises(PowerFailsError):
        mortal.run()
    durable = FileJournal(path).settled()
    lost = [outcome for outcome in durable if outcome.verdict == LOST]
    assert 1 <= len(lost) <= 4
    survivor, pricing = job(house.RecordingNoise(SeededNoise(2), events))
    labels = survivor.run()
    known = min(len(durable), labels.n_asked)
    assert labels.outcomes[:known] == durable[:known]
    rows = [outcome.query for outcome in labels.outcomes]
    assert len(set(rows)) == len(rows)
    assert labels.stop_reason == ("budget" if limit else "queries")
    requests = [(query, purpose) for _, purpose, query, *_ in events]
    assert len(set(requests)) == len(requests)
    if not limit:
        assert {query for query, _ in requests} <= set(rows)
    paid = house.spent(labels.outcomes, aggregator, electorate)
    assert pricing.accountant.mu_squared == pytest.approx(paid, rel=1e-12)
    assert (pricing.accountant.epsilon_spent() <= pricing.accountant.epsilon).all()
    again, repriced = job(house.RecordingNoise(SeededNoise(3), events))
    assert again.run().outcomes == labels.outcomes
    assert repriced.accountant.mu_squared.tobytes() == pricing.accountant.mu_squared.tobytes()


def test_a_chooser_that_fails_loses_and_spends_nothing(house, tmp_path):
    path = tmp_path / "journal"

    class Tired(Whim):
        def next(self, n, outcomes):
            if len(outcomes) >= 8:
                raise RuntimeError("tired")
            return super().next(n, outcomes)

    def job(chooser):
        return house.job(
            house.predictions(20, K),
            house.unlimited(K),
            GNMax(5),
            journal=FileJournal(path),
            block=4,
            order=chooser,
        )[0]

    with pytest.raises(RuntimeError, match="tired"):
        job(Tired(20)).run()
    settled = FileJournal(path).settled()
    assert len(settled) == 8 and all(outcome.verdict != LOST for outcome in settled)
    labels = job(Whim(20)).run()
    assert labels.outcomes[:8] == settled and labels.n_asked == 20


def test_the_past_is_read_from_the_journal_and_not_chosen_again(house, tmp_path):
    path = tmp_path / "journal"
    journal = FileJournal(path)
    journal.reserve(0, [7, 3])  # a crash: both are lost, and stay where they are
    chooser = Whim(9)
    job, _ = house.job(
        house.predictions(9, K), house.unlimited(K), GNMax(5), journal=journal, order=chooser
    )
    labels = job.run()
    assert [(o.query, o.verdict) for o in labels.outcomes[:2]] == [(7, LOST), (3, LOST)]
    assert [len(seen) for seen in chooser.seen] == [2]
    assert sorted(o.query for o in labels.outcomes) == list(range(9))


@pytest.mark.parametrize("rows", [[7, 7], [9], [-1]])
def test_a_journal_with_impossible_rows_is_refused(house, tmp_path, rows):
    path = tmp_path / "journal"
    FileJournal(path).reserve(0, rows)
    before = path.read_bytes()
    job, pricing = house.job(
        house.predictions(9, K),
        house.unlimited(K),
        GNMax(5),
        journal=FileJournal(path),
        order=Whim(9),
    )
    with pytest.raises(InputError, match="another order"):
        job.run()
    assert path.read_bytes() == before and not pricing.accountant.mu_squared.any()


LABOURER = """
import os, signal, sys, time, zlib
import numpy as np
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_choosing import K, Whim
from conftest import House
from collegium.study.journal import FileJournal
from collegium.pate.voting.aggregators import GNMax
from collegium.noise.sources import SecureNoise

folder = Path(sys.argv[1])

def note(name, line):
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (line + "\\n").encode())
    os.close(descriptor)

class PermittedNoise(SecureNoise):
    def noised(self, total, noise, *, query, purpose):
        os.read(permits, 1)  # nothing, at once, when the parent has closed its end
        note("drawn", str(query))
        return super().noised(total, noise, query=query, purpose=purpose)

def work():
    job, pricing = House.job(
        House.predictions(120, K), House.unlimited(K), GNMax(5), noise=PermittedNoise(),
        journal=FileJournal(folder / "journal"), block=7, order=Whim(120),
    )
    outcomes = job.run().outcomes
    (folder / "final").write_text("\\n".join(f"{o.query} {o.verdict}" for o in outcomes))
    (folder / "charged").write_text(repr(float(pricing.accountant.mu_squared[0])))

def drawn():
    return len((folder / "drawn").read_bytes().split()) if (folder / "drawn").exists() else 0

generator = np.random.default_rng(1)
for death in range(7):
    permits, permit = os.pipe()
    draws, before = int(generator.integers(1, 12)), drawn()
    child = os.fork()
    if child == 0:
        os.close(permit)
        work()
        os._exit(0)
    if death < 6:
        os.write(permit, bytes(draws))
        while drawn() < before + draws and not os.waitpid(child, os.WNOHANG)[0]:
            time.sleep(0.0005)
        time.sleep(0.002 * generator.random())
        os.kill(child, signal.SIGKILL)
    os.close(permit)
    _, status = os.waitpid(child, 0)
    os.close(permits)
    note("deaths", str(os.waitstatus_to_exitcode(status)))
"""


def test_processes_that_are_killed_choose_on_and_ask_about_nothing_twice(house, tmp_path, request):
    """Real processes, real files, SIGKILL after a random number of draws and a random moment."""
    script = tmp_path / "labourer.py"
    script.write_text(LABOURER)
    here = request.path.parent
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(request.config.rootpath), *sys.path]),
    }
    subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(here)],
        check=True,
        timeout=600,
        env=environment,
    )
    deaths = [int(code) for code in (tmp_path / "deaths").read_text().split()]
    assert deaths == 6 * [-signal.SIGKILL] + [0]
    final = [line.split() for line in (tmp_path / "final").read_text().splitlines()]
    assert sorted(int(row) for row, _ in final) == list(range(120))
    drawn = (tmp_path / "drawn").read_text().split()
    assert len(set(drawn)) == len(drawn)
    charged = float((tmp_path / "charged").read_text())
    assert charged == pytest.approx(120 * 2 / 25, rel=1e-12)
    assert len(drawn) <= 120
