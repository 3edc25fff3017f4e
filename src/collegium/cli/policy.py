"""The policy command: what privacy levels mean for the people who are to choose one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from collegium.cli.console import out
from collegium.cli.options import PATH_OPTION, PageLanguage
from collegium.errors import InputError

app = typer.Typer(
    help="Privacy levels, and what each of them means for people.", no_args_is_help=True
)


@app.command()
def explain(
    file: Annotated[
        Path,
        typer.Argument(
            help="TOML file: a study's, or one with levels and delta alone.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page instead of text.", **PATH_OPTION)
    ] = None,
    promise: Annotated[
        str | None,
        typer.Option(
            help="What the ledger promises: gaussian, or pure (`collegium ledger init`). Default: what "
            "that of the study does, and without one gaussian."
        ),
    ] = None,
    language: PageLanguage = "en",
) -> None:
    """Explain every level in the words of a receipt: text for a consent form.

    It is for people whose releases are all entered in one ledger.

    Example: collegium policy explain policy.toml --html levels.html --language fr
    """
    from collegium.accounting.promises import Promise
    from collegium.checks import check_choice
    from collegium.cli.outputs import refuse_taken, write_named
    from collegium.ledger.limits import PROMISES
    from collegium.report.languages import Language
    from collegium.report.policy_page import explain as explained
    from collegium.study.policy_file import read_policy

    spoken = Language(language)
    if html is not None:
        refuse_taken(html)
    stated = read_policy(file)
    if promise is None:
        promise = stated.promise or Promise.GAUSSIAN
    check_choice("--promise", promise, PROMISES)
    if stated.promise not in (None, promise):
        raise InputError(
            f"--promise {promise} was given, and the study's ledger promises {stated.promise}: leave it out"
        )
    page = explained(stated.policy, stated.arrangement, Promise(promise), spoken)
    if html is None:
        for line in page.as_text().splitlines():
            out.print(line, soft_wrap=True)
        return
    write_named(html, page.as_html().encode())
    out.print(f"Wrote {html}.", soft_wrap=True)
