"""PATE by rule beside its old recipe, on the splits of ``direct_training``.

Worst case, δ = 1e-5, seeded noise, shards of equal size: these are experiments. Teachers, view and students
follow from public numbers (``collegium.pate.by_rule``), which student is published from released answers
(``collegium.distillation.held_out``). Settings were chosen on parts of the training images; test records
measure only.

    python -m reproduction.benchmarks.pate_recipe images --dataset mnist --data-dir DATA --out CSV
    python -m reproduction.benchmarks.pate_recipe show --out CSV

What stands in the file already is not computed again; ``--cache`` keeps features.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.accounting import gdp_mu
from collegium.distillation.best_of_two import EitherStudent
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.held_out import choose_held_out
from collegium.distillation.regression import RegressionStudent
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.pate.by_rule import VoteChoice, votes_by_rule
from collegium.pate.queries.doubtful_choice import most_doubtful
from collegium.pate.queries.selection import DOUBTFUL
from collegium.pate.voting.targets import class_posterior
from reproduction.benchmarks.direct_training import (
    DELTA,
    MIXED,
    Floats,
    Images,
    Table,
    split_images,
)

EPSILONS = (1.0, 0.0, 0.3, 3.0, 0.1)  # 0: groups of 1, 2 and 3
REGRESSION, PROCESS = "evidence-regression", "gaussian-process"


def mean_mu(epsilon: float) -> float:
    """μ of a person, on average."""
    return (
        gdp_mu(epsilon, DELTA) if epsilon else sum(s * gdp_mu(e, DELTA) for e, s in MIXED.items())
    )


def count_votes(
    rows: Floats, codes: NDArray[np.intp], private: NDArray[np.intp], asked: Floats, n: int
) -> Floats:
    """Train n ridge teachers on shards of equal size, and let them vote."""
    teacher: Any = RidgeTeachers()
    counts = np.zeros((len(asked), 10))
    shards = np.array_split(private, n)
    for first in range(0, n, teacher.teachers_at_once):
        some = shards[first : first + teacher.teachers_at_once]
        pairs = [(rows[part], codes[part]) for part in some]
        models = teacher.fit_shards(pairs, range(first, first + len(some)), 10)
        for answers in teacher.predict_shards(models, asked):
            counts[np.arange(len(asked)), answers] += 1
    return counts


def measure(
    world: Images, rows: Floats, counts: Floats, epsilon: float, choice: VoteChoice, seed: int
) -> tuple[dict[str, tuple[float, float]], dict[str, str]]:
    """Release, train both students, choose: accuracies in % on test and public records, and why."""
    public, test, y = world.public, world.test, world.codes
    queries, targets = released(rows[public], counts, epsilon, choice, seed)
    views = {REGRESSION: (rows[public], rows[test])}
    views[PROCESS] = (world.points[: len(public)], world.points[len(public) :])
    students: dict[str, Any] = {
        REGRESSION: RegressionStudent(powers=(1.0,), widths=(), random_state=seed),
        PROCESS: GaussianProcessStudent(n_components=None, random_state=seed),
    }
    right = {}
    for name, student in students.items():
        fitted = student.fit_released(views[name][0], queries, targets)
        known = (fitted.beliefs_.argmax(axis=1) == y[public]).mean()
        right[name] = (
            100 * float((fitted.predict(views[name][1]) == y[test]).mean()),
            100 * float(known),
        )
    process, regression = ((students[name], views[name][0]) for name in (PROCESS, REGRESSION))
    told = choose_held_out(process, regression, queries, targets)
    best = REGRESSION if told.second else PROCESS
    right["chosen"] = right[best]
    why = {"chosen": f"{best}: {told.differ:.4f} differ, {told.lead:.2f} standard errors"}
    if epsilon == 1:  # as PATEClassifier() has it
        either = EitherStudent(random_state=seed).fit_released(rows[public], queries, targets)
        known = (either.beliefs_.argmax(axis=1) == y[public]).mean()
        named = either.predict(rows[test])
        right["either"] = (100 * float((named == y[test]).mean()), 100 * float(known))
        why["either"] = either.why_
    return right, why


def released(
    points: Floats, counts: Floats, epsilon: float, choice: VoteChoice, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Ask as the choice says: rows that were answered, and what a student learns from."""
    sigma = math.sqrt(2 * choice.answers) / mean_mu(epsilon)
    noisy = counts + np.random.default_rng([seed, 1]).normal(0, sigma, counts.shape)

    def read(queries: NDArray[np.intp]) -> NDArray[np.float64]:
        even = np.full(10, 0.1)
        return class_posterior(noisy[queries], sigma, choice.n_teachers, "mixture", prior=even)

    order = np.random.default_rng([seed, 3]).permutation(len(counts))
    half = (choice.answers + 1) // 2
    if choice.query_order != DOUBTFUL:
        return order[: choice.answers], read(order[: choice.answers])
    wide = np.asarray(points, dtype=np.float64)
    ranking = most_doubtful(wide, order, order[:half], read(order[:half]))
    further = ranking[~np.isin(ranking, order[:half])][: choice.answers - half]
    queries = np.concatenate([order[:half], further])
    return queries, read(queries)


