"""Settings as frozen values that scikit-learn can read, copy and search."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast


class Searchable:
    """Base of frozen dataclasses of settings: shows its fields as scikit-learn's parameters.

    An estimator that holds one can be searched by ``name__field``; it replaces the value, which is frozen.

    Examples
    --------
    >>> from collegium import GNMax
    >>> GNMax(sigma=40).get_params()["sigma"]
    40
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Show every field by name; ``deep`` is there for scikit-learn, and changes nothing."""
        own = fields(cast(Any, self))
        return {field.name: getattr(self, field.name) for field in own if field.init}
