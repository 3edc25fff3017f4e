"""The journal: whatever is torn, flipped, refused or killed, nothing is counted less than released."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from collegium import ConfidentGNMax
from collegium.errors import StudyMismatchError
from collegium.noise.grid import GRID
from collegium.pate.voting.labelling import ANSWERED, LOST, NO_LABEL, REJECTED, Outcome
from collegium.study.journal import START, FileJournal, chained


def outcome(position, verdict=ANSWERED, label=2):
    return Outcome(position, 100 + position, verdict, NO_LABEL if verdict == REJECTED else label)


def block(first, size):
    return first, [100 + first + step for step in range(size)]


def lost(first, size):
    return [outcome(first + step, LOST, NO_LABEL) for step in range(size)]


# Blocks of 3; the last settlement names fewer than were reserved, as when a budget ends.
STEPS = [
    ("reserve", block(0, 3)),
    ("settle", [outcome(0), outcome(1, REJECTED), outcome(2)]),
    ("reserve", block(3, 3)),
    ("settle", [outcome(3, REJECTED), outcome(4, label=0), outcome(5, "reinforced")]),
    ("reserve", block(6, 3)),
    ("settle", [outcome(6), outcome(7)]),
]


def take(journal, step):
    kind, content = step
    if kind == "reserve":
        journal.reserve(*content)
    else:
        journal.settle(content)


@pytest.fixture
def story(tmp_path):
    """The bytes of a journal, and what is settled after each whole line of it."""
    path = tmp_path / "story"
    journal = FileJournal(path)
    states, ends = [[]], [0]
    for step in STEPS:
        take(journal, step)
        states.append(journal.settled())
        ends.append(path.stat().st_size)
    return path.read_bytes(), ends, states


def test_the_story_is_what_it_should_be(story):
    _, _, states = story
    done = [o for kind, content in STEPS if kind == "settle" for o in content]
    assert states == [
        [],
        lost(0, 3),
        done[:3],
        done[:3] + lost(3, 3),
        done[:6],
        done[:6] + lost(6, 3),
        done,
    ]


def test_a_new_journal_is_empty_and_reading_creates_nothing(tmp_path):
    path = tmp_path / "journal"
    assert FileJournal(path).settled() == []
    assert not path.exists()


def test_the_file_is_for_its_owner_only(tmp_path):
    path = tmp_path / "journal"
    FileJournal(path).reserve(*block(0, 1))
    assert path.stat().st_mode & 0o077 == 0


# ------------------------------------------------------------------------------ torn and flipped


def test_cut_at_every_byte_it_remembers_every_whole_line_and_goes_on(story, tmp_path):
    content, ends, states = story
    path = tmp_path / "cut"
    for cut in range(len(content) + 1):
        path.write_bytes(content[:cut])
        # A line that lacks its end of line alone is whole.
        whole = max(i for i, end in enumerate(ends) if end - bool(end) <= cut)
        journal = FileJournal(path)
        assert journal.settled() == states[whole]
        assert path.read_bytes() == content[:cut], "opening changes nothing"
        # Go on after what was settled or lost; the torn line is gone, and nothing else.
        first = len(states[whole])
        journal.reserve(*block(first, 2))
        journal.settle([outcome(first), outcome(first + 1, REJECTED)])
        expected = [*states[whole], outcome(first), outcome(first + 1, REJECTED)]
        assert journal.settled() == expected
        assert FileJournal(path).settled() == expected
        assert path.read_bytes().startswith(content[: ends[whole]])


@pytest.mark.parametrize("mask", [0x01, 0x02, 0x20, 0x80])
def test_a_flipped_bit_anywhere_is_refused_in_one_line_and_the_file_is_left_alone(
    story, tmp_path, mask
):
    content, _, _ = story
    path = tmp_path / "flipped"
    for place in range(len(content) - 1):  # the last byte is an end of line: see below
        damaged = bytearray(content)
        damaged[place] ^= mask
        path.write_bytes(damaged)
        with pytest.raises(StudyMismatchError, match="damaged in line") as refusal:
            FileJournal(path)
        assert "\n" not in str(refusal.value)
        assert path.read_bytes() == damaged


@pytest.mark.parametrize("end", [b"", b"\0", b"x"])
def test_a_lost_or_damaged_last_end_of_line_is_not_a_lost_block(story, tmp_path, end):
    content, ends, states = story
    path = tmp_path / "unended"
    for whole in range(1, len(ends)):
        path.write_bytes(content[: ends[whole] - 1] + end)
        journal = FileJournal(path)
        assert journal.settled() == states[whole]
        for step in STEPS[whole:]:
            take(journal, step)
        assert FileJournal(path).settled() == states[-1]
        if whole < len(STEPS):
            assert path.read_bytes() == content


@pytest.mark.parametrize("key", [b"", b"another"])
def test_a_journal_of_another_key_is_refused(tmp_path, key):
    path = tmp_path / "journal"
    FileJournal(path, key=b"its own").reserve(*block(0, 2))
    before = path.read_bytes()
    with pytest.raises(StudyMismatchError, match="damaged in line 1"):
        FileJournal(path, key=key)
    assert path.read_bytes() == before
    assert FileJournal(path, key=b"its own").settled() == lost(0, 2)


def test_files_that_are_vouched_for_are_known_again_and_asked_questions_are_not_disturbed(tmp_path):
    path = tmp_path / "journal"
    journal = FileJournal(path)
    journal.vouch("vault/a", "1")
    journal.reserve(*block(0, 2))
    journal.vouch("vault/b", "2")
    assert journal.was_cut_off("vault/b", None) and not journal.was_cut_off("vault/a", None)
    journal.settle([outcome(0), outcome(1)])
    journal.vouch("vault/a", None)
    journal.vouch("vault/a", "3")
    for one in (journal, FileJournal(path)):
        assert one.settled() == [outcome(0), outcome(1)]
        assert one.files == {"vault/a": ["1", None, "3"], "vault/b": ["2"]}
        assert one.records == 6 and one.head == journal.head
        assert one.was_cut_off("vault/a", None) and not one.was_cut_off("vault/a", "1")


def test_a_point_that_was_named_is_known_later_and_not_by_an_older_journal(tmp_path):
    path = tmp_path / "journal"
    journal = FileJournal(path)
    journal.reserve(*block(0, 2))
    older = path.read_bytes()
    journal.settle([outcome(0), outcome(1)])
    point = journal.point_before("release/x")
    journal.vouch("release/x", "1")
    assert journal.point_before("release/x") == point != journal.point_before("release/y")
    for digest in (
        "2",
        "1",
    ):  # a crash came before the file: it is as it was, and is vouched for again
        journal.vouch("release/x", digest)
        assert journal.point_before("release/x") == point
    assert FileJournal(path).point_before("release/x") == point
    journal.vouch("release/y", "2")
    assert journal.has_been_at(*point) and FileJournal(path).has_been_at(*point)
    path.write_bytes(older)
    assert not FileJournal(path).has_been_at(*point)


@pytest.mark.parametrize(
    "entries",
    [
        [{"file": [1, "digest"]}],
        [{"file": ["vault/a", 1]}],
        [{"reserve": [1, [4]]}],
        [{"reserve": [0, [4]]}, {"reserve": [0, [5]]}],
    ],
)
def test_lines_that_are_never_written_are_refused_even_under_the_key(tmp_path, entries):
    head, lines = START, []
    for entry in entries:
        head, line = chained(b"key", head, entry)
        lines.append(line)
    (tmp_path / "journal").write_bytes(b"".join(lines))
    with pytest.raises(StudyMismatchError, match=f"damaged in line {len(entries)}"):
        FileJournal(tmp_path / "journal", key=b"key")


def test_damage_before_a_torn_line_leaves_both_alone(story, tmp_path):
    content, _, _ = story
    path = tmp_path / "damaged"
    damaged = b"0" + content[1:-5]
    assert damaged[0] != content[0]
    path.write_bytes(damaged)
    with pytest.raises(StudyMismatchError):
        FileJournal(path)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("line", range(len(STEPS) - 1))
@pytest.mark.parametrize("change", ["left out", "twice", "swapped"])
def test_lines_that_are_missing_repeated_or_swapped_are_refused(story, tmp_path, line, change):
    content, _, _ = story
    lines = content.splitlines(keepends=True)
    if change == "left out":
        del lines[line]
    elif change == "twice":
        lines.insert(line, lines[line])
    else:
        lines[line], lines[line + 1] = lines[line + 1], lines[line]
    path = tmp_path / "lines"
    path.write_bytes(b"".join(lines))
    with pytest.raises(StudyMismatchError, match="damaged"):
        FileJournal(path)


@pytest.mark.parametrize("number", [0, 2])
def test_a_missing_pair_of_lines_is_refused(story, tmp_path, number):
    lines = story[0].splitlines(keepends=True)
    del lines[number : number + 2]
    path = tmp_path / "lines"
    path.write_bytes(b"".join(lines))
    with pytest.raises(StudyMismatchError, match="damaged"):
        FileJournal(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"settle": [[0, 100, ANSWERED, 1]] * 3},
        {"settle": [[0, 100, ANSWERED, 1], [1, 101, ANSWERED, 1], [2, 102, ANSWERED, 1], [3, 103]]},
        {"settle": [[i, 100 + i, ANSWERED, 1] for i in range(4)]},
        {"settle": [[0, 7, ANSWERED, 1]]},
        {"settle": [[1, 101, ANSWERED, 1]]},
        {"settled": []},
        [],
        7,
        None,
    ],
)
def test_entries_that_cannot_be_are_refused_even_if_their_checksum_is_right(story, tmp_path, entry):
    content, ends, _ = story
    head = content[: ends[1]].splitlines()[-1][:64].decode()
    path = tmp_path / "forged"
    path.write_bytes(content[: ends[1]] + chained(b"", head, entry)[1])
    with pytest.raises(StudyMismatchError, match="damaged in line 2"):
        FileJournal(path)


# -------------------------------------------------------------------------- reservations left open


def test_a_crash_between_reservation_and_settlement_loses_exactly_the_reserved_queries(tmp_path):
    path = tmp_path / "journal"
    journal = FileJournal(path)
    journal.reserve(*block(0, 2))
    journal.settle([outcome(0), outcome(1)])
    journal.reserve(*block(2, 3))
    for _ in range(3):  # and opening again and again does not lose more
        assert FileJournal(path).settled() == [outcome(0), outcome(1), *lost(2, 3)]


def test_going_on_after_a_crash_settles_the_lost_queries_for_good(tmp_path):
    path = tmp_path / "journal"
    FileJournal(path).reserve(*block(0, 3))
    journal = FileJournal(path)
    journal.reserve(*block(3, 2))
    assert FileJournal(path).settled() == lost(0, 3) + lost(3, 2)
    journal.settle([outcome(3)])
    assert FileJournal(path).settled() == [*lost(0, 3), outcome(3)]


def test_lost_queries_that_could_not_be_paid_are_asked_for_again_from_there(tmp_path):
    """The job charges what it can of the lost queries, and reserves from the first it cannot."""
    path = tmp_path / "journal"
    FileJournal(path).reserve(*block(0, 3))
    journal = FileJournal(path)
    journal.reserve(*block(2, 2))
    assert FileJournal(path).settled() == [*lost(0, 2), *lost(2, 2)]
    journal.settle([])
    assert FileJournal(path).settled() == lost(0, 2)


# --------------------------------------------------------------------------------- a failing disk


class Disk:
    """Stands in for ``os.write``, ``os.fsync`` or ``os.ftruncate``; fails in a given way."""

    def __init__(self, monkeypatch):
        self.real = {name: getattr(os, name) for name in ("write", "fsync", "ftruncate")}
        self.monkeypatch = monkeypatch

    def full(self, *args):
        raise OSError(errno.ENOSPC, "No space left on device")

    def half_then_full(self, descriptor, content):
        self.real["write"](descriptor, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    def short_then_full(self, descriptor, content):
        self.monkeypatch.setattr(os, "write", self.full)
        return self.real["write"](descriptor, content[: len(content) // 2])

    def interrupted(self, descriptor, content):
        self.real["write"](descriptor, content)
        raise KeyboardInterrupt

    def one_byte(self, descriptor, content):
        return self.real["write"](descriptor, content[:1])


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


@pytest.mark.parametrize("steps", range(len(STEPS)))
@pytest.mark.parametrize(
    ("function", "failure"),
    [
        ("write", "full"),
        ("write", "half_then_full"),
        ("write", "short_then_full"),
        ("write", "interrupted"),
        ("fsync", "full"),
    ],
)
def test_a_line_that_could_not_be_written_was_never_there(
    story, tmp_path, disk, function, failure, steps
):
    content, ends, states = story
    path = tmp_path / "failing"
    journal = FileJournal(path)
    for step in STEPS[:steps]:
        take(journal, step)
    with disk.monkeypatch.context() as broken:
        disk.monkeypatch = broken
        broken.setattr(os, function, getattr(disk, failure))
        with pytest.raises((OSError, KeyboardInterrupt)):
            take(journal, STEPS[steps])
    assert path.read_bytes() == content[: ends[steps]]
    assert journal.settled() == FileJournal(path).settled() == states[steps]
    for step in STEPS[steps:]:  # space is free again: the same object goes on
        take(journal, step)
    assert path.read_bytes() == content


@pytest.mark.parametrize("steps", range(1, len(STEPS)))
def test_if_even_the_repair_fails_nothing_more_is_written_until_it_is_opened_again(
    story, tmp_path, disk, monkeypatch, steps
):
    _, ends, states = story
    path = tmp_path / "failing"
    journal = FileJournal(path)
    for step in STEPS[:steps]:
        take(journal, step)
    with monkeypatch.context() as broken:

        def half(descriptor, content):
            broken.setattr(os, "ftruncate", disk.full)
            disk.half_then_full(descriptor, content)

        broken.setattr(os, "write", half)
        with pytest.raises(OSError):
            take(journal, STEPS[steps])
    torn = path.read_bytes()
    assert len(torn) > ends[steps]
    with pytest.raises(StudyMismatchError):
        take(journal, STEPS[steps])
    assert path.read_bytes() == torn
    again = FileJournal(path)
    assert again.settled() == states[steps]


def test_a_write_that_takes_a_byte_at_a_time_writes_everything(story, tmp_path, disk, monkeypatch):
    path = tmp_path / "slow"
    with monkeypatch.context() as slow:
        slow.setattr(os, "write", disk.one_byte)
        journal = FileJournal(path)
        for step in STEPS:
            take(journal, step)
    assert path.read_bytes() == story[0]


def test_lines_are_flushed_to_the_disk_before_a_step_returns(tmp_path, monkeypatch):
    flushed = []
    real = os.fsync

    def fsync(descriptor):
        flushed.append(os.fstat(descriptor))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    path = tmp_path / "journal"
    journal = FileJournal(path)
    for number, step in enumerate(STEPS):
        take(journal, step)
        files = [stat for stat in flushed if stat.st_ino == path.stat().st_ino]
        assert len(files) == number + 1
        assert files[-1].st_size == path.stat().st_size
    assert any(stat.st_ino == tmp_path.stat().st_ino for stat in flushed), "the folder's entry too"


def test_a_journal_of_twenty_thousand_lines_is_read_at_once(tmp_path):
    head, lines = START, []
    for first in range(0, 40_000, 4):
        rows = [[first + step, 100 + first + step, ANSWERED, 2] for step in range(4)]
        for entry in ({"reserve": block(first, 4)}, {"settle": rows}):
            head, line = chained(b"key", head, entry)
            lines.append(line)
    path = tmp_path / "journal"
    path.write_bytes(b"".join(lines))
    begin = time.process_time()
    assert FileJournal(path, key=b"key").records == len(lines) == 20_000
    assert time.process_time() - begin < 2  # a tenth of it is usual


def test_two_writers_do_not_mix(tmp_path):
    path = tmp_path / "journal"
    FileJournal(path).reserve(*block(0, 1))
    one, other = FileJournal(path), FileJournal(path)
    one.settle([outcome(0)])
    one.reserve(*block(1, 1))
    before = path.read_bytes()
    with pytest.raises(StudyMismatchError, match="somebody else"):
        other.reserve(*block(1, 1))
    assert path.read_bytes() == before


def test_no_noise_is_drawn_if_the_reservation_cannot_be_written(house, tmp_path, disk, monkeypatch):
    noise = house.RecordingNoise(house.NoNoise())
    job, _ = house.job(
        house.predictions(9, 10),
        house.unlimited(10),
        house.aggregator("confident", 10),
        noise=noise,
        journal=FileJournal(tmp_path / "journal"),
    )
    monkeypatch.setattr(os, "write", disk.full)
    with pytest.raises(OSError, match="No space"):
        job.run()
    assert noise.events == []


def test_a_disk_that_fills_up_after_a_reservation_costs_no_answer(
    house, tmp_path, disk, monkeypatch
):
    """Space that was set aside before the noise was drawn is given up for what came of it."""
    path = tmp_path / "journal"
    room = tmp_path / ".journal.room"

    def full_but_for_the_room(descriptor, content):
        if room.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return disk.real["write"](descriptor, content)

    def no_new_room(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    predictions, electorate = house.predictions(9, 10), house.unlimited(10)
    aggregator = house.aggregator("confident", 10)

    def fill_up(outcomes):
        """After the first block; the second has been reserved when the third write comes."""
        writes = iter([disk.real["write"], full_but_for_the_room])
        monkeypatch.setattr(os, "write", lambda *a: next(writes, full_but_for_the_room)(*a))
        monkeypatch.setattr(os, "pwrite", no_new_room)

    job, _ = house.job(
        predictions,
        electorate,
        aggregator,
        journal=FileJournal(path),
        block=3,
        progress=fill_up,
    )
    with pytest.raises(OSError, match="No space"):
        job.run()
    monkeypatch.undo()
    settled = FileJournal(path).settled()
    assert len(settled) == 6
    assert LOST not in [outcome.verdict for outcome in settled]
    assert not room.exists()
    job, _ = house.job(predictions, electorate, aggregator, journal=FileJournal(path))
    labels = job.run()
    assert [outcome.verdict for outcome in labels.outcomes].count(LOST) == 0
    assert labels.n_asked == 9


@pytest.mark.parametrize(("n_values", "size"), [(11, 16), (0, 200)])
def test_room_is_enough_for_the_largest_outcomes(tmp_path, n_values, size):
    journal = FileJournal(tmp_path / "journal", n_values=n_values)
    first, queries = 10**9, [10**9 + step for step in range(size)]
    journal._settled = [outcome(first - 1)]
    journal.reserve(first, queries)
    set_aside = (tmp_path / ".journal.room").stat().st_size
    before = (tmp_path / "journal").stat().st_size
    largest = -(2.0**33 - GRID)
    journal.settle(
        [
            Outcome(
                first + step,
                10**9 + step,
                "reinforced" if step else ANSWERED,
                10**5,
                noisy_counts=(largest,) * (n_values - 1) if n_values else None,
                noisy_check=largest if n_values else None,
            )
            for step in range(size)
        ]
    )
    assert (tmp_path / "journal").stat().st_size - before < set_aside
    journal.give_room_back()
    assert not (tmp_path / ".journal.room").exists()


def test_no_outcome_leaves_if_the_settlement_cannot_be_written(house, tmp_path, disk, monkeypatch):
    path, left = tmp_path / "journal", []
    predictions, electorate = house.predictions(9, 10), house.unlimited(10)
    aggregator = house.aggregator("confident", 10)
    writes = iter([os.write, os.write, os.write, disk.full, disk.full])
    job, _ = house.job(
        predictions,
        electorate,
        aggregator,
        journal=FileJournal(path),
        block=3,
        progress=left.append,
    )
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", lambda *args: next(writes)(*args))
        with pytest.raises(OSError, match="No space"):
            job.run()
    assert left == [3]
    verdicts = [o.verdict for o in FileJournal(path).settled()]
    assert verdicts[3:] == [LOST] * 3
    job, pricing = house.job(predictions, electorate, aggregator, journal=FileJournal(path))
    labels = job.run()
    assert labels.n_asked == 9
    paid = house.spent(labels.outcomes, aggregator, electorate)
    assert pricing.accountant.mu_squared == pytest.approx(paid, rel=1e-12)


# ------------------------------------------------------------------------------------ kill -9

LABOURER = """
import os, signal, sys, time
import numpy as np
from pathlib import Path
from collegium.budgets import Budget
from collegium.personalisation.electorate import Electorate
from collegium.study.journal import FileJournal
from collegium.pate.voting.aggregators import ConfidentGNMax
from collegium.pate.voting.labelling import LabellingJob
from collegium.noise.sources import SecureNoise
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.pate.voting.vote_table import VoteTable

