"""Rows of a private table that questions are asked of, and what each one's owner granted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from collegium.budgets import Budgets, Policy, as_budgets
from collegium.checks import nearest
from collegium.data.column_types import numbers_of
from collegium.data.datasets.table_files import read_table
from collegium.data.engines.places import Place, read_place
from collegium.data.engines.sources import (
    Source,
    adds_up,
    fingerprint_of,
    header_at,
    in_its_words,
    is_text,
)
from collegium.data.headers import NO_HEADER, has_header
from collegium.data.people import ask_about_people
from collegium.data.schema import Schema
from collegium.data.schema_arrays import n_rows, series_of
from collegium.data.schema_column import NUMBER, WHOLE
from collegium.data.sharding.source import ParquetSource
from collegium.errors import InputError
from collegium.runs.observer import Observer
from collegium.study.first_steps.levels import read_levels
from collegium.study.policy_file import read_policy


@dataclass(frozen=True)
class Names:
    """How whoever asks calls what says it: options, or keys of a file."""

    owner: str = "--owner"
    privacy: str = "--privacy"
    levels: str = "--levels high=1,low=3 or --policy FILE"


@dataclass(frozen=True)
class GrantColumns:
    """Where it stands what people granted.

    ``column``: with each row's level, or ε where there is no policy; None: ``epsilon`` is everybody's.
    ``policy``: what levels mean.
    ``owner``: column that says whose row it is; None: each is another person's.
    """

    column: str | None
    policy: Policy | None
    epsilon: float | None
    delta: float
    owner: str | None
    called: Names = Names()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are read for it."""
        return tuple(name for name in (self.column, self.owner) if name is not None)


def granted_as_said(
    column: str | None,
    levels: str | None,
    policy: Path | None,
    epsilon: float | None,
    delta: float,
    owner: str | None,
) -> GrantColumns:
    """Read the options about what people granted."""
    if levels is not None and policy is not None:
        raise InputError("--levels and --policy both say what levels mean: give one of them")
    known = None
    if policy is not None:
        known = read_policy(policy).policy
    elif levels is not None and (meaning := read_levels(levels)):
        known = Policy(meaning["levels"], delta)
    if column is None and epsilon is None:
        raise InputError(
            "it is not said what people granted: --privacy names the column (with --levels or --policy, or "
            "of ε itself), or --epsilon says it of everybody"
        )
    if epsilon is not None and (column is not None or known is not None):
        raise InputError(
            "--epsilon is everybody's: leave it out, or --privacy, --levels and --policy"
        )
    return GrantColumns(column, known, epsilon, delta, owner)


@dataclass(frozen=True, eq=False)
class Rows:
    """A table, in memory or where it lies, and what its people granted: what a session takes.

    ``columns``: which columns of a table that is not in memory have levels and owners.
    ``fingerprint``: tells that what was read is the same; empty where nobody asked.
    """

    frame: Any
    budgets: Budgets | Policy
    columns: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""


@dataclass(frozen=True)
class FormOfCsv:
    """How numbers and cells are written in a CSV file."""

    separator: str | None
    decimal: str


