"""Whatever workers die of: each teacher is received once, and what never works ends."""

import itertools
import warnings
from concurrent.futures.process import BrokenProcessPool

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium.errors import ModelError, WorkerWarning
from collegium.workers.cluster_backend import WorkerLost
from collegium.workers.rounds import run_in_rounds


class FlakyWorkers:
    """Runs tasks in turn; a teacher with deaths left takes all that is under way with it.

    Parameters
    ----------
    deaths : dict of int to int
        How often each teacher ends its worker.
    ahead : int
        Tasks under way at once.
    tries_again : bool
        Like a cluster: the task gets a second worker, only itself is lost then, and the others go on.
    """

    def __init__(self, deaths, ahead, tries_again):
        self.deaths = dict(deaths)
        self.ahead = ahead
        self.tries_again = tries_again
        self.calls = 0
        self.runs = 0

    def results(self, tasks, verbose=0):
        self.calls += 1
        queue = []
        for task in tasks:
            queue.append(task)
            if len(queue) == self.ahead:
                yield from self.run(queue.pop(0))
        for task in queue:
            yield from self.run(task)

    def run(self, batch):
        self.runs += 1
        for number in batch:
            if self.deaths.get(number, 0) > 0:
                self.deaths[number] -= 1
                if not self.tries_again:
                    raise BrokenProcessPool("killed")
                if self.deaths[number] > 0:
                    self.deaths[number] -= 1
                    yield WorkerLost()
                    return
        yield [(number, -number) for number in batch]


def run(batches, workers):
    received = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkerWarning)
        try:
            run_in_rounds(
                batches,
                lambda: lambda batch: batch,
                workers,
                lambda number, result: received.append((number, result)),
                "trained",
            )
        except ModelError as error:
            return received, str(error)
    return received, ""


@st.composite
def ensembles(draw):
    n = draw(st.integers(1, 40))
    size = draw(st.integers(1, 8))
    return [list(range(first, min(first + size, n))) for first in range(0, n, size)]


def innocent_are_received(batches, hopeless, once, ahead, tries_again):
    numbers = [number for batch in batches for number in batch]
    deaths = {**dict.fromkeys(once, 1), **dict.fromkeys(hopeless, 10**9)}
    workers = FlakyWorkers(deaths, ahead, tries_again)
    received, error = run(batches, workers)
    assert sorted(received, reverse=True) == sorted(
        ((n, -n) for n in numbers if n not in hopeless), reverse=True
    )
    assert error.startswith(f"{len(hopeless)} teacher(s)" if hopeless else "")
    assert bool(error) == bool(hopeless)
    assert workers.calls <= 60


@settings(max_examples=200)
@given(
    batches=ensembles(),
    data=st.data(),
    ahead=st.integers(1, 6),
    tries_again=st.booleans(),
)
def test_the_innocent_are_received_once_and_the_hopeless_are_counted(
    batches, data, ahead, tries_again
):
    numbers = [number for batch in batches for number in batch]
    hopeless = data.draw(st.sets(st.sampled_from(numbers), max_size=2))
    once = data.draw(st.sets(st.sampled_from(numbers), max_size=3)) - hopeless
    innocent_are_received(batches, hopeless, once, ahead, tries_again)


@pytest.mark.parametrize("tries_again", [False, True])
@pytest.mark.parametrize("ahead", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_in_five_teachers_all_ways_to_die_are_survived(size, ahead, tries_again):
    batches = [list(range(first, min(first + size, 5))) for first in range(0, 5, size)]
    for fates in itertools.product(("well", "once", "always"), repeat=5):
        dying = {fate: {n for n in range(5) if fates[n] == fate} for fate in fates}
        hopeless, once = dying.get("always", set()), dying.get("once", set())
        if len(hopeless) <= 2 and len(once) <= 3:
            innocent_are_received(batches, hopeless, once, ahead, tries_again)


def test_where_every_worker_dies_it_ends_soon():
    workers = FlakyWorkers(dict.fromkeys(range(1000), 10**9), 4, False)
    received, error = run([[number] for number in range(1000)], workers)
    assert received == []
    assert error.startswith("1000 teacher(s) could not be trained")
    assert "\n" not in error
    assert workers.calls <= 12


def test_without_trouble_there_is_one_round_and_no_warning():
    workers = FlakyWorkers({}, 4, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_in_rounds(
            [[0, 1], [2]], lambda: lambda batch: batch, workers, lambda *_: None, "trained"
        )
    assert (workers.calls, workers.runs) == (1, 2)


def test_no_teachers_are_no_work():
    workers = FlakyWorkers({}, 4, False)
    assert run([], workers) == ([], "")
    assert workers.calls == 0


def test_other_errors_are_not_tried_again():
    class Full(FlakyWorkers):
        def run(self, batch):
            self.runs += 1
            raise OSError("no space left on device")

    workers = Full({}, 4, False)
    with pytest.raises(OSError, match="no space"):
        run([[0], [1]], workers)
    assert workers.calls == 1
