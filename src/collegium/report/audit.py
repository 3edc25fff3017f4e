"""An audit in all its forms: a table, a figure and JSON, from the same findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collegium.accounting.neighbours import Arrangement
from collegium.accounting.statement import budget_and_cost, budget_in_digits
from collegium.attacks.finding import Finding
from collegium.report.audit_plots import Bar, audit_figure
from collegium.report.sections import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found. Never a release.

    ``title``: what was audited.
    ``confidence``: probability that all lower bounds hold.
    ``arrangement``: what was done with people and records, and so what is claimed about which data sets.
    ``findings``: one for each group, all of one attack.
    ``about``: more of how it was done, for JSON.
    ``do_not_release``: why nothing beside it may be published, at greater length.
    """

    title: str
    confidence: float
    arrangement: Arrangement
    findings: Sequence[Finding]
    about: Mapping[str, Any] = field(default_factory=dict)
    do_not_release: str = ""

    @property
    def holds(self) -> bool:
        """Whether every lower bound is below its claim."""
        return all(one.holds for one in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Make a dictionary for JSON."""
        return {
            "audited": self.title,
            "confidence": self.confidence,
            "neighbours": self.arrangement.sentence,
            "holds": self.holds,
            **self.about,
            "groups": {one.group: one.to_json() for one in self.findings},
        }

    def table(self) -> Table:
        """Tabulate lower bound, claim and budget of each group."""
        first = self.findings[0]
        names = ("lower ε", "claimed ε", "budget ε", *first.cells())
        sides = Column("level", is_number=False), Column("claim", is_number=False)
        legend = f"; {first.legend}" if first.legend else ""
        rows = []
        for one in self.findings:
            granted, claimed = budget_and_cost(one.budget.epsilon, one.claim_epsilon, digits=3)
            lower = budget_in_digits(one.lower_epsilon, 3)
            verdict = "holds" if one.holds else "REFUTED"
            rows.append((one.group, lower, claimed, granted, *one.cells().values(), verdict))
        return Table(
            [sides[0], *map(Column, names), sides[1]],
            rows,
            f"per owner, at the level's δ{legend}",
            f"Audit: {self.title}",
        )

    def figure(self) -> Figure:
        """Draw bounds on ε, and on μ where anything is claimed in it."""
        epsilon = [
            Bar(one.group, one.lower_epsilon, one.claim_epsilon, one.budget.epsilon)
            for one in self.findings
        ]
        mu = [Bar(one.group, *one.of_mu) for one in self.findings if one.of_mu is not None]
        panels = [("μ per owner", mu)] if len(mu) == len(epsilon) else []
        panels.append((f"ε per owner, at δ = {self.findings[0].budget.delta:g}", epsilon))
        return audit_figure(panels, f"{self.title}; confidence {self.confidence:g}")
