"""The picture of what an attacker can find out, made from budgets alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collegium.accounting.statement import ceil_decimals
from collegium.report.numbers import shorten
from collegium.report.plots import MOST_GROUPS, label_line, spread
from collegium.report.report_data import PageData
from collegium.report.svg import MUTED, SERIES, plot_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ALARMS = 25  # in 100: an attacker who puts up with more is hardly worth the name


def risk_figure(data: PageData) -> Figure:
    """Draw how many of 100 people of each group the best test finds at most, against its false alarms.

    With more groups than there are colours only the first are drawn; those without a limit are left out.
    """
    from matplotlib.figure import Figure

    privacy = data.privacy
    groups = [
        (number, row)
        for number, row in enumerate(privacy.groups[:MOST_GROUPS])
        if not row.budget.is_unlimited
    ]
    most = _MOST_ALARMS / 100
    alarms = most * np.linspace(0, 1, 101) ** 2  # dense where curves are steep
    with plot_style():
        figure = Figure(figsize=(5.0, 3.4))
        axes = figure.add_axes((0.1, 0.14, 0.585, 0.71))
        axes.plot([0, _MOST_ALARMS], [0, _MOST_ALARMS], ":", color=MUTED, linewidth=1)
        ends = []
        for number, row in groups:
            curve = privacy.trade_off(row)
            found = [100 * curve.most_found(share) for share in alarms.tolist()]
            axes.plot(100 * alarms, found, color=SERIES[number], linewidth=1.8)
            ends.append(curve.most_found(most))
        axes.set_xlim(0, _MOST_ALARMS)
        axes.set_ylim(0, 100)
        axes.tick_params(length=3, pad=3)
        for end, place, (number, row) in zip(ends, spread(ends, 0.13), groups, strict=True):
            label = f"{shorten(row.group, 17)}\n{ceil_decimals(100 * end, 0)} at {_MOST_ALARMS}"
            label_line(axes, end, place, label, SERIES[number])
        axes.set_xlabel("false alarms in 100")
        figure.text(
            0.012, 0.985, "found of 100 people, at most,\nby the best test", va="top", color=MUTED
        )
    return figure
