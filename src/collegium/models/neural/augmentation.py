"""Small random rotations and shifts of images, different for each image and each time it is seen.

Each teacher draws its movements from a generator of its own, so that what it sees does not depend on
which teachers are trained beside it; the movements of many teachers' images are applied in one call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import Tensor

from collegium.models.neural.recipes import check_movement


@dataclass(frozen=True)
class Augmentation:
    """Random rotation and shift: how far at most.

    ``rotation``: degrees, at most this far in either direction.
    ``shift``: share of height and of width, at most this far in each direction.

    References
    ----------
    Boenisch et al., "Individualized PATE" (PoPETs 2023), Section 5.1.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> images = torch.rand(3, 1, 28, 28)
    >>> moved = Augmentation()(images, generator)
    >>> moved.shape, torch.equal(moved, images)
    (torch.Size([3, 1, 28, 28]), False)
    >>> bool((Augmentation(rotation=0, shift=0)(images, generator) - images).abs().max() < 1e-4)
    True
    """

    rotation: float = 7.5
    shift: float = 0.07

    def __post_init__(self) -> None:
        check_movement(self.rotation, self.shift)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Move images at random.

        ``images`` (n, channels, height, width): left as they are.
        ``generator``: on the CPU, wherever the images are.
        Returns (n, channels, height, width): what moves in from outside an image is 0.
        """
        return move_images(images, self.draw(len(images), generator))

    def draw(self, n_images: int, generator: torch.Generator) -> Tensor:
        """Draw movements from one generator.

        ``generator``: on the CPU.
        Returns (n_images, 3): angle in radians, and horizontal and vertical shift as a share of the
            image; each uniform, symmetric about 0. On the CPU.
        """
        limits = torch.tensor([math.radians(self.rotation), self.shift, self.shift])
        return (2 * torch.rand(n_images, 3, generator=generator) - 1) * limits


def move_images(images: Tensor, movements: Tensor) -> Tensor:
    """Rotate and shift images, interpolating between pixels.

    ``images`` (n, channels, height, width): of any floating-point type.
    ``movements`` (n, 3): of :meth:`Augmentation.draw`; images of several teachers are given one
        after another.
    Returns (n, channels, height, width): rotated about the centre, then shifted. What moves in from
        outside is 0.

    Examples
    --------
    >>> one_right = torch.tensor([[0.0, 0.25, 0.0]])
    >>> move_images(torch.eye(4)[None, None], one_right)[0, 0].round().int().tolist()
    [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    """
    height, width = images.shape[-2:]
    movements = movements.to(device=images.device, dtype=images.dtype)
    cosine, sine = movements[:, 0].cos(), movements[:, 0].sin()
    # The grid says, for each pixel of the result, where in the image (both axes in [-1, 1]) it comes
    # from, so it holds the inverse movement; on images that are not square the angle is one of pixels.
    right, down = 2 * movements[:, 1], 2 * movements[:, 2]
    across = height / width
    inverse = torch.stack(
        [
            torch.stack([cosine, sine * across, -cosine * right - sine * across * down], dim=1),
            torch.stack([-sine / across, cosine, sine / across * right - cosine * down], dim=1),
        ],
        dim=1,
    )
    grid = F.affine_grid(inverse, [len(images), 1, height, width], align_corners=False)
    return F.grid_sample(images, grid, padding_mode="zeros", align_corners=False)
