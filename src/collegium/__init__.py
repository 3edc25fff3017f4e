"""Machine learning with individual privacy budgets.

A collegium of teachers, each trained on some of the sensitive records, votes on labels for public data;
the votes are noised, every person's loss is accounted individually, voting stops before anybody's budget
is exceeded, and only a student trained on the released labels leaves the house.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Budget": "budgets",
    "Budgets": "budgets",
    "Policy": "budgets",
    "PATEClassifier": "pate.classifier",
    "Account": "pate.settings",
    "Queries": "pate.settings",
    "PrivacyStatement": "accounting.statement",
    "Uniform": "personalisation",
    "Upsampling": "personalisation",
    "Vanishing": "personalisation",
    "Weighting": "personalisation",
    "LNMax": "pate.voting.aggregators",
    "GNMax": "pate.voting.aggregators",
    "ConfidentGNMax": "pate.voting.aggregators",
    "InteractiveGNMax": "pate.voting.aggregators",
    "PermuteAndFlip": "pate.voting.aggregators",
    "ExponentialMax": "pate.voting.aggregators",
    "VoteTable": "pate.voting.vote_table",
    "CollegiumError": "errors",
    "PrivacyWarning": "errors",
    "load_dataset": "data.datasets",
}

if TYPE_CHECKING:
    from collegium.accounting.statement import PrivacyStatement
    from collegium.budgets import Budget, Budgets, Policy
    from collegium.data.datasets import load_dataset
    from collegium.errors import CollegiumError, PrivacyWarning
    from collegium.pate.classifier import PATEClassifier
    from collegium.pate.settings import Account, Queries
    from collegium.pate.voting.aggregators import (
        ConfidentGNMax,
        ExponentialMax,
        GNMax,
        InteractiveGNMax,
        LNMax,
        PermuteAndFlip,
    )
    from collegium.pate.voting.vote_table import VoteTable
    from collegium.personalisation import Uniform, Upsampling, Vanishing, Weighting

__all__ = [
    "Account",
    "Budget",
    "Budgets",
    "CollegiumError",
    "ConfidentGNMax",
    "ExponentialMax",
    "GNMax",
    "InteractiveGNMax",
    "LNMax",
    "PATEClassifier",
    "PermuteAndFlip",
    "Policy",
    "PrivacyStatement",
    "PrivacyWarning",
    "Queries",
    "Uniform",
    "Upsampling",
    "Vanishing",
    "VoteTable",
    "Weighting",
    "__version__",
    "load_dataset",
]


def __getattr__(name: str) -> Any:
    """Import names when they are first used, so that the command line starts quickly."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"collegium.{_HOME[name]}"), name)
    raise AttributeError(f"module 'collegium' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what there is to import, though it is imported when first used: for tab completion."""
    return sorted({*__all__, *globals()} - {"Any", "TYPE_CHECKING"})
