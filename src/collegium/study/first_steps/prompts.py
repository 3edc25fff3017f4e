"""What a user has answered already, what is asked, and the draft that the answers complete."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from collegium.budgets import DEFAULT_DELTA
from collegium.data.engines.places import Place
from collegium.data.engines.sources import Source
from collegium.study.first_steps.look import Files

NOBODY = "none"
"""The answer that every record belongs to a different person."""


@dataclass(frozen=True)
class Answers:
    """What options have answered already; None: nothing.

    ``owner``: a column, or :data:`NOBODY`.
    ``column``: of the privacy levels.
    ``levels``: as :func:`~collegium.study.first_steps.levels.read_levels` takes them.
    ``classes``: "no,yes".
    """

    target: str | None = None
    owner: str | None = None
    column: str | None = None
    levels: str | None = None
    delta: float = DEFAULT_DELTA
    classes: str | None = None
    exclude: tuple[str, ...] = ()
    title: str | None = None


T = TypeVar("T")


@dataclass(frozen=True)
class Question(Generic[T]):
    """What only the user knows.

    ``text``: as a terminal asks it.
    ``option``: which option answers it, and what it means.
    ``read``: what an answer means; raises InputError where it means nothing.
    ``proposal``: the answer that pressing Enter gives.
    ``is_needed``: whether there can be no study without an answer.
    ``is_extra``: whether it is asked only of somebody who was asked something else: a command that says
        everything runs without a question.
    """

    text: str
    option: str
    read: Callable[[str], T]
    proposal: str | None = None
    is_needed: bool = True
    is_extra: bool = False


class Prompts(Protocol):
    """How the user is told, and asked."""

    def tell(self, sentence: str) -> None:
        """Show what was inferred, and from what."""

    def ask(self, question: Question[T]) -> T | None:
        """Return what the question's ``read`` makes of the answer; None if there is nobody to ask."""

    def require_answers(self) -> None:
        """Raise InputError if a question that needs an answer has none."""


@dataclass(frozen=True, eq=False)
class Draft:
    """A study in the making.

    ``folder``: where its file will be; paths in it are relative to that.
    """

    files: Files
    given: Answers
    prompts: Prompts
    folder: Path

    def relative(self, path: Source) -> str:
        """Write a path relative to the study's folder, unless it was given in full and lies elsewhere."""
        if isinstance(path, Place):
            return str(path.seen_from(self.folder))
        folder, place = self.folder.resolve(), path.resolve()
        if path.is_absolute() and not place.is_relative_to(folder):
            return path.as_posix()
        try:
            return Path(os.path.relpath(place, folder)).as_posix()
        except ValueError:  # on another drive
            return place.as_posix()
