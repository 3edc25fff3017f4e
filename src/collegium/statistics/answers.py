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
from collegium.statistics.estimates import Estimate

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
        and *share* of the budget (of μ², or of ε with Laplace noise).
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

    Examples
    --------
    >>> from collegium import Schema, Statistics
    >>> people = pd.DataFrame({"age": [30, 40, 50, 60] * 500})
    >>> schema = Schema({"age": {"kind": "whole", "bounds": [18, 90], "missing": False}})
    >>> budgets = [1.0] * 1000 + [2.0] * 1000
    >>> answer = Statistics(people, budgets, schema=schema, noise_seed=1).mean("age")
    >>> print(answer)
    mean age: 44.91 ± 0.17 (95 %: 44.57 to 45.24)
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
        }

    def __str__(self) -> str:
        nothing = [note for note in self.notes if note.endswith(DROWNED)]
        if self._is_one:
            said = f"{self.question}: {self._in_words(self.cells.iloc[0])}"
            return "; ".join([said, *nothing])
        lines = [
            f"  {_key(key)}: {self._in_words(row)}" for key, row in list(self.cells.iterrows())[:40]
        ]
        more = len(self.cells) - len(lines)
        return "\n".join(
            [
                f"{self.question}:",
                *lines,
                *([f"  … and {more:,} more"] if more > 0 else []),
                *nothing,
            ]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = self.cells.to_html(float_format=lambda number: f"{number:.5g}", max_rows=40)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<p><b>{html.escape(self.question)}</b></p>{shown}<p>{html.escape(self.how)}</p><p>Precision: "
            f"as if {self.effective:,.0f} of {self.people:,} people had been counted equally.</p>"
            + (f"<ul>{notes}</ul>" if notes else "")
        )

    @property
    def _is_one(self) -> bool:
        return len(self.cells) == 1 and self.cells.index.names == [None]

    def _only(self, name: str) -> Any:
        return float(self.cells[name].iloc[0]) if self._is_one else self.cells[name]

    def _in_words(self, row: Mapping[str, float] | pd.Series) -> str:
        if math.isnan(row["value"]):
            return "too few people to say"
        if math.isinf(row["lower"]) and math.isinf(row["upper"]):
            return f"{row['value']:,.3g} (it could be any number)"
        digits = in_digits(row["standard_error"], row["value"])
        lower, upper = (f"{row[end]:,.{digits}f}" for end in ("lower", "upper"))
        error = (
            "" if math.isnan(row["standard_error"]) else f" ± {row['standard_error']:,.{digits}f}"
        )
        value = f"{row['value']:,.{digits}f}{error}"
        if math.isnan(row["lower"]):  # nobody asked for an interval
            return value
        return f"{value} ({100 * self.confidence:g} %: {lower} to {upper})"


def table_of(estimates: list[Estimate], index: pd.Index | None) -> pd.DataFrame:
    """Make the cells of an answer."""
    return pd.DataFrame(
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


def in_digits(error: float, value: float) -> int:
    """Decimals to show beside so large an error: two of its digits."""
    if not math.isfinite(error) or error <= 1e-9 * abs(value):
        return 0 if value == round(value) else 2
    return int(min(12, max(0, 1 - math.floor(math.log10(error)))))


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
