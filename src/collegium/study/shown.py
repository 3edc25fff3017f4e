"""What a plan or a result says of itself: numbers for programs, blocks for people, and one line.

What every study says stands elsewhere, once: :mod:`collegium.cli.studies` says it.
"""

from __future__ import annotations

from typing import Any

from collegium.checks import listed
from collegium.report.sections import Banner, Block, Paragraph
from collegium.study.study_data import StudyData


class Shown:
    """What a plan or a result says of itself. Nothing of it depends on private records but through noise."""

    def numbers(self) -> dict[str, Any]:
        """Say for JSON what only this method has."""
        return {}

    def blocks(self) -> list[Block | Banner]:
        """Say the same for people."""
        return []

    def in_short(self) -> str:
        """Say in a line, without its full stop, what matters most; empty if nothing does."""
        return ""


def records_shown(data: StudyData, more: str = "") -> list[Block]:
    """Count a study's records, and say how the columns of tables are read.

    ``more``: goes behind the counts.
    """
    counted = (
        f"{len(data.X):,} private records of {data.budgets.n_owners:,} people, "
        f"{len(data.X_public):,} public records, {len(data.classes)} classes{more}"
    )
    by_kind: dict[str, list[str]] = {}
    for name, kind in columns_of(data).items():
        by_kind.setdefault(kind, []).append(name)
    read = "; ".join(f"as {kind}: {listed(names)}" for kind, names in by_kind.items())
    words = "; ".join(
        f"{listed([repr(word) for word in those])} in {name}"
        for name, those in data.reading.get("missing", {}).items()
    )
    missing = f" Missing: {words} (text: data.types)." if words else ""
    return [Paragraph(counted), *([Paragraph(f"Read {read}.{missing}")] if read else [])]


def columns_of(data: StudyData) -> dict[str, str]:
    """Name the columns of tables, with the kind that each is read as."""
    return dict(data.inputs.get("columns", ()))