def by_rule(world: Images, epsilon: float) -> VoteChoice:
    """Apply the rule to one split."""
    n = len(world.private)
    return votes_by_rule(n, n * mean_mu(epsilon), len(world.public), 10)


def run_images(
    table: Table,
    dataset: str,
    data_dir: Path,
    cache: Path | None,
    seeds: int,
    epsilons: Sequence[float],
) -> None:
    """Measure on test records."""
    for epsilon in epsilons:
        for seed in range(1, seeds + 1):
            if table.has(dataset, seed, f"{epsilon:.4g}", "both", "chosen"):
                continue
            world = split_images(dataset, data_dir, cache, seed)
            choice = by_rule(world, epsilon)
            rows = world.kernel[:, : choice.components]
            n = choice.n_teachers
            counts = count_votes(rows, world.codes, world.private, rows[world.public], n)
            plural = 100 * float((counts.argmax(axis=1) == world.codes[world.public]).mean())
            right, why = measure(world, rows, counts, epsilon, choice, seed)
            note = f"{n} teachers, {choice.components} components, plurality {plural:.2f}"
            for name, (test, public) in right.items():
                said = why.get(name, note)
                table.add(dataset, seed, epsilon, "both", name, test, public, "", said)


def show(table: Table) -> None:
    """Print means and standard deviations over the splits as a table."""
    groups: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    for row in table.rows:
        cell = groups.setdefault((row["dataset"], row["epsilon"]), defaultdict(list))
        cell[row["method"]].append((float(row["test"]), float(row["public"])))
    names = (REGRESSION, PROCESS, "chosen", "either")
    print("| | ε | " + " | ".join(f"{name}, test | public" for name in names) + " |")
    print("|---|--:|" + "--:|--:|" * len(names))
    for (dataset, epsilon), cell in sorted(groups.items()):
        numbers = []
        for name in names:
            if not cell[name]:
                numbers += ["", ""]
                continue
            values = np.array(cell[name])
            spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(2, math.nan)
            numbers += [
                f"{m:.2f} ± {s:.2f}" for m, s in zip(values.mean(axis=0), spread, strict=True)
            ]
        shown = "1-2-3" if float(epsilon) == 0 else epsilon
        print(f"| {dataset} | {shown} | " + " | ".join(numbers) + " |")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("images", "show"))
    parser.add_argument("--dataset", choices=("mnist", "fashion_mnist"), default="fashion_mnist")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS, help="0: 1-2-3")
    parser.add_argument("--out", type=Path, default=Path("pate-recipe.csv"))
    options = parser.parse_args()
    if options.what == "images":
        table = Table(options.out)
        run_images(
            table, options.dataset, options.data_dir, options.cache, options.seeds, options.epsilon
        )
    else:
        show(Table(options.out))


if __name__ == "__main__":
    main()
