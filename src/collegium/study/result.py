"""What a finished study says, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget
from collegium.evaluation.effects import Effects
from collegium.evaluation.quality import PUBLIC, TEST, Quality, beside_the_list
from collegium.personalisation.dpsgd_plan import DPSGDPlan
from collegium.personalisation.plan import Plan
from collegium.report.promise import spending_table
from collegium.report.quality import quality_banner
from collegium.report.sections import Banner, Block, Paragraph
from collegium.study.config import StudyConfig
from collegium.study.folder import PAGE, StudyFolder
from collegium.study.shown import Shown
from collegium.study.study_data import StudyData

_SHOWN_LEVELS = 3


def as_chosen(people: Any) -> dict[str, Budget]:
    """Read off what people of each level chose, where budgets are known by level."""
    groups = getattr(people, "groups", None)
    return dict(groups) if isinstance(groups, Mapping) else {}


@dataclass(frozen=True, eq=False, kw_only=True)
class PublishedResult(Shown):
    """What every finished study has; a method adds what only it has, and says so.

    ``folder``: where everything lies.
    ``privacy``: budgets and spending by group.
    ``chosen``: budgets as people chose them, by level.
    ``ledger``: which one remembers it, if any.
    ``about``: what else ``privacy.json`` says of the release, where a method says nothing of its own.
    """

    folder: StudyFolder
    privacy: PrivacyStatement
    chosen: Mapping[str, Budget] = field(default_factory=dict)
    ledger: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def report(self) -> Path:
        """Where the page is, if there is one."""
        return self.folder.release / PAGE

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON: the statement, what only the method has, and where everything is."""
        return {
            **self.privacy.to_dict(),
            **self.numbers(),
            **({} if self.ledger is None else {"ledger": self.ledger}),
            "release": str(self.folder.release),
            **({"report": str(self.report)} if self.report.exists() else {}),
        }

    def numbers(self) -> dict[str, Any]:
        """Say what ``privacy.json`` says."""
        return dict(self.about)

    def blocks(self) -> list[Block | Banner]:
        """Show what each person was promised, and spent."""
        return [spending_table(self.privacy, self.chosen)]


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelResult(PublishedResult):
    """What a finished study says that publishes a model. Nothing in it depends on records but through noise.

    ``n_test``: public test records that the model was measured on.
    ``effects``: what the budgets did to classes and groups.
    ``quality``: the model beside one that always gives one answer, with the verdict; None where nothing is
        known to judge it by.
    ``student_notes``: what the user should know about how the model was trained.
    ``foretold``: what was predicted, and what came out, in a sentence; empty where nothing was.
    """

    n_test: int
    effects: Effects
    quality: Quality | None
    student_notes: tuple[str, ...] = ()
    foretold: str = ""

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON, with the verdict first."""
        return {"verdict": self.in_short() or None, **super().to_json()}

    def numbers(self) -> dict[str, Any]:
        """Say how good the model is, and what should be known about it."""
        return {
            "quality": None if self.quality is None else self.quality.to_dict(),
            "notes": list(self.student_notes),
            **({"foretold": self.foretold} if self.foretold else {}),
        }

    def blocks(self) -> list[Block | Banner]:
        """Show the verdict, above what was promised and spent."""
        if self.quality is None:
            return super().blocks()
        verdict = quality_banner(self.quality, ("", ""))
        if not self.privacy.noise_is_private or self.privacy.large_deltas:
            verdict = replace(verdict, tone=verdict.tone.replace("good", "plain"))
        foretold = [Paragraph(self.foretold)] if self.foretold else []
        return [verdict, *foretold, *super().blocks()]

    def in_short(self) -> str:
        """Say whether the model is any good."""
        return "" if self.quality is None else self.quality.verdict


def notes_on_test_records(plan: Plan | DPSGDPlan, data: StudyData) -> list[str]:
    """Say which public records are left out of what is measured, or can only count as wrong."""
    lines = levels_without_group(plan, data.test_groups)
    for role, truth in ((TEST, data.y_test), (PUBLIC, data.y_public)):
        strange = "" if truth is None else beside_the_list(data.classes, truth, role)
        lines += [strange] if strange else []
    if data.n_tests_left_out:
        lines.append(
            f"{data.n_tests_left_out} test record(s) without a class are left out: nothing can be judged by "
            "them"
        )
    return lines


def levels_without_group(plan: Plan | DPSGDPlan, levels: NDArray[Any] | None) -> list[str]:
    """Say which levels of the public test records are no group's, so that its table leaves them out.

    Examples
    --------
    >>> import numpy as np
    >>> from collegium import Budget
    >>> from collegium.personalisation import Weighting
    >>> plan = Weighting().plan({"high": Budget(3.0), "low": Budget(1.0)}, {"high": 60, "low": 40}, 10)
    >>> levels_without_group(plan, np.array(["low", "Low", "high"]))[0].split(" (")[0]
    '1 of 3 test records have a level that no private record has'
    """
    if levels is None:
        return []
    named = pd.Series([str(level) for level in levels.tolist()])
    others = named[~named.isin(list(plan.groups))]
    if others.empty:
        return []
    shown = ", ".join(repr(level) for level in sorted(others.unique())[:_SHOWN_LEVELS])
    more = ", …" if others.nunique() > _SHOWN_LEVELS else ""
    return [
        f"{len(others)} of {len(named)} test records have a level that no private record has ({shown}{more}; "
        f"groups: {', '.join(plan.groups)}): effects by group leave them out"
    ]


def in_words(config: StudyConfig, section: str) -> str:
    """Write a section's model and its parameters."""
    said = config.published()[section]
    params = ", ".join(f"{name}={value!r}" for name, value in said["params"].items())
    return f"{said['model']}({params})" if params else str(said["model"])


def shown_settings(config: StudyConfig) -> dict[str, str]:
    """Write all public settings that say something."""
    shown = {}
    for section, keys in config.published().items():
        for name, value in keys.items():
            if value not in ([], {}):
                shown[f"{section}.{name}"] = str(value)
    return shown
