"""Which public records a study asks about, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.errors import StudyMismatchError
from collegium.pate.students.active_choice import ActiveChooser, require_beliefs
from collegium.pate.students.selection import (
    ACTIVE,
    COVERAGE,
    RANDOM,
    comparable_records,
    query_order,
)
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.choosing import QueryChooser
from collegium.personalisation.electorate import Electorate
from collegium.study.config import StudyConfig
from collegium.study.folder import StudyFolder


def check_asking(config: StudyConfig, student: Any, X_public: Any) -> None:
    """Refuse, before anything is trained or spent, an order that cannot be made.

    Parameters
    ----------
    config : StudyConfig
        The study's.
    student : estimator
        Not fitted.
    X_public : array-like
        Public records as the teachers see them.

    Raises
    ------
    InputError
        If records cannot be compared, or the student cannot say how sure it is.
    """
    kind = config["aggregation.query_order"]
    if kind != RANDOM:
        comparable_records(X_public, kind)
    if kind == ACTIVE:
        require_beliefs(student)


def order_of_asking(config: StudyConfig, folder: StudyFolder, X_public: Any) -> NDArray[np.intp]:
    """Find the public order of a study, fixed before its first question.

    An order by coverage is kept in the vault: nearly equal distances may be rounded differently by another
    machine, and a study that is gone on with must follow the order that it began with.

    Parameters
    ----------
    config : StudyConfig
        The study's.
    folder : StudyFolder
        Open.
    X_public : array-like
        Public records as the teachers see them.

    Returns
    -------
    ndarray of int, shape (n_public,)
        A permutation.

    Raises
    ------
    StudyMismatchError
        If the kept order is damaged.
    """
    kind, seed, n_public = config["aggregation.query_order"], config["study.seed"], len(X_public)
    if kind == RANDOM:
        return np.random.default_rng([seed, 3]).permutation(n_public)
    path = folder.vault / "order.npy"
    if not path.exists():
        order = query_order(COVERAGE, comparable_records(X_public, kind), seed)
        folder.write_array(path, order)
        return order
    try:
        kept = np.load(path, allow_pickle=False)
        whole = np.array_equal(np.sort(kept), np.arange(n_public))
    except (ValueError, OSError, EOFError):
        whole = False
    if not whole:
        raise StudyMismatchError(
            f"{path} holds no order of the {n_public} public records: it is damaged, and nothing was asked; "
            "restore it from a backup"
        )
    return np.asarray(kept, dtype=np.intp)


def chooser_of(
    config: StudyConfig,
    student: Any,
    X_seen: Any,
    X_public: Any,
    order: NDArray[np.intp],
    electorate: Electorate,
    aggregator: Aggregator,
    n_classes: int,
    tell: Callable[[str], None],
) -> NDArray[np.intp] | QueryChooser:
    """Return the order, or who chooses as outcomes come in, for the labelling job.

    Parameters
    ----------
    config : StudyConfig
        The study's.
    student : estimator
        Not fitted.
    X_seen, X_public : array-like
        Public records as the student sees them, and as the teachers do, for distances.
    order : ndarray of int, shape (n_public,)
        From :func:`order_of_asking`.
    electorate, aggregator, n_classes
        The job's.
    tell : callable
        Told, in one line, what the user should know.
    """
    if config["aggregation.query_order"] != ACTIVE:
        return order
    return ActiveChooser(
        student,
        X_seen,
        comparable_records(X_public, ACTIVE),
        order,
        electorate,
        aggregator,
        n_classes,
        release=config["aggregation.release"],
        targets=config["student.targets"] or "mixture",
        tell=tell,
    )
