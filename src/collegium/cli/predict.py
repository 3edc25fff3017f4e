"""What can be done with a published student: ask it about records, convert it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from collegium.cli.console import out
from collegium.cli.encoding import can_be_shown
from collegium.cli.outputs import refuse_taken, write_named
from collegium.errors import InputError

Trust = Annotated[
    list[str] | None,
    typer.Option(
        help="Full name of a further type that the student may hold, such as a class of your own. "
        "Loading it may run code.",
    ),
]


def predict(
    release: Annotated[
        Path, typer.Argument(help="A release (or a study's folder).", show_default=False)
    ],
    table: Annotated[
        Path,
        typer.Argument(
            help="Records, with the columns of the public ones: .csv, .parquet, .npy, .npz, or a folder of "
            "images.",
            show_default=False,
        ),
    ],
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="CSV file to write, which must not exist yet. Default: print to the terminal.",
            show_default=False,
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    threshold: Annotated[
        str | None,
        typer.Option(
            "--threshold",
            metavar="CLASS=PROBABILITY",
            help="Answer CLASS from this probability on, as in yes=0.2. The report says how many are found "
            "then, and how many of these are right.",
            show_default=False,
        ),
    ] = None,
    trust: Trust = None,
) -> None:
    """Predict the class of each record with a published model. No code in its file is run.

    Columns that the model does not know are ignored. Rows are counted from 0; those of a folder of images are
    told by their files' names, too. A class whose name a spreadsheet would take for a formula is written with
    an apostrophe before it.

    Example: collegium predict study/release table.csv --out predictions.csv

    Example: collegium predict study/release table.csv --threshold yes=0.2
    """
    import pandas as pd

    from collegium.data.datasets.image_files import image_paths, is_image_folder
    from collegium.plain_text import csv_for_people
    from collegium.report.numbers import clean
    from collegium.study.others_records import records_like
    from collegium.study.student_file import published_student

    _require_a_file(table)
    if out_file is not None:
        refuse_taken(out_file)
    stored = published_student(release, trust or ())
    records = records_like(table, stored.inputs)
    try:
        if threshold is None:
            answers = {"label": stored.student.predict(records)}
        else:
            answers = {"label": _from_threshold(stored.student, records, threshold)}
        if proba:
            answers |= _probabilities(stored.student, records)
    except InputError:
        raise
    except Exception as error:  # of any student, about any records
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"the model cannot predict from {table} ({type(error).__name__}: {reason}): give records "
            "like the public ones"
        ) from None
    if is_image_folder(table):
        files = [one.relative_to(table).as_posix() for one in image_paths(table)[0]]
        answers = {"file": files, **answers}
    text = csv_for_people(pd.DataFrame(answers).rename_axis("row"), index=True).decode()
    if out_file is None:
        if sys.stdout.isatty():  # names of classes may be anything, but a terminal obeys some of it
            text = "\n".join(clean(line) for line in text.splitlines()) + "\n"
        if not can_be_shown(text, sys.stdout):
            raise InputError(
                f"the names of classes have letters that {sys.stdout.encoding} cannot show: write to a "
                "file with --out"
            )
        typer.echo(text, nl=False)
        return
    write_named(out_file, text.encode())
    out.print(f"Wrote {out_file}: predictions for {len(records):,} records.", soft_wrap=True)


def onnx(
    release: Annotated[
        Path, typer.Argument(help="A release (or a study's folder).", show_default=False)
    ],
    table: Annotated[
        Path,
        typer.Argument(
            help="Records to compare the two on, such as the public ones.", show_default=False
        ),
    ],
    out_file: Annotated[
        Path,
        typer.Option("--out", help="File to write, which must not exist yet."),
    ] = Path("student.onnx"),
    trust: Trust = None,
) -> None:
    """Convert a published student to ONNX, and count the records for which it then answers differently.

    Needs: pip install 'collegium\\[onnx]'. Most of scikit-learn's classifiers can be converted. Records are
    rows of numbers; of a table with text, each column is an input of its own.

    Example: collegium onnx study/release public.csv --out student.onnx
    """
    from collegium.study.onnx_file import onnx_bytes
    from collegium.study.others_records import records_like
    from collegium.study.student_file import published_student

    _require_a_file(table)
    refuse_taken(out_file)
    stored = published_student(release, trust or ())
    records = records_like(table, stored.inputs)
    content, differing = onnx_bytes(stored, records)
    write_named(out_file, content)
    out.print(
        f"Wrote {out_file}: it answers differently for {differing:,} of the {len(records):,} records.",
        soft_wrap=True,
    )


def _require_a_file(table: Path) -> None:
    """Refuse a table in a database or workbook, in one line that says what to give."""
    from collegium.data.engines.places import is_named

    if is_named(table):
        raise InputError(
            f"{str(table)!r} names a table in a database or workbook, and here records are read from a file: "
            "export it (.csv, .parquet)"
        )


def _from_threshold(student: Any, records: Any, threshold: str) -> Any:
    """Answer a class wherever its probability is large enough, and the most probable other one elsewhere."""
    import numpy as np

    if not hasattr(student, "predict_proba"):
        raise InputError("this model gives no probabilities: leave out --threshold")
    name, _, number = threshold.rpartition("=")
    names = [str(one) for one in student.classes_]
    try:
        least = float(number)
    except ValueError:
        least = -1.0
    if name in _never_named(student):
        raise InputError(
            f"the answers that the model learnt from never named {name!r}, so that it has no probability of "
            'it: a study with goal = "balanced", or with more answers, may find it'
        )
    if name not in names or not 0 < least <= 1:
        raise InputError(
            f"--threshold must be CLASS=PROBABILITY with a class of {', '.join(names)} and a number above 0 "
            f"and up to 1, such as {names[-1]}=0.2, got {threshold!r}"
        )
    place, beliefs = names.index(name), np.array(student.predict_proba(records), dtype=np.float64)
    is_found = beliefs[:, place] >= least
    beliefs[:, place] = -1.0
    return np.asarray(student.classes_)[np.where(is_found, place, beliefs.argmax(axis=1))]


def _never_named(student: Any) -> set[str]:
    """Find the classes on the public list that a student knows nothing of."""
    known = {str(one) for one in student.classes_}
    while not hasattr(student, "classes") and (inner := _inside(student)) is not None:
        student = inner
    return {str(one) for one in getattr(student, "classes", ())} - known


def _inside(student: Any) -> Any:
    """Take the last step of a pipeline, or the student that something is wrapped around."""
    return student.steps[-1][1] if hasattr(student, "steps") else getattr(student, "student", None)


def _probabilities(student: Any, records: Any) -> dict[str, Any]:
    if not hasattr(student, "predict_proba"):
        raise InputError("this model gives no probabilities: leave out --proba")
    named = zip(student.classes_, student.predict_proba(records).T, strict=True)
    return {f"probability of {name}": column for name, column in named}
