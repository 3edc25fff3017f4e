"""The picture of an answer with several values: each with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from collegium.report.numbers import display_width, shorten
from collegium.report.svg import INK, MUTED, RULE, SERIES, plot_style
from collegium.statistics.answer_words import DATE, SHARE, at_tick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_DRAWN = 40
_WIDTH = 5.0


def answer_figure(
    names: Sequence[str],
    values: Sequence[str],
    cells: Sequence[Mapping[str, Any]],
    unit: str = "",
) -> Figure:
    """Draw values with error bars, one row for each; a value that nobody can tell has an empty row.

    ``values``: of the cells, as they are written beside their dots.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    labels = [shorten(name, 24) for name in names]
    height = 0.7 + 0.26 * len(labels)
    left = min(0.45, 0.04 + 0.017 * max(map(display_width, labels), default=1))
    written = 0.018 * max(map(len, values), default=0)  # of the width
    with plot_style():
        figure = Figure(figsize=(_WIDTH, height))
        axes = figure.add_axes((left, 0.42 / height, 0.97 - written - left, 1 - 0.5 / height))
        for row, (told, cell) in enumerate(zip(values, cells, strict=True)):
            value, lower, upper = cell["value"], cell["lower"], cell["upper"]
            if value is None:
                axes.text(
                    0.01,
                    row,
                    "too few people to say",
                    transform=axes.get_yaxis_transform(),
                    va="center",
                    color=MUTED,
                )
                continue
            if lower is not None and upper is not None:
                axes.plot([lower, upper], [row, row], color=SERIES[0], linewidth=1.8)
                for end in (lower, upper):
                    axes.plot([end, end], [row - 0.16, row + 0.16], color=SERIES[0], linewidth=1.2)
            axes.plot([value], [row], "o", color=SERIES[0], markersize=5)
            axes.annotate(
                told,
                (value if upper is None else max(value, upper), row),
                (5, 0),
                textcoords="offset points",
                va="center",
                color=INK,
                parse_math=False,
                annotation_clip=False,
            )
        axes.set_yticks(range(len(labels)))
        axes.set_yticklabels(labels, parse_math=False, color=INK)
        axes.set_ylim(len(labels) - 0.45, -0.55)
        axes.margins(x=0.06)
        axes.xaxis.set_major_locator(MaxNLocator(5 if unit != DATE else 3))
        is_named = unit in (SHARE, DATE)
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda at, _: at_tick(at, unit) if is_named else f"{at:,.6g}")
        )
        axes.grid(axis="x", color=RULE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    return figure
