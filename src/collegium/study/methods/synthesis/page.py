"""The page and the card about a synthetic table: its worth, whose distribution it is, how it was made."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from collegium.accounting.statement import PrivacyStatement
from collegium.conditions.conditions import name_text, quoted
from collegium.data.cells import Cells
from collegium.data.schema_column import CATEGORY, FLAG
from collegium.evaluation.synthetic_quality import SyntheticQuality
from collegium.plain_text import in_a_row
from collegium.report.numbers import count, share
from collegium.report.sections import (
    Banner,
    Block,
    Code,
    Column,
    Headlines,
    Listing,
    Page,
    Paragraph,
    Points,
    Section,
    Table,
    Text,
)
from collegium.report.synthetic_quality import synthetic_headlines, synthetic_sections
from collegium.report.words import not_covered
from collegium.study.methods.synthesis.shown import PlannedTable, goal_in_words, heard_table
from collegium.synthesis.model import TableModel
from collegium.synthesis.tables_of_marginals import marginals_table

_MOST_CELLS = 12
_NOT_COVERED = not_covered(
    "The schema, constraints, structure and all other settings", "", "A synthetic table may show"
)
_LIMITS: tuple[Text, ...] = (
    "A row is of nobody. Pairs of columns that were not measured follow from those that were: what three "
    "or more columns have in common beyond that is not in the table.",
    "Values beyond the public bounds count as the nearest bound, and a number is drawn evenly within its "
    "cell.",
    "Rows of one person are not tied to one another: the table has no people, only rows.",
)
_REFERENCES = (
    "R. McKenna, D. Sheldon, G. Miklau: Graphical-model based estimation and inference for differential "
    "privacy. ICML 2019 (largest entropy from noisy marginals)",
    "R. McKenna, B. Mullins, D. Sheldon, G. Miklau: AIM: An adaptive and iterative mechanism for "
    "differentially private synthetic data. VLDB 2022 (choosing marginals by what they would add)",
    "J. Dong, A. Roth, W. J. Su: Gaussian Differential Privacy. Journal of the Royal Statistical Society "
    "B 84, 2022 (μ, and its conversion to ε and δ)",
)


@dataclass(frozen=True, kw_only=True)
class SynthesisReport:
    """All that a report about a synthetic table shows: private rows matter through noise alone.

    ``planned``: as it was planned. ``drawn``: what was drawn. ``model``: that was fitted to it.
    ``quality``: by test records; None where there are none. ``file``: with the rows.
    """

    title: str
    privacy: PrivacyStatement
    planned: PlannedTable
    drawn: Mapping[int, Mapping[str, Any]]
    model: TableModel
    quality: SyntheticQuality | None
    file: str

    @property
    def lost(self) -> int:
        """How many draws a crash took."""
        return len(self.planned.run.stages.drawn) - len(self.drawn)


def synthesis_page(data: SynthesisReport) -> Page:
    """Say all that there is to say of a synthetic table, of what may be published."""
    planned = data.planned
    return Page(
        title=data.title,
        subject="a synthetic table with individual privacy budgets",
        what=(
            f"This folder holds {count(planned.n_rows)} synthetic rows, in ",
            Code(data.file),
            ", and the distribution that they were drawn from, in ",
            Code("model.json"),
            ". The private table is not in it.",
        ),
        privacy=data.privacy,
        verdict=_verdict(data),
        stopped="Noisy counts were lost in a crash."
        if data.lost
        else "Everything was measured as planned.",
        use=_use(data.model.cells),
        results=_results(data),
        result_limits=_LIMITS,
        sections=[*_quality(data.quality), _measured(data.model), _mechanism(data)],
        leaves="In the release: the rows, the distribution, its schema, the privacy statement, the card "
        "and the page. The private table is not in it.",
        not_covered=_NOT_COVERED,
        checks=_checks(data.file),
        run=[
            ("Synthetic rows", count(planned.n_rows)),
            ("Noisy marginals", count(len(data.model.marginals))),
            ("Draws that a crash took", count(data.lost)),
            ("Made for", goal_in_words(planned.run.stages.goal, planned.target)),
        ],
        references=_REFERENCES,
    )


def _verdict(data: SynthesisReport) -> Banner:
    quality = data.quality
    if quality is not None:
        tone = quality.tone
        if not data.privacy.noise_is_private:
            tone = tone.replace("good", "plain")
        return Banner(tone, quality.verdict, quality.reason)
    text = "Without test records (data.test) nobody knows what it is worth."
    return Banner("caution" if data.lost else "plain", "The table is made", text)


def _use(cells: Cells) -> list[Block]:
    where = shlex.quote(_example(cells))
    return [
        Paragraph("More rows, or rows of one kind, cost nobody anything:"),
        Listing(f"collegium sample RELEASE --rows 10000 --where {where} --out more.parquet\n"),
        Listing(
            "import collegium as cg\n\n"
            'table = cg.Synthesizer.load("RELEASE/model.json")\n'
            "rows = table.sample(10_000)\n",
            "python",
        ),
    ]


def _example(cells: Cells) -> str:
    """Write a condition on one of the columns."""
    for one in cells.columns:
        if one.column.kind == CATEGORY:
            return f"{name_text(one.name)} == {quoted(one.column.keys[0])}"
    one = cells.columns[0]
    if one.column.kind == FLAG:
        return name_text(one.name)
    middle = (one.column.lower + one.column.upper) // 2
    return f"{name_text(one.name)} >= {one.column.write(middle)}"


def _results(data: SynthesisReport) -> list[Block]:
    told: list[Block] = []
    if data.quality is not None:
        told.append(Headlines(synthetic_headlines(data.quality)))
    noted = [Paragraph(line, "note") for line in data.planned.run.notes(data.drawn)]
    return [*told, *noted, heard_table(data.planned), *_bias(data)]


def _bias(data: SynthesisReport) -> Sequence[Block]:
    found = data.planned.run.bias(data.drawn)
    if found is None:
        return ()
    rows = [
        (
            str(row.group),
            str(row.column),
            f"{row.apart:.3f}",
            f"{row.explained:.3f}",
            f"{row.p_same:.2g}",
        )
        for row in found.sort_values("p_same").head(_MOST_CELLS).itertuples()
    ]
    return [
        Table(
            (
                Column("level", False),
                Column("column", False),
                Column("apart"),
                Column("by noise and chance"),
                Column("p if the same"),
            ),
            rows,
            "How far the people of a level are from all people, column by column (total variation), the "
            "surest first. Where they differ, the table is corrected towards all people alike.",
            title="Whose distribution this is",
        )
    ]


def _quality(quality: SyntheticQuality | None) -> list[Section]:
    """What helps to judge it; the headlines stand among the results."""
    if quality is None:
        return []
    first, *others = synthetic_sections(quality)
    blocks = [one for one in first.blocks if not isinstance(one, Headlines)]
    return [replace(first, blocks=blocks), *others]


def _measured(model: TableModel) -> Section:
    table = marginals_table(model)
    blocks: list[Block] = [
        Paragraph(
            "The share of each value or interval among the rows, and the 95 % interval of what noise "
            "leaves open about the private table."
        )
    ]
    for name, part in table.groupby("column", sort=False):
        largest = part.nlargest(_MOST_CELLS, "share").sort_index()
        more = len(part) - len(largest)
        rows = [
            (str(row.cell), share(row.share), f"{share(row.lower)} to {share(row.upper)}")
            for row in largest.itertuples()
        ]
        blocks.append(
            Table(
                (Column(str(name), False), Column("share"), Column("95 % interval")),
                rows,
                f"The most frequent of {len(part):,}." if more else "",
            )
        )
    return Section("columns", "Every column, with error bars", blocks, is_folded=True)


def _mechanism(data: SynthesisReport) -> Section:
    lines: list[Text] = [
        f"{stage.name}: {share(stage.share)} of everybody's μ²; noise of {one['sd']:.4g} people on each "
        "number"
        for number, stage in enumerate(data.planned.run.stages.drawn, 1)
        if (one := data.drawn.get(number)) is not None
    ]
    measured = [
        in_a_row(columns) for one in data.drawn.values() for columns in one.get("columns", ())
    ]
    return Section(
        "how-it-was-made",
        "How it was made",
        [
            Paragraph(
                "Columns and pairs of columns were counted, with noise. The rows are drawn from the "
                "distribution of largest entropy that fits these counts."
            ),
            Points(lines),
            Paragraph(f"Counted together: {'; '.join(measured)}."),
        ],
        is_folded=True,
    )


def _checks(file: str) -> list[Text]:
    return [
        (
            "The account is exact: ",
            Code("collegium statement RELEASE"),
            " computes it from what was drawn.",
        ),
        (
            "Nothing was changed since: ",
            Code("collegium verify RELEASE"),
            f" compares {file} and everything else with the digests.",
        ),
        "Membership inference that reads the counts finds no more than the bound allows: docs/synthesis.md.",
    ]
