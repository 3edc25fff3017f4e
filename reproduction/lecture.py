"""The rows of PATE 2017 and 2018 that the lecture and the sources quote, from the published votes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium import Budget, LNMax, Uniform, VoteTable
from collegium.accounting import rdp_to_epsilon
from collegium.accounting.votes.laplace_max import lnmax_log_q, lnmax_rdp
from collegium.data.datasets import default_data_dir
from collegium.personalisation import Plan
from reproduction.cells import Aim, Cell, summarise
from reproduction.laboratory import Ensemble, Laboratory
from reproduction.published import PublishedNumber, published_numbers
from reproduction.readings import PUBLISHED, Reading
from reproduction.records import DataNotThereError, Split
from reproduction.scores import accuracies, voting_accuracy
from reproduction.society import everybody
from reproduction.votings import Voting

NAME = "lecture-pate"
TITLE = "PATE 2017 (LNMax) and 2018 (Confident-GNMax) on MNIST, from the published votes"
DELTA = 1e-5
AIMS = {"sound": Aim("above", metrics=("student_accuracy",))}
_GAMMA = 0.1  # noise parameter of the analysis released with arXiv 1610.05755
_MOMENTS = np.arange(2.0, 10.0)  # its moments 1 … 8, as orders
_VOTES = "pate_votes/mnist_250_teachers.npy"
_QUERIES = "pate_votes/mnist_250_teachers_100_indices_used_by_student.npy"


def quoted_rows() -> list[tuple[PublishedNumber, float, int]]:
    """The quoted rows with their ε and number of queries or labels.

    Examples
    --------
    >>> [(row.dataset, epsilon, count) for row, epsilon, count in quoted_rows()][:2]
    [('mnist', 2.04, 100), ('mnist', 8.03, 1000)]
    """
    rows = []
    for row in published_numbers():
        found = re.fullmatch(r"eps=([\d.]+), (?:queries|labels)=(\d+)", row.setup)
        if found:
            rows.append((row, float(found[1]), int(found[2])))
    return rows


def run_lecture(laboratory: Laboratory, reading: Reading) -> list[Cell]:
    """Measure ε and the student's accuracy of each quoted row.

    As published: the source's mechanism and number of queries, its account, and a supervised student in
    place of the sources' semi-supervised ones (a GAN, virtual adversarial training). Sound: the
    published votes under the exact worst-case account with the published ε as the budget, and our best
    student.

    Raises
    ------
    DataNotThereError
        If the published votes or MNIST are not in the data folder.
    """
    options = laboratory.options
    _, runs = laboratory.seeds_and_runs(1, 5)
    if options.quick:
        split = laboratory.split("mnist-standard", 0)
        counts, queries = _votes_of_stand_ins(laboratory, split, reading)
    else:
        counts, queries = _published_votes(options.data_dir)
        split = laboratory.split("mnist-pate", 0)
    cells = []
    for row, epsilon, count in quoted_rows():
        if row.dataset != "mnist":
            continue
        if reading is not PUBLISHED:
            votings, spent = _sound(laboratory, split, counts, epsilon, runs, reading)
        elif row.variant == "LNMax":
            votings, spent = _laplace(counts, queries, count, runs)
        else:
            votings, spent = _confident(laboratory, split, counts, count, runs)
        mechanism, _ = laboratory.mechanism(reading, split, row.metric, _plan(epsilon, counts))
        student = laboratory.students_of(reading, split)
        identity = {**_ensemble(counts).identity, "row": row.setup}
        sigma = mechanism.noise_scale
        learnt = laboratory.confusions(split, votings, student, identity, sigma)
        right = [[voting_accuracy(split, voting) for voting in votings]]
        for metric, published, values in (
            ("epsilon", f"{epsilon:g}", spent),
            ("student_accuracy", row.value, accuracies(learnt).tolist()),
        ):
            cells.append(_cell(reading, row, metric, published, values, summarise(right)["ours"]))
    return cells


def _cell(
    reading: Reading,
    row: PublishedNumber,
    metric: str,
    published: str,
    values: list[float],
    right: float,
) -> Cell:
    return Cell(
        target=NAME,
        reading=reading.name,
        dataset=row.dataset,
        metric=metric,
        setup=row.setup,
        higher_budget="",
        ratio="",
        variant=row.variant,
        published=published,
        voting_accuracy=right,
        **summarise([values]),
    )


def _published_votes(data_dir: Path | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    folder = default_data_dir() if data_dir is None else data_dir
    for name in (_VOTES, _QUERIES):
        if not (folder / name).is_file():
            raise DataNotThereError(
                f"not there: {name} (the votes published with PATE 2017/2018) is not in the data folder"
            )
    counts: NDArray[Any] = np.load(folder / _VOTES, allow_pickle=False)
    queries: NDArray[Any] = np.load(folder / _QUERIES, allow_pickle=False)
    return counts.astype(np.intp), queries.astype(np.intp)


def _votes_of_stand_ins(
    laboratory: Laboratory, split: Split, reading: Reading
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Votes of a few small teachers in place of the published ones, to try the machinery."""
    society = everybody(1.0)
    plan = laboratory.plan(split, society, reading, "none")
    votes = laboratory.ensemble(split, society, plan, laboratory.teachers_of(reading, split)).votes
    counts = votes.counts(np.arange(votes.n_queries), np.ones(votes.n_teachers)).astype(np.intp)
    return counts, np.arange(min(100, votes.n_queries))


