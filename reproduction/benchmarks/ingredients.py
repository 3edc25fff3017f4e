"""What each ingredient of the sound reading gains on MNIST: added in turn, and taken away from the whole.

Groups of 34, 43 and 23 % of the owners; worst-case guarantee, δ = 1e-5, 250 teachers, 9,000 public and 1,000
test images; noise is seeded, shards have equal size: these are experiments. The ingredients:

exact account      Gaussian DP, composed and converted exactly; without it: the same queries in Rényi DP at
                   orders 2…50, Mironov's conversion (arXiv:1702.07476v3, Proposition 3), as in the seeds
exact weights      votes weigh as μ(ε, δ); without: as ε
histograms         noisy histograms of all public images, with the least noise that budgets pay for; without:
                   labels by Confident-GNMax (T = 200, σ_T = 150, σ = 40)
scattering         ridge teachers and students on scattering coefficients; without: support vector machines
                   as teachers, on 50 principal components of public pixels, which students see as well
semi-supervision   a Gaussian process on all public images; without: logistic regression on the answered ones
network            (with all others, where PyTorch is there) a network that sees pixels, led by a student on
                   scattering features

    python -m reproduction.benchmarks.ingredients --data-dir DATA --work-dir WORK [--seeds 3] [--only NAME]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from collegium import Budget, GNMax, Weighting
from collegium.accounting import gdp_epsilon, gdp_mu, rdp_to_epsilon
from collegium.accounting.renyi import SEED_ORDERS
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.supervised import fit_released
from collegium.pate.voting.least_noise import least_sigma
from collegium.pate.voting.targets import class_posterior
from collegium.personalisation import Plan
from reproduction.laboratory import Laboratory, Options
from reproduction.readings import SOUND
from reproduction.records import Split
from reproduction.society import DELTA, Society
from reproduction.votings import Voting

INGREDIENTS = ("exact account", "exact weights", "histograms", "scattering", "semi-supervision")
SHARES = (0.34, 0.43, 0.23)
BUDGETS = {"1-2-3": (1.0, 2.0, 3.0), "0.25-0.5-0.75": (0.25, 0.5, 0.75)}


@dataclass(frozen=True)
class Recipe:
    """Which ingredients are used, and what the row is called."""

    name: str
    used: frozenset[str]


def recipes() -> list[Recipe]:
    """List what is compared: one more each time, then all but one."""
    added = [Recipe("none of them", frozenset())]
    added += [
        Recipe(f"+ {name}", frozenset(INGREDIENTS[: number + 1]))
        for number, name in enumerate(INGREDIENTS)
    ]
    taken = [
        Recipe(f"all but {name}", frozenset(INGREDIENTS) - {name}) for name in INGREDIENTS[:-1]
    ]
    network = Recipe("all, and a network", frozenset({*INGREDIENTS, "network"}))
    return [*added, network, *taken]


def renyi_budget(budget: Budget) -> Budget:
    """What is left of a budget if Gaussian mechanisms are accounted for in Rényi DP at a few orders.

    A composition of Gaussian mechanisms with Σ μᵢ² = μ² has Rényi DP α·μ²/2. The largest μ that the
    conversion lets through is granted, written as a budget of the exact account. (At ε below
    log(1/δ)/49 = 0.235 the conversion alone costs more, at every order.)
    """

    def over(mu: float) -> float:
        rdp = np.asarray(SEED_ORDERS) * mu**2 / 2
        return float(rdp_to_epsilon(rdp, SEED_ORDERS, budget.delta, "mironov")[0]) - budget.epsilon

    mu = brentq(over, 1e-9, gdp_mu(budget.epsilon, budget.delta), xtol=1e-12)
    return Budget(gdp_epsilon(mu, budget.delta), budget.delta)


def plan_of(recipe: Recipe, split: Split, society: Society) -> Plan:
    """Plan weights; an inexact account is one that grants less."""
    rule = "exact" if "exact weights" in recipe.used else "budget"
    budgets = society.budgets(split.codes_private, split.seed)
    plan = Weighting(rule=rule).plan_for(budgets, split.scene.n_teachers)
    if "exact account" in recipe.used:
        return plan
    groups = {
        name: replace(group, budget=renyi_budget(group.budget))
        for name, group in plan.groups.items()
    }
    return replace(plan, groups=groups)


def student_of(recipe: Recipe, seed: int) -> Any:
    """Make the student; its view is :func:`view_of`."""
    if "network" in recipe.used:
        from collegium.distillation.neural_student import NeuralStudent

        return NeuralStudent(features="scattering", random_state=seed)
    if "semi-supervision" in recipe.used:
        return GaussianProcessStudent(
            n_components=None if "scattering" in recipe.used else 0, random_state=seed
        )
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))


def view_of(recipe: Recipe) -> str:
    """Name what the student sees."""
    if "network" in recipe.used:
        return "pixels"
    if "scattering" not in recipe.used:
        return "components"
    return "points" if "semi-supervision" in recipe.used else "scattering"


def measure(laboratory: Laboratory, recipe: Recipe, budgets: str, seed: int) -> dict[str, Any]:
    """Measure one recipe on one split."""
    split = laboratory.split("mnist", seed)
    society = Society(BUDGETS[budgets], SHARES, delta=DELTA)
    plan = plan_of(recipe, split, society)
    teacher = "scattering-ridge" if "scattering" in recipe.used else "components-svm"
    ensemble = laboratory.ensemble(split, society, plan, teacher)
    n_public = len(split.codes_public)
    aggregator, release = split.scene.aggregator, "labels"
    if "histograms" in recipe.used:
        aggregator, release = GNMax(sigma=least_sigma(plan.electorate(seed), n_public)), "histogram"
    voting = laboratory.votings(ensemble, plan, SOUND, aggregator, 1, None, release)[0]
    truth = split.codes_public[voting.queries]
    return {
        "budgets": budgets,
        "recipe": recipe.name,
        "seed": seed,
        "answers": len(voting.labels),
        "teachers right": 100 * float((ensemble.test_votes == split.codes_test[:, None]).mean()),
        "answers right": 100 * float((voting.labels == truth).mean()) if len(truth) else math.nan,
        "student right": student_accuracy(recipe, split, voting, aggregator.noise_scale),
    }


def student_accuracy(recipe: Recipe, split: Split, voting: Voting, sigma: float) -> float:
    """Train the student and test it, in percent; NaN without an answer."""
    if not len(voting.labels):
        return math.nan
    targets = None
    if len(voting.noisy_counts):
        targets = class_posterior(voting.noisy_counts, sigma, float(split.scene.n_teachers))
    _, public, test = split.view(view_of(recipe))
    student = fit_released(
        student_of(recipe, split.seed),
        public,
        voting.queries,
        voting.labels,
        np.arange(split.n_classes),
        targets,
        tell=lambda line: None,
    )
    return 100 * float(np.mean(student.predict(test) == split.codes_test))


def main() -> None:
    """Run, and print means and standard deviations over the splits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--work-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--only", default="", help="recipes whose names contain this")
    parser.add_argument("--out", type=Path, help="CSV of every split")
    options = parser.parse_args()
    settings = Options(n_jobs=options.jobs, data_dir=options.data_dir, work_dir=options.work_dir)
    laboratory = Laboratory(settings)
    rows = []
    for seed in range(options.seeds):
        for budgets in BUDGETS:
            for recipe in (one for one in recipes() if options.only in one.name):
                rows.append(measure(laboratory, recipe, budgets, seed))
                print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    if options.out:
        table.to_csv(options.out, index=False, float_format="%.4f")
    cells = table.drop(columns="seed").groupby(["budgets", "recipe"], sort=False)
    shown = cells.mean().round(2).astype(str)
    if options.seeds > 1:
        shown = shown + " ± " + cells.std(ddof=1).round(2).astype(str)
    print(shown.to_string())


if __name__ == "__main__":
    main()
