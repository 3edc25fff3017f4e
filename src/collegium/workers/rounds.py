"""Tasks of many teachers, until each is done: what a lost worker took along is done again.

A worker that is killed (by a scheduler, for lack of memory, by a crash) loses what it was working on, and
some backends lose all that was under way. What has come back stays. The rest is tried again: first whatever
was under way by itself, then, if that fails again, one teacher at a time, so that a teacher that kills its
worker every time is found and the others are not lost with it. Where several rounds in a row bring nothing,
teachers work one at a time too, whoever is the least suspect first; where that brings nothing either, time
after time, nothing works, and the rest is not tried.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from typing import Any

from collegium.errors import ModelError, WorkerWarning
from collegium.workers.cluster_backend import WorkerLost
from collegium.workers.engines import Workers

Task = Callable[[list[int]], Any]
# Tasks lost until a teacher works alone; lost alone until it is given up.
_SUSPECT, _HOPELESS = 2, 2
# A cluster tries several workers before it says that one was lost; a busy one loses some of its own accord.
_SUSPECT_OF_CLUSTER, _HOPELESS_OF_CLUSTER = 1, 2
_TOGETHER = 4  # rounds in a row without any result until teachers work one at a time
_BARREN = _TOGETHER + 8  # rounds in a row without any result until nothing is believed to work


def run_in_rounds(
    batches: list[list[int]],
    begin: Callable[[], Task],
    workers: Workers,
    receive: Callable[[int, Any], None],
    doing: str,
    verbose: int = 0,
    what: str = "teacher(s)",
) -> None:
    """Run the tasks of all teachers, or of whatever has a number.

    ``batches``: numbers of the teachers of each task.
    ``begin``: called at the start of each round; returns what makes a joblib task of a batch. The
        task returns a list of (number, result).
    ``receive``: ``receive(number, result)`` is called here, once for each teacher, as results come.
    ``doing``: what the tasks do, for messages: "trained", "asked".
    ``what``: whom to.
    Raises ModelError if a teacher's task has ended its worker time and again, alone, too; all other
        results have been received by then, unless nothing works any more.
    """
    suspect, hopeless = (
        (_SUSPECT_OF_CLUSTER, _HOPELESS_OF_CLUSTER)
        if workers.tries_again
        else (_SUSPECT, _HOPELESS)
    )
    waiting = {number for batch in batches for number in batch}
    lost: Counter[int] = Counter()
    alone: Counter[int] = Counter()
    barren = 0
    while any(alone[number] < hopeless for number in waiting) and barren < _BARREN:
        before = len(waiting)
        together = [] if barren >= _TOGETHER else _together(batches, waiting, lost, suspect)
        here = together or [[min(waiting, key=lambda n: (alone[n], lost[n], n))]]
        under_way = _round(here, begin(), workers, receive, waiting, verbose)
        lost.update(under_way)
        if len(here) == len(here[0]) == 1:
            alone.update(under_way)
        barren = barren + 1 if len(waiting) == before else 0
        if any(alone[number] < hopeless for number in under_way):
            warnings.warn(
                f"a worker ended while {len(under_way)} {what} were {doing} (killed, or out of memory?): "
                "they are tried again",
                WorkerWarning,
                stacklevel=3,
            )
    if waiting:
        raise ModelError(
            f"{len(waiting)} {what} could not be {doing}: their workers ended every time (out of memory, "
            "or a crash inside the model): give each more memory (fewer --jobs, or larger workers), or take "
            "another model; what a study has stored is kept, and the same command goes on from there"
        )


def _together(
    batches: list[list[int]], waiting: set[int], lost: Counter[int], suspect: int
) -> list[list[int]]:
    """Choose what may run side by side: teachers that lost no worker, then who did, by themselves."""
    fresh = [[n for n in batch if n in waiting and not lost[n]] for batch in batches]
    once = [[n] for batch in batches for n in batch if n in waiting and 0 < lost[n] < suspect]
    return [batch for batch in fresh if batch] + once


def _round(
    batches: list[list[int]],
    task: Task,
    workers: Workers,
    receive: Callable[[int, Any], None],
    waiting: set[int],
    verbose: int,
) -> set[int]:
    """Run tasks once; return the teachers whose tasks were under way when a worker was lost."""
    under_way: set[int] = set()

    def tasks() -> Iterator[Any]:
        for batch in batches:
            under_way.update(batch)
            yield task(batch)

    try:
        for outcome in workers.results(tasks(), verbose):
            if isinstance(outcome, WorkerLost):
                continue
            for number, result in outcome:
                receive(number, result)
                waiting.discard(number)
                under_way.discard(number)
    except BrokenExecutor:
        pass
    return under_way
