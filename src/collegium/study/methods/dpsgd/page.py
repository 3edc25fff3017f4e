"""The page and the card about a study of direct training: what only this method has to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from collegium.dpsgd.run import DPSGDRun
from collegium.personalisation.dpsgd_plan import DPSGDPlan, reach
from collegium.report.effect_tables import class_table
from collegium.report.numbers import count, plain, share
from collegium.report.promise import history
from collegium.report.quality import quality_headlines, threshold_tables
from collegium.report.sections import (
    Block,
    Code,
    Column,
    Figures,
    Folded,
    Headline,
    Headlines,
    Page,
    Paragraph,
    Section,
    Table,
    Text,
)
from collegium.report.words import GAUSSIAN_EPSILON, not_covered, repeated
from collegium.study.config import StudyConfig
from collegium.study.folder import versions
from collegium.study.methods.dpsgd.result import DPSGDResult
from collegium.study.model_page import ModelReport, use_of
from collegium.study.result import in_words, shown_settings
from collegium.study.student_file import STUDENT_FILE
from collegium.study.study_data import StudyData

_POINTS = 60
_FEW_POINTS = 8  # where each takes its time
KINDS = {
    "full-batch": "Everybody is part of every step.",
    "sample": "Each step sums over a random sample: every person takes part by a coin of their own, which "
    "falls more often for those with larger budgets.",
    "scale": "Each step sums over a random sample: every person takes part by a coin of their own.",
    "uniform": "Everybody is treated alike, as the strictest budget demands.",
}
ACCOUNTANTS = {
    "gaussian": "exact Gaussian differential privacy: squares of μ add up over the steps",
    "pld": "loss distributions, rounded so that nothing is understated, composed over all steps",
    "rdp": "Rényi differential privacy (the moments accountant), composed over all steps",
}
_NOT_COVERED = not_covered(
    "Steps, clipping, learning rate, features and all other settings",
    "The records, and who took part in a step, are never written down by the run.",
    "A model may learn",
)
REFERENCES = (
    "M. Abadi, A. Chu, I. Goodfellow, H. B. McMahan, I. Mironov, K. Talwar, L. Zhang: Deep Learning with "
    "Differential Privacy. CCS 2016. arXiv:1607.00133 (clipped gradients with noise)",
    "F. Boenisch, C. Mühl, A. Dziedzic, R. Rinberg, N. Papernot: Have it your way: Individualized Privacy "
    "Assignment for DP-SGD. NeurIPS 2023. arXiv:2303.17046 (individual rates and clipping)",
    "J. Dong, A. Roth, W. J. Su: Gaussian Differential Privacy. Journal of the Royal Statistical Society "
    "B 84, 2022 (μ, and its conversion to ε and δ)",
    "A. Koskela, M. Tobaben, A. Honkela: Individual Privacy Accounting with Gaussian Differential "
    "Privacy. ICLR 2023. arXiv:2209.15596 (individual accounts)",
)


_WHO_ANSWERS = (
    "The student answers where the two disagree and noise leaves doubt about the model's answer; elsewhere "
    "the model does."
)


@dataclass(frozen=True)
class AfterSteps:
    """The account after some steps: what any person of each level had spent."""

    asked: int
    epsilon_spent: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class DPSGDReport(ModelReport):
    """All numbers and words of a report about direct training.

    ``plan``: steps, noise, and what each group gives.
    ``clip_norm``: what the plan's unit is, as a norm of gradients.
    ``learning``: settings of the optimiser, in words.
    ``n_steps_taken``: how many steps there are: with a filter more than are planned.
    ``steps``, ``lost``: how many were charged; how many of these a crash took.
    ``n_parameters``: of the model.
    ``model``: what was learnt; ``student``: what learnt from its beliefs, and is published instead, if
        anything.
    ``in_doubt``: whether both are, the student for where noise leaves doubt about the model.
    """

    plan: DPSGDPlan
    clip_norm: float
    learning: Mapping[str, str]
    n_steps_taken: int
    steps: int
    lost: int
    n_parameters: int
    model: str
    student: str
    in_doubt: bool

    @property
    def called(self) -> str:
        """What the published model is called."""
        return "student" if self.student else "model"

    @property
    def noise(self) -> str:
        """Standard deviation of the noise of a step."""
        return plain(self.plan.noise * self.clip_norm)

    @property
    def is_filtered(self) -> bool:
        """Whether everybody pays for the gradients they really gave."""
        return self.n_steps_taken > self.plan.steps


def dpsgd_report(
    result: DPSGDResult, config: StudyConfig, data: StudyData, run: DPSGDRun
) -> DPSGDReport:
    """Put together what the report shows: nothing that may not be published."""
    dpsgd = run.recipe.dpsgd
    n_features = run.n_parameters
    learning: dict[str, Any] = {"Solver": "public records"}
    if run.solver is None:
        learning = {"Learning rate": run.learning_rate, "Momentum": dpsgd.momentum}
    is_there = (result.folder.release / STUDENT_FILE).exists()
    regression = "softmax" if run.loss.n_outputs > 1 else "logistic"
    return DPSGDReport(
        title=config.title(),
        privacy=result.privacy,
        chosen=result.chosen,
        plan=result.plan,
        clip_norm=dpsgd.clip_norm,
        learning={
            name: plain(value) if isinstance(value, float) else str(value)
            for name, value in learning.items()
        },
        n_steps_taken=dpsgd.n_steps_taken,
        steps=result.steps,
        lost=result.lost,
        n_parameters=n_features * run.loss.n_outputs,
        model=f"{regression} regression on {n_features - 1:,} features of records",
        student=in_words(config, "student") if result.is_student else "",
        in_doubt=result.in_doubt,
        n_public=len(data.X_public),
        effects=result.effects,
        history=spending_by_step(result.plan, result.steps),
        quality=result.quality,
        without_quality=result.unjudged,
        n_test=result.n_test,
        student_notes=result.student_notes,
        foretold=result.foretold,
        settings=shown_settings(config),
        versions=versions(),
        use=use_of(config, data, equal_chances=False) if is_there else None,
    )


def spending_by_step(plan: DPSGDPlan, steps: int) -> list[AfterSteps]:
    """What everybody had spent after each step, at some of them."""
    points = _POINTS if plan.accountant == "gaussian" else _FEW_POINTS
    some = np.unique(np.linspace(0, steps, min(steps, points) + 1).round().astype(int))
    # With a filter more steps are taken, and nobody pays for more than were planned.
    return [AfterSteps(step, dict(plan.epsilon(min(step, plan.steps)))) for step in some.tolist()]


def signal_to_noise(plan: DPSGDPlan, n_parameters: int) -> float:
    """How long a step's sum is beside its noise, at most: if all gradients agreed, and were clipped.

    ``n_parameters``: in how many coordinates there is noise.
    """
    return float(plan.divisor / (plan.noise * n_parameters**0.5))


def dpsgd_page(data: DPSGDReport) -> Page:
    """Say all that there is to say of direct training, of what may be published."""
    model = data.called
    judged = any(row.student_accuracy is not None for row in data.effects.classes)
    published = (
        "student, trained on what the noisy steps led to and on public records only"
        if data.student
        else "model, as the noisy steps made it"
    )
    if data.in_doubt:
        published = f"model, as the noisy steps made it; the {published}"
    return Page(
        **data.shared(),
        subject="direct training with individual privacy budgets",
        what=_what(data),
        stopped=_stopped(data),
        results=[
            Headlines([*quality_headlines(data.quality, model), _steps(data)]),
            *threshold_tables(data.quality),
            *data.notes(model),
        ],
        result_limits=data.limits("in noisy steps"),
        sections=[
            data.effects_section(
                model,
                "how much of a step's sum can come from the level, at most",
                [Folded("Class by class", [class_table(data.effects, model)])] if judged else [],
            ),
            _mechanism(data),
        ],
        leaves=f"In the release: the {published}; the privacy statement, the card and the page. The private "
        "records are not in it.",
        not_covered=_NOT_COVERED,
        checks=_checks(data),
        run=_run(data),
        references=REFERENCES,
    )


def _what(data: DPSGDReport) -> Text:
    steps = (
        f"{count(data.steps)} noisy steps over clipped gradients of the private records (individual "
        "DP-SGD)"
    )
    if data.use is None:
        return f"This folder holds the account of {steps}. There is no model in it."
    if data.in_doubt:
        return (
            Code(STUDENT_FILE),
            f" holds a linear classifier, made in {steps}, and a student of it ({data.student}), which "
            f"learnt from public records what the first predicts for them. {_WHO_ANSWERS}",
        )
    if data.student:
        return (
            Code(STUDENT_FILE),
            f" is a classifier ({data.student}). It learnt, from public records, what a model predicts for "
            f"them that was made in {steps}.",
        )
    return (Code(STUDENT_FILE), f" is a linear classifier, made in {steps}.")


def _steps(data: DPSGDReport) -> Headline:
    lost = f"; {count(data.lost)} of them lost in a crash" if data.lost else ""
    return Headline(
        "Steps",
        count(data.steps),
        f"of {count(data.n_steps_taken)} that were planned{lost}; {count(data.n_parameters)} parameters",
    )


def _stopped(data: DPSGDReport) -> str:
    planned = count(data.n_steps_taken)
    if not data.lost:
        return f"All {planned} steps that were planned, and paid for, were taken."
    return (
        f"All {planned} steps that were planned were paid for; {count(data.lost)} of them were lost in a "
        "crash, and are not taken again."
    )


def _mechanism(data: DPSGDReport) -> Section:
    plan = data.plan
    filtered = ""
    if data.is_filtered:
        filtered = (
            " Everybody pays for the length of gradient that was really used, and gives nothing more once "
            f"they have used up what {count(plan.steps)} steps cost at the greatest length; how much each "
            "person has remaining is kept in the vault."
        )
    signal = plain(round(signal_to_noise(plan, data.n_parameters), 3))
    blocks: list[Block] = [
        Paragraph(
            f"There are {count(data.n_steps_taken)} steps. In each, every person who takes part has one "
            "gradient, of all their records together; gradients are clipped to one norm, and then multiplied "
            "by the weight of the person's level. These are added up, Gaussian noise of standard deviation "
            f"{data.noise} is added to every coordinate of the sum, and the sum is divided by "
            f"{plain(plan.divisor * data.clip_norm)}, a number that follows from the plan alone. The model "
            f"then moves against it. {KINDS[plan.kind]} The number of steps was fixed beforehand; nothing is "
            f"decided by looking at private records.{filtered}"
        ),
        Paragraph(
            "A step releases the noisy sum. All that is known of the records afterwards was made of these "
            "sums, and of public things, so everybody might see each of them, and every model on the way, at "
            "the same price. If all gradients agreed and had the greatest length that is allowed, a step's "
            f"sum would be {signal} times as long as its noise."
        ),
    ]
    if data.in_doubt:
        blocks.append(
            Paragraph(
                f"Published are this model and a student, {data.student}, which learnt, from public records "
                f"alone, what the model predicts for each of them. {_WHO_ANSWERS} That costs nobody anything."
            )
        )
    elif data.student:
        blocks.append(
            Paragraph(
                f"The published model is a student, {data.student}: it learnt, from public records alone, "
                "what the directly trained model predicts for each of them. That costs nobody anything."
            )
        )
    return Section(
        "mechanism",
        "How it was learnt",
        [
            *blocks,
            _levels(data),
            Paragraph(f"The account: {ACCOUNTANTS[plan.accountant]}."),
            Figures([history(data.privacy, data.history, "steps", data.chosen)]),
        ],
        is_folded=True,
    )


def _levels(data: DPSGDReport) -> Table:
    plan = data.plan
    sampled = any(group.rate < 1 for group in plan.groups.values())
    rows = []
    for row in data.privacy.shown:
        planned = plan.groups[row.group]
        longest = planned.clip * data.clip_norm
        rows.append(
            (
                row.group,
                *([share(planned.rate)] if sampled else []),
                plain(planned.clip),
                plain(longest),
                plain(longest * reach(plan.neighbours)),
                share(planned.utilisation),
            )
        )
    names = (
        *(["Takes part in a step"] if sampled else []),
        "Weight",
        "Greatest length of a gradient",
        "One person moves a sum by",
        "Utilisation",
    )
    moves = "the greatest length of a gradient, which is there or not"
    if reach(plan.neighbours) == 2:
        moves = "twice the greatest length of a gradient, since what was there goes and something else comes"
    caption = (
        f"A person can move the sum of a step by at most {moves}. Utilisation: share of the level's budget "
        "(in μ) that all steps together spend."
    )
    return Table([Column("Level", is_number=False), *map(Column, names)], rows, caption)


def _checks(data: DPSGDReport) -> list[Text]:
    lines: list[Text] = [
        (
            "Amounts spent follow from public numbers alone: the noise of a step, how far one person moves "
            "its sum, and the number of steps, all on this page. ",
            Code("collegium account --export"),
            " prints them for other accountants.",
        )
    ]
    if data.plan.accountant == "gaussian":
        at_most = ", at most" if data.is_filtered else ""
        lines.append(
            f"By hand: a person who moves a sum by Δ has μ² = {count(data.plan.steps)} · Δ² / σ², with σ = "
            f"{data.noise}{at_most}; steps lost in a crash count. {GAUSSIAN_EPSILON}"
        )
    return [*lines, repeated("model", data.privacy.noise_is_private)]


def _run(data: DPSGDReport) -> list[tuple[str, str]]:
    return [
        ("Learnt", data.model),
        *([("Student", data.student)] if data.student else []),
        ("Steps planned", count(data.n_steps_taken)),
        ("Charged, but lost in a crash", count(data.lost)),
        ("Public records", count(data.n_public)),
        ("Public test records", count(data.n_test)),
        *data.learning.items(),
    ]
