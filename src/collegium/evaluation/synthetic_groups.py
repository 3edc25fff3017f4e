"""Whose distribution is a synthetic table's? Shares, scores and distances within groups of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collegium.evaluation.synthetic_learning import (
    Answers,
    Estimate,
    area,
    calibration_gap,
    explained,
    share_estimate,
)
from collegium.evaluation.synthetic_marginals import Distance, Measured, distances
from collegium.evaluation.synthetic_quality import SYNTHETIC, GroupQuality, GroupTable

Codes = NDArray[np.int64]

MOST_GROUPS = 20
LEAST_OF_CLASS = 10
"""Held-out records of each class without which a group has no score."""
_LEAST_ROWS = 40


@dataclass(frozen=True, eq=False)
class Groups:
    """Who is of which group.

    ``names``; ``held_out`` (n,): the group of each held-out record. ``column``: its place among the columns,
    None where only held-out records say who is of which (the level that they chose, for instance).
    """

    names: tuple[str, ...]
    held_out: Codes
    column: int | None

    def rows_of(self, group: int, codes: Codes) -> NDArray[np.bool_]:
        """Rows of a table that are of a group: all, where tables do not say."""
        if self.column is None:
            return np.ones(len(codes), dtype=bool)
        return np.asarray(codes[:, self.column] == group)


@dataclass(frozen=True, eq=False)
class Truth:
    """What held-out records are, for scores.

    ``known``: which of them have a target. ``values``: of these, class numbers or numbers.
    ``n_classes``: 0 of numbers. ``positive``: the class whose probability is compared; None: no such one.
    """

    known: NDArray[np.bool_]
    values: NDArray[np.float64]
    n_classes: int
    positive: int | None


def measure_groups(
    groups: Groups,
    measured: Measured,
    tables: Mapping[str, Codes],
    held_out: Codes,
    answers: Mapping[str, Sequence[Answers]],
    truth: Truth | None,
    rng: np.random.Generator,
) -> tuple[GroupQuality, ...]:
    """Measure every group that has held-out records; of many, the largest ones.

    ``answers``: of each table, what each model said of the held-out records whose target is known.
    """
    sizes = np.bincount(groups.held_out, minlength=len(groups.names))
    chosen = np.sort(np.argsort(-sizes, kind="stable")[:MOST_GROUPS])
    within = _without(measured, groups.column)
    found = []
    for group in chosen.tolist():
        if not sizes[group]:
            continue
        own = groups.held_out == group
        told = []
        for name, codes in tables.items():
            rows = codes[groups.rows_of(group, codes)]
            scores, gaps = _scores(answers.get(name, ()), truth, own)
            told.append(GroupTable(name, scores, gaps, _apart(within, rows, held_out[own], rng)))
        found.append(
            GroupQuality(
                name=groups.names[group],
                n=int(sizes[group]),
                share=share_estimate(int(sizes[group]), len(held_out)),
                synthetic_share=None
                if groups.column is None
                else float(groups.rows_of(group, tables[SYNTHETIC]).mean()),
                tables=tuple(told),
            )
        )
    return tuple(found)


def _without(measured: Measured, column: int | None) -> Measured:
    """Leave out marginals of the column that makes the groups: it says nothing within one."""
    kept = tuple(
        tuple(clique for clique in order if column not in clique) for order in measured.cliques[:2]
    )
    kept = tuple(order for order in kept if order)
    return Measured(measured.names, measured.sizes, kept, tuple(map(len, kept)))


def _apart(
    within: Measured, rows: Codes, held_out: Codes, rng: np.random.Generator
) -> tuple[Distance, ...]:
    if min(len(rows), len(held_out)) < _LEAST_ROWS or not within.cliques:
        return ()
    return distances(within, rows, held_out, rng)


def _scores(
    answers: Sequence[Answers], truth: Truth | None, own: NDArray[np.bool_]
) -> tuple[tuple[Estimate | None, ...], tuple[float | None, ...]]:
    if truth is None:
        return (), ()
    chosen = own[truth.known]
    values = truth.values[chosen]
    scores: list[Estimate | None] = []
    gaps: list[float | None] = []
    for one in answers:
        beliefs = one.beliefs[chosen]
        scores.append(_score(values, beliefs, truth.n_classes))
        known = truth.positive is not None and len(values) >= LEAST_OF_CLASS
        gaps.append(
            calibration_gap(values == truth.positive, beliefs[:, truth.positive]) if known else None
        )
    return tuple(scores), tuple(gaps)


def _score(
    values: NDArray[np.float64], beliefs: NDArray[np.float64], n_classes: int
) -> Estimate | None:
    if n_classes:
        labels = values.astype(np.int64)
        counts = np.bincount(labels, minlength=n_classes)
        if (counts[counts > 0] < LEAST_OF_CLASS).any():
            return None
        found = area(labels, beliefs)
    else:
        found = explained(values, beliefs[:, 0]) if len(values) >= LEAST_OF_CLASS else None
    return None if found is None else found[0]
