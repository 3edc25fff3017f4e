"""Tables from files: CSV that is taken literally, and Parquet files or folders of them."""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from collegium.checks import check_separator, exact_floats
from collegium.data.datasets.raw import (
    MOST_COLUMNS,
    MOST_TIMES_LARGER,
    SMALL_BYTES,
    UNREADABLE,
    existing_file,
    is_folder,
    open_raw,
    reason_of,
    refusal,
    unknown_format,
)

#: Cells that mean "missing". "?", "None" and "NA" stay text: in real tables they are categories
#: (Diabetes-130 has a category "None", a list of countries has "NA").
MISSING_CELLS = ["", "NaN", "nan"]
#: What may stand between cells.
SEPARATORS = ",;\t|"
#: A budget of 0.03 must be the nearest double to 0.03, not a neighbour of it. From pandas 3.1 on
#: that is always so, and asking for it is deprecated.
_EXACT_NUMBERS: dict[str, Any] = (
    {"float_precision": "round_trip"}
    if tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    else {}
)


def read_table(
    path: str | os.PathLike[str], *, separator: str | None = None, as_text: bool = False
) -> pd.DataFrame:
    """Read a table from a CSV file, a Parquet file, or a folder of Parquet files.

    Parameters
    ----------
    path : str or path-like
        ``.csv``, ``.csv.gz``, ``.parquet``, or a folder that holds ``.parquet`` files (read in the
        order of their names; ``key=value`` folders become columns).
    separator : str, optional
        The one character between the cells of a CSV file. Default: a comma, or whichever of semicolon,
        tab and ``|`` is alone in separating the names of the columns.
    as_text : bool, default=False
        Whether the cells of a CSV file stay the characters that stand there, rather than numbers where
        all cells of a column are numbers. Parquet files have types of their own.

    Returns
    -------
    pandas.DataFrame
        One row per record. In CSV files the first line names the columns, the text is UTF-8, only
        an empty cell or ``NaN`` is missing, and ``?``, ``None`` or ``NA`` stay as given.

    Raises
    ------
    InputError
        If the file is missing, empty, of another format or damaged; if a line has more or fewer
        cells than the header; if two columns have one name; if the files of a folder disagree.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("age,work\\n39,?\\n50,State-gov\\n")
    ...     read_table(path)
       age       work
    0   39          ?
    1   50  State-gov
    """
    check_separator(separator)
    if is_folder(path):
        return _read_parquet(Path(path), parquet_files(Path(path)))
    path = existing_file(path)
    name = path.name.lower()
    if name.endswith(".parquet"):
        return read_parquet_file(path)
    if name.endswith((".csv", ".csv.gz")):
        return _read_csv(path, separator, {"dtype": str} if as_text else {})
    raise unknown_format(path, "is not named as a table is", "give a table, or rename the file")


def refuse_blank_lines(path: Path) -> None:
    """Refuse a CSV file of one column with a blank line before its last: whose value is missing there?"""
    with open_raw(path) as stream:
        lines = [line.strip() for line in stream]
    while lines and not lines[-1]:
        lines.pop()
    if b"" in lines:
        raise refusal(
            path,
            f"has a blank line, line {lines.index(b'') + 1}",
            "give a value there, or remove it if it stands for no record",
        )


def parse_csv(stream: BinaryIO, separator: str = ",", **options: Any) -> pd.DataFrame:
    """Parse the uncompressed bytes of a CSV file, taking cells literally.

    ``stream``: UTF-8 text, with or without a byte order mark.
    ``options``: passed on to :func:`pandas.read_csv`.
    Returns: the table; see :func:`read_table` for what counts as missing.
    """
    return pd.read_csv(
        stream,
        sep=separator,
        encoding="utf-8-sig",
        index_col=False,
        keep_default_na=False,
        na_values=MISSING_CELLS,
        low_memory=False,
        **_EXACT_NUMBERS,
        **options,
    )


def read_parquet_file(path: Path) -> pd.DataFrame:
    """Read one Parquet file, whatever its name."""
    return _read_parquet(path, [path])


