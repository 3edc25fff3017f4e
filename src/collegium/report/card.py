"""The card of a release, in Markdown: what it is, what was promised, how to use it, and where it ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from collegium.report.numbers import clean
from collegium.report.page import limits, statement
from collegium.report.promise import promise_table, risks
from collegium.report.sections import (
    Block,
    Code,
    Figures,
    Folded,
    Heading,
    Headlines,
    Link,
    Listing,
    Page,
    Pairs,
    Paragraph,
    Points,
    Risks,
    Section,
    Strong,
    Table,
    Text,
)
from collegium.report.verdict import banners

_SHOWN = 200  # rows of a table
_PAGE = Code("report.html")


def render_card(page: Page) -> str:
    """Write the card: the page's front and its most important sections, without its pictures.

    ``page``: only what may be published.
    """
    use = [Section("use", "How to use it", page.use)] if page.use else []
    made = ", ".join(f"{name} {number}" for name, number in page.versions.items())
    sections = [
        Section("results", "Results", [Paragraph(page.stopped), *page.results]),
        *(section for section in page.sections if section.on_card),
        Section(
            "promises", "What was promised to whom", [risks(page.privacy), promise_table(page)]
        ),
        *use,
        limits(page),
        statement(page),
        Section("settings", "Made with", [Paragraph(made)] if made else []),
    ]
    parts = [
        f"# {_line(page.title)}",
        _line(page.what),
        *(
            f"**{_line(notice.heading)}.** {_line(notice.text)}"
            for notice in banners(page.privacy, page.verdict)
        ),
        _line(
            (
                Code("privacy.json"),
                " holds all settings, ",
                _PAGE,
                " the whole story with its pictures.",
            )
        ),
    ]
    for section in sections:
        if section.blocks:
            parts += [f"## {_line(section.title)}", *_written(section.blocks)]
    return "\n\n".join(parts) + "\n"


def _written(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Table):
            yield from _table(block)
        elif isinstance(block, Paragraph):
            yield _line(block.text)
        elif isinstance(block, Points):
            yield _points(block.lines)
        elif isinstance(block, Headlines):
            if block.figures:
                yield _points(
                    (Strong(f"{one.name}: {one.value}"), " – ", *_parts(one.note))
                    if one.note
                    else (Strong(f"{one.name}: {one.value}"),)
                    for one in block.figures
                )
        elif isinstance(block, Listing):
            yield f"```{block.language}\n{block.code}\n```"
        elif isinstance(block, Pairs):
            yield _line(block.caption)
            yield _points(f"{name}: {value}" for name, value in block.rows)
        elif isinstance(block, Heading):
            yield f"### {_line(block.text)}"
        elif isinstance(block, Risks):
            yield _points((Strong(f"{name}."), f" {said}") for name, said, _ in block.shown)
        elif isinstance(block, Figures):
            yield from _written(block.tables)
        elif isinstance(block, Folded):
            yield f"### {_line(block.title)}"
            yield from _written(block.blocks)


def _table(table: Table) -> Iterator[str]:
    head = [_line(column.name) for column in table.columns]
    shown = [[_line(cell) for cell in row] for row in table.rows[:_SHOWN]]
    marks = ["---:" if column.is_number else "---" for column in table.columns]
    yield "\n".join(f"| {' | '.join(line)} |" for line in (head, marks, *shown))
    if len(table.rows) > _SHOWN:
        yield _line(f"… and {len(table.rows) - _SHOWN:,} more.")
    if table.caption:
        yield _line(table.caption)


def _points(lines: Iterable[Text]) -> str:
    return "\n".join(f"- {_line(line)}" for line in lines)


def _parts(text: Text) -> tuple[str | Code | Strong | Link, ...]:
    return (text,) if isinstance(text, str) else text


def _line(text: Text) -> str:
    """Write a text as Markdown shows it."""
    return re.sub(" +", " ", "".join(map(_part, _parts(text)))).strip()


def _part(part: str | Code | Strong | Link) -> str:
    if isinstance(part, str):
        return " " * part.startswith(" ") + _escaped(part) + " " * part.endswith(" ")
    if isinstance(part, Code) and not re.search("[`|]", part.text):
        return f"`{clean(part.text)}`"
    return f"**{_escaped(part.text)}**" if isinstance(part, Strong) else _escaped(part.text)


def _escaped(text: str) -> str:
    """Whatever is a mark in Markdown is not one here."""
    return re.sub(r"([\\`*_\[\]<>|#&$~])", r"\\\1", clean(text))
