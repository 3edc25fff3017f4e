"""A shard in public shares of the classes: what keeps budgets that go by class from bending teachers.

Where people with large budgets are more often of one class, upsampling gives that class more influence than
its share. A teacher can undo this for its own shard: it leaves out some records of the classes that are too
frequent, until they stand in public shares. Records are never repeated instead: models that judge
themselves by leaving records out (as :class:`~collegium.models.closed_form.tabular.TabularTeachers` do)
would meet the copies again, and believe in what they have learnt by heart.

**Privacy.** The choice of rows is a function of this shard's labels, of public shares and of a public
seed. A teacher still depends on its own shard and on public numbers only, so an owner still
changes the votes of the same teachers: sensitivities, prices and accounts stay what they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST_KEPT = 1 / 3
"""Share of its records that a shard keeps at least, up to rounding, also if a class is too rare even so."""


def rows_in_shares(y: NDArray[np.intp], shares: NDArray[np.float64], seed: int) -> NDArray[np.intp]:
    """Choose rows of a shard such that classes occur in given shares.

    ``y`` (n_shard,): class numbers.
    ``shares`` (n_classes,): public, positive. Those of classes that the shard lacks are left out.
    ``seed``: public: decides which records are left out.
    Returns (n_rows,): rows, in ascending order, none twice, of each class at least one; in the
        shares to the nearest record, unless the shard would fall below :data:`LEAST_KEPT` of its
        records: then classes that are too rare keep all of theirs.

    Examples
    --------
    >>> y = np.array([0, 0, 0, 0, 1, 1])
    >>> chosen = rows_in_shares(y, np.array([0.5, 0.5]), seed=0)
    >>> y[chosen].tolist()
    [0, 0, 1, 1]
    """
    present, counts = np.unique(y, return_counts=True)
    if present.size < 2:
        return np.arange(len(y), dtype=np.intp)
    wanted = shares[present] / shares[present].sum()
    kept = _kept(counts, wanted)
    generator = np.random.default_rng([seed, 5])
    chosen = [
        generator.permutation(np.flatnonzero(y == label))[:number]
        for label, number in zip(present, kept, strict=True)
    ]
    return np.sort(np.concatenate(chosen)).astype(np.intp)


def _kept(counts: NDArray[np.intp], wanted: NDArray[np.float64]) -> NDArray[np.intp]:
    """Number of records of each class that stay."""
    size = float((counts / wanted).min())
    least = LEAST_KEPT * counts.sum()
    if size < least:
        # Rare classes give all they have; Σ min(counts, size·wanted) grows with size, up to all records.
        low, high = size, float((counts / wanted).max())
        for _ in range(60):
            size = (low + high) / 2
            enough = np.minimum(counts, size * wanted).sum() >= least
            low, high = (low, size) if enough else (size, high)
        size = high
    return np.clip(np.rint(size * wanted), 1, counts).astype(np.intp)
