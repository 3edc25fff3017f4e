"""Every owner with a budget of their own: what it costs in time, and in votes.

    python benchmarks/fine_budgets.py plans        # 37,000 budgets, 250 teachers, six distributions
    python benchmarks/fine_budgets.py policies     # ten awkward policies, each personalisation
    python benchmarks/fine_budgets.py run          # an estimator of each method, fitted end to end

Records are made up (a table of 37,000 people and 14 features, of Adult's size): what is measured is time,
memory and the use of budgets, not accuracy.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from collegium.budgets import Budget, Budgets
from collegium.errors import InputError
from collegium.personalisation import Hybrid, Personalisation, Upsampling, Vanishing, Weighting
from collegium.personalisation.bins import few_budgets
from collegium.personalisation.plan import Plan
from collegium.personalisation.rules import mu_of, relative_influence

PEOPLE, TEACHERS = 37_000, 250

#: Budgets and numbers of people, to be planned with so many teachers.
POLICIES: dict[str, tuple[dict[str, tuple[float, int]], int]] = {
    "the paper's": ({"high": (1, 540), "average": (2, 370), "low": (3, 90)}, 100),
    "one person at 0.1": ({"one": (0.1, 1), "many": (1, 999)}, 50),
    "one person at 30": ({"many": (1, 999), "one": (30, 1)}, 50),
    "tiny groups on both sides": ({"a": (0.2, 3), "b": (1, 500), "c": (1.5, 490), "d": (8, 7)}, 40),
    "few teachers, three groups": ({"a": (1, 540), "b": (2, 370), "c": (3, 90)}, 4),
    "a ladder": ({f"{i:02}": (0.25 * i, 12) for i in range(1, 25)}, 12),
    "two halves far apart": ({"a": (0.1, 500), "b": (10, 500)}, 50),
    "half want no privacy": ({"a": (0.5, 500), "b": (float("inf"), 500)}, 50),
    "heavy tail": ({f"{i:02}": (0.3 * 1.5**i, max(1, 2**10 >> i)) for i in range(14)}, 60),
    "a tenth with 1,000 times as much": ({"a": (0.01, 900), "b": (10, 100)}, 30),
}


def used(plan: Plan, influence: dict[str, float]) -> tuple[float, float, float]:
    """Share of all budgets that is used, effective votes, and signal per noise at one number of answers.

    Per owner: Δ is scaled so that the first budget just lasts. The signal is E[Δ] / √(E[Δ²] + R·E[μ]²) in
    units of what equal, exactly used budgets would give: R, a tenth of the teachers, is the noise's variance
    over that of the votes.
    """
    groups = plan.groups
    people = np.array([group.owners for group in groups.values()], dtype=float)
    mu = np.array([influence[name] for name in groups])
    cost = np.array([group.sensitivity * group.frequency**0.5 for group in groups.values()])
    says = np.array([group.sensitivity * group.frequency for group in groups.values()])
    says = says * np.min(mu / cost)
    people, noise = people / people.sum(), plan.n_nominal / 10
    signal = people @ says / np.sqrt(people @ says**2 + noise * (people @ mu) ** 2)
    return (
        float(people @ says / (people @ mu)),
        plan.effective_votes,
        float(signal * np.sqrt(1 + noise)),
    )


def policies() -> None:
    """Plan ten policies with each personalisation."""
    kinds = [Weighting(), Upsampling(), Vanishing(), Hybrid(noise_to_votes=1e9), Hybrid()]
    print("| policy | " + " | ".join(k.name + " †" * (k == kinds[3]) for k in kinds) + " |")
    print("|---|" + "---|" * len(kinds))
    for title, (groups, n_teachers) in POLICIES.items():
        cells = []
        for kind in kinds:
            try:
                plan, influence = planned(kind, groups, n_teachers)
            except InputError:
                cells.append("refused")
                continue
            share, votes, signal = used(plan, influence)
            cells.append(f"{100 * share:.1f} %, {signal:.3f}, {votes:.0f} votes")
        print(f"| {title} | " + " | ".join(cells) + " |")


def planned(
    kind: Personalisation, groups: dict[str, tuple[float, int]], n_teachers: int
) -> tuple[Plan, dict[str, float]]:
    """Plan a policy, beside what its budgets buy."""
    budgets = {name: Budget(epsilon) for name, (epsilon, _) in groups.items()}
    plan = kind.plan(budgets, {name: size for name, (_, size) in groups.items()}, n_teachers)
    return plan, relative_influence(budgets)


def distributions() -> dict[str, np.ndarray[Any, Any]]:
    """ε of 37,000 people, all different."""
    draw = np.random.default_rng(0)
    return {
        "lognormal, σ = 0.5": np.exp(draw.normal(0, 0.5, PEOPLE)),
        "lognormal, σ = 1": np.exp(draw.normal(0, 1, PEOPLE)),
        "uniform, 0.1 to 10": draw.uniform(0.1, 10, PEOPLE),
        "uniform, 0.5 to 3": draw.uniform(0.5, 3, PEOPLE),
        "Pareto from 0.5, α = 2": 0.5 * (1 + draw.pareto(2, PEOPLE)),
        "Pareto from 0.5, α = 1.5": 0.5 * (1 + draw.pareto(1.5, PEOPLE)),
    }


def plans() -> None:
    """Plan 37,000 budgets: one person each."""
    print(
        "| ε | s of one core | groups | teachers | pools | trained | efficiency | used, per owner | in bins |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for title, epsilon in distributions().items():
        budgets = Budgets.from_epsilons(epsilon)
        kind = Hybrid()
        start = time.process_time()
        few = kind.few_budgets(budgets, TEACHERS)
        plan = kind.plan_for(few, TEACHERS)
        seconds = time.process_time() - start
        share = used(plan, mu_of(dict(few.groups)))[0] * few.kept
        seen = sum(g.owners * g.duplicates for g in plan.groups.values()) / PEOPLE
        print(
            f"| {title} | {seconds:.1f} | {len(few.groups)} | {plan.n_teachers} | {len(plan.pools)} | "
            f"{seen:.2f} | {100 * plan.efficiency:.1f} % | {100 * share:.1f} % | "
            f"{100 * few_budgets(budgets).kept:.1f} % |"
        )


def run() -> None:
    """Fit both estimators, and tell time, memory and how long what they print is."""
    import collegium as cg

    draw = np.random.default_rng(1)
    X = draw.normal(size=(PEOPLE + 2_000, 14))
    y = (X[:, 0] + X[:, 1] + draw.normal(size=len(X)) > 0).astype(int)
    owners = [f"person {i}" for i in range(PEOPLE)]
    budgets = Budgets.from_epsilons(distributions()["lognormal, σ = 1"], owners=owners)
    made: dict[str, Callable[[], Any]] = {
        "PATEClassifier": lambda: cg.PATEClassifier(
            n_teachers=TEACHERS, personalisation="hybrid", random_state=0, n_jobs=1, classes=[0, 1]
        ),
        "DPSGDClassifier": lambda: cg.DPSGDClassifier(steps=50, classes=[0, 1]),
    }
    for name, make in made.items():
        start = time.process_time()
        model = make().fit(X[:PEOPLE], y[:PEOPLE], budgets=budgets, X_public=X[PEOPLE:])
        seconds, privacy = time.process_time() - start, model.privacy_
        used_up = privacy.by_group()["spent_share"]
        print(
            f"{name}: {seconds:.1f} s of one core; {len(privacy.groups)} groups, at most "
            f"{used_up.max():.4f} of a budget; statement of {len(privacy.sentences())} sentences; "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"plans": plans, "policies": policies, "run": run}[sys.argv[1]]()
