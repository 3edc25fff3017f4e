"""How right teachers and their majority are, by class: **sensitive**, for the vault alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from collegium.errors import InputError
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation.plan import Plan

_ROWS = 2048  # of a table of votes, looked at together


def sensitive_teacher_effects(
    votes: VoteTable, classes: ArrayLike, truth: ArrayLike, plan: Plan
) -> pd.DataFrame:
    """Tell how right teachers and their majority are, by class. **Sensitive**: made of raw votes.

    ``votes``: of all teachers on the public records.
    ``classes`` (n_classes,): the public class list.
    ``truth`` (n_public,): true classes of the public records.
    Returns: indexed by class: ``public_records``, ``teachers`` (mean over all teachers and records
        of the class), ``majority`` (of the weighted votes, without noise); and ``teachers of
        GROUP`` for each group that has teachers of its own. Shares between 0 and 1.
    """
    if not votes.has_teachers:
        raise InputError(
            "only vote counts are known: who voted for what is needed, one column per teacher"
        )
    known = np.asarray(truth)
    if known.shape != (votes.n_queries,):
        raise InputError(
            f"{votes.n_queries} public records were voted on, but {len(known)} true classes were given"
        )
    names = np.asarray(classes).tolist()
    numbers = {name: number for number, name in enumerate(names)}
    codes = np.array([numbers.get(value, -1) for value in known.tolist()], dtype=np.intp)
    weights = plan.electorate(0).weights
    records = np.zeros(len(names), dtype=np.int64)
    right = np.zeros((len(names), votes.n_teachers))
    majority = np.zeros(len(names))
    for first in range(0, votes.n_queries, _ROWS):
        rows = np.arange(first, min(first + _ROWS, votes.n_queries))
        true = codes[rows]
        best = votes.counts(rows, weights).argmax(axis=1) == true
        agree = votes.sensitive_table[rows] == true[:, None]
        for number in np.unique(true[true >= 0]).tolist():
            chosen = true == number
            records[number] += chosen.sum()
            right[number] += agree[chosen].sum(axis=0)
            majority[number] += best[chosen].sum()
    with np.errstate(invalid="ignore"):
        shown = {"teachers": right.mean(axis=1) / records, "majority": majority / records}
        if not plan.mixed:
            for group, (start, end) in plan.teacher_ranges().items():
                shown[f"teachers of {group}"] = right[:, start:end].mean(axis=1) / records
    index = pd.Index([str(name) for name in names], name="name")
    return pd.DataFrame({"public_records": records, **shown}, index=index)
