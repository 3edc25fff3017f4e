"""What a page says of a synthetic table: scores, pictures, groups, and what membership inference found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from collegium.attacks.membership import MembershipFinding
from collegium.evaluation.synthetic_quality import (
    CONSTANT,
    PUBLIC,
    REAL,
    Associations,
    ColumnShares,
    SyntheticQuality,
)
from collegium.report.numbers import count
from collegium.report.page import environment
from collegium.report.sections import (
    Banner,
    Block,
    Figure,
    Figures,
    Folded,
    Headline,
    Headlines,
    Paragraph,
    Points,
    Section,
)
from collegium.report.synthetic_plots import (
    MOST_PANELS,
    associations_figure,
    drawn_columns,
    shares_figure,
)
from collegium.report.synthetic_tables import (
    NAMES,
    distance_table,
    group_table,
    learnt_tables,
    membership_table,
    pairs_table,
    shares_table,
    three_digits,
)

MOST_DRAWN = 12
"""Columns with a picture: those that are furthest off, if there are more."""


def html_of(quality: SyntheticQuality) -> str:
    """Write it for a notebook: a piece of HTML without scripts and without anything from outside."""
    tone = "warning" if quality.tone == "caution" else ""
    blocks: list[Block] = [
        Paragraph(f"{quality.verdict}. {quality.reason}", tone),
        *learnt_tables(quality),
        distance_table(quality),
        *([group_table(quality)] if quality.groups else []),
        Points([*quality.notes, quality.looked_at]),
    ]
    return environment().get_template("notebook.html.j2").render(blocks=blocks)


def synthetic_banner(quality: SyntheticQuality) -> Banner:
    """Say in a line, and in a few sentences, what the table is worth."""
    return Banner(quality.tone, quality.verdict, quality.reason)


def synthetic_headlines(quality: SyntheticQuality) -> list[Headline]:
    """Figures that matter, each with what it is beside."""
    shown = []
    for one in quality.synthetic.learnt:
        beside = [
            f"{NAMES[name].lower()} {three_digits(other.score.value)}"
            for name in (REAL, PUBLIC, CONSTANT)
            if (table := quality.table(name)) and (other := table.learnt_by(one.model))
        ]
        low, high = three_digits(one.score.low), three_digits(one.score.high)
        shown.append(
            Headline(
                f"{quality.measure}, {one.model}",
                three_digits(one.score.value),
                f"trained on the synthetic table, tested on {count(quality.n_held_out)} held-out records "
                f"(95 % interval {low} to {high}); {', '.join(beside)}",
            )
        )
    if len(quality.synthetic.distances) > 1:
        pairs = quality.synthetic.distances[1]
        beside = (
            []
            if pairs.sampling_mean is None
            else [f"sampling alone {three_digits(pairs.sampling_mean)}"]
        )
        for name in (REAL, PUBLIC, CONSTANT):
            if table := quality.table(name):
                beside.append(f"{NAMES[name].lower()} {three_digits(table.distances[1].mean)}")
        shown.append(
            Headline(
                "Total variation of pairs",
                three_digits(pairs.mean),
                f"mean over pairs of columns, 0 is best; {', '.join(beside)}",
            )
        )
    return shown


def synthetic_sections(
    quality: SyntheticQuality,
    membership: Mapping[str, Sequence[MembershipFinding]] | None = None,
) -> list[Section]:
    """Write everything that a page says of a synthetic table.

    ``membership``: by the name of the attack, or of a control, what it found.
    """
    worth: list[Block] = [
        Headlines(synthetic_headlines(quality)),
        *learnt_tables(quality),
        distance_table(quality),
        Points([*quality.notes, quality.looked_at]),
    ]
    sections = [
        Section("synthetic-worth", "What the synthetic table is worth", worth),
        Section("synthetic-pictures", "What it looks like", _pictures(quality)),
    ]
    if quality.groups:
        sections.append(
            Section(
                "synthetic-groups",
                f"Whose distribution is this? By {quality.by}",
                [group_table(quality)],
            )
        )
    if membership:
        sections.append(
            Section(
                "synthetic-membership",
                "Can somebody tell who took part?",
                [membership_table(membership), Paragraph(_ON_MEMBERSHIP)],
            )
        )
    return sections


_ON_MEMBERSHIP = (
    "These attacks read the marginals that the table was made from, which tell more than distances between "
    "rows. “Not detected” says that so many trials showed nothing, not that nothing is there: what holds "
    "for any attack is the account's bound. A control without noise shows that the attack "
    "finds people where it can."
)


def _pictures(quality: SyntheticQuality) -> list[Block]:
    columns = _furthest(quality.columns)
    figures: list[Figure | Paragraph] = []
    for number, start in enumerate(range(0, len(columns), MOST_PANELS)):
        drawn = columns[start : start + MOST_PANELS]
        figures.append(
            Figure(
                f"shares-{number}",
                "Columns" if not number else "Columns, continued",
                "Shares of the cells of each column, held-out records beside the synthetic table",
                partial(shares_figure, drawn),
                "Share of the records in each cell; intervals are drawn equally wide.",
                shares_table(drawn),
                table_is_folded=True,
            )
        )
    blocks: list[Block] = []
    if len(columns) < len(quality.columns):
        blocks.append(
            Paragraph(
                f"Of {count(len(quality.columns))} columns, the {len(columns)} that are furthest off."
            )
        )
    blocks.append(Figures(figures))
    if len(quality.associations.names) > 1:
        blocks.append(Figures(_association_figures(quality.associations)))
        blocks.append(Folded("Pairs whose association is furthest off", [pairs_table(quality)]))
    return blocks


def _furthest(columns: Sequence[ColumnShares]) -> list[ColumnShares]:
    """Take the columns to draw, in their order: of many, those that are furthest off."""

    def off(column: ColumnShares) -> float:
        pairs = zip(column.held_out, column.synthetic, strict=True)
        return sum(abs(one - other) for one, other in pairs)

    chosen = sorted(range(len(columns)), key=lambda place: -off(columns[place]))[:MOST_DRAWN]
    return [columns[place] for place in sorted(chosen)]


def _association_figures(associations: Associations) -> list[Figure | Paragraph]:
    chosen = drawn_columns(associations)
    names = [associations.names[place] for place in chosen]
    caption = "How strongly each two columns go together: Cramér's V of their cells, from 0 to 1."
    if len(names) < len(associations.names):
        caption += (
            f" The {len(names)} columns that differ most, of {count(len(associations.names))}."
        )
    figures: list[Figure | Paragraph] = []
    for name, title, matrix in (
        ("held-out", "What goes together: held out", associations.held_out),
        ("synthetic", "What goes together: synthetic", associations.synthetic),
    ):
        values = [[matrix[row][column] for column in chosen] for row in chosen]
        figures.append(
            Figure(
                f"associations-{name}",
                title,
                "A triangle of squares, one for each two columns: the stronger the colour, the more they go "
                "together",
                partial(associations_figure, names, values, "association of two columns"),
                caption,
            )
        )
    return figures
