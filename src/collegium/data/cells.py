"""A table as whole numbers: the public cells of each column, of a schema, and values drawn back within them.

A cell is a category, yes or no, a whole value, an interval between two public edges, or "missing". Which
cells there are follows from the schema, and from public records where there are some; never from a private
row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import shown
from collegium.data.date_format import day_of
from collegium.data.schema import Schema
from collegium.data.schema_column import CATEGORY, FLAG, TEXT, Column
from collegium.errors import InputError

MOST_CELLS = 5_000
"""Cells of one column."""
_INTERVALS = 16
"""Intervals of a column of numbers whose schema names no bins."""
_TAIL = 4
"""Intervals of growing width at most, beyond the outermost quantiles of public records."""
_ATOM = 0.05
"""A value that so large a share of the public records has is a cell of its own."""
_LEAST_PUBLIC = 50
"""With fewer readable public values, they say too little about where edges should be."""
MISSING = "missing"


@dataclass(frozen=True, eq=False)
class CellsOfColumn:
    """The cells of one column.

    ``name``; ``column``: what the schema says. ``edges``: of numbers, n_values + 1 rising ones; each interval
    holds its lower edge, the last one both. None: cells are the column's keys.
    """

    name: str
    column: Column
    edges: NDArray[np.float64] | None

    @property
    def n_values(self) -> int:
        """How many cells hold a value."""
        return len(self.column.keys) if self.edges is None else len(self.edges) - 1

    @property
    def has_missing(self) -> bool:
        """Whether the last cell is of those who have no readable value."""
        return self.column.missing

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.n_values + self.has_missing

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the cells, for people."""
        if self.edges is None:
            named = self.column.keys
        else:
            write, whole = self.column.write, self.column.grid if self.column.is_whole else 0.0
            lows, highs = self.edges[:-1].tolist(), self.edges[1:].tolist()
            single = [self._is_single(place) for place in range(self.n_values)]
            last = self.n_values - 1
            named = tuple(
                write(low)
                if one
                else f"{write(low)} to {write(high - whole if place < last else high)}"
                for place, (low, high, one) in enumerate(zip(lows, highs, single, strict=True))
            )
        return (*named, MISSING) if self.has_missing else named

    def _is_single(self, place: int) -> bool:
        assert self.edges is not None
        low, high = self.edges[place], self.edges[place + 1]
        tiny = self.column.grid or self.column.width * 1e-9
        if place == self.n_values - 1 and self.column.grid:  # the last one holds its upper edge
            return bool(high - low < tiny * 0.5)
        return bool(high - low <= tiny * 1.000001)

    def codes(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Tell the cell of each value of an array of :meth:`Schema.arrays`.

        Without a cell for what is missing, a missing number counts as the middle of the bounds and a missing
        category as the first one, as the schema has promised that there are none.
        """
        if self.edges is None:
            found = self.column.codes(values)
        else:
            found = np.searchsorted(self.edges, values, side="right") - 1
            found = np.clip(found, 0, self.n_values - 1)
            found = np.where(np.isnan(values), -1, found)
        return np.where(found < 0, self.of_missing, found).astype(np.int64)

    @property
    def of_missing(self) -> int:
        """The cell of whoever has no readable value."""
        if self.has_missing:
            return self.n_values
        if self.column.kind in (CATEGORY, FLAG):
            return 0
        edges = self.column.edges if self.edges is None else self.edges
        at = np.searchsorted(edges, (self.column.lower + self.column.upper) / 2, "right") - 1
        return int(np.clip(at, 0, self.n_values - 1))

    def values(self, codes: NDArray[np.int64], uniform: NDArray[np.float64]) -> NDArray[Any]:
        """Draw a value for each cell: uniformly among those of an interval, on the column's grid.

        ``uniform`` (n,): in [0, 1). Returns an array as :meth:`Schema.arrays` has them.
        """
        if self.edges is None:
            if self.column.kind in (CATEGORY, FLAG):
                return np.where(codes < self.n_values, codes, -1)
            edges = np.asarray(self.column.edges)
        else:
            edges = self.edges
        inside, column = codes < self.n_values, self.column
        place = np.where(inside, codes, 0)
        # Declared bins may reach beyond the bounds, where there are no values.
        low, high = (
            np.maximum(edges[place], column.lower),
            np.minimum(edges[place + 1], column.upper),
        )
        if column.grid:
            holds_high = (place == self.n_values - 1) | (edges[place + 1] > column.upper)
            first, end = self._steps_to(low), self._steps_to(high)
            end = np.where(holds_high, np.floor(self._steps(high) + self._slack) + 1, end)
            drawn = self.on_grid(first + np.floor(uniform * np.maximum(end - first, 1)))
        else:
            drawn = low + uniform * (high - low)
            drawn = np.where(high - low <= column.width * 1.1e-9, low, drawn)
        drawn = np.clip(drawn, column.lower, column.upper)
        return np.where(inside, drawn, np.nan)

    def on_grid(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values so many steps of the column's grid above its lower bound, as they are written: 0.3."""
        return np.round(self.column.lower + steps * self.column.grid, _decimals(self.column))

    def _steps(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((values - self.column.lower) / self.column.grid)

    @property
    def _slack(self) -> float:
        """How far rounding may have moved a number of steps."""
        largest = max(abs(self.column.lower), abs(self.column.upper))
        return min(1e-9 + 2.0**-50 * largest / self.column.grid, 0.25)

    def _steps_to(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Steps to the first value of the grid that is not below these."""
        return np.ceil(self._steps(values) - self._slack)

    def series(self, values: NDArray[Any]) -> pd.Series:
        """Write an array as a column of a table: as the schema reads it, without ``written``."""
        column = self.column
        if column.kind in (CATEGORY, FLAG):
            keys: Sequence[Any] = column.keys if column.kind == CATEGORY else (False, True)
            absent = values < 0
            if column.kind == FLAG:
                cells = pd.array(values == 1, dtype="boolean")
                cells[absent] = pd.NA
                return pd.Series(cells if absent.any() else np.asarray(values == 1), name=self.name)
            table = np.array([*keys, None], dtype=object)
            return pd.Series(
                table[np.where(absent, len(keys), values)], name=self.name, dtype=object
            )
        absent = np.isnan(values)
        if not column.is_whole:
            rounded = np.round(values, _decimals(column))
            # What rounding would move to another cell stays as it is.
            same = self.codes(rounded) == self.codes(values)
            return pd.Series(np.where(same, rounded, values), name=self.name)
        whole = np.rint(np.where(absent, 0, values)).astype(np.int64)
        if column.kind == "date":
            known, place = np.unique(whole, return_inverse=True)
            text = np.array([*(day_of(float(day)) for day in known.tolist()), None], dtype=object)
            place = np.where(absent, len(known), place.reshape(whole.shape))
            return pd.Series(text[place], name=self.name, dtype=object)
        if absent.any():
            cells = pd.array(whole, dtype="Int64")
            cells[absent] = pd.NA
            return pd.Series(cells, name=self.name)
        return pd.Series(whole, name=self.name)

    def numbers(self) -> NDArray[np.float64]:
        """The middle of each cell as a number; NaN of "missing"; places of categories.  Shape (size,)."""
        if self.edges is None:
            middle = np.arange(self.n_values, dtype=np.float64)
            if self.column.kind not in (CATEGORY, FLAG):
                middle = np.asarray(self.column.edges[:-1])
        else:
            top = self.column.grid if self.column.is_whole else 0.0
            middle = (self.edges[:-1] + np.maximum(self.edges[1:] - top, self.edges[:-1])) / 2
        return np.append(middle, np.nan) if self.has_missing else middle


class Cells:
    """A table as whole numbers, by a public schema.

    Parameters
    ----------
    schema : Schema
        Columns of kind text are left out: they have no cells.
    public : table, optional
        Public records, which say where the edges of numbers are best placed: at their quantiles.
    names : sequence of str, optional
        Which columns; default: all that have cells.

    Attributes
    ----------
    columns : tuple of CellsOfColumn
    names : tuple of str
    sizes : tuple of int

    Raises
    ------
    InputError
        If a column has too many cells, or none is left.

    Examples
    --------
    >>> schema = Schema({
    ...     "age": {"kind": "whole", "bounds": [0, 99], "bins": [0, 18, 65, 99]},
    ...     "sex": {"kind": "category", "categories": ["F", "M"], "missing": False},
    ... })
    >>> cells = Cells(schema)
    >>> cells.sizes, cells.columns[0].labels
    ((4, 2), ('0 to 17', '18 to 64', '65 to 99', 'missing'))
    >>> import pandas as pd
    >>> cells.codes(pd.DataFrame({"age": [5, 70, None], "sex": ["M", "F", "M"]})).tolist()
    [[0, 1], [2, 0], [3, 1]]
    """

    def __init__(
        self, schema: Schema, public: Any = None, names: Sequence[str] | None = None
    ) -> None:
        if names is None:
            names = [name for name, column in schema.items() if column.kind != TEXT]
        if not names:
            raise InputError(
                "the schema has no column with cells: describe numbers, dates, categories or flags in it"
            )
        known: Mapping[str, NDArray[Any]] = {}
        if public is not None:
            known = schema.arrays(public, list(names))
        self.schema = schema
        self.columns = tuple(_cells_of(name, schema[name], known.get(name)) for name in names)

    @classmethod
    def with_edges(cls, schema: Schema, edges: Mapping[str, Sequence[float] | None]) -> Cells:
        """Make them again of what :attr:`edges` said."""
        made = cls.__new__(cls)
        made.schema = schema
        made.columns = tuple(
            CellsOfColumn(name, schema[name], None if one is None else np.asarray(one, np.float64))
            for name, one in edges.items()
        )
        return made

    @property
    def edges(self) -> dict[str, list[float] | None]:
        """Edges of each column of numbers; None: its keys are its cells."""
        return {c.name: None if c.edges is None else c.edges.tolist() for c in self.columns}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(one.name for one in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each has."""
        return tuple(one.size for one in self.columns)

    def codes(self, frame: Any) -> NDArray[np.int64]:
        """Read a table. Returns the cell of each row in each column, shape (n, n_columns)."""
        return self.codes_of(self.schema.arrays(frame, list(self.names)))

    def codes_of(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The same of arrays of :meth:`Schema.arrays`."""
        return np.stack([one.codes(arrays[one.name]) for one in self.columns], axis=1)

    def arrays(self, codes: NDArray[np.int64], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Draw a value within each cell. Returns arrays as :meth:`Schema.arrays` has them."""
        return {
            one.name: one.values(codes[:, place], rng.random(len(codes)))
            for place, one in enumerate(self.columns)
        }

    def frame(self, arrays: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
        """Write such arrays as a table, which :attr:`plain_schema` reads."""
        return pd.DataFrame({one.name: one.series(arrays[one.name]) for one in self.columns})

    @property
    def plain_schema(self) -> Schema:
        """The schema of tables that are written here: numbers as numbers, dates as 2024-12-31."""
        columns = {
            one.name: replace(one.column, written=None) if one.column.written else one.column
            for one in self.columns
        }
        return Schema(columns, self.schema.rows_per_owner)


def _cells_of(name: str, column: Column, public: NDArray[Any] | None) -> CellsOfColumn:
    if column.kind == TEXT:
        raise InputError(
            f"column {shown(name)} is free text, which has no cells: leave it out, or list its categories in "
            "the schema"
        )
    if column.kind in (CATEGORY, FLAG) or (column.has_keys and not column.bins):
        if len(column.keys) > MOST_CELLS:
            raise InputError(
                f"column {shown(name)} has {len(column.keys):,} categories, and at most {MOST_CELLS:,} are "
                "possible: list the frequent ones, and everything else counts as missing"
            )
        return CellsOfColumn(name, column, None)
    if column.bins:
        return CellsOfColumn(name, column, np.asarray(column.edges, dtype=np.float64))
    values = None if public is None else public[~np.isnan(public)]
    edges = _declared_edges(column) if values is None or len(values) < _LEAST_PUBLIC else None
    if edges is None:
        assert values is not None
        edges = _public_edges(column, values)
    return CellsOfColumn(name, column, edges)


def _decimals(column: Column) -> int:
    """Decimals with which its numbers are written: those of its grid, or as many as say anything."""
    if not column.grid:
        return max(0, 12 - math.floor(math.log10(column.width)))
    exponents = (
        Decimal(repr(one)).normalize().as_tuple().exponent for one in (column.grid, column.lower)
    )
    return min(max(-int(one) for one in exponents), 12) if not column.is_whole else 0


def _declared_edges(column: Column) -> NDArray[np.float64]:
    """Place edges by what the schema says alone: evenly, or in growing steps where numbers are skewed."""
    low, high = column.lower, column.upper
    even = np.linspace(low, high, _INTERVALS + 1)
    mean, sd = column.mean, column.sd
    if mean is not None and sd and min(mean - low, high - mean) < sd and column.width > 6 * sd:
        # Distances from the nearer bound grow by a constant factor, from a twentieth of a deviation on.
        growing = np.geomspace(sd / 20, column.width, _INTERVALS)
        even = (
            low + np.append(0.0, growing)
            if mean - low < high - mean
            else high - np.append(growing[::-1], 0.0)
        )
    atom = low if column.kind != "date" else None
    return _on_grid(column, even, () if atom is None else (atom,))


def _public_edges(column: Column, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Place edges at quantiles of public values; frequent values have a cell of their own."""
    found, counts = np.unique(values, return_counts=True)
    atoms = found[counts >= max(_ATOM * len(values), 3)]
    rest = values[~np.isin(values, atoms)]
    few = max(2, _INTERVALS - len(atoms)) if len(rest) else 1
    levels = np.linspace(0, 1, few + 1)[1:-1]
    inner = np.quantile(rest, levels) if len(rest) else np.empty(0)
    inner = np.concatenate(
        [_towards(column.lower, inner), inner, _towards(column.upper, inner[::-1])]
    )
    edges = np.concatenate([[column.lower], np.sort(inner), [column.upper]])
    return _on_grid(column, edges, atoms.tolist())


def _towards(bound: float, inner: NDArray[np.float64]) -> NDArray[np.float64]:
    """Split the interval at a bound, where it is much wider than the next one: each part is twice as wide.

    ``inner``: edges, from the nearest on.
    """
    if len(inner) < 2 or inner[0] == inner[1]:
        return np.empty(0)
    steps = (inner[0] - inner[1]) * (2.0 ** np.arange(1, _TAIL + 1) - 1)
    found = inner[0] + steps
    inside = np.abs(found - inner[0]) < np.abs(bound - inner[0])
    return np.asarray(found[inside & (np.sign(bound - inner[0]) == np.sign(steps))])


def _on_grid(
    column: Column, edges: NDArray[np.float64], atoms: Sequence[float]
) -> NDArray[np.float64]:
    """Round edges to the column's grid, and give each atom an interval of its own."""
    low, high = column.lower, column.upper
    grid = column.grid or column.width * 1e-9
    around = [edge for atom in atoms for edge in (atom, atom + grid) if low <= edge <= high]
    inner = np.concatenate([edges, around])
    if column.grid:
        steps = np.rint((inner - low) / column.grid)
        inner = np.round(low + steps * column.grid, _decimals(column))
    inner = np.unique(inner[(inner > low) & (inner < high)])
    # What rounding left closer than half a step is one edge.
    apart = np.diff(inner, prepend=-np.inf) > grid / 2
    inner = inner[apart]
    inner = inner[(inner - low > grid / 2) & (high - inner > grid / 2)]
    return np.concatenate([[low], inner, [high]])
