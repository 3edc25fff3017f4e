"""One door for the files users bring: tables (CSV, Parquet) and arrays (.npy, .npz, IDX, images)."""

import os
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from collegium.data.datasets.array_files import (
    NPY_MAGIC,
    is_idx_magic,
    is_idx_name,
    parse_idx,
    parse_npy,
    read_array,
)
from collegium.data.datasets.image_files import is_image_folder, read_images, read_npz
from collegium.data.datasets.raw import (
    UNREADABLE,
    existing_file,
    is_folder,
    open_raw,
    reason_of,
    refusal,
    sha256_of,
    unknown_format,
)
from collegium.data.datasets.table_files import read_parquet_file, read_table

__all__ = ["read_any", "read_array", "read_table", "sha256_of"]

PARQUET_MAGIC = b"PAR1"


def read_any(
    path: str | os.PathLike[str], *, separator: str | None = None, as_text: bool = False
) -> pd.DataFrame | NDArray[Any]:
    """Read a table or an array, by the file's name or else by its first bytes.

    ``path``: a file that :func:`read_table` or :func:`read_array` reads, a folder of Parquet files or of
        images, a .npz file, or a Parquet, .npy or IDX file under any other name.
    ``separator``, ``as_text``: of CSV files; see :func:`read_table`.
    Returns: a table from CSV and Parquet, an array from all others.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "votes.npy")
    ...     np.save(path, np.eye(2))
    ...     read_any(path).shape
    (2, 2)
    """
    return read_labelled(path, separator=separator, as_text=as_text)[0]


def read_labelled(
    path: str | os.PathLike[str], *, separator: str | None = None, as_text: bool = False
) -> tuple[pd.DataFrame | NDArray[Any], NDArray[Any] | None]:
    """Read records as :func:`read_any` does, and their classes where the file or folder says them by itself.

    Returns: classes of a folder of images with a subfolder for each, or of a .npz file with ``y``; else None.
    """
    if is_folder(path) and is_image_folder(path):
        return read_images(path)
    if Path(path).name.lower().endswith(".npz"):
        return read_npz(path)
    return _read_records(path, separator, as_text), None


def _read_records(
    path: str | os.PathLike[str], separator: str | None, as_text: bool
) -> pd.DataFrame | NDArray[Any]:
    name = Path(path).name.lower()
    if is_folder(path) or name.endswith((".csv", ".csv.gz", ".parquet")):
        return read_table(path, separator=separator, as_text=as_text)
    if name.endswith(".npy") or is_idx_name(name):
        return read_array(path)
    path = existing_file(path)
    try:
        with open_raw(path) as stream:
            magic = stream.read(len(NPY_MAGIC))
        with open_raw(path) as stream:
            if magic == NPY_MAGIC:
                return parse_npy(stream, path)
            if is_idx_magic(magic):
                return parse_idx(stream, path)
    except UNREADABLE as error:
        raise refusal(
            path, f"cannot be read ({reason_of(error)})", "check the file, or get it again"
        ) from error
    if magic.startswith(PARQUET_MAGIC):
        return read_parquet_file(path)
    raise unknown_format(path, "is of an unknown format", "convert it, or correct its name")
