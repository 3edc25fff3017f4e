"""The audit command: attack the mechanism, or a whole study, and hold the result against the claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from collegium.runs.observer import Observer

if TYPE_CHECKING:
    from collegium.report.audit import Audit
    from collegium.study.config import StudyConfig
    from collegium.study.methods.protocol import AuditSettings

LEVELS = ["high=1:540", "average=2:370", "low=3:90"]


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
        int | None,
        typer.Option(
            help="mechanism: labelling jobs on each side (default: 20000); study with dpsgd: play against "
            "its steps so often, instead of one run with canaries; with synthesis: how often "
            "counts are drawn.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[int, typer.Option(help="mechanism: queries of each job.")] = 8,
    canaries: Annotated[
        int | None,
        typer.Option(
            help="study: invented owners (with synthesis: people asked about). Default: 500 of each level; "
            "with votes, as many as answers can be afforded."
        ),
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

    A study of votes, of direct training or of statistics is run once with canaries, invented people of each
    level; the noisy counts of a synthetic table are drawn several times, with some people blank.

    Exits with 1 if a lower bound is above a claim. Needs no data for a mechanism. An audit of a study
    is never a release: keep its folder to yourself.

    Example: collegium audit mechanism --aggregator confident --personalisation weighting --out audit/

    Example: collegium audit study.toml
    """
    from collegium.accounting.neighbours import Arrangement
    from collegium.attacks.game import play_game
    from collegium.attacks.mechanism import mechanism_from
    from collegium.cli.blocks import show
    from collegium.cli.levels import parse_levels
    from collegium.pate.voting.affordable import refuse_unaffordable
    from collegium.pate.voting.aggregators import aggregator_from
    from collegium.pate.voting.release import check_release
    from collegium.personalisation import as_personalisation
    from collegium.report.audit import Audit
    from collegium.study.methods.protocol import AuditSettings

    folder = out_folder
    if folder is not None:
        _open(folder)
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
        jobs = 20_000 if runs is None else runs
        findings = play_game(
            mechanism_from(plan, mechanism, queries, release=release),
            runs=jobs,
            queries=queries,
            confidence=confidence,
            observe=observe,
            progress=_progress,
        )
        title = (
            f"{mechanism.name}, {plan.personalisation}: {jobs:,} jobs of {queries} queries a side"
        )
        arrangement = Arrangement(assignment="elsewhere")
        found = Audit(title, confidence, arrangement, findings, {"runs": jobs})
    else:
        path = Path(what)
        folder = folder or path.with_name(f"{path.stem}-audit")
        config = _config_of(path, data_dir)
        how = (confidence, runs, canaries, copies, guess_share, observe)
        found = _of_study(folder, AuditSettings(config, path.name, *how))
    result = found.to_json()
    if folder is not None:
        if found.do_not_release:
            (folder / "DO-NOT-RELEASE.txt").write_text(found.do_not_release, encoding="utf-8")
        figure = found.figure()
        text = json.dumps(result, indent=2, ensure_ascii=False, default=str)
        write_named(folder / "audit.json", f"{text}\n".encode())
        for suffix in ("png", "svg"):
            figure.savefig(folder / f"audit.{suffix}", dpi=160)
    if as_json:
        print_json(result)
    else:
        show([found.table()])
        if folder is not None:
            out.print(f"Figures: {folder}/audit.png, {folder}/audit.svg", soft_wrap=True)
        verdict = "every lower bound is below its claim" if found.holds else "A CLAIM IS REFUTED"
        out.print(f"At confidence {confidence:g}: {verdict}.")
        silent = [finding.group for finding in found.findings if finding.lower_epsilon <= 0]
        if silent:
            out.print(
                f"No attack on ε succeeded for {', '.join(silent)}: that proves nothing; more --canaries, "
                "--queries or --runs sharpen it."
            )
    if not found.holds:
        raise typer.Exit(1)


def _config_of(path: Path, data_dir: Path | None) -> StudyConfig:
    from collegium.cli.progress import NoteObserver
    from collegium.study.config import read_config
    from collegium.study.folder import StudyFolder
    from collegium.study.planned_settings import settled_method

    config = with_data_dir(read_config(path), data_dir)
    if config.parties.collective is not None:
        raise InputError(
            f"{path} is a study of several parties, and an audit runs it many times on one table: remove "
            "[parties] from a copy, and audit that"
        )
    return settled_method(config, StudyFolder(path.with_suffix("")), NoteObserver())


def _of_study(folder: Path, settings: AuditSettings) -> Audit:
    from collegium.study.methods.protocol import method_of
    from collegium.study.runner import plan_study

    def planned(on_ledger: bool) -> Any:
        _open(folder)  # not before: an attack may not be known
        return plan_study(settings.config, on_ledger=on_ledger).plan

    return method_of(settings.config).audit(planned, settings, _Auditing())


class _Auditing(Observer):
    """Tells how an audit gets on, on the standard error."""

    def stage(self, name: str, total: int | None = None) -> None:
        err.print(f"{name} …")

    def advanced(self, done: int, total: int | None = None) -> None:
        _progress(done, total or 0)


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
