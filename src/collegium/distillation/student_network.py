"""The network that a student is by default. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from collegium.errors import InputError
from collegium.models.neural.networks import mlp


def student_network(
    n_classes: int, input_shape: Sequence[int], width: int = 16, dropout: float = 0.2
) -> nn.Sequential:
    """Make a convolutional network for images, a perceptron for other records.

    Three blocks of 3 × 3 convolution, batch normalisation, ReLU and maximum over 2 × 2 (left out where the
    plane has become smaller than 2 × 2), then 128 hidden units. It keeps places apart until the hidden
    layer, and so needs fewer epochs than one that averages over the plane.

    ``input_shape``: (channels, height, width), or (n_features,).
    ``width``: kernels of the first block; the others have two and four times as many.
    ``dropout``: share of the values left out before the hidden layer in training.
    Returns: a network whose last layer is linear.

    Examples
    --------
    >>> import torch
    >>> student_network(10, (1, 28, 28))(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    >>> student_network(3, (7,))(torch.zeros(2, 7)).shape
    torch.Size([2, 3])
    """
    if len(input_shape) == 1:
        return mlp(n_classes, tuple(input_shape), dropout=dropout)
    if len(input_shape) != 3:
        raise InputError(
            f"records of shape {tuple(input_shape)} are neither images (channels, height, width) nor "
            "vectors: reshape them"
        )
    channels, *plane = input_shape
    layers: list[nn.Module] = []
    for kernels in (width, 2 * width, 4 * width):
        layers += [
            nn.Conv2d(channels, kernels, 3, padding=1, bias=False),
            nn.BatchNorm2d(kernels),
            nn.ReLU(),
        ]
        channels = kernels
        if min(plane) >= 2:
            layers.append(nn.MaxPool2d(2))
            plane = [size // 2 for size in plane]
    hidden = 128
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(channels * plane[0] * plane[1], hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, n_classes),
    )
