"""The figures that are made of points: accuracy against training records, and labels against budgets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from reproduction.laboratory import Laboratory
from reproduction.readings import PUBLISHED, Reading
from reproduction.scores import accuracies, teacher_accuracies
from reproduction.society import two_groups
from reproduction.tables import MOST_LABELS, TABLES, measure, wanted_rows

_BUDGETS = (2.0, 3.0, 4.0, 5.0)
_SHARES = (0.25, 0.5, 0.75)
_MOST_TEACHERS = 250


def utility_points(laboratory: Laboratory, reading: Reading) -> pd.DataFrame:
    """Accuracies of teachers and students and their numbers of training records (thesis, Figure 6.2).

    The source trained a student at every tenth of ε; here they are the students of Table 6.6, whose budgets
    lead to as many different numbers of labels.

    Returns
    -------
    pandas.DataFrame
        Columns reading, model, variant, records, accuracy (percent).
    """
    spec = TABLES["thesis-6.6"]
    options = laboratory.options
    laboratory.there(spec.scenes)
    own_runs = spec.runs if reading is PUBLISHED else spec.sound_runs or spec.runs
    seeds, runs = laboratory.seeds_and_runs(spec.seeds, own_runs)

    def points() -> Iterator[dict[str, Any]]:
        for seed in range(seeds):
            split = laboratory.split(spec.scenes["mnist"], seed)
            shown: set[str] = set()
            for row in wanted_rows(spec, {"mnist"}, options.quick):
                if not laboratory.wants(row.variant):
                    continue
                measured = measure(laboratory, spec, reading, split, row, runs)
                accuracy = accuracies(measured.learn())
                for voting, value in zip(measured.votings, accuracy.tolist(), strict=True):
                    yield _point("student", row.variant, len(voting.labels), value)
                if row.variant in shown:
                    continue
                shown.add(row.variant)
                size = len(split.codes_private) // split.scene.n_teachers
                for value in teacher_accuracies(split, measured.ensemble.test_votes)[
                    :_MOST_TEACHERS
                ]:
                    yield _point("teacher", row.variant, size, float(value))

    table = pd.DataFrame(list(points())).dropna()
    table.insert(0, "reading", reading.name)
    return table


def _point(model: str, variant: str, records: int, accuracy: float) -> dict[str, Any]:
    return {"model": model, "variant": variant, "records": records, "accuracy": accuracy}


def scaling_points(laboratory: Laboratory, reading: Reading) -> pd.DataFrame:
    """Labels for budgets (1 | 2) to (1 | 5) at three shares (paper, Figure 2).

    Returns
    -------
    pandas.DataFrame
        Columns reading, variant, budgets, share, ratio ((ε₁·d₁)/(ε₀·d₀)), labels, sd.
    """
    options = laboratory.options
    laboratory.there({"mnist": "mnist"})
    seeds, runs = laboratory.seeds_and_runs(3, 5)
    budgets = _BUDGETS[:2] if options.quick else _BUDGETS
    rows = []
    for variant in filter(laboratory.wants, ("upsampling", "weighting")):
        for higher in budgets:
            for share in _SHARES:
                labels: list[int] = []
                for seed in range(seeds):
                    split = laboratory.split("mnist", seed)
                    society = two_groups(1.0, higher, share)
                    plan = laboratory.plan(split, society, reading, variant)
                    teacher = laboratory.teachers_of(reading, split)
                    ensemble = laboratory.ensemble(split, society, plan, teacher)
                    most = MOST_LABELS if reading is PUBLISHED else None
                    votings = laboratory.votings(
                        ensemble, plan, reading, split.scene.aggregator, runs, most
                    )
                    labels += [len(voting.labels) for voting in votings]
                rows.append(
                    {
                        "reading": reading.name,
                        "variant": variant,
                        "budgets": f"1|{higher:g}",
                        "share": share,
                        "ratio": higher * share / (1 - share),
                        "labels": float(np.mean(labels)),
                        "sd": float(np.std(labels, ddof=1)) if len(labels) > 1 else 0.0,
                    }
                )
    return pd.DataFrame(rows)
