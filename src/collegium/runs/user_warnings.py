"""Warnings that point at the user's own code."""

from __future__ import annotations

import warnings

from collegium.errors import PrivacyWarning, frames_to_user
from collegium.runs.observer import Observer


class Warner(Observer):
    """Warns of what the user should know, where the user's own code called."""

    def note(self, line: str) -> None:
        """Warn of it."""
        warnings.warn(line, PrivacyWarning, stacklevel=frames_to_user())
