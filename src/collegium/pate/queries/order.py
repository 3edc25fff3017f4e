"""Which public records are asked about, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.pate.memory import Memory
from collegium.pate.queries.active_choice import ActiveChooser, require_beliefs
from collegium.pate.queries.doubtful_choice import DoubtfulChooser
from collegium.pate.queries.selection import (
    ACTIVE,
    COVERAGE,
    DOUBTFUL,
    RANDOM,
    comparable_records,
    query_order,
)
from collegium.pate.recipe import Recipe
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.choosing import QueryChooser
from collegium.personalisation.electorate import Electorate


def check_order(recipe: Recipe, X_public: Any) -> None:
    """Refuse, before anything is trained or spent, an order that cannot be made.

    ``X_public``: public records as the teachers see them.
    """
    kind = recipe.queries.query_order
    if kind != RANDOM:
        comparable_records(X_public, kind)
    if kind == ACTIVE:
        require_beliefs(recipe.student)


def order_of_asking(recipe: Recipe, memory: Memory, X_public: Any) -> NDArray[np.intp]:
    """Find the public order of a run, fixed before its first question.

    An order by coverage is remembered: nearly equal distances may be rounded differently by another
    machine, and a run that is gone on with must follow the order that it began with.

    ``memory``: what is kept of it.
    ``X_public``: public records as the teachers see them.
    Returns (n_public,): a permutation.
    """
    kind, n_public = recipe.queries.query_order, int(X_public.shape[0])
    if kind in (RANDOM, DOUBTFUL):
        return random_order(recipe.seed, n_public)
    known = memory.order(n_public)
    if known is not None:
        return known
    order = query_order(COVERAGE, comparable_records(X_public, kind), recipe.seed)
    memory.keep_order(order)
    return order


def random_order(seed: int, n_public: int) -> NDArray[np.intp]:
    """Shuffle public records, by public randomness."""
    return np.random.default_rng([seed, 3]).permutation(n_public)


def chooser_of(
    recipe: Recipe,
    X_seen: Any,
    X_public: Any,
    order: NDArray[np.intp],
    electorate: Electorate,
    aggregator: Aggregator,
    n_classes: int,
    tell: Callable[[str], None],
) -> NDArray[np.intp] | QueryChooser:
    """Return the order, or who chooses as outcomes come in, for the labelling job.

    ``X_seen``, ``X_public``: public records as the student sees them, and as the teachers do, for
        distances.
    ``order`` (n_public,): from :func:`order_of_asking`.
    ``tell``: told, in one line, what the user should know.
    """
    kind, queries = recipe.queries.query_order, recipe.queries
    if kind == DOUBTFUL:
        limits = (len(order), queries.max_queries, getattr(recipe.aggregator, "answers", None))
        return DoubtfulChooser(
            comparable_records(X_public, kind),
            order,
            min(limit for limit in limits if limit is not None),
            electorate,
            aggregator,
            n_classes,
            release=queries.release,
            targets=queries.targets,
            tell=tell,
        )
    if kind != ACTIVE:
        return order
    return ActiveChooser(
        recipe.student,
        X_seen,
        comparable_records(X_public, ACTIVE),
        order,
        electorate,
        aggregator,
        n_classes,
        release=recipe.queries.release,
        targets=recipe.queries.targets,
        tell=tell,
    )
