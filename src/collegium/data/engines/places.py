"""Where a table lies that is no CSV or Parquet file: in a database, or in a workbook.

``postgresql://steward@host/hospital#visits`` is a place; paths and tables in memory are not. Names of tables
are names, never SQL: whoever asks a database quotes them as that database does. Passwords come from the
environment alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import urllib.parse
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from collegium.checks import listed, nearest, shown
from collegium.data.datasets.raw import (
    MOST_TIMES_LARGER,
    SMALL_BYTES,
    existing_file,
    reason_of,
    refusal,
)
from collegium.data.datasets.table_files import header_problem
from collegium.errors import InputError
from collegium.names import as_names
from collegium.passwords import password_refusal, refuse_passwords, without_secrets

if TYPE_CHECKING:
    import pandas as pd

Engine = Literal["duckdb", "postgresql", "sqlite", "excel"]

FORMS = (
    "duckdb:///FILE#TABLE, sqlite:///FILE#TABLE, postgresql://USER@HOST/DATABASE#TABLE or FILE.xlsx#SHEET "
    "(an absolute FILE makes four slashes)"
)
#: What an address of a PostgreSQL server may say behind a question mark: nothing that is secret.
_OPTIONS = (
    "application_name",
    "channel_binding",
    "connect_timeout",
    "gssencmode",
    "host",
    "passfile",
    "port",
    "service",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
    "user",
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_SLIP = re.compile(r"(duckdb|sqlite|postgres(?:ql)?):", re.IGNORECASE)
_WORKBOOK = re.compile(r"(.+\.xls[xm])(?:#(.*))?", re.DOTALL | re.IGNORECASE)
_DATABASE = re.compile(r"(.+\.(duckdb|ddb|sqlite3?))(?:#(.*))?", re.DOTALL | re.IGNORECASE)
_PLAIN = re.compile(r"[^\W\d][\w$]*")
_NAME = r'(?:[^\W\d][\w$]*|"(?:[^"\0]|"")+")'
_TABLE = re.compile(rf"(?:({_NAME})\.)?({_NAME})")
#: First bytes of a file, and where they stand.
_MAGIC = {
    "duckdb": (8, b"DUCK", "a DuckDB database"),
    "sqlite": (0, b"SQLite format 3\0", "a SQLite database"),
    "excel": (0, b"PK\x03\x04", "an Excel workbook (.xlsx)"),
}
_BY_PANDAS = ("sqlite", "excel")


@dataclass(frozen=True)
class Place:
    """A table in a database, or a sheet of a workbook.

    ``where``: the file; or the address of a PostgreSQL database, without a password.
    ``table``: as the database knows it, unquoted.
    ``schema``: of the database, where it was named.
    """

    engine: Engine
    where: str
    table: str
    schema: str | None = None

    @property
    def file(self) -> Path | None:
        """The file that holds it; None on a server."""
        return None if self.engine == "postgresql" else Path(self.where)

    @property
    def name(self) -> str:
        """What it is called where nobody needs to know where it lies: file or database, and table."""
        where = (
            self.where if self.file else urllib.parse.urlsplit(self.where).path.rpartition("/")[2]
        )
        called = Path(where).name if self.file else where or self.engine
        return f"{called}#{self.table}" if self.table else called

    @property
    def has_order(self) -> bool:
        """Whether its rows have an order that stays: those of a sheet do."""
        return self.engine == "excel"

    def seen_from(self, folder: Path) -> Place:
        """Name it as seen from another folder than the working directory; what was named in full stays so."""
        if self.file is None or self.file.is_absolute():
            return self
        with contextlib.suppress(ValueError):  # on another drive
            return replace(self, where=Path(os.path.relpath(self.file, folder)).as_posix())
        return replace(self, where=str(self.file.resolve()))

    @property
    def in_memory(self) -> bool:
        """Whether it is read into memory as a whole: nothing asks it where it lies."""
        return self.engine in _BY_PANDAS

    def __str__(self) -> str:
        if self.engine == "excel":
            return f"{self.where}#{self.table}" if self.table else self.where
        named = [name for name in (self.schema, self.table) if name is not None]
        table = ".".join(name if _PLAIN.fullmatch(name) else _quoted(name) for name in named)
        return f"{self.where if self.file is None else f'{self.engine}:///{self.where}'}#{table}"


def place_of(given: Any, folder: Path | None = None, *, look: bool = True) -> Place | None:
    """Say where a table lies, if what was given names a database or a workbook.

    ``folder``: what a relative file is relative to; None: the working directory.
    ``look``: whether to look into a file; without, nothing is known but what was written.
    Returns: None for everything else: paths of other files, tables in memory.

    Raises
    ------
    InputError
        If it names one that cannot be asked: another kind of database, no table, SQL in place of a table, a
        password, or a file that is not there or no database.
    """
    if not isinstance(given, str | os.PathLike):
        return None
    text = os.fspath(given)
    if not isinstance(text, str):
        return None
    refuse_passwords([text])
    found = _SCHEME.fullmatch(text)
    if found is None:
        if _SLIP.match(text):
            raise InputError(
                f"{without_secrets(text)} is no place of a table: give {FORMS}, as text (a path drops "
                "slashes)"
            )
        workbook = _WORKBOOK.fullmatch(text)
        if workbook is None:
            if look:
                _refuse_bare_database(text)
            return None
        return _in_workbook(workbook[1], workbook[2], folder, look)
    scheme, rest = found[1].lower(), found[2]
    if scheme in ("postgresql", "postgres"):
        return _on_server(text)
    if scheme not in ("duckdb", "sqlite"):
        raise InputError(
            f"{without_secrets(text)}: a table in {shown(scheme)} cannot be read; allowed are {FORMS}"
        )
    file, _, table = rest.partition("#")
    if not file.startswith("/") or file[1:] in ("", ":memory:"):
        raise InputError(f"{without_secrets(text)} names no file: give {FORMS}")
    schema, name = _table_named(text, table)
    engine: Engine = "duckdb" if scheme == "duckdb" else "sqlite"
    place = Place(engine, str(_path(file[1:], folder)), name, schema)
    if look:
        _require_file(engine, Path(place.where))
    return _sqlite_table(place) if look and engine == "sqlite" else place


def is_named(given: str | os.PathLike[str]) -> bool:
    """Tell whether something names a database or a workbook, however well; nothing is looked at."""
    text = os.fspath(given)
    return any(form.match(text) for form in (_SCHEME, _SLIP)) or any(
        form.fullmatch(text) for form in (_WORKBOOK, _DATABASE)
    )


def read_place(
    place: Place, columns: Sequence[str] | None = None, *, as_text: bool = False
) -> pd.DataFrame:
    """Read a table of SQLite or a sheet of a workbook into memory, each cell by itself.

    Numbers and truth values are read as the text that would stand in a CSV file, so no cell decides how those
    of others are read.

    Parameters
    ----------
    place : Place
        Where it lies.
    columns : sequence of str, optional
        Which ones, in which order. Default: all.
    as_text : bool, default=False
        Whether dates are text as well, rather than dates.

    Returns
    -------
    pandas.DataFrame
        Text, dates, and None where a cell is empty or holds what is none of these.

    Raises
    ------
    InputError
        If it cannot be read, or lacks a column.
    """
    import pandas as pd

    there = columns_of(place)
    wanted = there if columns is None else tuple(columns)
    for name in wanted:
        if name not in there:
            raise InputError(f"{place} has no column {name!r}: {nearest(name, there)}")
    read = wanted or there[:1]  # rows are counted even where no column is asked for
    if place.engine == "sqlite":
        rows = _rows_of_sqlite(place, read)
    else:
        sheet = _sheet(place)
        rows = [sheet.iloc[1:, there.index(name)].tolist() for name in read]
    table = {
        name: pd.Series([_cell(cell, as_text) for cell in cells], dtype=object)
        for name, cells in zip(read, rows, strict=True)
    }
    return pd.DataFrame(table)[list(wanted)]


def columns_of(place: Place) -> tuple[str, ...]:
    """Name the columns of a table that is read into memory."""
    if place.engine == "sqlite":
        with _opened_sqlite(place) as connection:
            found = connection.execute(f"SELECT * FROM {_quoted(place.table)} LIMIT 0")
            names = [str(about[0]) for about in found.description]
    else:
        top = _sheet(place, rows=1)
        names = [
            f"Unnamed: {column}" if cell in ("", None) else str(cell)
            for column, cell in enumerate(top.iloc[0].tolist() if len(top) else [])
        ]
    problem = header_problem(names or None, ",") if len(names) != 1 else None
    if problem is not None:
        raise InputError(f"{place} {problem}: give a table whose columns have names, each another")
    return tuple(names)


def _refuse_bare_database(text: str) -> None:
    """Say how a database is named of which the file alone was given."""
    found = _DATABASE.fullmatch(text)
    if found is None:
        return
    scheme = "duckdb" if found[2].lower() in ("duckdb", "ddb") else "sqlite"
    raise InputError(
        f"{shown(text)} is the file of a database: name a table in it, as in "
        f"{scheme}:///{found[1]}#{found[3] or 'TABLE'}"
    )


def _on_server(text: str) -> Place:
    import sqlalchemy as sa

    address, _, table = text.partition("#")
    url = None
    with contextlib.suppress(sa.exc.ArgumentError, ValueError):
        url = sa.make_url("postgresql://" + address.partition("://")[2])
    options = () if url is None else tuple(url.query)
    secret = [name for name in options if "password" in name.lower()]
    if secret or (url and url.password is not None):  # in whatever spelling
        raise password_refusal(text)
    if url is None:
        raise InputError(
            f"{without_secrets(text)} is no address of a PostgreSQL database: give "
            "postgresql://USER@HOST:PORT/DATABASE#TABLE"
        )
    for name in options:
        if name not in _OPTIONS:
            raise InputError(
                f"{without_secrets(text)}: {shown(name)} cannot be said in an address; allowed are "
                f"{listed(_OPTIONS)}, and all else is set in the environment (PGOPTIONS, PGSERVICEFILE)"
            )
    schema, name = _table_named(text, table)
    return Place("postgresql", "postgresql://" + address.partition("://")[2], name, schema)


def _table_named(text: str, table: str) -> tuple[str | None, str]:
    if not table:
        raise InputError(f"{without_secrets(text)} names no table: write #TABLE behind it")
    found = _TABLE.fullmatch(table)
    if found is None:
        what = "what stands behind #" if "@" in table else shown(table)
        raise InputError(
            f"{what} is no name of a table: give TABLE or SCHEMA.TABLE, of letters, digits, _ and $, or in "
            "double quotes if it has other characters; SQL is not taken (make a view of it)"
        )
    schema, name = (None if part is None else _unquoted(part) for part in found.groups())
    assert name is not None
    return schema, name


def _in_workbook(file: str, sheet: str | None, folder: Path | None, look: bool) -> Place:
    path = _path(file, folder)
    if not look:
        return Place("excel", str(path), sheet or "")
    _require_file("excel", path)
    there = [str(name) for name in _workbook(path).sheet_names]
    if sheet is None and len(there) != 1:
        raise InputError(
            f"{file} has {len(there)} sheets ({listed(there)}): say which, as in {file}#{there[0]}"
        )
    if sheet is not None and sheet not in there:
        raise InputError(f"{file} has no sheet {shown(sheet)}: {nearest(sheet, there)}")
    return Place("excel", str(path), there[0] if sheet is None else sheet)


def _path(file: str, folder: Path | None) -> Path:
    path = Path(file).expanduser()
    return path if folder is None else folder / path


def _require_file(engine: Engine, path: Path) -> None:
    """Refuse a file that is not there, or is no such database."""
    existing_file(path)
    start, magic, what = _MAGIC[engine]
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            begins = stream.read(len(magic))
    except OSError as error:
        raise refusal(path, f"cannot be read ({reason_of(error)})", "check it") from None
    if begins != magic:
        raise refusal(path, f"is not {what}", "give one, or name the file by what it is")


def _workbook(path: Path) -> Any:
    import pandas as pd

    try:
        import openpyxl  # noqa: F401  # what pandas reads workbooks with
    except ImportError:
        raise InputError(
            f"{str(path)!r} is a workbook, which openpyxl reads: run `pip install 'collegium[excel]'`"
        ) from None
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(one.file_size for one in packed.infolist())
        if unpacked > max(SMALL_BYTES, MOST_TIMES_LARGER * path.stat().st_size):
            raise refusal(
                path, "unpacks to far more than a workbook of its size holds", "save it anew"
            )
        return pd.ExcelFile(path, engine="openpyxl")
    except InputError:
        raise
    except Exception as error:  # whatever a damaged workbook makes of its reader
        raise _unreadable_workbook(path, error) from None


def _unreadable_workbook(path: Path, error: Exception) -> InputError:
    return refusal(path, f"is not a readable workbook ({type(error).__name__})", "save it again")


def _sheet(place: Place, rows: int | None = None) -> Any:
    """Take a sheet as it stands, with the names of its columns as the first row."""
    import pandas as pd

    path = Path(place.where)
    with _workbook(path) as book:
        try:
            return pd.read_excel(
                book, place.table, header=None, dtype=object, na_filter=False, nrows=rows
            )
        except Exception as error:  # of its reader; the words may quote cells
            raise _unreadable_workbook(path, error) from None


@contextlib.contextmanager
def _opened_sqlite(place: Place) -> Iterator[sqlite3.Connection]:
    """Lend a connection that cannot write; failures are one line that quotes nothing."""
    address = f"file:{urllib.parse.quote(str(Path(place.where).absolute()))}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            connection.text_factory = lambda cell: cell.decode(errors="surrogateescape")
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
    except sqlite3.Error as error:
        reason = getattr(error, "sqlite_errorname", type(error).__name__)
        if reason.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise refusal(
                place.where, "is locked by another program, which writes to it", "wait for its end"
            ) from None
        raise refusal(
            place.where,
            f"cannot be read as a SQLite database ({reason})",
            "check the file, and the view if the table is one",
        ) from None


def _sqlite_table(place: Place) -> Place:
    """Find a table as the database spells it: SQLite tells upper from lower case nowhere."""
    with _opened_sqlite(place) as connection:
        asked = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        there = {str(name).casefold(): str(name) for (name,) in connection.execute(asked)}
    if place.schema not in (None, "main") or place.table.casefold() not in there:
        whole = place.table if place.schema is None else f"{place.schema}.{place.table}"
        raise InputError(
            f"{place.where!r} has no table {shown(whole)}: {nearest(whole, list(there.values()))}"
        )
    return replace(place, table=there[place.table.casefold()], schema=None)


def _rows_of_sqlite(place: Place, columns: Sequence[str]) -> list[list[Any]]:
    with _opened_sqlite(place) as connection:
        names = ", ".join(map(_quoted, columns))
        rows = connection.execute(f"SELECT {names} FROM {_quoted(place.table)}").fetchall()
    return [[row[position] for row in rows] for position in range(len(columns))]


def _cell(cell: Any, as_text: bool) -> Any:
    """Take a cell as text, or as a date; None: it is empty, or holds neither text, a number nor a date."""
    if isinstance(cell, str):
        return _text(cell)
    if isinstance(cell, bool | int | np.bool_ | np.integer):
        return str(cell)
    if isinstance(cell, float | np.floating):
        number = float(cell)
        return repr(number) if abs(number) >= 2**53 else as_names([number])[0]
    if isinstance(cell, Decimal):
        return str(cell)
    if isinstance(cell, date) and cell == cell:
        return _written(cell) if as_text else cell
    return None


def _text(cell: str) -> str | None:
    try:
        cell.encode()
    except UnicodeEncodeError:  # half a letter
        return None
    return cell or None


def _written(day: date) -> str:
    if isinstance(day, datetime) and day.time() != datetime.min.time():
        return day.isoformat(" ")
    return day.isoformat()[:10]


def _quoted(name: str) -> str:
    """Quote a name as SQL does."""
    return '"' + name.replace('"', '""') + '"'


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
