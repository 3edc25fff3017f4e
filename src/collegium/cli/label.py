"""The label command: bring your own votes, get the private aggregation only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from collegium.cli.console import hush
from collegium.cli.options import ON_LEDGER, PATH_OPTION, NoiseSeed, Quiet, complete_study
from collegium.cli.outputs import refuse_among_a_studys_files

_MOST_CLASSES = 10_000  # as in data/tables.py, which is slow to import


def label(
    votes: Annotated[
        Path,
        typer.Option(
            help="Votes (.npy or .csv without header): one row per query; one column per teacher "
            "(class numbers), or one per class (counts).",
            show_default=False,
        ),
    ],
    budgets: Annotated[
        Path,
        typer.Option(
            help="CSV with a header: `epsilon`, optionally `delta` and `group`. One row per teacher, or "
            "one row for all.",
            show_default=False,
        ),
    ],
    out_folder: Annotated[
        Path,
        typer.Option(
            "--out", help="Folder for vault/ and release/.", show_default=False, **PATH_OPTION
        ),
    ],
    settings: Annotated[
        Path | None,
        typer.Option(
            help="How votes are counted and accounted: a TOML file with a study's sections aggregation, "
            "personalisation, privacy, study (its seed) and ledger.",
            autocompletion=complete_study,
        ),
    ] = None,
    votes_are: Annotated[
        str, typer.Option(help="predictions, counts, or auto where there is no doubt.")
    ] = "auto",
    classes: Annotated[
        int | None,
        typer.Option(help="Number of classes. Needed for predictions.", max=_MOST_CLASSES),
    ] = None,
    aggregator: Annotated[
        str | None,
        typer.Option(
            help="lnmax, gnmax, confident, interactive, pfmax or expmax. Default: confident."
        ),
    ] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Noise of the answer, for the nominal teachers.")
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(help="interactive: features of the queries (.npy or .csv), for the student."),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(
            help="Whose records the teachers learnt from: a table with columns owner and group. A ledger "
            "then keeps one account per person over all releases.",
            rich_help_panel=ON_LEDGER,
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="A file, postgresql://USER@HOST/DATABASE, or none. Default: COLLEGIUM_LEDGER, else "
            "one beside the table of people, named after it.",
            rich_help_panel=ON_LEDGER,
        ),
    ] = None,
    noise_seed: NoiseSeed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Quiet = False,
) -> None:
    """Aggregate votes of an ensemble of your own: any framework's predictions, only the privacy.

    Groups are taken from the budgets' `group` column, else teachers with equal budgets are one group.
    With upsampling, give one row per group: `group`, `epsilon`, `owners`, and `teachers_per_owner`. Without
    `owners`, what is protected is one teacher's data, not a person's.

    Example: collegium label --votes votes.npy --budgets budgets.csv --classes 10 --out labels/
    """
    from collegium.cli.blocks import show_result
    from collegium.cli.progress import watching
    from collegium.study.methods.votes.label_job import LabelFiles, label_job
    from collegium.study.methods.votes.label_settings import read_label_config
    from collegium.study.runner import run_job

    hush(quiet)
    refuse_among_a_studys_files(out_folder)
    config = read_label_config(
        settings,
        (
            ("--aggregator", "aggregation.aggregator", aggregator),
            ("--sigma", "aggregation.sigma", sigma),
            ("--noise-seed", "aggregation.noise", None if noise_seed is None else "seeded"),
            ("--noise-seed", "aggregation.noise_seed", noise_seed),
            ("--ledger", "ledger.url", ledger),
        ),
    )
    files = LabelFiles(votes, budgets, features, people)
    with watching(not as_json) as observer:
        job = label_job(files, config, votes_are, classes, ledger)
        result = run_job(job, out_folder, observer)
    show_result(result, as_json)
