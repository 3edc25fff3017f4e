"""Rows drawn into a file, a million at a time: memory does not grow with their number."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from collegium.durable import writing_durably
from collegium.errors import InputError
from collegium.synthesis.model import TableModel
from collegium.synthesis.rules import Rule

ROWS = 1_000_000
ENDINGS = (".parquet", ".csv", ".csv.gz")


def write_rows(
    model: TableModel,
    n: int,
    rng: np.random.Generator,
    where: Sequence[Rule],
    path: str | os.PathLike[str],
    told: Callable[[int], None] = lambda done: None,
) -> None:
    """Draw rows into a file, which is there when it is complete; one that is there is replaced.

    ``path``: .parquet, .csv or .csv.gz. ``told``: how many rows are drawn.
    Raises InputError if the file's name has another ending, or no row satisfies ``where``.
    """
    file = Path(path)
    refuse_ending(file)
    parts = rows_in_parts(model, n, rng, where)
    try:
        with writing_durably(file) as target:
            rows_into(target, file.name, parts, told)
    except OSError as error:
        raise InputError(f"{file} cannot be written ({error.strerror})") from None


def refuse_ending(path: Path) -> None:
    """Refuse a file whose name does not say how rows are written."""
    if not path.name.endswith(ENDINGS):
        raise InputError(
            f"{path} must end in {', '.join(ENDINGS)}: its ending says how it is written"
        )


def rows_in_parts(
    model: TableModel, n: int, rng: np.random.Generator, where: Sequence[Rule] = ()
) -> Iterator[pd.DataFrame]:
    """Draw rows, some at a time; the first ones at once, so that what cannot be drawn is refused now."""
    first = model.sample(min(ROWS, n), rng, where)
    others = (model.sample(min(ROWS, n - start), rng, where) for start in range(ROWS, n, ROWS))
    return chain([first], others)


def rows_into(
    target: BinaryIO,
    name: str,
    parts: Iterator[pd.DataFrame],
    told: Callable[[int], None] = lambda done: None,
) -> None:
    """Write rows into an open file, as its name says."""
    first = next(parts)
    done = len(first)
    if name.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(first, schema=_arrow_schema(first), preserve_index=False)
        with pq.ParquetWriter(target, table.schema) as writer:
            writer.write_table(table)
            told(done)
            for part in parts:
                done += len(part)
                writer.write_table(
                    pa.Table.from_pandas(part, schema=table.schema, preserve_index=False)
                )
                told(done)
        return
    binary: Any = target
    if name.endswith(".gz"):
        binary = gzip.GzipFile(fileobj=target, mode="wb", mtime=0)
    text = io.TextIOWrapper(binary, encoding="utf-8", newline="")
    first.to_csv(text, index=False)
    told(done)
    for part in parts:
        done += len(part)
        part.to_csv(text, index=False, header=False)
        told(done)
    text.flush()
    text.detach()
    if binary is not target:
        binary.close()


def _arrow_schema(frame: pd.DataFrame) -> Any:
    """Types of all parts, also of a column that is empty, or full, in the first."""
    import pyarrow as pa

    def kind(dtype: Any) -> Any:
        if pd.api.types.is_object_dtype(dtype):
            return pa.string()
        if pd.api.types.is_bool_dtype(dtype):
            return pa.bool_()
        return pa.int64() if pd.api.types.is_integer_dtype(dtype) else pa.float64()

    return pa.schema([(str(name), kind(dtype)) for name, dtype in frame.dtypes.items()])
