"""How direct training sees tables of which some public records have labels: also by way of trees.

Trees that learnt from public labels see how columns act together, which a linear model cannot. What they say
of a record is one more column (:class:`~collegium.models.preprocessing.TaughtTable`), and it is the private
records that tell how much it is worth. Nobody pays for it: trees are made of public things alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from collegium.data.record_kinds import IMAGES, kind_of_records
from collegium.dpsgd.linear_sums import CONSTANT
from collegium.dpsgd.settings import COMBINE, DPSGDSettings
from collegium.models.features.principal import PublicComponents
from collegium.models.preprocessing import BinnedTable, CrossedTable, PrincipalTable, TaughtTable
from collegium.models.preprocessing.taught_table import can_teach
from collegium.models.preprocessing.wide_table import is_wide
from collegium.models.trial import one_line_about
from collegium.runs.views import View, fitted_view

_OF_COLUMNS = (BinnedTable, CrossedTable, PrincipalTable, PublicComponents)
"""What shows tables, and rows of numbers; who chose something else wants nothing else."""
_SHARE_OF_TWO, _SHARE = 0.1, 0.25
"""Of a record's description, for what trees say: steps along gradients, and more classes, need more of it."""


def public_view(
    preprocessing: Any,
    X_public: Any,
    targets: NDArray[np.float64] | None,
    n_classes: int | None,
    settings: DPSGDSettings,
    seed: int,
) -> tuple[View, Any | None]:
    """Fit a preprocessing to public records, with trees where labels and columns allow it.

    ``targets`` (n_public,): class numbers, or numbers; NaN where unknown.
    ``n_classes``: None: numbers.
    ``settings``: say what public labels are for.
    Returns: the view; and the public records as it shows them to whoever learns from their labels, if that is
        otherwise than it shows others.
    """
    name = "preprocessing"
    last = preprocessing[-1] if isinstance(preprocessing, Pipeline) else preprocessing
    if (
        targets is None
        or settings.public_labels != COMBINE
        or not isinstance(last, _OF_COLUMNS)
        or is_wide(X_public.shape[1])
        or kind_of_records(X_public) == IMAGES
        or not can_teach(targets, n_classes)
    ):
        return fitted_view(preprocessing, X_public, name), None
    share = _SHARE_OF_TWO if n_classes == 2 else _SHARE
    table = TaughtTable(preprocessing, n_classes, share=share, random_state=seed % 2**32)
    with one_line_about(name, "fitted to the public records"):
        seen = table.fit_transform(X_public, targets)
    return View(table, name), seen


def of_trees(view: View) -> NDArray[np.float64] | None:
    """Parameters of the last features, and of the constant, that say what trees say; None: there are none."""
    if not isinstance(view.transformer, TaughtTable):
        return None
    times, plus = view.transformer.spoken
    return np.vstack([np.diag(times), plus / CONSTANT])


def said_by_trees(view: View, rows: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """What trees say of rows that a view shows, (n, n_taught); None: there are none."""
    trees = of_trees(view)
    if trees is None:
        return None
    return np.asarray(rows[:, -len(trees) + 1 :] @ trees[:-1] + CONSTANT * trees[-1])
