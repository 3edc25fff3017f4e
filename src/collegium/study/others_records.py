"""Records of others, read from a file as a study read its own."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from collegium.data.column_types import read_as_described
from collegium.data.datasets import read_any
from collegium.data.datasets.raw import open_raw
from collegium.data.datasets.table_files import is_csv
from collegium.data.tables import like_described
from collegium.study.student_file import published_student


def read_records(table: str | PathLike[str], release: str | PathLike[str]) -> Any:
    """Read records for a published student as its study read its own.

    Numbers, dates and words for missing values are read as the study's public records wrote them; columns
    that the student does not know are left out.

    Parameters
    ----------
    table : str or path
        A file with the columns of the public records: ``.csv``, ``.parquet``, ``.npy``.
    release : str or path
        A study's folder, its ``release/``, or the file ``student.skops`` itself.

    Returns
    -------
    DataFrame or ndarray
        What ``collegium.load_student(release).predict`` takes.

    Raises
    ------
    InputError
        If a column is missing, or holds something else than that of the public records.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from collegium.study.student_file import STUDENT_FILE, student_bytes
    >>> frame = pd.DataFrame({"income": [900.0, 1234.5]})
    >>> student = DecisionTreeClassifier().fit(frame, ["no", "yes"])
    >>> inputs = {"columns": [["income", "numbers"]], "written": {"income": "1.234,5 €"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, STUDENT_FILE).write_bytes(student_bytes(student, inputs))
    ...     _ = Path(folder, "new.csv").write_text("name;income\\nAda;1.300 €\\n", encoding="utf-8")
    ...     records = read_records(Path(folder, "new.csv"), folder)
    >>> records["income"].tolist(), student.predict(records).tolist()
    ([1300.0], ['yes'])
    """
    return records_like(Path(table), published_student(Path(release)).inputs)


def records_like(path: Path, inputs: dict[str, Any]) -> Any:
    """Read records as described: text, numbers, dates, and what stands in for a gap."""
    records = read_any(path, separator=_separator(path, inputs.get("separator")), as_text=True)
    if is_csv(path) and isinstance(records, pd.DataFrame):
        records = read_as_described(records, inputs, str(path))
    return like_inputs(records, inputs, str(path))


def like_inputs(records: Any, inputs: dict[str, Any], name: str) -> Any:
    """Take of records that are typed already what a student takes; ``name``: what to call them."""
    records = like_described(records, inputs, name)
    medians = inputs.get("medians")
    return records.fillna(medians) if medians else records


def _separator(path: Path, learnt: str | None) -> str | None:
    """Take the one of the study if the names of the columns contain it; otherwise it is found anew."""
    if learnt is None or not path.is_file():
        return None
    with open_raw(path) as stream:
        return learnt if learnt.encode() in stream.readline() else None
