"""What the command line shows: tables, and one line for each error.

Imports nothing heavy: help and version come at once (what tables show is imported when they are made).
"""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from collegium.cli.encoding import can_be_shown
from collegium.passwords import masked
from collegium.plain_text import among_others, harmless

if TYPE_CHECKING:
    from collegium.accounting.statement import PrivacyStatement


class _HarmlessConsole(Console):
    """Shows text as it is (names may contain brackets), but for what a terminal would obey."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(harmless(text), **settings)

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print; a table in which numbers or names would be cut, or broken, becomes a line for each row."""
        (first, *others) = objects or ("",)
        if isinstance(first, Table) and not others:
            for column in first.columns:
                column.no_wrap, column.overflow = column.justify == "right", "fold"
                if column.no_wrap:  # rich would measure its longest word, and cut the rest
                    cells = map(str, (column.header, *column.cells))
                    column.min_width = max(map(len, cells))
            names = max((len(str(cell)) for cell in first.columns[0].cells), default=0)
            first.columns[0].min_width = min(names, max(_WHOLE_NAME, names // 2 + 2))
            wide = self.options.update(width=_WIDE)
            if Measurement.get(self, wide, first).maximum > self.width:
                first.collapse_padding, first.pad_edge = True, False
            if Measurement.get(self, wide, first).minimum > self.width:
                for line in _in_lines(first):
                    super().print(line, soft_wrap=True)
                return
        super().print(*objects, **settings)

    def insist(self, *objects: Any, **settings: Any) -> None:
        """Print, also where the user asked for quiet."""
        quiet, self.quiet = self.quiet, False
        try:
            self.print(*objects, **settings)
        finally:
            self.quiet = quiet


def _in_lines(table: Table) -> list[str]:
    (_, *names), (firsts, *others) = (
        [str(column.header) for column in table.columns],
        [[str(cell) for cell in column.cells] for column in table.columns],
    )
    rows = [
        ", ".join(f"{name} {cell}" for name, cell in zip(names, row, strict=True))
        for row in zip(*others, strict=True)
    ]
    told = [f"  {among_others(first)}: {row}" for first, row in zip(firsts, rows, strict=True)]
    return [*filter(None, (str(table.title or ""), *told, str(table.caption or "")))]


out = _HarmlessConsole()
err = _HarmlessConsole(stderr=True)
_WIDE = 10_000
_WHOLE_NAME = 24  # letters of a row's name that stand in one line; longer ones may take two
_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def show_warnings() -> None:
    """Print each warning as one line, once, without file names and line numbers."""
    said: set[str] = set()  # records that are read for two purposes say the same twice

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        if str(message) not in said:
            said.add(str(message))
            say("warning:", "yellow", str(message))

    warnings.showwarning = show


def hush(quiet: bool) -> None:
    """From now on, print errors, JSON and a command's last line alone; or everything again."""
    out.quiet = err.quiet = quiet


def last_line(privacy: PrivacyStatement | None, *parts: str) -> None:
    """Print a command's result in one line, where the user asked for quiet.

    ``privacy``: of what was released, if anything was: what voids it is said in any case.
    """
    if out.quiet:
        void = privacy is not None and not privacy.noise_is_private
        out.insist(
            "; ".join([*["NOT PRIVATE, the noise was drawn from a seed"] * void, *parts]) + ".",
            soft_wrap=True,
        )


def say(what: str, style: str, message: str) -> None:
    """Print one line to the standard error: "error:" or "warning:" in a colour, and what it is about."""
    text = " ".join(masked(harmless(message)).split())
    shown = err.insist if what == "error:" else err.print
    shown(Text.assemble((what, style), " ", text), soft_wrap=True)


def warn_of(sentence: str) -> None:
    """Print a warning, if there is one."""
    if sentence:
        say("warning:", "yellow", sentence)


def print_json(content: Any) -> None:
    """Print JSON to the standard output, and nothing else; what a terminal would obey is escaped."""
    text = json_text(content)
    if not can_be_shown(text, sys.stdout):
        text = json.dumps(_finite(content), indent=2)
    text = _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    sys.stdout.write(text + "\n")


def json_text(content: Any) -> str:
    """Write JSON for people: infinity as text, and no NaN."""
    return json.dumps(_finite(content), indent=2, ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value


def print_cautions(privacy: PrivacyStatement) -> None:
    """Print what voids a guarantee, or weakens it so much that it promises little."""
    if not privacy.noise_is_private:
        out.print("NOT PRIVATE: the noise was drawn from a seed.", style="bold red")
    if privacy.large_deltas:
        out.print(f"{privacy.large_deltas}.", style="bold yellow", soft_wrap=True)


def print_statement(sentences: Iterable[str]) -> None:
    """Print what a statement says, a line for each sentence."""
    for sentence in sentences:
        out.print(f"• {sentence}", soft_wrap=True)
