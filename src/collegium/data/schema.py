"""A public schema: what is known of a private table before anybody's row is looked at."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks import check_whole, nearest, shown
from collegium.data.date_parts import date_part
from collegium.data.schema_arrays import series_of, values_of
from collegium.data.schema_column import DATE, TEXT, Column, column_from
from collegium.data.schema_draft import drafted
from collegium.durable import write_durably
from collegium.errors import ConfigError, InputError
from collegium.parameters import check_fields, setting, settings_of
from collegium.toml_files import read_toml, toml_key, toml_text

__all__ = ["Column", "Schema"]

_KEYS = ("rows_per_owner", "columns", "tables")
MOST_ROWS_PER_OWNER = 1_000_000


@dataclass(frozen=True)
class OtherTable:
    """Another table of the same database, whose rows of a person are joined with each of that person's rows.

    ``owner``: its column with whose a row is; None: as in the table itself.
    ``rows_per_owner``: how many of its rows of one person count fully.
    """

    owner: str | None = setting(None, "Its column with whose a row is.", kind="text")
    rows_per_owner: int = setting(1, "How many of its rows of one person count fully.", least=1)

    def __post_init__(self) -> None:
        check_fields(self)
        check_whole("rows_per_owner", self.rows_per_owner, most=MOST_ROWS_PER_OWNER)


class Schema(Mapping[str, Column]):
    """Public types, bounds and categories of a private table, frozen.

    Nothing in it is read off private rows. Statistics and synthetic tables need one: bounds say how much
    one person can move a sum, categories which groups there are. A value outside the bounds is clipped;
    what is no number, or no category, counts as missing, without a word about it.

    Parameters
    ----------
    columns : dict of str to Column or dict
        By name, what :class:`~collegium.data.schema.Column` takes. Columns that are not named cannot be asked
        about.
    rows_per_owner : int, default=1
        How many rows of one person count fully, in the unit of one row each. Who has more shares that much
        among them.
    tables : dict of str to dict, optional
        Other tables of the same database, joined by person: by name, ``owner`` (its column with whose a row
        is; default: as in the table itself) and ``rows_per_owner`` (default 1). Their columns are named with
        a point: ``"patients.birth"``. A person then has as many rows as pairs of rows, of which the product
        of all ``rows_per_owner`` count fully. For tables in databases; in memory, join them first.

    Raises
    ------
    InputError
        If something is missing or contradicts itself; the message names column and key.

    Examples
    --------
    >>> schema = Schema({
    ...     "age": {"kind": "whole", "bounds": [17, 90]},
    ...     "sex": {"kind": "category", "categories": ["Female", "Male"]},
    ... })
    >>> schema["age"].upper, schema["sex"].keys
    (90.0, ('Female', 'Male'))
    >>> import pandas as pd
    >>> rows = schema.arrays(pd.DataFrame({"age": [39, 1000, None], "sex": ["Male", "?", "Female"]}))
    >>> rows["age"].tolist(), rows["sex"].tolist()
    ([39.0, 90.0, nan], [1, -1, 0])
    """

    __slots__ = ("_columns", "_digest", "_notes", "_parts", "_rows_per_owner", "_tables")

    def __init__(
        self,
        columns: Mapping[str, Column | Mapping[str, Any]],
        rows_per_owner: int = 1,
        tables: Mapping[str, OtherTable | Mapping[str, Any]] | None = None,
    ) -> None:
        if not isinstance(columns, Mapping) or not columns:
            raise InputError(
                f"columns must be a table with at least one column, got {shown(columns)}"
            )
        check_whole("rows_per_owner", rows_per_owner, most=MOST_ROWS_PER_OWNER)
        self._columns = {str(name): column_from(str(name), one) for name, one in columns.items()}
        self._parts: dict[str, Column] = {}
        self._refuse_parts_of_dates()
        self._rows_per_owner = int(rows_per_owner)
        self._tables = _tables_from({} if tables is None else tables, self._columns)
        check_whole(
            "rows_per_owner of all tables together", self.rows_per_owner, most=MOST_ROWS_PER_OWNER
        )
        self._notes: Mapping[str, str] = {}
        self._digest = hashlib.sha256(
            json.dumps(self._canonical(), sort_keys=True, ensure_ascii=True).encode()
        ).hexdigest()

    @property
    def columns(self) -> Mapping[str, Column]:
        """What is known of each column, by name."""
        return MappingProxyType(self._columns)

    @property
    def rows_per_owner(self) -> int:
        """How many rows of one person count fully: of joined tables, pairs of rows."""
        return self._rows_per_owner * math.prod(one.rows_per_owner for one in self._tables.values())

    @property
    def tables(self) -> Mapping[str, OtherTable]:
        """Other tables that are joined by person, by name."""
        return MappingProxyType(self._tables)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that is said, in hexadecimal: equal schemas have equal ones."""
        return self._digest

    def __getitem__(self, name: str) -> Column:
        if isinstance(name, str) and name not in self._columns and (part := date_part(name)):
            if name not in self._parts:
                self._parts[name] = part.column(self[part.source])
            return self._parts[name]
        if not isinstance(name, str) or name not in self._columns:
            raise InputError(
                f"there is no column {shown(name)} in the schema: {nearest(str(name), list(self._columns))}"
            )
        return self._columns[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Take a column, or something else where there is none of that name."""
        return self._columns.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {column.kind}" for name, column in self._columns.items())
        return f"Schema({kinds}; rows_per_owner={self._rows_per_owner})"

    def arrays(self, frame: Any, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """Read rows as this schema says.

        Parameters
        ----------
        frame : pandas.DataFrame, pyarrow.Table, or any table with Arrow's C interface
            n rows; columns that are not asked for are not looked at.
        names : list of str, optional
            Which columns; default: all that are not text.

        Returns
        -------
        dict of str to ndarray of shape (n,)
            Numbers: float64 within the bounds, NaN where one is missing. Categories: int64, the place among
            ``keys``; flags: 0 or 1; -1 where it is missing or unknown.

        Raises
        ------
        InputError
            If the table lacks a column; or a column of numbers is declared to hold dates, or one whose
            categories are text to hold numbers: then a reader has typed it as a whole. Never for a value.
        """
        if names is None:
            names = [name for name, column in self._columns.items() if column.kind != TEXT]
        asked = {name: self[name] for name in names}
        return {name: self._values(frame, name, one) for name, one in asked.items()}

    def sources(self, names: Sequence[str]) -> list[str]:
        """Columns of the table that columns of a question are made of, each once: dates of their parts."""
        parts = {name: date_part(name) for name in names if name not in self._columns}
        return list(
            dict.fromkeys(part.source if (part := parts.get(name)) else name for name in names)
        )

    def _values(self, frame: Any, name: str, column: Column) -> NDArray[Any]:
        part = None if name in self._columns else date_part(name)
        if part is None:
            return values_of(series_of(frame, name), name, column)
        days = values_of(series_of(frame, part.source), part.source, self[part.source])
        return part.values(days, column)

    def _refuse_parts_of_dates(self) -> None:
        """Refuse a column that has the name of a part of another one: a question could mean either."""
        for name in self._columns:
            part = date_part(name)
            if part is not None and self._columns.get(part.source, Column(TEXT)).kind == DATE:
                raise InputError(
                    f"columns.{name} is how questions call a part of {part.source!r}: rename one of them"
                )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a TOML file.

        Raises
        ------
        ConfigError
            In one line, with file and key.
        """
        file = Path(path)
        given = read_toml(file, command="schema init PUBLIC.csv --out")
        try:
            return cls._from(given)
        except InputError as error:
            raise ConfigError(f"{file}: {error}") from None

    @classmethod
    def _from(cls, given: Mapping[str, Any]) -> Schema:
        for key in given:
            if key not in _KEYS:
                raise InputError(f"unknown key {key}: {nearest(key, _KEYS)}")
        if "columns" not in given:
            raise InputError("it describes no column: write a section such as [columns.age]")
        return cls(given["columns"], given.get("rows_per_owner", 1), given.get("tables"))

    @classmethod
    def from_public(
        cls,
        records: Any,
        *,
        separator: str | None = None,
        decimal: str | None = None,
        dates: str | None = None,
        rows_per_owner: int = 1,
    ) -> Schema:
        """Draft a schema from **public** records: private ones would be told to everybody who reads it.

        Bounds are rounded outwards, categories are those that occur, and means, deviations and shares are
        taken as known; :meth:`write` says beside each what to check.

        Parameters
        ----------
        records : pandas.DataFrame, any table with Arrow's C interface, or path of a CSV or Parquet file
            Public.
        separator, decimal : str, optional
            Between the cells of a CSV file, and before the decimals of its numbers. Default: what it shows.

        dates : str, optional
            An example of how dates are written, where public records leave open what is the day and what the
            month: ``"31/12/2024"``.
        rows_per_owner : int, default=1
            What counts count: people (1), or rows, at most so many of each person.

        Raises
        ------
        InputError
            If there is no row, or no column that can be described.
        """
        columns, notes = drafted(records, separator, decimal, dates)
        schema = cls(columns, rows_per_owner)
        schema._notes = notes
        return schema

    def toml(self) -> str:
        """Write the schema as the text of a TOML file."""
        lines = [
            "# Public: what may be asked about a private table. Nothing in it may be read off private rows.",
            "",
            f"# {what_is_counted(self._rows_per_owner)}",
            f"rows_per_owner = {self._rows_per_owner}",
        ]
        for name, table in self._tables.items():
            lines += ["", f"[tables.{toml_key(name)}]"]
            lines += [f"{key} = {toml_text(value)}" for key, value in _said(table).items()]
        for name, column in self._columns.items():
            lines += ["", f"[columns.{toml_key(name)}]"]
            lines += [f"# {line}" for line in self._notes.get(name, "").splitlines()]
            lines += [f"{key} = {toml_text(value)}" for key, value in column.said().items()]
        return "\n".join(lines) + "\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to a TOML file; an older one is replaced."""
        write_durably(Path(path), self.toml().encode())

    def _canonical(self) -> dict[str, Any]:
        columns = {
            name: {key: _plain(value) for key, value in column.said().items()}
            for name, column in self._columns.items()
        }
        said = {"rows_per_owner": self._rows_per_owner, "columns": columns}
        if self._tables:  # so that schemas of one table keep their digests
            said["tables"] = {name: _said(one) for name, one in self._tables.items()}
        return said


def _said(table: OtherTable) -> dict[str, Any]:
    owner = {} if table.owner is None else {"owner": table.owner}
    return {**owner, "rows_per_owner": table.rows_per_owner}


def _tables_from(given: Any, columns: Mapping[str, Column]) -> dict[str, OtherTable]:
    if not isinstance(given, Mapping):
        raise InputError(f"tables must be sections with a table's name, got {shown(given)}")
    found = {}
    for name, one in given.items():
        where = f"tables.{name}"
        if not isinstance(one, Mapping | OtherTable):
            raise InputError(f"{where} must be a section with keys, got {shown(one)}")
        if isinstance(one, Mapping):
            allowed = list(settings_of(OtherTable))
            for key in one:
                if key not in allowed:
                    raise InputError(f"unknown key {where}.{key}: {nearest(str(key), allowed)}")
            try:
                one = OtherTable(**one)
            except InputError as error:
                raise InputError(f"{where}.{error}") from None
        if not any(column.startswith(f"{name}.") for column in columns):
            raise InputError(
                f"{where} is joined, but no column of it is described: write a section such as "
                f'[columns."{name}.age"], or remove it'
            )
        found[str(name)] = one
    for column in columns:
        if len(of := [name for name in found if column.startswith(f"{name}.")]) > 1:
            raise InputError(f"columns.{column} could be one of two tables, {of[0]} and {of[1]}")
    return found


def what_is_counted(rows_per_owner: int) -> str:
    """Say in a sentence what counts count."""
    if rows_per_owner == 1:
        return (
            "Counts are of people: each counts once, in equal parts over their rows. To count rows instead, "
            "say how many of one person count in full, such as rows_per_owner = 5."
        )
    return (
        f"Counts are of rows, at most {rows_per_owner:,} of each person: the rows of somebody who has more "
        "count for less. To count people instead, say rows_per_owner = 1."
    )


def _plain(value: Any) -> Any:
    """Write 17 and 17.0 alike."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        return float(value)
    return value
