"""Marginals of a table in an engine: many, in one scan of its rows, by grouping sets.

What comes back is how many rows there are by cell, group, and their owner's number of rows where that
matters. What each weighs is added up here: no weight is sent, and sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.cells import CellsOfColumn
from collegium.data.engines.columns import InTable, Key, binned
from collegium.data.engines.connections import Connection
from collegium.data.schema import Schema
from collegium.data.schema_column import CATEGORY, FLAG
from collegium.weighted_sums.marginals import Marginals, Steps
from collegium.weighted_sums.weighing import Batch, Weighing

MOST_TOLD = 32
"""Categories that are told one by one, which is faster; of more, rows are grouped by their names."""
_MOST_SETS, _MOST_COLUMNS = 128, 60
"""Of one statement: engines have a table of what they count for each set, and bits for the columns."""
_MISSING = -1


@dataclass(frozen=True, eq=False)
class MarginalsInEngine:
    """What is asked of an engine.

    ``rows``: an expression: of each row, beside its columns, its owner's ``group``, and how many rows they
    have in ``own`` (None: it does not matter).
    ``refuse_changed``: is told how many rows of each group there are.
    """

    of: Marginals
    engine: Connection
    rows: Any
    schema: Schema
    group: str
    own: str | None
    refuse_changed: Callable[[NDArray[np.int64]], None]

    def added_up(self, weighings: Sequence[Weighing]) -> list[list[Steps]]:
        """Add up all rows, with each of these weights. Sensitive."""
        totals = [self.of.none() for _ in weighings]
        numbers: dict[frozenset[int], list[int]] = {}
        for place, columns in enumerate(self.of.cliques):
            numbers.setdefault(frozenset(columns), []).append(place)
        for cliques in _in_portions(list(numbers)):
            n_seen = np.zeros(len(weighings[0].steps), dtype=np.int64)
            for clique, codes, batch, n in self._counts(cliques, n_seen):
                for weighing, total in zip(weighings, totals, strict=True):
                    added = weighing.caps(batch, 1) * n
                    for place in numbers[clique]:
                        its = self.of.places(self.of.cliques[place], codes)
                        np.add.at(total[place].reshape(-1), its, added)
            self.refuse_changed(n_seen)
        return totals

    @cached_property
    def _keys(self) -> list[Key]:
        columns = InTable(self.rows, self.schema)
        return [_key(columns, one) for one in self.of.cells.columns]

    def _counts(
        self, cliques: Sequence[frozenset[int]], n_seen: NDArray[np.int64]
    ) -> Iterator[tuple[frozenset[int], dict[int, NDArray[np.int64]], Batch, NDArray[np.int64]]]:
        """Count rows that are not blank, by cell of each clique and whose they are; in ``n_seen``, all."""
        columns = sorted(frozenset().union(*cliques))
        for batch in self.engine.stream(self._statement(cliques, columns)):
            n = batch.column("n").to_numpy().astype(np.int64)
            group = _filled(batch.column("everybody"))
            np.add.at(n_seen, group[group >= 0], n[group >= 0])
            cells = {one: self._read(one, batch.column(f"cell{one}")) for one in columns}
            heard = _filled(batch.column("heard"))
            own = np.ones_like(n) if self.own is None else _filled(batch.column("own"))
            is_key = np.stack(
                [batch.column(f"cell{one}").is_valid().to_numpy(False) for one in columns], 1
            )
            kinds, kind = np.unique(np.packbits(is_key, axis=1), axis=0, return_inverse=True)
            for number in range(len(kinds)):
                rows = np.flatnonzero((kind.reshape(-1) == number) & (heard >= 0))
                if not len(rows):
                    continue
                clique = frozenset(np.array(columns)[is_key[rows[0]]].tolist())
                codes = {one: self.of.counted(one, cells[one][rows]) for one in clique}
                yield clique, codes, Batch({}, heard[rows].astype(np.intp), own[rows]), n[rows]

    def _statement(self, cliques: Sequence[frozenset[int]], columns: Sequence[int]) -> Any:
        """Write it; Ibis knows no grouping sets, so that they stand around what it wrote."""
        whose = ["heard"] + (["own"] if self.own is not None else [])
        sets = [[f"cell{one}" for one in sorted(clique)] + whose for clique in cliques]
        picked = [f"cell{one}" for one in columns] + [*whose, "everybody"]
        listed = ", ".join(f"({', '.join(one)})" for one in [*sets, ["everybody"]])
        backend, (read, kinds) = self.rows.get_backend(), self._read_in_sql
        return backend.sql(
            f"SELECT {', '.join(picked)}, COUNT(*) AS n FROM ({read}) AS rows_read "
            f"GROUP BY GROUPING SETS ({listed})",
            schema={**{name: kinds[name] for name in picked}, "n": "int64"},
        )

    @cached_property
    def _read_in_sql(self) -> tuple[str, dict[str, Any]]:
        """Every row's cells, and whose it is: ``heard`` is NULL where it is blank, ``everybody`` never."""
        read = {f"cell{one}": key.expression for one, key in enumerate(self._keys)}
        read["everybody"] = self.rows[self.group].cast("int32")
        if self.own is not None:
            read["own"] = self.rows[self.own].cast("int64")
        rows = self.rows.select(**read)
        # What is compared with many edges is a column of its own, so that it is computed once.
        told = {}
        for one, (key, its) in enumerate(zip(self._keys, self.of.cells.columns, strict=True)):
            cell = rows[f"cell{one}"]
            if its.edges is not None:
                cell = binned(cell, its.edges.tolist(), its.n_values)
            number = cell if key.places is not None else cell.cast("int16")
            told[f"cell{one}"] = number.fill_null(_missing(key))
        rows = rows.mutate(**told)
        backend, kinds = rows.get_backend(), dict(rows.schema().items())
        blank = " AND ".join(f"cell{one} = {_missing(key)!r}" for one, key in enumerate(self._keys))
        return (
            f"SELECT *, CASE WHEN {blank} THEN NULL ELSE everybody END AS heard "
            f"FROM ({backend.compile(rows)}) AS as_read",
            {**kinds, "heard": "int32"},
        )

    def _read(self, column: int, found: Any) -> NDArray[np.int64]:
        """Tell cells from what rows were grouped by; what is not in a row's set is any cell."""
        places = self._keys[column].places
        if places is None:
            codes = _filled(found)
        else:
            words = found.dictionary_encode()
            known = np.array([places.get(word, _MISSING) for word in words.dictionary.to_pylist()])
            codes = np.append(known, _MISSING).astype(np.int64)[_filled(words.indices)]
        return np.where(codes < 0, self.of.cells.columns[column].of_missing, codes)