def read_rows(
    source: Source,
    needs: Sequence[str],
    schema: Schema,
    granted: GrantColumns,
    form: FormOfCsv,
    observer: Observer,
    *,
    may_stream: bool,
    fingerprinted: bool = False,
) -> Rows:
    """Read the columns that questions need, and what everybody granted.

    ``needs``: columns that are asked about.
    ``may_stream``: whether a table may stay where it lies (in Parquet files, or in a database that adds up by
        itself) and be looked at for each question, if levels are in it.
    ``fingerprinted``: whether it is to be told later that what was read is the same.
    """
    needs = schema.sources(needs)
    wanted = list(dict.fromkeys([*needs, *granted.columns]))
    options = {granted.owner: granted.called.owner, granted.column: granted.called.privacy}
    stays = may_stream and granted.policy is not None and granted.column is not None
    others = _of_others(source, wanted, schema, granted) if adds_up(source) else {}
    if others and not stays:
        (other, (name, *_)), *_ = others.items()
        raise InputError(
            f"column '{other.table}.{name}' is joined where the table lies, and here its rows are read, "
            f"{_why_read(granted)}make a view of both tables, and name that"
        )
    joined = {f"{other.table}.{name}" for other, names in others.items() for name in names}
    wanted = [name for name in wanted if name not in joined]
    _refuse_missing_columns(source, wanted, options, form, schema)
    if is_text(source):
        observer.stage("reading")
        whole = _text_of(source, form)
        _warn_of_people(whole, granted)
        frame: Any = whole[wanted or whole.columns[:1]]
        told = fingerprint_of(source, frame) if fingerprinted else ""
        if not isinstance(source, Place):
            frame = _with_numbers(frame, needs, schema, form.decimal)
    elif stays:
        assert granted.policy is not None
        columns = {"privacy": granted.column, "owner": granted.owner}
        told = _digests(source, wanted, others, schema, granted) if fingerprinted else ""
        return Rows(str(source), granted.policy, columns, told)
    else:
        frame = _typed(source, wanted, observer)
        told = fingerprint_of(source, frame) if fingerprinted else ""
    with in_its_words(source):
        budgets = _budgets_of(frame, granted, form.decimal)
    return Rows(frame, budgets, fingerprint=told)


def _why_read(granted: GrantColumns) -> str:
    """Say why rows of a database leave it, and what would keep them there."""
    if granted.column is None or granted.policy is None:
        return f"since no column of levels is named: give {granted.called.privacy} and levels, or "
    return (
        'as for every study with a ledger, or between parties: set ledger.url = "none" (--ledger none), with '
        "which nobody remembers what is spent, or "
    )


def read_unowned(source: Source, needs: Sequence[str], schema: Schema, form: FormOfCsv) -> Any:
    """Read some columns of a table that is about nobody with a budget: of public records."""
    needs = schema.sources(needs)
    _refuse_missing_columns(source, needs, {}, form, schema)
    if not is_text(source):
        return _typed(source, needs, Observer())
    frame = _text_of(source, form)[needs]
    return frame if isinstance(source, Place) else _with_numbers(frame, needs, schema, form.decimal)


def read_column(source: Source, name: str, form: FormOfCsv) -> Any:
    """Read one column of a table, as text where that is what a file holds."""
    if not is_text(source):
        return _typed(source, [name], Observer())
    return _text_of(source, form)[[name]]


def _of_others(
    source: Source, wanted: Sequence[str], schema: Schema, granted: GrantColumns
) -> dict[Place, list[str]]:
    """Find columns that are joined by person from other tables of a database: "patients.birth"."""
    assert isinstance(source, Place)
    there = header_at(source).columns or ()
    found: dict[Place, list[str]] = {}
    for name in wanted:
        table = next((one for one in schema.tables if name.startswith(f"{one}.")), "")
        if name == granted.column and name not in there:
            table = table or name.rpartition(".")[0]
        if table:
            other = replace(source, table=table, schema=None)
            found.setdefault(other, []).append(name.removeprefix(f"{table}."))
    return found


def _digests(
    source: Source,
    wanted: Sequence[str],
    others: Mapping[Place, Sequence[str]],
    schema: Schema,
    granted: GrantColumns,
) -> str:
    """Tell that all tables that are joined are the same."""
    told = [fingerprint_of(source, columns=wanted)]
    for other, names in others.items():
        known = schema.tables.get(other.table)
        key = (known.owner if known else None) or granted.owner
        read = list(dict.fromkeys([*names, *([key] if key else [])]))
        told.append(f"{other.table}:{fingerprint_of(other, columns=read)}")
    return " ".join(told)


