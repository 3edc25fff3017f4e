"""A page about a plan: what was chosen and why, what to expect of it, and what everybody would pay."""

from __future__ import annotations

from collections.abc import Sequence

from collegium.planner.recommend import Recommendation
from collegium.report.choice import chosen_from, expectations, figures, settings, verdict
from collegium.report.page import environment
from collegium.report.sections import (
    Banner,
    Block,
    Code,
    Column,
    Folded,
    Paragraph,
    Points,
    Strong,
    Table,
)


def choice_blocks(found: Recommendation, gigabytes: float) -> list[Block]:
    """Say what was chosen, why, and what to expect.

    ``gigabytes``: that a run takes.
    """
    keys = [((Code(key),), value, why) for key, value, why in settings(found)]
    columns = [
        Column(name, is_number=False, is_wide=name == "why") for name in ("key", "is", "why")
    ]
    said = [line for line in found.notes if line != found.verdict]
    return [
        Paragraph((Strong(f"{chosen_from(found)}."),)),
        Points(expectations(found)),
        *(Paragraph(line, "warning") for line in verdict(found)),
        Points(figures(found, gigabytes)),
        *([Points([f"{line[:1].upper()}{line[1:]}." for line in said])] if said else []),
        Folded("All settings, and why", [Table(columns, keys, "As a study's file says them.")]),
    ]


def render_plan(
    title: str, sections: Sequence[tuple[str, Sequence[Block | Banner]]], has_begun: bool
) -> str:
    """Write a plan as one HTML file that needs nothing else.

    ``sections``: heading and blocks of each. ``has_begun``: whether something may be spent already.
    """
    template = environment().get_template("plan.html.j2")
    return template.render(title=title, sections=sections, has_begun=has_begun)
