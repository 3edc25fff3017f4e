"""Modules whose names live elsewhere, and are imported when they are first used.

So ``import collegium`` and the command line come at once, and each name brings only what it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(
    module: str, homes: Mapping[str, Sequence[str]], rooms: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a module (PEP 562).

    ``homes``: names by the module that defines them.
    ``rooms``: modules inside this one that can be used without being imported by name.

    Examples
    --------
    >>> get, names = lazily("collegium", {"collegium.budgets": ["Budget", "Policy"]})
    >>> "Policy" in names(), get("Budget")(1.0)
    (True, Budget(epsilon=1.0, delta=1e-05))
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in home_of:
            return getattr(import_module(home_of[name]), name)
        if name in rooms:
            return import_module(f"{module}.{name}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    def names() -> list[str]:
        own = (name for name in vars(sys.modules[module]) if name.startswith("__"))
        return sorted({*home_of, *rooms, *own})

    return get, names
