"""What a user said already, is told and is asked; and the study that is being begun."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from collegium.budgets import DEFAULT_DELTA
from collegium.study.first_steps.look import Files, FirstLook

NUMBERS, LOOK, NOBODY = "numbers", "look", "none"
"""Answers: ε itself stands there; read the names of the levels; every record is another person's."""


@dataclass(frozen=True)
class Wanted:
    """What the user said already; None: nothing.

    ``owner``: a column; :data:`NOBODY`: every record is another person's.
    ``column``: of the privacy levels.
    ``levels``: "high=1,low=3"; :data:`NUMBERS`: ε itself stands there.
    ``may_look``: whether the names of the levels may be read.
    ``classes``: "no,yes".
    """

    target: str | None = None
    owner: str | None = None
    column: str | None = None
    levels: str | None = None
    may_look: bool = False
    delta: float = DEFAULT_DELTA
    classes: str | None = None
    exclude: tuple[str, ...] = ()
    decimal: str | None = None


@dataclass(frozen=True)
class Question:
    """What only the user knows.

    ``text``: as a terminal asks it.
    ``flag``: how to say it without a terminal, and what it is.
    ``read``: what an answer means; raises InputError where it means nothing.
    ``proposal``: the answer of who just presses Enter.
    ``is_needed``: whether there can be no study without an answer.
    """

    text: str
    flag: str
    read: Callable[[str], Any]
    proposal: str | None = None
    is_needed: bool = True


class Talk(Protocol):
    """How the user is told, and asked."""

    def tell(self, sentence: str) -> None:
        """Say what was guessed, and from what."""

    def ask(self, question: Question) -> Any:
        """Return what the question's ``read`` makes of the answer; None if there is nobody to ask."""

    def settle(self) -> None:
        """Refuse to go on, with InputError, if something that is needed was not answered."""


@dataclass(frozen=True, eq=False)
class Begun:
    """A study that is being begun.

    ``folder``: where its file will be; paths in it are relative to that.
    """

    look: FirstLook
    wanted: Wanted
    talk: Talk
    folder: Path

    @property
    def files(self) -> Files:
        """The files of its records."""
        return self.look.files

    def name(self, role: str) -> str:
        """Call the file of a role as its folder does."""
        return self.files.name(role)

    def paths(self) -> dict[str, str]:
        """Write the files of records, by role."""
        return {role: self.written(path) for role, path in self.files.records()}

    def written(self, path: Path) -> str:
        """Write a path relative to the study's folder, unless it was given in full and lies elsewhere."""
        folder, place = self.folder.resolve(), path.resolve()
        if path.is_absolute() and not place.is_relative_to(folder):
            return path.as_posix()
        try:
            return Path(os.path.relpath(place, folder)).as_posix()
        except ValueError:  # on another drive
            return place.as_posix()
