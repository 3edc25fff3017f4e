"""A file of answers that were given: whoever asks the same again gets the same, for free."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        self._file, self._private = file, private_noise
        self._head = {"schema": schema.digest, "table": table}
        self._answers: list[dict[str, Any]] = []
        if file is None or not file.exists() or not file.stat().st_size:
            return
        kept = read_json(file, _SHAPE, "give another file with --record", InputError)
        if kept["schema"] != schema.digest:
            raise InputError(
                f"{file} holds answers under another schema: its bounds or categories differ; give the "
                "schema of then, or another file"
            )
        if kept["table"] != table:
            raise InputError(
                f"{file} holds answers about {kept['table']!r}, and {table!r} is asked now: give another "
                "file"
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
