"""Generators and discriminators of small images: perceptrons, or convolutions without batch normalisation.

Nothing in a discriminator lets records meet, so that a private record reaches a step through its owner's
clipped gradient alone. All its layers are those whose gradients for single records are fastest
(:mod:`collegium.dpsgd.networks.by_layer`). Needs PyTorch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from collegium.errors import InputError
from collegium.generative.table_networks import discriminator

MLP, CONVOLUTIONAL = "mlp", "convolutional"
NETWORKS = (MLP, CONVOLUTIONAL)
_SLOPE = 0.2  # of LeakyReLU: Radford et al., arXiv:1511.06434, section 3


class ImageGenerator(nn.Module):
    """Makes images of classes from noise.

    ``shape``: (channels, height, width). ``n_classes``: 0 without classes. ``hidden``: units of a hidden
    layer, or kernels of the last hidden convolution times four.

    Examples
    --------
    >>> generator = ImageGenerator((1, 28, 28), 10, noise_size=16, hidden=64, network="convolutional")
    >>> images = generator(torch.zeros(2, 16), torch.eye(10)[:2])
    >>> tuple(images.shape), bool((images > 0).all() and (images < 1).all())
    ((2, 1, 28, 28), True)
    """

    def __init__(
        self, shape: tuple[int, ...], n_classes: int, *, noise_size: int, hidden: int, network: str
    ) -> None:
        super().__init__()
        check_image_shape(shape, network)
        self.shape = shape
        channels, height, width = shape
        inputs = noise_size + n_classes
        self.layers: nn.Sequential
        if network == MLP:
            self.layers = nn.Sequential(
                nn.Linear(inputs, hidden), nn.ReLU(),
                nn.Linear(hidden, hidden), nn.ReLU(),
                nn.Linear(hidden, math.prod(shape)),
            )  # fmt: skip
        else:
            few = max(1, hidden // 4)
            start = (2 * few, height // 4, width // 4)
            self.layers = nn.Sequential(
                nn.Linear(inputs, math.prod(start)), nn.ReLU(), nn.Unflatten(1, start),
                nn.ConvTranspose2d(2 * few, few, 4, stride=2, padding=1), nn.ReLU(),
                nn.ConvTranspose2d(few, channels, 4, stride=2, padding=1),
            )  # fmt: skip

    def forward(self, noise: Tensor, classes: Tensor) -> Tensor:
        """Make images in (0, 1). ``classes`` (n, n_classes): one-hot."""
        made: Tensor = self.layers(torch.cat([noise, classes], dim=1))
        return made.sigmoid().view(len(noise), *self.shape)


def image_discriminator(
    shape: tuple[int, ...], n_classes: int, *, hidden: int, network: str
) -> nn.Sequential:
    """Make a discriminator: one number for each record that :func:`seen` makes, larger for what looks real.

    Examples
    --------
    >>> network = image_discriminator((1, 8, 8), 10, hidden=32, network="mlp")
    >>> tuple(network(seen(torch.zeros(5, 1, 8, 8), torch.eye(10)[:5], "mlp")).shape)
    (5, 1)
    """
    check_image_shape(shape, network)
    channels, height, width = shape
    if network == MLP:
        sizes = (hidden, hidden)
        return discriminator(math.prod(shape) + n_classes, torch.default_generator, sizes)
    few = max(1, hidden // 4)
    return nn.Sequential(
        nn.Conv2d(channels + n_classes, few, 4, stride=2, padding=1), nn.LeakyReLU(_SLOPE),
        nn.Conv2d(few, 2 * few, 4, stride=2, padding=1), nn.LeakyReLU(_SLOPE),
        nn.Flatten(), nn.Linear(2 * few * (height // 4) * (width // 4), 1),
    )  # fmt: skip


def seen(images: Tensor, classes: Tensor, network: str) -> Tensor:
    """Put images and classes together, as a discriminator sees them: classes as planes, or all flat.

    Flat, a class is as long a vector as an image of grey pixels: it would hardly be noticed otherwise.
    """
    if network == MLP:
        pixels = images.flatten(1)
        return torch.cat([pixels, 0.5 * pixels.shape[1] ** 0.5 * classes], dim=1)
    planes = classes[:, :, None, None].expand(-1, -1, *images.shape[2:])
    return torch.cat([images, planes], dim=1)


def check_image_shape(shape: tuple[int, ...], network: str) -> None:
    """Refuse shapes that a network cannot take."""
    if network == CONVOLUTIONAL and (shape[1] % 4 or shape[2] % 4):
        raise InputError(
            f"images of {shape[1]} × {shape[2]} were given to a convolutional network, which halves both "
            "sides twice: pad them to multiples of 4, or use network='mlp'"
        )
