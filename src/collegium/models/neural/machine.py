"""Where to train: what the user asked for, checked against what is there. Needs no PyTorch to import."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from collegium.checks import check_whole
from collegium.errors import ModelError

if TYPE_CHECKING:
    import torch

    from collegium.models.neural.blueprint import Blueprint
    from collegium.models.neural.recipes import TrainingRecipe

DEVICES = ("auto", "cpu", "cuda")
_SHARE_OF_GPU = 0.5
_MOST_AT_ONCE = 256


@dataclass(frozen=True)
class Machine:
    """Where, and how many at a time: nothing that a teacher depends on, but for rounding in a group.

    ``device``: CPU or CUDA.
    ``threads``: groups at a time, on a CPU.
    ``group_size``: teachers in a group; None: one on a CPU, as many as fit on a GPU.
    """

    device: torch.device
    threads: int
    group_size: int | None = None

    def group_size_for(self, blueprint: Blueprint, recipe: TrainingRecipe, shard_size: int) -> int:
        """Choose how many teachers are trained side by side.

        Notes
        -----
        On a CPU, one: its teachers run on threads, each alone, so that not one bit of a teacher depends
        on the shards beside it. In a group, the number and sizes of the others decide which kernels
        run and in which order they add, and long training can blow such rounding up to other votes.
        On a GPU more is faster, up to half of the memory that is free.
        """
        if self.group_size is not None:
            return self.group_size
        if self.device.type == "cpu":
            return 1
        import torch

        width = max(recipe.batch_sizes(shard_size))
        rows = blueprint.layout.n_trained * 4 * (5 if recipe.patience else 4)
        passing = blueprint.activations * width * 4 * 3
        budget = int(_SHARE_OF_GPU * torch.cuda.mem_get_info(self.device)[0])
        records = shard_size * torch.Size(blueprint.input_shape).numel() * 4
        passing = passing * 4 + 6 * records
        return min(max(1, budget // (rows + passing)), _MOST_AT_ONCE)


def require_torch() -> None:
    """Raise a ModelError that names the extra, if PyTorch is not installed."""
    if find_spec("torch") is None:
        raise ModelError(
            'neural networks need PyTorch, which is not installed: pip install "collegium[torch]"'
        )


def find_machine(device: str, group_size: int | None = None) -> Machine:
    """Find the device, and how many cores PyTorch may use here.

    ``device``: ``auto``: a GPU if there is one.
    ``group_size``: teachers side by side; default: as many as fit.
    """
    require_torch()
    import torch

    if group_size is not None:
        check_whole("group_size", group_size, error=ModelError)
    if device not in DEVICES and not (isinstance(device, str) and device.startswith("cuda:")):
        raise ModelError(f"device={device!r} was given; allowed are {', '.join(DEVICES)}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device != "cpu" and not torch.cuda.is_available():
        raise ModelError(
            f"device={device!r} was given, but PyTorch sees no GPU here: use device='cpu'"
        )
    return Machine(torch.device(device), torch.get_num_threads(), group_size)
