"""A study of arrays or images, whose labels and levels are in files of their own."""

from __future__ import annotations

from pathlib import Path

from collegium.data.headers import header_of
from collegium.errors import InputError
from collegium.study.first_steps import inference
from collegium.study.first_steps.classes import (
    kind_in,
    labels_in,
    list_of_classes,
    one_column,
    refuse_more_columns,
)
from collegium.study.first_steps.levels import ask_without_names, what_levels_mean
from collegium.study.first_steps.look import PRIVATE, PUBLIC
from collegium.study.first_steps.prompts import NOBODY, Begun, Question
from collegium.study.first_steps.short_study import ShortStudy


def study_of_arrays(begun: Begun) -> ShortStudy:
    """Draft a study whose records are arrays."""
    _tell_of_shapes(begun)
    _refuse_columns(begun)
    labels = _labels(begun)
    file = _file_of_levels(begun)
    levels = None
    if file is not None:
        levels = what_levels_mean(begun, file.name, file, lambda: one_column(file))
    elif begun.wanted.levels is None:
        ask_without_names(begun, "the file of privacy levels", "it")
    begun.talk.settle()
    assert levels is not None and file is not None
    known = [(path.name, labels_in(path)) for role, path in labels.items() if role != PRIVATE]
    classes, remarks = list_of_classes(begun, known, kind_in(labels[PRIVATE]))
    data: dict[str, object] = {}
    for role, path in begun.paths().items():
        data[role] = path
        if role in labels:
            data[f"{role}_labels"] = begun.written(labels[role])
    privacy = {"file": begun.written(file), **levels, "delta": begun.wanted.delta}
    return ShortStudy(f"Study of {begun.name(PRIVATE)}", {**data, **classes}, privacy, remarks)


def _tell_of_shapes(begun: Begun) -> None:
    shape = begun.look.headers[PRIVATE].shape
    sizes = " × ".join(map(str, shape))
    n_private, n_public = (begun.look.headers[role].n_records for role in (PRIVATE, PUBLIC))
    begun.talk.tell(
        f"{f'images of {sizes}' if len(shape) > 1 else f'rows of {sizes} numbers'}: {n_private:,} in "
        f"{begun.name(PRIVATE)}, {n_public:,} in {begun.name(PUBLIC)}; every private record "
        "counts as another person's"
    )


def _refuse_columns(begun: Begun) -> None:
    wanted = begun.wanted
    for flag, given in {
        "--target": wanted.target,
        "--privacy": wanted.column,
        "--owner": None if wanted.owner == NOBODY else wanted.owner,
        "--exclude": wanted.exclude or None,
    }.items():
        if given is not None:
            raise InputError(
                f"{flag} names a column, but {begun.name(PRIVATE)} is an array without column names: give "
                "labels with --labels, privacy levels with --privacy-file; owners need a table"
            )


def _labels(begun: Begun) -> dict[str, Path]:
    """Find the labels of each role's records; those of public records need not be known."""
    found = dict(begun.files.labels)
    for role, path in begun.files.records():
        beside = inference.labels_beside(path)
        if role not in found and beside is not None:
            begun.talk.tell(f"data.{role}_labels: {beside.name}, beside {path.name}")
            found[role] = beside
        if role not in found and role != PUBLIC:
            flag = "--labels" if role == PRIVATE else f"--{role}-labels"
            answer: Path | None = begun.talk.ask(
                Question(
                    f"Which file holds the labels of {path.name}?",
                    f"{flag} FILE (the labels of {path.name})",
                    existing,
                )
            )
            if answer is not None:
                found[role] = answer
        if role in found:
            _check_length(begun, role, found[role])
    return found


def _check_length(begun: Begun, role: str, path: Path) -> None:
    refuse_more_columns(path)
    n_labels, n_records = header_of(path).n_records, begun.look.headers[role].n_records
    if n_labels not in (None, n_records):
        raise InputError(
            f"{path.name} holds {n_labels:,} labels, but {begun.name(role)} {n_records:,} records: give one "
            "label per record"
        )


def _file_of_levels(begun: Begun) -> Path | None:
    if begun.files.levels is not None:
        return begun.files.levels
    beside = inference.levels_beside(begun.files.private)
    if beside is not None:
        begun.talk.tell(f"privacy.file: {beside.name}, beside {begun.name(PRIVATE)}")
        return beside
    answer: Path | None = begun.talk.ask(
        Question(
            f"Which CSV file holds the privacy level of each record of {begun.name(PRIVATE)}, one a line "
            "below a header?",
            "--privacy-file FILE (a CSV with the privacy level of each private record, below a header)",
            existing,
        )
    )
    return answer


def existing(text: str) -> Path:
    """Read the name of a file that is there."""
    path = Path(text)
    if not path.is_file():
        raise InputError(f"there is no file {text}: check the name and the folder")
    return path
