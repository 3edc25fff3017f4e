"""Whether the kinds of models that are asked for can learn from the records of what is reproduced."""

from __future__ import annotations

from collections.abc import Iterable

from reproduction.curves import CURVES
from reproduction.kinds import check_student, check_teacher
from reproduction.laboratory import Options
from reproduction.lecture import NAME as LECTURE
from reproduction.records import QUICK_SCENES, SCENES, Scene
from reproduction.tables import TABLES


def check_models(names: Iterable[str], options: Options) -> None:
    """Refuse, before anything is computed, teachers or students that cannot learn from the records.

    Parameters
    ----------
    names : iterable of str
        Tables and figures (:func:`reproduction.targets.titles`).
    options : Options
        With the kinds of models that stand in for those of the reading.

    Raises
    ------
    InputError
        If some kind does not fit; the message names the option and the kinds that do.

    Examples
    --------
    >>> check_models(["thesis-6.6"], Options(student="graph"))
    >>> check_models(["thesis-6.7"], Options(student="graph"))
    Traceback (most recent call last):
    collegium.errors.InputError: --student graph learns from images, but adult holds tables: kinds that fit \
are forest, tabular, table-ridge, gaussian-process, evidence-regression, table-ridge-soft
    """
    for name in names:
        for scene in _scenes(name, options.quick):
            if options.teacher is not None:
                check_teacher(options.teacher, scene)
            if options.student is not None and _has_students(name):
                check_student(options.student, scene)


def _scenes(name: str, quick: bool) -> list[Scene]:
    if name in TABLES:
        wanted = list(TABLES[name].scenes.values())
    elif name in CURVES:
        wanted = [CURVES[name].scene]
    elif name == LECTURE:
        wanted = ["mnist-standard" if quick else "mnist-pate"]
    else:  # the figures of points
        wanted = ["mnist"]
    there = QUICK_SCENES if quick else SCENES
    return [there[scene] for scene in wanted if scene in there]


def _has_students(name: str) -> bool:
    if name in TABLES:
        return any(row.metric.startswith("student") for row in TABLES[name].rows)
    return name in (LECTURE, "thesis-fig-6.2")
