"""What a study remembers of its run, on disk: teachers, votes, order, journal, and how voting ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.statement import PrivacyStatement
from collegium.errors import StudyMismatchError
from collegium.json_files import read_json
from collegium.pate.memory import Memory
from collegium.pate.voting.labelling import Labels
from collegium.pate.voting.vote_blocks import open_votes, vote_type
from collegium.pate.voting.vote_table import VoteTable
from collegium.study.checkpoint import StudyInterrupted, drawing
from collegium.study.folder import StudyFolder
from collegium.study.journal import FileJournal
from collegium.study.parties import ALONE, Alone
from collegium.study.stored_teachers import StoredTeachers


class FolderMemory(Memory):
    """Memory of a run in a study's folder; a run that was cut off goes on from it.

    ``folder``: the study's. Nothing is written before it is open.
    ``holds_same_study``: whether it holds this very study, so that what is slow to compute may be kept in
        it.
    ``parties``: whose teachers vote together.
    """

    def __init__(
        self, folder: StudyFolder, holds_same_study: bool = True, parties: Alone = ALONE
    ) -> None:
        self._study, self._takes_up = folder, parties.takes_up
        self.folder = folder.vault if holds_same_study else None
        self._journal: FileJournal | None = None

    def votes(self, n_public: int, n_teachers: int, n_classes: int) -> VoteTable | None:
        """Recall the votes of all teachers, if all have voted."""
        path = self._study.vault / "votes.npy"
        return open_votes(path, n_public, n_teachers, n_classes) if path.exists() else None

    def keep_votes(self, table: NDArray[np.int32], n_classes: int) -> None:
        """Keep the votes. **Sensitive.**"""
        path = self._study.vault / "votes.npy"
        self._study.write_array(path, table.astype(vote_type(n_classes)))

    def vouch(self, path: Path, digest: str) -> None:
        """Vouch for a file that is about to take its name."""
        self._study.vouch(path, digest)

    def keep_assignment(self, owner_teachers: NDArray[np.int32]) -> None:
        """Keep who is taught by whom. **Sensitive.**"""
        self._study.write_array(self._study.vault / "partition.npy", owner_teachers)

    def teachers(self, n_teachers: int) -> StoredTeachers:
        """Recall teachers that were trained already, and take those that are trained now."""
        return StoredTeachers(self._study, n_teachers)

    def order(self, n_public: int) -> NDArray[np.intp] | None:
        """Recall the order of questions, if it was kept."""
        path = self._study.vault / "order.npy"
        if not path.exists():
            return None
        try:
            kept = np.load(path, allow_pickle=False)
            whole = np.array_equal(np.sort(kept), np.arange(n_public))
        except (ValueError, OSError, EOFError):
            whole = False
        if not whole:
            raise StudyMismatchError(
                f"{path} holds no order of the {n_public} public records: it is damaged, and nothing was "
                "asked; restore it from a backup"
            )
        return np.asarray(kept, dtype=np.intp)

    def keep_order(self, order: NDArray[np.intp]) -> None:
        """Keep the order of questions."""
        self._study.write_array(self._study.vault / "order.npy", order)

    def journal(self, n_values: int) -> FileJournal:
        """Open the journal of the questions."""
        self._journal = self._study.journal
        assert self._journal is not None, "a folder is claimed before it is asked"
        self._journal.n_values = n_values
        ended = self.ended()
        if ended is not None and len(self._journal.settled()) != ended[0]:
            raise StudyMismatchError(
                f"{self._study.voting_ended} and the journal beside it do not belong together: nothing was "
                "changed; restore both from one backup"
            )
        return self._journal

    def ended(self) -> tuple[int, str] | None:
        """Recall how many questions were asked, and why voting ended, if it has."""
        path = self._study.voting_ended
        if not path.exists():
            return None
        known = read_json(path, {"asked": int, "stop_reason": str})
        return known["asked"], known["stop_reason"]

    @contextlib.contextmanager
    def asking(self) -> Iterator[Callable[[], bool]]:
        """Lend what tells, between two questions, whether to stop: Ctrl-C was pressed."""
        with drawing(self._study, at_once=self._takes_up) as should_stop:
            yield should_stop

    def end(self, labels: Labels) -> None:
        """Keep that voting has ended, or say that it was interrupted."""
        if labels.stop_reason == "interrupted":
            raise StudyInterrupted
        done = {"asked": labels.n_asked, "stop_reason": labels.stop_reason}
        self._study.write_json(self._study.voting_ended, done)

    def keep_spending(self, privacy: PrivacyStatement) -> PrivacyStatement:
        """Keep what was spent in the vault; return what may be shown."""
        spent = {row.group: row.epsilon_spent for row in privacy.groups}
        self._study.write_json(self._study.vault / "sensitive-spending.json", spent)
        return privacy.without_spending()
