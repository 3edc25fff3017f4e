"""From a matplotlib figure to an SVG element that can stand inside a page."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from markupsafe import Markup

from collegium.report.numbers import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, RULE = "#1b2733", "#55626f", "#d3dae1"
SERIES = (
    "#0b5cad",
    "#b34700",
    "#00735c",
    "#9c2e7a",
    "#6b4fbb",
    "#7a6200",
    "#3f4a54",
    "#0a718f",
)
"""Colours of groups on a light page; the page's style has their partners for a dark one."""

_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    RULE: "var(--rule)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, start=1)},
}
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "collegium",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.facecolor": "none",
    "axes.unicode_minus": False,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextmanager
def plot_style() -> Iterator[None]:
    """Draw in the report's style, whatever the user's matplotlib is set to."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        # The page's own fonts draw the text; matplotlib only measures it.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def inline_svg(figure: Figure, prefix: str, title: str, description: str) -> Markup:
    """Make an SVG element with a name and a description, in colours that follow the page.

    ``figure``: drawn in :func:`plot_style`.
    ``prefix``: goes before every id, so that several figures can share a page.
    ``title``, ``description``: what assistive technology reads instead.
    Returns: the same for the same figure: no dates, no random ids, no references to anything
        outside.
    """
    stream = io.StringIO()
    with plot_style():
        figure.savefig(
            stream,
            format="svg",
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    root = ElementTree.fromstring(stream.getvalue())
    _simplify(root, prefix)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title {prefix}-desc")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{prefix}-{tag}"})
        element.text = clean(text)
        root.insert(position, element)
    ElementTree.indent(root, space="")
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _simplify(root: ElementTree.Element, prefix: str) -> None:
    """Drop namespaces, metadata and styles; make ids local; turn colours into variables."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        attributes = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        element.attrib.clear()
        for key, value in attributes.items():
            element.set(key, _local(key, value, prefix))


def _local(key: str, value: str, prefix: str) -> str:
    if key == "id":
        return f"{prefix}-{value}"
    if key == "href":
        return value.replace("#", f"#{prefix}-", 1)
    if key == "style":
        kept = [part for part in value.split(";") if not part.strip().startswith("font-family")]
        value = ";".join(kept)
        for colour, variable in _VARIABLES.items():
            value = value.replace(colour, variable)
    return value.replace("url(#", f"url(#{prefix}-")
