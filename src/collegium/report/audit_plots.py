"""Figures of an audit: empirical lower bound, claim and budget of each group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collegium.report.svg import MUTED, SERIES, plot_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOWER, _CLAIM = SERIES[0], SERIES[1]


@dataclass(frozen=True)
class Bar:
    """One group's place in a figure.

    ``lower``, ``claim``, ``budget``: in one unit; an infinite budget is not drawn.
    """

    group: str
    lower: float
    claim: float
    budget: float


def audit_figure(panels: Sequence[tuple[str, Sequence[Bar]]], title: str) -> Figure:
    """Draw one panel for each unit: bars for lower bounds, marks for claims and budgets.

    ``panels`` (str, sequence of Bar): unit, and the groups.
    ``title``: what was audited, with confidence and neighbours.
    """
    from matplotlib.figure import Figure

    with plot_style():
        figure = Figure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
        for number, (unit, bars) in enumerate(panels, start=1):
            _panel(figure.add_subplot(1, len(panels), number), unit, bars)
        figure.axes[-1].legend(loc="upper left", frameon=False, labelcolor=MUTED)
        figure.suptitle(title, fontsize=9.5, color=MUTED, parse_math=False)
    return figure


def _panel(axes: Axes, unit: str, bars: Sequence[Bar]) -> None:
    places = list(range(len(bars)))
    axes.bar(places, [bar.lower for bar in bars], 0.5, color=_LOWER, label="empirical lower bound")
    axes.plot(
        places,
        [bar.claim for bar in bars],
        "_",
        color=_CLAIM,
        markersize=34,
        markeredgewidth=2.5,
        label="claim: what the account charged",
    )
    granted = [bar.budget if math.isfinite(bar.budget) else math.nan for bar in bars]
    axes.plot(places, granted, "v", color=MUTED, markersize=7, label="budget")
    axes.set_xticks(places, [bar.group for bar in bars], parse_math=False)
    axes.set_ylabel(unit)
    axes.set_xlim(-0.6, len(bars) - 0.4)
    tallest = max([0.1, *(value for bar in bars for value in (bar.lower, bar.claim))])
    tallest = max([tallest, *(value for value in granted if math.isfinite(value))])
    axes.set_ylim(0, 1.45 * tallest)  # room for the legend
