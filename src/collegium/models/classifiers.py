"""What can be a teacher or a student: an object that learns and predicts, and claims nothing else."""

from __future__ import annotations

import inspect
from typing import Any

from collegium.errors import InputError

CLASSIFIER = "classifier"


def check_classifier(model: Any, name: str, *, learns_by: tuple[str, ...] = ("fit",)) -> None:
    """Refuse what cannot be a classifier; nothing is trained.

    ``model``: not fitted.
    ``name``: what to call it in messages: ``teacher``, ``student``, or a configuration's key.
    ``learns_by``: methods of which it needs at least one, besides ``predict``.
    Raises InputError if it is a class instead of an object, lacks a method, or tells scikit-learn
        that it is something else than a classifier. Objects that tell scikit-learn nothing are
        allowed.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> check_classifier(KMeans(), "teacher")
    Traceback (most recent call last):
    collegium.errors.InputError: teacher must be a classifier, but KMeans is a clusterer: ...
    """
    if inspect.isclass(model):
        raise InputError(
            f"{name} must be an object, got the class {model.__name__}: write {model.__name__}()"
        )
    learns = any(callable(getattr(model, method, None)) for method in learns_by)
    if not (learns and callable(getattr(model, "predict", None))):
        shown = " ".join(repr(model).split())[:200]
        raise InputError(f"{name} must have fit and predict, got {shown}")
    kind = _claimed_kind(model)
    if kind not in (None, CLASSIFIER):
        # scikit-learn's kinds are nouns with an underscore at most: clusterer, outlier_detector.
        article = "an" if kind[0] in "aeiou" else "a"
        raise InputError(
            f"{name} must be a classifier, but {type(model).__name__} is {article} "
            f"{kind.replace('_', ' ')}: give one such as LogisticRegression()"
        )


def _claimed_kind(model: Any) -> str | None:
    """What an object tells scikit-learn that it is; None if it says nothing, or cannot yet."""
    if not hasattr(model, "__sklearn_tags__"):
        return None
    try:
        kind = model.__sklearn_tags__().estimator_type
    except Exception:  # of a composite with an unusable part: the rehearsal tells more
        return None
    return None if kind is None else str(kind)
