"""The training loop of a DP-GAN: private steps of a discriminator, public ones of a generator.

A step of the discriminator follows the mean gradient over real records plus that over fakes. The two meet
only after the noise: :func:`collegium.individual_dpsgd` sums clipped gradients of real owners, adds noise,
divides by the plan's public constant, and lets the optimiser step; a hook of the optimiser adds the gradient
of the fakes before it does. That is a function of the generator and the discriminator, which follow from
earlier releases, and of public random numbers, so that it is a known constant to the account: it needs no
noise, and costs nobody anything. Fakes are clipped one by one, as owners of weight 1 are, so that both parts
balance where fakes are as real records are.

The generator learns from what the discriminator says of fakes, and meets no real record: post-processing. So
is dividing each layer's weights by their spectral norm, where it is above 1, after each step; a gradient
penalty instead would need points between real records and fakes. Needs PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from torch import Tensor, nn

from collegium.budgets import Budgets
from collegium.dpsgd.grid import UNIT
from collegium.dpsgd.networks.owner_sums import Drawn, OwnerSums
from collegium.dpsgd.networks.private_steps import PrivateSteps
from collegium.dpsgd.torch_entry import individual_dpsgd
from collegium.personalisation.dpsgd_plan import DPSGDPlan

REAL, FAKE = 1.0, 0.0
_LEAST_NORM = 1e-6
_KEPT = 0.98  # of the generator's average, at each of its steps
_BETAS = (0.5, 0.9)  # of Adam: less momentum, since discriminator and generator chase each other


class Fakes(Protocol):
    """Makes fake records as a discriminator sees them, from public random numbers alone."""

    @property
    def generator(self) -> nn.Module:
        """What learns."""
        ...

    def __call__(self, n: int, coins: torch.Generator) -> Tensor:
        """Make n of them, differentiable with regard to the generator."""
        ...


@dataclass(frozen=True)
class Course:
    """How both learn; see :class:`~collegium.generative.dp_gan.DPGAN`."""

    discriminator_rate: float
    generator_rate: float
    discriminator_steps: int
    generator_steps: int
    batch_size: int
    max_grad_norm: float


def train(
    discriminator: nn.Module,
    fakes: Fakes,
    records: Tensor,
    plan: DPSGDPlan,
    budgets: Budgets,
    course: Course,
    *,
    seed: int,
    noise_seed: int | None,
    charge: Callable[[int], None] | None = None,
    tell: Callable[[int], None] | None = None,
) -> PrivateSteps:
    """Train both in place, all steps of the plan.

    ``records``: **private**, as the discriminator sees them.
    ``seed``: of all public randomness; privacy noise and samples never come from it.
    """
    coins = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(
        discriminator.parameters(), lr=course.discriminator_rate, betas=_BETAS
    )
    add = FakeGradient(discriminator, fakes, course, coins)
    optimiser.register_step_pre_hook(lambda *_: add())
    optimiser.register_step_post_hook(lambda *_: cap_spectral_norms(discriminator))
    cap_spectral_norms(discriminator, least=0.0)
    private = individual_dpsgd(
        discriminator,
        optimiser,
        (records, torch.full((len(records),), REAL)),
        plan,
        budgets=budgets,
        max_grad_norm=course.max_grad_norm,
        loss=realness_loss,
        charge=charge,
        noise_seed=noise_seed,
    )
    learner = _GeneratorLearner(discriminator, fakes, course, coins)
    for number in private:
        if number % course.discriminator_steps == 0:
            for _ in range(course.generator_steps):
                learner.step()
        if tell is not None:
            tell(number)
    learner.finish()
    return private


def realness_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Logistic loss of a discriminator's outputs: large ones are right of records, small ones of fakes."""
    return F.softplus((1 - 2 * targets) * outputs.squeeze(-1))


class FakeGradient:
    """The public part of a gradient: the mean over fakes, each clipped as an owner of weight 1 is."""

    def __init__(
        self, discriminator: nn.Module, fakes: Fakes, course: Course, coins: torch.Generator
    ) -> None:
        self._fakes, self._coins = fakes, coins
        self._trained = [p for p in discriminator.parameters() if p.requires_grad]
        self._sums = OwnerSums(discriminator, realness_loss, course.max_grad_norm)
        n = self._n = course.batch_size
        self._drawn = Drawn(
            np.arange(n), np.arange(n), np.ones(n), np.ones(n), torch.zeros(n, dtype=torch.int64), 0
        )
        self._unit = UNIT * course.max_grad_norm / n

    def __call__(self) -> None:
        """Add it to what the discriminator's parameters have as gradients."""
        with torch.no_grad():
            made = self._fakes(self._n, self._coins)
        targets = torch.full((self._n,), FAKE)

        def read(rows: Any, _: Tensor) -> list[tuple[Tensor, Tensor]]:
            return [(made[rows], targets[rows])]

        total = torch.from_numpy(self._sums.clipped_sum(self._drawn, read) * self._unit)
        pieces = torch.split(total, [p.numel() for p in self._trained])
        for parameter, piece in zip(self._trained, pieces, strict=True):
            assert parameter.grad is not None
            parameter.grad += piece.to(parameter).view_as(parameter)


@torch.no_grad()
def cap_spectral_norms(network: nn.Module, least: float = 1.0) -> None:
    """Divide each layer's weights by their spectral norm, or by ``least`` if it is below.

    Kernels of convolutions count as matrices, with a row for each. After Miyato, Kataoka, Koyama & Yoshida,
    *Spectral normalization for generative adversarial networks*, ICLR 2018, arXiv:1802.05957v1, section 2.1;
    here as a projection of what a step left, with exact norms.
    """
    for layer in network.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            norm = torch.linalg.matrix_norm(layer.weight.flatten(1), ord=2)
            layer.weight /= norm.clamp_min(max(least, _LEAST_NORM))


class _GeneratorLearner:
    """Lets the generator learn to please the discriminator, and keeps an average of its parameters."""

    def __init__(
        self, discriminator: nn.Module, fakes: Fakes, course: Course, coins: torch.Generator
    ) -> None:
        self._discriminator, self._fakes, self._coins = discriminator, fakes, coins
        self._size = course.batch_size
        self._parameters = list(fakes.generator.parameters())
        self._optimiser = torch.optim.Adam(self._parameters, lr=course.generator_rate, betas=_BETAS)
        self._average = [p.detach().clone() for p in self._parameters]

    def step(self) -> None:
        outputs = self._discriminator(self._fakes(self._size, self._coins))
        loss = realness_loss(outputs, torch.full((self._size,), REAL)).mean()
        found = torch.autograd.grad(loss, self._parameters)
        for parameter, gradient in zip(self._parameters, found, strict=True):
            parameter.grad = gradient
        self._optimiser.step()
        with torch.no_grad():
            for kept, parameter in zip(self._average, self._parameters, strict=True):
                kept.lerp_(parameter, 1 - _KEPT)

    @torch.no_grad()
    def finish(self) -> None:
        """Leave the average in the generator."""
        for parameter, kept in zip(self._parameters, self._average, strict=True):
            parameter.copy_(kept)
