"""A study of tables with named columns: which column means what."""

from __future__ import annotations

from typing import Any

import numpy as np

from collegium.checks import listed
from collegium.data.column_types import labels_of
from collegium.errors import InputError
from collegium.study.first_steps import inference
from collegium.study.first_steps.classes import (
    Labels,
    kind_in,
    labels_in,
    list_of_classes,
    one_column,
)
from collegium.study.first_steps.features import choose_features, is_unnamed
from collegium.study.first_steps.levels import Meaning, ask_without_names, what_levels_mean
from collegium.study.first_steps.look import PRIVATE, PUBLIC, TEST
from collegium.study.first_steps.private_column import private_column
from collegium.study.first_steps.prompts import NOBODY, Begun, Question
from collegium.study.first_steps.short_study import ShortStudy

_SHOWN = 8  # columns in a question


def study_of_tables(begun: Begun) -> ShortStudy:
    """Draft a study whose records are rows of tables."""
    look, files = begun.look, begun.files
    _check_excluded(begun)
    column = None if files.levels else _column_of_levels(begun)
    target = None if PRIVATE in files.labels else _target(begun, column)
    owner = _owner(begun, column, target)
    levels = _meaning_of_levels(begun, column)
    begun.talk.settle()
    assert levels is not None
    special = [name for name in (target, column, owner) if name is not None]
    reading = choose_features(begun, special)
    path = files.labels.get(PRIVATE)
    kind = kind_in(path) if path is not None else look.headers[PRIVATE].kinds.get(str(target))
    classes, remarks = list_of_classes(begun, _known_labels(begun, target), kind)
    meanings = {"target": target, "owner": owner}
    data: dict[str, Any] = {
        **begun.paths(),
        **{f"{role}_labels": begun.written(path) for role, path in files.labels.items()},
        **{key: name for key, name in meanings.items() if name is not None},
        **classes,
        **reading,
    }
    source = {"column": column} if files.levels is None else {"file": begun.written(files.levels)}
    privacy = {**source, **levels, "delta": begun.wanted.delta}
    title = f"Predicting {target}" if target else f"Study of {begun.name(PRIVATE)}"
    return ShortStudy(title, data, privacy, remarks)


def _there(begun: Begun, name: str, flag: str) -> str:
    columns = begun.look.columns(PRIVATE)
    if name not in columns:
        raise InputError(
            f"{flag}: {begun.name(PRIVATE)} has no column {name!r}; its columns are {listed(columns)}"
        )
    if name in begun.wanted.exclude:
        raise InputError(
            f"{flag}: column {name!r} is also in --exclude: leave it out of one of them"
        )
    return name


def _check_excluded(begun: Begun) -> None:
    look = begun.look
    known = dict.fromkeys(name for role in look.headers for name in look.columns(role))
    for name in begun.wanted.exclude:
        if name not in known:
            raise InputError(
                f"--exclude: no file has a column {name!r}; the columns are {listed(known)}"
            )


def _column_of_levels(begun: Begun) -> str | None:
    def read(text: str) -> str:
        return _there(begun, text, "--privacy")

    look, wanted = begun.look, begun.wanted
    if wanted.column is not None:
        return read(wanted.column)
    taken = {wanted.target, wanted.owner, *wanted.exclude}
    mine = [name for name in look.private_only if name not in taken and not is_unnamed(name)]
    found = inference.level_columns(mine)
    if not found:
        found = inference.level_columns([name for name in look.common if name not in taken])
    if len(found) == 1:
        begun.talk.tell(f"privacy.column: {found[0]!r}; by its name")
        return found[0]
    may_be = listed(found or mine or look.columns(PRIVATE), _SHOWN)
    answer: str | None = begun.talk.ask(
        Question(
            f"Which column of {begun.name(PRIVATE)} holds the privacy level of each record ({may_be})?",
            f"--privacy COLUMN (which column holds the privacy levels: {may_be}?), or --privacy-file FILE",
            read,
        )
    )
    return answer


