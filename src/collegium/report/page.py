"""The page about a study: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from collegium.accounting.statement import FALSE_ALARMS, Answers, GroupSpending
from collegium.distillation.goal import ACCURACY, AUC, BALANCED
from collegium.errors import InputError
from collegium.evaluation.quality import Quality
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.report import words
from collegium.report.effect_rows import as_context
from collegium.report.numbers import clean, count, down, interval, plain, share, up, up_of_down
from collegium.report.plots import MOST_GROUPS, classes_figure, history_figure
from collegium.report.report_data import PageData, ReportData
from collegium.report.risk_plot import risk_figure
from collegium.report.svg import inline_svg
from collegium.report.verdict import banners, spending_of, stop_sentence


def render_report(data: ReportData) -> str:
    """Write the report as one HTML page, without scripts and without anything from outside.

    ``data``: only what may be published. What was spent is shown under the worst-case guarantee
        alone; under a data-dependent one it is not even read.
    Returns: the same for the same data.
    """
    _validate(data)
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            **common(data, stop_sentence(data), words.NOT_COVERED, words.REFERENCES),
            groups=[_group(row, data) for row in data.privacy.shown],
            headlines=[*student_headlines(data.quality), *_answer_headlines(data)],
            figures=_figures(data),
            answers=words.ANSWERS[data.privacy.released == HISTOGRAM],
            aggregator=_aggregator(data),
            personalisation=_personalisation(data),
            run=_run(data),
            model="student",
        )
    )


def common(
    data: PageData,
    stop: str,
    not_covered: Sequence[tuple[str, str]],
    references: Sequence[str],
) -> dict[str, Any]:
    """Collect what a page says, however it was learnt.

    ``stop``: why it stopped.
    """
    notices = banners(data)
    return {
        "title": data.title,
        "verdict": notices[0]["heading"],
        "banners": notices,
        "stop": stop,
        "unit": unit(data),
        "publishable": data.privacy.may_publish_spending,
        "guarantee": data.privacy.title,
        "adjacency": data.privacy.adjacency,
        "risk": _risk(data),
        "effects": as_context(data.effects, {row.group for row in data.privacy.shown}),
        "student_notes": [clean(note) for note in data.student_notes],
        "statement": data.privacy.sentences(),
        "private_noise": data.privacy.noise_is_private,
        "settings": data.settings,
        "versions": data.versions,
        "not_covered": not_covered,
        "references": references,
        "words": words,
    }


def unit(data: PageData) -> str:
    """Say what every ε on the page is about."""
    return (
        f"Every ε is per {data.privacy.unit}, at the δ written beside it, and covers what may differ between "
        f"neighbouring data sets: {data.privacy.adjacency}. Guarantee: {data.privacy.title}."
    )


@cache
def environment() -> Environment:
    """Make the templates' environment."""
    environment = Environment(
        loader=PackageLoader("collegium", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.filters.update(count=count, plain=plain)
    return environment


def _finalize(value: Any) -> Any:
    """Clean every text that a template writes."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _validate(data: ReportData) -> None:
    missing = [row.group for row in data.privacy.groups if row.group not in data.plan.groups]
    if missing:
        raise InputError(
            f"group {missing[0]!r} is in the privacy statement, but not in the plan: give the plan of "
            "the same study"
        )


def promise(row: GroupSpending, data: PageData) -> dict[str, Any]:
    """Write what a group was promised, and paid."""
    return {
        "name": row.group,
        "owners": count(row.owners),
        "unlimited": row.budget.is_unlimited,
        "delta": down(row.budget.delta),
        "meaning": data.privacy.risk_in_words(row),
        "found": [data.privacy.found_of_100(row, alarms) for alarms in FALSE_ALARMS],
        "beyond": _beyond(row, data),
        **spending_of(row, data.privacy),
    }


def _group(row: GroupSpending, data: ReportData) -> dict[str, Any]:
    planned = data.plan.groups[row.group]
    return {
        **promise(row, data),
        "teachers": count(planned.teachers),
        "duplicates": count(planned.duplicates),
        "weight": plain(planned.weight),
        "frequency": share(planned.frequency),
        "sensitivity": plain(planned.sensitivity),
        "utilisation": share(planned.utilisation),
    }


def _beyond(row: GroupSpending, data: PageData) -> str:
    """How often the loss is beyond ε at a used-up budget, and how many times δ that is."""
    chance = data.privacy.trade_off(row).loss_beyond()
    if chance is None:
        return "—"
    return f"{up(chance)} ({plain(float(f'{chance / row.budget.delta:.3g}'))} δ)"


def _risk(data: PageData) -> dict[str, Any]:
    """What an attacker can find out: false alarms of the table, and the picture."""
    promised = any(not row.budget.is_unlimited for row in data.privacy.groups)
    figure = None
    if promised:
        figure = inline_svg(
            risk_figure(data),
            "risk",
            "How many the best test finds, against its false alarms",
            "; ".join(
                f"{clean(row.group)}: {data.privacy.risk_in_words(row)}"
                for row in data.privacy.groups[:MOST_GROUPS]
            ),
        )
    return {
        "words": [data.privacy.filled(sentence) for sentence in words.RISK],
        "of_whom": data.privacy.filled(
            "Of 100 people of whom it is true that their records {are_these}"
        ),
        "test": Markup(data.privacy.filled("The best test of whether {records_are}")),
        "alarms": [f"{100 * alarms:g}" for alarms in FALSE_ALARMS],
        "gaussian": data.privacy.gaussian,
        "follows": words.RISK_FROM_LABELS
        if data.privacy.price == LABELS
        else words.RISK_FROM[data.privacy.gaussian],
        "figure": figure,
    }


def student_headlines(quality: Quality | None, model: str = "student") -> list[dict[str, str]]:
    """Figures of a model, with what guessing and always giving one answer would give beside them."""
    if quality is None:
        return []
    where = f"of {count(quality.n)} {quality.measured_on}"
    low, high = interval(quality.accuracy, quality.n)
    known = quality.truth_is_known
    right = {
        "name": f"{model.capitalize()} accuracy",
        "value": share(quality.accuracy),
        "note": f"{where} (n = {count(quality.n)}; 95 % interval {share(low)} to {share(high)})",
    }
    if not known:
        right = {
            "name": f"{model.capitalize()} and released answers agree",
            "value": share(quality.accuracy),
            "note": f"{where}, from which it learnt: not how often it is right, which is not known",
        }
    beyond = {}
    if quality.chance < 1:
        beyond["Balanced accuracy"] = (
            share(quality.balanced_accuracy),
            f"mean over the classes of the share of their records that the {model} gets right; guessing "
            f"gives {share(quality.chance)}",
        )
    if quality.auc is not None:
        beyond["ROC AUC"] = (f"{quality.auc:.3f}", words.AUC)
    if quality.calibration_error is not None:
        beyond["Calibration error"] = (
            f"{quality.calibration_error:.3f}",
            words.CALIBRATION.format(model),
        )
    beside = [
        right,
        {
            "name": f"Always answering “{quality.majority}”",
            "value": share(quality.majority_share),
            "note": f"{where}: what a {model} must be better than"
            if known and quality.goal == ACCURACY
            else f"{where}: the most frequent one",
        },
    ]
    measures = {
        name: {
            "name": name if known else f"{name} against released answers",
            "value": value,
            "note": note,
        }
        for name, (value, note) in beyond.items()
    }
    first = measures.pop(
        {BALANCED: "Balanced accuracy", AUC: "ROC AUC"}.get(quality.goal, ""), None
    )
    return [*([] if first is None else [first]), *beside, *measures.values()]


def _answer_headlines(data: ReportData) -> list[dict[str, str]]:
    names = words.ANSWERS[data.privacy.released == HISTOGRAM]
    tiles = [
        {
            "name": names["released"],
            "value": count(sum(data.labels_per_class)),
            "note": f"from {count(data.n_asked)} queries; {count(data.n_public)} public records",
        }
    ]
    if data.label_accuracy is not None:
        tiles.append(
            {"name": names["right"], "value": share(data.label_accuracy), "note": names["note"]}
        )
    return tiles


def _figures(data: ReportData) -> dict[str, Any]:
    figures: dict[str, Any] = {"classes": None}
    figures |= history_of(data, "queries asked")
    if sum(data.labels_per_class):
        counts = list(data.labels_per_class)
        named = words.ANSWERS[data.privacy.released == HISTOGRAM]
        description = (
            f"{named['many']}: {count(sum(counts))} in {len(counts)} classes; between "
            f"{count(min(counts))} and {count(max(counts))} per class. "
            "All counts are in a table further down."
        )
        figures["classes"] = inline_svg(
            classes_figure(data), "classes", named["figure"], description
        )
        figures["classes_note"] = named["caption"]
        if data.aggregator.get("name") == "confident":
            figures["classes_note"] += f" {words.CONFIDENT}"
        if data.n_reinforced:
            figures["classes_note"] += (
                f" {count(data.n_reinforced)} of them are a confident student's own."
            )
    return figures


def history_of(data: PageData, after: str) -> dict[str, Any]:
    """Draw what was spent after so many queries, or steps; or say why there is no such figure."""
    figures: dict[str, Any] = {"history": None, "history_note": "", "undrawn": 0}
    if not data.privacy.may_publish_spending:
        figures["history_note"] = (
            f"There is no plot of the amounts spent: they are {words.KEPT_IN_VAULT}."
        )
    elif not data.history:
        figures["history_note"] = "There is no plot of the amounts spent: no history was recorded."
    else:
        figures["undrawn"] = max(0, len(data.privacy.groups) - MOST_GROUPS)
        figures["history"] = inline_svg(
            history_figure(data, after),
            "history",
            f"ε spent against {after}",
            _describe_history(data, after),
        )
    return figures


def _describe_history(data: PageData, after: str) -> str:
    asked = max(point.asked for point in data.history)
    ends = "; ".join(
        f"{clean(row.group)}: {up_of_down(row.epsilon_spent, row.budget.epsilon)}"
        for row in data.privacy.groups[:MOST_GROUPS]
    )
    so_far = f"{count(asked)} {after.removesuffix(' asked')}"
    return f"After {so_far}, ε spent by each owner and budget, by group: {ends}. {unit(data)}"


def _aggregator(data: ReportData) -> dict[str, Any]:
    name = str(data.aggregator.get("name", "unknown"))
    title, explanation = words.AGGREGATORS.get(
        name, (name, "See the documentation of this aggregator.")
    )
    rows = []
    for key, value in data.aggregator.items():
        if key == "name":
            continue
        symbol, meaning, scaling = words.PARAMETERS.get(key, ("", "", "as it is"))
        used = "not scaled" if isinstance(value, str) else plain(value)
        if not isinstance(value, str) and scaling == "times":
            used = plain(value * data.scale)
        elif not isinstance(value, str) and scaling == "divided":
            used = plain(value / data.scale) if data.scale else "—"
        rows.append(
            {
                "key": key,
                "symbol": symbol,
                "meaning": meaning,
                "configured": value if isinstance(value, str) else plain(value),
                "used": used,
            }
        )
    return {
        "name": name,
        "title": title,
        "explanation": explanation,
        "rows": rows,
        "scale": plain(data.scale),
        "average": any(group.frequency != 1.0 for group in data.plan.groups.values()),
        "gaussian": name in ("gnmax", "confident", "interactive"),
        "checked": name in ("confident", "interactive"),
        "as_labels": data.privacy.price == LABELS,
    }


def _personalisation(data: ReportData) -> dict[str, Any]:
    plan = data.plan
    return {
        "name": plan.personalisation,
        "sentences": words.PERSONALISATIONS.get(
            plan.personalisation, ("See the documentation of this personalisation.",)
        ),
        "rule": plan.rule,
        "rule_words": words.RULES.get(plan.rule, "see the documentation of this rule"),
        "n_nominal": count(plan.n_nominal),
        "n_teachers": count(plan.n_teachers),
        "mixed": plan.mixed,
        "pooled": bool(plan.pools),
        "efficiency": share(plan.efficiency),
        "efficiency_words": words.EFFICIENCY,
    }


def _run(data: ReportData) -> list[tuple[str, str]]:
    return [
        ("Teacher model", data.teacher),
        ("Student model", data.student),
        ("Public records", count(data.n_public)),
        ("Queries asked", count(data.n_asked)),
        ("Answered by the teachers", count(data.n_answered)),
        (
            "Released of each answered query",
            words.RELEASED[Answers(data.privacy.released)],
        ),
        *_label_price(data),
        ("Kept from a confident student", count(data.n_reinforced)),
        ("Charged, but lost in a crash", count(data.n_lost)),
        ("Voting stopped by", data.stop_reason),
        ("Public test records", count(data.n_test)),
    ]


def _label_price(data: ReportData) -> list[tuple[str, str]]:
    """Say that an answer was charged less than all noisy counts, and why."""
    if data.privacy.price != LABELS:
        return []
    return [("Charged for each answer", words.LABEL_PRICE["privacy.price" in data.settings])]
