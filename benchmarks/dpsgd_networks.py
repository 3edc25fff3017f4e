"""Speed of private steps of a network: ``python benchmarks/dpsgd_networks.py``.

The Tanh network of Papernot et al. (2021) for MNIST and a batch of 512 random images. All ways take
turns, so that whatever else the machine does falls on all alike; printed are medians over the turns,
and their ratios to a plain forward and backward pass of the same network in the same run. Opacus is
compared with where it is installed.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from collegium.dpsgd.grid import noisy
from collegium.dpsgd.networks.owner_sums import Drawn, OwnerSums
from collegium.noise.sources import SecureNoise

CLIP = 0.2


def tanh_network(dropout: float = 0.0) -> nn.Sequential:
    layers = [
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Dropout(dropout),
        nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Dropout(dropout),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.Tanh(), nn.Dropout(dropout), nn.Linear(32, 10),
    ]  # fmt: skip
    return nn.Sequential(*(layer for layer in layers if dropout or type(layer) is not nn.Dropout))


class Wrapped(nn.Module):
    """The same network, of which nothing is known."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x)


def ways(
    X: torch.Tensor, y: torch.Tensor, sigma: float, dropout: float
) -> dict[str, Callable[[], object]]:
    network = tanh_network(dropout)
    n = len(X)
    drawn = Drawn(np.arange(n), np.arange(n), np.ones(n), np.ones(n), torch.arange(n), 0)
    layered = OwnerSums(network, F.cross_entropy, CLIP)
    transformed = OwnerSums(Wrapped(network), F.cross_entropy, CLIP)
    noise = SecureNoise()

    def read(rows: np.ndarray, seeds: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        chosen = torch.from_numpy(rows)
        return [(X[chosen], y[chosen])]

    def plain(images: torch.Tensor) -> Callable[[], object]:
        def passes() -> None:
            network.zero_grad()
            F.cross_entropy(network(images), y).backward()

        return passes

    zeros = np.zeros(sum(p.numel() for p in network.parameters()), dtype=np.int64)
    return {
        "plain forward and backward": plain(X),
        "private step": lambda: noisy(layered.clipped_sum(drawn, read), sigma, noise, step=0),
        "  without noise": lambda: layered.clipped_sum(drawn, read),
        "  noise alone": lambda: noisy(zeros, sigma, noise, step=0),
        "  without noise, torch.func": lambda: transformed.clipped_sum(drawn, read),
    }


def ways_of_opacus(
    X: torch.Tensor, y: torch.Tensor, sigma: float
) -> dict[str, Callable[[], object]]:
    from opacus import GradSampleModule
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import (
        GradSampleModuleFastGradientClipping,
    )
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    settings = {"noise_multiplier": sigma, "max_grad_norm": CLIP, "expected_batch_size": len(X)}
    hooked = GradSampleModule(tanh_network())
    usual = DPOptimizer(torch.optim.SGD(hooked.parameters(), lr=0.0), **settings)
    ghost = GradSampleModuleFastGradientClipping(tanh_network(), max_grad_norm=CLIP)
    fast = DPOptimizerFastGradientClipping(torch.optim.SGD(ghost.parameters(), lr=0.0), **settings)
    loss = DPLossFastGradientClipping(ghost, fast, nn.CrossEntropyLoss(), loss_reduction="mean")

    def with_hooks() -> None:
        usual.zero_grad()
        F.cross_entropy(hooked(X), y).backward()
        usual.pre_step()

    def with_ghosts() -> None:
        fast.zero_grad()
        loss(ghost(X), y).backward()
        fast.pre_step()

    return {"Opacus, hooks": with_hooks, "Opacus, ghost clipping": with_ghosts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--sigma", type=float, default=3.4, help="noise, in clip norms")
    parser.add_argument(
        "--dropout", type=float, default=0.0, help="after each activation (not in Opacus)"
    )
    parser.add_argument("--cpu-time", action="store_true", help="of the process, not of the clock")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    X = torch.randn(arguments.batch, 1, 28, 28)
    y = torch.randint(10, (arguments.batch,))
    compared = ways(X, y, arguments.sigma, arguments.dropout)
    if find_spec("opacus"):
        compared |= ways_of_opacus(X, y, arguments.sigma)
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    took: dict[str, list[float]] = {name: [] for name in compared}
    for turn in range(arguments.turns + 2):
        for name, way in compared.items():
            start = clock()
            way()
            if turn >= 2:
                took[name].append(clock() - start)
    median = {name: statistics.median(times) for name, times in took.items()}
    plain = median["plain forward and backward"]
    print(f"{arguments.threads} thread(s), batch of {arguments.batch}, torch {torch.__version__}")
    for name, seconds in median.items():
        print(f"{name:30} {1e3 * seconds:8.1f} ms   x {seconds / plain:.2f}")


if __name__ == "__main__":
    main()
