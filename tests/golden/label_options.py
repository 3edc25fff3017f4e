"""Options of ``collegium label`` that are keys of its settings now, and that recorded commands still have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

#: Which key each stands for.
LABEL_KEYS = {
    "--personalisation": "personalisation.method",
    "--rule": "personalisation.rule",
    "--sigma-threshold": "aggregation.sigma_threshold",
    "--threshold": "aggregation.threshold",
    "--gamma": "aggregation.gamma",
    "--confidence": "aggregation.confidence",
    "--refit-every": "aggregation.refit_every",
    "--guarantee": "privacy.guarantee",
    "--conversion": "privacy.conversion",
    "--orders": "privacy.orders",
    "--price": "privacy.price",
    "--max-labels": "aggregation.max_labels",
    "--max-queries": "aggregation.max_queries",
    "--release": "aggregation.release",
    "--shuffle-seed": "study.seed",
}

_NUMBERS = ("--sigma-threshold", "--threshold", "--gamma", "--confidence")
_WHOLE = ("--refit-every", "--max-labels", "--max-queries", "--shuffle-seed")


def label_of_today(arguments: Sequence[str], folder: Path) -> list[str]:
    """Write into a file, in this folder, what such options say."""
    if not arguments or arguments[0] != "label":
        return list(arguments)
    rest, lines, words = [], [], iter(arguments)
    for word in words:
        if word in LABEL_KEYS:
            lines.append(f"{LABEL_KEYS[word]} = {_toml(word, next(words))}")
        else:
            rest.append(word)
    if not lines:
        return rest
    path = folder / "settings.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [*rest, "--settings", str(path)]


def _toml(option: str, text: str) -> str:
    if option in _NUMBERS:
        return str(float(text))
    return text if option in _WHOLE else json.dumps(text)
