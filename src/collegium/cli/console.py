"""What the command line shows: tables, and one line for each error.

Imports nothing heavy: help and version come at once (what tables show is imported when they are made).
"""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from collegium.cli.encoding import can_be_shown
from collegium.plain_text import among_others, harmless

if TYPE_CHECKING:
    from collegium.accounting.statement import PrivacyStatement
    from collegium.budgets import Budget
    from collegium.personalisation.plan import Plan


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

#: What tables call one and many of those whose budgets they show, and what every ε is about.
MEMBERS = {
    "owner": ("person", "people", "person"),
    "teacher": ("teacher", "teachers", "teacher's data"),
}


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
    text = " ".join(harmless(message).split())
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


def privacy_table(privacy: PrivacyStatement, chosen: Mapping[str, Budget] | None = None) -> Table:
    """Tabulate level, people, budget, spent and guarantee: the rows of the card and the page.

    ``chosen``: budgets as people chose them, by level, where they are on a ledger.
    """
    from collegium.report.promise import footnotes, promise_rows

    one, many, unit = MEMBERS[privacy.unit]
    table = Table(
        title=f"What each {one} was promised, and spent", title_justify="left", box=SIMPLE_HEAD
    )
    table.add_column("level")
    for name in (many, "budget ε", "δ", "spent ε", "of budget"):
        table.add_column(name, justify="right")
    table.add_column("guarantee")
    for row in promise_rows(privacy, chosen):
        table.add_row(
            row.level, row.people, row.budget, row.delta, row.spent, row.share, row.guarantee
        )
    defined = "The full definition stands in the statement (`collegium statement`)."
    table.caption = " ".join(
        [f"ε and δ per {unit}. {privacy.in_short} {defined}", *footnotes(privacy, chosen)]
    )
    table.caption_justify = "left"
    return table


def plan_table(plan: Plan, unit: str = "owner") -> Table:
    """Tabulate who gets which teachers and how much influence."""
    one, of_owners = MEMBERS[unit][0], unit == "owner"
    from collegium.accounting.statement import budget_in_digits, left_out, some_of

    copies = any(group.duplicates != 1 for group in plan.groups.values())
    absent = any(group.frequency != 1 for group in plan.groups.values())
    table = Table(
        title=f"Plan: {plan.personalisation}, rule {plan.rule}",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    for name, shown in {
        "level": True, "people": of_owners, "budget ε": True, "teachers": True, "seen by": copies,
        "weight": True, "present": absent, "Δ": True, "used": True,
    }.items():  # fmt: skip
        if shown:
            table.add_column(name, justify="left" if name == "level" else "right")
    for name, group in some_of(list(plan.groups.items()), lambda item: item[1].budget):
        table.add_row(
            name,
            *[f"{group.owners:,}"] * of_owners,
            budget_in_digits(group.budget.epsilon),
            f"{group.teachers:,}",
            *[str(group.duplicates)] * copies,
            f"{group.weight:.4g}",
            *[f"{100 * group.frequency:.3g} %"] * absent,
            f"{group.sensitivity:.4g}",
            f"{100 * group.utilisation:.1f} %",
        )
    legend = [
        *[f"seen by: teachers that see each {one}"] * copies,
        *["present: share of the queries in which the group's teachers vote"] * absent,
        f"Δ: votes that one {one} can move",
        "used: share of the budget (in μ) that is spent when the first budget runs out",
        *filter(None, [left_out(len(plan.groups))]),
    ]
    table.caption = "; ".join(legend)
    table.caption_justify = "left"
    return table


def plan_sentence(plan: Plan) -> str:
    """Say what a plan makes of the budgets."""
    return (
        f"{plan.n_teachers:,} teachers are trained; {100 * plan.efficiency:.1f} % of all granted budgets "
        "turn into votes."
    )


def columns_sentence(columns: Iterable[tuple[str, str]]) -> str:
    """Say how the features are read: names and kinds, as the public records show them."""
    from collegium.checks import listed

    by_kind: dict[str, list[str]] = {}
    for name, kind in columns:
        by_kind.setdefault(kind, []).append(name)
    said = "; ".join(f"as {kind}: {listed(names)}" for kind, names in by_kind.items())
    return f"Read {said}."
