"""Settings of a :class:`~collegium.PATEClassifier`, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from collegium.checks import check_whole, shown
from collegium.errors import InputError
from collegium.pate.settings import Account, Queries
from collegium.pate.voting.aggregators import Aggregator
from collegium.runs.estimator_base import check_running, seed_of
from collegium.runs.views import SAME
from collegium.workers.engines import Engine, as_engine

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
    check_running(model, elsewhere=(str, Engine))
    as_engine(*where_and_how_many(model.n_jobs))
    return seed_of(model.random_state)


def where_and_how_many(n_jobs: int | str | Engine | None) -> tuple[str | Engine | None, int | None]:
    """Tell an engine from a number of jobs, as :func:`~collegium.workers.engines.running` takes them."""
    return (n_jobs, None) if isinstance(n_jobs, (str, Engine)) else (None, n_jobs)


def views_of(given: Any) -> tuple[Any, Any]:
    """Tell what teachers see of records, and what the student sees."""
    if not isinstance(given, Mapping):
        return given, SAME
    _check_whose("preprocessing", given)
    return given.get("teacher"), given.get("student", SAME)


def shares_of(given: Any) -> tuple[Any, Any]:
    """Tell the teachers' shares of the classes from the student's; None where there are none."""
    if given is None:
        return None, None
    if not isinstance(given, Mapping):
        _refuse_nobodys("class_shares", given)
    _check_whose("class_shares", given)
    return given.get("teacher"), given.get("student")


def _check_whose(name: str, given: Mapping[Any, Any]) -> None:
    if not given or not {*given} <= {"teacher", "student"}:
        _refuse_nobodys(name, given)


def _refuse_nobodys(name: str, given: Any) -> NoReturn:
    raise InputError(
        f'{name} must say whose they are, as in {{"teacher": …, "student": …}} or with one of both, got '
        f"{shown(given)}"
    )
