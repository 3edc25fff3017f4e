"""Arrays from files: NumPy's .npy without pickles, and the IDX format of MNIST."""

import math
import os
import struct
import tokenize
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from collegium.data.datasets.raw import (
    CHUNK_BYTES,
    UNREADABLE,
    existing_file,
    open_raw,
    reason_of,
    refusal,
    unknown_format,
)
from collegium.errors import InputError

NPY_MAGIC = b"\x93NUMPY"
#: The type byte of an IDX file; numbers are stored with the most significant byte first.
IDX_TYPES: dict[int, np.dtype[Any]] = {
    0x08: np.dtype(">u1"),
    0x09: np.dtype(">i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}

#: What NumPy raises on damaged headers and on declared sizes that do not exist.
_BAD_NPY = (
    ValueError,
    TypeError,
    OverflowError,
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
)


def is_idx_name(name: str) -> bool:
    """Tell whether a file name is one that IDX files have.

    ``name``: the name of a file, without its folder.
    Returns: true for ``*.idx`` and ``*-ubyte``, also with ``.gz`` after it.

    Examples
    --------
    >>> is_idx_name("train-images-idx3-ubyte.gz"), is_idx_name("train-images.csv")
    (True, False)
    """
    return name.lower().removesuffix(".gz").endswith((".idx", "-ubyte"))


def is_idx_magic(magic: bytes) -> bool:
    """Tell whether the first four bytes of a file are those of an IDX file.

    ``magic``: the first bytes.
    Returns: true if they are two zeros, a known type and at least one dimension.
    """
    return len(magic) >= 4 and magic[:2] == b"\0\0" and magic[2] in IDX_TYPES and magic[3] > 0


def parse_idx(stream: BinaryIO, path: str | os.PathLike[str]) -> NDArray[Any]:
    """Parse the uncompressed bytes of an IDX file.

    ``stream``: the bytes, from the first one on.
    ``path``: what errors call the file.
    Returns: the array, in the machine's byte order, with the shape that the file declares.
    """
    shape, dtype = idx_header(stream, path)
    expected = math.prod(shape) * dtype.itemsize
    # In chunks: a damaged header may declare more than there is memory.
    chunks = bytearray()
    while len(chunks) <= expected and (chunk := stream.read(CHUNK_BYTES)):
        chunks += chunk
    if len(chunks) != expected:
        problem = "is truncated" if len(chunks) < expected else "has trailing bytes"
        raise refusal(
            path,
            f"{problem}: its IDX header declares shape {shape}, that is {expected} bytes of data",
            "get the file again",
        )
    array: NDArray[Any] = np.frombuffer(chunks, dtype=dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="))


def idx_header(
    stream: BinaryIO, path: str | os.PathLike[str]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read shape and type of what an IDX file holds, and nothing of its content."""
    magic = stream.read(4)
    if not is_idx_magic(magic):
        raise refusal(
            path,
            f"does not start as an IDX file does (bytes {magic.hex() or 'none'})",
            "get the file again, or give it the ending of its real format",
        )
    dtype, dimensions = IDX_TYPES[magic[2]], magic[3]
    header = stream.read(4 * dimensions)
    if len(header) < 4 * dimensions:
        raise refusal(path, "is truncated within its IDX header", "get the file again")
    return struct.unpack(f">{dimensions}I", header), dtype


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    """Write an array of bytes as the content of an IDX file.

    Returns: the raw content, header and data.

    Examples
    --------
    >>> import io
    >>> image = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    >>> np.array_equal(parse_idx(io.BytesIO(idx_bytes(image)), "image"), image)
    True
    """
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 0x08, array.ndim, *array.shape)
    return header + np.ascontiguousarray(array).tobytes()


def parse_npy(stream: BinaryIO, path: str | os.PathLike[str]) -> NDArray[Any]:
    """Parse the uncompressed bytes of a .npy file; pickled objects are refused.

    ``stream``: the bytes, from the first one on.
    ``path``: what errors call the file.
    """
    try:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        trailing = stream.read(1)
    except _BAD_NPY as error:
        raise _bad_npy(path, error) from error
    if trailing:
        raise refusal(path, "has trailing bytes after its array", "save it again with numpy.save")
    return array


def npy_header(
    stream: IO[bytes], path: str | os.PathLike[str]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read shape and type of what a .npy file holds, and nothing of its content."""
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        version = np.lib.format.read_magic(stream)
        if version not in read:  # of arrays with named fields
            raise ValueError(f"version {version[0]}.{version[1]} of the format")
        shape, _, dtype = read[version](stream)
    except _BAD_NPY as error:
        raise _bad_npy(path, error) from error
    if dtype.hasobject:
        raise _bad_npy(path, ValueError("it holds Python objects"))
    return shape, dtype


def read_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read an array from a .npy or an IDX file.

    Parameters
    ----------
    path : str or path-like
        A file ending in ``.npy``, ``.idx`` or ``-ubyte``; IDX files may be compressed (``.gz``).

    Returns
    -------
    ndarray
        The array with the shape and type that the file declares, in the machine's byte order.

    Raises
    ------
    InputError
        If the file is missing, empty, of another format, truncated, has trailing bytes, or holds
        Python objects (which could run code when they are loaded).

    References
    ----------
    Y. LeCun, C. Cortes, C. Burges, *The MNIST database*, section "File formats" (IDX).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "votes.npy")
    ...     np.save(path, np.eye(2))
    ...     read_array(path).shape
    (2, 2)
    """
    path = existing_file(path)
    is_npy = path.name.lower().endswith(".npy")
    if not is_npy and not is_idx_name(path.name):
        raise unknown_format(
            path, "is not named as an array is", "give an array, or rename the file"
        )
    parse = parse_npy if is_npy else parse_idx
    try:
        with open_raw(path) as stream:
            return parse(stream, path)
    except UNREADABLE as error:
        raise refusal(
            path, f"cannot be read ({reason_of(error)})", "check the file, or get it again"
        ) from error


def _bad_npy(path: str | os.PathLike[str], error: Exception) -> InputError:
    return refusal(
        path,
        f"is not one whole .npy array without Python objects ({reason_of(error)})",
        "save it again with numpy.save(..., allow_pickle=False)",
    )
