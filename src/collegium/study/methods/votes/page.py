"""The page and the card about a study in which teachers vote: what only this method has to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collegium.errors import InputError
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.history import SpendingPoint, spending_history
from collegium.pate.voting.labelling import LOST, REINFORCED
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.personalisation.electorate import Electorate
from collegium.personalisation.plan import Plan
from collegium.report.effect_tables import class_table, labels_right
from collegium.report.numbers import clean, count, down, plain, share, spent_of
from collegium.report.plots import classes_figure
from collegium.report.promise import granted_by, history
from collegium.report.quality import quality_headlines, threshold_tables
from collegium.report.sections import (
    Block,
    Code,
    Column,
    Figure,
    Figures,
    Folded,
    Heading,
    Headline,
    Headlines,
    Page,
    Paragraph,
    Section,
    Table,
    Text,
)
from collegium.report.words import GAUSSIAN_EPSILON, not_covered, repeated
from collegium.study.config import StudyConfig
from collegium.study.folder import HISTOGRAMS_FILE, versions
from collegium.study.methods.votes import words
from collegium.study.methods.votes.result import VotesResult
from collegium.study.model_page import ModelReport, use_of
from collegium.study.result import in_words, shown_settings
from collegium.study.student_file import STUDENT_FILE
from collegium.study.study_data import StudyData

_GAUSSIAN = ("gnmax", "confident", "interactive")
_CHECKED = ("confident", "interactive")
_NOT_COVERED = not_covered(
    "Thresholds, noise, models and their settings",
    "The records, the teachers and their votes must stay in the vault.",
    "A student may learn",
)


@dataclass(frozen=True, kw_only=True)
class VotesReport(ModelReport):
    """All numbers and words of a report about PATE.

    ``plan``: teachers, duplicates, weights and frequencies of each group.
    ``aggregator``: ``name`` and parameters, as configured.
    ``scale``: total vote weight / nominal number of teachers: parameters were multiplied by it (by
        its average, where teachers vanish).
    ``stop_reason``: "budget", "queries", "labels" or "interrupted".
    ``n_asked``, ``n_answered``, ``n_reinforced``, ``n_lost``: queries asked; answered by the teachers; taken
        from a confident student; charged but lost in a crash.
    ``label_accuracy``: against public truth, where it is known.
    ``n_given``: records that their owners let be published.
    """

    history: Sequence[SpendingPoint]
    plan: Plan
    aggregator: Mapping[str, str | float]
    scale: float
    stop_reason: str
    n_asked: int
    n_answered: int
    n_reinforced: int
    n_lost: int
    teacher: str
    student: str
    label_accuracy: float | None
    n_given: int = 0

    @property
    def class_names(self) -> list[str]:
        """The public class list."""
        return [row.name for row in self.effects.classes]

    @property
    def labels_per_class(self) -> list[int]:
        """Released labels of each class."""
        return [row.labels for row in self.effects.classes]

    @property
    def answers(self) -> Mapping[str, str]:
        """How what was released is called."""
        return words.ANSWERS[self.privacy.released == HISTOGRAM]


def votes_report(
    result: VotesResult,
    config: StudyConfig,
    data: StudyData,
    aggregator: Aggregator,
    electorate: Electorate,
) -> VotesReport:
    """Put together what the report shows: nothing that may not be published."""
    labels = result.labels
    verdicts = [outcome.verdict for outcome in labels.outcomes]
    scales = [electorate.ballot(p).scale for p in range(min(len(verdicts), 1000))] or [1.0]
    is_there = (result.folder.release / STUDENT_FILE).exists()
    may_show = result.privacy.may_publish_spending
    return VotesReport(
        title=config.title(),
        chosen=result.chosen,
        privacy=result.privacy,
        plan=result.plan,
        aggregator=aggregator.settings(),
        scale=float(np.mean(scales)),
        stop_reason=labels.stop_reason,
        n_public=len(data.X_public),
        n_asked=labels.n_asked,
        n_answered=labels.n_answered,
        n_reinforced=verdicts.count(REINFORCED),
        n_lost=verdicts.count(LOST),
        effects=result.effects,
        history=(
            spending_history(aggregator, electorate, labels.outcomes, result.privacy.price)
            if may_show
            else []
        ),
        teacher=in_words(config, "teachers"),
        student=in_words(config, "student"),
        label_accuracy=result.label_accuracy,
        quality=result.quality,
        n_test=result.n_test,
        student_notes=result.student_notes,
        foretold=result.foretold,
        settings=shown_settings(config),
        versions=versions(),
        use=use_of(config, data, equal_chances=True) if is_there else None,
        n_given=0 if data.given is None else len(data.given.codes),
    )


def votes_page(data: VotesReport) -> Page:
    """Say all that there is to say of votes, of what may be published."""
    _validate(data)
    return Page(
        **data.shared(),
        subject="private aggregation of teacher ensembles with individual privacy budgets",
        what=_what(data),
        stopped=_stopped(data),
        risk_follows=words.RISK_FROM_LABELS if data.privacy.price == LABELS else "",
        results=[
            Headlines([*quality_headlines(data.quality), *_answer_headlines(data)]),
            *threshold_tables(data.quality),
            *data.notes("student"),
        ],
        result_limits=data.limits("from noisy labels"),
        sections=[_effects(data), _mechanism(data)],
        leaves=f"In the release: the released {data.answers['leave']} for public records; the student, "
        "trained on these labels and public records only; the privacy statement, the card and the page. The "
        "private records, the teachers and their votes are not in it.",
        not_covered=_NOT_COVERED,
        checks=_checks(data),
        run=_run(data),
        references=words.REFERENCES,
    )


def _validate(data: VotesReport) -> None:
    missing = [row.group for row in data.privacy.groups if row.group not in data.plan.groups]
    if missing:
        raise InputError(
            f"group {missing[0]!r} is in the privacy statement, but not in the plan: give the plan of "
            "the same study"
        )


def _what(data: VotesReport) -> Text:
    n_labels = count(sum(data.labels_per_class))
    released: list[str | Code] = [f"{n_labels} labels (", Code("labels.csv"), ")"]
    if data.privacy.released == HISTOGRAM:
        released += [", with the noisy counts behind them (", Code(HISTOGRAMS_FILE), ")"]
    if data.use is None:
        return ("This folder holds ", *released, ". There is no student in it.")
    given = (
        f", {count(data.n_given)} records that their owners let be published,"
        if data.n_given
        else ""
    )
    return (
        Code(STUDENT_FILE),
        f" is a classifier ({data.student}). It learnt from public records{given} and ",
        *released,
        f". These come from the noisy votes of {count(data.plan.n_teachers)} teachers, each trained on some "
        "of the private records; neither teachers nor votes are published.",
    )


def _stopped(data: VotesReport) -> str:
    """Say why the voting stopped, and no more than may be said."""
    if data.stop_reason != "budget":
        return words.STOPS.get(data.stop_reason, f"Voting stopped: {data.stop_reason}.")
    if not data.privacy.may_publish_spending:
        return (
            "Voting stopped because the next query could have overspent somebody's budget under the "
            "data-dependent account; whose, and how much remained, stays in the vault."
        )
    limited = [row for row in data.privacy.groups if not row.budget.is_unlimited]
    sentence = "Voting stopped because the next query could have overspent somebody's budget."
    if not limited:
        return sentence
    nearest = max(limited, key=lambda row: row.share)
    budget = granted_by(nearest, data.chosen)
    return (
        f"{sentence} Closest to its limit is level {nearest.group}: each person has spent ε = "
        f"{spent_of(nearest.epsilon_spent, nearest.budget.epsilon)} (at δ = "
        f"{down(budget.delta)})."
    )


def _answer_headlines(data: VotesReport) -> list[Headline]:
    released = Headline(
        data.answers["released"],
        count(sum(data.labels_per_class)),
        f"from {count(data.n_asked)} queries; {count(data.n_public)} public records",
    )
    if data.label_accuracy is None:
        return [released]
    right = Headline(data.answers["right"], share(data.label_accuracy), data.answers["note"])
    return [released, right]


def _classes(data: VotesReport, table: Table) -> list[Block]:
    counts = list(data.labels_per_class)
    if not sum(counts):
        return [Paragraph("No label was released, so there is no plot of them.", "note")]
    caption = data.answers["caption"]
    if data.aggregator.get("name") == "confident":
        caption += f" {words.CONFIDENT}"
    if data.n_reinforced:
        caption += f" {count(data.n_reinforced)} of them are a confident student's own."
    figure = Figure(
        "classes",
        f"{data.answers['figure'][:1].upper()}{data.answers['figure'][1:]}",
        f"{data.answers['many']}: {count(sum(counts))} in {len(counts)} classes; between "
        f"{count(min(counts))} and {count(max(counts))} per class. All counts are in the table below.",
        lambda: classes_figure(data.class_names, counts, data.answers["many"]),
        caption,
        table,
    )
    return [Folded("Class by class", [Figures([figure])])]


def _effects(data: VotesReport) -> Section:
    labels = data.labels_per_class
    total = sum(labels)
    columns: list[tuple[str, list[str]]] = [
        (data.answers["many"], [count(one) for one in labels]),
        (data.answers["share"], [share(one / total if total else None) for one in labels]),
    ]
    if right := labels_right(data.effects):
        columns.append((data.answers["right"], right))
    influence = "how much of all vote weight depends on the level's records"
    return data.effects_section(
        "student", influence, _classes(data, class_table(data.effects, "student", columns))
    )


def _mechanism(data: VotesReport) -> Section:
    name = str(data.aggregator.get("name", "unknown"))
    title, explanation = words.AGGREGATORS.get(
        name, (name, "See the documentation of this aggregator.")
    )
    blocks: list[Block] = [Heading(f"The vote: {title}"), Paragraph(explanation)]
    parameters = _parameters(data)
    return Section(
        "mechanism",
        "How votes became labels",
        [
            *blocks,
            *([parameters] if parameters.rows else []),
            *_personalisation(data),
            Figures([history(data.privacy, data.history, "queries asked", data.chosen)]),
        ],
        is_folded=True,
    )


def _varies(data: VotesReport) -> bool:
    """Whether teachers stay away from some queries."""
    return any(group.frequency != 1.0 for group in data.plan.groups.values())


def _parameters(data: VotesReport) -> Table:
    rows: list[tuple[Text, ...]] = []
    for key, value in data.aggregator.items():
        if key == "name":
            continue
        symbol, meaning, scaling = words.PARAMETERS.get(key, ("", "", "as it is"))
        configured, used = str(value), "not scaled"
        if not isinstance(value, str):
            scaled = {
                "times": value * data.scale,
                "divided": value / data.scale if data.scale else None,
            }
            found = scaled.get(scaling, value)
            configured, used = plain(value), "—" if found is None else plain(found)
        rows.append((_key(key, symbol), meaning or "—", configured, used))
    average = "on average " if _varies(data) else ""
    caption = (
        f"Settings are given for a total vote weight of {count(data.plan.n_nominal)} (one vote for each "
        f"nominal teacher). The total here is {average}{plain(data.scale)} × that, and thresholds and noise "
        "are scaled alike" + (", to the teachers who take part in each query." if average else ".")
    )
    columns = (
        Column("Parameter", is_number=False),
        Column("Meaning", is_number=False),
        Column("As configured"),
        Column("As scaled (on average)" if average else "As scaled"),
    )
    return Table(columns, rows, caption)


def _key(key: str, symbol: str) -> Text:
    return (Code(key), f" ({symbol})") if symbol else (Code(key),)


def _personalisation(data: VotesReport) -> list[Block]:
    plan = data.plan
    sentences = words.PERSONALISATIONS.get(
        plan.personalisation, ("See the documentation of this personalisation.",)
    )
    whose = "each for one level"
    if plan.mixed:
        whose = "shared by all levels"
    elif plan.pools:
        whose = "each for people with nearly the same budget"
    columns = (
        Column("Level", is_number=False),
        *map(
            Column,
            (
                "Teachers",
                "Teachers per person",
                "Weight of a vote",
                "Participation",
                "Individual sensitivity Δ",
                "Utilisation",
            ),
        ),
    )
    rows = []
    for row in data.privacy.shown:
        planned = plan.groups[row.group]
        rows.append(
            (
                row.group,
                count(planned.teachers),
                count(planned.duplicates),
                plain(planned.weight),
                share(planned.frequency),
                plain(planned.sensitivity),
                share(planned.utilisation),
            )
        )
    caption = (
        "Individual sensitivity Δ: how far one person can move the count of one class, at a query in which "
        "the person's teachers take part. Utilisation: share of the level's budget (in μ) that is spent when "
        "the first level's runs out."
    )
    rule = words.RULES.get(plan.rule, "see the documentation of this rule")
    return [
        Heading(f"How budgets became influence: {plan.personalisation}"),
        Paragraph(" ".join(sentences)),
        Paragraph(
            (
                "Influence was set by rule ",
                Code(plan.rule),
                f": {rule}. {count(plan.n_teachers)} teachers were trained, {whose}. Efficiency of the plan: "
                f"{share(plan.efficiency)}. {words.EFFICIENCY}",
            )
        ),
        Table(columns, rows, caption),
    ]


def _checks(data: VotesReport) -> list[Text]:
    name = str(data.aggregator.get("name", "unknown"))
    lines: list[Text] = []
    if data.privacy.may_publish_spending:
        lines.append(
            (
                "Amounts spent follow from public numbers alone: the parameters as scaled, the individual "
                "sensitivities, and the numbers of queries asked and answered on this page. ",
                Code("collegium account"),
                " computes what they cost; see ",
                Code("collegium account --help"),
                ".",
            )
        )
    else:
        lines.append(
            (
                Code("collegium account"),
                " computes from the public numbers on this page what the queries would cost at worst, "
                "whatever the data are; see ",
                Code("collegium account --help"),
                ". What they cost under the data-dependent account can only be computed in the vault.",
            )
        )
    if data.privacy.price == LABELS:
        check = "; each check costs α · Δ² / 2σ_T²" if name in _CHECKED else ""
        lines.append(
            (
                "Each answer is charged as its label alone: at Rényi order α, which is fixed for each "
                f"budget, about 0.64 to 0.7 of what all noisy counts cost, α · Δ² / σ²{check}. The exact "
                "numbers: ",
                Code("gaussian_arg_max_rdp"),
                " in ",
                Code("collegium.accounting.arg_max"),
                ", and ",
                Code("collegium account --price labels"),
                ".",
            )
        )
    elif name in _GAUSSIAN:
        check = "asked · Δ² / σ_T² + " if name in _CHECKED else ""
        part = " of the queries in which the person's teacher takes part" if _varies(data) else ""
        lines.append(
            f"By hand, at worst: a person of sensitivity Δ has μ² = {check}answered · 2Δ² / σ², with the "
            f"scaled noise{part}; queries lost in a crash count as asked and answered. {GAUSSIAN_EPSILON}"
        )
    lines.append(repeated("labels", data.privacy.noise_is_private))
    return lines


def _run(data: VotesReport) -> list[tuple[str, str]]:
    privacy = data.privacy
    price = (
        [("Charged for each answer", words.LABEL_PRICE["privacy.price" in data.settings])]
        if privacy.price == LABELS
        else []
    )
    return [
        ("Teacher model", data.teacher),
        ("Student model", data.student),
        ("Public records", count(data.n_public)),
        ("Queries asked", count(data.n_asked)),
        ("Answered by the teachers", count(data.n_answered)),
        (
            "Released of each answered query",
            words.RELEASED.get(privacy.released, clean(privacy.released)),
        ),
        *price,
        ("Kept from a confident student", count(data.n_reinforced)),
        ("Charged, but lost in a crash", count(data.n_lost)),
        ("Voting stopped by", data.stop_reason),
        ("Public test records", count(data.n_test)),
    ]
