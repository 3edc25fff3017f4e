"""What PATE-GAN is audited on: two tables of 40 people that differ in all rows of one of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from collegium.attacks.generative_recording import Neighbouring
from collegium.budgets import Budget, Budgets
from collegium.data.schema import Schema
from collegium.generative.pate_gan import PATEGAN

N_ROWS, WHO, IDENTITY = 120, "Bea", 0
GROUPS = {"strict": Budget(1.0, 1e-5), "generous": Budget(2.0, 1e-5)}
SCHEMA = Schema(
    {
        "row": {"kind": "category", "categories": [str(i) for i in range(N_ROWS)]},
        "kind": {"kind": "category", "categories": ["a", "b", "c"]},
        "age": {"kind": "whole", "bounds": [0, 99], "bins": [0, 20, 40, 60, 80, 99]},
    }
)
SMALL = {
    "n_teachers": 8,
    "n_queries": 8,
    "rounds": 2,
    "teacher_steps": 3,
    "student_steps": 1,
    "generator_steps": 1,
    "random_state": 5,
}


def table(blank: bool = False, replaced: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of 40 people, 30 of them Bea's, which may be others or blank; and whose each is."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "row": [str(i) for i in range(N_ROWS)],
            "kind": rng.choice(["a", "b", "c"], N_ROWS, p=[0.6, 0.3, 0.1]),
            "age": rng.integers(20, 60, N_ROWS),
        }
    )
    owners = np.array([WHO] * 30 + [f"person {i % 39}" for i in range(N_ROWS - 30)])
    if replaced:
        frame.loc[:29, "kind"] = "c"
        frame.loc[:29, "age"] = 99
    if blank:
        frame = frame.astype({"age": "Int64"})
        frame.loc[:29] = None
    return frame, owners


def budgets(owners: np.ndarray, groups: dict[str, Budget] = GROUPS) -> Budgets:
    """Everybody but each third person is strict; Bea is."""
    generous = np.array([o != WHO and int(o.split()[1]) % 3 == 0 for o in owners])
    return Budgets(groups, generous.astype(int), owners)


def neighbours(
    model: PATEGAN, change: str = "replaced", groups: dict[str, Budget] = GROUPS
) -> Neighbouring:
    """Two tables, of which the second has Bea's rows replaced, blank, or gone but for one."""
    first, owners = table()
    second, others = table(**({} if change == "fewer" else {change: True}))
    if change == "fewer":
        second, others = second.iloc[29:].reset_index(drop=True), others[29:]
    return Neighbouring(
        lambda frame, granted, noise: model.begin(frame, budgets=granted, noise=noise),
        ((first, budgets(owners, groups)), (second, budgets(others, groups))),
        "strict",
    )
