import math
import sys
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import collegium.report
from collegium import Budget
from collegium.errors import InputError
from collegium.pate.voting.history import SpendingPoint
from collegium.report import plots
from collegium.report.plots import spread
from collegium.report.svg import SERIES, inline_svg
from examples import EXAMPLES, data_dependent, eight_groups, make, nothing_released, unlimited


def history_figure(data) -> Figure:
    return plots.history_figure(data.privacy, data.history)


def classes_figure(data) -> Figure:
    return plots.classes_figure(
        data.class_names, data.labels_per_class, "labels released, by class"
    )


def texts(figure: Figure) -> list[str]:
    figures = [text.get_text() for text in figure.texts]
    return figures + [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "data-dependent"])
def test_all_examples_can_be_drawn(name):
    assert isinstance(history_figure(EXAMPLES[name]()), Figure)
    assert isinstance(classes_figure(EXAMPLES[name]()), Figure)


def test_history_is_refused_under_a_data_dependent_guarantee():
    with pytest.raises(InputError, match="sensitive"):
        history_figure(data_dependent())
    assert isinstance(classes_figure(data_dependent()), Figure)


def test_budgets_are_dashed_lines_and_ends_are_labelled():
    data = make()
    figure = history_figure(data)
    dashed = [line for line in figure.axes[0].lines if line.is_dashed()]
    assert [line.get_ydata()[0] for line in dashed] == [
        row.budget.epsilon for row in data.privacy.groups
    ]
    assert any(text.startswith("high\n0.6863 of 0.6931") for text in texts(figure))


def test_unlimited_budgets_have_no_line():
    figure = history_figure(unlimited())
    assert sum(line.is_dashed() for line in figure.axes[0].lines) == 1
    assert any("of ∞" in text for text in texts(figure))


def test_lines_are_within_the_axes_and_the_axis_is_logarithmic_for_distant_budgets():
    assert history_figure(make()).axes[0].get_yscale() == "linear"
    axes = history_figure(eight_groups()).axes[0]
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[0] < 0.099 < 50 < axes.get_ylim()[1]


def test_history_is_drawn_in_the_order_of_queries_and_by_name():
    data = make()
    shuffled = replace(data, history=data.history[::-1])
    assert inline(history_figure(data)) == inline(history_figure(shuffled))
    partial = [
        SpendingPoint(10, 1, {"low": 0.5}),
        SpendingPoint(20, 2, {"low": 0.7, "high": math.inf}),
    ]
    assert isinstance(history_figure(replace(data, history=partial)), Figure)


def test_more_groups_than_colours():
    data = make({f"g{number}": Budget(1 + number / 10) for number in range(30)})
    labels = [text for text in texts(history_figure(data)) if text.startswith("g")]
    assert len(labels) == len(SERIES)


@pytest.mark.parametrize("classes", [2, 3, 24, 25, 100])
def test_every_class_has_a_bar(classes):
    names = tuple(f"a class with a long name, number {number}" for number in range(classes))
    figure = classes_figure(make(classes=names))
    assert len(figure.axes[0].patches) == classes


def test_zero_labels_can_be_drawn():
    assert isinstance(classes_figure(nothing_released()), Figure)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
    st.floats(0.01, 0.5),
)
def test_labels_are_spread_in_order_and_within_the_axes(places, gap):
    moved = spread(places, gap)
    least = min(gap, 1 / max(1, len(places) - 1))
    ordered = sorted(moved)
    assert all(b - a >= least - 1e-9 for a, b in pairwise(ordered))
    assert ordered[0] >= -1e-9
    assert ordered[-1] <= 1 + 1e-9
    for i, first in enumerate(places):
        for j, second in enumerate(places):
            assert first >= second or moved[i] < moved[j]


@settings(max_examples=8)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=8, unique=True))
def test_any_name_can_be_drawn_without_a_warning(names):
    data = make(classes=tuple(names))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert inline(classes_figure(data)) == inline(classes_figure(data))


def inline(figure: Figure) -> str:
    return str(inline_svg(figure, "x", "title", "description"))


def test_svg_is_named_and_follows_the_colours_of_the_page():
    svg = inline(history_figure(make()))
    assert '<title id="x-title">title</title>' in svg
    assert '<desc id="x-desc">description</desc>' in svg
    assert "var(--series-1)" in svg
    assert not any(colour in svg for colour in SERIES)
    assert "<metadata" not in svg
    assert "http" not in svg
    assert "DejaVu" not in svg


def test_drawing_leaves_matplotlib_as_it_was():
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 31.0, "axes.facecolor": "red"}):
        strange = inline(history_figure(make()))
        assert matplotlib.rcParams["font.size"] == 31.0
    assert strange == inline(history_figure(make()))
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_not_used():
    folder = Path(collegium.report.__file__).parent
    assert not any("pyplot" in path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    assert sys.modules.get("collegium.report.plots") is not None
