"""The page about a study of direct training: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collegium.personalisation.dpsgd_plan import DPSGDPlan, reach
from collegium.report import words
from collegium.report.numbers import count, plain, share
from collegium.report.page import common, environment, history_of, promise, student_headlines
from collegium.report.report_data import PageData

KINDS = {
    "full-batch": "Everybody is part of every step.",
    "sample": "Each step sums over a random sample: every owner takes part by a coin of their own, which "
    "falls more often for those who grant more.",
    "scale": "Each step sums over a random sample: every owner takes part by a coin of their own.",
    "uniform": "Everybody is treated alike, as the strictest budget demands.",
}
ACCOUNTANTS = {
    "gaussian": "exact Gaussian differential privacy: squares of μ add up over the steps",
    "pld": "loss distributions, rounded so that nothing is understated, composed over all steps",
    "rdp": "Rényi differential privacy (the moments accountant), composed over all steps",
}
NOT_COVERED = (
    *words.NOT_COVERED[:2],
    (
        "Choices made by looking at private data.",
        "Steps, clipping, learning rate, features and all other settings must come from public data, "
        "simulation or experience. Whatever was tuned on the private records would have to be charged to the "
        "same budgets; this account does not contain it.",
    ),
    (
        "Side channels.",
        "Running times, memory, logs of the machine and access to the vault are outside the mathematics. The "
        "records, and who took part in a step, are never written down by the run.",
    ),
    (
        "Facts about people in general.",
        "A model may learn that smokers fall ill more often, and this then holds for a smoker who never took "
        "part. Differential privacy limits what taking part adds.",
    ),
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


@dataclass(frozen=True, kw_only=True)
class DPSGDReport(PageData):
    """All numbers and words of a report about direct training.

    ``plan``: steps, noise, and what each group gives.
    ``clip_norm``: what the plan's unit is, as a norm of gradients.
    ``learning``: settings of the optimiser, in words.
    ``n_steps_taken``: how many steps there are: with a filter more than are planned.
    ``steps``, ``lost``: how many were charged; how many of these a crash took.
    ``n_parameters``: of the model.
    ``model``: what was learnt; ``student``: what learnt from its beliefs, and is published instead, if
        anything.
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


def render_dpsgd(data: DPSGDReport) -> str:
    """Write the report as one HTML page, without scripts and without anything from outside.

    ``data``: only what may be published.
    Returns: the same for the same data.
    """
    model = "student" if data.student else "model"
    plan = data.plan
    groups = []
    for row in data.privacy.shown:
        planned = plan.groups[row.group]
        groups.append(
            {
                **promise(row, data),
                "clip": plain(planned.clip * data.clip_norm),
                "weight": plain(planned.clip),
                "rate": share(planned.rate),
                "moves": plain(planned.clip * data.clip_norm * reach(plan.neighbours)),
                "utilisation": share(planned.utilisation),
            }
        )
    return (
        environment()
        .get_template("dpsgd.html.j2")
        .render(
            **common(data, _stop(data), NOT_COVERED, REFERENCES),
            groups=groups,
            headlines=[*student_headlines(data.quality, model), *_steps(data)],
            figures=history_of(data, "steps"),
            run=_run(data),
            model=model,
            student=data.student,
            step={
                "kind": KINDS[plan.kind],
                "accountant": ACCOUNTANTS[plan.accountant],
                "gaussian": plan.accountant == "gaussian",
                "sampled": any(group.rate < 1 for group in plan.groups.values()),
                "n": count(data.n_steps_taken),
                "filtered": data.n_steps_taken > plan.steps,
                "paid": count(plan.steps),
                "noise": plain(plan.noise * data.clip_norm),
                "clip_norm": plain(data.clip_norm),
                "divisor": plain(plan.divisor * data.clip_norm),
                "reach": reach(plan.neighbours),
                "signal": plain(round(signal_to_noise(plan, data.n_parameters), 3)),
            },
            learning=list(data.learning.items()),
        )
    )


def signal_to_noise(plan: DPSGDPlan, n_parameters: int) -> float:
    """How long a step's sum is beside its noise, at most: if all gradients agreed, and were clipped.

    ``n_parameters``: in how many coordinates there is noise.
    """
    return float(plan.divisor / (plan.noise * n_parameters**0.5))


def _steps(data: DPSGDReport) -> list[dict[str, str]]:
    lost = f"; {count(data.lost)} of them lost in a crash" if data.lost else ""
    return [
        {
            "name": "Steps",
            "value": count(data.steps),
            "note": f"of {count(data.n_steps_taken)} that were planned{lost}; {count(data.n_parameters)} "
            "parameters",
        }
    ]


def _stop(data: DPSGDReport) -> str:
    return (
        f"All {count(data.n_steps_taken)} steps that were planned, and paid for, were taken."
        if not data.lost
        else f"All {count(data.n_steps_taken)} steps that were planned were paid for; {count(data.lost)} of "
        "them were lost in a crash, and are not taken again."
    )


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


def as_words(value: Any) -> str:
    """Write a setting."""
    return plain(value) if isinstance(value, float) else str(value)
