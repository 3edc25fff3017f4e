"""JSON that this package wrote, read back in the shape in which it was written, or refused in one line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from collegium.checks import exact_float
from collegium.errors import CollegiumError, StudyMismatchError

_DEEPEST = 50  # lists and objects within one another: nothing of ours comes near


def read_json(
    path: Path,
    shape: Any,
    advice: str = "nothing was changed; restore it from a backup",
    error: type[CollegiumError] = StudyMismatchError,
) -> Any:
    """Read a JSON file, and check that it holds what was written into it.

    ``shape``: a type; a list of one shape, that of its items; or an object's keys with their shapes:
        more keys are allowed, fewer are not; or a tuple of shapes of which one must fit.
    ``advice``: the end of the message where it does not.
    ``error``: how it is refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "ended.json")
    ...     _ = path.write_text('{"asked": 3, "notes": ["few labels"]}')
    ...     read_json(path, {"asked": int, "notes": [str]})
    {'asked': 3, 'notes': ['few labels']}
    """
    try:
        content = path.read_bytes()
    except OSError as failure:
        raise error(f"{path} cannot be read ({failure.strerror}): {advice}") from None
    return parse_json(content, path, shape, advice, error)


def parse_json(
    content: bytes,
    path: Path,
    shape: Any,
    advice: str = "nothing was changed; restore it from a backup",
    error: type[CollegiumError] = StudyMismatchError,
) -> Any:
    """Read what was in a JSON file; see :func:`read_json`."""
    try:
        parsed = json.loads(content.decode(), parse_float=exact_float)
        whole = _fits(parsed, shape) and _is_shallow(parsed)
    except (ValueError, OverflowError, RecursionError):
        whole = False
    if not whole:
        raise error(f"{path} is damaged and cannot be read: {advice}")
    return parsed


def number_as_json(value: float) -> float | str:
    """Write a number that is not NaN, exactly: infinity, which JSON lacks, becomes ``"inf"``."""
    return "inf" if math.isinf(value) else value


def _fits(content: Any, shape: Any) -> bool:
    if isinstance(shape, tuple):
        return any(_fits(content, one) for one in shape)
    if isinstance(shape, dict):
        return isinstance(content, dict) and all(
            name in content and _fits(content[name], inner) for name, inner in shape.items()
        )
    if isinstance(shape, list):
        return isinstance(content, list) and all(_fits(item, shape[0]) for item in content)
    return isinstance(content, shape) and not (shape is int and isinstance(content, bool))


def _is_shallow(content: Any, depth: int = 0) -> bool:
    if not isinstance(content, (dict, list)):
        return True
    inside = content.values() if isinstance(content, dict) else content
    return depth < _DEEPEST and all(_is_shallow(item, depth + 1) for item in inside)
