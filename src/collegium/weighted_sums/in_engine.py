"""A table that stays where it lies: its engine adds up whole numbers, and what comes back is the sums.

What is sent is public: names of columns, the schema's categories and edges, a question's condition, weights.
Noise is drawn here, and the engine never learns how large it is. Sums are exact: of 64-bit whole numbers, of
which no more are added than fit, checked beforehand by how many rows there are. Which row counts for how
much does not depend on the engine (:mod:`collegium.weighted_sums.reading`), so answers are those of the same
table in memory, to the bit.

What is no snapshot (a view, which may read files; an expression) is looked at anew for each question: how
many rows everybody has is counted within it, so that nobody moves a sum further than is charged, and where a
level has another number of rows than when people were counted, the question ends. Somebody whose level is
another one by then, while as many rows have each, is charged as their rows say; on a ledger, as was known.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.budgets import NOTHING, Budget, Budgets, Policy, unknown_level
from collegium.checks import nearest
from collegium.checks import people as counted_people
from collegium.data.engines.columns import InTable, Key, Number, OfExpressions, choice, real
from collegium.data.engines.connections import Connection, EngineError, StatementError, opened
from collegium.data.schema import Schema
from collegium.errors import InputError, RecordError
from collegium.names import as_names
from collegium.weighted_sums.conformance import refuse_other_answers
from collegium.weighted_sums.marginals import Marginals
from collegium.weighted_sums.marginals_in_engine import MarginalsInEngine
from collegium.weighted_sums.reading import Reading, rounded
from collegium.weighted_sums.sums import added_up
from collegium.weighted_sums.weighing import Batch, Weighing
from collegium.zero_and_public_budgets import tell_of_silent

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
        self._schema, self._failed = schema, False
        try:
            refuse_other_answers(self._engine)
            self._open(policy, privacy, owner)
        except BaseException:
            self._engine.close()
            raise

    def _open(self, policy: Policy, privacy: str, owner: str | None) -> None:
        table = self._engine.table
        if taken := [name for name in table.columns if name.startswith("collegium_")]:
            raise InputError(
                f"the table has a column {taken[0]!r}, a name that is given to what is counted here: make a "
                "view in which it is called otherwise"
            )
        if owner is not None:
            _require(table, owner)
            _refuse_other_names(table, owner)
        table, level = self._with_levels(table, privacy, owner)
        table = self._with_tables(table, owner)
        self._table, self._level, self._owner = table, level, owner
        self._columns = InTable(table, self._schema)
        self.named = owner is not None
        counted = self._counted()
        self._levels = _levels_of(counted, policy)
        budgets = list(policy.levels.items())
        owned = np.zeros(len(budgets) + 1, dtype=np.int64)
        for one in counted:
            owned[self._levels[one.level]] += one.people
        owned[-1] = 0
        used = np.flatnonzero(owned)
        if not used.size:
            raise InputError("nobody in this table granted a budget: there is nothing to ask")
        silent = [one for one in counted if policy.outside.get(str(one.name)) == NOTHING]
        if silent:
            tell_of_silent(
                sum(one.people for one in silent), sum(one.people * one.rows for one in silent)
            )
        place = {int(level): number for number, level in enumerate(used)}
        self.groups: Mapping[str, Budget] = {budgets[i][0]: budgets[i][1] for i in used}
        self.sizes = self.here = owned[used]
        group_of = {word: place[number] for word, number in self._levels.items() if number in place}
        heard = [one for one in counted if one.level in group_of]
        self._rows_of = np.zeros(len(used), dtype=np.int64)
        for one in heard:
            self._rows_of[group_of[one.level]] += one.people * one.rows
        self._most_rows_of_one = max(one.rows for one in heard)
        self._base = self._with_groups(group_of)

    def close(self) -> None:
        """End the snapshot."""
        self._engine.close()

    # ----------------------------------------------------------------------------- people

    def _with_tables(self, table: Any, owner: str | None) -> Any:
        """Join the tables that the schema names, by person: all rows of one with all rows of the other."""
        for name, its in self._schema.tables.items():
            if owner is None:
                raise InputError(
                    f"table {name!r} of the schema is joined by person, but no column says whose a row is: "
                    "give owner"
                )
            other = self._engine.other(name)
            key = its.owner or owner
            _require(other, key, f"table {name!r}")
            _refuse_other_names(other, key, table[owner].type())
            columns = {
                one: other[one.removeprefix(f"{name}.")]
                for one in self._schema
                if one.startswith(f"{name}.")
                and _require(other, one.removeprefix(f"{name}."), name)
            }
            if taken := [one for one in columns if one in table.columns]:
                raise InputError(
                    f"the table has a column {taken[0]!r}, and table {name!r}, which is joined, one that is "
                    "called so then: make a view in which it is called otherwise"
                )
            joined = other.select(**{f"collegium_{name}": other[key]}, **columns)
            table = table.left_join(joined, table[owner] == joined[f"collegium_{name}"])
        return table

    def _with_levels(self, table: Any, privacy: str, owner: str | None) -> tuple[Any, str]:
        """Find everybody's level: in a column, or in one of another table, in which each is there once.

        Whoever is not in that table has chosen nothing, and is not in ours then, either; how many these are
        is told, as of those who granted nothing.
        """
        name, dot, column = privacy.rpartition(".")
        if privacy in table.columns or not dot:
            _require(table, privacy)
            return table, privacy
        if owner is None:
            raise InputError(
                f"levels in another table ({privacy}) are found by person, but no column says whose a row "
                "is: give owner"
            )
        other = self._engine.other(name)
        _require(other, column, f"table {name!r}")
        _require(other, owner, f"table {name!r}")
        _refuse_other_names(other, owner, table[owner].type())
        other = other.filter(other[owner].notnull())  # who has no name is nobody's equal
        each = other.group_by(owner=other[owner]).agg(n=other.count())
        several = each.filter(each.n > 1)
        twice = self._engine.fetch(several.aggregate(people=several.count()))[0][0]
        if twice:
            raise InputError(
                f"table {name!r} has several rows of {counted_people(int(twice))}: it must say each person's "
                "level once"
            )
        its = other.select(collegium_person=other[owner], collegium_level=other[column])
        absent = table.anti_join(its, table[owner] == its.collegium_person)
        counted = absent.aggregate(people=absent[owner].nunique(), rows=absent.count())
        ((people, rows),) = self._engine.fetch(counted)
        if people:
            tell_of_silent(int(people), int(rows))
        return table.inner_join(its, table[owner] == its.collegium_person), "collegium_level"

    def _each(self) -> Any:
        """Each person, with the lowest and the highest level of their rows, and how many rows they have."""
        table, level = self._table, self._table[self._level]
        return table.group_by(owner=table[self._owner]).agg(
            low=level.min(),
            high=level.max(),
            full=level.count() == table.count(),
            rows=table.count(),
        )

    def _counted(self) -> list[_Counted]:
        """Count people by level and number of rows, without a name leaving the engine."""
        table = self._table
        if self._owner is None:
            found = table.group_by(level=table[self._level]).agg(people=lambda t: t.count())
            return [_Counted(level, 1, int(people)) for level, people in self._engine.fetch(found)]
        each = self._each()
        found = each.group_by(
            low=each.low, high=each.high, full=each.full, rows=each.rows, nobody=each.owner.isnull()
        ).agg(people=lambda t: t.count())
        answers = self._engine.fetch(found)
        if nameless := sum(int(rows) for *_, rows, nobody, _ in answers if nobody):
            raise InputError(
                f"{nameless:,} rows have no name in column {self._owner!r}: give each row its person's name"
            )
        torn = sum(
            int(people)
            for low, high, full, _, _, people in answers
            if low != high or (low is not None and not full)
        )
        if torn:
            raise RecordError(
                f"{counted_people(torn)} with two levels: all records of one person need the same level",
                0,
            )
        return [_Counted(low, int(rows), int(people)) for low, _, _, rows, _, people in answers]

    def _with_groups(self, group_of: Mapping[Any, int]) -> Any:
        """The rows of those who granted something, with their group and how many rows their owner has."""
        import ibis

        table = self._table
        level = table[self._level]
        group = ibis.cases(
            *((level == word, place) for word, place in group_of.items()), else_=None
        )
        more = {_GROUP: group.cast("int64")}
        if self._counts_rows:
            own = table[self._owner]
            more[_OWNER] = own
            more[_ROWS] = _rows_of_owner(table, own).cast("float64")
        found = table.mutate(**more)
        return found.filter(found[_GROUP].notnull())

    def people(self, policy: Policy) -> Budgets:
        """Who granted what, one record for each person, for a ledger, which knows their names. Sensitive."""
        if self._owner is None:
            raise InputError(
                "a ledger keeps account of people, but no column says whose a row is: give owner"
            )
        each = self._each()
        names: list[Any] = []
        levels: list[Any] = []
        rows: list[int] = []
        for batch in self._engine.stream(each.select("owner", "low", "rows")):
            for found, column in zip((names, levels, rows), batch.columns, strict=True):
                found.extend(column.to_pylist())
        self._names, self._rows_of_each = names, np.array(rows, dtype=np.int64)
        return policy.assign(as_names(levels), as_names(names))

    def only(self, budgets: Budgets, rows: NDArray[np.intp]) -> None:
        """Ask these of :meth:`people` alone, who have budgets of their own by now.

        Their names go to the engine as rows of a table that only this connection has: in no statement.
        """
        sizes = budgets.public_sizes()
        used = [name for name in budgets.group_names if sizes[name]]
        place = np.array([used.index(n) if n in used else -1 for n in budgets.group_names], np.intp)
        group = place[budgets.owner_group[budgets.record_owner]]
        heard = np.flatnonzero(group >= 0)
        own, group = self._rows_of_each[rows][heard], group[heard]
        names = [self._names[i] for i in rows[heard].tolist()]
        known = {"collegium_name": names, _GROUP: group.tolist()}
        if self._engine.frozen:
            known[_ROWS] = own.tolist()
        self.groups = {name: budgets.groups[name] for name in used}
        self.sizes = np.array([sizes[name] for name in used], dtype=np.int64)
        self.here = np.bincount(group, minlength=len(used)).astype(np.int64)
        self._rows_of = np.bincount(group, weights=own, minlength=len(used)).astype(np.int64)
        self._most_rows_of_one = int(own.max())
        people, table = self._engine.people(known), self._table
        found = table.inner_join(people, table[self._owner] == people.collegium_name)
        each = found[_ROWS] if self._engine.frozen else _rows_of_owner(found, found[self._owner])
        self._base = found.mutate(**{_OWNER: found[self._owner], _ROWS: each.cast("float64")})

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
        """Add up what is read off all rows, with each of these weights. Sensitive.

        Raises EngineError if the engine stops, which may tell of somebody's row: to be charged.
        """
        self._refuse_too_many(weighings)
        is_here = self.why_here(reading.needs)
        with self.asking():
            if is_here:
                return added_up(self.batches(reading.needs), reading, weighings)
            return _Summing(self, reading, weighings).steps()

    def marginals(self, of: Marginals, weighings: Sequence[Weighing]) -> list[list[Steps]]:
        """Add up marginals of all rows, with each of these weights. Sensitive.

        Raises EngineError if the engine stops, which may tell of somebody's row: to be charged.
        """
        self._refuse_too_many(weighings)
        is_here = self.why_here(of.cells.names)
        with self.asking():
            if is_here:
                return of.added_up(self.batches(of.cells.names), weighings)
            own = _ROWS if self._rows_matter(weighings[0].most_rows) else None
            its = MarginalsInEngine(
                of, self._engine, self._base, self._schema, _GROUP, own, self._refuse_changed
            )
            return its.added_up(weighings)

    def _rows_matter(self, most: int) -> bool:
        """Whether somebody has more rows than count, or may have by now."""
        return self._counts_rows and (self._most_rows_of_one > most or not self._engine.frozen)

    def _refuse_too_many(self, weighings: Sequence[Weighing]) -> None:
        """Refuse sums that 64 bits might not hold."""
        n, most = int(self._rows_of.sum()), max(int(one.steps.max()) for one in weighings)
        if n * (most + 1) > _MOST_SUM:
            raise InputError(f"{n:,} rows are more than can be added up exactly: ask of fewer")

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Whatever is asked: nothing more after an error, with which the snapshot ends."""
        if self._failed:
            raise InputError(
                f"{self._engine.name} stopped with an error before, and with it the snapshot ended: open "
                "another session; this question cost nothing"
            )
        try:
            yield
        except (EngineError, StatementError):
            self._failed = True
            raise
        except Exception:
            # Of whatever stands in a row: its words may quote it, and it is charged as well.
            self._failed = True
            raise EngineError(f"a row of {self._engine.name} could not be read here") from None

    def _refuse_changed(self, n_seen: NDArray[np.int64]) -> None:
        """Refuse a table that has other rows than when people and levels were counted."""
        if not np.array_equal(n_seen, self._rows_of):
            raise EngineError(
                "the table has changed since the session was opened, when people and levels were counted: "
                "open another session"
            )


