"""A file of answers that were given: whoever asks the same again gets the same, for free."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from collegium.durable import write_durably
from collegium.errors import InputError
from collegium.json_files import read_json

if TYPE_CHECKING:
    from collegium.data.schema import Schema
    from collegium.statistics.answers import Answer
    from collegium.statistics.query import Query

_ENTRY = {
    "question": str,
    "weights": str,
    "calibrated": bool,
    "private_noise": bool,
    "text": str,
    "effective": (int, float),
    "people": int,
    "notes": [str],
}
_PATIENCE_S = 1.0
"""How long another command is waited for without a word."""
_SHAPE = {"schema": str, "table": str, "answers": [_ENTRY]}


class NotKeptError(InputError):
    """An answer is there, and its file could not be written."""


class AnswerRecord:
    """Answers to questions about one table, under one schema.

    They are told apart by question, rule of weights, whether they are calibrated, and whether their noise is
    private. Answers are what was released: nothing in it is private.

    ``file``: None: nothing is kept.
    ``table``: name of the file with the private table.
    ``private_noise``: of the answers that are wanted; of new ones, too.
    """

    def __init__(
        self, file: Path | None, schema: Schema, table: str, private_noise: bool = True
    ) -> None:
        # A link is followed: its file is what is read, locked and replaced.
        self._file, self._private = None if file is None else file.resolve(), private_noise
        self._head = {"schema": schema.digest, "table": table}
        self._answers: list[dict[str, Any]] = []
        self.read()

    @contextlib.contextmanager
    def locked(self, waiting: Callable[[str], None]) -> Iterator[None]:
        """Keep other commands from asking what is to be kept here, and read what they kept until now.

        ``waiting``: is told, in words, where another one has it.
        """
        if self._file is None:
            yield
            return
        name = self._file.with_name(f".{self._file.name}.lock")
        try:
            os.close(os.open(name, os.O_RDWR | os.O_CREAT, 0o644))  # a lock would wait for ever
        except OSError as error:
            raise InputError(
                f"{name} cannot be written ({error.strerror}), so no answer can be kept beside it: give "
                "another place with --record"
            ) from None
        lock = FileLock(name, mode=0o644)
        try:
            lock.acquire(timeout=_PATIENCE_S)
        except Timeout:
            waiting(
                f"another command is asking, and keeps its answers in {self._file}: waiting for it"
            )
            lock.acquire()
        try:
            self.read()
            yield
        finally:
            lock.release()

    def read(self) -> None:
        """Take the answers that the file holds now."""
        file = self._file
        if file is None or not file.exists():
            return
        if not file.is_file():
            raise InputError(f"{file} is no file: give another one with --record")
        if not file.stat().st_size:
            return
        kept = read_json(file, _SHAPE, "give another file with --record", InputError)
        if kept["schema"] != self._head["schema"]:
            raise InputError(
                f"{file} holds answers under another schema: its bounds or categories differ; give the "
                "schema of then, or another file"
            )
        if kept["table"] != self._head["table"]:
            raise InputError(
                f"{file} holds answers about {kept['table']!r}, and {self._head['table']!r} is asked now: "
                "give another file"
            )
        self._answers = kept["answers"]

    def find(self, asked: Query, *, weights: str, calibrated: bool) -> dict[str, Any] | None:
        """Take the answer that was given to a question; None where it is a new one."""
        wanted = (str(asked), weights, calibrated, self._private)
        names = ("question", "weights", "calibrated", "private_noise")
        for one in self._answers:
            if tuple(one[name] for name in names) == wanted:
                return one
        return None

    def add(self, asked: Query, answer: Answer, *, weights: str, calibrated: bool) -> None:
        """Keep an answer, durably. Raises NotKeptError if that cannot be done; it is found all the same."""
        entry = {
            **answer.to_dict(),
            "question": str(asked),
            "weights": weights,
            "calibrated": calibrated,
            "private_noise": self._private,
            "text": str(answer),
        }
        if self.find(asked, weights=weights, calibrated=calibrated) is None:
            self._answers.append(json.loads(json.dumps(entry)))
        if self._file is None:
            return
        content = {**self._head, "answers": self._answers}
        try:
            write_durably(
                self._file, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"
            )
        except OSError as error:
            raise NotKeptError(
                f"{self._file} cannot be written ({error.strerror or error}), and an answer that is paid for "
                "is not kept there"
            ) from None
