"""The public list of classes: given, that of public labels, asked, or left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from collegium.data.column_types import TEXT, labels_of
from collegium.data.headers import header_of
from collegium.distillation.goal import BALANCED, MOSTLY_ONE
from collegium.errors import InputError
from collegium.study.first_steps.prompts import Draft, Question

_TELLING = 40  # public labels, fewer than which tell little of the shares of classes
_LEFT_OUT = (
    '# classes = ["no", "yes"]  # left out: read off private labels, which no guarantee covers'
)


def ask_classes(
    draft: Draft, labelled: list[str], kind: str | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Find the list of classes: its key of [data], and a remark where private labels will have to give it.

    ``labelled``: what holds public labels, which give the list where nobody does.
    ``kind``: "text" or "number", where the file of the private labels declares it.
    """
    if draft.given.classes is not None:
        return {"classes": read_classes(draft.given.classes, kind)}, ()
    if labelled:
        draft.prompts.tell(f"data.classes: left out; read off {' and '.join(labelled)}")
        return {}, ()
    private = draft.files.private.name
    answer = draft.prompts.ask(
        Question(
            "What are the classes? For instance no,yes. If you just press Enter, they are read off the "
            f"labels of {private}, which the guarantee does not cover",
            "--classes NAME,… (the public list of classes)",
            lambda text: read_classes(text, kind) if text else None,
            proposal="",
            is_needed=False,
        )
    )
    if answer is not None:
        return {"classes": answer}, ()
    draft.prompts.tell(
        "data.classes: left out, as no public record has a label; they are read off the labels of "
        f"{private}, which the guarantee does not cover (--classes lists them)"
    )
    return {}, (_LEFT_OUT,)


def propose_goal(draft: Draft, labels: pd.Series | None) -> tuple[str, str] | None:
    """Propose to count classes alike where nearly all public labels are one; None where they are not.

    ``labels``: of public records, as far as they are known.
    """
    known = None if labels is None else labels.dropna()
    if known is None or len(known) < _TELLING or known.nunique() < 2:
        return None
    share = float(known.value_counts(normalize=True).iloc[0])
    if share <= MOSTLY_ONE:
        return None
    why = f"{100 * share:.0f} % of the public labels are one class; accuracy would reward always naming it"
    draft.prompts.tell(f"student.goal: {BALANCED!r}; {why}")
    return BALANCED, why


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


def kind_of_labels(path: Path) -> str | None:
    """Tell the kind of the labels in a file of their own, where its header declares it."""
    return next(iter(header_of(path).kinds.values()), None)
