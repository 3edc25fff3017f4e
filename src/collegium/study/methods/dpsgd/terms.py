"""The public terms of direct training, and what a journal of its steps amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from collegium.accounting.neighbours import Arrangement, Neighbours
from collegium.accounting.spent import Spent
from collegium.accounting.statement import PrivacyStatement
from collegium.dpsgd.account import DPSGDAccount
from collegium.personalisation.dpsgd_plan import DPSGDPlan, GroupSteps
from collegium.study.journal import FileJournal
from collegium.study.methods.dpsgd.settings import DPSGDKind
from collegium.study.registry import EXACT_NOISE
from collegium.study.terms import Progress, RegistryWords, Terms

_COMPOSED = {
    "gaussian": "Steps fixed beforehand, everybody in each of them: exact Gaussian differential privacy "
    "(squares of mu add up), for each owner.",
    "pld": "Steps and rates fixed beforehand, Poisson samples of owners: privacy loss distributions, rounded "
    "pessimistically, for each owner.",
    "rdp": "Steps and rates fixed beforehand, Poisson samples of owners: Renyi differential privacy (the "
    "moments accountant), for each owner.",
}
_IN_COMMON = ("owners", "budget")  # of a group's steps: all methods have them


@dataclass(frozen=True, eq=False, kw_only=True)
class DPSGDTerms(Terms):
    """Which steps are taken.

    ``plan``: steps, noise, and what each group gives and grants.
    ``n_steps_taken``: how many steps are taken: with a filter more than are planned.
    ``settings``: of the training.
    """

    method: ClassVar[str] = DPSGDKind.name
    counted: ClassVar[Mapping[str, Any]] = {"steps": int, "steps_lost": int}

    plan: DPSGDPlan
    n_steps_taken: int
    settings: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        plan: DPSGDPlan,
        arrangement: Arrangement,
        private_noise: bool,
        n_steps_taken: int,
        settings: Mapping[str, Any],
    ) -> Self:
        """Agree on a plan, which knows who granted what."""
        return cls(
            groups={name: one.budget for name, one in plan.groups.items()},
            people={name: one.owners for name, one in plan.groups.items()},
            arrangement=arrangement,
            private_noise=private_noise,
            plan=plan,
            n_steps_taken=n_steps_taken,
            settings=settings,
        )

    @property
    def neighbours(self) -> Neighbours:
        """What the plan's costs are about."""
        return self.plan.neighbours

    def account(self, steps: int) -> DPSGDAccount:
        """Charge so many steps again."""
        account = DPSGDAccount(self.plan, self.n_steps_taken)
        account.charge(steps)
        return account

    def statement(self, account: DPSGDAccount) -> PrivacyStatement:
        """Say what was promised and spent."""
        return account.statement(self.arrangement, self.private_noise)

    def spent(self, journal: FileJournal) -> Spent:
        """Charge again the steps of which noise may have been drawn."""
        account = self.account(journal.steps)
        return Spent(
            {name: tuple(uses) for name, uses in account.composition().items()},
            account.epsilon_spent(),
            gaussian=self.plan.accountant == "gaussian",
        )

    def progress(self, journal: FileJournal, ended: str | None) -> Progress:
        """Tell how many steps are charged, of how many."""
        more = self.n_steps_taken - journal.steps
        counts = {
            "sampling": self.plan.kind,
            "noise": self.plan.noise,
            "steps_charged": journal.steps,
            "steps_planned": self.n_steps_taken,
        }
        sentences = (
            f"{journal.steps:,} of {self.n_steps_taken:,} steps are charged ({self.plan.kind}).",
            f"The next run takes {more:,} more steps."
            if more
            else "Nothing more will be drawn in this folder.",
        )
        planned = self.plan.epsilon()
        return Progress(
            counts, sentences, {name: {"epsilon_planned": planned[name]} for name in self.groups}
        )

    def mechanism(self) -> dict[str, Any]:
        """Describe the noisy steps."""
        plan = self.plan
        return {
            "name": "dp-sgd",
            "in_words": self._in_words(),
            "sampling": plan.kind,
            "bound": plan.bound,
            "noise": plan.noise,
            "accountant": plan.accountant,
        }

    def _in_words(self) -> str:
        who = (
            "everybody in every step"
            if self.plan.kind in ("full-batch", "uniform")
            else f"Poisson samples of owners ({self.plan.kind})"
        )
        return (
            f"individual DP-SGD, {who}: each owner's gradient clipped to one norm and weighted by group, "
            f"Gaussian noise on the sum, {self.plan.steps:,} steps"
        )

    def drawn_and_told(self, told: Mapping[str, Any], journal: FileJournal) -> tuple[str, int, int]:
        """Count steps."""
        return "steps were charged", journal.steps, told["steps"]

    @classmethod
    def released(cls, told: Mapping[str, Any]) -> dict[str, Any]:
        """Count steps, and those that were lost."""
        return {"steps": told["steps"], "steps_lost": told["steps_lost"]}

    @classmethod
    def released_in_words(cls, released: Mapping[str, Any], unit: str) -> str:
        """Say how many steps were taken."""
        return f"{released['steps']:,} steps were taken, {released['steps_lost']:,} of them lost."

    def for_registry(self, statement: Mapping[str, Any]) -> RegistryWords:
        """Describe a model that DP-SGD trained."""
        has_student = statement["released"]["student"]
        return RegistryWords(
            product_type="Machine learning model" if has_student else "Dataset",
            description=f"A classifier, made of {statement['released']['steps']:,} noisy sums of clipped "
            "gradients of the private records (individual DP-SGD); each of these sums counts as released.",
            unprotected="Budgets and who is in which group, group sizes, the list of classes, all settings, "
            "and all public records.",
            holder="Whoever runs Collegium holds the records.",
            mechanism=self._in_words(),
            noise=f"{EXACT_NOISE} Times are not hidden.",
            composition=_COMPOSED[self.plan.accountant],
            post_processing="The model follows from the noisy sums, and so does a student that learns from "
            "what it believes about public records.",
        )

    def own_to_json(self) -> dict[str, Any]:
        """Describe the plan."""
        groups = {
            name: {key: value for key, value in asdict(group).items() if key not in _IN_COMMON}
            for name, group in self.plan.groups.items()
        }
        plan = {one.name: getattr(self.plan, one.name) for one in fields(self.plan)}
        return {
            "plan": {**plan, "neighbours": self.plan.neighbours.value, "groups": groups},
            "n_steps_taken": self.n_steps_taken,
            "settings": dict(self.settings),
        }

    @classmethod
    def own_from_json(cls, own: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """Read the plan."""
        plan = dict(own["plan"])
        plan["neighbours"] = Neighbours(plan["neighbours"])
        plan["groups"] = {
            name: GroupSteps(**group, budget=common["groups"][name], owners=common["people"][name])
            for name, group in plan["groups"].items()
        }
        return cls(
            **common,
            plan=DPSGDPlan(**plan),
            n_steps_taken=own["n_steps_taken"],
            settings=own["settings"],
        )
