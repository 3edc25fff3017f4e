"""Settings of a :class:`~collegium.PATEClassifier`, checked before anything is computed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from collegium.accounting.renyi import CONVERSIONS, validate_orders
from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.models.batched import check_teachers_at_once
from collegium.models.classifiers import check_classifier
from collegium.pate.students.active_choice import require_beliefs
from collegium.pate.students.selection import ACTIVE, QUERY_ORDERS
from collegium.pate.students.targets import METHODS
from collegium.pate.teachers.engines import as_engine
from collegium.pate.voting.aggregators import Aggregator, ConfidentGNMax
from collegium.pate.voting.choosing import check_choosing
from collegium.pate.voting.pricing import GUARANTEES
from collegium.pate.voting.release import check_release

SAME = "same"
_COUNTS = {"n_teachers": False, "max_queries": True, "max_labels": True}  # may it be None?


def check_settings(
    model: Any, teacher: Any, student: Any
) -> tuple[Aggregator, np.random.RandomState]:
    """Refuse settings that cannot be used, whatever the records are.

    Parameters
    ----------
    model : PATEClassifier
        Not changed.
    teacher, student : object
        What it uses: the given ones, or the defaults.

    Returns
    -------
    aggregator : Aggregator
        The given one, or the default.
    random_state : RandomState
        Of the setting; nothing has been drawn from it.

    Raises
    ------
    InputError
        In one line, for the first setting that cannot be used.
    """
    if model.guarantee not in GUARANTEES:
        raise InputError(
            f"unknown guarantee {model.guarantee!r}: allowed are {', '.join(GUARANTEES)}"
        )
    for name, optional in _COUNTS.items():
        value = getattr(model, name)
        if not (optional and value is None) and (not _is_whole(value) or value < 1):
            raise InputError(f"{name} must be a whole number of at least 1, got {_shown(value)}")
    check_classifier(teacher, "teacher")
    check_teachers_at_once(teacher)
    check_classifier(student, "student", learns_by=("fit", "fit_released"))
    if model.aggregator is not None and not isinstance(model.aggregator, Aggregator):
        raise InputError(
            f"aggregator must be one such as GNMax(sigma=40), got {_shown(model.aggregator)}"
        )
    aggregator = (model.aggregator or ConfidentGNMax()).resolved(model.n_teachers)
    check_release(model.release, aggregator, model.guarantee)
    if model.targets not in METHODS:
        raise InputError(
            f"targets must be one of {', '.join(METHODS)}, got {_shown(model.targets)}"
        )
    _check_query_order(model, aggregator, student)
    _check_account(model)
    for name in ("preprocessing", "student_preprocessing"):
        _check_transformer(name, getattr(model, name), allow_same=name.startswith("student"))
    return aggregator, _check_machine(model)


def _check_query_order(model: Any, aggregator: Aggregator, student: Any) -> None:
    order = model.query_order
    if order not in QUERY_ORDERS:
        raise InputError(
            f"query_order must be one of {', '.join(QUERY_ORDERS)}, got {_shown(order)}"
        )
    if order == ACTIVE:
        check_choosing(aggregator, model.guarantee)
        require_beliefs(student)


def _check_account(model: Any) -> None:
    """Check what budgets are measured with, also where the worst-case account has no use for it."""
    Budget(1.0, model.delta)
    if model.orders is not None:
        validate_orders(model.orders)
    if model.conversion not in CONVERSIONS:
        raise InputError(
            f"conversion must be one of {', '.join(CONVERSIONS)}, got {_shown(model.conversion)}"
        )
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


def _check_transformer(name: str, given: Any, allow_same: bool) -> None:
    same = [f"{SAME!r}"] if allow_same else []
    allowed = ", ".join([*same, "None"]) + " or a transformer such as TabularEncoder()"
    if given is None or (allow_same and isinstance(given, str) and given == SAME):
        return
    usable = all(callable(getattr(given, method, None)) for method in ("fit", "transform"))
    if inspect.isclass(given) or not usable:
        raise InputError(f"{name} must be {allowed}, got {_shown(given)}")


def _check_machine(model: Any) -> np.random.RandomState:
    n_jobs, verbose = model.n_jobs, model.verbose
    if n_jobs is not None and (not _is_whole(n_jobs) or n_jobs == 0):
        raise InputError(
            "n_jobs must be a whole number of at least 1, -1 for all cores, or None, got "
            f"{_shown(n_jobs)}"
        )
    if not isinstance(verbose, (bool, np.bool_)) and (not _is_whole(verbose) or verbose < 0):
        raise InputError(f"verbose must be a whole number of at least 0, got {_shown(verbose)}")
    as_engine(model.engine, n_jobs)
    try:
        chosen: np.random.RandomState = check_random_state(model.random_state)
        return chosen
    except (ValueError, TypeError):
        raise InputError(
            "random_state must be None, a whole number from 0 to 4294967295 or a "
            f"numpy.random.RandomState, got {_shown(model.random_state)}"
        ) from None


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Write a setting in one line."""
    if inspect.isclass(value):
        return f"the class {value.__name__}: write {value.__name__}()"
    return " ".join(repr(value).split())[:200]
