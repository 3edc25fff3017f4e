"""The files of a draft: their headers, and of public records the values.

Refused is only what must not be looked at, or what would mislead every inference; all else that may be wrong
with files is for the readers of a study to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from collegium.checks import listed
from collegium.data.engines.places import Place
from collegium.data.engines.sources import Source, header_at, read_whole
from collegium.data.frames import with_dates
from collegium.data.headers import Header
from collegium.errors import InputError

PRIVATE, PUBLIC, TEST = "private", "public", "test"


@dataclass(frozen=True, eq=False)
class Files:
    """Files of a study.

    ``labels``: of arrays and tables without such a column, by role.
    ``levels``: with one privacy level per private record, where it is in no column.
    ``separator``: of all CSV files, where the names of their columns alone do not tell.
    """

    private: Source
    public: Source
    test: Source | None = None
    labels: Mapping[str, Path] = field(default_factory=dict)
    levels: Path | None = None
    separator: str | None = None

    @cached_property
    def records(self) -> dict[str, Source]:
        """The files of records, by role."""
        files: dict[str, Source | None] = {
            PRIVATE: self.private,
            PUBLIC: self.public,
            TEST: self.test,
        }
        return {role: path for role, path in files.items() if path is not None}

    @cached_property
    def headers(self) -> dict[str, Header]:
        """The headers of the files of records, by role."""
        return {role: header_at(path, self.separator) for role, path in self.records.items()}

    @property
    def is_table(self) -> bool:
        """Whether private records are rows of a table, rather than arrays."""
        return self.headers[PRIVATE].is_table

    def columns(self, role: str) -> tuple[str, ...]:
        """Name a table's columns; none where there is no such table."""
        return (self.headers[role].columns or ()) if role in self.headers else ()

    @cached_property
    def common(self) -> list[str]:
        """Columns of the private records that the public ones have, too."""
        return [name for name in self.columns(PRIVATE) if name in self.columns(PUBLIC)]

    @cached_property
    def private_only(self) -> list[str]:
        """Columns of the private records that the public ones lack."""
        return unlike(self.columns(PRIVATE), self.columns(PUBLIC))

    @cached_property
    def public_table(self) -> pd.DataFrame:
        """The public records; cells of a CSV file are the characters that stand there."""
        table = read_whole(self.public, self.separator).records
        assert isinstance(table, pd.DataFrame)
        return with_dates(table)


def first_look(files: Files) -> Files:
    """Look at the headers of a study's files; find the separator if they leave it open."""
    for role, path in files.records.items():
        if role != PRIVATE and _resolved(path) == _resolved(files.private):
            raise InputError(
                f"{path} was given as private and as {role}: what is private must not be given as {role}, "
                "where no budget protects it"
            )
    unclear = [role for role, header in files.headers.items() if len(header.marks) > 1]
    if unclear and files.separator is None:
        marks = files.headers[PUBLIC].marks
        fitting = marks if len(marks) == 1 else tuple(_fitting(files.public, marks))
        if len(fitting) != 1:
            raise InputError(
                f"it is unclear what separates the columns of {files.records[unclear[0]].name}: name the "
                "character, for instance --separator ';'"
            )
        files = replace(files, separator=fitting[0])
    for role, path in files.records.items():
        if _is_a_record(files.columns(role)):
            raise InputError(
                f"the first line of {path.name} seems to be a record: let it name the columns"
            )
    if files.is_table and not files.common:
        raise InputError(
            f"{files.private.name} and {files.public.name} have no column in common: both need the same "
            f"features, and the same names in their first lines; {files.public.name} has "
            f"{listed(files.columns(PUBLIC), 8) or 'no names'}"
        )
    return files


def _resolved(source: Source) -> Source:
    """Name the same file, or table, in one way."""
    if not isinstance(source, Place):
        return source.resolve()
    return replace(source, where=str(source.file.resolve())) if source.file else source


def unlike(names: Iterable[str], others: Iterable[str]) -> list[str]:
    """Name the columns that are not among others, whatever their capitals."""
    known = {other.strip().casefold() for other in others}
    return [name for name in names if name.strip().casefold() not in known]


def _fitting(source: Source, marks: tuple[str, ...]) -> Iterator[str]:
    for mark in marks:
        try:
            read_whole(source, mark)
        except InputError:
            continue
        yield mark


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