def _plan(epsilon: float, counts: NDArray[np.intp]) -> Plan:
    teachers = int(counts[0].sum())
    groups = {"everybody": Budget(epsilon, DELTA)}
    return Uniform().plan(groups, {"everybody": 240 * teachers}, teachers)


def _ensemble(counts: NDArray[np.intp]) -> Ensemble:
    votes = VoteTable.from_counts(counts)
    name = _VOTES if votes.n_teachers == 250 else "of stand-ins"
    nobody = np.empty((0, votes.n_teachers), dtype=np.int8)
    return Ensemble(votes, nobody, {"published votes": name, "seed": 0})


def _laplace(
    counts: NDArray[np.intp], queries: NDArray[np.intp], n_queries: int, runs: int
) -> tuple[list[Voting], list[float]]:
    """LNMax on the published 100 queries, or on as many random ones as the row names."""
    aggregator = LNMax(gamma=_GAMMA)
    votings, spent = [], []
    for run in range(runs):
        generator = np.random.default_rng([0, 3, run])
        chosen = generator.permutation(len(counts))[:n_queries]
        if n_queries == len(queries):
            chosen = queries
        noisy = counts[chosen] + generator.laplace(
            scale=aggregator.noise_scale, size=(len(chosen), 10)
        )
        votings.append(
            Voting(chosen, noisy.argmax(axis=1), len(chosen), len(chosen), np.empty((0, 10)))
        )
        rdp = lnmax_rdp(lnmax_log_q(counts[chosen], _GAMMA), [1.0], _GAMMA, _MOMENTS).sum(axis=0)
        spent.append(float(rdp_to_epsilon(rdp, _MOMENTS, DELTA, "mironov")[0][0]))
    return votings, spent


def _confident(
    laboratory: Laboratory, split: Split, counts: NDArray[np.intp], n_labels: int, runs: int
) -> tuple[list[Voting], list[float]]:
    ensemble, plan = _ensemble(counts), _plan(math.inf, counts)
    mechanism = split.scene.aggregator
    votings = laboratory.votings(ensemble, plan, PUBLISHED, mechanism, runs, n_labels)
    histories = laboratory.histories(
        ensemble, plan, PUBLISHED, mechanism, runs, max_labels=n_labels
    )
    return votings, [float(history.epsilon[-1, 0]) for history in histories]


def _sound(
    laboratory: Laboratory,
    split: Split,
    counts: NDArray[np.intp],
    epsilon: float,
    runs: int,
    reading: Reading,
) -> tuple[list[Voting], list[float]]:
    plan = _plan(epsilon, counts)
    mechanism, release = laboratory.mechanism(reading, split, "student_accuracy", plan)
    votings = laboratory.votings(_ensemble(counts), plan, reading, mechanism, runs, None, release)
    return votings, [epsilon] * runs
