"""Questions that a steward asks at the desk: what they would cost, and what the answers are."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collegium.desk.commands import Command
from collegium.desk.tables import LEVELS, Table, Tables
from collegium.durable import private_folder
from collegium.errors import InputError
from collegium.json_files import read_json
from collegium.ledger.ledger import Ledger
from collegium.statistics.answer_notes import costs_anything, notes_apart
from collegium.statistics.answer_words import price_in_words
from collegium.statistics.planned import OF_SHARES

_MOST, _LEAST_SHARE = 50, 0.001
_BUSY = "other questions are being asked: wait for their answers, then ask these"


@dataclass(frozen=True)
class Asked:
    """What a steward asks of a table, and which share of what people have left it may use.

    Raises InputError if there is no question, or too many, or no such share.
    """

    table: Table
    questions: tuple[str, ...]
    share: float

    def __post_init__(self) -> None:
        if not self.questions:
            raise InputError("no question was given: write one in each line")
        if len(self.questions) > _MOST:
            raise InputError(
                f"{len(self.questions):,} questions were given: at most {_MOST} at once"
            )
        if not _LEAST_SHARE <= self.share <= 1:
            raise InputError(
                "say which share of what people have left may be used, from "
                f"{100 * _LEAST_SHARE:g} to 100 per cent"
            )


@dataclass(frozen=True)
class Price:
    """What a question would cost, and how far off its answer would be.

    ``off_by``: in its own unit; empty where it is not known beforehand. ``price``: of each person's budget.
    """

    question: str
    off_by: str
    price: str


@dataclass(frozen=True)
class Given:
    """An answer that was given.

    ``lines``: the answer, with its interval. ``price``: what it cost, in words. ``notes``: what to know.
    """

    lines: tuple[str, ...]
    price: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Answers:
    """Answers, and what to know of all of them."""

    given: tuple[Given, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, entries: Sequence[Mapping[str, Any]], are_old: Sequence[bool]) -> Answers:
        """Read them as a record keeps them. ``are_old``: which were answered before, and so cost nothing."""
        own, of_all = notes_apart(entries)
        given = [
            Given(tuple(entry["text"].splitlines()), _price(entry, is_old), tuple(notes))
            for entry, is_old, notes in zip(entries, are_old, own, strict=True)
        ]
        return cls(tuple(given), tuple(of_all))


class Questions:
    """What is asked at a desk about its private tables.

    Parameters
    ----------
    folder : Path
        Of the desk.
    environment : mapping of str to str
        Variables that commands get.
    key : Path or None
        Of the ledger's key file, where it is not beside the ledger.
    tables : Tables
    ledger : Ledger
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        key: Path | None,
        tables: Tables,
        ledger: Ledger,
    ) -> None:
        self._folder, self._key = folder / "asked", key
        self._tables, self._ledger = tables, ledger
        private_folder(self._folder)
        self._environment, self._asking = environment, threading.Lock()

    def prices(self, asked: Asked, levels: str) -> list[Price]:
        """Say what questions would cost, and how far off answers would be. Spends nothing.

        ``levels``: file that says what levels mean.
        """
        told = self._told(asked, levels, ["--plan"])
        prices = [
            Price(
                one["question"],
                _off_by(one["predicted"][one["rule"]], one["unit"]),
                one["free"] or price_in_words(one["share"]).removeprefix("price: "),
            )
            for one in told["plans"]
        ]
        free = "was answered before, so it is free"
        return [*prices, *(Price(one, "", free) for one in told["from_record"])]

    def answers(self, asked: Asked, levels: str) -> Answers:
        """Ask, within everybody's budget. What was answered before is given again, for free."""
        told = self._told(asked, levels, [])["answers"]
        return Answers.of(told, [one["from_record"] for one in told])

    def earlier(self, table: Table) -> Answers | None:
        """Answers that were given about a table, newest first; None if there were none."""
        file = self._tables.answers_file(table)
        if not file.is_file():
            return None
        kept = read_json(file, {"answers": [dict]})["answers"][::-1]
        return Answers.of(kept, [False] * len(kept))

    def _told(self, asked: Asked, levels: str, more: Sequence[str]) -> dict[str, Any]:
        table = asked.table
        schema = self._tables.schema_file(table)
        if not schema.is_file():
            raise InputError(
                f"say first what is publicly known of {table.name}: its page asks for it"
            )
        command = Command(self._folder / "command", self._environment)
        records = self._folder / table.file
        key = [] if self._key is None else [f"--key={self._key}"]
        arguments = [
            "ask",
            *more,
            "--json",
            f"--schema={schema}",
            f"--privacy={LEVELS}",
            f"--policy={levels}",
            f"--owner={table.whose}",
            f"--spend={asked.share!r}",
            f"--record={self._tables.answers_file(table)}",
            *key,
            "--",
            records.name,
            *asked.questions,
        ]
        if not self._asking.acquire(blocking=False):
            raise InputError(_BUSY)
        try:
            if (now := command.state()) is not None and now.is_running:
                raise InputError(_BUSY)
            try:
                self._tables.write_granted(table, self._ledger, records)
                told: dict[str, Any] = json.loads(command.done(arguments, self._folder).said)
            finally:
                records.unlink(missing_ok=True)  # rows of people lie nowhere longer than it takes
        finally:
            self._asking.release()
        return told


def _off_by(number: float | None, unit: str) -> str:
    """Write a predicted error in its unit, as :class:`collegium.statistics.planned.Plan` does."""
    if number is None:
        return ""
    return f"{(100 if unit == OF_SHARES else 1) * number:,.3g}{unit}"


def _price(entry: Mapping[str, Any], is_old: bool) -> str:
    if is_old:
        return "answered before, so it is free"
    if not costs_anything(entry):
        return "it costs nobody anything"
    return price_in_words({str(row["group"]): row["share"] for row in entry["paid"]})
