"""Gradients of single records, part by part: as matrices, or as factors of matrices of rank one."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Part(ABC):
    """Gradients of some records with regard to one parameter. **Sensitive.**

    ``name``: of the parameter.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def squared_norms(self) -> Tensor:
        """Compute the squared norm of each record's gradient, shape (n,), in double precision.

        Squares of single-precision numbers are exact there, so that the relative error is below size · 2^-53.
        """

    @abstractmethod
    def rows(self, factors: Tensor) -> Tensor:
        """Form gradients, each times its record's factor, shape (n, size); may be done once only."""

    @abstractmethod
    def forget(self, unsound: Tensor) -> None:
        """Make the gradients of some records (a mask) 0."""


class Rows(Part):
    """Gradients as they are, shape (n, size)."""

    def __init__(self, name: str, gradients: Tensor) -> None:
        super().__init__(name)
        self.gradients = gradients if gradients.dtype == torch.float64 else gradients.float()

    def squared_norms(self) -> Tensor:
        """See :meth:`Part.squared_norms`."""
        return _squares(self.gradients)

    def rows(self, factors: Tensor) -> Tensor:
        """See :meth:`Part.rows`: over the gradients themselves."""
        return self.gradients.mul_(factors.to(self.gradients.dtype)[:, None])

    def forget(self, unsound: Tensor) -> None:
        """See :meth:`Part.forget`."""
        self.gradients[unsound] = 0


class Outer(Part):
    """Gradients error ⊗ input of a dense layer that saw each record once: their norms need no product.

    ``errors`` (n, units), ``inputs`` (n, features).
    """

    def __init__(self, name: str, errors: Tensor, inputs: Tensor, into: Tensor) -> None:
        super().__init__(name)
        self.errors, self.inputs, self._into = errors, inputs, into

    def squared_norms(self) -> Tensor:
        """See :meth:`Part.squared_norms`."""
        return _squares(self.errors) * _squares(self.inputs)

    def rows(self, factors: Tensor) -> Tensor:
        """See :meth:`Part.rows`: in the memory given."""
        scaled = self.errors * factors.to(self.errors.dtype)[:, None]
        # Huge errors beside tiny inputs leave the range of floats on the way, though their product is within.
        scaled = torch.where(scaled.isfinite().all(1, keepdim=True), scaled, 0)
        torch.mul(scaled[:, :, None], self.inputs[:, None, :], out=self._into)
        return self._into.flatten(1)

    def forget(self, unsound: Tensor) -> None:
        """See :meth:`Part.forget`."""
        self.errors = torch.where(unsound[:, None], 0, self.errors)
        self.inputs = torch.where(unsound[:, None], 0, self.inputs)


def _squares(rows: Tensor) -> Tensor:
    each = rows.flatten(1).double()
    squares: Tensor = torch.linalg.vecdot(each, each)
    return squares
