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
    help="One account per person, over all releases: make one, look at it, prove it, change minds.",
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
        "--key", help="File of its key; default: LEDGER.key, beside a file.", **PATH_OPTION
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
            help="Share of every δ that is set aside for mechanisms that need a δ₀ (sub-sampled training); "
            "it cannot be changed later."
        ),
    ] = 0.01,
) -> None:
    """Make a ledger that knows nobody yet, and its key. Keep the key apart from the ledger's backups.

    Example: collegium ledger init people.ledger
    """
    from collegium.ledger.ledger import Ledger

    made = Ledger.create(place, key, delta_0_share)
    out.print(f"Made {made}, which knows nobody yet.", soft_wrap=True)


@app.command()
def show(place: Place, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Tell how people stand: what they granted, spent and have left. Changes nothing.

    Example: collegium ledger show people.ledger
    """
    from collegium.cli.ledger_tables import open_reservation, standings_table
    from collegium.ledger.export import reservation_as_json, standing_as_json

    ledger = opened(place, key)
    standings, reservations = ledger.standings(), ledger.reservations()
    if as_json:
        print_json(
            {
                "ledger": ledger.id,
                "standings": [standing_as_json(one) for one in standings],
                "reservations": [reservation_as_json(one) for one in reservations],
            }
        )
        return
    if not standings:
        out.print("The ledger knows nobody yet.")
        return
    out.print(standings_table(standings))
    for one in reservations:
        out.print(open_reservation(one), soft_wrap=True)
    if reservations:
        out.print(
            "What is reserved counts in full until its program settles it: let it go on, or run it again. If "
            "it is gone for good: `collegium ledger settle`.",
            soft_wrap=True,
        )


@app.command()
def history(place: Place, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Tell what happened, oldest first. Changes nothing.

    Example: collegium ledger history people.ledger
    """
    from collegium.cli.ledger_tables import what_happened

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
    """Prove every entry, and who has which history. Changes nothing; exit code 2 if anything is wrong.

    Example: collegium ledger verify people.ledger
    """
    number = opened(place, key).verify()
    out.print(f"All {number:,} entries are as they were written, and so is everybody's history.")


@app.command()
def export(place: Place, key: KeyFile = None) -> None:
    """Print everything as JSON: cohorts, releases, costs and events. Names are not in a ledger.

    Example: collegium ledger export people.ledger > ledger.json
    """
    from collegium.ledger.export import as_json

    print_json(as_json(opened(place, key)))


@app.command()
def change(
    place: Place,
    table: Annotated[
        Path,
        typer.Argument(help="CSV or Parquet: an owner and a level each row.", show_default=False),
    ],
    owner: Annotated[str, typer.Option(help="Column of owners.", show_default=False)],
    level_column: Annotated[
        str, typer.Option("--level-column", help="Column of their levels.", show_default=False)
    ],
    level: Annotated[
        list[str],
        typer.Option(help="A level as NAME=EPSILON, once for each.", show_default=False),
    ],
    delta: Annotated[float, typer.Option(help="δ of every level.")] = 1e-5,
    come_back: Annotated[
        bool, typer.Option("--come-back", help="Who had left and is in the table is back.")
    ] = False,
    key: KeyFile = None,
) -> None:
    """Take over the levels of people who changed their mind. Who is new joins; nobody leaves.

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
        f"{done['joined']:,} joined, {done['raised']:,} raised and {done['lowered']:,} lowered theirs."
    )
    if done["overdrawn"]:
        out.print(
            f"{done['overdrawn']:,} have spent more than they grant now: nothing more will be released about "
            "them, and what was released cannot be taken back.",
            soft_wrap=True,
        )


@app.command()
def settle(
    place: Place,
    release: Annotated[
        str, typer.Argument(help="The release's id, as `show` names it.", show_default=False)
    ],
    reason: Annotated[
        str,
        typer.Option(
            help="How that is known, and who says so; it stands in the history.",
            show_default=False,
        ),
    ],
    as_reserved: Annotated[
        bool, typer.Option("--as-reserved", help="All that was reserved stays charged.")
    ] = False,
    nothing_was_drawn: Annotated[
        bool,
        typer.Option(
            "--nothing-was-drawn",
            help="Give all back: only if the program never drew any noise, seen by anybody or not.",
        ),
    ] = False,
    key: KeyFile = None,
) -> None:
    """End a reservation whose program is gone for good. One that can go on settles by itself: run it again.

    Where nobody knows what was drawn, all that was reserved may have been: as reserved, it stays charged,
    which is always safe. What was given back is charged after all if the program comes back and drew noise.

    Example: collegium ledger settle people.ledger count-2026 --as-reserved
    --reason "its folder was lost, says the data steward"
    """
    if as_reserved == nothing_was_drawn:
        raise InputError(
            "say what to charge: --as-reserved (always safe), or --nothing-was-drawn (only if no noise was "
            "ever drawn)"
        )
    ended = opened(place, key).end(release, reason, nothing_was_drawn=nothing_was_drawn)
    out.print(
        f"{ended.name} ({ended.id}) is settled: "
        + (
            "all that was reserved is given back, as nothing was drawn."
            if nothing_was_drawn
            else "all that was reserved stays charged."
        ),
        soft_wrap=True,
    )


@app.command()
def forget(
    place: Place,
    owner: Annotated[str, typer.Argument(help="Whose name.", show_default=False)],
    key: KeyFile = None,
) -> None:
    """Remember that somebody has left: no release may use that name any more.

    Records in files, and models that learnt from them, are not touched: `collegium forget` sees to a study.

    Example: collegium ledger forget people.ledger patient-17
    """
    known = opened(place, key).forget(owner)
    out.print(
        "Nothing more will be released about this person; what was spent is kept."
        if known
        else "The ledger knows nobody of that name: nothing was changed."
    )


def require_column(rows: pd.DataFrame, column: str, table: Path) -> None:
    """Refuse a table that lacks a column."""
    if column not in rows.columns:
        raise InputError(
            f"{table} has no column {column!r}: it has {', '.join(map(str, rows.columns))}"
        )
