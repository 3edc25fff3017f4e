"""What asked for a fit: scikit-learn's pipelines and searches learn from records, and no account sees it.

They are found among the frames that called, so that what is refused or said follows from the program and
never from a record: a refusal that private records decided would itself tell something of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from collegium.accounting.statement import PrivacyStatement
from collegium.errors import InputError
from collegium.models.features.principal import PublicComponents
from collegium.runs.user_warnings import Warner

_FIT_OFTEN = ("sklearn.model_selection", "sklearn.calibration")
_PARTS = ("steps", "transformers", "transformer_list")
ONE_OF_MANY = (
    "Not covered: this fit is one of several that a search or cross-validation made. The others, scores on "
    "records that were held out of them, and what is chosen by such scores or learnt from such records, are "
    "releases of their own if these records are private"
)
SCORED = (
    "this score is of records that were held out of a fit: if they are private, no account covers it, nor "
    "what a search chooses by it: keep both to yourself, and publish what is measured on public records"
)


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def fits_often() -> bool:
    """Tell whether what is going on was asked for by something that fits many times."""
    return any(str(frame.f_globals.get("__name__")).startswith(_FIT_OFTEN) for frame in _frames())


def tell_of_held_out() -> bool:
    """Warn of a score that a search or cross-validation asks for; tell whether one does."""
    if not fits_often():
        return False
    Warner().note(SCORED)
    return True


def with_what_called(statement: PrivacyStatement) -> PrivacyStatement:
    """Let a statement say that it is one of those of a search or cross-validation, if it is."""
    if not fits_often():
        return statement
    return replace(statement, provisos=(*statement.provisos, ONE_OF_MANY))


def refuse_learners_before() -> None:
    """Refuse a fit whose records or targets went through something that was fitted to all of them.

    Allowed before an estimator are steps that learn nothing from the records they are fitted to: by
    scikit-learn's own tag (``requires_fit``), since they are frozen, or since they were given public records.
    Of functions (``FunctionTransformer``) these are NumPy's ``ufunc``; others may look at all records at
    once, and are taken within ``FrozenEstimator``, by which the user says that they do not.

    Raises InputError if there is another.
    """
    for frame in _frames():
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline):
            learning = next((step for _, step in caller.steps[:-1] if _learns(step)), None)
            if learning is not None:
                raise InputError(
                    f"the {type(learning).__name__} in this Pipeline is fitted to all private records, which "
                    "no budget pays for: leave it out and set preprocessing=, which is fitted to X_public "
                    "alone, on the estimator; if it has seen public records only, use FrozenEstimator(…)"
                )
        elif isinstance(caller, TransformedTargetRegressor) and _learns(caller.transformer):
            raise InputError(
                f"the {type(caller.transformer).__name__} in this TransformedTargetRegressor is fitted to "
                "all private targets, which no budget pays for: leave it out and give bounds=(low, high), "
                "which scale targets and are public; or func and inverse_func, which learn nothing"
            )


def needs_no_records(transformer: Any) -> bool:
    """Tell whether a transformer works without having been fitted to anything here."""
    if isinstance(transformer, FrozenEstimator):
        return True
    return not any(hasattr(transformer, name) for name in _PARTS) and not _learns(transformer)


def _learns(step: Any) -> bool:
    """Tell whether a transformer takes anything from the records that it is fitted to."""
    if step is None or isinstance(step, str | FrozenEstimator):
        return False
    for name in _PARTS:
        if hasattr(step, name):
            parts = [part[1] for part in getattr(step, name)]
            return any(map(_learns, [*parts, getattr(step, "remainder", None)]))
    if isinstance(step, PublicComponents) and step.public is not None:  # records of its own
        return False
    if isinstance(step, FunctionTransformer):  # a function may look at all records at once
        return not (step.func is None or isinstance(step.func, np.ufunc))
    try:
        return bool(get_tags(step).requires_fit)
    except Exception:  # of a class that is not scikit-learn's
        return True
