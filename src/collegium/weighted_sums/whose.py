"""Whose rows are whose: a table and what was given beside it become rows of people who granted something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.neighbours import OWNER, ROW, Arrangement, Neighbours
from collegium.accounting.promises import Promise
from collegium.budgets import PUBLIC, Budgets, Policy, as_budgets
from collegium.data.engines.connections import is_expression
from collegium.data.engines.places import Place, place_of, read_place
from collegium.data.schema import Schema
from collegium.data.schema_arrays import n_rows, series_of, take_frame_rows
from collegium.errors import InputError
from collegium.personalisation.bins import few_budgets
from collegium.weighted_sums.settings import relation_of
from collegium.weighted_sums.tables import InMemory, Table, paths_of, read_all, refuse_empty
from collegium.zero_and_public_budgets import has_budget, subset

if TYPE_CHECKING:
    from collegium.ledger.event_spending import EventSpending
    from collegium.ledger.ledger import Ledger
    from collegium.weighted_sums.in_engine import InEngine

S = TypeVar("S", bound="EventSpending")


@dataclass(frozen=True)
class Whose(Generic[S]):
    """Rows of people who granted something, and what of that may be used.

    ``spending``: on a ledger, nothing set aside yet.
    ``relation``: between which tables the account holds.
    ``kept``: share of what they granted that is left where budgets were made fewer.
    """

    table: Table
    spending: S | None
    relation: Neighbours
    kept: float

    @property
    def promise(self) -> Promise:
        """What is kept account of."""
        return Promise.EITHER if self.spending is None else self.spending.allowance.lifetime.promise

    @property
    def arrangement(self) -> Arrangement:
        """How a statement describes it."""
        return arrangement_of(self.table, self.relation, self.promise, self.kept)


def arrangement_of(
    table: Table, relation: Neighbours, promise: Promise, kept: float = 1.0
) -> Arrangement:
    """How a statement describes sums over a table."""
    return Arrangement(
        unit=OWNER if table.named else ROW,
        blanked_only=relation is Neighbours.ADD_OR_REMOVE,
        direct=True,
        promise=promise,
        regrouped=kept < 1,
    )


def whose(
    frame: Any,
    budgets: Any,
    schema: Schema,
    *,
    privacy: str | None,
    owner: str | None,
    delta: float,
    neighbours: str | None,
    ledger: Ledger | None = None,
    spending: Callable[[], type[S]],
    noise_seed: int | None = None,
    spend: float = 1.0,
    as_granted: bool = False,
    everybody: Callable[[Budgets, Neighbours], Budgets] | None = None,
) -> Whose[S]:
    """Find whose rows these are, and what of their budgets may be used.

    ``spending``: loads the class, with which a database comes.
    ``spend``: share of what people have left on the ledger.
    ``everybody``: adds how many people of other parties granted what; then rows are read into memory.
    ``as_granted``: whether different budgets stay apart, however many there are: a ledger knows them.
    """
    frame = held(frame)
    files = [] if is_in_engine(frame) else paths_of(frame)
    if (files or is_in_engine(frame)) and ledger is None and everybody is None:
        table = elsewhere(frame, budgets, privacy, owner, schema)
        return Whose(table, None, relation_of(neighbours), 1.0)
    if is_in_engine(frame):
        if everybody is not None:
            raise InputError(
                "with other parties, rows are added up here: read the table, and give it in memory"
            )
        return _on_ledger(
            frame, budgets, schema, privacy, owner, neighbours, ledger, spending, noise_seed, spend
        )
    if files:
        frame = read_all(files)
    refuse_empty(frame)
    granted, frame = who_granted(frame, budgets, privacy, owner, delta)
    on_ledger, relation = None, relation_of(neighbours)
    if ledger is not None:
        rows = _private(ledger, granted)
        frame, granted = take_frame_rows(frame, rows), subset(granted, rows)
        relation, on_ledger = spending().begin(ledger, granted, neighbours, noise_seed, spend)
        frame, granted = take_frame_rows(frame, on_ledger.records), on_ledger.budgets
    elif not as_granted:
        granted = few_budgets(granted)
    if everybody is not None:
        granted = everybody(granted, relation)
    return Whose(InMemory(frame, granted, schema), on_ledger, relation, granted.kept)


def _on_ledger(
    frame: Any,
    budgets: Any,
    schema: Schema,
    privacy: str | None,
    owner: str | None,
    neighbours: str | None,
    ledger: Any,
    spending: Callable[[], type[S]],
    noise_seed: int | None,
    spend: float,
) -> Whose[S]:
    """People of a table in an engine, whom a ledger knows by name; rows stay where they are."""
    table = in_engine(frame, budgets, privacy, owner, schema)
    try:
        granted = table.people(budgets)
        rows = has_budget(granted, tell=lambda line: None)  # which was told as the table was opened
        rows = rows[_private(ledger, subset(granted, rows))]
        granted = subset(granted, rows)
        relation, its = spending().begin(ledger, granted, neighbours, noise_seed, spend)
        table.only(its.budgets, rows[its.records])
    except BaseException:
        table.close()
        raise
    return Whose(table, its, relation, its.budgets.kept)


def _private(ledger: Ledger, granted: Budgets) -> NDArray[np.intp]:
    """Find the records that are not public, of which alone a ledger keeps account."""
    public = granted.owner_group == PUBLIC
    if public.any():
        ledger.refuse_published(granted.owners[public])
    if public.all():
        raise InputError("nobody in this table granted a budget: there is nothing to ask")
    return np.flatnonzero(~public[granted.record_owner])


def held(frame: Any) -> Any:
    """Read a table that no engine adds up (of SQLite, a workbook); find where others lie."""
    _refuse_frames_of_engines(frame)
    place = place_of(frame)
    if place is None:
        return frame
    return read_place(place) if place.in_memory else place


def _refuse_frames_of_engines(frame: Any) -> None:
    """Refuse what looks like a table in an engine, and can only be asked in another form."""
    if type(frame).__module__.startswith("pyspark."):
        raise InputError(
            "a frame of Spark is asked as a table of Ibis: call frame.createOrReplaceTempView('people'), and "
            "give ibis.pyspark.connect(session).table('people')"
        )
    if is_expression(frame):
        from ibis.expr.operations import InMemoryTable

        if frame.op().find(InMemoryTable):
            raise InputError(
                "a table of Ibis in memory (ibis.memtable) lies in no engine: give the frame it was made of"
            )


def is_in_engine(frame: Any) -> bool:
    """Whether a table lies in an engine that adds up by itself."""
    return isinstance(frame, Place) or is_expression(frame)


def elsewhere(
    frame: Any, budgets: Any, privacy: str | None, owner: str | None, schema: Schema
) -> Table:
    """A table in files or in an engine, which says itself what each row's owner granted."""
    if is_in_engine(frame):
        return in_engine(frame, budgets, privacy, owner, schema)
    from collegium.weighted_sums.streamed import InParquet  # pyarrow's readers come with it

    return InParquet(paths_of(frame), *_says_itself(budgets, privacy), owner, schema)


