"""Tables that a steward has brought to the desk: private ones, about people of the ledger, or public."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from collegium.checks import listed, shown
from collegium.data.datasets.table_files import read_table
from collegium.data.overlap_checks import refuse_overlap
from collegium.data.schema import Schema
from collegium.durable import private_folder, write_durably
from collegium.errors import InputError
from collegium.json_files import read_json
from collegium.ledger.ledger import Ledger
from collegium.study.level_column import granted_table, names_in

MOST_BYTES = 256 * 2**20
LEVELS = "privacy"
"""Column in which the levels of the ledger are written."""
_KINDS = (".csv", ".parquet")
_MOST_LETTERS = 60
_SHAPE = {
    "file": str,
    "is_public": bool,
    "rows": int,
    "columns": [str],
    "owner": str,
    "shares_rows_with": str,
}


@dataclass(frozen=True)
class Table:
    """A table as the desk keeps it.

    ``file``: its name in the desk's folder. ``owner``: column that says whose each row is; empty: not said
    yet. ``shares_rows_with``: a table of the other kind, of which more rows are in it than chance explains.
    """

    file: str
    is_public: bool
    rows: int
    columns: tuple[str, ...]
    owner: str = ""
    shares_rows_with: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return Path(self.file).stem

    @property
    def whose(self) -> str:
        """The column that says whose each row is. Raises InputError if it is not said yet."""
        if not self.owner:
            raise InputError(f"say first in which column of {self.name} it stands whose row it is")
        return self.owner


class Tables:
    """The tables of a desk.

    Parameters
    ----------
    folder : Path
        Of the desk: they have folders in it, for its owner's eyes only.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tables"
        self._schemas, self._answers = folder / "schemas", folder / "answers"
        for one in (self.folder, self._schemas, self._answers):
            private_folder(one)
        self._people: dict[str, tuple[tuple[int, str], dict[str, int]]] = {}

    def all(self) -> list[Table]:
        """All of them, by name."""
        return [self[path.stem] for path in sorted(self.folder.glob("*.json"))]

    def __getitem__(self, name: str) -> Table:
        """Find one. Raises InputError if there is none."""
        path = self.folder / f"{_checked(name)}.json"
        if not path.is_file():
            raise InputError(f"there is no table {shown(name)} here: bring it first")
        kept = read_json(path, _SHAPE)
        return Table(**{**kept, "columns": tuple(kept["columns"])})

    def path(self, table: Table) -> Path:
        """Where its file is."""
        return self.folder / table.file

    def add(self, name: str, given: str, content: BinaryIO, *, is_public: bool) -> Table:
        """Take a table in.

        ``name``: what to call it; empty: as its file. ``given``: name of the file that was sent.
        Raises InputError if it is no table, or there is one of that name.
        """
        kind = Path(given).suffix.lower()
        if kind not in _KINDS:
            raise InputError(
                f"{shown(given)} is no table that the desk reads: give a CSV file in UTF-8 (.csv) or Parquet "
                "(.parquet)"
            )
        name = _checked(name.strip() or Path(given).stem)
        if any(one.name.casefold() == name.casefold() for one in self.all()):
            raise InputError(f"there is a table {shown(name)} already: give this one another name")
        path = self.folder / f"{name}{kind}"
        with self._incoming(kind) as new:
            with new.open("wb") as file:
                shutil.copyfileobj(content, file, 1 << 20)
                file.flush()
                os.fsync(file.fileno())
            try:
                rows = read_table(new, as_text=True)
            except InputError as error:
                raise InputError(str(error).replace(str(new), given)) from None
            if not len(rows):
                raise InputError(f"{shown(given)} has no row below its header")
            new.replace(path)
        table = Table(path.name, is_public, len(rows), tuple(map(str, rows.columns)))
        table = replace(table, shares_rows_with=self._alike(table))
        self._keep(table)
        return table

    def _alike(self, table: Table) -> str:
        """Find a table of the other kind with rows of this one; empty if there is none."""
        for other in self.all():
            private, public = (other, table) if table.is_public else (table, other)
            if other.is_public != table.is_public and self._share_rows(private, public):
                return other.name
        return ""

    def _share_rows(self, private: Table, public: Table) -> bool:
        """Whether more rows of a private table are in a public one than chance explains."""
        columns = _in_common(private, public)
        if not columns:
            return False
        mine, theirs = (read_table(self.path(one))[columns] for one in (private, public))
        try:
            refuse_overlap(mine, theirs)
        except InputError:
            return True
        return False

    def set_owner(self, table: Table, owner: str) -> Table:
        """Say in which column it stands whose each row is."""
        if table.is_public:
            raise InputError(f"the table {table.name} is public: nobody's budget is asked for it")
        names_in(self.rows(table), owner)
        changed = replace(table, owner=owner)
        self._keep(changed)
        return changed

    def remove(self, table: Table) -> None:
        """Remove a table's rows, and its schema. What was answered stays, under another name."""
        answers = self.answers_file(table)
        if answers.exists():
            kept = [answers.with_name(f"{table.name}.{n}.removed") for n in range(1, 1000)]
            answers.rename(next(path for path in kept if not path.exists()))
        for path in (
            self.folder / f"{table.name}.json",
            self.path(table),
            self.schema_file(table),
        ):
            path.unlink(missing_ok=True)

    def rows(self, table: Table) -> pd.DataFrame:
        """Read it."""
        return read_table(self.path(table), as_text=True)

    def people(self, table: Table) -> list[str]:
        """Whom it is about, each once."""
        return list(self._rows_of(table))

    def most_rows(self, table: Table) -> int:
        """How many rows one person has, at most."""
        return max(self._rows_of(table).values())

    def _rows_of(self, table: Table) -> dict[str, int]:
        """How many rows each person has; read once of each file."""
        as_it_is = (self.path(table).stat().st_mtime_ns, table.whose)
        known = self._people.get(table.name)
        if known is None or known[0] != as_it_is:
            counted = dict(Counter(names_in(self.rows(table), table.whose)))
            known = self._people[table.name] = as_it_is, counted
        return known[1]

    def write_granted(self, table: Table, ledger: Ledger, path: Path) -> None:
        """Write the rows of those who grant a budget now, with their levels."""
        content, _ = granted_table(self.path(table), table.whose, LEVELS, ledger)
        write_durably(path, content, private=True)

    def schema_file(self, table: Table) -> Path:
        """Where it stands what is publicly known of it."""
        return self._schemas / f"{table.name}.toml"

    def answers_file(self, table: Table) -> Path:
        """Where answers are kept: whoever asks the same again gets the same, for free."""
        return self._answers / f"{table.name}.json"

    def set_schema(self, table: Table, text: str) -> None:
        """Keep what is publicly known of its columns. Raises ConfigError if it is no schema."""
        if self.answers_file(table).exists() and self.schema_file(table).exists():
            raise InputError(
                "questions were answered under this schema, so it stays: bring the table under another name "
                "for another one"
            )
        with self._incoming(".toml") as new:
            new.write_text(text.replace("\r\n", "\n"), encoding="utf-8")
            try:
                schema = Schema.read(new)
            except InputError as error:
                raise InputError(str(error).replace(f"{new}: ", "")) from None
            unknown = [name for name in schema if name not in table.columns]
            if unknown:
                raise InputError(
                    f"the schema describes {listed(unknown)}, which {table.name} does not have: take it out"
                )
            new.replace(self.schema_file(table))

    def drafted(self, public: Table, table: Table, rows_per_person: int) -> str:
        """Draft a schema for a private table from a public one."""
        if not public.is_public:
            raise InputError(
                f"the table {public.name} is not public: a schema may tell nothing of private rows"
            )
        columns = _in_common(table, public)
        if not columns:
            raise InputError(f"the tables {public.name} and {table.name} have no column in common")
        if self._share_rows(table, public):
            raise InputError(
                f"the table {public.name} has rows of {table.name} in it, so it is not public: a schema "
                "may tell nothing of private rows"
            )
        records = read_table(self.path(public))[columns]
        return Schema.from_public(records, rows_per_owner=rows_per_person).toml()

    def _keep(self, table: Table) -> None:
        content = json.dumps(asdict(table), ensure_ascii=False).encode()
        write_durably(self.folder / f"{table.name}.json", content, private=True)

    @contextmanager
    def _incoming(self, kind: str) -> Iterator[Path]:
        """Lend the name of a file that is gone afterwards, unless it was renamed."""
        new = self.folder / f".{os.urandom(8).hex()}{kind}"
        try:
            yield new
        finally:
            new.unlink(missing_ok=True)


def _in_common(private: Table, public: Table) -> list[str]:
    return [name for name in public.columns if name in private.columns]


def _checked(name: str) -> str:
    """Take a name that is good for a file, too."""
    plain = all(one.isalnum() or one in " -_" for one in name)
    if not plain or not name[:1].isalnum() or len(name) > _MOST_LETTERS or name != name.strip():
        raise InputError(
            f"{shown(name)} cannot be the name of a table or study: take letters, digits, spaces, - and _, "
            f"{_MOST_LETTERS} at most, a letter or digit first"
        )
    return name


def file_name(title: str) -> str:
    """Make a name for files of a title."""
    letters = "".join(one if one.isalnum() else "-" for one in title.casefold())
    if not any(one.isalnum() for one in title):
        raise InputError(f"{shown(title)} is no title: it takes a letter or digit")
    return _checked("-".join(filter(None, letters.split("-")))[:_MOST_LETTERS].strip("-"))
