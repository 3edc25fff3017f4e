"""The account command: what would this cost, and what can be afforded. Arithmetic only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collegium.cli.console import out, print_json, warn_of
from collegium.cli.options import HOW_VOTES_COUNT
from collegium.cli.outputs import folder_of
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.pate.voting.aggregators import Aggregator
    from collegium.personalisation.plan import Plan

MOST_COUNTED = 1_000_000

Sigma = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=HOW_VOTES_COUNT, help="Noise of the answer, for the nominal teachers."
    ),
]
SigmaThreshold = Annotated[
    float | None, typer.Option(rich_help_panel=HOW_VOTES_COUNT, help="Noise of the check.")
]
Threshold = Annotated[
    float | None, typer.Option(rich_help_panel=HOW_VOTES_COUNT, help="Threshold of the check.")
]
Gamma = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=HOW_VOTES_COUNT, help="lnmax, pfmax, expmax: inverse scale of the noise."
    ),
]
AggregatorName = Annotated[
    str,
    typer.Option(
        "--aggregator",
        rich_help_panel=HOW_VOTES_COUNT,
        help="lnmax, gnmax, confident, interactive, pfmax or expmax.",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--personalisation",
        rich_help_panel=HOW_VOTES_COUNT,
        help="uniform, upsampling, weighting, vanishing, bagging or hybrid.",
    ),
]
PriceName = Annotated[
    str | None,
    typer.Option(
        "--price",
        rich_help_panel=HOW_VOTES_COUNT,
        help="What an answer is charged, worst case: histogram, or labels where they alone are released "
        "(gnmax, confident, interactive). Default: whichever pays for more answers.",
        show_default=False,
    ),
]
Rule = Annotated[
    str, typer.Option(rich_help_panel=HOW_VOTES_COUNT, help="Weight rule of the personalisation.")
]


def account(
    events: Annotated[
        list[str] | None,
        typer.Argument(
            help="With --compare: KIND(NUMBERS) or COUNT x KIND(NUMBERS), with gaussian(NOISE), "
            "argmax(NOISE), laplace(EPSILON), pure(EPSILON), exponential(RANGE), poisson(RATE, NOISE, "
            "STEPS); or a file of --export.",
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            help="A level as NAME=EPSILON:PEOPLE, once for each; EPSILON may be inf.",
            show_default=False,
        ),
    ] = None,
    remaining: Annotated[
        Path | None,
        typer.Option(
            help="Instead: what a study's or label job's folder has spent and has left, also while it is "
            "running.",
            show_default=False,
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            help="Instead: the composition of a study or label job as JSON, for other accountants.",
            show_default=False,
        ),
    ] = None,
    compared: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Instead: what the EVENTS cost a person together, by every composition theorem.",
        ),
    ] = False,
    people: Annotated[
        int,
        typer.Option("--group", help="With --compare: how many people are protected together."),
    ] = 1,
    delta: Annotated[float, typer.Option(help="δ of every level.")] = 1e-5,
    teachers: Annotated[int, typer.Option(help="Nominal number of teachers.")] = 250,
    personalisation: Method = "weighting",
    rule: Rule = "exact",
    aggregator: AggregatorName = "confident",
    sigma: Sigma = None,
    sigma_threshold: SigmaThreshold = None,
    threshold: Threshold = None,
    gamma: Gamma = None,
    price: PriceName = None,
    checks: Annotated[int | None, typer.Option(help="Checks made; default: as answers.")] = None,
    answers: Annotated[
        int | None, typer.Option(help="Answers given; default: as many as can be afforded.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Tell what queries would cost each person, worst case. Needs no data, spends nothing.

    Example: collegium account --level high=1:540 --level average=2:370 --level low=3:90
    --teachers 250 --checks 150 --answers 100

    Example: collegium account --remaining study/

    Example: collegium account --export study/ > composition.json

    Example: collegium account --compare "100 x laplace(0.1)" "gaussian(40)"
    """
    from collegium.accounting.neighbours import Arrangement
    from collegium.accounting.statement import budget_and_cost
    from collegium.cli.blocks import show
    from collegium.cli.levels import parse_levels
    from collegium.cli.remaining import show_export, show_remaining
    from collegium.pate.settings import Account
    from collegium.pate.voting.affordable import MOST
    from collegium.pate.voting.aggregators import aggregator_from
    from collegium.pate.voting.price_choice import choose_price
    from collegium.personalisation import as_personalisation
    from collegium.report.plans import plan_sentence, plan_table
    from collegium.report.sections import Paragraph
    from collegium.study.methods.votes.shown import affordable_answers, at_least

    if [level, remaining, export, compared or None].count(None) != 3:
        raise InputError(
            "give one of: --level (once for each level), --remaining FOLDER, --export FOLDER or --compare "
            "EVENTS"
        )
    if compared:
        from collegium.cli.compare import show_comparison

        show_comparison(events or [], delta, people, as_json)
        return
    if events or people != 1:
        raise InputError("events and --group are for --compare: add it, or leave them out")
    if remaining is not None:
        show_remaining(folder_of(remaining), as_json)
        return
    if export is not None:
        show_export(folder_of(export))
        return
    assert level is not None
    budgets, sizes = parse_levels(level, delta)
    plan = as_personalisation(personalisation, rule).plan(budgets, sizes, teachers)
    mechanism = aggregator_from(
        aggregator, sigma=sigma, sigma_threshold=sigma_threshold, threshold=threshold, gamma=gamma
    ).resolved(teachers)
    warn_of(plan.large_deltas())
    price = Account(price=price).price  # checked
    wanted = MOST if answers is None else max(1, min(answers, MOST))
    chosen = choose_price(price, "labels", mechanism, plan.electorate(0), "worst-case", wanted)
    most = affordable_answers(mechanism, plan, chosen.name)
    given = (most if checks is None else min(most, checks)) if answers is None else answers
    asked = given if checks is None else checks
    if min(asked, given) < 0 or asked < given:
        raise InputError(
            f"{asked} checks and {given} answers: give numbers of at least 0, and at least as many checks "
            "as answers"
        )
    spent = cost_of(mechanism, plan, chosen.name, asked, given)
    arrangement = Arrangement(assignment="elsewhere")
    if as_json:
        print_json(
            {
                "guarantee": "worst-case",
                "adjacency": arrangement.sentence,
                "checks": asked if mechanism.has_check else 0,
                "answers": given,
                "answers_affordable": most,
                "aggregator": mechanism.settings(),
                "price": chosen.name,
                "groups": {
                    name: {
                        "epsilon": group.budget.epsilon,
                        "delta": group.budget.delta,
                        "sensitivity": group.sensitivity,
                        "epsilon_spent": spent[name],
                        "within_budget": bool(spent[name] <= group.budget.epsilon),
                    }
                    for name, group in plan.groups.items()
                },
            }
        )
        return
    show([plan_table(plan), Paragraph(plan_sentence(plan))])
    out.print(f"{mechanism}: {at_least(most)} answers can be afforded if every query is answered.")
    if chosen.why:
        out.print(chosen.why, soft_wrap=True)
    checked = f"{asked:,} checks and " if mechanism.has_check else ""
    out.print(f"{checked}{given:,} answers cost each person, worst case:")
    for name, group in plan.groups.items():
        over = "" if spent[name] <= group.budget.epsilon else "  (more than the budget)"
        granted, paid = budget_and_cost(group.budget.epsilon, spent[name])
        out.print(f"  {name}: ε = {paid} of {granted} at δ = {group.budget.delta:g}{over}")
    out.print(arrangement.in_short, soft_wrap=True)


def cost_of(
    aggregator: Aggregator, plan: Plan, price: str, checks: int, answers: int
) -> dict[str, float]:
    """ε that each owner of each group would have spent, also beyond the budgets.

    ``price``: what an answer is charged.
    ``checks``, ``answers``: queries asked (in order of the schedule), and how many of the first
        were answered.
    """
    from collegium.pate.voting.pricing import worst_case_pricing

    electorate = plan.electorate(0)
    pricing = worst_case_pricing(price, aggregator, electorate)
    account = pricing.accountant.without_limits()
    asked = max(checks, answers)
    if electorate.is_static:
        of_each = pricing.price(electorate.ballot(0))
        account.charge(of_each.reserve, times=answers)
        account.charge(of_each.check, times=asked - answers)
        return account.epsilon_spent_by_name()
    if asked > MOST_COUNTED:
        raise InputError(
            f"{asked:,} queries are too many to be counted one by one, as personalisation "
            f"{plan.personalisation!r} needs: give at most {MOST_COUNTED:,}"
        )
    for position in range(asked):
        of_each = pricing.price(electorate.ballot(position))
        account.charge(of_each.reserve if position < answers else of_each.check)
    return account.epsilon_spent_by_name()
