"""The ledger commands: who has granted and spent what, over all releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collegium.cli.console import out, print_json
from collegium.cli.options import PATH_OPTION
from collegium.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from collegium.ledger.ledger import Ledger

app = typer.Typer(
    help="One account per person over all releases: make a ledger, look at it, check it, change "
    "budgets.",
    no_args_is_help=True,
)

Place = Annotated[
    str,
    typer.Argument(
        help="A file, or postgresql://USER@HOST/DATABASE.", metavar="LEDGER", show_default=False
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key",
        help="The ledger's key file. Default: LEDGER.key, beside the ledger.",
        **PATH_OPTION,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def opened(place: str, key: Path | None) -> Ledger:
    """Open a ledger that is there."""
    from collegium.ledger.ledger import Ledger

    return Ledger(place, key)


@app.command()
def init(
    place: Place,
    key: KeyFile = None,
    delta_0_share: Annotated[
        float,
        typer.Option(
            help="Share of every δ that is set aside for mechanisms that need a δ₀ (training on "
            "samples). It cannot be changed later."
        ),
    ] = 0.01,
    promise: Annotated[
        str,
        typer.Option(
            help="What everybody is promised over all releases: gaussian (at ε = 1, nobody is right about "
            "a person more than 56 times in 100), or pure (Laplace noise only; at ε = 1, 74 times). It "
            "cannot be changed later."
        ),
    ] = "gaussian",
) -> None:
    """Make an empty ledger, and its key. Keep the key apart from the ledger's backups.

    Example: collegium ledger init people.ledger
    """
    from collegium.ledger.ledger import Ledger

    made = Ledger.create(place, key, delta_0_share, promise=promise)
    out.print(f"Made {made}. It knows nobody yet.", soft_wrap=True)


@app.command()
def show(place: Place, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Show what people granted, have spent and have remaining, and all releases. Changes nothing.

    Example: collegium ledger show people.ledger
    """
    from collegium.cli.ledger_tables import standings_table
    from collegium.ledger.export import reservation_as_json, standing_as_json
    from collegium.report.ledger_words import release_line

    ledger = opened(place, key)
    standings, releases = ledger.standings(), ledger.releases()
    reservations = [one for one, _, _ in releases if not one.is_settled]
    if as_json:
        print_json(
            {
                "ledger": ledger.id,
                "standings": [standing_as_json(one) for one in standings],
                "reservations": [reservation_as_json(one) for one in reservations],
                "releases": [
                    {**reservation_as_json(one), "takes": [least, most]}
                    for one, least, most in releases
                ],
            }
        )
        return
    if not standings:
        out.print("The ledger knows nobody yet.")
        return
    out.print(standings_table(standings))
    if releases:
        out.print("Releases, oldest first:")
    for one, least, most in releases:
        out.print(release_line(one, least, most), soft_wrap=True)
    if reservations:
        out.print(
            "What is reserved counts in full until the program that reserved it settles it: let that "
            "program go on, or run it again. If it is gone for good, use `collegium ledger settle`.",
            soft_wrap=True,
        )


