"""A strict reading of a page with the standard library."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "hr", "img", "input", "link", "wbr"})


@dataclass
class Element:
    """A tag with its attributes and the text inside."""

    tag: str
    attributes: dict[str, str]
    parents: tuple[str, ...]
    text: str = ""


@dataclass
class Page:
    """All elements of a page, in order."""

    elements: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    @property
    def text(self) -> str:
        shown = [element for element in self.elements if element.tag == "body"]
        return " ".join(shown[0].text.split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in <{tag}>"
        parents = tuple(element.tag for element in self.open)
        element = Element(tag, {name: value or "" for name, value in attrs}, parents)
        self.page.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        assert "svg" in self.page.elements[-1].parents, f"<{tag}/> outside SVG"
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a start"
        last = self.open.pop()
        assert last.tag == tag, f"</{tag}> closes <{last.tag}>"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def read(html: str) -> Page:
    """Parse, and insist on balanced tags."""
    assert html.startswith("<!DOCTYPE html>")
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open, f"never closed: {[element.tag for element in reader.open]}"
    return reader.page


def check(html: str) -> Page:
    """Insist on what every report must be: balanced, self-contained, accessible."""
    page = read(html)
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids)), "an id twice"
    for element in page.elements:
        assert element.tag not in ("script", "link", "img", "iframe", "object", "image", "base")
        for name, value in element.attributes.items():
            assert not name.startswith("on"), f"{name} on <{element.tag}>"
            if name in ("href", "src", "action", "data", "srcset", "poster", "aria-labelledby"):
                for target in value.removeprefix("#").split():
                    assert target in ids, f"{name}={value!r} points outside"
            assert name == "content" or not re.search(r"https?:|//|data:", value), (name, value)
            for target in re.findall(r"url\((.*?)\)", value):
                assert target.strip("#'\"") in ids
        if element.tag == "th":
            assert element.attributes.get("scope") in ("row", "col")
        if element.tag == "svg":
            assert element.attributes["role"] == "img"
    for style in page.all("style"):
        assert not re.search(r"url\(|@import|https?:", style.text)
        assert "svg" not in style.parents
    assert len(page.all("caption")) == len(page.all("table"))
    assert len(page.all("svg")) == sum(e.tag == "desc" and bool(e.text) for e in page.elements)
    assert len(page.all("h1")) == 1
    return page
