"""Values as a TOML file writes them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


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
        pairs = ", ".join(f"{_key(name)} = {toml_text(inner)}" for name, inner in value.items())
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


def _key(name: Any) -> str:
    text = str(name)
    return text if _BARE.fullmatch(text) else toml_text(text)