folder, deaths = Path(sys.argv[1]), int(sys.argv[2])

def note(name, line):
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (line + "\\n").encode())
    os.close(descriptor)

class PermittedNoise(SecureNoise):
    def noised(self, total, noise, *, query, purpose):
        os.read(permits, 1)  # nothing, at once, when the parent has closed its end
        note("drawn", f"{query} {purpose}")
        return super().noised(total, noise, query=query, purpose=purpose)

class Publisher(FileJournal):
    def settle(self, outcomes):
        super().settle(outcomes)
        for o in outcomes:
            note("released", f"{o.position} {o.query} {o.verdict} {o.label}")

def work():
    votes = np.random.default_rng(0).integers(0, 2, (150, 10))
    electorate = Electorate(
        10, np.ones(10), {"all": Budget(np.inf)}, ("all",), np.ones(1)
    )
    aggregator = ConfidentGNMax(threshold=6.5, sigma_threshold=2.0, sigma=3.0)
    pricing = WorstCasePricing(aggregator, electorate)
    job = LabellingJob(
        VoteTable.from_predictions(votes, 2), electorate, aggregator, pricing, PermittedNoise(),
        np.arange(150)[::-1], journal=Publisher(folder / "journal"), block=4,
    )
    labels = job.run()
    note("charged", repr(float(pricing.accountant.mu_squared[0])))
    for o in labels.outcomes:
        note("final", f"{o.position} {o.query} {o.verdict} {o.label}")

