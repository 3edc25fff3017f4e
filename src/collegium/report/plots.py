"""The figures of a report, made from what may be published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from collegium.accounting.statement import PrivacyStatement, ceil_decimals
from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.report.numbers import count, display_width, down, shorten, spent_of
from collegium.report.svg import INK, MUTED, SERIES, plot_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_GROUPS = len(SERIES)
MOST_NAMED_CLASSES = 24
_WIDTH = 5.0
_MARKERS = "os^DvPX*"
_LOGARITHMIC_FROM = 30.0
_SMALLEST, _LARGEST = 1e-9, 1e9
_MOST_ALARMS = 25  # in 100: an attacker who puts up with more is hardly worth the name


class Point(Protocol):
    """An account on the way: after so many queries, or steps."""

    @property
    def asked(self) -> int:
        """How many."""

    @property
    def epsilon_spent(self) -> Mapping[str, float]:
        """The most that any person of each level has spent, rounded up."""


def history_figure(
    privacy: PrivacyStatement,
    history: Sequence[Point],
    after: str = "queries asked",
    budgets: Mapping[str, Budget] | None = None,
) -> Figure:
    """Draw what each person of each level has spent, against the queries asked (or the steps taken).

    Budgets are dashed lines; ``budgets`` are those that people chose, where these are others. With more
    levels than there are colours only the first are drawn. The axis is logarithmic where budgets are far
    apart.

    Raises InputError under a data-dependent guarantee: what was spent is sensitive.
    """
    if not privacy.may_publish_spending:
        raise InputError(
            f"under a {privacy.guarantee} guarantee what was spent is sensitive: there is no "
            "figure of it"
        )
    from matplotlib.figure import Figure

    groups = privacy.groups[:MOST_GROUPS]
    granted = {row.group: row.budget.epsilon for row in groups}
    granted |= {name: budget.epsilon for name, budget in (budgets or {}).items()}
    points = sorted(history, key=lambda point: point.asked)
    asked = [point.asked for point in points]
    lines = {
        row.group: [_drawable(point.epsilon_spent.get(row.group, math.nan)) for point in points]
        for row in groups
    }
    with plot_style():
        figure = Figure(figsize=(_WIDTH, 3.4))
        axes = figure.add_axes((0.1, 0.14, 0.585, 0.71))
        _scale_history(axes, asked, lines, [_drawable(granted[row.group]) for row in groups])
        ends: list[float] = []
        for number, row in enumerate(groups):
            colour, spent = SERIES[number], lines[row.group]
            epsilon = granted[row.group]
            if math.isfinite(_drawable(epsilon)):
                axes.axhline(epsilon, color=colour, linewidth=1, dashes=(4, 3))
            axes.plot(asked, spent, color=colour, linewidth=1.8)
            last = next((y for y in reversed(spent) if math.isfinite(y)), epsilon)
            if asked and math.isfinite(spent[-1]):
                axes.plot(
                    asked[-1:],
                    spent[-1:],
                    _MARKERS[number],
                    color=colour,
                    markersize=5,
                    clip_on=False,
                )
            ends.append(_height(axes, last))
        for number, (row, place) in enumerate(zip(groups, spread(ends, 0.13), strict=True)):
            paid = spent_of(row.epsilon_spent, row.budget.epsilon)
            label = f"{shorten(row.group, 17)}\n{paid}"
            label_line(axes, ends[number], place, label, SERIES[number])
        axes.set_xlabel(after)
        figure.text(0.012, 0.985, history_unit(privacy), va="top", color=MUTED, parse_math=False)
    return figure


def history_unit(privacy: PrivacyStatement) -> str:
    """Say what the vertical axis shows, with the unit of ε."""
    deltas = sorted({down(row.budget.delta) for row in privacy.groups})
    delta = f"δ = {deltas[0]}" if len(deltas) == 1 else "δ of the level"
    return f"ε spent, per person, at {delta}\n{privacy.title}; dashed: budget"


def classes_figure(names: Sequence[str], counts: Sequence[int], title: str) -> Figure:
    """Draw how many of each class there are; ``title`` says of what.

    Returns: bars with names for up to 24 classes; else one narrow bar per class, in the public
        order.
    """
    with plot_style():
        if len(names) <= MOST_NAMED_CLASSES:
            return _named_classes(names, counts, title)
        return _many_classes(names, counts, title)


def risk_figure(privacy: PrivacyStatement) -> Figure:
    """Draw how many of 100 people of each level the best test finds at most, against its false alarms.

    With more levels than there are colours only the first are drawn; those without a limit are left out.
    """
    from matplotlib.figure import Figure

    groups = [
        (number, row)
        for number, row in enumerate(privacy.groups[:MOST_GROUPS])
        if not row.budget.is_unlimited
    ]
    most = _MOST_ALARMS / 100
    alarms = most * np.linspace(0, 1, 101) ** 2  # dense where curves are steep
    with plot_style():
        figure = Figure(figsize=(_WIDTH, 3.4))
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
            0.012,
            0.985,
            "found of 100 people, at most,\nby the best attacker",
            va="top",
            color=MUTED,
        )
    return figure


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move labels apart, keeping their order, within 0 to 1 as far as they fit.

    ``places``: where the labels should be.
    ``gap``: least distance between two; made smaller when there are too many.

    Examples
    --------
    >>> spread([0.5, 0.9, 0.95], 0.25)
    [0.5, 0.75, 1.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    gap = min(gap, 1 / max(1, len(places) - 1))
    moved = [0.0] * len(places)
    floor = 0.0
    for i in order:
        moved[i] = max(floor, min(1.0, places[i]))
        floor = moved[i] + gap
    ceiling = 1.0
    for i in reversed(order):
        moved[i] = min(ceiling, moved[i])
        ceiling = moved[i] - gap
    return moved


def _scale_history(
    axes: Axes, asked: list[int], lines: dict[str, list[float]], budgets: list[float]
) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

    last = [spent[-1] for spent in lines.values() if spent]
    tall = [value for value in (*budgets, *last) if math.isfinite(value) and value > _SMALLEST]
    far_apart = bool(tall) and max(tall) / min(tall) > _LOGARITHMIC_FROM
    if far_apart:
        axes.set_yscale("log")
        axes.set_ylim(min(tall) / 3, max(tall) * 1.3)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, max(tall, default=1.0) * 1.06)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.set_xlim(0, max(1, *asked, 1))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: count(round(x))))
    axes.tick_params(length=3, pad=3)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def label_line(axes: Axes, end: float, place: float, label: str, colour: str) -> None:
    """Write a label beside the axes, tied to the end of its line."""
    axes.plot(
        [1.0, 1.035, 1.05],
        [end, place, place],
        transform=axes.transAxes,
        color=colour,
        linewidth=0.7,
        clip_on=False,
    )
    axes.text(
        1.06,
        place,
        label,
        transform=axes.transAxes,
        color=colour,
        va="center",
        fontsize=9,
        linespacing=1.1,
        parse_math=False,
    )


def _height(axes: Axes, value: float) -> float:
    """Place of a value on the vertical axis, as a fraction of it."""
    low, high = axes.get_ylim()
    if not math.isfinite(value):
        return 1.0
    if axes.get_yscale() == "log":
        value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _drawable(value: float) -> float:
    return value if 0 <= value <= _LARGEST else math.nan


def _named_classes(names: Sequence[str], counts: Sequence[int], title: str) -> Figure:
    from matplotlib.figure import Figure

    names = [shorten(name, 18) for name in names]
    height = max(2.2, 0.75 + 0.26 * len(names))
    figure = Figure(figsize=(_WIDTH, height))
    left = min(0.42, 0.03 + 0.017 * max(map(display_width, names), default=1))
    axes = figure.add_axes((left, 0.08 / height, 0.985 - left, 1 - 0.48 / height))
    rows = range(len(names))
    axes.barh(rows, counts, color=SERIES[0], height=0.68)
    largest = max(1, *counts)
    for row, value in enumerate(counts):
        axes.text(value + largest * 0.012, row, count(value), va="center", color=INK)
    axes.set_yticks(rows)
    axes.set_yticklabels(names, parse_math=False, color=INK)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_xlim(0, largest * 1.14)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(length=0)
    figure.text(0.012, 1 - 0.06 / height, title, va="top", color=MUTED)
    return figure


def _many_classes(names: Sequence[str], counts: Sequence[int], title: str) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(_WIDTH, 3.4))
    axes = figure.add_axes((0.1, 0.14, 0.885, 0.68))
    axes.bar(range(1, len(counts) + 1), counts, color=SERIES[0], width=0.8)
    axes.set_xlim(0.25, len(counts) + 0.75)
    axes.set_ylim(0, max(1, *counts) * 1.04)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=2))
    axes.tick_params(length=3)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("class, in the order of the public list")
    top = max(range(len(counts)), key=lambda i: counts[i])
    figure.text(
        0.012,
        0.985,
        f"{title}\nmost: {shorten(names[top], 40)}, {count(counts[top])}",
        va="top",
        color=MUTED,
        parse_math=False,
    )
    return figure
