"""What can go wrong, in one line each: what was given, what is allowed, what to do.

Every error that Collegium raises on purpose is a :class:`CollegiumError`; the command line prints its
message as one line and exits with 2. Messages never contain private records, votes or
data-dependent costs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ONE_PRESS_S = 1.0
"""Ctrl-C within so many seconds is one: fingers, and terminals that tell whole groups, send several."""

WHERE = "\0"
"""Stands for a record in the template of a message."""


class CollegiumError(ValueError):
    """Base of every error that Collegium raises on purpose."""


class InputError(CollegiumError):
    """Something that was given cannot be used: a value, a column, a file or a table."""


class RecordError(InputError):
    """Something is wrong with single records; the message counts them as a person counts.

    ``template``: the message, with :data:`WHERE` for each position.
    ``positions``: of records in what was given, from 0.
    """

    def __init__(self, template: str, *positions: int) -> None:
        self.template, self.positions = template, tuple(int(position) for position in positions)
        message = template
        for position in self.positions:
            message = message.replace(WHERE, counted(position), 1)
        super().__init__(message)

    def __reduce__(self) -> tuple[type[RecordError], tuple[str | int, ...]]:
        return RecordError, (self.template, *self.positions)

    def among(self, rows: Sequence[int] | NDArray[np.intp]) -> RecordError:
        """Count in the file, where only these of its rows were given."""
        return RecordError(self.template, *(int(rows[position]) for position in self.positions))


class ModelError(InputError):
    """A model cannot do its part. The message speaks of the model alone, never of records it saw."""


class ConfigError(InputError):
    """A study's TOML file names an unknown key, lacks one, or holds a value that is not allowed."""


class BudgetExceededError(CollegiumError):
    """A query was refused because it would overspend somebody's privacy budget."""


class NothingReleasedError(CollegiumError):
    """The budgets were spent (or the queries used up) before enough labels could be released."""


class StudentError(CollegiumError):
    """Labels were released and paid for, but the student cannot learn from them. The labels are kept."""


class StudyMismatchError(CollegiumError):
    """A study folder was made from other inputs or another configuration, and is left untouched."""


class LedgerError(CollegiumError):
    """A ledger cannot be used, or holds what it should not. Nothing was released or charged."""


class PrivacyWarning(UserWarning):
    """A choice is allowed, but weakens or voids somebody's privacy, or may not mean what was meant."""


class LedgerWarning(UserWarning):
    """Something about a ledger, or how it is used, may not be what was meant."""


class StudentWarning(UserWarning):
    """A student is no better than one that always gives the same answer, or looks like one."""


class WorkerWarning(UserWarning):
    """A worker ended while it trained or asked teachers; what it was doing is done again."""


def counted(position: int) -> str:
    """Name a record of a table as a person counts.

    ``position``: of the record in its file or array, from 0.

    Examples
    --------
    >>> counted(0)
    'record 1 (row 2 of a file with a header)'
    """
    return f"record {position + 1:,} (row {position + 2:,} of a file with a header)"


def without_positions(message: str) -> str:
    """Leave out where the first of some records is: in a table without an order, that says nothing.

    Examples
    --------
    >>> without_positions(f"2 record(s) without a label, first {counted(4)}: label or drop them")
    '2 record(s) without a label: label or drop them'
    >>> without_positions(f"2 owner(s) with two budgets, first {counted(4)} and {counted(6)}: give one")
    '2 owner(s) with two budgets: give one'
    """
    one = r"record [\d,]+ \(row [\d,]+ of a file with a header\)"
    return re.sub(rf",? first(?: in)? {one}(?: and {one})?", "", message)


def frames_to_user() -> int:
    """Count the frames from the caller to the user's own code: a ``stacklevel`` for the caller's warning."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("collegium."):
        level, frame = level + 1, frame.f_back
    return level
