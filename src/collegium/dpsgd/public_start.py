"""Where DP-SGD starts: at a model of public records with known classes, which costs nobody anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.dpsgd.by_rule import largest_moment
from collegium.dpsgd.linear_sums import CONSTANT
from collegium.dpsgd.losses import Loss

Floats = NDArray[np.float64]
_STEPS = 300
_RIDGE = 0.01  # of one record: scores that are large beside the noise to come keep their order


def public_start(rows: Floats, targets: NDArray[Any], loss: Loss) -> Floats:
    """Fit a model to public records, without noise: accelerated gradient descent (Nesterov 1983).

    A hundredth of half the squared norm of the parameters, over the number of records, is added to the mean
    loss.

    ``rows`` (n, d): as :func:`~collegium.dpsgd.linear_model.as_rows` gives them.
    ``targets`` (n, ...): as the loss takes them.
    Returns (d + 1, n_outputs): parameters; the last row belongs to the constant.
    """
    units = np.hstack([rows, np.full((len(rows), 1), CONSTANT)])
    ridge = _RIDGE / len(units)
    # No loss bends more than 1 along a score.
    bend = largest_moment(units) + ridge
    now = np.zeros((units.shape[1], loss.n_outputs))
    ahead = now
    for step in range(_STEPS):
        slope = units.T @ loss.errors(units @ ahead, targets) / len(units) + ridge * ahead
        before, now = now, ahead - slope / bend
        ahead = now + step / (step + 3) * (now - before)
    return now