def drawn():
    return (folder / "drawn").read_bytes().count(b"\\n") if (folder / "drawn").exists() else 0

generator = np.random.default_rng(int(sys.argv[3]))
for death in range(deaths + 1):
    permits, permit = os.pipe()
    draws, before = int(generator.integers(1, 7)), drawn()
    child = os.fork()
    if child == 0:
        os.close(permit)
        work()
        os._exit(0)
    if death < deaths:  # it dies at work
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


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def test_a_process_that_is_killed_again_and_again_charges_all_and_asks_nothing_twice(
    house, tmp_path
):
    """Real processes, real files, SIGKILL after a random number of draws and a random moment."""
    script = tmp_path / "labourer.py"
    script.write_text(LABOURER)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, str(script), str(tmp_path), "12", "1"],
        check=True,
        timeout=600,
        env=environment,
    )
    deaths = [int(code) for code in lines(tmp_path / "deaths")]
    assert deaths == 12 * [-signal.SIGKILL] + [0]
    final = [line.split() for line in lines(tmp_path / "final")]
    charged = [float(line) for line in lines(tmp_path / "charged")]
    assert charged[-1] == max(charged)
    final = final[-150:]
    assert [int(row[0]) for row in final] == list(range(150))
    # No query is drawn twice, whichever process drew it.
    drawn = lines(tmp_path / "drawn")
    assert len(set(drawn)) == len(drawn)
    # What left is what the last process knows, word for word, and left once.
    released = [line.split() for line in lines(tmp_path / "released")]
    fresh = [row for row in released if row[2] != LOST]
    assert len({row[1] for row in fresh}) == len(fresh)
    assert all(row in final for row in released)
    # The account has the full cost of everything that was lost, and at least that of all drawn.
    outcomes = [Outcome(int(p), int(q), verdict, int(label)) for p, q, verdict, label in final]
    aggregator = ConfidentGNMax(threshold=6.5, sigma_threshold=2.0, sigma=3.0)
    paid = house.spent(outcomes, aggregator, house.unlimited(10))[0]
    assert charged[-1] == pytest.approx(paid, rel=1e-12)
    of_drawn = sum(1 / 4 if line.endswith("check") else 2 / 9 for line in drawn)
    assert charged[-1] >= of_drawn * (1 - 1e-12)
    assert any(o.verdict == LOST for o in outcomes)
