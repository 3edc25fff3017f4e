"""The journal of a study or labelling job: what was written, what may have been drawn, and what came of it.

One JSON object per line, flushed to the disk before the next step:

- ``file``: from now on, this file of the folder has this SHA-256 digest. Written *before* the file is.
- ``reserve``: these queries may be drawn from now on. Written *before* any noise is drawn. ``marked``: how
  far the journal has come stands in a second place, too (:mod:`collegium.study.mark`).
- ``steps``: noise may be drawn for the steps of DP-SGD up to this number from now on. Written *before*
  any of them is taken. What is drawn is kept in a file of its own: a step that was charged, and is not in
  that, is lost, and never taken again.
- ``settle``: what came of them; queries that are not named were not drawn. Written *before* any
  outcome leaves the process.

Lines are chained: each begins with an HMAC, under the folder's own key, of the line before's and its own
text. So nothing in the middle can be changed, left out or exchanged for another run's, and a line vouches
for all that was written when it was.

An outcome is ``[position, query, verdict, label]``; where histograms are released, followed by the noisy
value of the check and the list of noisy counts (null where there is none), in whole steps of the grid
(:data:`~collegium.noise.grid.GRID`): exact, whatever a float looks like in decimals.

Room for what a reservation may bring is set aside on the disk *before* it is made, in a file beside the
journal, and given up when the outcomes need it: a disk that fills up meanwhile costs no answer.

A crash leaves at most one reservation without settlement; its queries are charged in full and counted
as lost, and never asked again. A torn last line was never acted upon: it is ignored, and overwritten by
the next one; one that lacks its end of line alone is whole. Anything else that does not check out is refused,
and the file is left untouched.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from collegium.durable import sync
from collegium.errors import StudyMismatchError
from collegium.noise.grid import GRID
from collegium.pate.voting.labelling import LOST, NO_LABEL, Outcome
from collegium.study.mark import Mark

_AS_IT_IS = getattr(os, "O_BINARY", 0)  # Windows would write two bytes for an end of line
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LINE_BYTES = 8192  # around the outcomes of a block, in two lines of the file
_OUTCOME_BYTES, _VALUE_BYTES = 128, 24  # at most
_HEAD = 64  # hexadecimal digits
START = "0" * _HEAD
"""Stands for the head of the line before the first."""


class FileJournal:
    """A journal in a file.

    ``path``: created by the first line.
    ``n_values``: noisy values in each outcome, where histograms are released; may be set later.
    ``key``: of the chain.
    ``mark``: its second place; None: it has none.

    Attributes
    ----------
    records : int
        Number of lines.
    head : str
        HMAC of the last line: it names the journal as it is, and tells nothing about its content.
    files : dict of str to list
        Digests that each file was to have, the last one last; None: not there.
    asked : bool
        Whether any query, or step, may have been drawn.
    steps : int
        Up to which step of DP-SGD noise may have been drawn.
    """

    def __init__(
        self, path: Path, n_values: int = 0, key: bytes = b"", mark: Mark | None = None
    ) -> None:
        self._path = path
        self._key = key
        self._mark = mark
        self._is_marked = False  # whether a line says so
        self._room = room_beside(path)
        self.n_values = n_values
        self.records, self.head = 0, START
        self.files: dict[str, list[str | None]] = {}
        self._before_files: dict[int, str] = {}  # heads before lines that name a file, by records
        self._before = 0, START  # the last line
        self._newest_file: str | None = None  # the last line's, if it names one
        self._former_file: str | None = None  # the same of the line before
        self._before_newest = (
            0,
            START,
        )  # before the last lines, as far as they name one and the same file
        self.asked = False
        self.steps = 0
        self._settled: list[Outcome] = []
        self._reserved: tuple[int, list[int]] | None = None
        self._size = 0  # bytes of whole lines in the file
        self._torn = 0  # bytes of a torn line after them
        self._unended = False  # whether the last whole line lacks its end
        marked = None if mark is None else mark.read()
        self._not_reached = dict(marked or {})
        self._replay()
        self._require_marked(marked)

    def vouch(self, name: str, digest: str | None) -> None:
        """Make durable which digest a file is going to have; None: it is not there.

        ``name``: of a file in the folder, such as ``vault/votes.npy``.
        """
        entry = {"file": [name, digest]}
        self._append(entry)
        self._take_file(entry["file"])

    def was_cut_off(self, name: str, digest: str | None) -> bool:
        """Tell whether a file has the digest that it had before the last line, which names it.

        Then a crash came between that line and the file.
        """
        return self._newest_file == name and digest == [None, *self.files[name]][-2]

    def point_before(self, name: str) -> tuple[int, str]:
        """Tell number of lines and head, without the last lines that name this very file.

        There are several where a crash came between a line and its file.
        """
        return self._before_newest if self._newest_file == name else (self.records, self.head)

    def has_been_at(self, records: int, head: str) -> bool:
        """Tell whether :meth:`point_before` may have returned this: if not, it is another, or older."""
        return head == self._before_files.get(records)

    @property
    def reserved(self) -> tuple[int, list[int]] | None:
        """Queries that may have been drawn, and have no outcome: position of the first, and their rows."""
        return self._reserved

    def settled(self) -> list[Outcome]:
        """Outcomes that are durable, in order; queries that may have been drawn count as lost."""
        outcomes = list(self._settled)
        if self._reserved is not None:
            first, queries = self._reserved
            outcomes += [
                Outcome(first + step, query, LOST, NO_LABEL) for step, query in enumerate(queries)
            ]
        return outcomes

    def reserve(self, first: int, queries: list[int]) -> None:
        """Make durable that these queries, from position ``first`` on, may be drawn from now on."""
        if self._reserved is not None:
            self._close_lost(first)
        outcome_bytes = _OUTCOME_BYTES + _VALUE_BYTES * self.n_values
        self._set_room_aside(_LINE_BYTES + outcome_bytes * len(queries))
        entry: dict[str, Any] = {"reserve": [first, queries]}
        if self._mark is not None:
            self._mark.make()
            entry["marked"] = True
        self._append(entry)
        self._reserved, self.asked = (first, queries), True
        self._set_mark(is_durable=True)

    def charge_steps(self, steps: int, room: int) -> None:
        """Make durable that noise may be drawn for steps up to this number from now on.

        ``room``: bytes that what is drawn will need, set aside first.
        Raises OSError if there is no such room: nothing was charged then.
        """
        if steps <= self.steps:
            raise ValueError(f"step {steps} was charged before: no step is taken twice")
        self._set_room_aside(_LINE_BYTES + room)
        self._append({"steps": steps})
        self.steps, self.asked = steps, True

    def settle(self, outcomes: list[Outcome]) -> None:
        """Make the outcomes of the reserved queries durable; the rest was never drawn."""
        entry = {"settle": [_row(outcome) for outcome in outcomes]}
        self.in_the_room(lambda: self._append(entry), self._is_whole)
        self._settled += outcomes
        self._reserved = None
        self._set_mark(is_durable=False)  # the next reservation's is

    def _set_mark(self, *, is_durable: bool) -> None:
        mark = self._mark
        if mark is not None:
            self.in_the_room(lambda: mark.write(self.records, self.head, is_durable=is_durable))

    def _require_marked(self, marked: dict[int, str] | None) -> None:
        """Refuse a journal that has not been where its mark says, or whose mark is gone."""
        if self._mark is not None and marked is None and self._is_marked:
            raise StudyMismatchError(
                f"{self._path.with_name(self._mark.name)}, which says how far the journal has come, is gone: "
                "nothing was asked or charged; restore the whole folder from one backup"
            )
        if self._not_reached:
            raise StudyMismatchError(
                f"the journal {self._path} has {self.records:,} lines, and not all that were written once "
                f"({max(self._not_reached):,} at least): nothing was asked or charged; restore the whole "
                "folder from one backup"
            )

    def _is_whole(self) -> bool:
        return self._path.stat().st_size == self._size + self._torn

    def in_the_room(
        self, write: Callable[[], None], may_retry: Callable[[], bool] = lambda: True
    ) -> None:
        """Write what was drawn: if the disk is full by now, once more in the room that was set aside.

        ``may_retry``: whether a write that failed left everything as it was.
        """
        try:
            write()
        except OSError as error:
            if error.errno not in _FULL or not self._room.exists() or not may_retry():
                raise
            self.give_room_back()
            write()

    def give_room_back(self) -> None:
        """Free what was set aside; the next reservation sets it aside anew."""
        self._room.unlink(missing_ok=True)

    def _set_room_aside(self, size: int) -> None:
        """Take space on the disk. Raises OSError if there is none: nothing was reserved then."""
        descriptor = os.open(self._room, os.O_WRONLY | os.O_CREAT | _AS_IT_IS, 0o600)
        try:
            if os.fstat(descriptor).st_size < size:
                written = 0
                while written < size:
                    rest = bytes(size - written)
                    if hasattr(os, "pwrite"):
                        written += os.pwrite(descriptor, rest, written)
                    else:  # Windows; the file has just been opened, so this goes on where it ended
                        written += os.write(descriptor, rest)
        except OSError:
            self.give_room_back()
            raise
        finally:
            os.close(descriptor)

    def _close_lost(self, first: int) -> None:
        """Settle a reservation that a crash left open: its queries up to ``first`` are lost."""
        assert self._reserved is not None
        start, queries = self._reserved
        self.settle(
            [
                Outcome(start + step, query, LOST, NO_LABEL)
                for step, query in enumerate(queries)
                if start + step < first
            ]
        )

    def _append(self, entry: dict[str, Any]) -> None:
        head, line = chained(self._key, self.head, entry)
        line = b"\n" * self._unended + line
        create = 0 if self._size else os.O_CREAT
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | create | _AS_IT_IS, 0o600)
        try:
            if os.fstat(descriptor).st_size != self._size + self._torn:
                raise StudyMismatchError(
                    f"the journal {self._path} was written to by somebody else, or a write failed: "
                    "nothing more was asked; start again to go on from what is durable"
                )
            try:
                os.ftruncate(descriptor, self._size)
                self._torn = 0
                write_all(descriptor, line)
                os.fsync(descriptor)
                if not self._size:
                    sync(self._path.parent)
            except (
                BaseException
            ):  # a line that was not acted upon must not stand in the next one's way
                os.ftruncate(descriptor, self._size)
                raise
        finally:
            os.close(descriptor)
        self._size += len(line)
        self._unended = False
        self._follow(head)

    def _follow(self, head: str) -> None:
        self._former_file, self._newest_file = self._newest_file, None
        self._before = self.records, self.head
        self.records, self.head = self.records + 1, head
        if self._not_reached.get(self.records) == head:
            del self._not_reached[self.records]

    def _replay(self) -> None:
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        *lines, rest = content.split(b"\n")
        # Only the end of the last line is damaged, or not there: it is whole, and may have been acted upon.
        for last in (rest, rest[:-1]):
            if self._text_of(last, lines[-1][:_HEAD] if lines else START.encode()) is not None:
                lines.append(last)
                self._unended, rest = True, rest[len(last) :]
                break
        for number, line in enumerate(lines, 1):
            try:
                text = self._text_of(line, self.head.encode())
                if text is None:
                    raise ValueError
                self._follow(line[:_HEAD].decode())
                self._take(json.loads(text))
            except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
                raise StudyMismatchError(
                    f"the journal {self._path} is damaged in line {number}, or not of the key beside it: "
                    "nothing was asked or charged; restore both from one backup"
                ) from None
        self._size, self._torn = len(content) - len(rest), len(rest)

    def _text_of(self, line: bytes, before: bytes) -> bytes | None:
        head, text = line[:_HEAD], line[_HEAD + 1 :]
        whole = line[_HEAD : _HEAD + 1] == b" " and head == _head(self._key, before, text)
        return text if whole else None

    def _take_file(self, row: list[Any]) -> None:
        name, digest = row
        _require(isinstance(name, str) and (digest is None or isinstance(digest, str)))
        self.files.setdefault(name, []).append(digest)
        self._newest_file = name
        if name != self._former_file:
            self._before_newest = self._before
        self._before_files[self._before[0]] = self._before[1]

    def _take(self, entry: dict[str, Any]) -> None:
        if "file" in entry:
            self._take_file(entry["file"])
            return
        if "steps" in entry:
            steps = entry["steps"]
            _require(type(steps) is int and steps > self.steps)
            self.steps, self.asked = steps, True
            return
        expected = self._settled[-1].position + 1 if self._settled else 0
        if "reserve" in entry:
            first, queries = entry["reserve"]
            _require(self._reserved is None and first == expected)
            self._reserved = (int(first), [int(query) for query in queries])
            self.asked = True
            self._is_marked = self._is_marked or bool(entry.get("marked"))
            return
        outcomes = [_outcome(row) for row in entry["settle"]]
        if self._reserved is None:
            raise ValueError
        first, queries = self._reserved
        for step, outcome in enumerate(outcomes):
            _require(outcome.position == first + step and outcome.query == queries[step])
        self._settled += outcomes
        self._reserved = None


def room_beside(path: Path) -> Path:
    """Where a journal sets room aside."""
    return path.with_name(f".{path.name}.room")


def chained(key: bytes, before: str, entry: Any) -> tuple[str, bytes]:
    """Make the line of an entry.

    ``before``: head of the line before.
    Returns ``head``: of this one.
    Returns ``line``: with its end.
    """
    text = json.dumps(entry, separators=(",", ":")).encode()
    head = _head(key, before.encode(), text)
    return head.decode(), b"%s %s\n" % (head, text)


def _head(key: bytes, before: bytes, text: bytes) -> bytes:
    return hmac.digest(key, before + text, "sha256").hex().encode()


def _row(outcome: Outcome) -> list[Any]:
    row: list[Any] = [outcome.position, outcome.query, outcome.verdict, outcome.label]
    check, counts = outcome.noisy_check, outcome.noisy_counts
    if check is not None or counts is not None:
        row.append(None if check is None else _steps(check))
        row.append(None if counts is None else [_steps(count) for count in counts])
    return row


def _outcome(row: list[Any]) -> Outcome:
    position, query, verdict, label, *values = row
    outcome = int(position), int(query), str(verdict), int(label)
    if not values:
        return Outcome(*outcome)
    check, counts = values
    return Outcome(
        *outcome,
        noisy_counts=None if counts is None else tuple(_votes(steps) for steps in counts),
        noisy_check=None if check is None else _votes(check),
    )


def _steps(value: float) -> int:
    """Tell a value in whole steps of the grid; a value between two steps was never drawn here."""
    steps = int(value / GRID)
    _require(steps * GRID == value)
    return steps


def _votes(steps: Any) -> float:
    _require(isinstance(steps, int) and not isinstance(steps, bool))
    return float(steps * GRID)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def write_all(descriptor: int, content: bytes) -> None:
    """Write everything: one ``write`` may take only the first part, without an error."""
    while content:
        content = content[os.write(descriptor, content) :]
