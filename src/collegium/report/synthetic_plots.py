"""Pictures of a synthetic table beside held-out records: shares of each column, and what goes together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collegium.evaluation.synthetic_quality import Associations, ColumnShares
from collegium.report.numbers import shorten
from collegium.report.svg import INK, MUTED, SERIES, plot_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 6
"""Of one figure."""
MOST_NAMED = 20
"""Columns of one matrix."""
_MOST_ROWS = 6  # categories of one panel
_WIDTH = 5.0
_PANEL = 1.62
_SMALL = 8.0


def shares_figure(columns: Sequence[ColumnShares]) -> Figure:
    """Draw the cells of up to six columns: held-out records as bars, synthetic ones as marks on them."""
    from matplotlib.figure import Figure

    n_rows = -(-len(columns) // 2)
    height = _PANEL * n_rows + 0.3
    with plot_style():
        figure = Figure(figsize=(_WIDTH, height))
        for place, column in enumerate(columns):
            down, across = divmod(place, 2)
            inset = 0.05 if column.is_ordered else 0.2
            left = 0.01 + 0.5 * across + inset
            bottom = (height - 0.3 - _PANEL * (down + 1) + 0.3) / height
            box = (left, bottom, 0.475 - inset, (_PANEL - 0.62) / height)
            axes = figure.add_axes(box)
            draw = _intervals if column.is_ordered else _categories
            draw(axes, column)
            top = (height - 0.3 - _PANEL * down - 0.06) / height
            figure.text(
                0.01 + 0.5 * across,
                top,
                shorten(column.name, 26),
                va="top",
                color=INK,
                weight="bold",
                parse_math=False,
            )
        _key(figure, height)
    return figure


def associations_figure(
    names: Sequence[str], values: Sequence[Sequence[float | None]], title: str
) -> Figure:
    """Draw how strongly each two columns go together: the stronger the colour, the more.

    ``values``: a square matrix, from 0 to 1; None is left blank. Only what is below its diagonal is drawn.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    d = len(names)
    with plot_style():
        figure = Figure(figsize=(_WIDTH, 4.7))
        axes = figure.add_axes((0.235, 0.2, 0.745, 0.71))
        for row in range(1, d):
            for column in range(row):
                value = values[row][column]
                if value is not None:
                    square = Rectangle(
                        (column + 0.03, row + 0.03),
                        0.94,
                        0.94,
                        facecolor=SERIES[0],
                        alpha=max(0.04, min(1.0, value)),
                        linewidth=0,
                    )
                    axes.add_patch(square)
        axes.set_xlim(0, max(1, d - 1))
        axes.set_ylim(d, 1 if d > 1 else 0)
        shown = [shorten(name, 15) for name in names]
        size = _SMALL if d <= 15 else 6.5
        axes.set_yticks([row + 0.5 for row in range(1, d)], shown[1:], parse_math=False)
        axes.set_xticks([column + 0.5 for column in range(d - 1)], shown[:-1], parse_math=False)
        axes.tick_params(length=0, labelsize=size, labelcolor=INK)
        for label in axes.get_xticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        figure.text(0.012, 0.985, title, va="top", color=MUTED, parse_math=False)
        _scale(axes)
    return figure


def drawn_columns(associations: Associations) -> list[int]:
    """Choose the columns to draw where there are many: those whose associations differ most."""
    d = len(associations.names)
    if d <= MOST_NAMED:
        return list(range(d))
    apart = [
        sum(
            abs((one or 0.0) - (other or 0.0))
            for one, other in zip(
                associations.held_out[row], associations.synthetic[row], strict=True
            )
        )
        for row in range(d)
    ]
    return sorted(sorted(range(d), key=lambda row: -apart[row])[:MOST_NAMED])


