"""Discriminators that are teachers: each tells its own people's rows from generated ones, and votes.

All of them take their steps at once, in products of matrices whose shapes are public: how many rows a
teacher has decides on nothing but which of them it draws. So no teacher's arithmetic depends on another's
rows, not even by rounding. Needs PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from numpy.typing import NDArray
from torch import Tensor

from collegium.generative.table_networks import Blocks

Codes = NDArray[np.int64]
_AT_ONCE = 256  # rows that all teachers look at together


class TeacherDiscriminators:
    """Perceptrons with one hidden layer, one for each teacher, which are kept for the whole fit.

    Parameters
    ----------
    sensitive_shards : sequence of ndarray of int64, shape (n_rows, n_columns)
        Cells of each teacher's rows; a teacher may have none. They are read here once, and never dealt
        again.
    sizes : sequence of int
        Cells of each column.
    coins : torch.Generator
        First weights, and which rows a teacher draws: numbers of public shapes, drawn whatever the rows
        are.
    hidden : int
        Hidden units of each teacher.
    batch : int
        Rows that a teacher draws from its own for each step, with replacement.
    rate : float
        Learning rate (Adam).
    decay : float
        Weight decay.
    votes : {"relative", "absolute"}
        Which generated rows a teacher calls real. "absolute": those that look real to it, as published; while
        a generator is bad, that is none, and nothing can be learnt of it. "relative": of rows that are voted
        on together, the half that look more real to it than the others. Either is a function of the teacher
        and of generated rows alone.
    """

    def __init__(
        self,
        sensitive_shards: Sequence[Codes],
        sizes: Sequence[int],
        coins: torch.Generator,
        *,
        hidden: int = 16,
        batch: int = 32,
        rate: float = 0.01,
        decay: float = 1e-3,
        votes: str = "relative",
    ) -> None:
        self._relative = votes == "relative"
        self.blocks, self._coins, self._batch = Blocks(sizes), coins, batch
        self._sensitive_rows = torch.from_numpy(np.concatenate(sensitive_shards))
        counts = np.array([len(shard) for shard in sensitive_shards])
        self._counts = torch.from_numpy(counts)
        self._starts = torch.from_numpy(np.cumsum(counts) - counts)
        width, n = self.blocks.width, len(sensitive_shards)
        self._weights = [
            _uniform((n, width, hidden), width, coins),
            _uniform((n, 1, hidden), width, coins),
            _uniform((n, hidden, 1), hidden, coins),
            _uniform((n, 1, 1), hidden, coins),
        ]
        # Element by element: a teacher's step is a function of its own gradients.
        self._optimizer = torch.optim.AdamW(
            self._weights, lr=rate, betas=(0.5, 0.9), weight_decay=decay
        )

    def __len__(self) -> int:
        return len(self._counts)

    def learn(self, generated: Codes) -> None:
        """Let every teacher take one step: its own rows are real, these are not.

        ``generated`` (n, n_columns): the same for all teachers.
        """
        drawn = torch.rand(len(self), self._batch, generator=self._coins, dtype=torch.float64)
        has_rows = self._counts > 0
        places = self._starts[:, None] + (drawn * self._counts[:, None]).long()
        rows = self._sensitive_rows[torch.where(has_rows[:, None], places, 0)]
        self.step(rows, has_rows, generated)

    def step(self, sensitive_rows: Tensor, has_rows: Tensor, generated: Codes) -> None:
        """Take the step, with the rows that each teacher has drawn.

        ``sensitive_rows`` (n_teachers, batch, n_columns): cells.
        ``has_rows`` (n_teachers,): a teacher without rows learns from generated ones alone.
        """
        real = self._logits(self.blocks.one_hot(sensitive_rows))
        fake = self._logits(self.blocks.one_hot(generated).expand(len(self), -1, -1))
        # Summed over teachers: no gradient depends on how many there are.
        loss_of_real = F.softplus(-real).mean(dim=(1, 2)) * has_rows
        loss = (loss_of_real + F.softplus(fake).mean(dim=(1, 2))).sum()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()

    @torch.no_grad()
    def votes(self, generated: Codes) -> NDArray[np.bool_]:
        """Ask every teacher whether rows look real. **Sensitive.** Shape (n_teachers, n)."""
        parts = torch.split(self.blocks.one_hot(generated), _AT_ONCE)
        seen = [self._logits(rows.expand(len(self), -1, -1))[:, :, 0].numpy() for rows in parts]
        logits = np.concatenate(seen, axis=1)
        above = np.median(logits, axis=1, keepdims=True) if self._relative else 0.0
        return np.asarray(logits > above)

    def _logits(self, rows: Tensor) -> Tensor:
        into, bias, out, last = self._weights
        hidden = F.leaky_relu(torch.baddbmm(bias, rows, into), 0.2)
        return torch.baddbmm(last, hidden, out)


def _uniform(shape: tuple[int, ...], n_inputs: int, coins: torch.Generator) -> Tensor:
    bound = n_inputs**-0.5
    return torch.empty(shape).uniform_(-bound, bound, generator=coins).requires_grad_()
