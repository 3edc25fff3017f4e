"""Plots show all that they say."""

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reproduction.curves import CURVES
from reproduction.drawings import draw_curves, draw_scaling, draw_utility


def curves(panels, variants):
    return pd.DataFrame(
        {"panel": panel, "variant": variant, "group": group, "x": x, "mean": x / 9.0, "sd": 0.1}
        for panel in panels
        for variant in variants
        for group in ("lower", "higher")
        for x in (1, 10, 20)
    )


def figures(title):
    for spec in CURVES.values():
        table = curves([panel.name for panel in spec.panels], spec.variants)
        yield draw_curves(table, spec.quantity, title)
    points = {"variant": ["weighting"] * 3, "labels": [1, 2, 3], "ratio": [1.0, 2.0, 2.5]}
    yield draw_scaling(pd.DataFrame(points), title)
    students = {"records": [1, 2, 3], "accuracy": [90.0, 91.0, 92.0], "model": "student"}
    yield draw_utility(pd.DataFrame({**students, "variant": "weighting"}), title)


def test_titles_and_legends_fit_into_the_figure():
    title = max((spec.title for spec in CURVES.values()), key=len)
    for figure in figures(f"{title}: published, teachers kernel-ridge (QUICK: means nothing)"):
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw_without_rendering()
        whole = figure.bbox
        for part in (figure._suptitle, *figure.legends):
            box = part.get_window_extent(renderer)
            assert whole.x0 <= box.x0 and box.x1 <= whole.x1
            assert whole.y0 <= box.y0 and box.y1 <= whole.y1
