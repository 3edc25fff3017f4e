"""Where to train: what the user asked for, checked against what is there."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from collegium.errors import ModelError

if TYPE_CHECKING:
    from collegium.models.neural.groups import Machine

DEVICES = ("auto", "cpu", "cuda")


def require_torch() -> None:
    """Raise a ModelError that names the extra, if PyTorch is not installed."""
    if find_spec("torch") is None:
        raise ModelError(
            'neural networks need PyTorch, which is not installed: pip install "collegium[torch]"'
        )


def find_machine(device: str, threads: int | None, group_size: int | None = None) -> Machine:
    """Find the device, and how many cores may be used.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"} or another name of PyTorch's for a GPU, such as "cuda:1"
        ``auto``: a GPU if there is one.
    threads : int or None
        Cores of a CPU; None: what PyTorch may use here.
    group_size : int, optional
        Teachers side by side; default: as many as fit.

    Raises
    ------
    ModelError
        If there is no such device, or a number is below 1.
    """
    require_torch()
    import torch

    from collegium.models.neural.groups import Machine

    for name, number in (("n_threads", threads), ("group_size", group_size)):
        whole = isinstance(number, int) and not isinstance(number, bool)
        if number is not None and not (whole and number >= 1):
            raise ModelError(f"{name}={number!r} was given; allowed are whole numbers from 1")
    if device not in DEVICES and not (isinstance(device, str) and device.startswith("cuda:")):
        raise ModelError(f"device={device!r} was given; allowed are {', '.join(DEVICES)}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device != "cpu" and not torch.cuda.is_available():
        raise ModelError(
            f"device={device!r} was given, but PyTorch sees no GPU here: use device='cpu'"
        )
    return Machine(torch.device(device), threads or torch.get_num_threads(), group_size)
