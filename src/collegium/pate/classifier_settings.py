"""Settings of a :class:`~collegium.PATEClassifier`, checked before anything is computed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

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

    Parameters
    ----------
    model : PATEClassifier
        Not changed.
    values : dict
        Its aggregator, account and queries, or their defaults.

    Returns
    -------
    int
        The seed that its ``random_state`` stands for.

    Raises
    ------
    InputError
        In one line, for the first setting that cannot be used.
    """
    if not _is_whole(model.n_teachers) or model.n_teachers < 1:
        raise InputError(
            f"n_teachers must be a whole number of at least 1, got {_shown(model.n_teachers)}"
        )
    for name, (kind, example) in _KINDS.items():
        if not isinstance(values[name], kind):
            raise InputError(f"{name} must be one such as {example}, got {_shown(values[name])}")
    seed = model.noise_seed
    if seed is not None and (not _is_whole(seed) or seed < 0):
        raise InputError(
            "noise_seed must be a whole number of at least 0, or None for noise that is private, got "
            f"{_shown(seed)}"
        )
    if not isinstance(model.keep_sensitive, (bool, np.bool_)):
        raise InputError(
            f"keep_sensitive must be True or False, got {_shown(model.keep_sensitive)}"
        )
    n_jobs, verbose = model.n_jobs, model.verbose
    if n_jobs is not None and (not _is_whole(n_jobs) or n_jobs == 0):
        raise InputError(
            "n_jobs must be a whole number of at least 1, -1 for all cores, or None, got "
            f"{_shown(n_jobs)}"
        )
    if not isinstance(verbose, (bool, np.bool_)) and (not _is_whole(verbose) or verbose < 0):
        raise InputError(f"verbose must be a whole number of at least 0, got {_shown(verbose)}")
    as_engine(model.engine, n_jobs)
    return _seed_of(model.random_state)


def _seed_of(random_state: Any) -> int:
    """Take a number as it is, and draw one from anything else."""
    try:
        generator = check_random_state(random_state)
    except (ValueError, TypeError):
        raise InputError(
            "random_state must be None, a whole number from 0 to 4294967295 or a "
            f"numpy.random.RandomState, got {_shown(random_state)}"
        ) from None
    return int(random_state) if _is_whole(random_state) else int(generator.randint(2**31 - 1))


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Write a setting in one line."""
    if inspect.isclass(value):
        return f"the class {value.__name__}: write {value.__name__}()"
    return " ".join(repr(value).split())[:200]
