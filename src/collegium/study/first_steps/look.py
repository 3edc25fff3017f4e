"""What the files of a study that is to be begun show: all of the public ones, of the private one its header.

Refused is what no answer could mend: files without common columns, records without names of columns, images
of another size.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from collegium.checks import listed
from collegium.data.datasets import read_any
from collegium.data.datasets.raw import open_raw
from collegium.data.datasets.table_files import is_csv
from collegium.data.headers import Header, header_of
from collegium.errors import InputError

PRIVATE, PUBLIC, TEST = "private", "public", "test"


@dataclass(frozen=True)
class Files:
    """Files of a study.

    ``labels``: of arrays and tables without such a column, by role.
    ``levels``: with one privacy level per private record, where it is in no column.
    """

    private: Path
    public: Path
    test: Path | None = None
    labels: Mapping[str, Path] = field(default_factory=dict)
    levels: Path | None = None

    def records(self) -> Iterator[tuple[str, Path]]:
        """List the files of records, by role."""
        for role, path in ((PRIVATE, self.private), (PUBLIC, self.public), (TEST, self.test)):
            if path is not None:
                yield role, path

    def name(self, role: str) -> str:
        """Call the file of a role as its folder does."""
        return dict(self.records())[role].name


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What files show.

    ``headers``: by role.
    ``separator``: of all CSV files, where the names of their columns alone do not tell.
    """

    files: Files
    headers: Mapping[str, Header]
    separator: str | None

    @property
    def is_table(self) -> bool:
        """Whether records are rows of tables, rather than arrays."""
        return self.headers[PRIVATE].is_table

    def columns(self, role: str) -> tuple[str, ...]:
        """Name a table's columns; none where there is no such file."""
        return (self.headers[role].columns or ()) if role in self.headers else ()

    @property
    def common(self) -> list[str]:
        """Columns of the private records that the public ones have, too."""
        return [name for name in self.columns(PRIVATE) if name in self.columns(PUBLIC)]

    @property
    def private_only(self) -> list[str]:
        """Columns of the private records that the public ones lack."""
        return [name for name in self.columns(PRIVATE) if name not in self.columns(PUBLIC)]

    @cached_property
    def public(self) -> pd.DataFrame:
        """The public table; cells of a CSV file are the characters that stand there."""
        return self.table(PUBLIC)

    def table(self, role: str) -> pd.DataFrame:
        """Read a table of public records."""
        table = read_any(dict(self.files.records())[role], separator=self.separator, as_text=True)
        assert isinstance(table, pd.DataFrame) and role != PRIVATE
        if not len(table):
            raise InputError(
                f"{self.files.name(role)} names columns and has no record: add records"
            )
        return table

    def has_characters(self, role: str) -> bool:
        """Whether cells are the characters of a file."""
        return is_csv(dict(self.files.records())[role])


def first_look(files: Files, separator: str | None = None) -> FirstLook:
    """Look at the files of a study, and at nothing of the private ones but their headers.

    ``separator``: of all CSV files; default: what they show.
    """
    if separator is not None and len(separator) != 1:
        raise InputError(f"--separator must be one character, got {separator!r}")
    headers = {role: header_of(path, separator) for role, path in files.records()}
    for role, path in files.records():
        if role != PRIVATE and path.resolve() == files.private.resolve():
            raise InputError(
                f"{path} was given as private and as {role}: what is private must not be given as {role}, "
                "where no budget protects it"
            )
    if separator is None:
        separator = _separator(files, headers)
        if separator is not None:
            headers = {role: header_of(path, separator) for role, path in files.records()}
    for role, header in headers.items():
        if header.is_table != headers[PRIVATE].is_table:
            kinds = {True: "a table with named columns", False: "an array without column names"}
            raise InputError(
                f"{files.name(role)} is {kinds[header.is_table]}, {files.name(PRIVATE)} is "
                f"{kinds[headers[PRIVATE].is_table]}: give all records in the same form"
            )
    look = FirstLook(files, headers, separator)
    _check_columns(look) if look.is_table else _check_shapes(look)
    return look


def _separator(files: Files, headers: Mapping[str, Header]) -> str | None:
    """Find the separator where the header of some CSV file could be split at several characters."""
    unclear = [role for role, header in headers.items() if len(header.marks) > 1]
    if not unclear:
        return None
    public = headers[PUBLIC].marks
    fits = [mark for mark in public if len(public) == 1 or _is_rectangular(files.public, mark)]
    if len(fits) != 1:
        role = PUBLIC if PUBLIC in unclear else unclear[0]
        raise InputError(
            f"the columns of {files.name(role)} may be separated by any of "
            f"{' '.join(map(repr, headers[role].marks))}: say which, for instance --separator ';'"
        )
    return fits[0]


def _is_rectangular(path: Path, mark: str) -> bool:
    with open_raw(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        try:
            widths = {len(row) for row in csv.reader(text, delimiter=mark) if row}
        except (csv.Error, UnicodeDecodeError):
            return False
    return len(widths) == 1


def _check_columns(look: FirstLook) -> None:
    files = look.files
    for role, header in look.headers.items():
        if _is_a_record(header.columns or ()):
            raise InputError(
                f"the first line of {files.name(role)} seems to be a record: let it name the columns"
            )
    if not look.common:
        raise InputError(
            f"{files.name(PRIVATE)} and {files.name(PUBLIC)} have no column in common: both need the same "
            f"features, and the same names in their first lines; {files.name(PUBLIC)} has "
            f"{listed(look.columns(PUBLIC), 8)}"
        )
    for role in (PUBLIC, TEST):
        folded = {_folded(name): name for name in look.columns(role)}
        for name in look.columns(PRIVATE):
            other = folded.get(_folded(name))
            if other is None:
                continue
            if name not in look.columns(role) and other not in look.columns(PRIVATE):
                raise InputError(
                    f"a column is called {name!r} in {files.name(PRIVATE)} and {other!r} in "
                    f"{files.name(role)}: give it one name in both"
                )


def _folded(name: str) -> str:
    return name.strip().casefold()


def _is_a_record(columns: tuple[str, ...]) -> bool:
    """Tell whether names are values: a third are numbers, and these do not count the columns."""
    numbers = [name for name in columns if _is_number(name)]
    counts = {int(name) for name in numbers if name.isdecimal()}
    is_count = len(counts) == len(numbers) and max(counts, default=0) - min(
        counts, default=0
    ) < len(columns)
    return 3 * len(numbers) > len(columns) and not is_count


def _is_number(name: str) -> bool:
    try:
        float(name.replace(",", "."))
    except ValueError:
        return False
    return True


def _check_shapes(look: FirstLook) -> None:
    private = look.headers[PRIVATE]
    for role, header in look.headers.items():
        if header.shape != private.shape:
            raise InputError(
                f"a record has shape {header.shape} in {look.files.name(role)}, and {private.shape} in "
                f"{look.files.name(PRIVATE)}: both need the same features"
            )
    if not private.shape:
        raise InputError(
            f"{look.files.name(PRIVATE)} holds one number for each record: give records here, and their "
            "labels with --labels"
        )
