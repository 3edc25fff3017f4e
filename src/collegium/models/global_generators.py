"""The generators that any code may draw from (Python's, NumPy's, PyTorch's): seeded, and put back."""

# ruff: noqa: NPY002 (it is about the global generators)

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def kept_generators() -> Iterator[None]:
    """Put all global generators back afterwards.

    One thread at a time: the generators are shared by all of them. PyTorch's are among them (of the
    processor, and of GPUs in use) once it is imported.

    Examples
    --------
    >>> with kept_generators():
    ...     seed_generators(1)
    ...     first = random.random(), np.random.rand()
    ...     seed_generators(1)
    ...     first == (random.random(), np.random.rand())
    True
    """
    with _ONE_AT_A_TIME:
        python, numpy = random.getstate(), np.random.get_state()
        torch, has_gpus = _torch()
        processor = torch.get_rng_state() if torch else None
        gpus = torch.cuda.get_rng_state_all() if has_gpus else None
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            if torch:
                torch.set_rng_state(processor)
            if has_gpus:
                torch.cuda.set_rng_state_all(gpus)


def seed_generators(seed: int) -> None:
    """Seed all global generators, inside :func:`kept_generators`. ``seed``: of 64 bits."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch, has_gpus = _torch()
    if torch:
        torch.default_generator.manual_seed(seed)
    if has_gpus:
        torch.cuda.manual_seed_all(seed)


def _torch() -> tuple[Any, bool]:
    torch = sys.modules.get("torch")
    return torch, torch is not None and torch.cuda.is_initialized()
