"""Weak and strong views of a record, for students that must say the same of both. Needs PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from collegium.models.neural.augmentation import Augmentation


@dataclass(frozen=True)
class Views:
    """How far a record may be changed without changing its class: public knowledge about the domain.

    ``rotation``: degrees of a weak view of an image; a strong one goes twice as far.
    ``shift``: share of an image's height and width; a strong view goes half as far again.
    ``erased``: side of the square that a strong view of an image erases, as a share of the image's;
        of other records: the share of the values that it replaces by their public mean.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> images = torch.ones(2, 1, 8, 8)
    >>> views = Views(rotation=0, shift=0, erased=0.5)
    >>> float(views.weak(images, generator).mean()), float(views.strong(images, generator).mean()) < 1
    (1.0, True)
    """

    rotation: float = 10.0
    shift: float = 0.08
    erased: float = 0.3

    def weak(self, records: Tensor, generator: torch.Generator) -> Tensor:
        """Rotate and shift images a little; leave other records as they are."""
        if records.ndim != 4 or not (self.rotation or self.shift):
            return records
        return Augmentation(self.rotation, self.shift)(records, generator)

    def strong(self, records: Tensor, generator: torch.Generator) -> Tensor:
        """Move images further, and erase a part of each record."""
        if records.ndim != 4:
            kept = torch.rand(records.shape, generator=generator) >= self.erased
            return records * kept.to(records)
        if self.rotation or self.shift:
            far = Augmentation(min(180.0, 2 * self.rotation), min(1.0, 1.5 * self.shift))
            records = far(records, generator)
        return _erase(records, self.erased, generator)


def _erase(images: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Set a square at a random place of each image to 0."""
    masks = []
    for size in images.shape[-2:]:
        length = share * size
        first = torch.rand(len(images), 1, generator=generator) * (size + length) - length
        places = torch.arange(size) + 0.5
        masks.append((places >= first) & (places < first + length))
    inside = masks[0][:, :, None] & masks[1][:, None, :]
    return images * (~inside)[:, None].to(images)
