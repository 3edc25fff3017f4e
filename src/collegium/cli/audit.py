"""The audit command: attack the mechanism, or a whole study, and hold the result against the claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from collegium.cli.account import (
    AggregatorName,
    Gamma,
    Method,
    Rule,
    Sigma,
    SigmaThreshold,
    Threshold,
)
from collegium.cli.console import err, out, print_json
from collegium.cli.options import PATH_OPTION
from collegium.cli.outputs import refuse_taken, write_named
from collegium.cli.studies import DataDir, with_data_dir
from collegium.errors import InputError

LEVELS = ["high=1:540", "average=2:370", "low=3:90"]
DO_NOT_RELEASE = """\
Nothing in this folder may be published, and nothing that this audit computed either.

It comes from a run in which canaries (invented people with wrong records) were among the private
records, and in which an auditor saw noisy counts. Its numbers say whether an account can be trusted; they
are not covered by any account.
"""


def audit(
    what: Annotated[
        str, typer.Argument(help="The word mechanism, or a study's TOML file.")
    ] = "mechanism",
    level: Annotated[
        list[str] | None,
        typer.Option(
            help="mechanism: a level as NAME=EPSILON:PEOPLE, once for each. Default: "
            + ", ".join(LEVELS),
            show_default=False,
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="mechanism: δ of every level.")] = 1e-5,
    teachers: Annotated[int, typer.Option(help="mechanism: nominal number of teachers.")] = 250,
    personalisation: Method = "weighting",
    rule: Rule = "exact",
    aggregator: AggregatorName = "confident",
    sigma: Sigma = None,
    sigma_threshold: SigmaThreshold = None,
    threshold: Threshold = None,
    gamma: Gamma = None,
    runs: Annotated[
        int,
        typer.Option(
            help="mechanism: labelling jobs on each side; study with dpsgd: runs of training."
        ),
    ] = 20_000,
    queries: Annotated[int, typer.Option(help="mechanism: queries of each job.")] = 8,
    canaries: Annotated[
        int | None,
        typer.Option(help="study: invented owners. Default: as many as answers can be afforded."),
    ] = None,
    copies: Annotated[int, typer.Option(help="study: records of each canary.")] = 8,
    guess_share: Annotated[
        float, typer.Option(help="study: share of the canaries about which a guess is made.")
    ] = 1.0,
    observe: Annotated[
        str | None,
        typer.Option(
            help="What the attacker sees: noisy (counts) or released (labels). Default: "
            "noisy, where the account pays for that."
        ),
    ] = None,
    release: Annotated[
        str, typer.Option(help="mechanism: what its jobs release, labels or histogram.")
    ] = "labels",
    confidence: Annotated[
        float, typer.Option(help="Probability that all lower bounds hold.")
    ] = 0.95,
    out_folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder for the figures. Default: none; with a study, STUDY-audit.",
            **PATH_OPTION,
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Attack the mechanism, or a whole study with canaries, and compare with what the account claims.

    A study that trains directly: its steps are attacked, with records that move each of them most.

    Exits with 1 if a lower bound is above a claim. Needs no data for a mechanism. An audit of a study
    is never a release: keep its folder to yourself.

    Example: collegium audit mechanism --aggregator confident --personalisation weighting --out audit/

    Example: collegium audit study.toml
    """
    from collegium.accounting.neighbours import Arrangement
    from collegium.attacks.dpsgd_game import play_dpsgd
    from collegium.attacks.game import play_game
    from collegium.attacks.mechanism import mechanism_from
    from collegium.attacks.one_run import OneRunSettings, audit_run
    from collegium.cli.audit_tables import (
        as_record,
        game_panels,
        game_table,
        one_run_panels,
        one_run_table,
    )
    from collegium.cli.levels import parse_levels
    from collegium.cli.progress import NoteObserver
    from collegium.pate.voting.affordable import refuse_unaffordable
    from collegium.pate.voting.aggregators import aggregator_from
    from collegium.pate.voting.release import check_release
    from collegium.personalisation import as_personalisation
    from collegium.report.audit_plots import audit_figure
    from collegium.study.config import read_config
    from collegium.study.folder import StudyFolder
    from collegium.study.methods.dpsgd import DPSGDStudyPlan
    from collegium.study.methods.votes import VotesPlan
    from collegium.study.planned_settings import settled_method
    from collegium.study.runner import plan_study

    if out_folder is not None:
        _open(out_folder)
    config, path = None, Path(what)
    if what == "mechanism":
        groups, sizes = parse_levels(level or LEVELS, delta)
        plan = as_personalisation(personalisation, rule).plan(groups, sizes, teachers)
        mechanism = aggregator_from(
            aggregator,
            sigma=sigma,
            sigma_threshold=sigma_threshold,
            threshold=threshold,
            gamma=gamma,
        ).resolved(teachers)
        check_release(release, mechanism, "worst-case")
        refuse_unaffordable(mechanism, plan, "worst-case")
        findings: Any = play_game(
            mechanism_from(plan, mechanism, queries, release=release),
            runs=runs,
            queries=queries,
            confidence=confidence,
            observe=observe,
            progress=_progress,
        )
        title = (
            f"{mechanism.name}, {plan.personalisation}: {runs:,} jobs of {queries} queries a side"
        )
        table, panels, about = game_table(findings, title), game_panels(findings), {"runs": runs}
        folder, arrangement = out_folder, Arrangement(assignment="elsewhere")
    else:
        config = with_data_dir(read_config(path), data_dir)
        config = settled_method(config, StudyFolder(path.with_suffix("")), NoteObserver())
        if config.only_asks:
            raise InputError(
                "an audit plays against votes or steps, and this study asks questions (method.kind is "
                "'statistics'): audit a study that learns"
            )
        folder = out_folder or path.with_name(f"{path.stem}-audit")
        _open(folder)
    if config is not None and config.is_direct:
        direct = plan_study(config).plan
        assert isinstance(direct, DPSGDStudyPlan)
        dpsgd = direct.run
        arrangement = dpsgd.arrangement
        findings = play_dpsgd(dpsgd, runs=runs, confidence=confidence, progress=_progress)
        title = f"{dpsgd.plan.steps:,} steps of {path.name}: {runs:,} runs on each side"
        table, panels, about = game_table(findings, title), game_panels(findings), {"runs": runs}
    elif config is not None:
        settings = OneRunSettings(canaries, copies, guess_share, confidence, observe or "noisy")
        assert folder is not None
        (folder / "DO-NOT-RELEASE.txt").write_text(DO_NOT_RELEASE, encoding="utf-8")
        votes = plan_study(config, on_ledger=False).plan
        assert isinstance(votes, VotesPlan)
        planned = votes.run
        arrangement = planned.arrangement
        findings = audit_run(planned, settings, stage=lambda name: err.print(f"{name} …"))
        title = f"one run of {path.name} with {sum(f.guesses.canaries for f in findings)} canaries"
        table, panels, about = one_run_table(findings, title), one_run_panels(findings), {}
    holds = all(finding.holds for finding in findings)
    result = {
        "audited": title,
        "confidence": confidence,
        "neighbours": arrangement.sentence,
        "holds": holds,
        **about,
        "groups": {finding.group: as_record(finding) for finding in findings},
    }
    if folder is not None:
        figure = audit_figure(panels, f"{title}; confidence {confidence:g}")
        text = json.dumps(result, indent=2, ensure_ascii=False, default=str)
        write_named(folder / "audit.json", f"{text}\n".encode())
        for suffix in ("png", "svg"):
            figure.savefig(folder / f"audit.{suffix}", dpi=160)
    if as_json:
        print_json(result)
    else:
        out.print(table)
        if folder is not None:
            out.print(f"Figures: {folder}/audit.png, {folder}/audit.svg", soft_wrap=True)
        verdict = "every lower bound is below its claim" if holds else "A CLAIM IS REFUTED"
        out.print(f"At confidence {confidence:g}: {verdict}.")
        silent = [finding.group for finding in findings if finding.lower_epsilon <= 0]
        if silent:
            out.print(
                f"No attack on ε succeeded for {', '.join(silent)}: that proves nothing; more --queries and "
                "--runs sharpen it."
            )
    if not holds:
        raise typer.Exit(1)


def _open(folder: Path) -> None:
    try:
        for suffix in ("json", "png", "svg"):
            refuse_taken(folder / f"audit.{suffix}")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made ({error.strerror})") from None


def _progress(done: int, total: int) -> None:
    if err.is_terminal:
        err.print(f"{done:,} of {total:,} jobs", end="\r")
