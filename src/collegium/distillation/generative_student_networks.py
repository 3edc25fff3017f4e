"""The networks of a generative student. Needs PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

_NOISE = (
    0.3,
    0.5,
)  # on records, and on what hidden layers give, in training: Salimans et al.'s code


class Noisy(nn.Module):
    """Adds normal noise in training, and nothing otherwise."""

    def __init__(self, deviation: float) -> None:
        super().__init__()
        self.deviation = deviation

    def forward(self, x: Tensor) -> Tensor:
        """Add it."""
        return x + self.deviation * torch.randn_like(x) if self.training else x


def classifier(n_inputs: int, n_classes: int, hidden: tuple[int, ...], seed: int) -> nn.Sequential:
    """Make the student: a perceptron with noise before each layer, and normalised weights.

    How long the weights of hidden layers are is not learnt: a layer that grows would get rid of its noise,
    as Salimans et al.'s does not (their code scales the last layer alone).

    Examples
    --------
    >>> classifier(4, 3, (8, 8), seed=0).eval()(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = [Noisy(_NOISE[0])]
        width = n_inputs
        for units in hidden:
            layer = weight_norm(nn.Linear(width, units))
            layer.parametrizations.weight.original0.requires_grad_(False)
            layers += [layer, nn.ReLU(), Noisy(_NOISE[1])]
            width = units
        return nn.Sequential(*layers, weight_norm(nn.Linear(width, n_classes)))


@torch.no_grad()
def settle(network: nn.Sequential, records: Tensor) -> None:
    """Scale the layers so that what they give of public records, before noise, has mean 0 and variance 1.

    Salimans & Kingma, *Weight normalization*, NIPS 2016, arXiv:1602.07868v3, section 3. Otherwise the
    noise of :class:`Noisy` drowns what the first layers say.
    """
    x = records
    for layer in network:
        if isinstance(layer, nn.Linear):
            deviation, mean = torch.std_mean(layer(x), dim=0)
            scale = 1 / deviation.clamp_min(1e-6)
            length: Any = layer.parametrizations.weight.original0  # type: ignore[union-attr]
            length *= scale[:, None]
            layer.bias.copy_((layer.bias - mean) * scale)
        x = x if isinstance(layer, Noisy) else layer(x)


def generator(noise_size: int, n_outputs: int, bounded: bool, seed: int) -> nn.Sequential:
    """Make a generator; it sees no private record, so that batch normalisation harms nobody.

    ``bounded``: whether values lie in (0, 1), as pixels do.
    """
    hidden = 250
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(noise_size, hidden, bias=False), nn.BatchNorm1d(hidden), nn.Softplus(),
            nn.Linear(hidden, hidden, bias=False), nn.BatchNorm1d(hidden), nn.Softplus(),
            weight_norm(nn.Linear(hidden, n_outputs)), nn.Sigmoid() if bounded else nn.Identity(),
        )  # fmt: skip
