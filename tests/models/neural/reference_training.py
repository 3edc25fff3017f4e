"""One teacher trained the plain way: a module, PyTorch's own gradients, layers and optimiser."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from collegium.models.neural.augmentation import Augmentation
from collegium.models.neural.recipes import TrainingRecipe


def train_plainly(
    factory: Callable[[int, tuple[int, ...]], nn.Module],
    X: Tensor,
    y: Tensor,
    seed: int,
    n_classes: int,
    recipe: TrainingRecipe,
) -> nn.Module:
    """Train as the library promises to, without anything of it but augmentation and settings.

    Dropout layers are multiplied with masks drawn from the teacher's generator.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = factory(n_classes, tuple(X.shape[1:]))
    generator = torch.Generator().manual_seed(seed)
    held_out = None
    if recipe.patience is not None:
        order = torch.randperm(len(X), generator=generator)
        count = min(max(1, round(recipe.validation_share * len(X))), len(X) - 2)
        held_out, X, y = (X[order[:count]], y[order[:count]]), X[order[count:]], y[order[count:]]
    sizes = recipe.batch_sizes(len(X))
    shares = _draw_dropout_here(network, generator)
    kind = torch.optim.AdamW if recipe.weight_decay else torch.optim.Adam
    optimiser = kind(
        network.parameters(),
        lr=recipe.learning_rate,
        eps=recipe.epsilon,
        weight_decay=recipe.weight_decay,
    )
    best, best_loss, stale, step = None, math.inf, 0, 0
    for _ in range(recipe.epochs):
        network.train()
        order = torch.randperm(len(X), generator=generator)
        records = X[order]
        if recipe.augment:
            records = Augmentation(recipe.rotation, recipe.shift)(records, generator)
        for x, labels in zip(records.split(sizes), y[order].split(sizes), strict=True):
            for group in optimiser.param_groups:
                group["lr"] = recipe.rate(step / (recipe.epochs * len(sizes)))
            optimiser.zero_grad()
            F.cross_entropy(network(x), labels, label_smoothing=recipe.label_smoothing).backward()
            optimiser.step()
            step += 1
        if held_out is not None:
            with torch.no_grad():
                loss = float(F.cross_entropy(network.eval()(held_out[0]), held_out[1]))
            stale += 1
            if loss < best_loss:
                best, best_loss, stale = copy.deepcopy(network), loss, 0
            if stale >= recipe.patience:
                break
    assert len(shares) == sum(isinstance(module, Drawn) for module in network.modules())
    return (best or network).eval()


class Drawn(nn.Module):
    """Dropout with a generator of its own."""

    def __init__(self, share: float, generator: torch.Generator) -> None:
        super().__init__()
        self.share, self.generator = share, generator

    def __deepcopy__(self, memo: object) -> Drawn:
        return Drawn(self.share, self.generator)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        kept = torch.rand(x.shape, generator=self.generator) >= self.share
        return x * kept / (1 - self.share)


def _draw_dropout_here(network: nn.Module, generator: torch.Generator) -> list[float]:
    shares = []
    for name, module in list(network.named_modules()):
        if isinstance(module, nn.Dropout):
            parent, _, attribute = name.rpartition(".")
            setattr(network.get_submodule(parent), attribute, Drawn(module.p, generator))
            shares.append(module.p)
    return shares
