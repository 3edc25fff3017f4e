"""An answer: its value, how far off it is, whose records count how much, and what everybody paid."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from collegium.plain_text import in_a_row
from collegium.statistics.answer_words import (
    header_of,
    in_digits,
    not_heard_in_words,
    numbers_of,
    price_in_words,
)
from collegium.statistics.estimates import Estimate

_MOST_LINES = 40
_UNREAD = (math.nan, math.nan)
DROWNED = (
    "the noise is as large as the whole range of possible values; spend more on it, or ask "
    "about more people"
)
"""The end of a note that must stand beside the value, wherever it is printed."""


@dataclass(frozen=True, eq=False)
class Answer:
    """An answer with noise, which may be shown to anybody.

    Attributes
    ----------
    question : str
        In words.
    cells : DataFrame
        One row for each cell (of public keys), with *value*, *standard_error* (towards the table's own value,
        noise and unequal weights together), *lower* and *upper* (an interval for it), and
        *population_error* (towards the people from whom those in the table were drawn).
    confidence : float
        Of the intervals.
    effective : float
        The number of people that, counted equally, would give the same precision.
    people : int
        How many there are.
    represented : DataFrame
        Of each group: *people*, their *share*, and their *weight* as a share of all weight.
    paid : DataFrame
        Of each group: *budget* (ε per person), *epsilon* (paid for this answer by itself, at the group's δ),
        and *share* of the budget as a ledger counts it (of μ², or of ε where it promises that; without a
        ledger, of ε with Laplace noise).
    how : str
        How it was made, in a sentence.
    groups : DataFrame or None
        Of a calibrated answer: each group's own mean (per person), its standard error, and in ``attrs`` the
        p-value of their being the same in all groups.
    matrix : DataFrame or None
        Of covariances, correlations and regressions: the table of values; *cells* lists them.
    notes : tuple of str
        What to mind.
    facts : DataFrame or None
        Where the schema knows what is asked for (``mean``, ``sd``, ``shares``): *known*, *value*, and *z*,
        how many standard errors (towards the population) lie between them.
    unit : str
        Of values: "people" or "rows" of counts, "%" of shares (0.1 is 10 %), "date" of dates (days since
        1970), "days", or the column's own ("").
    counted : str
        Of counts: what is counted, "people" or "rows, at most 3 per person".
    silent : dict of str to int
        By level, how many people of the table have nothing left in the ledger: the answer is about others.
    sentence : str
        The question, as people say it.

    Examples
    --------
    >>> from collegium import Schema, Statistics
    >>> people = pd.DataFrame({"age": [30, 40, 50, 60] * 500})
    >>> schema = Schema({"age": {"kind": "whole", "bounds": [18, 90], "missing": False}})
    >>> budgets = [1.0] * 1000 + [2.0] * 1000
    >>> answer = Statistics(people, budgets, schema=schema, noise_seed=1).mean("age")
    >>> print(answer)
    mean age: 44.91 (standard error 0.17; 95 %: 44.57 to 45.24)
    >>> answer.represented["weight"].round(2).to_dict()
    {'ε=1': 0.35, 'ε=2': 0.65}
    """

    question: str
    cells: pd.DataFrame
    confidence: float
    effective: float
    people: int
    represented: pd.DataFrame
    paid: pd.DataFrame
    how: str
    groups: pd.DataFrame | None = None
    matrix: pd.DataFrame | None = None
    notes: tuple[str, ...] = field(default=())
    facts: pd.DataFrame | None = None
    unit: str = ""
    counted: str = ""
    silent: Mapping[str, int] = field(default_factory=dict)
    sentence: str = ""

    @property
    def value(self) -> Any:
        """A number; by keys, a Series; of covariances a DataFrame. NaN: too few people to say."""
        if self.matrix is not None:
            return self.matrix
        return self._only("value")

    @property
    def standard_error(self) -> Any:
        """Towards the value over the people in the table."""
        return self._only("standard_error")

    @property
    def interval(self) -> Any:
        """Lower and upper end, a tuple; by keys, a DataFrame."""
        if self._is_one:
            return float(self.cells["lower"].iloc[0]), float(self.cells["upper"].iloc[0])
        return self.cells[["lower", "upper"]]

    @property
    def price(self) -> str:
        """What it cost each person, as a share of the budget, in words."""
        return price_in_words(self.paid["share"].to_dict())

    @property
    def population_interval(self) -> Any:
        """As :attr:`interval`, for the people from whom those in the table were drawn."""
        from scipy.special import ndtri  # comes with every answer's interval anyway

        margin = -ndtri((1 - self.confidence) / 2) * self.cells["population_error"]
        ends = pd.DataFrame(
            {
                "lower": np.minimum(self.cells["lower"], self.cells["value"] - margin),
                "upper": np.maximum(self.cells["upper"], self.cells["value"] + margin),
            }
        )
        if self._is_one:
            return float(ends["lower"].iloc[0]), float(ends["upper"].iloc[0])
        return ends

    def to_frame(self) -> pd.DataFrame:
        """One row for each cell, with its question: to be put together with other answers."""
        table = self.cells.reset_index(names="" if self._is_one else None)
        if self._is_one:
            table = table.drop(columns="")
        table.insert(0, "question", self.question)
        return table

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON; what is not known is None."""
        cells = self.cells.reset_index(drop=self._is_one)
        return {
            "question": self.question,
            "sentence": self.sentence,
            "cells": [_plain(row) for row in cells.to_dict("records")],
            "keys": [] if self._is_one else [str(name) for name in self.cells.index.names],
            "confidence": self.confidence,
            "effective": self.effective,
            "people": self.people,
            "represented": [
                _plain(row) for row in self.represented.reset_index().to_dict("records")
            ],
            "paid": [_plain(row) for row in self.paid.reset_index().to_dict("records")],
            "how": self.how,
            "notes": list(self.notes),
            "unit": self.unit,
            "counted": self.counted,
            "silent": dict(self.silent),
        }

    def __str__(self) -> str:
        nothing = [note for note in self.notes if note.endswith(DROWNED)]
        about = not_heard_in_words(self.people, self.silent)
        if self._is_one:
            value, said = self._in_words(self.cells.iloc[0], alone=True)
            beside = "; ".join(filter(None, [said, about]))
            line = f"{self.question}: {value}" + f" ({beside})" * bool(beside)
            return "; ".join([line, *nothing])
        rows = list(self.cells.iterrows())
        lines = []
        for key, row in rows[:_MOST_LINES]:
            value, said = self._in_words(row)
            lines.append(f"  {_key(key)}: {value}" + f" ({said})" * bool(said))
        more = [f"  … and {len(rows) - len(lines):,} more"] * (len(rows) > len(lines))
        head = self.question + f", in {self.counted}" * bool(self.counted)
        head += header_of([row for _, row in rows], self.unit, self.confidence)
        head += f", {about}" * bool(about)
        return "\n".join([f"{head}:", *lines, *more, *nothing])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = self.cells.to_html(float_format=lambda number: f"{number:.5g}", max_rows=40)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<p><b>{html.escape(self.sentence or self.question)}</b></p>{shown}"
            f"<p>{html.escape(self.how)}</p><p>Precision: "
            f"as if {self.effective:,.0f} of {self.people:,} people had been counted equally; "
            f"{html.escape(self.price)}.</p>" + (f"<ul>{notes}</ul>" if notes else "")
        )

    @property
    def _is_one(self) -> bool:
        return len(self.cells) == 1 and self.cells.index.names == [None]

    def _only(self, name: str) -> Any:
        return float(self.cells[name].iloc[0]) if self._is_one else self.cells[name]

    def _in_words(
        self, row: Mapping[str, float] | pd.Series, alone: bool = False
    ) -> tuple[str, str]:
        """Say a value, and what stands in parentheses behind it. ``alone``: no header explains it."""
        value, error, between = numbers_of(row, self.unit)
        if not value:
            return "too few people to say", ""
        if row["standard_error"] == 0 and alone:
            return f"{value} {self.counted}".rstrip(), "public, and exact"
        if not alone:
            error = f" ± {error}" if error else ""
            counted = f" {self.unit}" if self.counted else ""
            return f"{value}{error}{counted}", "; ".join(filter(None, [between, _read(row, "±")]))
        said = [f"standard error {error}"] * bool(error)
        if between:
            confidence = f"{100 * self.confidence:g} %: " * (" to " in between)
            said.append(f"{confidence}{between}")
        said += filter(None, [_read(row, "standard error")])
        return f"{value} {self.counted}".rstrip(), "; ".join(said)


