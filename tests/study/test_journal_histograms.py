"""The journal keeps noisy values exactly, whatever is torn or damaged, and reads journals without them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.errors import StudyMismatchError
from collegium.noise.grid import GRID
from collegium.pate.voting.labelling import ANSWERED, LOST, NO_LABEL, REJECTED, Outcome
from collegium.study.journal import START, FileJournal, chained

on_grid = st.integers(-(2**53), 2**53).map(lambda steps: steps * GRID)


def told(position, verdict=ANSWERED, counts=(8.25, -1.0, GRID), check=None):
    label = int(np.argmax(counts)) if verdict == ANSWERED else NO_LABEL
    return Outcome(
        position, 100 + position, verdict, label, counts if verdict == ANSWERED else None, check
    )


BLOCKS = [
    [told(0), told(1, REJECTED, check=-3.5), told(2, check=7.0)],
    [told(3, REJECTED, check=0.0), told(4, "reinforced", check=2.0), told(5, check=2**33)],
]


def write(path, blocks=BLOCKS):
    journal = FileJournal(path)
    for block in blocks:
        journal.reserve(block[0].position, [outcome.query for outcome in block])
        journal.settle(block)
    return journal


def lines(*entries):
    head, content = START, b""
    for entry in entries:
        head, line = chained(b"", head, entry)
        content += line
    return content


def test_what_is_settled_is_read_again(tmp_path):
    journal = write(tmp_path / "journal")
    assert journal.settled() == [outcome for block in BLOCKS for outcome in block]
    assert FileJournal(tmp_path / "journal").settled() == journal.settled()


@given(counts=st.lists(on_grid, min_size=2, max_size=5), check=st.none() | on_grid)
def test_every_value_on_the_grid_survives_to_the_last_bit(tmp_path_factory, counts, check):
    path = tmp_path_factory.mktemp("exact") / "journal"
    outcome = told(0, counts=tuple(counts), check=check)
    write(path, [[outcome]])
    (read,) = FileJournal(path).settled()
    assert read == outcome
    assert np.array(read.noisy_counts).tobytes() == np.array(counts).tobytes()


def test_labels_alone_are_written_as_ever(tmp_path):
    """Byte for byte: a journal of a job that releases labels has no trace of histograms."""
    path = tmp_path / "journal"
    write(path, [[Outcome(0, 100, ANSWERED, 2), Outcome(1, 101, REJECTED, NO_LABEL)]])
    rows = [[0, 100, ANSWERED, 2], [1, 101, REJECTED, NO_LABEL]]
    assert path.read_bytes() == lines({"reserve": [0, [100, 101]]}, {"settle": rows})


def test_cut_at_every_byte_histograms_are_whole_or_lost(tmp_path):
    path, cut_path = tmp_path / "whole", tmp_path / "cut"
    write(path)
    content = path.read_bytes()
    ends = [0, *np.cumsum([len(part) + 1 for part in content.split(b"\n")[:-1]]).tolist()]
    everything = FileJournal(path).settled()
    for cut in range(len(content) + 1):
        cut_path.write_bytes(content[:cut])
        whole = max(number for number, end in enumerate(ends) if end - bool(end) <= cut)
        settled = FileJournal(cut_path).settled()
        known = 3 * (whole // 2)
        assert settled[:known] == everything[:known]
        assert all(outcome.verdict == LOST for outcome in settled[known:])
        assert all(outcome.noisy_counts is None for outcome in settled[known:])
        assert len(settled) == known + 3 * (whole % 2)


@pytest.mark.parametrize(
    "values",
    [
        [1],
        [None, [1, 2], 3],
        [None, [1.5, 2]],
        [None, ["1", 2]],
        [True, [1, 2]],
        [None, 5],
        [0.5, None],
    ],
)
def test_values_that_cannot_be_are_refused_even_if_their_checksum_is_right(tmp_path, values):
    path = tmp_path / "journal"
    content = lines({"reserve": [0, [100]]}, {"settle": [[0, 100, ANSWERED, 0, *values]]})
    path.write_bytes(content)
    with pytest.raises(StudyMismatchError, match="damaged in line 2") as error:
        FileJournal(path)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == content


def test_a_value_between_two_steps_of_the_grid_is_not_written(tmp_path):
    path = tmp_path / "journal"
    with pytest.raises(ValueError):
        write(path, [[told(0, counts=(1.0, GRID / 2))]])
    assert [outcome.verdict for outcome in FileJournal(path).settled()] == [LOST]