def _target(begun: Begun, column: str | None) -> str | None:
    """Find the column to predict.

    ``column``: of the privacy levels, where that is known.
    """

    def read(text: str) -> str:
        name = _there(begun, text, "--target")
        if name == column:
            raise InputError(f"--target: column {name!r} holds the privacy levels: name another")
        if TEST in look.headers and name not in look.columns(TEST):
            raise InputError(
                f"--target: {begun.name(TEST)} has no column {name!r}, by which the student would be "
                "judged: name another, or leave out --test"
            )
        return name

    look, wanted = begun.look, begun.wanted
    if wanted.target is not None:
        return read(wanted.target)
    taken = {column, wanted.owner, *wanted.exclude}
    free = [name for name in look.columns(PRIVATE) if name not in taken and not is_unnamed(name)]
    may_be = [name for name in free if not inference.names_people(name)]
    if TEST in look.headers:  # by that column of theirs a student is judged
        may_be = [name for name in may_be if name in look.columns(TEST)]
    mine = [name for name in may_be if name in look.private_only]
    called = inference.class_columns(may_be)
    settled = column is not None or begun.files.levels is not None
    if settled and len(mine) == 1 and called in ([], mine):
        begun.talk.tell(
            f"data.target: {mine[0]!r}; {begun.name(PRIVATE)} has it and {begun.name(PUBLIC)} lacks it"
        )
        return mine[0]
    if len(called) == 1 and (not mine or called[0] in mine):
        begun.talk.tell(f"data.target: {called[0]!r}; by its name")
        return called[0]
    # What both files have is usually the last column, and has values that repeat.
    both = [name for name in may_be[::-1] if name in look.common]
    both = [name for name in both if inference.may_hold_classes(look.public[name])]
    shown = listed([*mine, *both] or free, _SHOWN)
    answer: str | None = begun.talk.ask(
        Question(
            f"Which column is to be predicted ({shown})?",
            f"--target COLUMN (which column is to be predicted: {shown}?)",
            read,
            proposal=both[0] if both and not mine else None,
        )
    )
    return answer


def _owner(begun: Begun, column: str | None, target: str | None) -> str | None:
    """Find the column that says whose a record is: never guessed without being asked about."""

    def read(text: str) -> str:
        if text == NOBODY:
            return text
        name = _there(begun, text, "--owner")
        if name in (column, target):
            what = "is to be predicted" if name == target else "holds the privacy levels"
            raise InputError(f"--owner: column {name!r} {what}: name another, or give --no-owner")
        return name

    look, wanted, answer = begun.look, begun.wanted, None
    if wanted.owner is not None:
        answer = read(wanted.owner)
    else:
        taken = {column, target, *wanted.exclude}
        mine = [name for name in look.private_only if name not in taken and not is_unnamed(name)]
        settled = target is not None or PRIVATE in begun.files.labels
        if not settled or (
            column is None and begun.files.levels is None
        ):  # any may be meant by these
            mine = [name for name in mine if inference.names_people(name)]
        common = [name for name in look.common if name not in taken]
        found = inference.owner_columns(mine, common, look.public)
        if found:
            answer = begun.talk.ask(_question_of_owner(found, read))
        else:
            repeat = inference.repeating_names(common, look.public)
            are = f"; {listed(map(repr, repeat), 4)} repeats as names do: is it a person?"
            begun.talk.tell(
                "data.owner: none; no column is called as one that names people, so every record counts as "
                f"another person's (--owner COLUMN if somebody has several{are * bool(repeat)})"
            )
    if answer == NOBODY:
        begun.talk.tell("data.owner: none; every record counts as another person's")
        return None
    return answer


def _question_of_owner(found: list[str], read: Any) -> Question:
    shown = listed(map(repr, found), 4)
    return Question(
        f"Which column says whose record it is ({shown})? One budget then covers all records of a person. "
        f"{NOBODY!r}: every record is another person's",
        f"--owner COLUMN or --no-owner (does one of {shown} say whose record it is?)",
        read,
        proposal=found[0],
    )


def _meaning_of_levels(begun: Begun, column: str | None) -> Meaning | None:
    files = begun.files
    if files.levels is not None:
        path = files.levels
        return what_levels_mean(
            begun, path.name, path, lambda: one_column(path, begun.look.separator)
        )
    if column is None:
        if begun.wanted.levels is None:
            ask_without_names(begun, "that column", begun.name(PRIVATE))
        return None
    separator = begun.look.headers[PRIVATE].separator
    path = files.private
    return what_levels_mean(begun, column, path, lambda: private_column(path, column, separator))


def _known_labels(begun: Begun, target: str | None) -> Labels:
    """Read the labels of public and test records, as far as there are any."""
    look, found = begun.look, []
    for role in (PUBLIC, TEST):
        path = begun.files.labels.get(role)
        if path is not None:
            found.append((path.name, labels_in(path, look.separator)))
        elif target is not None and target in look.columns(role):
            table = look.public if role == PUBLIC else look.table(role)
            labels = np.asarray(table[target])
            labels = labels_of(labels, None) if look.has_characters(role) else labels
            found.append((f"column {target!r} of {begun.name(role)}", labels))
    return found
