"""The page about a study that asks: its answers, who is represented in them, and what everybody paid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from collegium.accounting.statement import PrivacyStatement
from collegium.evaluation.effects import Effects
from collegium.plain_text import in_a_row
from collegium.report import words
from collegium.report.answer_plot import MOST_DRAWN, answer_figure
from collegium.report.numbers import clean, count, plain, share, up
from collegium.report.page import common, environment, promise
from collegium.report.report_data import PageData
from collegium.report.svg import inline_svg
from collegium.statistics.answers import in_digits

_MOST_GROUPS = 8
_NOISE = {"gaussian": "Gaussian", "laplace": "Laplace"}
NOT_COVERED = (
    *words.NOT_COVERED[:2],
    (
        "Choices made by looking at private data.",
        "Questions, bounds, categories, weights and all other settings must come from public data, "
        "simulation or experience; this account contains no other look at the private rows.",
    ),
    (
        "Side channels.",
        "Running times, memory, logs of the machine and access to the vault are outside the mathematics.",
    ),
    (
        "Facts about people in general.",
        "An answer may show that smokers fall ill more often, and this then holds for a smoker who never "
        "took part. Differential privacy limits what taking part adds.",
    ),
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
    """

    title: str
    privacy: PrivacyStatement
    answers: Sequence[Mapping[str, Any]]
    lost: Sequence[str]
    noise: str
    settings: Mapping[str, str]
    versions: Mapping[str, str]


def render_statistics(data: StatisticsReport) -> str:
    """Write the report as one HTML page, without scripts and without anything from outside.

    Returns: the same for the same data.
    """
    n, asked = len(data.answers), len(data.answers) + len(data.lost)
    heading = "All questions are answered" if not data.lost else f"{n} of {asked} are answered"
    page = PageData(
        title=data.title,
        privacy=data.privacy,
        effects=Effects((), ()),
        history=(),
        n_public=0,
        n_test=0,
        settings=data.settings,
        versions=data.versions,
        quality=None,
        without_quality=(
            heading,
            "Each answer says how far off it may be, and who is heard in it.",
        ),
    )
    single = [one for one in data.answers if not one["keys"]]
    shown = [row.group for row in data.privacy.shown]
    paid_groups = shown[:_MOST_GROUPS]
    return (
        environment()
        .get_template("statistics.html.j2")
        .render(
            **common(page, _stop(n, data), NOT_COVERED, REFERENCES),
            groups=[promise(row, page) for row in data.privacy.shown],
            headlines=[_tile(one) for one in single],
            tables=[_table(number, one) for number, one in enumerate(data.answers) if one["keys"]],
            lost=list(data.lost),
            represented=_represented(data, shown),
            paid=[_paid(one, paid_groups) for one in data.answers],
            paid_groups=paid_groups,
            more_groups=len(data.privacy.groups) - len(paid_groups),
            notes=_notes(data.answers),
            how=list(dict.fromkeys(_sentence(one["how"]) for one in data.answers)),
            noise=_NOISE[data.noise],
            run=[
                ("Questions", count(asked)),
                ("Paid for, but lost in a crash", count(len(data.lost))),
                ("Noise", _NOISE[data.noise]),
            ],
            model="answer",
        )
    )


def _stop(n: int, data: StatisticsReport) -> str:
    lost = f"; {count(len(data.lost))} more were paid for and lost in a crash" if data.lost else ""
    return f"{count(n)} questions were answered{lost}."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _notes(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write each note once, with the questions that it is about."""
    about: dict[str, list[str]] = {}
    for one in answers:
        for note in one["notes"]:
            about.setdefault(note, []).append(one["question"])
    return [
        f"{_sentence(note)}{'' if len(its) > 1 else f' ({its[0]})'}." for note, its in about.items()
    ]


def numbers_of(cell: Mapping[str, Any]) -> tuple[str, str, str]:
    """Value, standard error and interval in so many digits as the error leaves."""
    value, error = cell["value"], cell["standard_error"]
    if value is None:
        return "—", "—", "—"
    digits = in_digits(math.nan if error is None else error, value)
    lower, upper = (
        "—" if cell[end] is None else f"{cell[end]:,.{digits}f}" for end in ("lower", "upper")
    )
    told = "—" if error is None else f"{error:,.{digits}f}"
    return f"{value:,.{digits}f}", told, f"{lower} to {upper}"


def _tile(answer: Mapping[str, Any]) -> dict[str, str]:
    value, error, between = numbers_of(answer["cells"][0])
    if value == "—":
        return {"name": answer["question"], "value": "—", "note": "too few people to say"}
    if answer["cells"][0]["standard_error"] == 0:
        return {"name": answer["question"], "value": value, "note": "public: it cost nothing"}
    beside = "" if error == "—" else f"± {error} (standard error); "
    return {
        "name": answer["question"],
        "value": value,
        "note": f"{beside}{answer['confidence']:.0%} interval {between}",
    }


def _table(number: int, answer: Mapping[str, Any]) -> dict[str, Any]:
    cells = answer["cells"][:MOST_DRAWN]
    names = [in_a_row([cell[key] for key in answer["keys"]]) for cell in cells]
    rows = []
    for name, cell in zip(names, cells, strict=True):
        value, error, between = numbers_of(cell)
        rows.append({"key": name, "value": value, "error": error, "interval": between})
    figure: Markup | None = None
    if any(cell["value"] is not None for cell in cells):
        said = "; ".join(f"{row['key']}: {row['value']} ({row['interval']})" for row in rows)
        figure = inline_svg(
            answer_figure(answer["question"], names, cells),
            f"answer{number}",
            clean(answer["question"]),
            clean(said),
        )
    return {
        "question": answer["question"],
        "heading": _sentence(", ".join(answer["keys"])),
        "rows": rows,
        "figure": figure,
        "confidence": f"{answer['confidence']:.0%}",
        "undrawn": len(answer["cells"]) > len(cells),
        "drawn": count(len(cells)),
        "n": count(len(answer["cells"])),
    }


def _represented(data: StatisticsReport, shown: Sequence[str]) -> list[dict[str, str]]:
    heard: dict[str, list[Mapping[str, Any]]] = {}
    for answer in data.answers:
        for row in answer["represented"]:
            heard.setdefault(str(row["group"]), []).append(row)
    rows = []
    for name in shown:
        its = heard.get(name, [])
        if not its:
            continue
        weights = [row["weight"] for row in its]
        rows.append(
            {
                "name": name,
                "people": count(its[0]["people"]),
                "share": share(its[0]["share"]),
                "weight": _between([share(weight) for weight in (min(weights), max(weights))]),
                "each": _between(
                    [
                        plain(round(weight / its[0]["share"], 3)) if its[0]["share"] else "—"
                        for weight in (min(weights), max(weights))
                    ]
                ),
            }
        )
    return rows


def _between(ends: list[str]) -> str:
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _paid(answer: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any]:
    paid = {str(row["group"]): row["epsilon"] for row in answer["paid"]}
    return {
        "question": answer["question"],
        "effective": f"{count(round(answer['effective']))} of {count(answer['people'])}",
        "paid": [
            "—" if paid.get(name) is None else up(paid[name]) if paid[name] else "0"
            for name in groups
        ],
    }
