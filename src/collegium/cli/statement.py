"""The statement command: what was promised and spent, for people, programs and a registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from collegium.cli.console import out, print_json, print_statement, warn_of
from collegium.cli.outputs import folder_of
from collegium.errors import InputError

FORMATS = ("text", "json", "registry")
_MOST_PICTURES = 4  # of more, the strictest and the most generous


def statement(
    folder: Annotated[
        Path, typer.Argument(help="A study's or label job's folder.", show_default=False)
    ],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="text; json: with μ, profile and events that other accountants can compute again; "
            "registry: a draft record of the Differential Privacy Deployments Registry.",
        ),
    ] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Say what a release promises and what it has spent. Holds nothing sensitive, changes nothing.

    Example: collegium statement study/ --format json > statement.json
    """
    from collegium.accounting.statement import cost_in_digits
    from collegium.plain_text import among_others
    from collegium.report.chances import Chances, key_in_letters
    from collegium.report.in_plain_words import key
    from collegium.study.registry import LEFT_EMPTY, record_of
    from collegium.study.statement_json import statement_and_terms

    if form not in FORMATS:
        raise InputError(f"--format {form!r} is unknown: allowed are {', '.join(FORMATS)}")
    said, terms = statement_and_terms(folder_of(folder))
    if as_json or form == "json":
        print_json(said)
        return
    if form == "registry":
        record = record_of(said, terms)
        warn_of(f"a draft: fill in what only you can tell ({'; '.join(LEFT_EMPTY)})")
        print_json(record)
        return
    print_statement(said["statement"])
    pictures: dict[int, list[str]] = {}
    for group in said["groups"]:
        pictures.setdefault(group["promised"]["right_of_100"], []).append(
            among_others(group["group"])
        )
    for right in sorted(
        {min(pictures), max(pictures)} if len(pictures) > _MOST_PICTURES else pictures
    ):
        out.print(f"• In a picture, {', '.join(pictures[right][:_MOST_PICTURES])}:", soft_wrap=True)
        for line in Chances(right).letters():
            out.print(line, soft_wrap=True)
    for line in key_in_letters(key()):
        out.print(line, soft_wrap=True)
    for group in said["groups"]:
        mu = [
            f"{cost_in_digits(group[what]['mu'])} {what}"
            for what in ("promised", "spent")
            if "mu" in group.get(what, {})
        ]
        if mu:
            out.print(
                f"• Gaussian DP of group {group['group']!r}: μ = {', '.join(mu)}.", soft_wrap=True
            )
    out.print(f"• {terms.released_in_words(said['released'], terms.unit)}", soft_wrap=True)
