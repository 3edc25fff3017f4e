"""Settings of a :class:`~collegium.PATEClassifier`, checked before anything is computed."""

from __future__ import annotations

from typing import Any

from collegium.checks import check_truth, check_whole, shown
from collegium.errors import InputError
from collegium.pate.settings import Account, Queries
from collegium.pate.voting.aggregators import Aggregator
from collegium.runs.estimator_base import check_running, seed_of
from collegium.workers.engines import as_engine

_KINDS = {
    "aggregator": (Aggregator, "GNMax(sigma=40)"),
    "account": (Account, 'Account("worst-case")'),
    "queries": (Queries, "Queries(max_labels=100)"),
}


def check_settings(model: Any, values: dict[str, Any]) -> int:
    """Refuse settings of scikit-learn's kind that cannot be used; a recipe checks the rest.

    ``model``: not changed.
    ``values``: its aggregator, account and queries, or their defaults.
    Returns: the seed that its ``random_state`` stands for.
    """
    if model.n_teachers is not None:
        check_whole("n_teachers", model.n_teachers)
    for name, (kind, example) in _KINDS.items():
        if not isinstance(values[name], kind):
            raise InputError(f"{name} must be one such as {example}, got {shown(values[name])}")
    check_truth("keep_sensitive", model.keep_sensitive)
    check_running(model)
    as_engine(model.engine, model.n_jobs)
    return seed_of(model.random_state)
