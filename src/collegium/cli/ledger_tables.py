"""How people stand in a ledger, as a table of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from collegium.ledger.entries import Standing


def standings_table(standings: Sequence[Standing]) -> Table:
    """Tabulate level, people, budget, what was spent and what is left: one row for each history."""
    from collegium.report.ledger_words import STANDINGS, standing_columns

    heads, rows, about = standing_columns(standings)
    table = Table(
        title=STANDINGS,
        title_justify="left",
        box=SIMPLE_HEAD,
        caption=about,
        caption_justify="left",
    )
    for name in heads:
        table.add_column(name, justify="left" if name == "level" else "right")
    for row in rows:
        table.add_row(*row)
    return table
