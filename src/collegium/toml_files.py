"""TOML files: read in whole, and values as such a file writes them."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collegium.checks import exact_float
from collegium.errors import ConfigError

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_toml(file: Path, command: str = "init") -> dict[str, Any]:
    """Read a TOML file; only what it says is not checked.

    ``command``: which command writes such a file.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"there is no file {file}: `collegium {command} {file}` writes one to fill in"
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    try:
        return tomllib.loads(text, parse_float=exact_float)
    except (
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:  # numbers too long, or lists too deep, to be read
        raise ConfigError(f"{file} is not valid TOML: {' '.join(str(error).split())}") from None


def toml_text(value: Any) -> str:
    """Write text, a number, true or false, a list or a table as TOML, in one line.

    Examples
    --------
    >>> print(toml_text({"high": 1.0, "gift to all": math.inf}))
    { high = 1.0, "gift to all" = inf }
    >>> print(toml_text(['"no"', 2, True]))
    ["\\"no\\"", 2, true]
    """
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{toml_key(name)} = {toml_text(inner)}" for name, inner in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def toml_key(name: Any) -> str:
    """Write a name before ``=`` or between ``[`` and ``]``, in quotes where it needs them."""
    text = str(name)
    return text if _BARE.fullmatch(text) else toml_text(text)
