"""Settings of a :class:`~collegium.PATEClassifier`, checked before anything is computed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from collegium.accounting.renyi import validate_orders
from collegium.checks import check_truth, check_whole, is_whole, shown
from collegium.errors import InputError
from collegium.models.batched import check_teachers_at_once
from collegium.models.classifiers import check_classifier
from collegium.pate.settings import Account, Queries
from collegium.pate.students.active_choice import require_beliefs
from collegium.pate.students.selection import ACTIVE
from collegium.pate.teachers.engines import as_engine
from collegium.pate.voting.aggregators import Aggregator, default_aggregator
from collegium.pate.voting.choosing import check_choosing
from collegium.pate.voting.release import check_release

SAME = "same"


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
    account_of(model)
    queries = queries_of(model)
    check_whole("n_teachers", model.n_teachers)
    check_classifier(teacher, "teacher")
    check_teachers_at_once(teacher)
    check_classifier(student, "student", learns_by=("fit", "fit_released"))
    if model.aggregator is not None and not isinstance(model.aggregator, Aggregator):
        raise InputError(
            f"aggregator must be one such as GNMax(sigma=40), got {shown(model.aggregator)}"
        )
    aggregator = model.aggregator or default_aggregator(model.n_teachers)
    check_release(model.release, aggregator, model.guarantee)
    if queries.query_order == ACTIVE:
        check_choosing(aggregator, model.guarantee)
        require_beliefs(student)
    if model.noise_seed is not None:
        check_whole("noise_seed", model.noise_seed, least=0)
    check_truth("keep_sensitive", model.keep_sensitive)
    for name in ("preprocessing", "student_preprocessing"):
        _check_transformer(name, getattr(model, name), allow_same=name.startswith("student"))
    return aggregator, _check_machine(model)


def account_of(model: Any) -> Account:
    """Which guarantee the model's parameters ask for; checked also where an account has no use for them."""
    orders = Account.orders if model.orders is None else model.orders
    if not isinstance(orders, str):
        orders = tuple(validate_orders(orders).tolist())
    return Account(model.guarantee, model.conversion, orders, delta=model.delta)


def queries_of(model: Any) -> Queries:
    """What the model's parameters ask for."""
    return Queries(
        model.query_order, model.max_queries, model.max_labels, model.release, model.targets
    )


def _check_transformer(name: str, given: Any, allow_same: bool) -> None:
    same = [f"{SAME!r}"] if allow_same else []
    allowed = ", ".join([*same, "None"]) + " or a transformer such as TabularEncoder()"
    if given is None or (allow_same and isinstance(given, str) and given == SAME):
        return
    usable = all(callable(getattr(given, method, None)) for method in ("fit", "transform"))
    if inspect.isclass(given) or not usable:
        raise InputError(f"{name} must be {allowed}, got {shown(given)}")


def _check_machine(model: Any) -> np.random.RandomState:
    n_jobs, verbose = model.n_jobs, model.verbose
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise InputError(
            "n_jobs must be a whole number of at least 1, -1 for all cores, or None, got "
            f"{shown(n_jobs)}"
        )
    if not isinstance(verbose, (bool, np.bool_)):
        check_whole("verbose", verbose, least=0)
    as_engine(model.engine, n_jobs)
    try:
        chosen: np.random.RandomState = check_random_state(model.random_state)
        return chosen
    except (ValueError, TypeError):
        raise InputError(
            "random_state must be None, a whole number from 0 to 4294967295 or a "
            f"numpy.random.RandomState, got {shown(model.random_state)}"
        ) from None