def _read(row: Mapping[str, float] | pd.Series, sign: str) -> str:
    """Say how many rows had what is asked about. ``sign``: what stands before a standard error."""
    if "readable" not in row or math.isnan(row["readable"]):
        return ""
    rows, error = row["readable"], row["readable_error"]
    digits = in_digits(error, rows)
    if sign == "±":
        return f"of {rows:,.{digits}f} ± {error:,.{digits}f} rows that could be read"
    return f"of {rows:,.{digits}f} rows that could be read, {sign} {error:,.{digits}f}"


def table_of(estimates: list[Estimate], index: pd.Index | None) -> pd.DataFrame:
    """Make the cells of an answer."""
    read = [one.readable for one in estimates]
    found = pd.DataFrame(
        {
            "value": [one.value for one in estimates],
            "standard_error": [one.standard_error for one in estimates],
            "lower": [one.lower for one in estimates],
            "upper": [one.upper for one in estimates],
            "population_error": [
                math.sqrt(one.noise + one.people + one.sample) for one in estimates
            ],
        },
        index=index,
    )
    if any(read):
        found["readable"], found["readable_error"] = zip(
            *(one or _UNREAD for one in read), strict=True
        )
    return found


def _key(key: Any) -> str:
    return in_a_row(key if isinstance(key, tuple) else [key])


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        str(name): None
        if isinstance(value, float | np.floating) and not math.isfinite(value)
        else value.item()
        if isinstance(value, np.generic)
        else value
        for name, value in row.items()
    }
