"""A table that stays where it lies: its engine adds up whole numbers, and what comes back is the sums.

What is sent is public: names of columns, the schema's categories and edges, a question's condition, weights.
Noise is drawn here, and the engine never learns how large it is. Sums are exact: of 64-bit whole numbers, of
which no more are added than fit, checked beforehand by how many rows there are. Which row counts for how
much does not depend on the engine (:mod:`collegium.weighted_sums.reading`), so answers are those of the same
table in memory, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.budgets import Budget, Policy, unknown_level
from collegium.checks import nearest
from collegium.checks import people as counted_people
from collegium.data.engines.columns import InTable, Key, Number, OfExpressions, choice, real
from collegium.data.engines.connections import Connection, opened
from collegium.data.schema import Schema
from collegium.errors import InputError, RecordError
from collegium.names import as_names
from collegium.weighted_sums.reading import Reading
from collegium.weighted_sums.sums import added_up
from collegium.weighted_sums.weighing import Batch, Weighing

Steps = NDArray[np.int64]
_GROUP, _ROWS, _OWNER, _INSIDE = (
    "collegium_group",
    "collegium_rows",
    "collegium_owner",
    "collegium_inside",
)
_MOST_SUM = 2**62


class InEngine:
    """A table in an engine, each row of which says who it is of and what was granted.

    Parameters
    ----------
    given : Place or ibis.Table
        Where it lies.
    policy : Policy
        What levels mean.
    privacy : str
        Column with everybody's level.
    owner : str or None
        Column with everybody's name; None: each row is somebody else's.
    schema : Schema
        Of the columns that are asked about.

    Raises
    ------
    InputError
        If it cannot be read, lacks a column, or reads a value differently than it is read here; or a level
        is unknown, or an owner has two.
    """

    def __init__(
        self, given: Any, policy: Policy, privacy: str, owner: str | None, schema: Schema
    ) -> None:
        self._engine: Connection = opened(given)
        self._schema = schema
        try:
            self._open(policy, privacy, owner)
        except BaseException:
            self._engine.close()
            raise

    def _open(self, policy: Policy, privacy: str, owner: str | None) -> None:
        table = self._engine.table
        for column in (privacy, *((owner,) if owner else ())):
            if column not in table.columns:
                raise InputError(
                    f"the table has no column {column!r}: {nearest(column, list(table.columns))}"
                )
        self._columns = InTable(table, self._schema)
        self.named = owner is not None
        counted = self._counted(table, privacy, owner)
        self._levels = _levels_of(counted, policy)
        budgets = list(policy.levels.items())
        owned = np.zeros(len(budgets) + 1, dtype=np.int64)
        for one in counted:
            owned[self._levels[one.level]] += one.people
        owned[-1] = 0
        used = np.flatnonzero(owned)
        if not used.size:
            raise InputError("nobody in this table granted a budget: there is nothing to ask")
        place = {int(level): number for number, level in enumerate(used)}
        self.groups: Mapping[str, Budget] = {budgets[i][0]: budgets[i][1] for i in used}
        self.sizes = self.here = owned[used]
        group_of = {
            level: place[number] for level, number in self._levels.items() if number in place
        }
        self._rows_of = np.zeros(len(used), dtype=np.int64)
        for one in counted:
            if one.level in group_of:
                self._rows_of[group_of[one.level]] += one.people * one.rows
        self._most_rows_of_one = max(
            (one.rows for one in counted if one.level in group_of), default=1
        )
        self._base = self._with_groups(table, privacy, owner, group_of)

    def close(self) -> None:
        """End the snapshot."""
        self._engine.close()

    # ----------------------------------------------------------------------------- people

    def _counted(self, table: Any, privacy: str, owner: str | None) -> list[_Counted]:
        """Count people by level and number of rows, without a name leaving the engine."""
        level = table[privacy]
        if owner is None:
            found = table.group_by(level=level).agg(people=lambda t: t.count())
            return [_Counted(level, 1, int(people)) for level, people in self._engine.fetch(found)]
        each = table.group_by(owner=table[owner]).agg(
            low=level.min(), high=level.max(), rows=level.count(), all=table.count()
        )
        found = each.group_by(
            low=each.low, high=each.high, full=each.rows == each["all"], rows=each["all"],
            nobody=each.owner.isnull(),
        ).agg(people=lambda t: t.count())  # fmt: skip
        rows = self._engine.fetch(found)
        if nameless := sum(int(n) for *_, rows_of, nobody, n in rows if nobody for n in [rows_of]):
            raise InputError(
                f"{nameless:,} rows have no name in column {owner!r}: give each row its person's name"
            )
        torn = sum(
            int(n)
            for low, high, full, _, _, n in rows
            if low != high or (low is not None and not full)
        )
        if torn:
            raise RecordError(
                f"{counted_people(torn)} with two levels: all records of one person need the same level",
                0,
            )
        return [_Counted(low, int(number), int(n)) for low, _, _, number, _, n in rows]

    def _with_groups(
        self, table: Any, privacy: str, owner: str | None, group_of: Mapping[Any, int]
    ) -> Any:
        """The rows of those who granted something, with their group and how many rows their owner has."""
        import ibis

        level = table[privacy]
        group = ibis.cases(
            *((level == word, place) for word, place in group_of.items()), else_=None
        )
        more = {_GROUP: group.cast("int64")}
        if owner is not None:
            more[_OWNER] = table[owner]
            more[_ROWS] = table.count().over(ibis.window(group_by=table[owner])).cast("float64")
        found = table.mutate(**more)
        return found.filter(found[_GROUP].notnull())

    @property
    def _counts_rows(self) -> bool:
        """Whether somebody's number of rows may matter."""
        return self.named and (self._most_rows_of_one > 1 or not self._engine.frozen)

    # ------------------------------------------------------------------------------- rows

    def why_here(self, names: Sequence[str]) -> str:
        """Why rows are read here, rather than added up where they lie; "": they stay there."""
        self._columns.refuse_missing(names)
        reasons = [reason for name in names if (reason := self._columns.why_not(name))]
        return f"column {reasons[0]}" if reasons else ""

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield all rows of those who granted something, with these columns."""
        self._columns.refuse_missing(names)
        there = {name: self._columns.why_not(name) == "" for name in names}
        raw = self._schema.sources([name for name in names if not there[name]])
        columns = InTable(self._base, self._schema)
        picked: dict[str, Any] = {_GROUP: self._base[_GROUP]}
        for place, name in enumerate(names):
            if there[name]:
                is_place = self._schema[name].kind in ("category", "flag")
                found = columns.place(name) if is_place else columns.number(name).expression
                picked[f"v{place}"] = found
        for place, name in enumerate(raw):
            picked[f"r{place}"] = self._base[name]
        if self._counts_rows:
            picked[_ROWS], picked[_OWNER] = self._base[_ROWS], self._base[_OWNER]
        numbers: dict[Any, int] = {}
        n_seen = np.zeros_like(self._rows_of)
        for batch in self._engine.stream(self._base.select(**picked)):
            group = batch.column(_GROUP).to_numpy(zero_copy_only=False).astype(np.intp)
            n_seen += np.bincount(group, minlength=len(n_seen))
            rows, owner = np.ones(len(group), dtype=np.int64), None
            if self._counts_rows:
                rows = batch.column(_ROWS).to_numpy(zero_copy_only=False).astype(np.int64)
                owner = _numbered(batch.column(_OWNER).to_pandas(), numbers)
            arrays: dict[str, NDArray[Any]] = {}
            if raw:
                frame = pd.DataFrame(
                    {name: batch.column(f"r{place}").to_pandas() for place, name in enumerate(raw)}
                )
                arrays.update(self._schema.arrays(frame, [n for n in names if not there[n]]))
            for place, name in enumerate(names):
                if there[name]:
                    arrays[name] = _array(batch.column(f"v{place}"), self._schema[name].kind)
            yield Batch(arrays or {"": np.zeros(len(group), np.int8)}, group, rows, owner)
        self._refuse_changed(n_seen)

    # ------------------------------------------------------------------------------- sums

    def summed(self, reading: Reading, weighings: Sequence[Weighing]) -> list[Steps]:
        """Add up what is read off all rows, with each of these weights. Sensitive."""
        if self.why_here(reading.needs):
            return added_up(self.batches(reading.needs), reading, weighings)
        return _Summing(self, reading, weighings).steps()

    def _refuse_changed(self, n_seen: NDArray[np.int64]) -> None:
        """Refuse a table that has other rows than when people and levels were counted."""
        if not np.array_equal(n_seen, self._rows_of):
            raise InputError(
                "the table has changed since the session was opened, when people and levels were counted: "
                "open another session; if this question was charged already, it stays charged"
            )


@dataclass(frozen=True)
class _Counted:
    """So many people of a level, each with so many rows."""

    level: Any
    rows: int
    people: int


class _Summing:
    """One question to an engine."""

    def __init__(self, table: InEngine, reading: Reading, weighings: Sequence[Weighing]) -> None:
        self._table, self._reading, self._weighings = table, reading, weighings
        most = max(int(one.steps.max()) for one in weighings)
        if int(table._rows_of.sum()) * (most + 1) > _MOST_SUM:
            raise InputError(
                f"{int(table._rows_of.sum()):,} rows are more than can be added up exactly: ask of fewer"
            )

    def steps(self) -> list[Steps]:

        table, reading = self._table, self._reading
        base = table._base
        columns = InTable(base, table._schema)
        keys = [columns.key(name) for name, _ in reading.by]
        algebra = OfExpressions()
        inside = reading.where.holds(columns)
        numbers = self._numbers(columns)
        for one in (*keys, *numbers):
            inside = inside & one.expression.notnull()
        if reading.grid is not None:
            near = reading.grid.place(_no_tiny(numbers[0], reading.grid.lower), algebra)
            keys.append(Key(near.expression.cast("int64")))
        more = {
            f"k{place}": choice(inside, one.expression, _null_of(one))
            for place, one in enumerate(keys)
        }
        more[_INSIDE] = inside
        picked = [_GROUP, *more]
        rows_matter = table._counts_rows and not reading.distinct and self._some_share
        if rows_matter:
            picked.append(_ROWS)
        if reading.distinct and table._counts_rows:
            picked.append(_OWNER)
        if not reading.counts:
            more |= {f"x{place}": one.expression for place, one in enumerate(numbers)}
            picked += [f"x{place}" for place in range(len(numbers))]
        rows = base.mutate(**more).select(*picked)
        by = [f"k{place}" for place in range(len(keys))] + [_INSIDE, _GROUP]
        if reading.counts:
            return self._of_counts(rows, by, keys, rows_matter)
        sums = {}
        read = [Number(rows[f"x{place}"]) for place in range(len(numbers))]
        lowers = [one.lower for _, one in reading.about]
        read = [_no_tiny(one, low) for one, low in zip(read, lowers, strict=True)]
        values = reading.coordinates(read, algebra)
        for number, weighing in enumerate(self._weighings):
            cap = self._cap(rows, weighing, rows_matter)
            for j, value in enumerate(values):
                added = algebra.floor(cap * value + 0.5).expression.cast("int64")
                sums[f"s{number}_{j}"] = added.sum(where=rows[_INSIDE])
        found = rows.group_by(by).agg(n=rows.count(), **sums)
        totals = [np.zeros((reading.n_cells, reading.width), np.int64) for _ in self._weighings]
        n_seen = np.zeros_like(table._rows_of)
        for row in table._engine.fetch(found.select(*by, "n", *sums)):
            *key, inside_, group, n = row[: len(by) + 1]
            n_seen[int(group)] += int(n)
            if not inside_:
                continue
            cell = self._cell(key, keys)
            added_here = row[len(by) + 1 :]
            for number, total in enumerate(totals):
                part = added_here[number * reading.width : (number + 1) * reading.width]
                total[cell] += np.array([int(one or 0) for one in part], dtype=np.int64)
        table._refuse_changed(n_seen)
        return totals

    def _of_counts(
        self, rows: Any, by: list[str], keys: Sequence[Key], rows_matter: bool
    ) -> list[Steps]:
        """Count rows, or people, by cell, group and number of rows; what each weighs is added up here."""
        table, reading = self._table, self._reading
        distinct = reading.distinct and table._counts_rows
        by = [*by, *([_ROWS] if rows_matter else [])]
        counted = rows.count() if not distinct else rows[_OWNER].nunique()
        found = rows.group_by(by).agg(n=rows.count(), heads=counted).select(*by, "n", "heads")
        answers = table._engine.fetch(found)
        n_seen = np.zeros_like(table._rows_of)
        cells, groups, own, heads = [], [], [], []
        place = by.index(_INSIDE)
        for row in answers:
            group = int(row[place + 1])
            n_seen[group] += int(row[-2])
            if row[place]:
                cells.append(self._cell(row[:place], keys))
                groups.append(group)
                own.append(int(row[place + 2]) if rows_matter else 1)
                heads.append(int(row[-1]))
        table._refuse_changed(n_seen)
        batch = Batch({}, np.array(groups, np.intp), np.array(own, np.int64))
        totals = []
        for weighing in self._weighings:
            total = np.zeros((reading.n_cells, 1), np.int64)
            np.add.at(
                total[:, 0],
                np.array(cells, np.intp),
                weighing.caps(batch, 1) * np.array(heads, np.int64),
            )
            totals.append(total)
        return totals

    def _numbers(self, columns: InTable) -> list[Number]:
        reading = self._reading
        if reading.holds is not None:
            return [Number(choice(reading.holds.holds(columns), real(1), real(0)))]
        return [columns.number(name) for name, _ in reading.about]

    @property
    def _some_share(self) -> bool:
        """Whether somebody has more rows than count, or may have by now."""
        most = self._weighings[0].most_rows
        return self._table._most_rows_of_one > most or not self._table._engine.frozen

    def _cap(self, rows: Any, weighing: Weighing, rows_matter: bool) -> Number:
        import ibis

        group = rows[_GROUP]
        steps = weighing.steps.tolist()
        most = Number(
            ibis.cases(
                *((group == place, real(one)) for place, one in enumerate(steps)), else_=real(0)
            )
        )
        own = Number(rows[_ROWS] if rows_matter else real(1))
        return weighing.cap_of(most, own, self._reading.width, OfExpressions())  # type: ignore[no-any-return]

    def _cell(self, values: Sequence[Any], keys: Sequence[Key]) -> int:
        cell = 0
        for value, key, size in zip(values, keys, self._reading.shape, strict=True):
            cell = cell * size + (int(value) if key.places is None else key.places[value])
        return cell


def _no_tiny(x: Number, lower: float) -> Number:
    """Take what is above the lower bound by nearly nothing for it, which changes no bit of what is computed.

    Some engines call a quotient below the smallest double an error.
    """
    return Number(choice((x - lower).expression < real(1e-200), real(lower), x.expression))


def _null_of(key: Key) -> Any:
    import ibis

    return ibis.null(key.expression.type())


def _levels_of(counted: Sequence[_Counted], policy: Policy) -> dict[Any, int]:
    """Number of each level that occurs; the last one: none of those with a budget."""
    known = {name: code for code, name in enumerate(policy.levels)}
    found = {}
    for level in {one.level for one in counted}:
        word = as_names([level])[0]
        if word in known:
            found[level] = known[word]
        elif word in policy.outside:
            found[level] = len(known)
        else:
            raise unknown_level(word, [*policy.levels, *policy.outside], 1, 0)
    return found


def _numbered(names: pd.Series, numbers: dict[Any, int]) -> NDArray[np.intp]:
    codes, found = pd.factorize(names)
    of_each = [numbers.setdefault(name, len(numbers)) for name in found.tolist()]
    return np.asarray(of_each, dtype=np.intp)[codes]


def _array(column: Any, kind: str) -> NDArray[Any]:
    values = column.to_numpy(zero_copy_only=False)
    if kind in ("category", "flag"):
        return np.asarray(
            np.where(pd.isna(values), -1, np.nan_to_num(values.astype(np.float64))), dtype=np.int64
        )
    return np.asarray(values, dtype=np.float64)