@app.command()
def history(place: Place, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Show what happened, oldest first. Changes nothing.

    Example: collegium ledger history people.ledger
    """
    from collegium.report.ledger_words import what_happened

    entries = opened(place, key).history()
    if as_json:
        print_json(
            [{"number": one.number, "at": one.at, "kind": one.kind, **one.body} for one in entries]
        )
        return
    for one in entries:
        out.print(f"{one.number:>5}  {one.at}  {what_happened(one)}", soft_wrap=True)


@app.command()
def verify(place: Place, key: KeyFile = None) -> None:
    """Check every entry, and everybody's history. Changes nothing; exit code 2 if anything is wrong.

    Example: collegium ledger verify people.ledger
    """
    number = opened(place, key).verify()
    out.print(f"All {number:,} entries, and everybody's history, are as they were written.")


@app.command()
def export(place: Place, key: KeyFile = None) -> None:
    """Print everything as JSON: cohorts, releases, costs and events. A ledger holds no names.

    Example: collegium ledger export people.ledger > ledger.json
    """
    from collegium.ledger.export import as_json

    print_json(as_json(opened(place, key)))


@app.command()
def change(
    place: Place,
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV or Parquet file with a person and a level in each row.", show_default=False
        ),
    ],
    owner: Annotated[str, typer.Option(help="Column with people's names.", show_default=False)],
    level_column: Annotated[
        str, typer.Option("--level-column", help="Column with their levels.", show_default=False)
    ],
    level: Annotated[
        list[str],
        typer.Option(
            help="A level and its ε, as NAME=EPSILON; once for each level.", show_default=False
        ),
    ],
    delta: Annotated[float, typer.Option(help="δ of every level.")] = 1e-5,
    come_back: Annotated[
        bool, typer.Option("--come-back", help="People in the table who had left are back.")
    ] = False,
    key: KeyFile = None,
) -> None:
    """Enter the levels of people who changed their mind, or are new. Nobody leaves.

    A raised budget counts at once. A lowered one limits what comes; what was released stays released.

    Example: collegium ledger change people.ledger consent.csv --owner patient --level-column privacy
    --level high=1 --level low=3
    """
    from collegium.cli.levels import parse_policy
    from collegium.data.datasets.table_files import read_table

    policy = parse_policy(level, delta)
    rows = read_table(table, as_text=True)
    for column in (owner, level_column):
        require_column(rows, column, table)
    levels = policy.assign(rows[level_column], owners=rows[owner])
    done = opened(place, key).change(levels, come_back=come_back)
    out.print(
        f"{done['joined']:,} people joined, {done['raised']:,} raised their budgets, "
        f"{done['lowered']:,} lowered theirs."
    )
    if done["overdrawn"]:
        out.print(
            f"{done['overdrawn']:,} of them have spent more than they grant now: no further release "
            "will use their records, but what was released cannot be taken back.",
            soft_wrap=True,
        )


@app.command()
def levels(
    place: Place,
    table: Annotated[
        Path,
        typer.Argument(help="CSV or Parquet file with the rows of people.", show_default=False),
    ],
    owner: Annotated[str, typer.Option(help="Column with people's names.", show_default=False)],
    out_file: Annotated[
        Path, typer.Option("--out", help="File to write.", show_default=False, **PATH_OPTION)
    ],
    level_column: Annotated[
        str, typer.Option("--level-column", help="Where levels go; replaced if it is there.")
    ] = "privacy",
    key: KeyFile = None,
) -> None:
    """Write a table's rows with the level that each person has in the ledger now. Changes nothing.

    Rows of people whom the ledger does not know, and of those who have left, are left out.

    Example: collegium ledger levels people.ledger visits.csv --owner patient --out granted.csv
    """
    from collegium.cli.outputs import refuse_no_folder, refuse_taken, write_named
    from collegium.data.datasets.table_files import is_csv
    from collegium.study.level_column import granted_table

    refuse_taken(out_file)
    refuse_no_folder(out_file)
    ending = ".csv" if is_csv(table) else ".parquet"
    if not out_file.name.lower().endswith(ending):
        raise InputError(
            f"{out_file} becomes a table of the same kind as {table}: give a name that ends in {ending}"
        )
    content, told = granted_table(table, owner, level_column, opened(place, key))
    write_named(out_file, content, is_private=True)
    out.print(f"Wrote {out_file}: {told}.", soft_wrap=True)


@app.command()
def settle(
    place: Place,
    release: Annotated[
        str, typer.Argument(help="Id of the release, as `show` lists it.", show_default=False)
    ],
    reason: Annotated[
        str,
        typer.Option(
            help="How it is known that the program is gone, and who says so; kept in the history.",
            show_default=False,
        ),
    ],
    as_reserved: Annotated[
        bool, typer.Option("--as-reserved", help="Keep all that was reserved charged.")
    ] = False,
    nothing_was_drawn: Annotated[
        bool,
        typer.Option(
            "--nothing-was-drawn",
            help="Give all back. Only if the program never drew any noise, whether anybody saw it or not.",
        ),
    ] = False,
    key: KeyFile = None,
) -> None:
    """End a reservation whose program is gone for good. One that can go on settles by itself: run it again.

    If nobody knows what was released, keep all that was reserved charged, which is always safe. What was
    given back is charged after all if the program comes back and has drawn noise.

    Example: collegium ledger settle people.ledger count-2026 --as-reserved
    --reason "its folder was lost, says the data steward"
    """
    if as_reserved == nothing_was_drawn:
        raise InputError(
            "give one of --as-reserved (always safe) and --nothing-was-drawn (only if no noise was "
            "ever drawn)"
        )
    ended = opened(place, key).end(release, reason, nothing_was_drawn=nothing_was_drawn)
    out.print(
        f"{ended.name} ({ended.id}) is settled: "
        + (
            "all that was reserved is given back, because nothing was drawn."
            if nothing_was_drawn
            else "all that was reserved stays charged."
        ),
        soft_wrap=True,
    )


@app.command()
def forget(
    place: Place,
    owner: Annotated[str, typer.Argument(help="Name of the person.", show_default=False)],
    key: KeyFile = None,
) -> None:
    """Enter that a person has left, so that no further release uses their records.

    Files of records, and models trained on them, are not changed: for a study, use `collegium forget`.

    Example: collegium ledger forget people.ledger patient-17
    """
    from collegium.checks import shown

    ledger = opened(place, key)
    account = ledger.account_of(owner)
    if account is not None and account.standing.has_left:
        day = account.grants[-1].at[:10]
        out.print(f"This person has left already, on {day}: nothing was changed.")
        return
    if not ledger.forget(owner):
        raise InputError(
            f"the ledger {place} knows nobody of the name {shown(owner)}, so nothing was changed: check that "
            "it is spelt as in the records"
        )
    out.print(
        "No further release will use this person's records. What was spent stays in the ledger."
    )


def require_column(rows: pd.DataFrame, column: str, table: Path) -> None:
    """Refuse a table that lacks a column."""
    if column not in rows.columns:
        raise InputError(
            f"{table} has no column {column!r} in its first line: check how it is spelt there"
        )
