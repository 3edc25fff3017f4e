"""What a DP-GAN makes, and how its discriminator sees records: rows of a table, or images. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from collegium.checks import shown
from collegium.data.cells import Cells
from collegium.errors import InputError
from collegium.generative.image_networks import ImageGenerator, image_discriminator, seen
from collegium.generative.table_networks import TableGenerator, discriminator

_TEMPERATURE = 0.5  # of the soft rows through which gradients pass


class TableFakes:
    """Rows of a table, as zeros and ones in the cells of each column."""

    def __init__(self, cells: Cells, *, noise_size: int, hidden: int, seed: int) -> None:
        self.cells = cells
        self._coins = torch.Generator().manual_seed(seed)
        self.generator = TableGenerator(cells.sizes, self._coins, noise_size, (hidden, hidden))

    def new_discriminator(self, hidden: int) -> nn.Module:
        """Make a discriminator of such rows."""
        return discriminator(self.generator.blocks.width, self._coins, (hidden, hidden))

    def read(self, table: Any, y: Any) -> Tensor:
        """Read a private table as the discriminator sees it. **Sensitive.**"""
        if y is not None:
            raise InputError(
                "y was given with a table, whose classes are one of its columns: leave it out"
            )
        return self.generator.blocks.one_hot(self.cells.codes(table))

    def __call__(self, n: int, coins: torch.Generator) -> Tensor:
        """Make n rows, each cell drawn by its probability."""
        return self.generator.rows(n, coins, _TEMPERATURE)

    def sampled(self, n: int, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Draw cells, shape (n, n_columns)."""
        return [self.generator.codes(n, _coins(rng))]

    def written(self, parts: list[NDArray[Any]], rng: np.random.Generator) -> pd.DataFrame:
        """Draw values within the cells."""
        return self.cells.frame(self.cells.arrays(parts[0], rng))


class ImageFakes:
    """Images in [0, 1], beside the class that they are of."""

    def __init__(
        self,
        shape: tuple[int, ...],
        classes: Sequence[Any] | None,
        bounds: tuple[float, float],
        *,
        network: str,
        noise_size: int,
        hidden: int,
        seed: int,
    ) -> None:
        self._declared, self._bounds, self._network = shape, bounds, network
        self.shape = (1, *shape)[-3:]
        self.classes = None if classes is None else _class_list(classes)
        self._n_classes = 0 if self.classes is None else len(self.classes)
        self._seed, self._noise_size = seed, noise_size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.generator: nn.Module = ImageGenerator(
                self.shape, self._n_classes, noise_size=noise_size, hidden=hidden, network=network
            )

    def new_discriminator(self, hidden: int) -> nn.Module:
        """Make a discriminator of such images."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed + 1)
            return image_discriminator(
                self.shape, self._n_classes, hidden=hidden, network=self._network
            )

    def read(self, images: Any, y: ArrayLike | None) -> Tensor:
        """Read private images as the discriminator sees them. **Sensitive.**"""
        array = np.asarray(images)
        if array.dtype.kind not in "buif" or array.size != len(array) * int(np.prod(self.shape)):
            raise InputError(
                f"images of shape {array.shape[1:]} and type {array.dtype} were given, and {self.shape} "
                "was declared: give numbers of that shape"
            )
        low, high = self._bounds
        scaled = (np.clip(array.astype(np.float32), low, high) - low) / (high - low)
        pixels = torch.from_numpy(scaled.astype(np.float32).reshape(len(array), *self.shape))
        return seen(pixels, self._one_hot(y, len(array)), self._network)

    def _one_hot(self, y: ArrayLike | None, n: int) -> Tensor:
        if (y is None) != (self.classes is None):
            raise InputError(
                "images have classes or have none: give both the public list (classes) and y, or neither"
            )
        if y is None or self.classes is None:
            return torch.zeros((n, 0))
        codes = pd.Index(self.classes).get_indexer(pd.Index(np.asarray(y)))
        if len(codes) != n or (codes < 0).any():
            raise InputError(
                f"classes of {len(codes):,} for {n:,} images, or one that is not in the public list: give "
                "each image one of the list"
            )
        return F.one_hot(torch.from_numpy(codes.astype(np.int64)), self._n_classes).float()

    def __call__(self, n: int, coins: torch.Generator) -> Tensor:
        """Make n images as the discriminator sees them, of classes drawn evenly."""
        images, classes = self._made(n, coins)
        return seen(images, classes, self._network)

    def _made(self, n: int, coins: torch.Generator) -> tuple[Tensor, Tensor]:
        noise = torch.randn((n, self._noise_size), generator=coins)
        classes = torch.zeros((n, 0))
        if self._n_classes:
            codes = torch.randint(self._n_classes, (n,), generator=coins)
            classes = F.one_hot(codes, self._n_classes).float()
        return self.generator(noise, classes), classes

    @torch.no_grad()
    def sampled(self, n: int, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Make images within the bounds, and the places of their classes."""
        images, classes = self._made(n, _coins(rng))
        low, high = self._bounds
        codes = classes.argmax(1).numpy() if self._n_classes else np.zeros(n, dtype=np.int64)
        return [low + (high - low) * images.numpy(), codes]

    def written(self, parts: list[NDArray[Any]], _: np.random.Generator) -> Any:
        """Give images in the shape that was declared, with their classes where they have any."""
        images = parts[0].reshape(len(parts[0]), *self._declared)
        return images if self.classes is None else (images, self.classes[parts[1]])


def _coins(rng: np.random.Generator) -> torch.Generator:
    return torch.Generator().manual_seed(int(rng.integers(2**62)))


def _class_list(classes: Sequence[Any]) -> NDArray[Any]:
    listed = np.asarray(classes)
    if listed.ndim != 1 or len(listed) < 2 or len(set(listed.tolist())) < len(listed):
        raise InputError(
            f"classes must be a list of at least two different names, got {shown(classes)}"
        )
    return listed
