"""Plots as the sources drew them, from the tables of numbers that are stored beside them."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from collegium.report.svg import SERIES

COLOURS = {
    "none": "#3f4a54",
    "upsampling": SERIES[0],
    "weighting": SERIES[1],
    "vanishing": SERIES[2],
}
NAMES = {
    "none": "GNMax (no individual budgets)",
    "upsampling": "upsampling",
    "weighting": "weighting",
    "vanishing": "vanishing",
}
_LINES = {"lower": "--", "higher": "-", "both": "-"}
_LABELS = {
    "cost": ("labels released", "ε spent"),
    "order": ("queries", "best Rényi order"),
    "ratio": ("queries", "ε of the higher group / ε of the lower"),
}

_LETTERS_PER_INCH = 12  # of a title


def draw_curves(curves: pd.DataFrame, quantity: str, title: str) -> Figure:
    """Draw curves, one panel for each setting, with bands of one standard deviation.

    Parameters
    ----------
    curves : pandas.DataFrame
        Of :func:`reproduction.curves.run_curves`, one reading.
    quantity : {"cost", "order", "ratio"}
        What is drawn.
    title : str
        Above everything.

    Returns
    -------
    Figure
    """
    if quantity == "ratio":
        return _draw_ratios(curves, title)
    panels = [name for name in curves["panel"].unique() if name]
    baseline = curves[curves["panel"] == ""]
    columns = min(3, len(panels))
    figure, axes = _axes(len(panels), columns, title)
    for name, ax in zip(panels, axes, strict=True):
        chosen = pd.concat([baseline, curves[curves["panel"] == name]])
        for (variant, group), line in chosen.groupby(["variant", "group"], sort=False):
            _line(ax, line, str(variant), _LINES[str(group)], _legend(str(variant), str(group)))
        if quantity == "cost":
            _budget_lines(ax, name)
        ax.set_title(name, fontsize=9)
        _name_axes(ax, quantity)
    _legend_below(figure, axes[0])
    return figure


def _draw_ratios(curves: pd.DataFrame, title: str) -> Figure:
    """One panel for each variant, one line for each setting, as in thesis Figure 6.4."""
    variants = list(curves["variant"].unique())
    figure, axes = _axes(len(variants), len(variants), title)
    settings = list(curves["panel"].unique())
    shades = [SERIES[i % len(SERIES)] for i in range(len(settings))]
    for variant, ax in zip(variants, axes, strict=True):
        for name, shade in zip(settings, shades, strict=True):
            line = curves[(curves["variant"] == variant) & (curves["panel"] == name)]
            ax.plot(line["x"], line["mean"], color=shade, label=name.split(",")[0], linewidth=1.3)
            _band(ax, line, shade)
        ax.set_title(NAMES.get(variant, variant), fontsize=9)
        _name_axes(ax, "ratio")
    _legend_below(figure, axes[0])
    return figure


def draw_utility(points: pd.DataFrame, title: str) -> Figure:
    """Draw accuracies of teachers and students over the number of their training records.

    Parameters
    ----------
    points : pandas.DataFrame
        Columns model (``teacher``, ``student``), variant, records, accuracy (percent).
    title : str
        Above everything.
    """
    variants = [name for name in COLOURS if name in set(points["variant"])]
    figure, axes = _axes(len(variants), min(2, len(variants)), title)
    for variant, ax in zip(variants, axes, strict=True):
        chosen = points[points["variant"] == variant]
        for model, marker, size, opacity in (("teacher", "x", 14, 0.35), ("student", "o", 16, 0.6)):
            part = chosen[chosen["model"] == model]
            ax.scatter(
                part["records"],
                part["accuracy"],
                marker=marker,
                s=size,
                alpha=opacity,
                color=COLOURS[variant] if model == "student" else "#7c8791",
                linewidths=0.8,
                label=f"{model}s",
            )
        ax.set_title(NAMES[variant], fontsize=9)
        ax.set_xlabel("training records")
        ax.set_ylabel("accuracy on test records / %")
        _grid(ax)
    _legend_below(figure, axes[0])
    return figure


def draw_scaling(points: pd.DataFrame, title: str) -> Figure:
    """Draw the weighted privacy ratio over the labels released, with a straight fit, as paper Figure 2.

    Parameters
    ----------
    points : pandas.DataFrame
        Columns variant, ratio ((ε₁·d₁)/(ε₀·d₀)), labels.
    title : str
        Above everything.
    """
    figure, (ax,) = _axes(1, 1, title)
    for variant, part in points.groupby("variant", sort=False):
        colour = COLOURS[str(variant)]
        ax.scatter(part["labels"], part["ratio"], s=18, color=colour, label=NAMES[str(variant)])
        if len(part) > 2:
            slope, offset = np.polyfit(part["labels"], part["ratio"], 1)
            ends = np.array([part["labels"].min(), part["labels"].max()])
            ax.plot(ends, slope * ends + offset, color=colour, linewidth=1)
    ax.set_xlabel("labels released")
    ax.set_ylabel("(ε₁·d₁) / (ε₀·d₀)")
    _grid(ax)
    _legend_below(figure, ax)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=110, facecolor="white", metadata={"Software": None})


def _axes(n_panels: int, columns: int, title: str) -> tuple[Figure, list[Axes]]:
    rows = math.ceil(n_panels / columns)
    figure = Figure(figsize=(max(5.2, 3.6 * columns), 2.9 * rows + 0.9), layout="constrained")
    letters = int(_LETTERS_PER_INCH * figure.get_figwidth())
    figure.suptitle(textwrap.fill(title, letters), fontsize=10.5)
    grid = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    for unused in grid[n_panels:]:
        unused.set_axis_off()
    return figure, list(grid[:n_panels])


def _line(ax: Axes, line: pd.DataFrame, variant: str, style: str, label: str) -> None:
    colour = COLOURS[variant]
    # Upsampling and weighting often coincide: the wide pale line shows beneath the thin one.
    width, opacity = (3.4, 0.45) if variant == "upsampling" else (1.3, 1.0)
    ax.plot(
        line["x"],
        line["mean"],
        color=colour,
        linestyle=style,
        linewidth=width,
        alpha=opacity,
        label=label,
    )
    _band(ax, line, colour)


def _band(ax: Axes, line: pd.DataFrame, colour: str) -> None:
    ax.fill_between(
        line["x"],
        line["mean"] - line["sd"],
        line["mean"] + line["sd"],
        color=colour,
        alpha=0.15,
        linewidth=0,
    )


def _budget_lines(ax: Axes, panel: str) -> None:
    from reproduction.published import budget_from_text

    budgets = panel.split(",")[0].removeprefix("ε = ").split(" | ")
    for budget, style in zip(budgets, (":", "-."), strict=True):
        ax.axhline(budget_from_text(budget), color="#9aa5af", linewidth=0.9, linestyle=style)


def _name_axes(ax: Axes, quantity: str) -> None:
    x, y = _LABELS[quantity]
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    _grid(ax)


def _grid(ax: Axes) -> None:
    ax.grid(color="#e3e8ec", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _legend(variant: str, group: str) -> str:
    return NAMES[variant] if group == "both" else f"{NAMES[variant]}, {group} budget"


def _legend_below(figure: Figure, ax: Axes) -> None:
    handles: Any = ax.get_legend_handles_labels()
    columns = max(2, int(figure.get_figwidth() / 2.6))
    figure.legend(
        *handles,
        loc="outside lower center",
        ncols=columns,
        fontsize=8,
        frameon=False,
        handlelength=3,
    )
