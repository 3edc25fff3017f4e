"""The published tables as data, and the one way in which each of their cells is measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reproduction.cells import Aim, Cell, summarise
from reproduction.kinds import check_student
from reproduction.laboratory import Ensemble, Laboratory
from reproduction.published import PublishedNumber, budget_from_text, published_numbers
from reproduction.readings import PUBLISHED, Reading
from reproduction.records import Split
from reproduction.scores import (
    accuracies,
    class_accuracies,
    teacher_accuracies,
    voting_accuracy,
)
from reproduction.society import Society, everybody, two_groups
from reproduction.votings import Voting

MOST_LABELS = 2000
"""Where the sources end a voting."""

Values = list[float]


@dataclass(frozen=True)
class TableSpec:
    """A published table.

    Attributes
    ----------
    name, title : str
        For the command line.
    source, table : str
        Where its numbers are in :mod:`reproduction.published`.
    scenes : dict of str to str
        Scene (:mod:`reproduction.records`) of each data set of the table.
    lower : str
        The lower budget as printed.
    seeds, runs : int
        Ensembles of each kind, votings of each ensemble, in the source.
    only_class : int, optional
        The class that has the higher budget, where budgets depend on the class.
    sound_variant : str
        What stands for every individualised variant in the sound reading.
    aims : dict of str to Aim
        By reading.
    sound_runs : int, optional
        Votings of each ensemble in the sound reading, where students take long.
    """

    name: str
    title: str
    source: str
    table: str
    scenes: dict[str, str]
    lower: str = "1"
    seeds: int = 3
    runs: int = 5
    only_class: int | None = None
    sound_variant: str = "weighting"
    aims: dict[str, Aim] = field(default_factory=dict)
    sound_runs: int | None = None

    @property
    def rows(self) -> tuple[PublishedNumber, ...]:
        """Its published numbers."""
        return tuple(
            row
            for row in published_numbers()
            if (row.source, row.table) == (self.source, self.table)
        )

    def society(self, row: PublishedNumber) -> Society:
        """Who grants what in a cell."""
        if row.setup in SOCIETIES:
            society = SOCIETIES[row.setup]
            return society if row.variant != "none" else everybody(min(society.epsilons))
        lower = budget_from_text(self.lower)
        if not row.higher_budget:
            return everybody(lower)
        share = float(row.ratio.rstrip("%")) / 100
        return two_groups(lower, budget_from_text(row.higher_budget), share, self.only_class)


SOCIETIES = {
    "34%-43%-23% eps 1-2-3": Society((1.0, 2.0, 3.0), (0.34, 0.43, 0.23)),
    "54%-37%-9% eps 1-2-3": Society((1.0, 2.0, 3.0), (0.54, 0.37, 0.09)),
}
"""Groups of the paper's Table 1, as its setup is printed."""

_LABEL_VARIANTS = ("none", "upsampling", "weighting")
_MNIST, _ADULT = {"mnist": "mnist"}, {"adult": "adult"}
_WITHIN_15 = {"published": Aim("within", 0.15, _LABEL_VARIANTS)}
_WITHIN_20 = {"published": Aim("within", 0.20, _LABEL_VARIANTS)}
_ABOVE = {"sound": Aim("above", least_seeds=3)}
_MOSTLY = {"sound": Aim("mostly above", least_seeds=10)}
_HIGH_INCOME = 1  # ">50K", the smaller class


def _thesis(
    table: str, title: str, scenes: dict[str, str], seeds: int, **more: object
) -> TableSpec:
    return TableSpec(f"thesis-{table}", title, "thesis", table, scenes, "1", seeds, 5, **more)  # type: ignore[arg-type]


def _paper(table: str, title: str, scenes: dict[str, str], **more: object) -> TableSpec:
    return TableSpec(f"paper-{table}", title, "paper", table, scenes, "log2", 10, 5, **more)  # type: ignore[arg-type]


def _bias(table: str, title: str) -> TableSpec:
    return _paper(table, title, _ADULT, only_class=_HIGH_INCOME, sound_variant="upsampling")


TABLES = {
    spec.name: spec
    for spec in (
        _thesis("6.4", "Labels per personalisation (MNIST)", _MNIST, 3, aims=_WITHIN_15),
        _thesis("6.5", "Labels per personalisation (Adult)", _ADULT, 10, aims=_WITHIN_15),
        _thesis(
            "6.6",
            "Student accuracy per personalisation (MNIST)",
            _MNIST,
            3,
            aims=_ABOVE,
            sound_runs=1,
        ),
        _thesis("6.7", "Student accuracy per personalisation (Adult)", _ADULT, 10, aims=_MOSTLY),
        TableSpec(
            "paper-1",
            "Labels for three groups (MNIST and SVHN)",
            "paper",
            "1",
            {"mnist": "mnist-standard", "svhn": "svhn"},
            seeds=3,
            runs=1,
        ),
        _paper("5", "Labels (MNIST)", _MNIST),
        _bias("6", "Student accuracy per class, budgets by class (Adult)"),
        _paper("7", "Labels (Adult)", _ADULT, aims=_WITHIN_20),
        _paper("8", "Student accuracy (MNIST)", _MNIST, aims=_ABOVE, sound_runs=1),
        _paper("9", "Student accuracy (Adult)", _ADULT, aims=_MOSTLY),
        _bias("10a", "Teacher accuracy per class, budgets by class (Adult)"),
        _bias("10b", "Voting accuracy per class, budgets by class (Adult)"),
        _bias("11", "Labels, budgets by class (Adult)"),
    )
}
"""All tables by name."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One ensemble's part in a cell: what metrics look at."""

    split: Split
    ensemble: Ensemble
    votings: list[Voting]
    learn: Callable[[], NDArray[np.int64]]