@dataclass(frozen=True)
class _Counted:
    """So many people of a level, each with so many rows."""

    level: Any
    rows: int
    people: int

    @property
    def name(self) -> str | None:
        """Of the level; None: there is none."""
        found: str | None = as_names([self.level])[0]
        return found


class _Summing:
    """One question to an engine."""

    def __init__(self, table: InEngine, reading: Reading, weighings: Sequence[Weighing]) -> None:
        self._table, self._reading, self._weighings = table, reading, weighings

    def steps(self) -> list[Steps]:
        """Ask, in one statement; each thing that several others are made of is a column of its own."""
        table, reading, algebra = self._table, self._reading, OfExpressions()
        base = table._base
        columns = InTable(base, table._schema)
        keys = [columns.key(name) for name, _ in reading.by]
        numbers = self._numbers(columns)
        read = {f"k{place}": one.expression for place, one in enumerate(keys)}
        read |= {f"x{place}": one.expression for place, one in enumerate(numbers)}
        rows = base.select(
            **read, **{one: base[one] for one in self._beside}, meant=reading.where.holds(columns)
        )
        inside = rows.meant
        for place in range(len(numbers)):
            inside = inside & rows[f"x{place}"].notnull()
        more = {_INSIDE: inside}
        for place, (_, one) in enumerate(reading.about):
            x = _no_tiny(Number(rows[f"x{place}"]), one.lower)
            if reading.grid is not None:
                near = reading.grid.place(x, algebra)
                more["near"] = near.expression.cast("int64")
            elif not reading.counts:
                more[f"c{place}"] = x.expression
        by = [f"k{place}" for place in range(len(keys))]
        if reading.grid is not None:
            by, keys = [*by, "near"], [*keys, Key(None)]
        rows = rows.mutate(**more)
        if reading.counts:
            return self._of_counts(rows, [*by, _INSIDE, _GROUP], keys)
        return self._of_values(rows, [*by, _INSIDE, _GROUP], keys)

    @property
    def _beside(self) -> list[str]:
        """Columns that are not of the schema."""
        owner = self._reading.distinct and self._table._counts_rows
        return [_GROUP, *([_ROWS] if self._rows_matter else []), *([_OWNER] if owner else [])]

    @property
    def _rows_matter(self) -> bool:
        """Whether somebody has more rows than count, or may have by now."""
        matter = self._table._rows_matter(self._weighings[0].most_rows)
        return matter and not self._reading.distinct

    def _of_values(self, rows: Any, by: list[str], keys: Sequence[Key]) -> list[Steps]:
        """Add up steps by cell and group."""
        table, reading, algebra = self._table, self._reading, OfExpressions()
        numbers = [Number(rows[f"c{place}"]) for place in range(len(reading.about))]
        scaled = reading.centred(numbers, algebra)
        more = {f"c{place}": one.expression for place, one in enumerate(scaled)}
        for number, weighing in enumerate(self._weighings):
            more[f"cap{number}"] = self._cap(rows, weighing).expression
        rows = rows.mutate(**more)
        values = reading.coordinates(
            [Number(rows[f"c{place}"]) for place in range(len(numbers))], algebra
        )
        sums = {}
        for number in range(len(self._weighings)):
            for j, value in enumerate(values):
                added = rounded(Number(rows[f"cap{number}"]) * value, algebra)
                sums[f"s{number}_{j}"] = added.expression.cast("int64").sum(where=rows[_INSIDE])
        found = rows.group_by(by).agg(n=rows.count(), **sums)
        totals = [np.zeros((reading.n_cells, reading.width), np.int64) for _ in self._weighings]
        n_seen = np.zeros_like(table._rows_of)
        for row in table._engine.fetch(found.select(*by, "n", *sums)):
            *key, inside, group, n = row[: len(by) + 1]
            n_seen[int(group)] += int(n)
            if not inside or None in key:
                continue
            cell, added_here = self._cell(key, keys), row[len(by) + 1 :]
            for number, total in enumerate(totals):
                part = added_here[number * reading.width : (number + 1) * reading.width]
                total[cell] += np.array([int(one) for one in part], dtype=np.int64)
        table._refuse_changed(n_seen)
        return totals

    def _of_counts(self, rows: Any, by: list[str], keys: Sequence[Key]) -> list[Steps]:
        """Count rows, or people, by cell, group and number of rows; what each weighs is added up here."""
        table, reading = self._table, self._reading
        distinct = reading.distinct and table._counts_rows
        by = [*by, *([_ROWS] if self._rows_matter else [])]
        counted = rows.count() if not distinct else rows[_OWNER].nunique()
        found = rows.group_by(by).agg(n=rows.count(), heads=counted).select(*by, "n", "heads")
        answers = table._engine.fetch(found)
        n_seen = np.zeros_like(table._rows_of)
        cells, groups, own, heads = [], [], [], []
        place = by.index(_INSIDE)
        for row in answers:
            group = int(row[place + 1])
            n_seen[group] += int(row[-2])
            if row[place] and None not in row[:place]:
                cells.append(self._cell(row[:place], keys))
                groups.append(group)
                own.append(int(row[place + 2]) if self._rows_matter else 1)
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

    def _cap(self, rows: Any, weighing: Weighing) -> Number:
        """What a row may add: one number for each group, where nobody has more rows than count."""
        import ibis

        weights = weighing.steps.astype(np.float64)
        width = self._reading.width
        if not self._rows_matter:
            one_row = np.ones(len(weights), dtype=np.int64)
            weights = np.asarray(weighing.cap_of(weights, one_row, width))
        group = rows[_GROUP]
        cases = [(group == place, real(one)) for place, one in enumerate(weights.tolist())]
        most = Number(ibis.cases(*cases, else_=real(0)))
        if not self._rows_matter:
            return most
        capped: Number = weighing.cap_of(most, Number(rows[_ROWS]), width, OfExpressions())
        return capped

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


