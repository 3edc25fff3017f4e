"""A shard in public shares of the classes: what keeps budgets that go by class from bending teachers.

Where people with large budgets are more often of one class, upsampling (or weighting) gives that class
more influence than its share. A teacher can undo this for its own shard: it sees as many records of each
class, relative to the others, as public shares say.

**Privacy.** The choice of rows is a function of this shard's labels, of public shares and of a public
seed. A teacher still depends on its own shard and on public numbers only, so an owner still
changes the votes of the same teachers: sensitivities, prices and accounts stay what they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_COPIES = 3
"""A shard grows to at most so many times its records; beyond, the most frequent classes lose some."""


def rows_in_shares(y: NDArray[np.intp], shares: NDArray[np.float64], seed: int) -> NDArray[np.intp]:
    """Choose rows of a shard such that classes occur in given shares.

    Every record is kept, and those of under-represented classes are repeated, each about equally often;
    unless the shard would grow beyond :data:`MOST_COPIES` times its size.

    Parameters
    ----------
    y : ndarray of int, shape (n_shard,)
        Class numbers.
    shares : ndarray, shape (n_classes,)
        Public, positive. Those of classes that the shard lacks are left out.
    seed : int
        Public: decides which records get one copy more.

    Returns
    -------
    ndarray of int, shape (n_rows,)
        Rows, in ascending order, with repetitions.

    Examples
    --------
    >>> y = np.array([0, 0, 0, 0, 1, 1])
    >>> rows_in_shares(y, np.array([0.5, 0.5]), seed=0).tolist()
    [0, 1, 2, 3, 4, 4, 5, 5]
    """
    present, counts = np.unique(y, return_counts=True)
    if present.size < 2:
        return np.arange(len(y), dtype=np.intp)
    wanted = shares[present] / shares[present].sum()
    size = min(float((counts / wanted).max()), float(MOST_COPIES * len(y)))
    generator = np.random.default_rng([seed, 5])
    chosen: list[NDArray[np.intp]] = []
    for label, share, count in zip(present, wanted, counts, strict=True):
        rows = np.flatnonzero(y == label)
        copies, more = divmod(max(1, round(size * share)), int(count))
        extra = generator.permutation(rows)[:more]
        chosen += [np.repeat(rows, copies), extra]
    return np.sort(np.concatenate(chosen)).astype(np.intp)