def _by_class(measured: Measured, label: int) -> Values:
    accuracy = []
    for voting in measured.votings:
        truth = measured.split.codes_public[voting.queries]
        chosen = truth == label
        right = voting.labels[chosen] == label
        accuracy.append(100 * float(right.mean()) if chosen.any() else math.nan)
    return accuracy


def _teachers_by_class(measured: Measured, label: int) -> Values:
    chosen = measured.split.codes_test == label
    return [100 * float((measured.ensemble.test_votes[chosen] == label).mean())]


METRICS: dict[str, Callable[[Measured], Values]] = {
    "labels": lambda m: [float(len(voting.labels)) for voting in m.votings],
    "voting_accuracy": lambda m: [voting_accuracy(m.split, voting) for voting in m.votings],
    "student_accuracy": lambda m: accuracies(m.learn()).tolist(),
    "student_accuracy_majority": lambda m: class_accuracies(m.learn())[:, 0].tolist(),
    "student_accuracy_minority": lambda m: class_accuracies(m.learn())[:, 1].tolist(),
    "teacher_accuracy_majority": lambda m: _teachers_by_class(m, 0),
    "teacher_accuracy_minority": lambda m: _teachers_by_class(m, 1),
    "voting_accuracy_majority": lambda m: _by_class(m, 0),
    "voting_accuracy_minority": lambda m: _by_class(m, 1),
}
"""Values of one ensemble's votings, by name of the metric."""


def run_table(laboratory: Laboratory, spec: TableSpec, reading: Reading) -> list[Cell]:
    """Measure every cell of a table.

    Parameters
    ----------
    laboratory : Laboratory
        With the options.
    spec : TableSpec
        Which table.
    reading : Reading
        How.

    Returns
    -------
    list of Cell
        In the order of the published table; cells of data sets that are not there are missing.

    Raises
    ------
    DataNotThereError
        If no data set of the table is there.
    """
    own_runs = spec.runs if reading is PUBLISHED else spec.sound_runs or spec.runs
    seeds, runs = laboratory.seeds_and_runs(spec.seeds, own_runs)
    rows = wanted_rows(spec, laboratory.there(spec.scenes), laboratory.options.quick)
    rows = [row for row in rows if laboratory.wants(row.variant)]
    values: dict[PublishedNumber, list[list[Values]]] = {row: [] for row in rows}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for seed in range(seeds):
            split = laboratory.split(spec.scenes[dataset], seed)
            for row in rows:
                if row.dataset == dataset:
                    measured = measure(laboratory, spec, reading, split, row, runs)
                    metrics = METRICS[row.metric], *_ASIDE
                    values[row].append([metric(measured) for metric in metrics])
    return [_cell(spec, reading, row, values[row]) for row in rows]


def wanted_rows(spec: TableSpec, datasets: set[str], quick: bool) -> list[PublishedNumber]:
    """Cells of the data sets that are there; with ``quick`` only the baseline and one higher budget."""
    rows = [row for row in spec.rows if row.dataset in datasets]
    if quick:
        shown = sorted({row.higher_budget for row in rows})[:2]
        rows = [row for row in rows if row.higher_budget in shown]
    return rows


def measure(
    laboratory: Laboratory,
    spec: TableSpec,
    reading: Reading,
    split: Split,
    row: PublishedNumber,
    runs: int,
) -> Measured:
    """Train (or fetch) the teachers of one cell for one seed, and let them vote.

    Parameters
    ----------
    laboratory : Laboratory
        With the options.
    spec : TableSpec
        Which table.
    reading : Reading
        How; a sound one lets ``spec.sound_variant`` stand for every individualised variant.
    split : Split
        The records of the seed.
    row : PublishedNumber
        Which cell.
    runs : int
        Votings.
    """
    society = spec.society(row)
    variant = row.variant
    if reading is not PUBLISHED and variant != "none":
        variant = spec.sound_variant
    plan = laboratory.plan(split, society, reading, variant)
    teacher, student = (
        laboratory.teachers_of(reading, split),
        laboratory.students_of(reading, split),
    )
    if row.metric.startswith("student"):
        check_student(student, split.scene)
    ensemble = laboratory.ensemble(split, society, plan, teacher)
    aggregator, release = laboratory.mechanism(reading, split, row.metric, plan)
    most = MOST_LABELS if reading is PUBLISHED else None
    votings = laboratory.votings(ensemble, plan, reading, aggregator, runs, most, release)
    return Measured(
        split,
        ensemble,
        votings,
        lambda: laboratory.confusions(
            split, votings, student, ensemble.identity, aggregator.noise_scale
        ),
    )


def _rejected(measured: Measured) -> Values:
    return [
        100 * (1 - v.n_answered / v.n_asked) if v.n_asked else math.nan for v in measured.votings
    ]


_ASIDE: tuple[Callable[[Measured], Values], ...] = (
    lambda m: [float(teacher_accuracies(m.split, m.ensemble.test_votes).mean())],
    METRICS["voting_accuracy"],
    _rejected,
)


def _cell(
    spec: TableSpec, reading: Reading, row: PublishedNumber, per_seed: list[list[Values]]
) -> Cell:
    main, teachers, voting, rejected = (
        summarise([seed[part] for seed in per_seed]) for part in range(4)
    )
    return Cell(
        target=spec.name,
        reading=reading.name,
        dataset=row.dataset,
        metric=row.metric,
        setup=row.setup,
        higher_budget=row.higher_budget,
        ratio=row.ratio,
        variant=row.variant,
        published=row.value,
        teacher_accuracy=teachers["ours"],
        voting_accuracy=voting["ours"],
        rejected=rejected["ours"],
        **main,
    )
