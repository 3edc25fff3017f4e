"""Budgets that go by class: what they do to the student, and what public class shares mend.

The setting of Boenisch et al. (PoPETs 2023), Section 6.3, on Adult: everybody grants ε = ln 2, but a share of
the people with an income above 50,000 grants more. Upsampling gives these more influence. Accounts are
worst-case, noise is seeded (these are experiments); 250 teachers; noisy histograms of all 7,000 public
records; the student regresses the evidence. Public shares of the classes are those that the data set's
description gives (24.78 % above 50,000, without unknowns).

    python -m reproduction.benchmarks.bias --data-dir DATA [--seeds 3] [--jobs -1] [--out bias.csv]

Per class: how right a teacher is, the teachers' majority without noise, and the student (on 1,000 test
records); then all test records together, and the share that the student names as above 50,000.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from collegium import GNMax, VoteTable
from collegium.distillation.regression import RegressionStudent
from collegium.distillation.share_matching import match_shares
from collegium.pate.teacher_effects import sensitive_teacher_effects
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.voting.least_noise import least_sigma
from collegium.pate.voting.targets import class_posterior
from collegium.personalisation import Plan
from reproduction.kinds import TEACHERS
from reproduction.readings import SOUND
from reproduction.records import SCENES, Split, load_split
from reproduction.society import Society, everybody, two_groups
from reproduction.votings import vote

ABOVE = 1  # number of the class ">50K"
SHARES = np.array([0.7522, 0.2478])
SOCIETIES: dict[str, Society] = {
    "ln 2 for all": everybody(math.log(2)),
    "ln 16 for 25 % of >50K": two_groups(math.log(2), math.log(16), 0.25, ABOVE),
    "ln 16 for all >50K": two_groups(math.log(2), math.log(16), 1.0, ABOVE),
}


def ask(split: Split, plan: Plan, society: Society, balanced: bool, jobs: int) -> VoteTable:
    """Train the teachers and ask them about the public records."""
    kind = TEACHERS["tabular"]
    private, public, _ = split.view(kind.view)
    budgets = society.budgets(split.codes_private, split.seed)
    ensemble = TeacherEnsemble(
        kind.make(split),
        split.seed,
        n_jobs=jobs,
        n_classes=split.n_classes,
        class_shares=SHARES if balanced else None,
    )
    assignment = plan.assign(budgets, str(split.seed).encode(), "balanced")
    teachers = ensemble.train(private, split.codes_private, assignment)
    table = ensemble.ask(teachers, public)
    return VoteTable.from_predictions(table, split.n_classes, allow_abstention=True)


def students(split: Split, plan: Plan, votes: VoteTable) -> dict[str, Any]:
    """Let the teachers vote and train students on what is released, with and without matched shares."""
    aggregator = GNMax(sigma=least_sigma(plan.electorate(split.seed), votes.n_queries))
    released = vote(votes, plan, SOUND, aggregator, (split.seed, 0), release="histogram")
    total = float(split.scene.n_teachers)
    targets = class_posterior(released.noisy_counts, aggregator.sigma, total)
    _, public, _ = split.view("principal")
    plain = RegressionStudent(random_state=split.seed)
    plain = plain.fit_released(public, released.queries, targets)
    return {"none": plain, "student": match_shares(plain, public, np.arange(2), SHARES)}


def by_class(truth: NDArray[np.intp], predicted: NDArray[np.intp]) -> dict[str, float]:
    """Accuracy in percent within each class, over all, and how often the smaller class is named."""
    return {
        "student ≤50K": 100 * float((predicted[truth == 0] == 0).mean()),
        "student >50K": 100 * float((predicted[truth == 1] == 1).mean()),
        "student all": 100 * float((predicted == truth).mean()),
        "named >50K": 100 * float((predicted == 1).mean()),
    }


def measure(split: Split, jobs: int) -> list[dict[str, Any]]:
    """Measure all societies and mitigations on one split."""
    rows: list[dict[str, Any]] = []
    _, _, test = split.view("principal")
    for name, society in SOCIETIES.items():
        variant = "none" if len(society.epsilons) == 1 else "upsampling"
        budgets = society.budgets(split.codes_private, split.seed)
        plan = SOUND.personalisation(variant).plan_for(budgets, split.scene.n_teachers)
        for balanced in (False, True):
            votes = ask(split, plan, society, balanced, jobs)
            right = sensitive_teacher_effects(votes, [0, 1], split.codes_public, plan)
            for matched, student in students(split, plan, votes).items():
                used = [
                    *(["teachers"] if balanced else []),
                    *(["student"] if matched == "student" else []),
                ]
                rows.append(
                    {
                        "budgets": name,
                        "shares for": " and ".join(used) or "nobody",
                        "seed": split.seed,
                        "teacher ≤50K": 100 * right["teachers"].iloc[0],
                        "teacher >50K": 100 * right["teachers"].iloc[1],
                        "majority ≤50K": 100 * right["majority"].iloc[0],
                        "majority >50K": 100 * right["majority"].iloc[1],
                        **by_class(split.codes_test, student.predict(test)),
                    }
                )
                print(f"seed {split.seed}: {name}, shares for {rows[-1]['shares for']}", flush=True)
    return rows


def main() -> None:
    """Run, and print means and standard deviations over the splits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, help="CSV of every split")
    options = parser.parse_args()
    rows = []
    for seed in range(options.seeds):
        rows += measure(load_split(SCENES["adult"], options.data_dir, seed, None), options.jobs)
    table = pd.DataFrame(rows)
    if options.out:
        table.to_csv(options.out, index=False, float_format="%.4f")
    cells = table.drop(columns="seed").groupby(["budgets", "shares for"], sort=False)
    mean, deviation = cells.mean(), cells.std(ddof=1)
    shown = mean.round(2).astype(str) + " ± " + deviation.round(2).astype(str)
    print(shown.to_string() if options.seeds > 1 else mean.round(2).to_string())


if __name__ == "__main__":
    main()
