"""What a plan or a result says of itself, on a terminal: the forms of :mod:`collegium.report.sections`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import rich.table
from rich.box import SIMPLE_HEAD

from collegium.cli.console import last_line, out, print_cautions, print_json
from collegium.report.chances import key_in_letters
from collegium.report.sections import (
    Banner,
    Block,
    Figures,
    Folded,
    Heading,
    Headlines,
    Listing,
    Pairs,
    Paragraph,
    Points,
    Risks,
    Table,
    Text,
)

if TYPE_CHECKING:
    from collegium.study.result import PublishedResult

_OF_VERDICTS = {
    "good": "bold green",
    "caution": "bold yellow",
    "plain": "bold",
    "danger": "bold red",
}
_OF_WARNINGS = "bold yellow"


def show(blocks: Iterable[Block | Banner]) -> None:
    """Print blocks, one below the other; pictures are for the page."""
    for block in blocks:
        if isinstance(block, Table):
            out.print(rich_table(block))
        elif isinstance(block, Banner):
            _line(f"{block.heading}.", _OF_VERDICTS[block.tone])
            _lines([block.text] if block.text else [])
        elif isinstance(block, Paragraph):
            _line(block.text, _OF_WARNINGS if block.tone == "warning" else None)
        elif isinstance(block, Points):
            _lines(f"• {_written(line)}" for line in block.lines)
        elif isinstance(block, Listing):
            _lines(block.code.splitlines())
        elif isinstance(block, Heading):
            _line(block.text, "bold")
        elif isinstance(block, Headlines):
            for one in block.figures:
                _line(f"{one.name}: {one.value}" + (f" ({_written(one.note)})" if one.note else ""))
        elif isinstance(block, Pairs):
            _lines([block.caption, *(f"  {name}: {value}" for name, value in block.rows)])
        elif isinstance(block, Figures):
            show(block.tables)
        elif isinstance(block, Risks):
            for name, said, chances in block.shown:
                _lines([f"{name}: {said}", *chances.letters()])
            _lines(key_in_letters(block.key))
        elif isinstance(block, Folded):
            _line(block.title, "bold")
            show(block.blocks)


def show_result(
    result: PublishedResult,
    as_json: bool,
    numbers: Mapping[str, Any] = MappingProxyType({}),
    blocks: Iterable[Block] = (),
) -> None:
    """Show what was published, and where. ``numbers``, ``blocks``: what else is said of it."""
    if as_json:
        print_json({**result.to_json(), **numbers})
        return
    print_cautions(result.privacy)
    show([*result.blocks(), *blocks])
    published = result.folder.release
    if result.ledger is not None:
        _line(
            f"Ledger:    {result.ledger} (`collegium ledger show {shlex.quote(str(result.ledger))}`)"
        )
    _line(f"Published: {published}")
    if result.report.exists():
        _line(f"Report:    {result.report}")
    last_line(result.privacy, *filter(None, [result.in_short()]), f"published: {published}")


def rich_table(table: Table) -> rich.table.Table:
    """Draw a table: names on the left, numbers on the right."""
    drawn = rich.table.Table(
        title=table.title or None, title_justify="left", caption_justify="left", box=SIMPLE_HEAD
    )
    for column in table.columns:
        drawn.add_column(column.name, justify="right" if column.is_number else "left")
    for row in table.rows:
        drawn.add_row(*map(_written, row))
    drawn.caption = _written(table.caption)
    return drawn


def _lines(texts: Iterable[str]) -> None:
    for text in texts:
        _line(text)


def _line(text: Text, style: str | None = None) -> None:
    out.print(_written(text), style=style, soft_wrap=True)


def _written(text: Text) -> str:
    return (
        text
        if isinstance(text, str)
        else "".join(part if isinstance(part, str) else part.text for part in text)
    )
