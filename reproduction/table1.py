"""The arithmetic behind the paper's Table 1: what each group spends, whoever its budget is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reproduction.laboratory import Laboratory
from reproduction.published import find_published
from reproduction.readings import PUBLISHED
from reproduction.society import everybody
from reproduction.tables import SOCIETIES, TABLES
from reproduction.votings import History

Floats = NDArray[np.float64]
_MOST_LABELS = 3000
_VARIANTS = {
    "upsampling": "upsampling",
    "weighting": "weighting",
    "algorithm2": "weighting",
}
"""Our variants, and the published column that they stand beside."""


@dataclass(frozen=True)
class Explained:
    """One way to vote in one society, with budgets tied to groups and with both sorted.

    Attributes
    ----------
    setup : str
        As printed in the table.
    variant : str
        ``none``, ``upsampling``, ``weighting`` (weights ∝ ε), or ``algorithm2`` (Algorithm 2 as printed).
    shares, budgets : tuple of float
        Of the groups.
    sensitivities : tuple of float
        Δ of each group, when all teachers' weights add up to their nominal number: votes that one
        record moves.
    published : str
        The published number of labels; empty for ``algorithm2`` where it is not a column of its own.
    tied : float
        Labels until the first group has spent its own budget.
    sorted_apart : float
        Labels until the i-th smallest cost exceeds the i-th smallest budget.
    spent_apart : tuple of float
        ε that each group has spent after ``sorted_apart`` labels.
    baseline : float
        Labels without individual budgets, at the smallest of them.
    published_baseline : float
        The same, as published.
    """

    setup: str
    variant: str
    shares: tuple[float, ...]
    budgets: tuple[float, ...]
    sensitivities: tuple[float, ...]
    published: str
    tied: float
    sorted_apart: float
    spent_apart: tuple[float, ...]
    baseline: float
    published_baseline: float

    @property
    def published_ratio(self) -> float:
        """Published labels over published baseline."""
        return float(self.published) / self.published_baseline


def explain_table1(laboratory: Laboratory) -> list[Explained]:
    """Measure labels of the paper's Table 1 (MNIST), with budgets tied to groups and with both sorted.

    Costs are those of the as-published reading. Each voting goes on beyond all budgets, and what every group
    has spent after each label is compared with budgets in both ways.

    Raises
    ------
    DataNotThereError
        If MNIST is not in the data folder.
    """
    spec = TABLES["paper-1"]
    seeds, runs = laboratory.seeds_and_runs(spec.seeds, spec.runs)
    explained = []
    for setup, society in SOCIETIES.items():
        uniform = everybody(min(society.epsilons))
        budgets = np.array(society.epsilons)
        found: dict[str, list[History]] = {}
        moves: dict[str, tuple[float, ...]] = {}
        for seed in range(seeds):
            split = laboratory.split(spec.scenes["mnist"], seed)
            for variant in ("none", *_VARIANTS):
                people = uniform if variant == "none" else society
                plan = laboratory.plan(split, people, PUBLISHED, variant)
                teacher = laboratory.teachers_of(PUBLISHED, split)
                ensemble = laboratory.ensemble(split, people, plan, teacher)
                scale = plan.electorate(0).ballot(0).scale
                moves[variant] = tuple(g.sensitivity / scale for g in plan.groups.values())
                found.setdefault(variant, []).extend(
                    laboratory.histories(
                        ensemble,
                        plan,
                        PUBLISHED,
                        split.scene.aggregator,
                        runs,
                        max_labels=_MOST_LABELS,
                    )
                )
        baseline = float(np.mean([h.labels_within(budgets.min()) for h in found["none"]]))
        for variant, column in _VARIANTS.items():
            apart = [sorted_apart(history, budgets) for history in found[variant]]
            spent = [_spent(h, n) for h, n in zip(found[variant], apart, strict=True)]
            explained.append(
                Explained(
                    setup=setup,
                    variant=variant,
                    shares=society.shares,
                    budgets=society.epsilons,
                    sensitivities=moves[variant],
                    published=_published(setup, column),
                    tied=float(np.mean([h.labels_within(budgets) for h in found[variant]])),
                    sorted_apart=float(np.mean(apart)),
                    spent_apart=tuple(np.mean(spent, axis=0).tolist()),
                    baseline=baseline,
                    published_baseline=float(_published(setup, "none")),
                )
            )
    return explained


def sorted_apart(history: History, budgets: Floats) -> int:
    """Labels where the i-th smallest cost is compared with the i-th smallest budget, query by query."""
    within = np.sort(history.epsilon, axis=1) <= np.sort(budgets)
    return history.labels_while(np.asarray(within.all(axis=1)))


def _spent(history: History, n_labels: int) -> Floats:
    return history.at_labels(n_labels)[-1] if n_labels else np.zeros(history.epsilon.shape[1])


def _published(setup: str, variant: str) -> str:
    row = find_published(
        "paper", "1", metric="labels", dataset="mnist", setup=setup, variant=variant
    )
    return row.value if row else ""


def explanation(one: Explained) -> list[str]:
    """Say in lines of text what a row shows."""
    names = {"algorithm2": "weighting, Algorithm 2 as printed", "weighting": "weighting ∝ ε"}
    groups = "; ".join(
        f"{share:.0%} at ε = {budget:g}: Δ = {move:.3f}"
        for share, budget, move in zip(one.shares, one.budgets, one.sensitivities, strict=True)
    )
    spent = ", ".join(
        f"{value:.2f} of {budget:g}"
        for value, budget in zip(one.spent_apart, one.budgets, strict=True)
    )
    return [
        f"{names.get(one.variant, one.variant)} ({groups})",
        f"    published {one.published} labels, {one.published_ratio:.2f} times its baseline",
        f"    budgets tied to groups:  {one.tied:6.0f} labels, {one.tied / one.baseline:.2f} times ours",
        f"    costs and budgets sorted: {one.sorted_apart:5.0f} labels, "
        f"{one.sorted_apart / one.baseline:.2f} times ours; spent by then: ε = {spent}",
    ]
