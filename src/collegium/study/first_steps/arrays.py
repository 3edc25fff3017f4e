"""A study of arrays or images, whose labels and levels are in files of their own."""

from __future__ import annotations

from pathlib import Path

from collegium.data.engines.places import Place
from collegium.errors import InputError
from collegium.study.first_steps import inference
from collegium.study.first_steps.classes import ask_classes, kind_of_labels
from collegium.study.first_steps.levels import ask_levels
from collegium.study.first_steps.look import PRIVATE, PUBLIC
from collegium.study.first_steps.prompts import NOBODY, Draft, Question
from collegium.study.first_steps.short_study import ShortStudy
from collegium.study.first_steps.title import ask_title


def study_of_arrays(draft: Draft) -> ShortStudy:
    """Draft a study whose records are arrays."""
    files, given = draft.files, draft.given
    private = files.private.name
    if given.target or given.column or given.exclude or given.owner not in (None, NOBODY):
        raise InputError(
            f"{private} is an array without column names: give its labels with --labels and its privacy "
            "levels with --privacy-file; owners need a table"
        )
    header = files.headers[PRIVATE]
    sizes = " × ".join(map(str, header.shape))
    records = f"images of {sizes}" if len(header.shape) > 1 else f"rows of {sizes} numbers"
    draft.prompts.tell(
        f"{records}: {header.n_records:,} in {private}; each counts as a different person's"
    )
    labels = _labels(draft)
    levels_file = _file_of_levels(draft)
    levels = ask_levels(draft, None if levels_file is None else levels_file.name)
    draft.prompts.require_answers()
    assert levels is not None and levels_file is not None
    within = {role: header.classes for role, header in files.headers.items()}
    known = {**{role: files.records[role] for role in within if within[role]}, **labels}
    labelled = [path.name for role, path in known.items() if role != PRIVATE]
    kind = kind_of_labels(labels[PRIVATE]) if PRIVATE in labels else within[PRIVATE]
    classes, remarks = ask_classes(draft, labelled, kind)
    data: dict[str, object] = {}
    for role, path in files.records.items():
        data[role] = draft.relative(path)
        if role in labels:
            data[f"{role}_labels"] = draft.relative(labels[role])
    privacy = {"file": draft.relative(levels_file), **levels, "delta": given.delta}
    return ShortStudy(ask_title(draft, None), {**data, **classes}, privacy, remarks)


def _labels(draft: Draft) -> dict[str, Path]:
    """Find the files of each role's labels, where its records do not come with them.

    Those of public records need not be known.
    """
    found = dict(draft.files.labels)
    for role, path in draft.files.records.items():
        if role not in found and draft.files.headers[role].classes:
            of_folders = isinstance(path, Path) and path.is_dir()
            where = "in the names of its folders" if of_folders else "as y"
            draft.prompts.tell(f"classes of the {role} records: in {path.name}, {where}")
            continue
        beside = None if isinstance(path, Place) else inference.labels_beside(path)
        if role not in found and beside is not None:
            draft.prompts.tell(f"data.{role}_labels: {beside.name}, beside {path.name}")
            found[role] = beside
        if role not in found and role != PUBLIC:
            flag = "--labels" if role == PRIVATE else f"--{role}-labels"
            answer = _ask_file(draft, f"the labels of {path.name}", flag)
            if answer is not None:
                found[role] = answer
    return found


def _file_of_levels(draft: Draft) -> Path | None:
    private = draft.files.private
    assert isinstance(private, Path), "arrays lie in files"
    if draft.files.levels is not None:
        return draft.files.levels
    beside = inference.levels_beside(private)
    if beside is not None:
        draft.prompts.tell(f"privacy.file: {beside.name}, beside {private.name}")
        return beside
    order = ", in the order of folders' and files' names" if private.is_dir() else ""
    what = f"the privacy level of each record of {private.name}, one per line below a header{order}"
    return _ask_file(draft, what, "--privacy-file")


def _ask_file(draft: Draft, what: str, option: str) -> Path | None:
    question = Question(f"Which file holds {what}?", f"{option} FILE ({what})", _existing)
    return draft.prompts.ask(question)


def _existing(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise InputError(f"there is no file {text}: check the name and the folder")
    return path
