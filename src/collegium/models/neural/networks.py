"""Small networks for small shards: the seeds' convolutional network, a stronger one, and a perceptron.

A *factory* is any callable ``factory(n_classes, input_shape)`` that returns a :class:`torch.nn.Module`
which maps a batch of shape (n, *input_shape) to logits of shape (n, n_classes). Its random numbers come
from PyTorch's global generator, which whoever calls it seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from torch import nn

from collegium.checks import check_number, check_whole
from collegium.errors import InputError

Factory = Callable[[int, tuple[int, ...]], nn.Module]

# TensorFlow's momentum is the share that a running average keeps, PyTorch's the share that it forgets.
TENSORFLOW_MOMENTUM = 1 - 0.99
TENSORFLOW_BATCHNORM_EPSILON = 1e-3

_Layer = TypeVar("_Layer", nn.Conv2d, nn.Linear)


def seed_cnn(n_classes: int, input_shape: Sequence[int] = (1, 28, 28)) -> nn.Sequential:
    """Make the convolutional network of the thesis and the paper.

    Convolution (32 kernels of 3 × 3, no padding), ReLU, batch normalisation, maximum over 2 × 2,
    100 hidden units, ReLU, batch normalisation, output. He uniform weights, but Glorot uniform ones in
    the last layer; biases 0; batch normalisation as in TensorFlow 2.4 (running averages keep 0.99,
    ε = 1e-3).

    ``n_classes``: length of the public list of classes.
    ``input_shape``: channels, height, width.
    Returns: maps (n, channels, height, width) to logits, shape (n, n_classes).

    References
    ----------
    Mühl, "Personalized PATE" (thesis, 2021), Table 6.1; Boenisch, Mühl, Rinberg, Ihrig & Dziedzic,
    "Individualized PATE" (PoPETs 2023), Table 3 and Section 5.1.

    Examples
    --------
    >>> import torch
    >>> network = seed_cnn(10)
    >>> network(torch.zeros(4, 1, 28, 28)).shape
    torch.Size([4, 10])
    >>> sum(parameter.numel() for parameter in network.parameters())
    542494
    """
    channels, height, width = _image_shape(input_shape, smallest=4)
    check_whole("n_classes", n_classes)
    pooled = ((height - 2) // 2) * ((width - 2) // 2)
    return nn.Sequential(
        _he_uniform(nn.Conv2d(channels, 32, 3)),
        nn.ReLU(),
        nn.BatchNorm2d(32, eps=TENSORFLOW_BATCHNORM_EPSILON, momentum=TENSORFLOW_MOMENTUM),
        nn.MaxPool2d(2),
        nn.Flatten(),
        _he_uniform(nn.Linear(32 * pooled, 100)),
        nn.ReLU(),
        nn.BatchNorm1d(100, eps=TENSORFLOW_BATCHNORM_EPSILON, momentum=TENSORFLOW_MOMENTUM),
        _glorot_uniform(nn.Linear(100, n_classes)),
    )


def small_cnn(
    n_classes: int, input_shape: Sequence[int] = (1, 28, 28), width: int = 16
) -> nn.Sequential:
    """Make a convolutional network that learns more from few images than :func:`seed_cnn`.

    Three convolutions (5 × 5 with stride 2; 3 × 3, then the maximum over 2 × 2; 3 × 3 without padding),
    each with batch normalisation before its ReLU, and one linear layer. The image is made small at once,
    and there are few parameters, so that steps are cheap and many can be taken. First weights are PyTorch's
    own: larger ones (He's) do not change what batch normalisation lets through, but slow learning down
    (they cost about 1.5 points of accuracy on 240 images of MNIST after 20 epochs).

    ``n_classes``: length of the public list of classes.
    ``input_shape``: channels, height, width.
    ``width``: kernels of the first convolution; the others have two and four times as many.
    Returns: maps (n, channels, height, width) to logits, shape (n, n_classes).

    Examples
    --------
    >>> import torch
    >>> small_cnn(10)(torch.zeros(4, 1, 28, 28)).shape
    torch.Size([4, 10])
    """
    channels, height, across = _image_shape(input_shape, smallest=11)
    check_whole("n_classes", n_classes)
    check_whole("width", width)
    wide, wider = 2 * width, 4 * width
    # Batch normalisation takes any bias away again.
    left = ((height + 1) // 2 // 2 - 2) * ((across + 1) // 2 // 2 - 2)
    return nn.Sequential(
        nn.Conv2d(channels, width, 5, stride=2, padding=2, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, wide, 3, padding=1, bias=False),
        nn.MaxPool2d(2),
        nn.BatchNorm2d(wide),
        nn.ReLU(),
        nn.Conv2d(wide, wider, 3, bias=False),
        nn.BatchNorm2d(wider),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(wider * left, n_classes),
    )


def mlp(
    n_classes: int,
    input_shape: Sequence[int],
    hidden: Sequence[int] = (128, 64),
    dropout: float = 0.0,
) -> nn.Sequential:
    """Make a perceptron for feature vectors: hidden layers with batch normalisation and ReLU.

    ``n_classes``: length of the public list of classes.
    ``input_shape``: shape of one record; more than one axis is flattened.
    ``hidden``: units of each hidden layer.
    ``dropout``: share of hidden units left out at random in training, in [0, 1).
    Returns: maps (n, *input_shape) to logits, shape (n, n_classes).

    Examples
    --------
    >>> import torch
    >>> mlp(2, (14,), hidden=(32,))(torch.zeros(5, 14)).shape
    torch.Size([5, 2])
    """
    check_whole("n_classes", n_classes)
    n_inputs = math.prod(input_shape)
    if n_inputs < 1 or any(units < 1 for units in hidden):
        raise InputError(
            f"input_shape={tuple(input_shape)} and hidden={tuple(hidden)} were given; every size must be "
            "at least 1"
        )
    check_number("dropout", dropout, least=0, below=1)
    layers: list[nn.Module] = [nn.Flatten()] if len(input_shape) != 1 else []
    for units in hidden:
        # Batch normalisation takes any bias away again.
        layers += [nn.Linear(n_inputs, units, bias=False), nn.BatchNorm1d(units), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        n_inputs = units
    return nn.Sequential(*layers, nn.Linear(n_inputs, n_classes))


def _he_uniform(layer: _Layer) -> _Layer:
    nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
    return _zero_bias(layer)


def _glorot_uniform(layer: _Layer) -> _Layer:
    nn.init.xavier_uniform_(layer.weight)
    return _zero_bias(layer)


def _zero_bias(layer: _Layer) -> _Layer:
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def _image_shape(input_shape: Sequence[int], smallest: int) -> tuple[int, int, int]:
    if len(input_shape) != 3 or input_shape[0] < 1 or min(input_shape[1:]) < smallest:
        raise InputError(
            f"input_shape={tuple(input_shape)} was given; this network takes images (channels, height, "
            f"width) of at least {smallest} × {smallest} pixels; give input_shape, or use 'mlp'"
        )
    channels, height, width = input_shape
    return channels, height, width
