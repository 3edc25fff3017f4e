"""The public terms of DP-SGD, kept in its vault: enough to read its account without any data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from collegium.accounting.neighbours import Neighbours
from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget
from collegium.dpsgd.account import DPSGDAccount
from collegium.json_files import number_as_json
from collegium.personalisation.dpsgd_plan import DPSGDPlan, GroupSteps
from collegium.study.sections import DPSGD
from collegium.study.terms import begun_job, reading_terms

FORMAT = 1


@dataclass(frozen=True, eq=False)
class DPSGDTerms:
    """What was agreed on for DP-SGD, before its first step.

    ``plan``: steps, noise, and what each group gives and grants.
    ``adjacency``: what it hides about an owner, in words.
    ``provisos``: what else was allowed and weakens it.
    ``unit``: what a group's members are.
    ``private_noise``: whether noise comes from the operating system.
    ``n_steps_taken``: how many steps are taken: with a filter more than are planned.
    ``settings``: of the training.
    """

    plan: DPSGDPlan
    adjacency: str
    provisos: tuple[str, ...]
    unit: str
    private_noise: bool
    n_steps_taken: int
    settings: Mapping[str, Any]

    def account(self, steps: int) -> DPSGDAccount:
        """Charge so many steps again."""
        account = DPSGDAccount(self.plan, self.n_steps_taken)
        account.charge(steps)
        return account

    def statement(self, account: DPSGDAccount) -> PrivacyStatement:
        """Say what was promised and spent."""
        return account.statement(self.adjacency, self.private_noise, self.unit, self.provisos)

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON, exact to the last bit."""
        plan = {one.name: getattr(self.plan, one.name) for one in fields(self.plan)}
        plan["neighbours"] = self.plan.neighbours.value
        plan["groups"] = {name: _group(group) for name, group in self.plan.groups.items()}
        return {
            "format": FORMAT,
            "method": DPSGD,
            "plan": plan,
            "adjacency": self.adjacency,
            "provisos": list(self.provisos),
            "unit": self.unit,
            "private_noise": self.private_noise,
            "n_steps_taken": self.n_steps_taken,
            "settings": dict(self.settings),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> DPSGDTerms:
        """Read what :meth:`to_json` made."""
        if content["format"] != FORMAT:
            raise ValueError(content["format"])
        plan = dict(content["plan"])
        plan["neighbours"] = Neighbours(plan["neighbours"])
        groups = {}
        for name, group in plan["groups"].items():
            epsilon, delta = group["budget"]
            groups[name] = GroupSteps(**{**group, "budget": Budget(float(epsilon), delta)})
        return cls(
            DPSGDPlan(**{**plan, "groups": groups}),
            content["adjacency"],
            tuple(content["provisos"]),
            content["unit"],
            content["private_noise"],
            content["n_steps_taken"],
            content["settings"],
        )


def _group(group: GroupSteps) -> dict[str, Any]:
    return {
        **asdict(group),
        "budget": [number_as_json(group.budget.epsilon), group.budget.delta],
    }


def read_dpsgd(path: Path) -> tuple[DPSGDTerms, int]:
    """Read the terms of DP-SGD, and how many steps are charged; nothing is changed, also while it is running.

    Raises StudyMismatchError if the journal does not vouch for the terms, and for what was released.
    """
    with reading_terms(path):
        content, journal = begun_job(path)
        return DPSGDTerms.from_json(content), journal.steps
