"""How records are written and compared: arrays, and numbers that differ between processors."""

from __future__ import annotations

import difflib
import hashlib
import math
import re
from typing import Any

import numpy as np

_FIRST = 6
_CLOSE = 5e-4  # of single precision, after 60 steps: 8e-5 apart on two processors that were tried
DIGEST = "sha256"


def array_of(values: Any) -> dict[str, Any]:
    """Write an array: its shape, its first values, how large they all are, and a digest of every bit."""
    array = np.ascontiguousarray(np.asarray(values))
    if array.dtype.kind == "f":
        array = array.astype("<f8")
        array = np.where(np.isnan(array), np.nan, array)  # one NaN
        array = array + 0.0  # one zero
    else:
        array = array.astype("<i8")
    return {
        "shape": list(array.shape),
        "first": array.ravel()[:_FIRST].tolist(),
        "norm": float(math.sqrt(math.fsum(float(one) ** 2 for one in array.ravel() if one == one))),
        DIGEST: hashlib.sha256(array.tobytes()).hexdigest()[:24],
    }


def differences(before: Any, now: Any, path: str = "", closely: bool = True) -> list[str]:
    """Name every field that differs, with both values.

    ``closely``: to the last bit; or as another processor or another version of NumPy may give it.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            line
            for key in dict.fromkeys([*before, *now])
            if closely or key != DIGEST
            for line in differences(
                before.get(key, "(nothing)"), now.get(key, "(nothing)"), f"{path}.{key}".lstrip("."), closely
            )
        ]  # fmt: skip
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            line
            for number, (one, other) in enumerate(zip(before, now, strict=True))
            for line in differences(one, other, f"{path}[{number}]", closely)
        ]
    return [] if _same(before, now, closely) else [f"{path}: was {before!r}, is {now!r}"]


def _same(before: Any, now: Any, closely: bool) -> bool:
    if isinstance(before, float) and isinstance(now, float):
        if math.isnan(before) or math.isnan(now):
            return math.isnan(before) and math.isnan(now)
        if not closely:
            return math.isclose(before, now, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return type(before) is type(now) and bool(before == now)


def words_differ(before: str, now: str, closely: bool = True) -> list[str]:
    """Show the lines that differ, as a patch; ``closely``: as for numbers."""
    if not closely:
        before, now = _roughly(before), _roughly(now)
    lines = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "was", "is", n=0, lineterm=""
    )
    return list(lines)


def _roughly(text: str) -> str:
    """Round every number, and forget how wide columns are."""
    text = re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.2g}", text)
    return "\n".join(re.sub(r"[ ─━]+", " ", line) for line in text.splitlines())
