"""What was promised and spent, by level: the same rows on the terminal, the card and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collegium.accounting.statement import (
    FALSE_ALARMS,
    GroupSpending,
    PrivacyStatement,
    left_out,
    percent_spent,
)
from collegium.budgets import Budget
from collegium.report import words
from collegium.report.chances import Chances
from collegium.report.in_plain_words import key
from collegium.report.numbers import budget_and_spent, clean, count, down, plain, spent_of, up
from collegium.report.plots import MOST_GROUPS, Point, history_figure, risk_figure
from collegium.report.sections import (
    Block,
    Column,
    Figure,
    Figures,
    Folded,
    Link,
    Page,
    Paragraph,
    Risks,
    Section,
    Table,
)

IN_VAULT = "in the vault"
_MOST_PICTURES = 4  # side by side


@dataclass(frozen=True)
class PromiseRow:
    """What one level was promised, and what each of its people spent, as it is written.

    ``spent``, ``share`` (of the budget): :data:`IN_VAULT` and a dash where they are sensitive.
    ``meaning``: of the budget, for one of these people: see :func:`risks`.
    """

    level: str
    people: str
    budget: str
    delta: str
    spent: str
    share: str
    guarantee: str
    meaning: str

    @property
    def spent_and_share(self) -> str:
        """Both in one cell."""
        return self.spent if self.share == "—" else f"{self.spent} ({self.share})"


def promise_rows(
    privacy: PrivacyStatement, chosen: Mapping[str, Budget] | None = None
) -> list[PromiseRow]:
    """Write what was promised and spent, a row for each level that is shown.

    ``chosen``: budgets as people chose them, by level: see :func:`granted_by`.
    """
    return [_row(row, privacy, granted_by(row, chosen or {})) for row in privacy.shown]


def granted_by(row: GroupSpending, chosen: Mapping[str, Budget]) -> Budget:
    """Find the budget that people of a level chose.

    On a ledger a release keeps it at a smaller δ: the ledger keeps a share of each back. Where people have
    spent some of their budget before, this release promises what was left, and that is what is shown.
    """
    whole = chosen.get(row.group, row.budget)
    return whole if whole.epsilon == row.budget.epsilon else row.budget


def _row(row: GroupSpending, privacy: PrivacyStatement, budget: Budget) -> PromiseRow:
    epsilon, spent, share = down(budget.epsilon), IN_VAULT, "—"
    if privacy.may_publish_spending:  # otherwise not even the number of digits may depend on it
        epsilon, spent = budget_and_spent(row.epsilon_spent, row.budget.epsilon)
        share = percent_spent(row.share)
    return PromiseRow(
        level=row.group,
        people=count(row.owners),
        budget=epsilon,
        delta=down(budget.delta),
        spent=spent,
        share=share,
        guarantee="none: ε = ∞" if budget.is_unlimited else privacy.title,
        meaning="no limit" if budget.is_unlimited else f"{privacy.right_of_100(row)} times in 100",
    )


def footnotes(privacy: PrivacyStatement, chosen: Mapping[str, Budget] | None = None) -> list[str]:
    """Say what the rows leave out: what a ledger keeps back, levels that are not shown."""
    lines = []
    kept = dict.fromkeys(
        f"{down(row.budget.delta)} of {down(granted.delta)}"
        for row in privacy.shown
        for granted in [granted_by(row, chosen or {})]
        if granted.delta != row.budget.delta
    )
    if kept:
        lines.append(
            "A ledger keeps a small share of each δ back, for releases that need some beside their noise; "
            f"this one uses the rest ({'; '.join(kept)})."
        )
    if left_out(len(privacy.groups)):
        lines.append(f"{left_out(len(privacy.groups))}.")
    return lines


def spending_table(privacy: PrivacyStatement, chosen: Mapping[str, Budget] | None = None) -> Table:
    """Tabulate the same rows for a terminal, which is narrow.

    ``chosen``: budgets as people chose them, by level: see :func:`granted_by`.
    """
    one, many, unit = words.MEMBERS[privacy.unit]
    defined = "The full definition stands in the statement (`collegium statement`)."
    numbers = (many, "budget ε", "δ", "spent ε", "of budget")
    return Table(
        (
            Column("level", is_number=False),
            *map(Column, numbers),
            Column("guarantee", is_number=False),
        ),
        [
            (row.level, row.people, row.budget, row.delta, row.spent, row.share, row.guarantee)
            for row in promise_rows(privacy, chosen)
        ],
        " ".join(
            [f"ε and δ per {unit}. {privacy.in_short} {defined}", *footnotes(privacy, chosen)]
        ),
        f"What each {one} was promised, and spent",
    )


def promise_table(page: Page) -> Table:
    """Tabulate what was promised to whom, and what was spent of it."""
    rounded = "Budgets are rounded down"
    if page.privacy.may_publish_spending:
        rounded += ", amounts spent are rounded up; in brackets: share of the budget"
    caption = (
        f"ε and δ per person. {page.privacy.in_short} The full definition stands in the ",
        Link("statement", "statement"),
        " ".join(
            [
                f". Guarantee: {page.privacy.title}. {rounded}.",
                *footnotes(page.privacy, page.chosen),
            ]
        ),
    )
    columns = (
        Column("Level", is_number=False),
        Column("People"),
        Column("Budget ε per person"),
        Column("δ"),
        Column("Spent ε per person"),
        Column("Right at most"),
    )
    rows = [
        (row.level, row.people, row.budget, row.delta, row.spent_and_share, row.meaning)
        for row in promise_rows(page.privacy, page.chosen)
    ]
    return Table(columns, rows, caption)


def risks(privacy: PrivacyStatement) -> Risks:
    """Say of each level that is shown what its budget means, in the one sentence and the one picture."""
    return Risks(
        [
            (row.group, _sentence(privacy.risk_in_words(row)), Chances(privacy.right_of_100(row)))
            for row in privacy.shown
        ],
        key(),
    )


def promises(page: Page) -> Section:
    """Say what was promised to whom, and what it means."""
    privacy, pictured = page.privacy, risks(page.privacy)
    blocks: list[Block] = [Paragraph(words.BUDGETS)]
    if not privacy.noise_is_private:
        blocks.append(
            Paragraph("None of this holds for this run: the noise was seeded.", "warning")
        )
    many = len(pictured.shown) > _MOST_PICTURES
    blocks.append(
        Folded("The promise to each level, in pictures", [pictured]) if many else pictured
    )
    blocks.append(promise_table(page))
    if not privacy.may_publish_spending:
        blocks.append(Paragraph(f"The amounts spent are {words.KEPT_IN_VAULT}."))
    return Section("promises", "What was promised to whom", blocks)


def risk(page: Page) -> Section:
    """Say where the promise comes from: error rates of attackers, and formulas."""
    privacy = page.privacy
    blocks: list[Block] = [
        *map(Paragraph, words.RISK),
        Paragraph(page.risk_follows or words.RISK_FROM[privacy.gaussian]),
    ]
    if any(not row.budget.is_unlimited for row in privacy.groups):
        blocks.append(Figures([_risk_figure(privacy)]))
    else:
        blocks.append(_risk_table(privacy))
    return Section("risk", "What an attacker can find out, with formulas", blocks, is_folded=True)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _risk_table(privacy: PrivacyStatement) -> Table:
    caption = "Of 100 people, the best attacker finds at most so many once the budget is used up. Rounded up."
    columns = [Column("Level", is_number=False)]
    columns += [Column(f"Found at {100 * alarms:g} % false alarms") for alarms in FALSE_ALARMS]
    if privacy.gaussian:
        columns.append(Column("Loss beyond ε"))
        caption += (
            " Last column: how often the privacy loss exceeds ε, as a chance and in multiples of δ."
        )
    rows = []
    for row in privacy.shown:
        found = [privacy.found_of_100(row, alarms) for alarms in FALSE_ALARMS]
        rows.append((row.group, *found, *([_beyond(row, privacy)] if privacy.gaussian else [])))
    return Table(columns, rows, caption)


def _beyond(row: GroupSpending, privacy: PrivacyStatement) -> str:
    """How often the loss is beyond ε at a used-up budget, and how many times δ that is."""
    chance = privacy.trade_off(row).loss_beyond()
    if chance is None:
        return "—"
    return f"{up(chance)} ({plain(float(f'{chance / row.budget.delta:.3g}'))} δ)"


def _risk_figure(privacy: PrivacyStatement) -> Figure:
    told = (
        f"{clean(row.group)}: {privacy.risk_in_words(row)}" for row in privacy.groups[:MOST_GROUPS]
    )
    return Figure(
        "risk",
        "How many the best attacker finds, by the share of wrong accusations",
        "; ".join(told),
        lambda: risk_figure(privacy),
        "Nobody who sees the release does better than the line of the level. Dotted: guessing.",
        _risk_table(privacy),
    )


def history(
    privacy: PrivacyStatement,
    points: Sequence[Point],
    after: str,
    chosen: Mapping[str, Budget] | None = None,
) -> Figure | Paragraph:
    """Draw what was spent after so many queries, or steps (``after``); or say why there is no such figure."""
    if not privacy.may_publish_spending:
        return Paragraph(
            f"There is no plot of the amounts spent: they are {words.KEPT_IN_VAULT}.", "note"
        )
    if not points:
        return Paragraph("There is no plot of the amounts spent: no history was recorded.", "note")
    budgets = {row.group: granted_by(row, chosen or {}) for row in privacy.groups}
    undrawn = max(0, len(privacy.groups) - MOST_GROUPS)
    more = f" {undrawn} more level(s) are in the table only." if undrawn else ""
    ends = "; ".join(
        f"{clean(row.group)}: " + spent_of(row.epsilon_spent, row.budget.epsilon)
        for row in privacy.groups[:MOST_GROUPS]
    )
    so_far = f"{count(max(point.asked for point in points))} {after.removesuffix(' asked')}"
    return Figure(
        "history",
        f"ε spent against {after}",
        f"After {so_far}, ε spent per person and budget, by level: {ends}.",
        lambda: history_figure(privacy, points, after, budgets),
        f"What each person of a level has spent, after so many {after.removesuffix(' asked')}; the dashed "
        f"line of the same colour is the budget. ε at the δ of the level; guarantee: {privacy.title}.{more}",
    )
