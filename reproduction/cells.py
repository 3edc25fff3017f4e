"""A cell of a table: the published number, ours, the difference, and whether the aim is met."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from collegium.durable import write_durably

MET, NOT_MET, NO_AIM = "met", "not met", ""


@dataclass(frozen=True)
class Cell:
    """One number of a table, measured again.

    Attributes
    ----------
    target : str
        Name of the table, for instance ``thesis-6.4``.
    reading : {"published", "sound"}
        See :mod:`reproduction.readings`.
    dataset, metric, setup, higher_budget, ratio, variant : str
        As in :class:`~reproduction.published.PublishedNumber`.
    published : str
        As printed.
    ours, sd, se : float
        Mean over all votings; their standard deviation; standard error of the mean over seeds (NaN
        with one seed).
    seeds, values : int
        Seeds, and votings of all of them together.
    teacher_accuracy, voting_accuracy, rejected : float
        Means in percent: of single teachers on test records, of the released labels, and of queries
        that were not answered.
    """

    target: str
    reading: str
    dataset: str
    metric: str
    setup: str
    higher_budget: str
    ratio: str
    variant: str
    published: str
    ours: float
    sd: float
    se: float
    seeds: int
    values: int
    teacher_accuracy: float = math.nan
    voting_accuracy: float = math.nan
    rejected: float = math.nan

    @property
    def published_number(self) -> float:
        """The published number; the bound of ``>2000``; NaN where nothing is published."""
        return float(self.published.lstrip(">")) if self.published else math.nan

    @property
    def difference(self) -> float:
        """Ours minus the published number."""
        return self.ours - self.published_number

    @property
    def relative(self) -> float:
        """The difference as a share of the published number."""
        return self.difference / self.published_number


@dataclass(frozen=True)
class Aim:
    """What a reproduction should show, cell by cell.

    Attributes
    ----------
    kind : {"within", "above", "mostly above"}
        ``within``: at most ``tolerance`` (relative) off. ``above``: above every cell. ``mostly
        above``: above in at least half of the cells, and nowhere below by more than one standard
        error.
    tolerance : float
        For ``within``.
    variants, metrics : tuple of str
        Which cells it is about; empty: all.
    least_seeds : int
        With fewer seeds nothing is claimed.
    """

    kind: str
    tolerance: float = 0.0
    variants: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    least_seeds: int = 1

    @property
    def words(self) -> str:
        """The aim in words."""
        if self.kind == "within":
            return f"within {self.tolerance:.0%} of every published cell"
        if self.kind == "above":
            return "above every published cell"
        return "above in at least half of the cells, nowhere below by more than one standard error"

    def concerns(self, cell: Cell) -> bool:
        """Whether the aim is about a cell."""
        wanted = not self.variants or cell.variant in self.variants
        wanted = wanted and (not self.metrics or cell.metric in self.metrics)
        return wanted and bool(cell.published)

    def verdict(self, cell: Cell) -> str:
        """Say whether a cell meets the aim, as far as one cell can."""
        if not self.concerns(cell):
            return NO_AIM
        if math.isnan(cell.ours):
            return NOT_MET
        if self.kind == "within" and not cell.published.startswith(">"):
            return MET if abs(cell.relative) <= self.tolerance else NOT_MET
        if self.kind in ("within", "above"):
            good = cell.difference >= 0 if self.kind == "within" else cell.difference > 0
            return MET if good else NOT_MET
        error = 0.0 if math.isnan(cell.se) else cell.se
        return MET if cell.difference > -error else NOT_MET

    def summary(self, cells: Sequence[Cell]) -> tuple[str, str]:
        """Judge a whole table.

        Returns
        -------
        verdict : {"met", "not met"}
        words : str
            With the counts that it rests on.

        Examples
        --------
        >>> cell = Cell("t", "sound", "mnist", "labels", "", "", "", "none", "100", 90, 1, 1, 3, 9)
        >>> Aim("within", 0.15).summary([cell])
        ('met', 'within 15% of every published cell: 1 of 1 cells')
        """
        judged = [cell for cell in cells if self.concerns(cell)]
        met = sum(self.verdict(cell) == MET for cell in judged)
        verdict = MET if judged and met == len(judged) else NOT_MET
        words = f"{self.words}: {met} of {len(judged)} cells"
        if self.kind == "mostly above":
            above = sum(cell.difference > 0 for cell in judged)
            verdict = verdict if 2 * above >= len(judged) else NOT_MET
            words = (
                f"{self.words}: above in {above} of {len(judged)}, at most one error below in {met}"
            )
        seeds = min((cell.seeds for cell in judged), default=0)
        if seeds < self.least_seeds:
            verdict = NOT_MET
            words += f"; {seeds} of at least {self.least_seeds} seeds"
        return verdict, words


def summarise(per_seed: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Mean, deviation and standard error of values by seed; values that are NaN are left out.

    Examples
    --------
    >>> summarise([[1.0, 3.0], [5.0, 7.0]])["ours"], round(summarise([[1, 3], [5, 7]])["se"], 3)
    (4.0, 2.0)
    """
    kept = [[value for value in values if not math.isnan(value)] for values in per_seed]
    kept = [values for values in kept if values]
    everything = [value for values in kept for value in values]
    means = [float(np.mean(values)) for values in kept]
    return {
        "ours": float(np.mean(everything)) if everything else math.nan,
        "sd": float(np.std(everything, ddof=1)) if len(everything) > 1 else math.nan,
        "se": float(np.std(means, ddof=1) / math.sqrt(len(means))) if len(means) > 1 else math.nan,
        "seeds": len(kept),
        "values": len(everything),
    }


def write_cells(path: Path, cells: Sequence[Cell], aim: Aim | None, heading: Sequence[str]) -> None:
    """Write cells as CSV, after lines of comment (``#``) with command, seeds and versions."""
    text = io.StringIO(newline="")
    names = [*asdict(cells[0]), "difference", "relative", "verdict"] if cells else []
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        row = asdict(cell) | {
            "difference": cell.difference,
            "relative": cell.relative,
            "verdict": aim.verdict(cell) if aim else NO_AIM,
        }
        writer.writerow({key: _short(value) for key, value in row.items()})
    write_table(path, heading, text.getvalue())


def write_table(path: Path, heading: Sequence[str], table: str) -> None:
    """Write a table of text after lines of comment (``#``); the folder is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    comments = "".join(f"# {line}\n" for line in heading)
    write_durably(path, (comments + table).encode())


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value