def in_engine(
    frame: Any, budgets: Any, privacy: str | None, owner: str | None, schema: Schema
) -> InEngine:
    """A table that stays where it lies."""
    from collegium.weighted_sums.in_engine import InEngine  # with which its engine comes

    return InEngine(frame, *_says_itself(budgets, privacy), owner, schema)


def _says_itself(budgets: Any, privacy: str | None) -> tuple[Policy, str]:
    if not isinstance(budgets, Policy) or privacy is None:
        raise InputError(
            "for tables in files and databases, budgets must be a Policy, and privacy the column with each "
            "row's level: give both, or read the table and give it"
        )
    return budgets, privacy


def table_of(
    frame: Any,
    budgets: Any,
    schema: Schema,
    *,
    privacy: str | None = None,
    owner: str | None = None,
) -> Table:
    """A table in memory, beside its budgets; or in files or an engine, with a column of levels."""
    frame = held(frame)
    if is_in_engine(frame) or paths_of(frame):
        return elsewhere(frame, budgets, privacy, owner, schema)
    return InMemory(frame, budgets, schema)


def who_granted(
    frame: Any, budgets: Any, privacy: str | None, owner: str | None, delta: float
) -> tuple[Budgets, Any]:
    """Who granted what, and the rows of those who granted anything."""
    count = n_rows(frame)
    if isinstance(budgets, Policy):
        if privacy is None:
            raise InputError(
                "budgets is a Policy, but the column with each row's level is missing: give "
                "privacy='COLUMN', or policy.assign(levels) as budgets"
            )
        owners = None if owner is None else series_of(frame, owner)
        budgets = budgets.assign(series_of(frame, privacy), owners)
    elif privacy is not None or owner is not None:
        raise InputError(
            "privacy and owner are for budgets that are a Policy: give a Policy, or leave them out"
        )
    granted = as_budgets(budgets, delta, count)
    if len(granted) != count:
        raise InputError(f"{count:,} rows, but {len(granted):,} budgets: give one for each row")
    rows = has_budget(granted)
    if len(rows) < count:
        return subset(granted, rows), take_frame_rows(frame, rows)
    return granted, frame
