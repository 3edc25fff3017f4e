"""A labelling job on disk: durable, resumable, never paid for twice."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.statement import PrivacyStatement, statement
from collegium.errors import StudyMismatchError
from collegium.noise.sources import NoiseSource
from collegium.pate.students.supervised import RefittedStudent
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.choosing import QueryChooser
from collegium.pate.voting.histograms import NoisyHistograms
from collegium.pate.voting.labelling import LabellingJob, Labels
from collegium.pate.voting.pricing import pricing_for
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.electorate import Electorate
from collegium.study.folder import HISTOGRAMS_FILE, StudyFolder
from collegium.study.journal import FileJournal
from collegium.study.terms import JobTerms, keep_terms


class StudyInterrupted(KeyboardInterrupt):
    """Ctrl-C: everything that was paid for is on disk, and the same command goes on."""


def label_durably(
    folder: StudyFolder,
    votes: VoteTable,
    electorate: Electorate,
    aggregator: Aggregator,
    order: NDArray[np.intp] | QueryChooser,
    *,
    guarantee: str,
    orders: NDArray[np.float64],
    conversion: str,
    noise: NoiseSource,
    max_labels: int | None,
    max_queries: int | None = None,
    owners: dict[str, int],
    neighbours: Neighbours,
    adjacency: str,
    student: RefittedStudent | None = None,
    progress: Callable[[int], None] = lambda asked: None,
    bounds: str | None = None,
    release: str = LABELS,
) -> tuple[Labels, PrivacyStatement]:
    """Run a labelling job with its journal in the vault; a finished job is only read again.

    Where queries are chosen as outcomes come in, those that the journal holds stay as they were chosen.
    With ``release="histogram"`` the journal holds the noisy counts as well; a journal of the other kind
    is refused.

    Raises
    ------
    StudyInterrupted
        After Ctrl-C, with everything settled.
    """
    pricing = pricing_for(guarantee, aggregator, electorate, orders, conversion, neighbours, bounds)
    path = folder.vault / "journal.jsonl"
    if not path.exists() and (folder.release / "labels.csv").exists():
        raise StudyMismatchError(
            f"labels were released from {folder.path}, but its journal {path} is gone: nothing was asked, "
            "since what was spent is not known; restore it from a backup"
        )
    journal = FileJournal(path, n_values=votes.n_classes + 1 if release == HISTOGRAM else 0)
    finished = folder.voting_ended
    if finished.exists():
        known = json.loads(finished.read_text(encoding="utf-8"))
        if len(journal.settled()) != known["asked"]:
            raise StudyMismatchError(
                f"{finished} and the journal beside it do not belong together: nothing was changed; "
                "restore both from one backup"
            )
        max_queries = known["asked"]
    n_queries = votes.n_queries if isinstance(order, QueryChooser) else len(order)
    if max_queries is not None:
        n_queries = min(n_queries, max_queries)
    terms = JobTerms(
        aggregator,
        electorate,
        guarantee,
        neighbours,
        adjacency,
        noise.is_private,
        owners,
        n_queries,
    )
    keep_terms(folder, terms)
    with _interruptible() as should_stop:
        job = LabellingJob(
            votes,
            electorate,
            aggregator,
            pricing,
            noise,
            order,
            student=student,
            max_queries=max_queries,
            max_labels=max_labels,
            journal=journal,
            should_stop=should_stop,
            progress=progress,
            release=release,
        )
        try:
            labels = job.run()
        finally:
            journal.give_room_back()
    if finished.exists():
        labels = Labels(labels.outcomes, labels.queries, labels.labels, known["stop_reason"])
    elif labels.stop_reason == "interrupted":
        raise StudyInterrupted
    else:
        done = {"asked": labels.n_asked, "stop_reason": labels.stop_reason}
        folder.write_json(finished, done)
    privacy = statement(
        pricing.accountant, owners, dict(electorate.groups), adjacency, noise.is_private, release
    )
    if not privacy.may_publish_spending:
        spent = {row.group: row.epsilon_spent for row in privacy.groups}
        folder.write_json(folder.vault / "sensitive-spending.json", spent)
        privacy = privacy.without_spending()
    return labels, privacy


def write_release(
    folder: StudyFolder,
    labels: Labels,
    privacy: PrivacyStatement,
    classes: NDArray[Any],
    public_rows: NDArray[np.intp],
    about: dict[str, Any],
    histograms: NoisyHistograms | None = None,
) -> None:
    """Write labels, histograms and the statement. All is durable in the journal already.

    Histograms go into a Parquet file, where doubles stay exact: see
    :meth:`~collegium.pate.voting.histograms.NoisyHistograms.to_frame`.
    """
    table = pd.DataFrame({"row": public_rows[labels.queries], "label": classes[labels.labels]})
    folder.write_bytes(folder.release / "labels.csv", table.to_csv(index=False).encode())
    if histograms is not None:
        content = histograms.to_frame(classes, public_rows).to_parquet(index=False)
        folder.write_bytes(folder.release / HISTOGRAMS_FILE, content)
    summary = {
        **privacy.to_dict(),
        "queries_asked": labels.n_asked,
        "labels_released": len(labels.labels),
        "stopped_by": labels.stop_reason,
        **about,
    }
    folder.write_json(folder.release / "privacy.json", summary)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a question that is asked between two queries; a second one interrupts.

    What had been reserved by then is charged and counts as lost, as after a crash.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked_to_stop = threading.Event()

    def interrupt(*_: object) -> None:
        if asked_to_stop.is_set():
            raise KeyboardInterrupt
        asked_to_stop.set()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield asked_to_stop.is_set
    finally:
        signal.signal(signal.SIGINT, before)
