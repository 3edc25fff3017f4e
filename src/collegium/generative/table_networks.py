"""Networks that make and judge rows of a table, as one block of categories for each column. Needs PyTorch.

A row is a vector of zeros and ones: one block for each column of :class:`~collegium.data.cells.Cells`, with
a one at the row's cell. How long it is follows from the public schema alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import skip_init

_TINY = 1e-20
_AT_ONCE = 1 << 15  # rows that are drawn together, so that any number fits in memory


class Blocks:
    """Where each column's cells lie in a row of zeros and ones.

    Parameters
    ----------
    sizes : sequence of int
        Cells of each column, as :attr:`Cells.sizes <collegium.data.cells.Cells.sizes>` has them.

    Attributes
    ----------
    sizes : tuple of int
    width : int
        Length of a row.

    Examples
    --------
    >>> blocks = Blocks((2, 3))
    >>> rows = blocks.one_hot(np.array([[0, 2], [1, 0]]))
    >>> rows.tolist()
    [[1.0, 0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0, 0.0]]
    >>> blocks.codes(rows).tolist()
    [[0, 2], [1, 0]]
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        ends = np.cumsum(self.sizes)
        self.width = int(ends[-1])
        self._starts = torch.from_numpy(ends - np.asarray(self.sizes))

    def one_hot(self, codes: NDArray[np.int64] | Tensor) -> Tensor:
        """Write cells as zeros and ones.

        ``codes`` (..., n_columns): the cell of each row in each column.
        Returns (..., width): float32.
        """
        places = torch.as_tensor(codes) + self._starts
        rows = torch.zeros(*places.shape[:-1], self.width)
        return rows.scatter_(-1, places, 1.0)

    def codes(self, rows: Tensor) -> NDArray[np.int64]:
        """Read cells off rows: of each block, the largest. Shape (..., n_columns)."""
        largest = [block.argmax(-1) for block in torch.split(rows.detach(), list(self.sizes), -1)]
        return torch.stack(largest, dim=-1).numpy()

    def softmax(self, logits: Tensor) -> Tensor:
        """Make each block's values a distribution over the column's cells. Shape (..., width)."""
        return torch.cat(
            [one.softmax(-1) for one in torch.split(logits, list(self.sizes), -1)], dim=-1
        )


class TableGenerator(nn.Module):
    """Turns noise into rows: a perceptron with one softmax for each column.

    Parameters
    ----------
    sizes : sequence of int
        Cells of each column.
    coins : torch.Generator
        Where the first weights are drawn from.
    n_noise : int, default=64
        Normal variables for each row.
    hidden : sequence of int, default=(128, 128)
        Hidden units, layer by layer.

    Examples
    --------
    >>> coins = torch.Generator().manual_seed(1)
    >>> generator = TableGenerator((2, 3), coins)
    >>> rows = generator.rows(4, coins)
    >>> rows.shape, rows.sum(dim=1).tolist()
    (torch.Size([4, 5]), [2.0, 2.0, 2.0, 2.0])
    """

    def __init__(
        self,
        sizes: Sequence[int],
        coins: torch.Generator,
        n_noise: int = 64,
        hidden: Sequence[int] = (128, 128),
    ) -> None:
        super().__init__()
        self.blocks, self.n_noise = Blocks(sizes), n_noise
        layers: list[nn.Module] = []
        width = n_noise
        for units in hidden:
            layers += [linear(width, units, coins), nn.LayerNorm(units), nn.ReLU()]
            width = units
        self.network = nn.Sequential(*layers, linear(width, self.blocks.width, coins))

    def forward(self, noise: Tensor) -> Tensor:
        """Compute logits of each column's cells, shape (n, width)."""
        logits: Tensor = self.network(noise)
        return logits

    def rows(self, n: int, coins: torch.Generator, temperature: float = 1.0) -> Tensor:
        """Draw rows of zeros and ones, through which gradients pass as if they were soft.

        A cell is drawn with its probability, by the largest of logits with Gumbel noise (Jang, Gu & Poole,
        "Categorical reparameterization with Gumbel-softmax", ICLR 2017, straight-through).

        ``coins``: a generator on the CPU.
        ``temperature``: of the soft rows whose gradients are taken; what is drawn does not depend on it.
        Returns (n, width).
        """
        logits = self(torch.randn(n, self.n_noise, generator=coins))
        uniform = torch.rand(logits.shape, generator=coins)
        gumbel = -(-(uniform + _TINY).log() + _TINY).log()
        soft = self.blocks.softmax((logits + gumbel) / temperature)
        with torch.no_grad():
            hard = self.blocks.one_hot(self.blocks.codes(soft))
        return hard + soft - soft.detach()

    @torch.no_grad()
    def codes(self, n: int, coins: torch.Generator) -> NDArray[np.int64]:
        """Draw cells of rows, without gradients. Shape (n, n_columns)."""
        parts = [
            self.blocks.codes(self.rows(min(_AT_ONCE, n - first), coins))
            for first in range(0, max(n, 1), _AT_ONCE)
        ]
        return np.concatenate(parts)


def discriminator(
    width: int, coins: torch.Generator, hidden: Sequence[int] = (64,)
) -> nn.Sequential:
    """Make a perceptron that gives each row one logit: how real it looks.

    No layer mixes rows, so that each row's gradient is its own.

    ``width``: of a row.
    Returns: a network from (n, width) to (n, 1).

    Examples
    --------
    >>> coins = torch.Generator().manual_seed(1)
    >>> discriminator(5, coins)(torch.zeros(2, 5)).shape
    torch.Size([2, 1])
    """
    layers: list[nn.Module] = []
    for units in hidden:
        layers += [linear(width, units, coins), nn.LeakyReLU(0.2)]
        width = units
    return nn.Sequential(*layers, linear(width, 1, coins))


def linear(n_inputs: int, n_outputs: int, coins: torch.Generator) -> nn.Linear:
    """Make a linear layer whose weights come from ``coins``, and not from the process's generator."""
    layer: nn.Linear = skip_init(nn.Linear, n_inputs, n_outputs)  # type: ignore[no-untyped-call]
    bound = n_inputs**-0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=coins)
        layer.bias.uniform_(-bound, bound, generator=coins)
    return layer
