"""Everything that can be reproduced, by name, and how to run and keep one of them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from collegium.errors import InputError
from reproduction.cells import Aim, Cell, write_cells, write_table
from reproduction.curves import CURVES, CurveSpec, run_curves
from reproduction.drawings import draw_curves, draw_scaling, draw_utility, save
from reproduction.laboratory import Laboratory, Options
from reproduction.lecture import AIMS as LECTURE_AIMS
from reproduction.lecture import NAME as LECTURE
from reproduction.lecture import TITLE as LECTURE_TITLE
from reproduction.lecture import run_lecture
from reproduction.readings import Reading
from reproduction.records import DataNotThereError
from reproduction.scatters import scaling_points, utility_points
from reproduction.table1 import Explained
from reproduction.tables import TABLES, run_table

_SCATTERS = {
    "thesis-fig-6.2": "Information vs. utility (MNIST)",
    "paper-fig-2": "Weighted privacy ratio over generated labels (MNIST)",
}


@dataclass(frozen=True, eq=False)
class Result:
    """What came out.

    Attributes
    ----------
    name, title, reading : str
        What was reproduced, and how.
    cells : list of Cell
        Of a table.
    aim : Aim or None
        What the cells should show.
    points : pandas.DataFrame or None
        Of a figure.
    figure : Figure or None
        The figure.
    """

    name: str
    title: str
    reading: Reading
    cells: list[Cell]
    aim: Aim | None = None
    points: pd.DataFrame | None = None
    figure: Figure | None = None


def titles() -> dict[str, str]:
    """Name and title of everything that can be reproduced.

    Examples
    --------
    >>> titles()["thesis-6.4"]
    'Labels per personalisation (MNIST)'
    """
    tables = {name: spec.title for name, spec in TABLES.items()}
    curves = {name: spec.title for name, spec in CURVES.items()}
    return {**tables, **curves, **_SCATTERS, LECTURE: LECTURE_TITLE}


def reproduce(name: str, laboratory: Laboratory, reading: Reading) -> Result:
    """Reproduce one table or figure.

    Parameters
    ----------
    name : str
        One of :func:`titles`.
    laboratory : Laboratory
        With the options.
    reading : Reading
        How.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If there is nothing of that name.
    DataNotThereError
        If its records are not in the data folder.
    """
    known = titles()
    if name not in known:
        raise InputError(f"there is no table or figure {name!r}: allowed are {', '.join(known)}")
    title = known[name]
    if name in TABLES or name == LECTURE:
        if name == LECTURE:
            cells, aim = run_lecture(laboratory, reading), LECTURE_AIMS.get(reading.name)
        else:
            spec = TABLES[name]
            cells, aim = run_table(laboratory, spec, reading), spec.aims.get(reading.name)
        _refuse_nothing(name, laboratory, len(cells))
        return Result(name, title, reading, cells, aim)
    if name in CURVES and CURVES[name].quantity == "order" and reading.guarantee == "worst-case":
        raise DataNotThereError(
            f"not there: {name} is about Rényi orders, which the sound reading has none of"
        )
    points = _POINTS[name](laboratory, reading)
    _refuse_nothing(name, laboratory, len(points))
    options = laboratory.options
    quick = " (QUICK: means nothing)" if options.quick else ""
    models = f", teachers {options.teacher}" if options.teacher else ""
    heading = f"{title}: {reading.name}{models}{quick}"
    if name in CURVES:
        figure = draw_curves(points, CURVES[name].quantity, heading)
    elif name == "paper-fig-2":
        figure = draw_scaling(points, heading)
    else:
        figure = draw_utility(points, heading)
    return Result(name, title, reading, [], None, points, figure)


def _curve_points(spec: CurveSpec, laboratory: Laboratory, reading: Reading) -> pd.DataFrame:
    return run_curves(laboratory, spec, reading)


_POINTS: dict[str, Callable[[Laboratory, Reading], pd.DataFrame]] = {
    "thesis-fig-6.2": utility_points,
    "paper-fig-2": scaling_points,
    **{name: partial(_curve_points, spec) for name, spec in CURVES.items()},
}


def _refuse_nothing(name: str, laboratory: Laboratory, found: int) -> None:
    if not found:
        wanted = ", ".join(laboratory.options.variants) or "all"
        raise InputError(f"{name} shows nothing for the variants {wanted}: name others, or none")


def keep(
    result: Result, folder: Path, command: str, settings: Sequence[str], options: Options
) -> list[Path]:
    """Store a result: ``NAME-READING.csv``, and ``NAME-READING.png`` of a figure.

    Other kinds of teachers and students than the reading's are part of the name, and so is ``quick``:
    no result replaces one of another kind.

    Parameters
    ----------
    result : Result
        What came out.
    folder : Path
        Where.
    command : str
        That makes it again.
    settings : sequence of str
        Lines that say how much was run.
    options : Options
        How it was run.

    Returns
    -------
    list of Path
        The files.
    """
    stem = f"{result.name}-{result.reading.name}{_marks(options)}"
    heading = [command, result.title, result.reading.words, *settings, versions_line()]
    path = folder / f"{stem}.csv"
    if result.points is None:
        write_cells(path, result.cells, result.aim, heading)
        return [path]
    _write_points(path, result.points, heading)
    assert result.figure is not None
    save(result.figure, path.with_suffix(".png"))
    return [path, path.with_suffix(".png")]


def keep_explained(
    explained: Sequence[Explained],
    folder: Path,
    command: str,
    settings: Sequence[str],
    options: Options,
) -> Path:
    """Store the arithmetic behind the paper's Table 1 as ``paper-1-explained.csv``; see :func:`keep`."""
    rows = [
        {
            key: " ".join(f"{number:.4g}" for number in value)
            if isinstance(value, tuple)
            else value
            for key, value in asdict(one).items()
        }
        for one in explained
    ]
    path = folder / f"paper-1-explained{_marks(options)}.csv"
    _write_points(path, pd.DataFrame(rows), [command, *settings, versions_line()])
    return path


def _marks(options: Options) -> str:
    marks = (options.teacher, options.student, "quick" if options.quick else None)
    return "".join(f"-{mark}" for mark in marks if mark)


def _write_points(path: Path, points: pd.DataFrame, heading: Sequence[str]) -> None:
    table = points.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    write_table(path, heading, table)


def versions_line() -> str:
    """Versions of what the numbers depend on."""
    names = ("collegium", "numpy", "scipy", "scikit-learn", "pandas")
    shown = [f"{name} {version(name)}" for name in names]
    return f"python {platform.python_version()}, {', '.join(shown)}"
