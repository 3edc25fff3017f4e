"""The published numbers, as facts with their source."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from collegium.errors import InputError


@dataclass(frozen=True)
class PublishedNumber:
    """One number of a published table.

    Attributes
    ----------
    source : {"thesis", "paper", "lecture"}
        See :mod:`reproduction`.
    table : str
        Number of the table or figure, or the section of the text.
    dataset, metric : str
        What was measured on what.
    setup : str
        In words: the lower budget, or the groups.
    higher_budget, ratio : str
        As printed; empty for the baseline without individual budgets.
    variant : str
        Personalisation, ``none`` for the baseline.
    value : str
        As printed, for instance ``>2000``.
    """

    source: str
    table: str
    dataset: str
    metric: str
    setup: str
    higher_budget: str
    ratio: str
    variant: str
    value: str

    @property
    def number(self) -> float:
        """The value; for ``>2000`` the number that was exceeded."""
        return float(self.value.lstrip(">"))

    @property
    def is_lower_bound(self) -> bool:
        """Whether only "more than" is published."""
        return self.value.startswith(">")


@cache
def published_numbers() -> tuple[PublishedNumber, ...]:
    """Read all published numbers that ship with the package.

    Examples
    --------
    >>> rows = [row for row in published_numbers() if row.table == "6.4" and row.variant == "none"]
    >>> [(row.metric, row.value) for row in rows]
    [('labels', '221')]
    """
    text = (files("reproduction") / "published.csv").read_text(encoding="utf-8")
    return tuple(PublishedNumber(**row) for row in csv.DictReader(text.splitlines()))


def find_published(
    source: str,
    table: str,
    *,
    metric: str | None = None,
    dataset: str | None = None,
    setup: str | None = None,
    higher_budget: str = "",
    ratio: str = "",
    variant: str = "none",
) -> PublishedNumber | None:
    """Find one published number; None where the cell is empty.

    Parameters
    ----------
    source, table : str
        Which table.
    metric, dataset, setup : str, optional
        Needed where the table holds several.
    higher_budget, ratio, variant : str
        The cell.

    Raises
    ------
    InputError
        If several numbers fit.

    Examples
    --------
    >>> cell = find_published("thesis", "6.4", higher_budget="3", ratio="50%", variant="weighting")
    >>> cell.value
    '819'
    """
    found = [
        row
        for row in published_numbers()
        if (row.source, row.table) == (source, table)
        and (row.higher_budget, row.ratio, row.variant) == (higher_budget, ratio, variant)
        and metric in (None, row.metric)
        and dataset in (None, row.dataset)
        and setup in (None, row.setup)
    ]
    if len(found) > 1:
        raise InputError(
            f"{len(found)} published numbers of {source} {table} fit: say which metric, data set or setup"
        )
    return found[0] if found else None


def budget_from_text(text: str) -> float:
    """Turn a budget as it is printed into ε.

    Raises
    ------
    InputError
        If it is no number and no ``log`` of one.

    Examples
    --------
    >>> budget_from_text("3"), round(budget_from_text("log8"), 4)
    (3.0, 2.0794)
    """
    try:
        return math.log(float(text[3:])) if text.startswith("log") else float(text)
    except ValueError:
        raise InputError(
            f"a budget must be a number or 'log' and a number such as log8, got {text!r}"
        ) from None
