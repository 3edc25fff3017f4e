"""The page and the card about a synthetic table: its worth, whose distribution it is, how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collegium.accounting.statement import PrivacyStatement
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
from collegium.study.methods.synthesis.shown import goal_in_words, heard_table
from collegium.study.result import as_chosen, shown_settings
from collegium.synthesis.tables_of_marginals import marginals_table

if TYPE_CHECKING:
    from collegium.study.kept_draws import Drawn
    from collegium.study.methods.synthesis.method import SynthesisPlan
    from collegium.synthesis.model import TableModel

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


def synthesis_page(
    planned: SynthesisPlan,
    privacy: PrivacyStatement,
    drawn: Drawn,
    model: TableModel,
    quality: SyntheticQuality | None,
    file: str,
) -> Page:
    """Say all that there is to say of a synthetic table, of what may be published."""
    lost = len(planned.draws) - len(drawn)
    return Page(
        title=planned.config.title(),
        subject="a synthetic table with individual privacy budgets",
        what=(
            f"This folder holds {count(planned.n_rows)} synthetic rows, in ",
            Code(file),
            ", and the distribution that they were drawn from, in ",
            Code("model.json"),
            ". The private table is not in it.",
        ),
        privacy=privacy,
        chosen=as_chosen(planned.rows.budgets),
        verdict=_verdict(planned, quality, lost),
        stopped="All noisy counts were made." if not lost else "Noisy counts were lost in a crash.",
        use=_use(),
        results=_results(planned, drawn, quality),
        result_limits=_LIMITS,
        sections=[*_quality(quality), _measured(model), _mechanism(planned, drawn)],
        leaves="In the release: the rows, the distribution, its schema, the privacy statement, the card "
        "and the page. The private table is not in it.",
        not_covered=_NOT_COVERED,
        checks=_checks(file),
        run=[
            ("Synthetic rows", count(planned.n_rows)),
            ("Noisy marginals", count(len(model.marginals))),
            ("Draws that a crash took", count(lost)),
            ("Made for", goal_in_words(planned.run.stages.goal, planned.config.data.target)),
        ],
        settings=shown_settings(planned.config),
        references=_REFERENCES,
    )


def _verdict(planned: SynthesisPlan, quality: SyntheticQuality | None, lost: int) -> Banner:
    if quality is not None:
        tone = quality.tone if planned.noise_is_private else quality.tone.replace("good", "plain")
        return Banner(tone, quality.verdict, quality.reason)
    text = "Without test records (data.test) nobody knows what it is worth."
    return Banner("caution" if lost else "plain", "The table is made", text)


def _use() -> list[Block]:
    return [
        Paragraph("More rows, or rows of one kind, cost nobody anything:"),
        Listing('collegium sample RELEASE --rows 10000 --where "age >= 65" --out more.parquet\n'),
        Listing(
            "import collegium as cg\n\n"
            'table = cg.Synthesizer.load("RELEASE/model.json")\n'
            "rows = table.sample(10_000)\n",
            "python",
        ),
    ]


def _results(planned: SynthesisPlan, drawn: Drawn, quality: SyntheticQuality | None) -> list[Block]:
    told: list[Block] = []
    if quality is not None:
        told.append(Headlines(synthetic_headlines(quality)))
    noted = [Paragraph(line, "note") for line in planned.run.notes(drawn)]
    return [*told, *noted, heard_table(planned), *_bias(planned, drawn)]


def _bias(planned: SynthesisPlan, drawn: Drawn) -> Sequence[Block]:
    found = planned.run.bias(drawn)
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
                Column("by noise alone"),
                Column("p if the same"),
            ),
            rows,
            "How far the people of a level are from all people, column by column (total variation), the "
            "surest first. Where they differ, the table is corrected towards all people alike.",
            title="Whose distribution this is",
        )
    ]


def _quality(quality: SyntheticQuality | None) -> list[Section]:
    return [] if quality is None else synthetic_sections(quality)


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


def _mechanism(planned: SynthesisPlan, drawn: Drawn) -> Section:
    lines: list[Text] = [
        f"{stage.name}: {share(stage.share)} of everybody's μ²; noise of {one['sd']:.4g} people on each "
        "number"
        for number, stage in enumerate(planned.run.stages.drawn, 1)
        if (one := drawn.get(number)) is not None
    ]
    measured = [in_a_row(columns) for one in drawn.values() for columns in one.get("columns", ())]
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
