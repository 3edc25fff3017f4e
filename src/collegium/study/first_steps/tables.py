"""A study of tables with named columns: which column means what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from collegium.checks import listed
from collegium.data.headers import NO_HEADER, has_header
from collegium.errors import InputError
from collegium.study.first_steps import inference
from collegium.study.first_steps.classes import ask_classes, kind_of_labels, propose_goal
from collegium.study.first_steps.features import choose_features
from collegium.study.first_steps.ledgers import propose_ledger
from collegium.study.first_steps.levels import ask_levels
from collegium.study.first_steps.look import PRIVATE, PUBLIC, TEST
from collegium.study.first_steps.prompts import NOBODY, Draft, Question
from collegium.study.first_steps.short_study import ShortStudy
from collegium.study.first_steps.title import ask_title

_SHOWN = 8  # columns in a question


def study_of_tables(draft: Draft) -> ShortStudy:
    """Draft a study whose records are rows of tables."""
    files = draft.files
    column = _column_of_levels(draft)
    target = _target(draft, column)
    owner = _owner(draft, column, target)
    levels = ask_levels(draft, column or (files.levels.name if files.levels else None))
    draft.prompts.require_answers()
    assert levels is not None
    features = choose_features(draft, (target, column, owner))
    labels = files.labels.get(PRIVATE)
    kind = kind_of_labels(labels) if labels else files.headers[PRIVATE].kinds.get(str(target))
    classes, remarks = ask_classes(draft, _labelled(draft, target), kind)
    data: dict[str, Any] = {
        **{role: draft.relative(path) for role, path in files.records.items()},
        **{f"{role}_labels": draft.relative(path) for role, path in files.labels.items()},
        "target": target,
        "owner": owner,
        **classes,
        **features,
    }
    privacy = {
        "column": column,
        "file": draft.relative(files.levels) if files.levels else None,
        **levels,
        "delta": draft.given.delta,
    }
    goal = propose_goal(draft, _public_labels(draft, target))
    ledger = propose_ledger(draft, owner)
    title = ask_title(draft, target)
    return ShortStudy(title, _said(data), _said(privacy), remarks, goal, ledger)


def _public_labels(draft: Draft, target: str | None) -> pd.Series | None:
    """Read the labels of public records, where a column holds them."""
    if target is None or target not in draft.files.columns(PUBLIC):
        return None
    cells = draft.files.public_table[target]
    return cells.where(cells.astype("string").str.strip().fillna("") != "")


def _said(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}


def _column_of(draft: Draft, option: str, taken: Mapping[str | None, str]) -> Callable[[str], str]:
    """Make the reader of an answer that names a column of the private table.

    ``taken``: columns that mean something else, and what.
    """

    def read(name: str) -> str:
        columns = draft.files.columns(PRIVATE)
        if name not in columns:
            raise InputError(
                f"{option}: {draft.files.private.name} has no column {name!r}; its columns are "
                f"{listed(columns)}"
                if has_header(columns, draft.files.columns(PUBLIC))
                else f"{option}: {draft.files.private.name} has no column {name!r}: {NO_HEADER}"
            )
        meaning = "is also in --exclude" if name in draft.given.exclude else taken.get(name)
        if meaning is not None:
            raise InputError(f"{option}: column {name!r} {meaning}: name another")
        return name

    return read


def _free(draft: Draft, names: Iterable[str], *taken: str | None) -> list[str]:
    """Keep the columns that may mean something."""
    excluded = {*taken, *draft.given.exclude}
    return [name for name in names if name not in excluded and not inference.is_unnamed(name)]


def _column_of_levels(draft: Draft) -> str | None:
    files, given = draft.files, draft.given
    read = _column_of(draft, "--privacy", {})
    if given.column is not None:
        return read(given.column)
    if files.levels is not None:
        return None
    mine = _free(draft, files.private_only, given.target, given.owner)
    both = _free(draft, files.common, given.target, given.owner)
    found = inference.level_columns(mine) or inference.level_columns(both)
    if len(found) == 1:
        draft.prompts.tell(f"privacy.column: {found[0]!r}; by its name")
        return found[0]
    may_be = [name for name in mine or both if not inference.names_people(name)]
    shown = listed(found or may_be or mine or both, _SHOWN)
    return draft.prompts.ask(
        Question(
            f"Which column of {files.private.name} holds the privacy level of each record ({shown})?",
            f"--privacy COLUMN (the privacy level of each record; perhaps {shown}) or --privacy-file FILE",
            read,
        )
    )


def _target(draft: Draft, column: str | None) -> str | None:
    """Find the column to predict; None where labels are in a file, or nobody can be asked.

    ``column``: of the privacy levels, where that is known.
    """
    files, given = draft.files, draft.given
    read = _column_of(draft, "--target", {column: "holds the privacy levels"})
    if given.target is not None:
        return read(given.target)
    if PRIVATE in files.labels:
        return None
    free = _free(draft, files.columns(PRIVATE), column, given.owner)
    may_be = [name for name in free if not inference.names_people(name)]
    if files.test is not None:  # by that column of theirs a student is judged
        may_be = [name for name in may_be if name in files.columns(TEST)]
    mine = [name for name in may_be if name in files.private_only]
    named = inference.class_columns(may_be)
    is_settled = column is not None or files.levels is not None
    if is_settled and len(mine) == 1 and named in ([], mine):
        lacking = f"{files.private.name} has it and {files.public.name} lacks it"
        draft.prompts.tell(f"data.target: {mine[0]!r}; {lacking}")
        return mine[0]
    if len(named) == 1 and (not mine or named[0] in mine):
        draft.prompts.tell(f"data.target: {named[0]!r}; by its name")
        return named[0]
    # What both files have is usually the last column, and has values that repeat.
    both = [name for name in may_be[::-1] if name in files.common]
    both = [name for name in both if inference.may_hold_classes(files.public_table[name])]
    shown = listed([*mine, *both] or free, _SHOWN)
    return draft.prompts.ask(
        Question(
            f"Which column is to be predicted ({shown})?",
            f"--target COLUMN (the column to predict; perhaps {shown})",
            read,
            proposal=both[0] if both and not mine else None,
        )
    )


def _owner(draft: Draft, column: str | None, target: str | None) -> str | None:
    """Find the column that says whose a record is: never inferred without being asked about."""
    files, given = draft.files, draft.given
    taken = {column: "holds the privacy levels", target: "is to be predicted"}
    column_of = _column_of(draft, "--owner", taken)

    def read(text: str) -> str:
        return text if text == NOBODY else column_of(text)

    mine = _free(draft, files.private_only, column, target)
    is_settled = (target or PRIVATE in files.labels) and (column or files.levels)
    if not is_settled:  # others may turn out to be the target, or the levels
        mine = [name for name in mine if inference.names_people(name)]
    common = _free(draft, files.common, column, target)
    answer: str | None = NOBODY
    if given.owner is not None:
        answer = read(given.owner)
    elif found := inference.owner_columns(mine, common, files.public_table):
        shown = listed(map(repr, found), 4)
        answer = draft.prompts.ask(
            Question(
                f"Which column says whose record it is ({shown})? All records of a person share one budget. "
                f"{NOBODY!r} if every record belongs to a different person",
                f"--owner COLUMN (whose record it is; perhaps {shown}; {NOBODY}: every record belongs to a "
                "different person)",
                read,
                proposal=found[0],
            )
        )
    if answer == NOBODY:
        draft.prompts.tell(
            "data.owner: none; every record counts as a different person's (--owner COLUMN overrules it)"
        )
        return None
    return answer


def _labelled(draft: Draft, target: str | None) -> list[str]:
    """Name what holds public labels; say so where they look like numbers to be predicted."""
    files = draft.files
    if target in files.columns(PUBLIC):
        n_values = files.public_table[target].nunique()
        if n_values > inference.MOST_CLASSES:
            draft.prompts.tell(
                f"data.target: {target!r} has {n_values:,} different values in {files.public.name}; each "
                "would be a class of its own (a study predicts classes, no numbers)"
            )
    named = []
    for role in (PUBLIC, TEST):
        if role in files.labels:
            named.append(files.labels[role].name)
        elif target in files.columns(role):
            named.append(f"column {target!r} of {files.records[role].name}")
    return named