def _text_of(source: Source, form: FormOfCsv) -> pd.DataFrame:
    """Read a table of text, of a workbook with its dates."""
    if isinstance(source, Place):
        return read_place(source)
    return read_table(source, separator=form.separator, as_text=True)


def _refuse_missing_columns(
    source: Source,
    wanted: Sequence[str],
    options: Mapping[str | None, str],
    form: FormOfCsv,
    schema: Schema,
) -> None:
    """Refuse a table by its header, before a row is read. ``options``: which of them names a column."""
    header = header_at(source, form.separator)
    if header.columns is None:
        raise InputError(
            f"{source} is an array without column names: give a table (.csv, .parquet)"
        )
    for name in wanted:
        if name not in header.columns:
            said = f"{options[name]} names" if name in options else "the schema names"
            named = isinstance(source, Place) or not is_text(source)
            named = named or has_header(header.columns, schema.columns)
            there = nearest(name, header.columns) if named else NO_HEADER
            if name in header.unreadable:
                raise InputError(
                    f"column {name!r} of {source}, which {said}, {header.unreadable[name]}"
                )
            raise InputError(f"{source} has no column {name!r}, which {said}: {there}")


def _warn_of_people(frame: pd.DataFrame, granted: GrantColumns) -> None:
    if granted.owner is not None:
        return
    ask_about_people(
        frame,
        (granted.column,),
        lambda names: (
            f"if it is, say so ({granted.called.owner} {names[0]}); without, each row is protected by "
            "itself, and a person with several rows by nothing"
        ),
    )


def _with_numbers(
    frame: pd.DataFrame, needs: Sequence[str], schema: Schema, decimal: str
) -> pd.DataFrame:
    """Read numbers whose decimals stand behind a comma, each cell by itself."""
    if decimal == ".":
        return frame
    numbers = [
        name
        for name in needs
        if schema[name].kind in (NUMBER, WHOLE) and schema[name].written is None
    ]
    return frame.assign(**{name: numbers_of(frame[name], decimal) for name in numbers})


def _typed(source: Source, wanted: Sequence[str], observer: Observer) -> Any:
    """Read some columns of a table whose types are declared."""
    if isinstance(source, Place):
        from collegium.data.engines.rows import table_at  # drivers come with it

        observer.stage("reading")
        return table_at(source, wanted)
    return _of_parquet(ParquetSource(source), wanted, observer)


def _of_parquet(source: ParquetSource, wanted: Sequence[str], observer: Observer) -> Any:
    import pyarrow as pa

    observer.stage("reading", source.n_rows)
    tables, read = [], 0
    columns = list(wanted) or [
        source.columns[0]
    ]  # rows are counted even where no column is asked for
    for piece in source.pieces:
        for _, table in source.reader.batches(piece, columns):
            tables.append(table)
            read += table.num_rows
            observer.advanced(read, source.n_rows)
    return pa.concat_tables(tables)


def _budgets_of(frame: Any, granted: GrantColumns, decimal: str) -> Budgets:
    count = n_rows(frame)
    if not count:
        raise InputError("the table has no row: give one with the people who are asked about")
    if granted.column is None:
        if granted.owner is None:
            return as_budgets(granted.epsilon, granted.delta, count)
        levels: Any = pd.Series([granted.epsilon]).repeat(count).to_numpy()
        return Budgets.from_epsilons(levels, granted.delta, series_of(frame, granted.owner))
    owners = None if granted.owner is None else series_of(frame, granted.owner)
    column = series_of(frame, granted.column)
    if granted.policy is not None:
        return granted.policy.assign(column, owners)
    epsilons = numbers_of(column, decimal)
    unread = int((pd.isna(epsilons) & column.notna().to_numpy()).sum())
    if unread:
        raise InputError(
            f"{unread:,} of {count:,} rows have text in {granted.column!r}, where ε is expected: say what "
            f"each level means, with {granted.called.levels}"
        )
    return Budgets.from_epsilons(epsilons, granted.delta, owners)
