"""A discriminator that never sees a private row: it learns what teachers' noisy votes say of generated ones.

Needs PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from collegium.generative.table_networks import Blocks, discriminator

TARGETS = ("unbiased", "clipped")


class StudentDiscriminator:
    """Learns the share of teachers who call a row real, from noisy shares.

    Parameters
    ----------
    sizes : sequence of int
        Cells of each column.
    coins : torch.Generator
        First weights, and which answers are looked at again.
    hidden : sequence of int
        Hidden units, layer by layer.
    rate, decay : float
        Learning rate and weight decay (AdamW).
    targets : {"unbiased", "clipped"}
        What it learns. "unbiased": noisy shares as they are, also below 0 and above 1, since a squared
        error then has the true share as its minimum. "clipped": shares moved into [0, 1], which pulls
        rare and frequent ones towards a half where noise is large.
    memory : int
        How many of the latest answers it learns from. None is asked twice.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        coins: torch.Generator,
        *,
        hidden: Sequence[int] = (64,),
        rate: float = 2e-3,
        decay: float = 0.1,
        targets: str = "unbiased",
        memory: int = 1_000,
    ) -> None:
        self.blocks, self._coins, self._memory = Blocks(sizes), coins, memory
        self._clipped = targets == "clipped"
        self.network = discriminator(self.blocks.width, coins, hidden)
        self._optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=rate, betas=(0.5, 0.9), weight_decay=decay
        )
        self._rows = torch.empty(0, self.blocks.width)
        self._shares = torch.empty(0)

    def learn(
        self, generated: NDArray[np.int64], noisy_shares: NDArray[np.float64], steps: int
    ) -> None:
        """Learn from answers, and again from those before.

        ``generated`` (n, n_columns): rows that were voted on; ``noisy_shares`` (n,): what came of it.
        """
        shares = np.clip(noisy_shares, 0, 1) if self._clipped else noisy_shares
        new = torch.from_numpy(np.asarray(shares, dtype=np.float32))
        self._rows = torch.cat([self._rows, self.blocks.one_hot(generated)])[-self._memory :]
        self._shares = torch.cat([self._shares, new])[-self._memory :]
        for _ in range(steps):
            some = torch.randint(len(self._rows), (128,), generator=self._coins)
            error = self.network(self._rows[some])[:, 0].sigmoid() - self._shares[some]
            self._optimizer.zero_grad()
            (error**2).mean().backward()
            self._optimizer.step()

    def logits(self, rows: Tensor) -> Tensor:
        """Judge rows of zeros and ones: gradients pass to them. Shape (n,)."""
        judged: Tensor = self.network(rows)[:, 0]
        return judged
