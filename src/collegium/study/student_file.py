"""The published student as a file: it is read without running anything of it, and each type in it is known.

The file is one of skops: a zip archive of NumPy arrays and a JSON text that says which object holds what. It
is written such that equal students give equal bytes, and says besides which columns the student takes.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from collegium.errors import InputError
from collegium.study.released_files import released_content
from collegium.study.trusted_types import TRUSTED

STUDENT_FILE = "student.skops"
_SCHEMA, _INPUTS = "schema.json", "collegium.json"


@dataclass(frozen=True, eq=False)
class StoredStudent:
    """A published student, as read.

    ``student``: an estimator that takes records as they are.
    ``inputs``: what records are, as :func:`~collegium.data.tables.described` says it.
    """

    student: Any
    inputs: dict[str, Any]


def load_student(folder: str | PathLike[str], trust: Sequence[str] = ()) -> Any:
    """Load the student that a study published.

    Nothing in the file is run: it is read as data, and refused if it holds anything but types that students
    of Collegium and scikit-learn consist of. What it answers is only as good as where it comes from.

    Parameters
    ----------
    folder : str or path
        A study's folder, its ``release/``, or the file ``student.skops`` itself.
    trust : sequence of str
        Full names of further types that may be in it, such as a class of your own. Making an object of such a
        type may run its code.

    Returns
    -------
    estimator
        A classifier in scikit-learn's manner: it takes records as the public ones were given (a table with
        the same columns, or an array), and predicts classes.

    Raises
    ------
    InputError
        If there is no such file, it is not the one that ``digests.json`` beside it lists, it is damaged, or
        it holds another type.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.naive_bayes import GaussianNB
    >>> student = GaussianNB().fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, STUDENT_FILE).write_bytes(student_bytes(student, {}))
    ...     load_student(folder).predict([[0.9]]).tolist()
    ['yes']
    """
    return published_student(Path(folder), trust).student


def published_student(folder: Path, trust: Sequence[str] = ()) -> StoredStudent:
    """Read the student of a study's folder or release, if it is as it was released."""
    path = _find_student(folder)
    return read_student(path, trust, released_content(path))


def _find_student(path: Path) -> Path:
    places = (path, path / STUDENT_FILE, path / "release" / STUDENT_FILE)
    found = next((place for place in places if place.is_file()), None)
    if found is not None:
        return found
    if any((place / "answers.json").exists() for place in (path, path / "release")):
        raise InputError(
            f"{path} holds answers to questions, and no model that could predict: they are in "
            "release/answers.csv"
        )
    raise InputError(
        f"{path} holds no published model ({STUDENT_FILE}): give the folder of a study that has ended, or "
        "its release/"
    )


@cache
def skops_io() -> Any:
    """Import skops without what it would import on its walk through scikit-learn, in a second and more."""
    others = (f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy"))
    absent = [name for name in others if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        return import_module("skops.io")
    finally:
        for name in absent:
            del sys.modules[name]


def read_student(
    path: Path, trust: Sequence[str] = (), content: bytes | None = None
) -> StoredStudent:
    """Read a student's file; see :func:`load_student`.

    ``content``: of the file, where it was read already.
    """
    try:
        content = path.read_bytes() if content is None else content
        inputs = _inputs_in(content)
        strange = sorted(set(skops_io().get_untrusted_types(data=content)) - TRUSTED - set(trust))
        if not strange:
            student = skops_io().loads(content, trusted=[*TRUSTED, *trust])
            _check(student)
            return StoredStudent(student, inputs)
    except OSError:
        raise
    except Exception as error:  # a file that somebody made up may fail anywhere
        reason = str(error) if isinstance(error, InputError) else type(error).__name__
        raise InputError(
            f"{path} cannot be read ({' '.join(reason.split())[:200]}): it is damaged, or no published "
            "student; get it again, or delete it and run the study again"
        ) from None
    raise InputError(
        f"{path} holds {', '.join(strange[:5])}{', …' if len(strange) > 5 else ''}, which no student of "
        "Collegium consists of: nothing was loaded; if you know and trust it, name it with --trust (in "
        "Python: trust=[…])"
    )


def student_bytes(student: Any, inputs: dict[str, Any]) -> bytes:
    """Write a student such that :func:`read_student` can read it.

    ``student``: fitted; not changed.
    ``inputs``: what records are.
    Raises InputError if it holds what cannot be written without pickling.
    """
    try:
        content = _in_order(skops_io().dumps(student), inputs)
        _check(skops_io().loads(content, trusted=[*TRUSTED, *types_beyond(content)]))
    except Exception as error:  # of whatever it consists of
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise InputError(
            f"{type(student).__name__} cannot be written as {STUDENT_FILE} ({reason})"
        ) from None
    return content


def types_beyond(content: bytes) -> list[str]:
    """List the types in a student's file that its readers have to name before they can load it."""
    return sorted(set(skops_io().get_untrusted_types(data=content)) - TRUSTED)


def _check(student: Any) -> None:
    from collegium.study.safe_trees import check_trees

    if not callable(getattr(student, "predict", None)):
        raise InputError("it does not predict")
    check_trees(student)


def _in_order(content: bytes, inputs: dict[str, Any]) -> bytes:
    """Write a file of skops anew without what differs between two processes: addresses, times, names."""
    with ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(_SCHEMA))
        numbers: dict[Any, int] = {}
        files: dict[str, str] = {}
        for node in _nodes(schema):
            if node.get("__loader__") == "JsonNode":
                node.pop("__id__", None)
            elif "__id__" in node:
                node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
            if "file" in node:
                suffix = Path(node["file"]).suffix
                node["file"] = files.setdefault(node["file"], f"{len(files) + 1}{suffix}")
        parts = {new: archive.read(old) for old, new in files.items()}
    return _zipped({_SCHEMA: _json(schema), _INPUTS: _json(inputs), **parts})


def _inputs_in(file: bytes) -> dict[str, Any]:
    """Read what records are, from a file that is no larger unpacked; others are refused."""
    with ZipFile(io.BytesIO(file)) as archive:
        parts = archive.infolist()
        if any(part.compress_type != ZIP_STORED for part in parts) or len(file) < sum(
            part.file_size for part in parts
        ):
            raise InputError("its parts are compressed")
        inputs = json.loads(archive.read(_INPUTS)) if _INPUTS in archive.namelist() else {}
    return inputs if isinstance(inputs, dict) else {}


def _nodes(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if "__loader__" in part:
            yield part
        for one in part.values():
            yield from _nodes(one)
    elif isinstance(part, list):
        for one in part:
            yield from _nodes(one)


def _json(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _zipped(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            about = ZipInfo(name)  # with the oldest date there is
            about.create_system = 3  # the same on every machine
            archive.writestr(about, content)
    return buffer.getvalue()
