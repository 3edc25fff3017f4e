"""Made-up report data for tests: every kind of study that a report must show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from collegium import Budget, PrivacyStatement, Upsampling, Vanishing, Weighting
from collegium.accounting import Neighbours
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.statement import Answers, GroupSpending
from collegium.evaluation.effects import (
    ClassEffect,
    Effects,
    GroupEffect,
    influence_shares,
    measure_effects,
)
from collegium.evaluation.quality import Quality, judge_by_answers, measure_quality
from collegium.pate.voting.history import SpendingPoint
from collegium.personalisation import Personalisation, Plan
from collegium.report.page import render_page
from collegium.study.methods.votes.page import VotesReport, votes_page

ADJACENCY = "all records of one owner are added, removed or replaced"
CONFIDENT = {"name": "confident", "threshold": 200.0, "sigma_threshold": 150.0, "sigma": 40.0}
DISTINCTIVE = 0.123454321
THREE = {"high": Budget(math.log(2)), "average": Budget(2.0), "low": Budget(3.0)}
SIZES = {"high": 5400, "average": 3700, "low": 900}


def render_report(data: VotesReport) -> str:
    """Write the page about votes."""
    return render_page(votes_page(data))


def make(
    budgets: Mapping[str, Budget] | None = None,
    sizes: Mapping[str, int] | None = None,
    *,
    personalisation: Personalisation | None = None,
    spent_share: float = 0.99,
    points: int = 24,
    classes: tuple[str, ...] = ("benign", "malignant"),
    labels: tuple[int, ...] | None = None,
) -> VotesReport:
    """Make a worst-case study that went well."""
    budgets = THREE if budgets is None else budgets
    sizes = sizes or {name: SIZES.get(name, 1000) for name in budgets}
    plan = (personalisation or Weighting()).plan(budgets, sizes, 100)
    ends = {
        name: spent_share * group.utilisation * min(group.budget.epsilon, 4.0)
        for name, group in plan.groups.items()
    }
    history = [
        SpendingPoint(
            asked=32 * step,
            labels=14 * step,
            epsilon_spent={name: end * math.sqrt(step / points) for name, end in ends.items()},
        )
        for step in range(1, points + 1)
    ]
    groups = tuple(
        GroupSpending(name, sizes[name], budget, ends[name]) for name, budget in budgets.items()
    )
    labels = labels or tuple((60 + 37 * i % 91) * 5 // len(classes) for i in range(len(classes)))
    return VotesReport(
        title="Biopsies of the city hospital",
        privacy=PrivacyStatement(
            "worst-case",
            ADJACENCY,
            True,
            groups,
            Answers.LABELS,
            Neighbours.ANY_CHANGE,
            in_short=Arrangement().in_short,
        ),
        plan=plan,
        aggregator=CONFIDENT,
        scale=plan.n_teachers / plan.n_nominal,
        stop_reason="budget",
        n_public=2000,
        n_asked=max(32 * points, sum(labels)),
        n_answered=sum(labels),
        n_reinforced=0,
        n_lost=3,
        effects=effects_of(plan, classes, labels),
        history=history,
        teacher="RandomForestClassifier(n_estimators=50)",
        student="LogisticRegression(C=1.0)",
        label_accuracy=0.957,
        quality=quality_of(classes),
        n_test=569,
        settings={
            "seed of the assignment": "20240917",
            "order of queries": "shuffled, public seed 3",
        },
        versions={"collegium": "0.1.0", "numpy": "2.1.0", "python": "3.11.9"},
    )


def quality_of(classes: tuple[str, ...], n_right: int = 530) -> Quality:
    """Judge a student by 569 test records, the first of which it gets right."""
    classes = tuple(dict.fromkeys(classes))
    truth = np.array([classes[i % len(classes)] for i in range(569)])
    wrong = np.array([classes[(i + 1) % len(classes)] for i in range(569)])
    predicted = np.where(np.arange(569) < n_right, truth, wrong)
    beliefs = np.full((569, len(classes)), 0.3 / len(classes))
    beliefs[predicted[:, None] == np.array(classes)] += 0.7
    found = measure_quality(classes, truth, predicted, beliefs)
    assert found is not None
    return found


def effects_of(plan: Plan, classes: tuple[str, ...], labels: tuple[int, ...]) -> Effects:
    """Effects with public truth: right more often in some classes and groups than in others."""
    test = 40
    return Effects(
        tuple(
            ClassEffect(
                name,
                1 / len(classes),
                n,
                n,
                1 / (1 + i % 7) if n else None,
                test,
                (i % 9) / 9,
                1 / test,
            )
            for i, (name, n) in enumerate(zip(classes, labels, strict=True))
        ),
        tuple(
            GroupEffect(
                name,
                group.owners,
                1 / len(plan.groups),
                share,
                share * len(plan.groups),
                test,
                0.5 + i / 99,
            )
            for i, ((name, group), share) in enumerate(
                zip(plan.groups.items(), influence_shares(plan).values(), strict=True)
            )
        ),
    )


def seeded() -> VotesReport:
    """An experiment with seeded noise."""
    data = make()
    return replace(data, privacy=replace(data.privacy, noise_is_private=False))


def data_dependent(epsilon_spent: float = DISTINCTIVE) -> VotesReport:
    """A data-dependent study; its history should be empty, but is not."""
    data = make()
    groups = tuple(replace(row, epsilon_spent=epsilon_spent) for row in data.privacy.groups)
    history = [
        SpendingPoint(point.asked, point.labels, dict.fromkeys(point.epsilon_spent, epsilon_spent))
        for point in data.history
    ]
    statement = replace(data.privacy, guarantee="data-dependent", groups=groups)
    return replace(data, privacy=statement, history=history)


def unlimited() -> VotesReport:
    """One group without any privacy."""
    return make({"strict": Budget(1.0), "volunteers": Budget(math.inf)})


def all_unlimited() -> VotesReport:
    """Nobody has any privacy."""
    return make({"volunteers": Budget(math.inf)})


def ten_classes() -> VotesReport:
    """Ten classes, upsampling with rounding waste."""
    names = ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker")
    return make(
        personalisation=Upsampling(), classes=(*names, "bag", "ankle boot"), spent_share=0.97
    )


def eight_groups() -> VotesReport:
    """Eight groups, 100 classes, vanishing, budgets far apart."""
    budgets = {
        f"level {number} of 8": Budget(epsilon, delta)
        for number, (epsilon, delta) in enumerate(
            [
                (0.1, 1e-6),
                (0.5, 1e-5),
                (1, 1e-5),
                (1.1, 1e-5),
                (2, 1e-5),
                (4, 1e-5),
                (8, 1e-5),
                (50, 1e-5),
            ],
            start=1,
        )
    }
    data = make(
        budgets,
        personalisation=Vanishing(),
        classes=tuple(f"class {number}" for number in range(100)),
    )
    return replace(data, scale=0.4312, stop_reason="queries")


def close_groups() -> VotesReport:
    """Eight groups on a linear axis, whose ends lie close together."""
    return make({f"ε={1 + number / 4:g}": Budget(1 + number / 4) for number in range(8)})


def nothing_released() -> VotesReport:
    """Interrupted before the first label."""
    data = make(labels=(0, 0), points=1)
    effects = measure_effects(data.plan, data.class_names, [])
    return replace(
        data,
        effects=effects,
        history=(),
        stop_reason="interrupted",
        n_asked=0,
        n_answered=0,
        label_accuracy=None,
        quality=None,
        n_test=0,
        settings={},
        versions={},
    )


def no_better() -> VotesReport:
    """A student that names the larger class for every record."""
    truth = np.array(["no"] * 880 + ["yes"] * 120)
    beliefs = np.tile([0.9, 0.1], (1000, 1))
    found = measure_quality(["no", "yes"], truth, np.full(1000, "no"), beliefs)
    return replace(make(classes=("no", "yes")), quality=found)


def no_truth() -> VotesReport:
    """No public record has a known class."""
    data = make(classes=("no", "yes"), labels=(60, 20))
    answers = np.repeat([0, 1], [60, 20])
    predicted = np.repeat(["no", "yes"], [1500, 500])
    found = judge_by_answers(["no", "yes"], np.arange(80), answers, None, predicted)
    effects = measure_effects(data.plan, ["no", "yes"], np.array(["no", "yes"])[answers])
    return replace(data, quality=found, effects=effects, label_accuracy=None, n_test=0)


def histograms() -> VotesReport:
    """Noisy histograms were released, not labels alone."""
    data = make()
    released = replace(data.privacy, released=Answers.HISTOGRAM)
    return replace(data, privacy=released, label_accuracy=0.253)


EXAMPLES = {
    "worst-case": make,
    "seeded": seeded,
    "data-dependent": data_dependent,
    "unlimited": unlimited,
    "all-unlimited": all_unlimited,
    "ten-classes": ten_classes,
    "eight-groups": eight_groups,
    "close-groups": close_groups,
    "nothing-released": nothing_released,
    "no-better": no_better,
    "no-truth": no_truth,
    "histograms": histograms,
}
