"""Warnings that point at the user's own code."""

from __future__ import annotations

import sys
import warnings

from collegium.errors import PrivacyWarning
from collegium.runs.observer import Observer


class Warner(Observer):
    """Warns of what the user should know, where the user's own code called."""

    def note(self, line: str) -> None:
        """Warn of it."""
        warnings.warn(line, PrivacyWarning, stacklevel=frames_to_user())


def frames_to_user() -> int:
    """Count the frames from the caller to the user's own code: a ``stacklevel`` for the caller's warning."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("collegium."):
        level, frame = level + 1, frame.f_back
    return level