def _rows_of_owner(table: Any, owner: Any) -> Any:
    """How many rows each row's owner has."""
    import ibis

    return table.count().over(ibis.window(group_by=owner))


def _refuse_other_names(table: Any, column: str, like: Any = None) -> None:
    """Refuse names that are neither text nor whole numbers, or not both where they are compared.

    Engines turn one into the other as they like: "007" into 7.
    """
    kind = table[column].type()
    if not (kind.is_string() or kind.is_integer()) or kind.is_uint64():
        raise InputError(
            f"column {column!r} says whose a row is, in another type ({kind}) than text or whole numbers: "
            "make a view in which it is text"
        )
    if like is not None and like.is_string() != kind.is_string():
        raise InputError(
            f"column {column!r} holds names as {'text' if kind.is_string() else 'numbers'} in one table and "
            f"as {'text' if like.is_string() else 'numbers'} in another: make a view in which they are alike"
        )


def _require(table: Any, column: str, what: str = "the table") -> bool:
    if column not in table.columns:
        raise InputError(f"{what} has no column {column!r}: {nearest(column, list(table.columns))}")
    return True


def _levels_of(counted: Sequence[_Counted], policy: Policy) -> dict[Any, int]:
    """Number of each level that occurs; the last one: none of those with a budget."""
    known = {name: code for code, name in enumerate(policy.levels)}
    known |= dict.fromkeys(policy.outside, len(known))
    unknown = [one for one in counted if one.name not in known]
    if unknown:
        n = sum(one.people * one.rows for one in unknown)
        raise unknown_level(unknown[0].name, [*policy.levels, *policy.outside], n)
    return {one.level: known[str(one.name)] for one in counted}


def _numbered(names: pd.Series, numbers: dict[Any, int]) -> NDArray[np.intp]:
    codes, found = pd.factorize(names)
    of_each = [numbers.setdefault(name, len(numbers)) for name in found.tolist()]
    return np.asarray(np.asarray(of_each, dtype=np.intp)[codes])


def _array(column: Any, kind: str) -> NDArray[Any]:
    values = column.to_numpy(zero_copy_only=False)
    if kind not in ("category", "flag"):
        return np.asarray(values, dtype=np.float64)
    return np.asarray(np.nan_to_num(values.astype(np.float64), nan=-1.0), dtype=np.int64)
