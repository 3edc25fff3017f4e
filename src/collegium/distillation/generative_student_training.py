"""The training loop of a generative student. Needs PyTorch."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (PyTorch's own name for it)
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import parametrize

from collegium.distillation.generative_student_networks import generator, settle
from collegium.distillation.losses import evidence_loss

_BETAS = (0.5, 0.999)
_SETTLING = 500  # public records by which layers are scaled
_KEPT = 0.999  # of the average of the student's parameters, at each step


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is public, and what was released about it.

    ``records`` (n_public, n_features): all public records.
    ``evidence`` (n_answers, n_classes): log-likelihood ratios of what was released.
    ``answered`` (n_answers,): rows it is about.
    ``bounded``: whether values lie in [0, 1].
    """

    records: NDArray[np.float32]
    evidence: NDArray[np.float64]
    answered: NDArray[np.intp]
    bounded: bool


@dataclass(frozen=True)
class Course:
    """How it is learnt; see :class:`~collegium.distillation.generative_student.GenerativeStudent`."""

    epochs: int
    batch_size: int
    learning_rate: float
    generated_weight: float


def train(
    network: nn.Sequential,
    lesson: Lesson,
    course: Course,
    noise_size: int,
    device: torch.device,
    seed: int,
) -> tuple[nn.Module, int]:
    """Train a student in place, and leave the average of its last steps in it, on the CPU.

    Returns: the generator, and how many steps were taken.
    """
    records = torch.from_numpy(lesson.records)
    evidence = torch.from_numpy(lesson.evidence).float()
    answered = torch.from_numpy(lesson.answered.astype(np.int64))
    n_features, n = records.shape[1], len(records)
    size = min(course.batch_size, n)
    maker = generator(noise_size, n_features, lesson.bounded, seed + 1).to(device).train()
    settle(
        network,
        records[torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:_SETTLING]],
    )
    network.to(device).train()
    average = copy.deepcopy(network)
    learnt = [[p for p in one.parameters() if p.requires_grad] for one in (network, maker)]
    both = [torch.optim.Adam(those, lr=course.learning_rate, betas=_BETAS) for those in learnt]
    total = course.epochs * max(1, n // size)
    coins = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for number in range(total):
            for optimiser in both:
                for group in optimiser.param_groups:
                    group["lr"] = course.learning_rate * min(1.0, 2 * (1 - number / total))
            real = records[torch.randint(n, (size,), generator=coins)].to(device)
            asked = torch.randint(len(answered), (-(-size // 2),), generator=coins)
            known, said = records[answered[asked]].to(device), evidence[asked].to(device)
            fake = maker(torch.rand((size, noise_size), generator=coins).to(device))
            with parametrize.cached():  # weights are normalised once
                losses = _losses(network, known, said, real, fake, course.generated_weight)
            gradients = [
                torch.autograd.grad(loss, those, retain_graph=True)
                for loss, those in zip(losses, learnt, strict=True)
            ]
            for optimiser, those, found in zip(both, learnt, gradients, strict=True):
                for parameter, gradient in zip(those, found, strict=True):
                    parameter.grad = gradient
                optimiser.step()
            with torch.no_grad():
                for kept, now in zip(average.parameters(), network.parameters(), strict=True):
                    kept.lerp_(now, 1 - min(_KEPT, number / (number + 10)))
    network.load_state_dict(average.state_dict())
    network.eval().cpu()
    return maker.eval().cpu(), total


def _losses(
    network: nn.Sequential, known: Tensor, said: Tensor, real: Tensor, fake: Tensor, weight: float
) -> tuple[Tensor, Tensor]:
    """Compute what student and generator lessen, from one pass of the same records."""
    features, last = network[:-2], network[-2:]
    of_known, of_real = features(torch.cat([known, real])).split([len(known), len(real)])
    of_fake = features(fake)
    outputs = last(torch.cat([of_known, of_real, of_fake]))
    answers, reals, fakes = outputs.split([len(known), len(real), len(fake)])
    student = evidence_loss(answers, said).mean() + weight * unlabelled_loss(reals, fakes)
    return student, feature_matching_loss(of_real.detach(), of_fake)


def unlabelled_loss(of_real: Tensor, of_fake: Tensor) -> Tensor:
    """Find public records real, and generated ones not: Salimans et al. 2016, section 5, with l_{K+1} = 0.

    Half of -log(Z/(Z + 1)) of public and -log(1/(Z + 1)) of generated records, Z = Σ_c exp l_c, averaged.

    ``of_real``, ``of_fake`` (n, n_classes): the student's outputs.

    Examples
    --------
    >>> sure = torch.tensor([[9.0, -9.0]])
    >>> round(float(unlabelled_loss(sure, -9 * torch.ones(1, 2))), 3)
    0.0
    >>> round(float(unlabelled_loss(sure, sure)), 1)
    4.5
    """
    real, fake = (outputs.logsumexp(dim=1) for outputs in (of_real, of_fake))
    return (F.softplus(-real).mean() + F.softplus(fake).mean()) / 2


def feature_matching_loss(of_real: Tensor, of_fake: Tensor) -> Tensor:
    """Mean squared distance of the mean features: section 3.1 of the same.

    ``of_real``, ``of_fake`` (n, n_features): what the last hidden layer gives of both.

    Examples
    --------
    >>> float(feature_matching_loss(torch.tensor([[0.0], [2.0]]), torch.tensor([[4.0]])))
    9.0
    """
    return F.mse_loss(of_fake.mean(dim=0), of_real.mean(dim=0))
