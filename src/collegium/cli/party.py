"""The party commands: a key of one's own, the list of all parties, and what is in the folder they share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collegium.cli.console import hush, out, print_json
from collegium.cli.options import PATH_OPTION, Quiet
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.parties.members import Member
    from collegium.parties.shared_folder import Posted, ReleaseSeen

app = typer.Typer(
    help="Studies of several parties that show one another no record: keys, the list of parties, and what "
    "they have posted. `collegium run` runs such a study: its file has a section \\[parties].",
    no_args_is_help=True,
)


@app.command()
def key(
    file: Annotated[
        Path, typer.Argument(help="File to write.", metavar="FILE", show_default=False)
    ],
    quiet: Quiet = False,
) -> None:
    """Make this party's own key, and print the public one, which the others list.

    The file is for its owner's eyes only, and is never sent to anybody.

    Example: collegium party key own.key
    """
    from collegium.cli.outputs import refuse_no_folder, refuse_taken
    from collegium.parties.members import IdentityKey

    hush(quiet)
    refuse_taken(file)
    refuse_no_folder(file)
    made = IdentityKey.make(file)
    out.print(
        f"Wrote {file}: keep it, and show it to nobody. This is its public key, for the list of parties:",
        soft_wrap=True,
    )
    out.insist(made.public, soft_wrap=True)


@app.command()
def collective(
    file: Annotated[
        Path, typer.Argument(help="File to write.", metavar="FILE", show_default=False)
    ],
    member: Annotated[
        list[str],
        typer.Option(
            "--member",
            help="A party's name and public key; once for each party, in an order that all use.",
            metavar="NAME=KEY",
            show_default=False,
        ),
    ],
    drop_outs: Annotated[
        int,
        typer.Option(help="How many may stay away from a sum that is opened all the same.", min=0),
    ] = 0,
    colluders: Annotated[
        int,
        typer.Option(help="How many may put together all that they know, and see no more.", min=1),
    ] = 1,
    quiet: Quiet = False,
) -> None:
    """Write the list of all parties, of which each gets the same copy.

    Example: collegium party collective collective.toml --member "Hospital A=5f…" --member "Hospital B=09…"
    --member "Hospital C=c2…"
    """
    from collegium.cli.outputs import refuse_no_folder, write_named
    from collegium.parties.collective import Collective

    hush(quiet)
    refuse_no_folder(file)
    made = Collective([_member(one) for one in member], drop_outs, colluders)
    write_named(file, made.toml().encode())
    out.print(
        f"Wrote {file}: {len(made.members)} parties; give each the same copy, and let each compare the keys "
        "with the others, by telephone, say.",
        soft_wrap=True,
    )


def _member(given: str) -> Member:
    from collegium.parties.members import Member

    name, equals, public = given.rpartition("=")
    if not equals:
        raise InputError(
            f"--member {given!r} has no key: give NAME=KEY, with what `collegium party key` prints"
        )
    return Member(name.strip(), public.strip())


@app.command()
def show(
    folder: Annotated[
        Path,
        typer.Argument(
            help="The folder that the parties share.", metavar="FOLDER", show_default=False
        ),
    ],
    listed: Annotated[
        Path | None,
        typer.Option(
            "--collective",
            help="The list of parties: then they are named, and signatures are checked.",
            **PATH_OPTION,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show which releases there are, who has posted what, and for whom the others wait.

    All of it may be seen by anybody: it tells nothing of records. Ends with 1 if a file cannot be used, or
    parties got different sums.

    Example: collegium party show ../shared --collective collective.toml
    """
    from collegium.parties.collective import Collective
    from collegium.parties.shared_folder import releases_in

    members = () if listed is None else tuple(Collective.read(listed).members)
    found = releases_in(folder, members)
    names = {number: one.name for number, one in enumerate(members, 1)}
    if as_json:
        print_json({"releases": [_as_json(one, names) for one in found]})
    elif not found:
        out.print(f"Nothing was posted in {folder} yet.", soft_wrap=True)
    else:
        for one in found:
            _print(one, names)
    all_posted = [posted for one in found for posted in (one.begun, *one.sums)]
    if any(one.unusable or len(one.sums) > 1 for one in all_posted):
        raise typer.Exit(1)


def _print(release: ReleaseSeen, names: dict[int, str]) -> None:
    opened = sum(bool(one.took_part("opened")) for one in release.sums)
    out.print(
        f"{release.name}: {len(release.sums):,} sums begun, {opened:,} opened", soft_wrap=True
    )
    for what, round_ in (("told of their people", "census"), ("posted keys", "keys")):
        out.print(f"  {what}: {_named(release.begun.took_part(round_), names)}", soft_wrap=True)
    for last in release.sums[-1:]:
        for round_, numbers in last.rounds.items():
            said = f"  sum {last.query:,} ({last.purpose}), {round_}: {_named(numbers, names)}"
            out.print(said, soft_wrap=True)
    for one in (release.begun, *release.sums):
        for file, why in one.unusable.items():
            out.print(f"  {one.folder}/{file} {why}", style="bold red", soft_wrap=True)
        if len(one.sums) > 1:
            out.print(
                f"  {one.folder}: parties got different sums", style="bold red", soft_wrap=True
            )


def _named(numbers: Any, names: dict[int, str]) -> str:
    return ", ".join(names.get(number, f"party {number}") for number in numbers) or "nobody yet"


def _as_json(release: ReleaseSeen, names: dict[int, str]) -> dict[str, Any]:
    def told(one: Posted) -> dict[str, Any]:
        rounds = {
            round_: [names.get(number, str(number)) for number in numbers]
            for round_, numbers in one.rounds.items()
        }
        return {"folder": one.folder, "rounds": rounds, "unusable": one.unusable}

    sums = [
        {
            "query": one.query,
            "purpose": one.purpose,
            "attempt": one.attempt,
            **told(one),
            "is_opened": bool(one.took_part("opened")),
            "is_the_same": len(one.sums) <= 1,
        }
        for one in release.sums
    ]
    return {"name": release.name, "begun": told(release.begun), "sums": sums}
