"""The page and the card about a study that asks: its answers, who is represented, and what each cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget
from collegium.plain_text import in_a_row
from collegium.report.numbers import clean, count, plain, share
from collegium.report.sections import (
    Banner,
    Block,
    Code,
    Column,
    Figure,
    Figures,
    Folded,
    Headline,
    Headlines,
    Page,
    Paragraph,
    Points,
    Section,
    Table,
    Text,
)
from collegium.report.words import GAUSSIAN_EPSILON, not_covered, repeated
from collegium.statistics.answer_words import in_digits, not_heard_in_words, numbers_of, percent_of
from collegium.statistics.question_words import name_in_words
from collegium.study.methods.statistics.plot import MOST_DRAWN, answer_figure

_MOST_GROUPS = 8
_NOISE = {"gaussian": "Gaussian", "laplace": "Laplace"}
_NOT_COVERED = not_covered(
    "Questions, bounds, categories, weights and all other settings", "", "An answer may show"
)
LIMITS = (
    "Values beyond the public bounds count as the nearest bound; missing values and unknown categories are "
    "in no group. Nobody is told whether that happened to anybody.",
    "If people of one kind chose larger budgets than others, answers lean towards them, unless everybody "
    "counts equally.",
    "The questions were chosen before a row was read. An answer with fresh noise would be another release, "
    "at its own price.",
)
REFERENCES = (
    "C. Dwork, F. McSherry, K. Nissim, A. Smith: Calibrating Noise to Sensitivity in Private Data Analysis. "
    "TCC 2006 (sums with noise)",
    "F. McSherry, K. Talwar: Mechanism Design via Differential Privacy. FOCS 2007 (quantiles: the "
    "exponential mechanism)",
    "R. McKenna, D. Sheldon: Permute-and-Flip: A new mechanism for differentially private selection. "
    "NeurIPS 2020 (quantiles with Laplace noise beside them)",
    "Z. Jorgensen, T. Yu, G. Cormode: Conservative or Liberal? Personalized Differential Privacy. ICDE 2015 "
    "(individual budgets for statistics)",
    "J. Dong, A. Roth, W. J. Su: Gaussian Differential Privacy. Journal of the Royal Statistical Society "
    "B 84, 2022 (μ, and its conversion to ε and δ)",
)


@dataclass(frozen=True, kw_only=True)
class StatisticsReport:
    """All that a report about answers shows: nothing in it depends on private rows except through noise.

    ``privacy``: what was promised and spent.
    ``answers``: as :meth:`~collegium.statistics.answers.Answer.to_dict` makes them.
    ``lost``: questions that were paid for, and whose answers a crash took.
    ``noise``: gaussian or laplace.
    ``chosen``: budgets as people chose them, by level, where they are on a ledger.
    """

    title: str
    privacy: PrivacyStatement
    answers: Sequence[Mapping[str, Any]]
    lost: Sequence[str]
    noise: str
    settings: Mapping[str, str]
    versions: Mapping[str, str]
    chosen: Mapping[str, Budget] = field(default_factory=dict)

    @property
    def n_asked(self) -> int:
        """How many questions were paid for."""
        return len(self.answers) + len(self.lost)

    @property
    def levels(self) -> list[str]:
        """The levels that are shown."""
        return [row.group for row in self.privacy.shown]


def statistics_page(data: StatisticsReport) -> Page:
    """Say all that there is to say of answers, of what may be published."""
    n = len(data.answers)
    heading = (
        "All questions are answered" if not data.lost else f"{n} of {data.n_asked} are answered"
    )
    text = "Each answer says how far off it may be, and who is represented in it."
    questions = "one question" if n == 1 else f"{count(n)} questions"
    lost = f"; {count(len(data.lost))} more were paid for and lost in a crash" if data.lost else ""
    return Page(
        title=data.title,
        subject="statistics with individual privacy budgets",
        what=(
            f"This folder holds noisy answers to {questions} about a private table, which is not in it. ",
            Code("answers.json"),
            " holds all of each answer, ",
            Code("answers.csv"),
            " a row for each value.",
        ),
        privacy=data.privacy,
        chosen=data.chosen,
        verdict=Banner("plain", heading, text),
        stopped=f"{questions.capitalize()} {'was' if n == 1 else 'were'} answered{lost}.",
        results=_results(data),
        result_limits=LIMITS,
        sections=[_effects(data), _mechanism(data)],
        leaves="In the release: the answers, the privacy statement, the card and the page. The private table "
        "is not in it.",
        not_covered=_NOT_COVERED,
        checks=_checks(data),
        run=[
            ("Questions", count(data.n_asked)),
            ("Paid for, but lost in a crash", count(len(data.lost))),
            ("Noise", _NOISE[data.noise]),
        ],
        settings=data.settings,
        versions=data.versions,
        references=REFERENCES,
    )


def _results(data: StatisticsReport) -> list[Block]:
    tables = [(number, one) for number, one in enumerate(data.answers) if one["keys"]]
    figures = [_figure(number, one) for number, one in tables if _is_known(one)]
    unknown = [_table(one) for _, one in tables if not _is_known(one)]
    return [
        Headlines([_headline(one) for one in data.answers if not one["keys"]]),
        *([Figures(figures)] if figures else []),
        *unknown,
        *(
            Paragraph(
                f"Paid for, and lost in a crash: {clean(line)}. It is not drawn again.", "note"
            )
            for line in data.lost
        ),
    ]


def _is_known(answer: Mapping[str, Any]) -> bool:
    return any(cell["value"] is not None for cell in answer["cells"])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _written(answer: Mapping[str, Any], cell: Mapping[str, Any]) -> tuple[str, str, str]:
    """Value, standard error and interval; a dash where there is none."""
    value, error, between = numbers_of(cell, answer.get("unit", ""))
    return value or "—", error or "—", between or "—"


def _asked(answer: Mapping[str, Any]) -> str:
    """Say the question as people do."""
    return _sentence(str(answer.get("sentence") or answer["question"]))


def _percent(answer: Mapping[str, Any]) -> str:
    return f"{100 * answer['confidence']:g} %"


def _headline(answer: Mapping[str, Any]) -> Headline:
    value, error, between = _written(answer, answer["cells"][0])
    counted = answer.get("counted", "")
    if value == "—":
        return Headline(_asked(answer), "—", "too few people to say")
    if counted:
        value = f"{value} {answer['unit']}"
    said = [counted] * (counted != answer.get("unit", ""))
    if answer["cells"][0]["standard_error"] == 0:
        return Headline(_asked(answer), value, "; ".join([*said, "public: it cost nothing"]))
    said += [f"standard error {error}"] * (error != "—")
    said += [f"{_percent(answer)} interval {between}", *_read(answer["cells"][0])]
    said += filter(None, [not_heard_in_words(answer["people"], answer.get("silent", {}))])
    return Headline(_asked(answer), value, "; ".join(said))


def _read(cell: Mapping[str, Any]) -> list[str]:
    """Say how many rows could be read, where that is known."""
    if cell.get("readable") is None:
        return []
    digits = in_digits(cell["readable_error"], cell["readable"])
    error = f"{cell['readable_error']:,.{digits}f}"
    return [f"{cell['readable']:,.{digits}f} rows could be read (standard error {error})"]


def _names(answer: Mapping[str, Any]) -> list[str]:
    return [
        in_a_row([cell[key] for key in answer["keys"]]) for cell in answer["cells"][:MOST_DRAWN]
    ]


def _first_of(answer: Mapping[str, Any]) -> Text:
    """Say that not all values are shown, where that is so."""
    n = len(answer["cells"])
    if n <= MOST_DRAWN:
        return ()
    return (
        f" The first {count(MOST_DRAWN)} of {count(n)} values; all are in ",
        Code("answers.csv"),
        ".",
    )


def _figure(number: int, answer: Mapping[str, Any]) -> Figure:
    names, cells = _names(answer), answer["cells"][:MOST_DRAWN]
    values = [_written(answer, cell) for cell in cells]
    silent = not_heard_in_words(answer["people"], answer.get("silent", {}))
    told = "; ".join(
        f"{name}: {value} ({between})"
        for name, (value, _, between) in zip(names, values, strict=True)
    )
    return Figure(
        f"answer{number}",
        clean(_asked(answer)),
        clean(told),
        lambda: answer_figure(
            names, [value for value, _, _ in values], cells, answer.get("unit", "")
        ),
        (
            f"Lines: {_percent(answer)} intervals. They allow for the noise and the unequal weights."
            f"{f' Counted: {silent}.' if silent else ''}",
            *_first_of(answer),
        ),
        _table(answer),
        table_is_folded=True,
    )


def _table(answer: Mapping[str, Any]) -> Table:
    columns: list[Column] = [
        Column(_sentence(", ".join(map(name_in_words, answer["keys"]))), is_number=False),
        Column("Value"),
        Column("Standard error"),
        Column("Interval"),
    ]
    cells = answer["cells"][:MOST_DRAWN]
    rows: list[tuple[str, ...]] = [
        (name, *_written(answer, cell)) for name, cell in zip(_names(answer), cells, strict=True)
    ]
    if any(_read(cell) for cell in cells):
        columns.append(Column("Rows that could be read"))
        read = [f"{cell['readable']:,.0f}" if _read(cell) else "—" for cell in cells]
        rows = [(*row, one) for row, one in zip(rows, read, strict=True)]
    silent = not_heard_in_words(answer["people"], answer.get("silent", {}))
    counted = ", ".join(filter(None, [answer.get("counted", ""), silent]))
    caption = (
        f"{clean(_asked(answer))}. Intervals: {_percent(answer)}. —: too few people to say, or an error "
        f"that is unknown.{f' Counted: {counted}.' if counted else ''}",
        *_first_of(answer),
    )
    return Table(tuple(columns), rows, caption)


def _effects(data: StatisticsReport) -> Section:
    """Say who is represented in the answers, and what each cost."""
    paid_groups = data.levels[:_MOST_GROUPS]
    more = len(data.privacy.groups) - len(paid_groups)
    blocks: list[Block] = [
        Paragraph(
            "People with larger budgets may weigh more; the noise is the same for all. If people of one kind "
            "chose larger budgets than others, answers lean towards them. A note says so where public facts "
            "show it."
        ),
        _represented(data),
    ]
    if more:
        blocks.append(
            Paragraph((f"{more} more level(s) are in ", Code("answers.json"), "."), "note")
        )
    notes = _notes(data.answers)
    blocks += [Points(notes)] if notes else []
    blocks.append(Folded("What each answer cost", [_paid(data.answers, paid_groups)]))
    return Section("effects", "Who is represented", blocks, on_card=True)


def _notes(answers: Sequence[Mapping[str, Any]]) -> list[Text]:
    """Write each note once, with the questions that it is about."""
    about: dict[str, list[str]] = {}
    for one in answers:
        for note in one["notes"]:
            about.setdefault(note, []).append(_asked(one))
    return [
        f"{_sentence(note)}{'' if len(its) > 1 else f' ({its[0]})'}." for note, its in about.items()
    ]


def _represented(data: StatisticsReport) -> Table:
    columns = (
        Column("Level", is_number=False),
        Column("People"),
        Column("Share of the people"),
        Column("Weight"),
        Column("Weight of one person"),
    )
    caption = (
        "Weight: how much of an answer comes from the level. Weight of one person: compared with equal "
        "weights, where it is 1."
    )
    in_answers: dict[str, list[Mapping[str, Any]]] = {}
    for answer in data.answers:
        for row in answer["represented"]:
            in_answers.setdefault(str(row["group"]), []).append(row)
    rows = []
    for name in data.levels:
        its = in_answers.get(name, [])
        if not its:
            continue
        weights = [row["weight"] for row in its]
        part = its[0]["share"]
        ends = (min(weights), max(weights))
        rows.append(
            (
                name,
                count(its[0]["people"]),
                share(part),
                _between([share(weight) for weight in ends]),
                _between([plain(round(weight / part, 3)) if part else "—" for weight in ends]),
            )
        )
    return Table(columns, rows, caption)


def _between(ends: list[str]) -> str:
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _paid(answers: Sequence[Mapping[str, Any]], groups: Sequence[str]) -> Table:
    columns = (
        Column("Question", is_number=False),
        Column("Precision: people counted equally"),
        *(Column(f"Price, {name}") for name in groups),
    )
    caption = (
        "Precision: the answer is as precise as if so many people had been counted equally. Price: "
        "which share of the budget the answer cost each person of a level, as a ledger counts it, rounded up."
    )
    rows = []
    for answer in answers:
        paid = {str(row["group"]): row["share"] for row in answer["paid"]}
        rows.append(
            (
                _asked(answer),
                f"{count(round(answer['effective']))} of {count(answer['people'])}",
                *("—" if paid.get(name) is None else percent_of(paid[name]) for name in groups),
            )
        )
    return Table(columns, rows, caption)


def _mechanism(data: StatisticsReport) -> Section:
    how = dict.fromkeys(_sentence(one["how"]) for one in data.answers)
    return Section(
        "mechanism",
        "How answers were made",
        [
            Paragraph(
                "Each answer is made of sums over all people. What a person adds to a sum is bounded by the "
                "public schema and multiplied by the weight of the person's level; then "
                f"{_NOISE[data.noise]} noise, exactly rounded, is added to the sum. Quantiles are drawn "
                "among public candidates; the better a candidate splits the people as asked, the likelier it "
                "is. The questions and their price were fixed before a row was read; nothing was decided by "
                "looking at private rows."
            ),
            Paragraph(
                "Standard errors and intervals are computed from public numbers and from released ones: they "
                "cost nobody anything."
            ),
            *(Paragraph(f"{line}.") for line in how),
        ],
        is_folded=True,
    )


def _checks(data: StatisticsReport) -> list[Text]:
    lines: list[Text] = [
        (
            "Amounts spent follow from public numbers alone. ",
            Code("collegium account --export"),
            " prints every mechanism for other accountants.",
        )
    ]
    if data.noise == "gaussian":
        lines.append(f"By hand: μ² of all answers adds up. {GAUSSIAN_EPSILON}")
    return [*lines, repeated("answers", data.privacy.noise_is_private)]
