"""The public list of classes: said, that of public labels, asked, or left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium.checks import listed
from collegium.data.column_types import TEXT, labels_of
from collegium.data.datasets import read_any
from collegium.data.datasets.table_files import is_csv
from collegium.data.headers import header_of
from collegium.data.tables import classes_of_public, encode_classes
from collegium.errors import InputError
from collegium.study.first_steps.look import PRIVATE
from collegium.study.first_steps.prompts import Begun, Question
from collegium.study.first_steps.short_study import CLASSES_LEFT_OUT

_MOST_WRITTEN, _MANY = 20, 50

Labels = Sequence[tuple[str, NDArray[Any]]]
"""Labels of public and test records, with what messages call them."""
Found = tuple[dict[str, Any], tuple[str, ...]]
"""The key ``classes`` of [data], and a remark where it is left out."""


def list_of_classes(begun: Begun, labels: Labels, kind: str | None) -> Found:
    """Find the list of classes.

    ``kind``: "text" or "number", where the file of the private labels declares it.
    """
    known, given = _classes_in(labels), begun.wanted.classes
    if given is not None:
        return {"classes": _like(known, read_classes(given, kind), labels)}, ()
    if known is None:
        return _asked(begun, kind)
    if len(known) < 2:
        raise InputError(
            f"{labels[0][0]} holds one class only, {known[0]!r}: give the public list of classes with "
            "--classes"
        )
    many = " (are these numbers to be predicted? Collegium classifies)"
    begun.talk.tell(
        f"data.classes: {listed(map(repr, known), 8)}; from {' and '.join(name for name, _ in labels)}"
        + many * (len(known) > _MANY and not isinstance(known[0], str))
    )
    return {"classes": known} if len(known) <= _MOST_WRITTEN else {}, ()


def read_classes(text: str, kind: str | None = None) -> list[Any]:
    """Read classes written as ``no,yes``; numbers where all are, unless the labels are text.

    Examples
    --------
    >>> read_classes("no, yes"), read_classes("0,1"), read_classes("0,1", "text")
    (['no', 'yes'], [0, 1], ['0', '1'])
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(
            f"--classes {text!r} must name at least two different classes: write, for instance, no,yes"
        )
    return names if kind == TEXT else list(labels_of(np.array(names, dtype=object), None).tolist())


def labels_in(path: Path, separator: str | None = None) -> NDArray[Any]:
    """Read the labels of public records from a file of their own."""
    labels = one_column(path, separator)
    return labels_of(labels, None) if is_csv(path) else labels


def one_column(path: Path, separator: str | None = None) -> NDArray[Any]:
    """Read a file with one value per record."""
    column = np.asarray(read_any(path, separator=separator, as_text=True))
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError(
            f"{path.name} must hold one value per record, got shape {column.shape}: give one column"
        )
    return column


def refuse_more_columns(path: Path) -> None:
    """Refuse a file with more than one value per record, by its header alone."""
    header = header_of(path)
    if header.columns is None and header.shape not in ((), (1,)):
        raise InputError(
            f"{path.name} must hold one value per record, not shape {header.shape}: give one column"
        )
    if header.columns is not None and len(header.columns) != 1:
        raise InputError(
            f"{path.name} must hold one value per record, not {len(header.columns)} columns: give one column"
        )


def kind_in(path: Path) -> str | None:
    """Tell the kind of what a file holds, where its header says so."""
    return next(iter(header_of(path).kinds.values()), None)


def _asked(begun: Begun, kind: str | None) -> Found:
    private = begun.name(PRIVATE)
    answer: list[Any] | None = begun.talk.ask(
        Question(
            f"What are the classes? For instance no,yes. Enter leaves them out: they are then read off the "
            f"labels of {private}, which the guarantee does not cover",
            "--classes NAME,…",
            lambda text: read_classes(text, kind) if text else [],
            proposal="",
            is_needed=False,
        )
    )
    if answer:
        return {"classes": answer}, ()
    begun.talk.tell(
        f"data.classes: left out, as no public record has a class; they are read off the labels of "
        f"{private}, which the guarantee does not cover (--classes gives them)"
    )
    return {}, (CLASSES_LEFT_OUT,)


def _like(known: list[Any] | None, given: list[Any], labels: Labels) -> list[Any]:
    """Refuse classes of which public records have none."""
    if known is not None and not set(known) & set(given):
        raise InputError(
            f"--classes names {listed(map(repr, given))}, but {labels[0][0]} holds "
            f"{listed(map(repr, known))}: write both in the same way"
        )
    return given


def _classes_in(labels: Labels) -> list[Any] | None:
    """List the classes that public labels hold; refuse what is no class."""
    for name, column in labels:
        known = column[~pd.isna(column)]
        if len(known) and (known != known[0]).any():
            try:
                encode_classes(known, None)
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
    classes = classes_of_public(*(column for _, column in labels))
    return None if classes is None else list(classes.tolist())
