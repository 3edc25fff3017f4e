"""The ask command: counts, means, quantiles and tables of a private table, within everybody's own budget."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.console import hush, json_text, out, print_json, warn_of
from collegium.cli.options import (
    GUARANTEE,
    ON_LEDGER,
    PATH_OPTION,
    WHOSE_ROWS,
    AllowNewPeople,
    Key,
    Levels,
    NeighboursOption,
    NoiseSeed,
    Owner,
    PrivateTable,
    Quiet,
    SchemaFile,
)
from collegium.errors import CollegiumError, InputError
from collegium.statistics.answer_notes import costs_anything, notes_apart
from collegium.statistics.answer_words import percent_of, price_in_words

if TYPE_CHECKING:
    from rich.table import Table

    from collegium.accounting.statement import PrivacyStatement
    from collegium.cli.answer_record import AnswerRecord
    from collegium.cli.query_session import SessionProgress
    from collegium.data.schema import Schema
    from collegium.ledger.places import Place
    from collegium.runs.observer import Observer
    from collegium.statistics.planned import Plan
    from collegium.statistics.query import Query
    from collegium.statistics.session import Statistics

_HOW = "How it is answered"


def _epsilon(text: str) -> float:
    """Read ε; what is too large for a number is no infinity, which nobody meant."""
    from collegium.checks import exact_float, shown

    try:
        epsilon = exact_float(text)
    except (ValueError, OverflowError):
        epsilon = math.nan
    if not epsilon >= 0:
        raise typer.BadParameter(
            f"must be a number, such as 1 (0 grants nothing, inf sets no limit), got {shown(text)}."
        )
    return epsilon


def ask(
    table: PrivateTable,
    questions: Annotated[
        list[str],
        typer.Argument(
            help='Each in quotes: "mean income by sex where age >= 40".',
            metavar="QUESTION",
            show_default=False,
        ),
    ],
    schema_file: SchemaFile = Path("schema.toml"),
    privacy: Annotated[
        str | None,
        typer.Option(
            help="Column with each row's privacy level (or, without --levels and --policy, its ε).",
            metavar="COLUMN",
            rich_help_panel=WHOSE_ROWS,
        ),
    ] = None,
    levels: Levels = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with levels and delta, such as a study's file.",
            **PATH_OPTION,
            rich_help_panel=WHOSE_ROWS,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="One ε for everybody, instead of a column.",
            metavar="NUMBER",
            parser=_epsilon,
            rich_help_panel=WHOSE_ROWS,
        ),
    ] = None,
    delta: Annotated[
        float,
        typer.Option(help="Everybody's δ, unless --policy gives it.", rich_help_panel=WHOSE_ROWS),
    ] = 1e-5,
    owner: Owner = None,
    spend: Annotated[
        float | None,
        typer.Option(
            help="Share of people's remaining budgets that these questions use together. Default: all "
            "of it; with a ledger, it must be given.",
            rich_help_panel=GUARANTEE,
        ),
    ] = None,
    neighbours: NeighboursOption = None,
    weights: Annotated[
        str,
        typer.Option(
            help="How budgets become weights: saturating (for the smallest error), proportional or uniform.",
            rich_help_panel=_HOW,
        ),
    ] = "saturating",
    calibrated: Annotated[
        bool,
        typer.Option(
            "--calibrated",
            help="Count everybody equally, whatever they granted: for budgets that depend on the data.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    noise: Annotated[
        str, typer.Option(help="Kind of noise: auto, gaussian or laplace.", rich_help_panel=_HOW)
    ] = "auto",
    confidence: Annotated[
        float, typer.Option(help="Confidence of the intervals.", rich_help_panel=_HOW)
    ] = 0.95,
    noise_seed: NoiseSeed = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="A file, postgresql://USER@HOST/DATABASE, or none. Default: COLLEGIUM_LEDGER, or "
            "else, with --owner, one beside the table, named after it.",
            rich_help_panel=ON_LEDGER,
        ),
    ] = None,
    key: Key = None,
    allow_new_people: AllowNewPeople = False,
    record: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps answers (JSON): questions answered there are free; new answers are "
            "added.",
            **PATH_OPTION,
        ),
    ] = None,
    out_file: Annotated[
        Path | None,
        typer.Option("--out", help="Also write the answers to this file, as JSON.", **PATH_OPTION),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(help="What stands between the cells of a CSV file.", metavar="CHARACTER"),
    ] = None,
    decimal: Annotated[
        str,
        typer.Option(help="What stands before decimals in a CSV file.", metavar="CHARACTER"),
    ] = ".",
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Only tell what it would cost, and how far off answers would be. Spends nothing.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    quiet: Quiet = False,
) -> None:
    """Ask a private table for counts, means, quantiles and tables, within everybody's own budget.

    A question is one of these, then (optionally) by GROUPS and where CONDITION:
    count; count people; share of A; sum, mean, var, std, median, quantile(0.9), quantiles(0.1, 0.9)
    or histogram A; top 5 of A; crosstab, cov or corr A, B; ridge Y on A, B;
    share where CONDITION by GROUPS among CONDITION; difference of mean A by B between 'b' and 'c'.
    Of a date D: year(D), month(D), weekday(D), age(D, 2024-12-31).
    Several questions share the budget equally. The number of people is public, so counting them is free.

    Example: collegium ask people.csv --privacy level --levels high=1,low=3
    "mean income by sex where age >= 40" "median age"

    Example: collegium ask visits.parquet --privacy level --policy policy.toml
    --owner patient --spend 0.1 --record answers.json
    "count where diagnosis in ('A', 'B') and not smoker"
    """
    from collegium.checks import check_choice, check_separator
    from collegium.cli.answer_record import AnswerRecord
    from collegium.cli.interrupts import say_if_interrupted
    from collegium.cli.outputs import (
        refuse_among_a_studys_files,
        refuse_no_folder,
        refuse_taken,
        write_named,
    )
    from collegium.cli.progress import watching
    from collegium.cli.query_session import SessionProgress, place_of, session_of, title_of
    from collegium.data.engines.sources import adds_up, in_its_words, source_of
    from collegium.data.schema import Schema
    from collegium.study.query_table import FormOfCsv, granted_as_said, read_rows
    from collegium.weighted_sums.weights import RULES

    hush(quiet)
    source = source_of(table)
    standing = SessionProgress(record)
    say_if_interrupted(standing.in_words)
    schema = Schema.read(schema_file)
    asked = _parsed(questions, schema)
    check_separator(separator, "--separator")
    check_choice("decimal", decimal, (".", ","))
    check_choice("weights", weights, RULES)
    for path in filter(None, (record, out_file)):
        refuse_among_a_studys_files(path)
        refuse_no_folder(path)
    if out_file is not None:
        refuse_taken(out_file)
    kept = AnswerRecord(record, schema, source.name, private_noise=noise_seed is None)
    how: dict[str, Any] = {"weights": weights, "calibrated": calibrated}
    one_row_each = owner is None or schema.rows_per_owner == 1
    statement: PrivacyStatement | None = None
    place, failed = None, ""
    with ExitStack() as stack:
        new = [one for one in asked if kept.find(one, **how) is None]
        if new and not plan:
            stack.enter_context(kept.locked(warn_of))
            new = [one for one in asked if kept.find(one, **how) is None]
        charged = [one for one in new if not one.is_public(one_row_each)]
        if new:
            observer = stack.enter_context(watching(not as_json))
            granted = granted_as_said(privacy, levels, policy, epsilon, delta, owner)
            if charged:  # how many people there are costs nothing
                place = place_of(ledger, key, source, owner, noise_seed, observer)
            if place is not None and spend is None and not plan:
                raise InputError(
                    f"--spend is missing: the ledger {place} remembers for good what is spent, so give "
                    "the share of people's remaining budgets that these questions may use, such as "
                    "--spend 0.1, or give --ledger none"
                )
            needs = sorted({name for one in new for name in one.needs})
            form = FormOfCsv(separator, decimal)
            may_stay = place is None or adds_up(source)  # with a ledger, files are read
            rows = read_rows(source, needs, schema, granted, form, observer, may_stream=may_stay)
            settings = {
                "schema": schema,
                "spend": 1.0 if spend is None else spend,
                "questions": max(1, len(charged)),
                "noise": noise,
                "weights": weights,
                "neighbours": neighbours,
                "confidence": confidence,
                "noise_seed": noise_seed,
                "name": title_of(source, charged or new),
            }
            standing.place, standing.begins = place, not plan
            with in_its_words(source):
                session = session_of(
                    rows,
                    standing,
                    settings,
                    observer,
                    allow_new_people=allow_new_people,
                    only_plans=plan,
                )
            place = standing.place  # people may be known elsewhere than where it was looked for
            if plan:
                stack.close()
                plans = [session.plan(one, **how) for one in new]
                _show_plans(plans, [str(one) for one in asked if one not in new], as_json)
                return
            standing.session = stack.enter_context(session)
            failed = _ask_each(standing, session, new, charged, how, kept, observer)
            statement = session.privacy_
        elif plan:
            _show_plans([], [str(one) for one in asked], as_json)
            return
    entries = [(one in new, found) for one in asked if (found := kept.find(one, **how))]
    content = {
        "schema": schema.digest,
        "answers": [{**entry, "from_record": not is_new} for is_new, entry in entries],
        "privacy": None if statement is None else statement.to_dict(),
        **({} if place is None else {"ledger": str(place)}),
    }
    if as_json:
        print_json(content)
    else:
        protected = "everything in one row" if owner is None else "everything in one person's rows"
        _show(entries, statement if charged else None, protected)
        if place is not None:
            _show_ledger(place, record)
    if standing.pressed:
        raise KeyboardInterrupt
    if failed:
        raise InputError(failed)
    if out_file is not None:
        write_named(out_file, json_text(content).encode())
        if not as_json:
            out.print(f"Wrote {out_file}.", soft_wrap=True)


def _parsed(questions: list[str], schema: Schema) -> list[Query]:
    """Read questions, each once; words of one without quotes come as several."""
    from collegium.statistics.language import parse_question

    try:
        return list(dict.fromkeys(parse_question(question, schema) for question in questions))
    except InputError as error:
        try:
            one = parse_question(" ".join(questions), schema)
        except InputError:
            raise error from None
        raise InputError(
            f'put the question in quotes, so that it is read as one: "{one}"'
        ) from None


def _ask_each(
    standing: SessionProgress,
    session: Statistics,
    new: list[Query],
    charged: list[Query],
    how: dict[str, Any],
    kept: AnswerRecord,
    observer: Observer,
) -> str:
    """Ask what is new, and keep the answers.

    Returns why not all were asked, or kept, if so: what was paid for is shown in any case.
    Raises CollegiumError if one of them cannot be asked at all: nothing is charged then.
    """
    from collegium.cli.answer_record import NotKeptError

    for one in charged:
        session.plan(one, **how)
    observer.stage("answers", len(new))
    free = [one for one in new if one not in charged]
    for number, one in enumerate([*free, *charged]):
        # Each of those that are charged takes an equal part of what is left to them.
        share = 1.0 if one in free else 1 / (len(new) - number)
        try:
            kept.read()
            if kept.find(one, **how) is None:
                kept.add(one, session.ask(one, **how, spend=share), **how)
        except NotKeptError as error:
            return f"{error}: copy the answer from here, and ask the rest with another --record"
        except KeyboardInterrupt:
            if not session.answers:
                raise
            standing.pressed = True
            if one in charged and len(session.answers) > number - len(free):  # it has just come
                kept.add(one, session.answers[-1], **how)
            return ""
        except (CollegiumError, OSError) as error:
            if not session.answers:
                raise
            return f"{error}; the answers above are paid for, and nothing was asked after them"
        observer.advanced(number + 1, len(new))
    return ""


def _show_ledger(place: Place, record: Path | None) -> None:
    from collegium.cli.query_session import how_to_show

    out.print(
        f"Entered in the ledger {place}: `{how_to_show(place)}` shows what remains.",
        soft_wrap=True,
    )
    if record is None:
        out.print(
            "Asking again costs again; with --record FILE, answers are kept, and free the next time.",
            soft_wrap=True,
        )


def _show(
    entries: list[tuple[bool, dict[str, Any]]], statement: PrivacyStatement | None, protected: str
) -> None:
    """Print a line for each answer (and each of its groups), then weights and payments."""
    if not all(entry["private_noise"] for _, entry in entries):
        out.insist("NOT PRIVATE: the noise was drawn from a seed.", style="bold red")
    old = [entry for is_new, entry in entries if not is_new]

    def beside(entry: Mapping[str, Any]) -> Iterator[str]:
        if not costs_anything(entry):
            return
        precision = (
            f"precision: as if {entry['effective']:,.0f} of {entry['people']:,} people had been "
            "counted equally"
        )
        is_old = any(entry is one for one in old)
        price = price_in_words({str(row["group"]): row["share"] for row in entry["paid"]})
        yield f"{precision}; " + ("answered before, so it is free" if is_old else price)
        if is_old and "how" in entry:  # what it promised then, whatever is said now
            yield entry["how"]

    own, of_all = notes_apart([entry for _, entry in entries])
    for (_, entry), notes in zip(entries, own, strict=True):
        for line in entry["text"].splitlines():
            out.insist(line, soft_wrap=True)
        for line in beside(entry):
            out.print(f"  {line}", style="dim", soft_wrap=True)
        for note in notes:
            out.print(f"  • {note}", soft_wrap=True)
    for note in of_all:
        out.print(f"• {note}", soft_wrap=True)
    if statement is not None:
        if statement.large_deltas:
            out.print(f"{statement.large_deltas}.", style="bold yellow", soft_wrap=True)
        new = [entry for is_new, entry in entries if is_new]
        out.print(_paid_table(new, statement, protected))


def _paid_table(
    entries: list[dict[str, Any]], statement: PrivacyStatement, protected: str
) -> Table:
    """Tabulate how much each group counts, and what each person paid for all new answers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from collegium.accounting.statement import budget_in_digits, left_out
    from collegium.report.words import MEMBERS

    one, many, unit = MEMBERS[statement.unit]
    table = Table(
        title=f"How much each group counts, and what each {one} paid",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("group")
    for name in (many, "share", "weight", "budget ε", "paid ε", "of budget"):
        table.add_column(name, justify="right")
    weights: dict[str, list[tuple[float, float]]] = {}
    spent: dict[str, float] = {}
    for entry in filter(costs_anything, entries):
        for row in entry["paid"]:
            name = str(row["group"])
            spent[name] = spent.get(name, 0.0) + row["share"]
        for row in entry["represented"]:
            weights.setdefault(str(row["group"]), []).append((row["share"], row["weight"]))
    for row in statement.shown:
        granted, paid = statement.in_digits(row)
        shares, shares_of_weight = zip(*weights.get(row.group, [(0.0, 0.0)]), strict=True)
        table.add_row(
            row.group,
            f"{row.owners:,}",
            _percent(shares),
            _percent(shares_of_weight),
            granted,
            paid,
            percent_of(spent.get(row.group, 0.0)),
        )
    deltas = ", ".join(sorted({budget_in_digits(row.budget.delta) for row in statement.shown}))
    few = left_out(len(statement.groups))
    table.caption = (
        f"ε per {unit}, at δ = {deltas}. Share: of all {many}; weight: in the answers. Of budget: as a "
        "ledger counts it, in what adds up over releases. Protected: "
        f"{protected}. Not hidden: who took part, their level, and how many chose each. (--json has "
        "the full definition.)" + f" {few[:1].upper()}{few[1:]}." * bool(few)
    )
    table.caption_justify = "left"
    return table


def _percent(shares: tuple[float, ...]) -> str:
    low, high = (f"{100 * share:.1f}" for share in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _show_plans(plans: list[Plan], known: list[str], as_json: bool) -> None:
    """Print plans. ``known``: questions that a record answers."""
    if as_json:
        print_json({"plans": [dataclasses.asdict(one) for one in plans], "from_record": known})
        return
    for line in "\n".join(map(str, plans)).splitlines():
        out.print(line, soft_wrap=True)
    for question in known:
        out.print(f"{question}: answered before, so it is free", soft_wrap=True)
