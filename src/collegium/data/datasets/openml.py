"""MNIST from OpenML, turned back into the four IDX files that its authors published."""

import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.datasets.array_files import idx_bytes

TRAIN_IMAGES = "train-images-idx3-ubyte"
TRAIN_LABELS = "train-labels-idx1-ubyte"
TEST_IMAGES = "t10k-images-idx3-ubyte"
TEST_LABELS = "t10k-labels-idx1-ubyte"


def fetch_mnist_table(seconds_without_data: float = 60.0) -> tuple[Any, Any]:
    """Fetch the table ``mnist_784``, version 1, from OpenML.

    ``seconds_without_data``: how long the server may be silent.
    Returns ``pixels`` (70000, 784): one image per row, in the order of the training and then the
        test images.
    Returns ``labels`` (70000,): the digits, as text.
    """
    from sklearn.datasets import fetch_openml

    # fetch_openml has no time limit of its own and uses the process's default.
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds_without_data)
    try:
        table = fetch_openml("mnist_784", version=1, as_frame=False, cache=False)
    finally:
        socket.setdefaulttimeout(before)
    return table.data, table.target


@dataclass(frozen=True)
class OpenMLMnist:
    """The source of MNIST; calling it fetches the table and rebuilds the IDX files.

    ``fetch_table``: returns pixels of shape (n, 784) and labels of shape (n,).
    ``n_train``: how many of the images, from the first on, are the training images.
    """

    fetch_table: Callable[[], tuple[Any, Any]] = fetch_mnist_table
    n_train: int = 60_000

    def __call__(self, names: Collection[str]) -> dict[str, bytes]:
        """Fetch the table and write it as IDX files, byte for byte as published.

        ``names``: names of the wanted IDX files.
        Returns: the content of the wanted files by name.
        """
        pixels, labels = self.fetch_table()
        pixels, labels = np.asarray(pixels), _as_bytes(labels, "labels")
        if pixels.ndim != 2 or pixels.shape[1] != 28 * 28 or labels.shape != pixels.shape[:1]:
            raise ValueError(f"the table has pixels {pixels.shape} and labels {labels.shape}")
        images = _as_bytes(pixels, "pixels").reshape(-1, 28, 28)
        arrays = {
            TRAIN_IMAGES: images[: self.n_train],
            TRAIN_LABELS: labels[: self.n_train],
            TEST_IMAGES: images[self.n_train :],
            TEST_LABELS: labels[self.n_train :],
        }
        return {name: idx_bytes(array) for name, array in arrays.items() if name in names}

    def __str__(self) -> str:
        """Name the source."""
        return "OpenML (mnist_784, version 1)"


def _as_bytes(values: Any, what: str) -> NDArray[np.uint8]:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "biuf":
        numbers = numbers.astype(np.float64)
    in_range = np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers <= 255).all()
    if not in_range or (numbers != np.floor(numbers)).any():
        raise ValueError(f"the table's {what} are not whole numbers from 0 to 255")
    return numbers.astype(np.uint8)