def _intervals(axes: Axes, column: ColumnShares) -> None:
    """Bars side by side, and the synthetic shares as steps over them."""
    labels, held_out, synthetic = _without_empty_missing(column)
    n = len(labels)
    axes.bar(range(n), held_out, 0.9, color=MUTED, alpha=0.38, linewidth=0)
    for place, value in enumerate(synthetic):
        axes.plot([place - 0.45, place + 0.45], [value, value], color=SERIES[0], linewidth=2)
    axes.set_xlim(-0.6, n - 0.4)
    axes.set_ylim(0, 1.08 * max(*held_out, *synthetic, 1e-9))
    ends = [0, n - 1] if n > 1 else [0]
    axes.set_xticks(ends, [shorten(labels[end], 15) for end in ends], parse_math=False)
    first, last = axes.get_xticklabels()[0], axes.get_xticklabels()[-1]
    last.set_horizontalalignment("right")
    first.set_horizontalalignment("left")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0, pad=2, labelsize=_SMALL)


def _categories(axes: Axes, column: ColumnShares) -> None:
    """Bars one below the other: the largest ones, and the rest as one."""
    labels, held_out, synthetic = _largest(column)
    n = len(labels)
    axes.barh(range(n), held_out, 0.72, color=MUTED, alpha=0.38, linewidth=0)
    for place, value in enumerate(synthetic):
        axes.plot([value, value], [place - 0.36, place + 0.36], color=SERIES[0], linewidth=2)
    axes.set_ylim(max(n, 3) - 0.4, -0.6)
    axes.set_xlim(0, 1.04 * max(*held_out, *synthetic, 1e-9))
    axes.set_yticks(range(n), [shorten(label, 13) for label in labels], parse_math=False)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(length=0, pad=3, labelsize=_SMALL, labelcolor=INK)


def _without_empty_missing(
    column: ColumnShares,
) -> tuple[list[str], list[float], list[float]]:
    labels = list(column.labels)
    held_out, synthetic = list(column.held_out), list(column.synthetic)
    if len(labels) > 1 and not held_out[-1] and not synthetic[-1]:
        labels, held_out, synthetic = labels[:-1], held_out[:-1], synthetic[:-1]
    return labels, held_out, synthetic


def _largest(column: ColumnShares) -> tuple[list[str], list[float], list[float]]:
    labels, held_out, synthetic = _without_empty_missing(column)
    order = sorted(range(len(labels)), key=lambda place: -max(held_out[place], synthetic[place]))
    if len(order) <= _MOST_ROWS:
        kept, rest = order, []
    else:
        kept, rest = order[: _MOST_ROWS - 1], order[_MOST_ROWS - 1 :]
    shown = [labels[place] for place in kept]
    if rest:
        shown.append(f"{len(rest)} others")

    def picked(shares: list[float]) -> list[float]:
        own = [shares[place] for place in kept]
        return [*own, sum(shares[place] for place in rest)] if rest else own

    return shown, picked(held_out), picked(synthetic)


def _key(figure: Figure, height: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    y = 1 - 0.13 / height
    figure.add_artist(
        Rectangle(
            (0.012, y - 0.05 / height), 0.03, 0.1 / height, color=MUTED, alpha=0.38, linewidth=0
        )
    )
    figure.text(0.05, y, "held out", va="center", color=MUTED)
    figure.add_artist(Line2D([0.21, 0.24], [y, y], color=SERIES[0], linewidth=2))
    figure.text(0.25, y, "synthetic", va="center", color=MUTED)


def _scale(axes: Axes) -> None:
    """Squares of known strength, in the empty corner."""
    for place, value in enumerate((0.1, 0.3, 0.6, 1.0)):
        left = 0.6 + 0.09 * place
        axes.fill_between(
            [left, left + 0.08],
            0.93,
            0.98,
            transform=axes.transAxes,
            color=SERIES[0],
            alpha=value,
            linewidth=0,
        )
        axes.text(
            left + 0.04,
            0.915,
            f"{value:g}",
            transform=axes.transAxes,
            ha="center",
            va="top",
            fontsize=_SMALL,
            color=MUTED,
        )
