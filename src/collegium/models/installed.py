"""What is installed, found by its full name: its module is imported, and nothing of it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from collegium.errors import ConfigError


def find_installed(key: str, name: str, *, kind: str, thing: str, example: str) -> Any:
    """Find what a module offers under a name.

    Importing a module runs it. So Python's own modules are not even imported, for what is looked for is in
    none of them, nor are programs (``__main__``); any other that is installed may be.

    ``key``: what messages call the setting that names it.
    ``name``: in full, with the module.
    ``kind``, ``thing``: what it is to be, such as "classifier", and "class".
    ``example``: of such a name.
    Raises ConfigError if there is none.
    """
    module, _, attribute = name.rpartition(".")
    parts = module.split(".")
    if parts[0] in sys.stdlib_module_names or "__main__" in parts:
        raise ConfigError(
            f"{key}: {name!r} is no {kind}, but a part of Python itself, or a program: name a {thing} such "
            f"as {example}"
        )
    try:
        return getattr(import_module(module), attribute)
    except (
        Exception,
        SystemExit,
    ) as error:  # a module may do anything; ".." is no module's name at all
        usual = isinstance(error, ImportError | AttributeError | TypeError | ValueError)
        reason = "" if usual else f" ({type(error).__name__}: {' '.join(str(error).split())})"
        raise ConfigError(
            f"{key}: there is no {thing} {name!r} that can be imported{reason}"
        ) from None