def _key(columns: InTable, one: CellsOfColumn) -> Key:
    """What tells a row's cell, or the number that lies in it; NULL where it has no readable value."""
    if one.edges is not None:
        return Key(columns.number(one.name).expression)
    if one.column.kind in (CATEGORY, FLAG) and one.n_values <= MOST_TOLD:
        return Key(columns.code(one.name))
    return columns.key(one.name)


def _missing(key: Key) -> int | str:
    """What stands for a missing cell, as NULL is left for rows of other sets."""
    if key.places is None:
        return _MISSING
    word = "missing"
    while word in key.places:
        word += "-"
    return word


def _filled(column: Any) -> NDArray[np.int64]:
    """Whole numbers, with -1 where there is none."""
    return np.asarray(column.fill_null(-1).to_numpy(False), dtype=np.int64)


def _in_portions(cliques: Sequence[frozenset[int]]) -> Iterator[Sequence[frozenset[int]]]:
    """Split what does not fit into one statement."""
    some: list[frozenset[int]] = []
    columns: frozenset[int] = frozenset()
    for clique in cliques:
        if some and (len(some) == _MOST_SETS or len(columns | clique) > _MOST_COLUMNS):
            yield some
            some, columns = [], frozenset()
        some, columns = [*some, clique], columns | clique
    yield some
