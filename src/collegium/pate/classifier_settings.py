"""Settings of a :class:`~collegium.PATEClassifier`, checked before anything is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from collegium.checks import check_truth, check_whole, is_whole, shown
from collegium.errors import InputError
from collegium.pate.settings import Account, Queries
from collegium.pate.teachers.engines import as_engine
from collegium.pate.voting.aggregators import Aggregator

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


def check_running(model: Any) -> None:
    """Refuse settings that every estimator has of how it runs: ``noise_seed``, ``n_jobs``, ``verbose``."""
    if model.noise_seed is not None:
        check_whole("noise_seed", model.noise_seed, least=0)
    n_jobs, verbose = model.n_jobs, model.verbose
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise InputError(
            "n_jobs must be a whole number of at least 1, -1 for all cores, or None, got "
            f"{shown(n_jobs)}"
        )
    if not isinstance(verbose, (bool, np.bool_)):
        check_whole("verbose", verbose, least=0)


def seed_of(random_state: Any) -> int:
    """Take a number as it is, and draw one from anything else."""
    try:
        generator = check_random_state(random_state)
    except (ValueError, TypeError):
        raise InputError(
            "random_state must be None, a whole number from 0 to 4294967295 or a "
            f"numpy.random.RandomState, got {shown(random_state)}"
        ) from None
    return int(random_state) if is_whole(random_state) else int(generator.randint(2**31 - 1))
