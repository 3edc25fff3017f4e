"""Conditions on rows as weights of cells: what holds for every row, and which rows are asked for.

A cell of an interval holds a condition for some of its values only. The weight of a combination of cells is
the share of its values for which the condition holds, on a grid of points that has all ends of the cells
and both sides of every number that the condition names. So it is above 0 exactly where the condition can be
met.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks import shown
from collegium.conditions.conditions import (
    OPERATIONS,
    WORD,
    Columns,
    Compare,
    IsMissing,
    Several,
    Where,
    name_text,
)
from collegium.conditions.parser import parse_where
from collegium.data.cells import Cells, CellsOfColumn
from collegium.data.date_parts import date_part
from collegium.data.schema import Schema
from collegium.errors import InputError
from collegium.synthesis.coarsening import Coarsening
from collegium.synthesis.junction_tree import Clique

Floats = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]
MOST_COLUMNS = 4
_MOST_POINTS = 4_000_000
_POINTS = {1: 256, 2: 24, 3: 8}
_LEAST = 1 / 256
_NAME = rf'({WORD}|"(?:[^"]|"")+")'
_TWO_COLUMNS = re.compile(rf"\s*{_NAME}\s*(<=|<|>=|>|==|!=)\s*{_NAME}\s*")
_BETWEEN_COMMAS = re.compile(r'\s*("(?:[^"]|"")+"(?=\s*(?:,|$))|[^,]+)\s*(?:,|$)')


@dataclass(frozen=True)
class CompareColumns(Where):
    """A number of a row beside another one of it."""

    left: str
    operation: str
    right: str

    @property
    def columns(self) -> frozenset[str]:
        """Both."""
        return frozenset([self.left, self.right])

    def holds(self, columns: Columns) -> Any:
        """Not where one of them is missing."""
        found = OPERATIONS[self.operation](columns.number(self.left), columns.number(self.right))
        return found & ~columns.missing(self.left) & ~columns.missing(self.right)

    def __str__(self) -> str:
        return f"{name_text(self.left)} {self.operation} {name_text(self.right)}"


@dataclass(frozen=True, eq=False)
class Rule:
    """A condition on a few columns.

    ``where``: the condition. ``columns``: places of the columns that it is about, sorted.
    ``weights``: of each combination of their cells, in [0, 1].
    ``missing_holds``: whether a row with a missing value satisfies it, as a CHECK of SQL does.
    """

    where: Where
    columns: Clique
    weights: Floats
    cells: Cells
    missing_holds: bool

    def __str__(self) -> str:
        return str(self.where)

    def log_weights(self, coarse: Sequence[Coarsening]) -> Floats:
        """Logarithms of the weights of coarse cells; -inf where none can be met."""
        found = self.weights
        for axis, column in enumerate(self.columns):
            found = coarse[column].averaged(found, axis)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found))

    @cached_property
    def _about(self) -> tuple[str, ...]:
        return tuple(self.cells.columns[one].name for one in self.columns)

    @property
    def tells_missing(self) -> bool:
        """Whether it says itself what may be missing."""
        return any(True for _ in _asked_missing(self.where))

    def holds(self, arrays: Arrays) -> NDArray[np.bool_]:
        """Tell for each row whether it holds; ``arrays``: as :meth:`Schema.arrays` has them."""
        return _holds(self.where, self.cells.schema, arrays, self._about, self.missing_holds)


def rules_of(texts: Iterable[str], cells: Cells) -> tuple[Rule, ...]:
    """Read what is known to hold for every row.

    Raises InputError if a text is no condition on columns with cells, is about too many columns, or can never
    hold.
    """
    return tuple(
        _rule(where, cells, missing_holds=True)
        for text in texts
        for where in _parts(parse_rule(text, cells.schema))
    )


def where_of(text: str, cells: Cells) -> tuple[Rule, ...]:
    """Read which rows are asked for: as :func:`rules_of`, but a missing value satisfies no comparison."""
    where = parse_rule(text, cells.schema)
    return tuple(_rule(one, cells, missing_holds=False) for one in _parts(where))


def parse_rule(text: str, schema: Schema) -> Where:
    """Read a condition of the language of questions, or a comparison of two columns of numbers.

    Examples
    --------
    >>> schema = Schema({
    ...     "admitted": {"kind": "date", "bounds": ["2024-01-01", "2024-12-31"]},
    ...     "discharged": {"kind": "date", "bounds": ["2024-01-01", "2025-12-31"]},
    ... })
    >>> print(parse_rule("admitted <= discharged", schema))
    admitted <= discharged
    """
    found = _TWO_COLUMNS.fullmatch(text) if isinstance(text, str) else None
    if found:
        left, operation, right = (_unquoted(part) for part in found.groups())
        if left in schema and right in schema and left != right:
            for name in (left, right):
                if not schema[name].is_number or schema[name].kind == "flag":
                    raise InputError(
                        f"{shown(text)} compares {shown(name)}, which holds no numbers: compare columns of "
                        "numbers or dates with each other"
                    )
            return CompareColumns(left, operation, right)
    return parse_where(text, schema)


def names_of(text: str) -> list[str]:
    """Read names of columns between commas; one that has a comma itself stands in quotation marks.

    Examples
    --------
    >>> names_of('age, "city, state"')
    ['age', 'city, state']
    """
    return [_unquoted(one.strip()) for one in _BETWEEN_COMMAS.findall(text)]


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _parts(where: Where) -> Iterator[Where]:
    """Split what must hold together."""
    if isinstance(where, Several) and where.all:
        for part in where.parts:
            yield from _parts(part)
    else:
        yield where


def _rule(where: Where, cells: Cells, *, missing_holds: bool) -> Rule:
    names = list(cells.names)
    about = cells.schema.sources(sorted(where.columns))
    for name in about:
        if name not in names:
            raise InputError(
                f"{shown(str(where))} is about {shown(name)}, which is not synthesised: leave it out, or "
                "describe the column in the schema"
            )
    columns = tuple(sorted(names.index(name) for name in about))
    if len(columns) > MOST_COLUMNS:
        raise InputError(
            f"{shown(str(where))} is about {len(columns)} columns at once, and at most {MOST_COLUMNS} are "
            "possible: say it in several conditions"
        )
    weights = _weights(where, columns, cells, missing_holds)
    if not weights.any():
        raise InputError(
            f"{shown(str(where))} can hold for no row that the schema allows: change it"
        )
    return Rule(where, columns, weights, cells, missing_holds)


def _weights(where: Where, columns: Clique, cells: Cells, missing_holds: bool) -> Floats:
    its = [cells.columns[one] for one in columns]
    literals = {one.name: list(_literals(where, one.name)) for one in its}
    if isinstance(
        where, CompareColumns
    ):  # two numbers may be equal where the ends of their cells lie
        ends = [edge for one in its for edge in _edges_of(one)]
        literals = {one.name: ends for one in its}
    budget = _POINTS.get(len(columns), 4)
    points = [_points_of(one, literals[one.name], budget) for one in its]
    if math.prod(len(values) for values, _, _ in points) > _MOST_POINTS:
        raise InputError(
            f"{shown(str(where))} is about columns with too many cells to compare them all: give them fewer "
            "bins in the schema"
        )
    grids = np.meshgrid(*(np.arange(len(values)) for values, _, _ in points), indexing="ij")
    arrays = {
        one.name: values[grid.ravel()]
        for one, (values, _, _), grid in zip(its, points, grids, strict=True)
    }
    holds = _holds(where, cells.schema, arrays, tuple(one.name for one in its), missing_holds)
    place = np.zeros(holds.size, dtype=np.int64)
    even = np.ones(holds.size)
    for one, (_, of_cell, weight), grid in zip(its, points, grids, strict=True):
        place = place * one.size + of_cell[grid.ravel()]
        even = even * weight[grid.ravel()]
    shape = tuple(one.size for one in its)
    share = np.bincount(place, weights=even * holds, minlength=math.prod(shape))
    possible = np.bincount(place, weights=holds, minlength=math.prod(shape)) > 0
    return np.where(possible, np.clip(share, _LEAST, 1.0), 0.0).reshape(shape)


def _points_of(
    one: CellsOfColumn, literals: Sequence[float], budget: int
) -> tuple[NDArray[Any], NDArray[np.int64], Floats]:
    """Values of a column to look at, the cell of each, and its weight; 0: it only shows what is possible."""
    if one.column.kind in ("category", "flag"):
        codes = np.arange(one.size)
        return np.where(codes < one.n_values, codes, -1), codes, np.ones(one.size)
    found: list[tuple[float, int, float]] = []
    near = _near(one, literals)
    for cell in range(one.n_values):
        code = np.full(budget, cell)
        even = np.unique(one.values(code, (np.arange(budget) + 0.5) / budget))
        low, high = one.values(code[:2], np.array([0.0, 1 - 2.0**-53])).tolist()
        more = [v for v in (low, high, *near) if low <= v <= high]
        found += [(v, cell, 1 / len(even)) for v in even.tolist()]
        found += [(v, cell, 0.0) for v in more]
    if one.has_missing:
        found.append((math.nan, one.n_values, 1.0))
    values, of_cell, weight = zip(*found, strict=True)
    return np.array(values), np.array(of_cell, dtype=np.int64), np.array(weight)


def _near(one: CellsOfColumn, literals: Sequence[float]) -> list[float]:
    """Values of a column at numbers, and on both sides of them."""
    column, at = one.column, np.asarray(literals, dtype=np.float64)
    if not column.grid:
        tiny = column.width * 1e-9
        return list(np.concatenate([at - tiny, at, at + tiny]))
    steps = np.rint((at - column.lower) / column.grid)
    return list(one.on_grid(np.concatenate([steps - 1, steps, steps + 1])))


def _edges_of(one: CellsOfColumn) -> Sequence[float]:
    return one.column.edges if one.edges is None else list(one.edges)


def _literals(where: Where, name: str) -> Iterator[float]:
    if isinstance(where, Several):
        for part in where.parts:
            yield from _literals(part, name)
    elif isinstance(where, Compare) and where.column == name:
        yield where.number


def _holds(
    where: Where, schema: Schema, arrays: Arrays, about: Sequence[str], missing_holds: bool
) -> NDArray[np.bool_]:
    known = dict(arrays)
    for name in where.columns:
        part = None if name in known else date_part(name)
        if part is not None:
            known[name] = part.values(arrays[part.source], schema[name])
    holds = where.mask(known)
    if missing_holds:
        asked = set(_asked_missing(where))
        for name in about:
            if name not in asked:
                values = arrays[name]
                holds = holds | (np.isnan(values) if values.dtype.kind == "f" else values < 0)
    return holds


def _asked_missing(where: Where) -> Iterator[str]:
    if isinstance(where, Several):
        for part in where.parts:
            yield from _asked_missing(part)
    elif isinstance(where, IsMissing):
        yield where.column
