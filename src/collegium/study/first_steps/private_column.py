"""One column of the private records, and nothing else of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.datasets.raw import UNREADABLE, open_raw, refusal
from collegium.data.datasets.table_files import is_csv, parse_csv
from collegium.data.sharding.source import ParquetSource, values_of


def private_column(path: Path, name: str, separator: str | None) -> NDArray[Any]:
    """Read one column of a table.

    ``separator``: of a CSV file; its cells stay the characters that stand there.
    """
    if not is_csv(path):
        source = ParquetSource(path)
        parts = [
            values_of(batch, name).astype(object)
            for piece in source.pieces
            for _, batch in source.reader.batches(piece, [name])
        ]
        return np.concatenate(parts)
    try:
        with open_raw(path) as stream:
            table = parse_csv(stream, separator or ",", dtype=str, usecols=[name])
    except (ValueError, *UNREADABLE) as error:
        raise refusal(
            path, f"is not a readable CSV file ({type(error).__name__})", "correct the file"
        ) from None
    return np.asarray(table[name])
