"""Canaries: invented owners with wrong records, and guesses whether they were in."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from collegium.attacks.bounds import Guesses
from collegium.budgets import Budgets
from collegium.data.tables import take_rows
from collegium.errors import InputError, PrivacyWarning
from collegium.pate.voting.affordable import answers_affordable
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.pricing import worst_case_pricing
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan
from collegium.runs.records import Records

Floats = NDArray[np.float64]
_OUTSIDE = 3.0  # how far outside canaries lie, in units of each feature's range


@dataclass(frozen=True, eq=False)
class Canaries:
    """Invented owners, one for each query.

    ``records`` (n_canaries, n_features): features of each canary's record, and of the query about
        it.
    ``labels`` (n_canaries,): the wrong class that its records teach.
    ``groups`` (n_canaries,): position of its group among the study's.
    ``included`` (n_canaries,): the coins. **Known to the auditor only after guessing.**
    """

    records: Any
    labels: NDArray[np.intp]
    groups: NDArray[np.intp]
    included: NDArray[np.bool_]

    @property
    def number(self) -> int:
        """How many there are, included or not."""
        return len(self.labels)


def affordable_canaries(
    aggregator: Aggregator, electorate: Electorate, most: int, price: str
) -> int:
    """Count the queries that all budgets pay for if each is answered."""
    return answers_affordable(worst_case_pricing(price, aggregator, electorate), electorate, most)


def draw_canaries(
    data: Records, plan: Plan, number: int, generator: np.random.Generator
) -> Canaries:
    """Choose public records, wrong labels and coins."""
    codes = [data.budgets.group_names.index(name) for name in plan.groups]
    available, n_classes = data.X_public.shape[0], len(data.classes)
    if number > available:
        raise InputError(
            f"{number} canaries need as many public records, there are {available}: ask for fewer canaries"
        )
    if number < len(codes):
        raise InputError(f"{len(codes)} groups need at least as many canaries, got {number}")
    rows = generator.choice(available, number, replace=False)
    right = np.zeros(number, dtype=np.intp)
    if data.y_public is not None:
        position = {label: code for code, label in enumerate(data.classes.tolist())}
        right = np.array([position.get(y, 0) for y in data.y_public[rows].tolist()], dtype=np.intp)
    labels = (right + generator.integers(1, n_classes, number)) % n_classes
    groups = np.asarray(codes, dtype=np.intp)[np.arange(number) % len(codes)]
    records = _estranged(take_rows(data.X_public, rows), data.X_public, generator)
    return Canaries(records, labels, groups, generator.integers(0, 2, number) == 1)


def _estranged(records: Any, public: Any, generator: np.random.Generator) -> Any:
    """Move records of real numbers out of the distribution, each into a corner of its own.

    Only its own teachers then learn anything about a canary's query, and other canaries' teachers
    nothing. Tables and whole numbers, whose values mean something, stay as they are.
    """
    if not isinstance(records, np.ndarray) or records.dtype.kind != "f":
        return records
    extent = _OUTSIDE * (np.nanmax(public, axis=0) - np.nanmin(public, axis=0))
    corner = generator.integers(0, 2, records.shape) * 2 - 1
    return np.asarray(records + corner * extent, dtype=records.dtype)


def insert_canaries(
    data: Records, canaries: Canaries, included: NDArray[np.bool_], copies: int
) -> Records:
    """Add some canaries' records and owners to the private ones; change nothing else.

    ``included`` (n_canaries,): which of them.
    ``copies``: records of each.
    """
    chosen = np.repeat(np.flatnonzero(included), copies)
    extra = take_rows(canaries.records, chosen)
    budgets = data.budgets
    owners = np.empty(len(budgets) + len(chosen), dtype=object)
    owners[: len(budgets)] = budgets.owners[budgets.record_owner].tolist()
    owners[len(budgets) :] = [f"audit canary {number}" for number in chosen.tolist()]
    groups = np.concatenate([budgets.owner_group[budgets.record_owner], canaries.groups[chosen]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # said already about the study itself
        enlarged = Budgets(budgets.groups, groups, owners)
    return replace(
        data,
        X=_stacked(data.X, extra),
        codes=np.concatenate([data.codes, canaries.labels[chosen]]),
        budgets=enlarged,
    )


def _stacked(first: Any, second: Any) -> Any:
    if isinstance(first, pd.DataFrame):
        return pd.concat([first, second], ignore_index=True)
    if sparse.issparse(first):
        return sparse.vstack([first, second]).tocsr()
    return np.concatenate([first, np.asarray(second)])


def contrary_labels(
    canaries: Canaries, teachers: NDArray[np.int32], votes: NDArray[np.int32], n_classes: int
) -> NDArray[np.intp]:
    """Change labels for which a canary's own teachers would vote anyway: nothing could be learnt.

    The coins are not looked at. Parameters are those of :func:`expected_changes`.
    """
    labels = canaries.labels.copy()
    for canary, seen_by in enumerate(teachers):
        voted = votes[canary, seen_by[seen_by >= 0]].tolist()
        choices = (labels[canary] + np.arange(n_classes)) % n_classes
        labels[canary] = min(choices.tolist(), key=voted.count)
    return labels


def expected_changes(
    canaries: Canaries,
    teachers: NDArray[np.int32],
    votes: NDArray[np.int32],
    weights: Floats,
    n_classes: int,
) -> Floats:
    """Predict how each canary would move the counts of its own query, from what the auditor knows.

    ``teachers`` (n_canaries, most duplicates): teachers that would see each canary, padded with -1:
        the partition is public.
    ``votes`` (n_canaries, n_teachers): votes on each canary's query of teachers that have seen no
        canary.
    ``weights`` (n_canaries, n_teachers): weights of the teachers at each canary's query; 0 where
        one does not take part.
    Returns (n_canaries, n_classes): zero where the canary's presence would change nothing.
    """
    changes = np.zeros((canaries.number, n_classes))
    for canary, seen_by in enumerate(teachers):
        for teacher in seen_by[seen_by >= 0]:
            before, weight = votes[canary, teacher], weights[canary, teacher]
            changes[canary, canaries.labels[canary]] += weight
            if before >= 0:
                changes[canary, before] -= weight
    return changes


def membership_scores(changes: Floats, observed: Floats) -> Floats:
    """Match what was observed with what each canary would change; NaN where nothing can be learnt.

    ``changes`` (n_canaries, n_classes): from :func:`expected_changes`.
    ``observed`` (n_canaries, n_classes): noisy counts less the counts without canaries, or the
        released label as an indicator; NaN where the query got no answer.
    Returns (n_canaries,): where counts are seen: 1 for a member and 0 for a stranger, give or take
        noise.
    """
    strength = (changes**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        matched = (changes * observed).sum(axis=1) / strength
    return np.where(strength > 0, matched, np.nan)


def guess(
    scores: Floats, canaries: Canaries, members: NDArray[np.bool_], share: float, middle: float
) -> Guesses:
    """Guess about the surest canaries of a group: "in" above the middle, "out" below it.

    How many guesses are made is fixed beforehand, as the theorem demands: where fewer canaries have a
    score, the rest is guessed to be out, which is right half of the time.

    ``scores`` (n_canaries,): NaN: nothing was learnt.
    ``members`` (n_canaries,): the group's canaries.
    ``share``: share of them about which a guess is made.
    ``middle``: score that says neither in nor out.
    """
    own = np.flatnonzero(members)
    lean = np.nan_to_num(scores[own] - middle, nan=0.0)
    surest = np.argsort(-np.abs(lean), kind="stable")[: max(1, int(len(own) * share))]
    right = (lean[surest] > 0) == canaries.included[own[surest]]
    return Guesses(len(own), len(surest), int(right.sum()))
