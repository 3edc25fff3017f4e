"""The reproduce command: published tables and figures again, their way and ours."""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from collegium.cli.console import err, out, print_json
from collegium.durable import check_folder
from collegium.errors import InputError
from collegium.study.sections import MOST_JOBS
from reproduction.cells import MET, Aim, Cell
from reproduction.fitting import check_models
from reproduction.laboratory import Laboratory, Options
from reproduction.readings import readings_named
from reproduction.records import DataNotThereError
from reproduction.table1 import Explained, explain_table1, explanation
from reproduction.targets import Result, keep, keep_explained, reproduce, titles

VARIANTS = ("none", "upsampling", "weighting", "vanishing")


def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE...",
            help="Tables and figures; all: everything. See --list.",
            show_default=False,
        ),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List what can be reproduced, and exit.")
    ] = False,
    reading: Annotated[str, typer.Option(help="published, sound or both.")] = "both",
    seeds: Annotated[
        int | None,
        typer.Option(help="Splits, each with ensembles of its own. Default: the source's.", min=1),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Votings of each ensemble. Default: the source's.", min=1)
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            help="Small stand-ins, seconds: tries the machinery, the numbers mean nothing."
        ),
    ] = False,
    teacher: Annotated[
        str | None, typer.Option(help="Kind of teachers instead of the reading's.")
    ] = None,
    student: Annotated[
        str | None, typer.Option(help="Kind of students instead of the reading's.")
    ] = None,
    variants: Annotated[
        str | None,
        typer.Option(
            help="Only these variants, with commas between: none, upsampling, weighting, vanishing."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option(help="paper-1: the arithmetic behind its labels.")
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder with data sets. Default: COLLEGIUM_DATA.", show_default=False),
    ] = None,
    work_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder for finished stages: a killed run goes on from there. Default: memory only.",
            show_default=False,
        ),
    ] = None,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for CSV files and plots.", show_default=False),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Worker processes; -1: all cores.")] = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Reproduce the published tables and figures: as published, and sound.

    Each cell shows the published number, ours, and the difference. Noise is seeded, so that results
    repeat. Data sets that are not in the data folder are named and left out; nothing is downloaded.

    Example: python -m reproduction thesis-6.4 --reading published --data-dir DATA --work-dir work/
    """
    if show_list:
        _print_list(as_json)
        return
    known = titles()
    wanted = list(known) if names == ["all"] else names or []
    if not wanted:
        raise InputError("name a table or figure to reproduce, or all; --list shows them")
    for name in wanted:
        if name not in known:
            raise InputError(f"there is no table or figure {name!r}: --list shows what there is")
    if explain and wanted != ["paper-1"]:
        raise InputError("--explain is about paper-1: give no other table")
    options = Options(
        seeds, runs, quick, teacher, student, _variants(variants), jobs, data_dir, work_dir
    )
    readings = readings_named(reading)
    check_models(wanted, options)
    _check_jobs(jobs)
    _check_folders(data_dir, {"--work-dir": work_dir, "--out": out_dir})
    laboratory = Laboratory(options, lambda text: err.print(text, soft_wrap=True))
    if explain:
        explained = explain_table1(laboratory)
        if out_dir:
            keep_explained(explained, out_dir, _command(), _settings(options), options)
        if as_json:
            print_json([asdict(one) for one in explained])
        else:
            _print_explained(explained)
        return
    collected: list[dict[str, Any]] = []
    for name in wanted:
        for how in readings:
            try:
                result = reproduce(name, laboratory, how)
            except DataNotThereError as error:
                err.print(f"{name}: skipped, {error}", soft_wrap=True)
                collected.append({"name": name, "reading": how.name, "skipped": str(error)})
                continue
            files = _kept(result, out_dir, options)
            if as_json:
                collected.append(_as_json(result, files))
            else:
                _print(result, quick, files)
    if as_json:
        print_json(collected)


def _kept(result: Result, folder: Path | None, options: Options) -> list[Path]:
    if folder is None:
        return []
    return keep(result, folder, _command(), _settings(options), options)


def _check_jobs(jobs: int) -> None:
    if not (jobs == -1 or 1 <= jobs <= MOST_JOBS):
        raise InputError(
            f"--jobs must lie between 1 and {MOST_JOBS:,}, or be -1 for all cores, got {jobs}"
        )


def _check_folders(data_dir: Path | None, written: dict[str, Path | None]) -> None:
    """Refuse, before anything is computed, folders that are not there or cannot be written into."""
    if data_dir is not None and not data_dir.is_dir():
        raise InputError(f"--data-dir {data_dir} is no folder: name the one with the data sets")
    for option, folder in written.items():
        try:
            if folder is not None:
                check_folder(folder)
        except OSError as error:
            reason = "it is a file" if folder and folder.is_file() else error.strerror
            raise InputError(
                f"{option} {folder} is no folder that can be written into ({reason}): name another; nothing "
                "has been computed yet"
            ) from None


def _variants(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    variants = tuple(word.strip() for word in text.split(","))
    for variant in variants:
        if variant not in VARIANTS:
            raise InputError(
                f"there is no variant {variant!r}: allowed are {', '.join(VARIANTS)}, with commas between"
            )
    return variants


def _print_list(as_json: bool) -> None:
    if as_json:
        print_json(titles())
        return
    table = Table(box=SIMPLE_HEAD)
    table.add_column("name")
    table.add_column("what")
    for name, title in titles().items():
        table.add_row(name, title)
    out.print(table)


def _print(result: Result, quick: bool, files: list[Path]) -> None:
    out.print(f"{result.name}: {result.title}", style="bold", soft_wrap=True)
    out.print(result.reading.words, soft_wrap=True)
    if quick:
        out.print("QUICK: small stand-ins; the numbers are not to be compared.")
    if result.points is None:
        aim = None if quick else result.aim
        out.print(_table(result.cells, aim))
        if aim is not None:
            verdict, words = aim.summary(result.cells)
            out.print(f"{verdict.upper()}: {words}", soft_wrap=True)
        out.print(_caption(result.cells), soft_wrap=True)
    else:
        out.print(f"{len(result.points):,} points")
    for path in files:
        out.print(f"written: {path}", soft_wrap=True)


def _table(cells: list[Cell], aim: Aim | None) -> Table:
    """One row for each cell; what all cells share is left out."""
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    named = {
        "data": [cell.dataset for cell in cells],
        "metric": [cell.metric.replace("_", " ") for cell in cells],
        "setup": [cell.setup for cell in cells],
        "higher ε": [cell.higher_budget for cell in cells],
        "share": [cell.ratio for cell in cells],
        "variant": [cell.variant for cell in cells],
    }
    shown = [name for name, values in named.items() if len(set(values)) > 1]
    for name in shown:
        table.add_column(name, overflow="fold")
    for name in ("published", "ours", "± sd", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    if aim is not None:
        table.add_column("aim", no_wrap=True)
    for number, cell in enumerate(cells):
        words = [named[name][number] for name in shown]
        table.add_row(*words, *_numbers(cell), *([aim.verdict(cell)] if aim else []))
    return table


def _caption(cells: list[Cell]) -> str:
    """What the cells have in common: seeds, votings, teachers."""
    seeds, values = max(c.seeds for c in cells), max(c.values for c in cells)
    teachers = [c.teacher_accuracy for c in cells if not math.isnan(c.teacher_accuracy)]
    words = f"{seeds} seed(s), {values} votings of each cell"
    if teachers:
        words += f"; one teacher is right for {min(teachers):.1f} to {max(teachers):.1f} % of test records"
    return words


def _numbers(cell: Cell) -> list[str]:
    relative = "" if math.isnan(cell.difference) else f"{cell.relative:+.1%}"
    shown = relative if cell.metric == "labels" else _number(cell.difference, "+")
    return [cell.published, _number(cell.ours), _number(cell.sd), shown]


def _number(value: float, sign: str = "") -> str:
    return "" if math.isnan(value) else f"{value:{sign}.2f}"


def _print_explained(explained: list[Explained]) -> None:
    setup = ""
    for one in explained:
        if one.setup != setup:
            setup = one.setup
            out.print(f"\n{setup}", style="bold")
            out.print(
                f"  no individual budgets: {one.baseline:.0f} labels (published {one.published_baseline:.0f})"
            )
        for line in explanation(one):
            out.print(f"  {line}", soft_wrap=True)


def _as_json(result: Result, files: list[Path]) -> dict[str, Any]:
    content: dict[str, Any] = {
        "name": result.name,
        "title": result.title,
        "reading": result.reading.name,
        "cells": [asdict(cell) | {"difference": cell.difference} for cell in result.cells],
        "files": [str(path) for path in files],
    }
    if result.points is not None:
        content["points"] = len(result.points)
    if result.aim is not None:
        verdict, words = result.aim.summary(result.cells)
        content["aim"] = {"met": verdict == MET, "words": words}
        verdicts = [result.aim.verdict(cell) for cell in result.cells]
        for cell, verdict in zip(content["cells"], verdicts, strict=True):
            cell["verdict"] = verdict
    return content


def _command() -> str:
    """The command as it was given, without the folders of this machine."""
    words, hidden = [], {"--data-dir": "DATA", "--work-dir": "WORK", "--out": "OUT"}
    given = iter(sys.argv[1:])
    for word in given:
        option, equals, _ = word.partition("=")
        if option in hidden:
            if not equals:
                next(given, None)
            words += [option, hidden[option]]
        else:
            words.append(word)
    return shlex.join(["python", "-m", "reproduction", *words])


def _settings(options: Options) -> list[str]:
    if options.quick:
        return ["QUICK: small stand-ins, one seed, two votings at most: the numbers mean nothing"]
    seeds = "the source's number of" if options.seeds is None else str(options.seeds)
    runs = "the source's number of" if options.runs is None else str(options.runs)
    return [f"{seeds} seeds (0, 1, …), {runs} votings of each ensemble; noise is seeded"]