def is_csv(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path names a CSV file, and no folder."""
    return Path(path).name.lower().endswith((".csv", ".csv.gz")) and not is_folder(path)


def _read_csv(path: Path, separator: str | None, options: dict[str, Any]) -> pd.DataFrame:
    try:
        if separator is None:
            with open_raw(path) as stream:
                separator = separator_of(stream)
        with open_raw(path) as stream:
            problem = _shape_problem(stream, separator)
        if problem is None:
            with open_raw(path) as stream:
                table = parse_csv(stream, separator, **options)
            problem = _number_problem(path, table, separator)
        if problem is None:
            return table
    except UnicodeDecodeError as error:
        raise refusal(path, "is not UTF-8 text", "save it again as UTF-8") from error
    except (ValueError, csv.Error, *UNREADABLE) as error:
        raise refusal(
            path, f"is not a readable CSV file ({reason_of(error)})", "correct the file"
        ) from error
    raise refusal(path, problem, "correct the file")


def separator_of(stream: BinaryIO) -> str:
    """Find what separates the names of the columns: a comma, unless only one other character does."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    splits = marks_in(next((line for line in text if line.strip()), ""))
    return splits[0] if len(splits) == 1 else ","


def marks_in(header: str) -> tuple[str, ...]:
    """Find every character that could separate the names of the columns.

    Examples
    --------
    >>> marks_in("age;weight, kg")
    (',', ';')
    """
    return tuple(mark for mark in SEPARATORS if _splits(header, mark))


def _splits(header: str, mark: str) -> bool:
    try:
        return len(next(csv.reader([header], delimiter=mark), [])) > 1
    except csv.Error:  # a single name of a hundred thousand characters
        return False


def _shape_problem(stream: BinaryIO, separator: str) -> str | None:
    """Say what is wrong with the header or the number of cells, which pandas would smooth over."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    rows = csv.reader(text, delimiter=separator, strict=True)
    header = next((row for row in rows if row), None)
    problem = header_problem(header, separator)
    if header is None or problem is not None:
        return problem
    for row in rows:
        if row and len(row) != len(header):
            return (
                f"is not a rectangular CSV table (the record that ends in line {rows.line_num} "
                f"has {len(row)} cells, the header {len(header)})"
            )
    return None


def header_problem(header: Sequence[str] | None, separator: str) -> str | None:
    """Say what is wrong with the names of the columns; None where nothing is.

    ``header``: None: there is none.
    """
    if header is None:
        return "is empty"
    if len(header) > MOST_COLUMNS:
        return f"has {len(header):,} columns, more than {MOST_COLUMNS:,}"
    if len(header) == 1:
        others = [other for other in SEPARATORS if other != separator and other in header[0]]
        if others:
            return (
                f"has one column if split at {separator!r}, but its header contains "
                f"{' and '.join(map(repr, others))}: name the right separator (data.separator in a study, "
                "--separator on the command line)"
            )
    first = {name: place for place, name in reversed(list(enumerate(header, 1)))}
    for place, name in enumerate(header, 1):
        if name and first[name] < place:  # not shown: without a header it is somebody's
            return f"has the same name for columns {first[name]} and {place}"
    return None


def _number_problem(path: Path, table: pd.DataFrame, separator: str) -> str | None:
    """Say where a number is so large that it was read as infinity: as a budget, that would be none."""
    infinite = [
        place
        for place, kind in enumerate(table.dtypes)
        if kind.kind == "f" and np.isinf(table.iloc[:, place]).any()
    ]
    if not infinite:
        return None
    names = [str(table.columns[place]) for place in infinite]
    with open_raw(path) as stream:
        text = parse_csv(stream, separator, dtype=dict.fromkeys(names, str), usecols=names)
    for name in names:
        if exact_floats(text[name].to_numpy(dtype=object)) is None:
            return f"holds a number in column {name!r} that is larger than any that can be computed with"
    return None


def parquet_files(folder: Path) -> list[Path]:
    """List the parts of a table, wherever in a folder they lie; InputError where there are none."""
    files = sorted(file for file in folder.rglob("*.parquet") if file.is_file())
    if not files:
        raise refusal(
            folder, "is a folder without images or .parquet files", "give another folder or a file"
        )
    return files


def _read_parquet(path: Path, files: list[Path]) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.dataset as pads
    import pyarrow.parquet as pq

    for file in files:
        existing_file(file)
    try:
        schemas = [pq.read_schema(file) for file in files]
    except (pa.ArrowException, *UNREADABLE) as error:
        raise refusal(
            path, f"is not readable Parquet ({reason_of(error)})", "write it again"
        ) from error
    refuse_other_columns(path, files, schemas)
    _refuse_bombs(path, files, schemas)
    try:
        if path.is_dir():
            # Explicit types, so that a column that is all missing in one file fits the others.
            types = pa.unify_schemas(schemas, promote_options="permissive")
            found = pads.dataset(
                [str(file) for file in files],
                partitioning=pads.partitioning(flavor="hive"),
                partition_base_dir=str(path),
            )
            keys = [field for field in found.schema if field.name not in types.names]
            types = pa.schema([*types, *keys], metadata=types.metadata)
            return found.replace_schema(types).to_table().to_pandas()
        return pq.ParquetFile(path).read().to_pandas()
    except (ValueError, TypeError, pa.ArrowException, *UNREADABLE) as error:
        raise refusal(
            path, f"is not readable Parquet ({reason_of(error)})", "write it again"
        ) from error


def _refuse_bombs(path: Path, files: Sequence[Path], schemas: Sequence[Any]) -> None:
    """Refuse what is small on the disk and would fill the memory: counts in the footers say so."""
    import pyarrow.parquet as pq

    columns = max(len(schema) for schema in schemas)
    rows = [pq.read_metadata(file).num_rows for file in files]
    cells = sum(count * len(schema) for count, schema in zip(rows, schemas, strict=True))
    most = max(SMALL_BYTES, MOST_TIMES_LARGER * sum(file.stat().st_size for file in files))
    if columns > MOST_COLUMNS or cells > most:
        raise refusal(
            path,
            f"declares {cells:,} cells in {columns:,} columns, far more than a file of its size holds",
            "give fewer columns, or write it without compression if that is meant",
        )


def refuse_other_columns(path: Path, files: Sequence[Path], schemas: Sequence[Any]) -> None:
    """Refuse Parquet files of one table that differ in their columns.

    Arrow would fill a column that only some files have with missing values, without a word.
    """
    for file, schema in zip(files, schemas, strict=True):
        if set(schema.names) != set(schemas[0].names) or len(set(schema.names)) != len(schema):
            raise refusal(
                path,
                f"has other or repeated columns in {file.name!r} than in {files[0].name!r}",
                "write all files with the same columns, each once",
            )
