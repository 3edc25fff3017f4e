"""How far a journal has come stands in a second place: what is cut off is noticed, and a crash goes on."""

import pytest

from collegium.errors import StudyMismatchError
from collegium.pate.voting.labelling import ANSWERED, LOST, Outcome
from collegium.study.journal import FileJournal
from collegium.study.mark import Mark

KEY = b"k" * 32


class Crash(Exception):  # noqa: N818
    pass


@pytest.fixture
def place(tmp_path):
    return tmp_path / "journal.jsonl"


def opened(place):
    return FileJournal(place, key=KEY, mark=Mark(place.with_name("journal.mark"), KEY))


def answered(*queries):
    return [Outcome(number, number, ANSWERED, 0) for number in queries]


def story(place, blocks=3):
    journal = opened(place)
    for first in range(0, 2 * blocks, 2):
        journal.vouch("vault/before", f"{first}")
        journal.reserve(first, [first, first + 1])
        journal.settle(answered(first, first + 1))
    return journal


def test_cut_at_every_byte_it_is_refused_unless_only_the_last_lines_end_is_missing(place):
    whole = story(place).settled()
    content = place.read_bytes()
    for end in range(len(content) - 1):
        place.write_bytes(content[:end])
        with pytest.raises(StudyMismatchError, match="nothing was asked"):
            opened(place)
        assert place.read_bytes() == content[:end]
    place.write_bytes(content[:-1])
    assert opened(place).settled() == whole
    place.unlink()
    with pytest.raises(StudyMismatchError, match="has 0 lines"):
        opened(place)


@pytest.mark.parametrize("call", range(1, 7))
def test_a_crash_between_a_line_and_its_mark_goes_on(place, monkeypatch, call):
    real, calls = Mark.write, []

    def write(self, *given, **how):
        calls.append(given)
        if len(calls) == call:
            raise Crash
        return real(self, *given, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Mark, "write", write)
        with pytest.raises(Crash):
            story(place)
    journal = opened(place)
    first = call - call % 2 if call % 2 else call  # of the next block
    last = journal.settled()[-1]
    assert last.position == 2 * ((call + 1) // 2) - 1
    assert last.verdict == (LOST if call % 2 else ANSWERED)
    first = last.position + 1
    journal.reserve(first, [first])
    journal.settle(answered(first))
    assert len(opened(place).settled()) == first + 1


@pytest.mark.parametrize("torn", [b"", b"half a line", b'{"reserve":[6,'])
def test_a_torn_last_line_goes_on(place, torn):
    whole = story(place).settled()
    with place.open("ab") as file:
        file.write(torn)
    assert opened(place).settled() == whole


def test_of_two_halves_one_may_be_torn(place):
    story(place)
    mark, content = place.with_name("journal.mark"), place.read_bytes()
    both = mark.read_bytes()
    assert len(both) == 1024
    older = 512 * (both[:512].split()[1] > both[512:].split()[1])
    for first in (0, 512):
        mark.write_bytes(both[:first] + b"torn" + both[first + 4 :])
        journal = opened(place)
        assert len(journal.settled()) == 6
        lines = content.splitlines(keepends=True)
        place.write_bytes(b"".join(lines[:-2]))
        with pytest.raises(StudyMismatchError, match=f"{8 if first != older else 9} at least"):
            opened(place)
        place.write_bytes(content)
    mark.write_bytes(b"torn" + both[4:512] + b"torn" + both[516:])
    with pytest.raises(StudyMismatchError, match="is damaged"):
        opened(place)


def test_a_mark_of_another_key_or_none_is_refused(place):
    story(place)
    mark = place.with_name("journal.mark")
    content = mark.read_bytes()
    mark.unlink()
    with pytest.raises(StudyMismatchError, match="is gone"):
        opened(place)
    Mark(mark, b"x" * 32).make()
    with pytest.raises(StudyMismatchError, match="is damaged"):
        opened(place)
    mark.write_bytes(content)
    assert opened(place).settled()


def test_a_journal_of_an_earlier_version_goes_on_and_is_marked_from_then_on(place):
    journal = FileJournal(place, key=KEY)
    journal.reserve(0, [0])
    journal.settle(answered(0))
    opened(place).reserve(1, [1])
    assert b"marked" in place.read_bytes()
    place.write_bytes(b"".join(place.read_bytes().splitlines(keepends=True)[:2]))
    with pytest.raises(StudyMismatchError, match="has 2 lines"):
        opened(place)


def test_the_mark_is_on_the_disk_before_noise_is_drawn(place, monkeypatch):
    done, write = [], Mark.write

    def seen(self, records, head, *, is_durable):
        done.append((records, is_durable))
        write(self, records, head, is_durable=is_durable)

    monkeypatch.setattr(Mark, "write", seen)
    story(place, blocks=2)
    assert done == [(2, True), (3, False), (5, True), (6, False)]
