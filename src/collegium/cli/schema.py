"""The schema commands: what is publicly known of a private table, drafted from public records, and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collegium.cli.console import err, hush, out, print_json
from collegium.cli.options import PATH_OPTION, Quiet

if TYPE_CHECKING:
    from rich.table import Table

    from collegium.data.schema import Schema

app = typer.Typer(
    help="Public schema of a private table: bounds, categories, known statistics.",
    no_args_is_help=True,
)


@app.command()
def init(
    public: Annotated[
        str,
        typer.Argument(
            help="PUBLIC records (.csv, .csv.gz, .parquet, or a table in a database): the draft shows what "
            "is in them.",
            metavar="PUBLIC",
            show_default=False,
        ),
    ],
    out_file: Annotated[Path, typer.Option("--out", help="File to write.", **PATH_OPTION)] = Path(
        "schema.toml"
    ),
    separator: Annotated[
        str | None,
        typer.Option(help="What stands between the cells of a CSV file.", metavar="CHARACTER"),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(
            help="What stands before decimals in a CSV file. Default: what its numbers show.",
            metavar="CHARACTER",
        ),
    ] = None,
    dates: Annotated[
        str | None,
        typer.Option(
            help="How dates are written, where the records leave open which is the day and which the month: "
            "31/12/2024 or 12/31/2024.",
            metavar="EXAMPLE",
        ),
    ] = None,
    rows_per_person: Annotated[
        int,
        typer.Option(
            help="What counts count. 1: people, each of whom counts once, however many rows they have. "
            "More: rows (visits, payments), at most so many of each person, with as much more noise.",
            min=1,
            metavar="NUMBER",
        ),
    ] = 1,
    quiet: Quiet = False,
) -> None:
    """Draft a schema from public records: bounds rounded outwards, categories, means and shares.

    Never give it private records, because everybody can read a schema. Beside each column it says what to
    check.

    Example: collegium schema init public.csv --out schema.toml
    """
    from collegium.checks import check_choice, check_separator
    from collegium.cli.outputs import refuse_taken, write_named
    from collegium.data.schema import Schema, what_is_counted

    hush(quiet)
    check_separator(separator, "--separator")
    if decimal is not None:
        check_choice("decimal", decimal, (".", ","))
    refuse_taken(out_file)
    schema = Schema.from_public(
        public,
        separator=separator,
        decimal=decimal,
        dates=dates,
        rows_per_owner=rows_per_person,
    )
    write_named(out_file, schema.toml().encode())
    out.print(_table(schema))
    out.print(what_is_counted(schema.rows_per_owner), soft_wrap=True)
    err.print(
        "A schema is public: check that none of these records were private.",
        soft_wrap=True,
    )
    out.insist(
        f"Wrote {out_file}: check its bounds and categories before you ask about private rows.",
        soft_wrap=True,
    )


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A schema (TOML).", metavar="FILE")] = Path(
        "schema.toml"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show a schema, and check it.

    Example: collegium schema show schema.toml
    """
    from collegium.data.schema import Schema, what_is_counted

    schema = Schema.read(file)
    if as_json:
        columns = {name: column.said() for name, column in schema.items()}
        print_json(
            {"digest": schema.digest, "rows_per_owner": schema.rows_per_owner, "columns": columns}
        )
        return
    out.print(_table(schema))
    counted = what_is_counted(schema.rows_per_owner)
    out.print(f"{counted} Digest: {schema.digest[:16]}…", soft_wrap=True)


def _table(schema: Schema) -> Table:
    """Tabulate the columns of a schema."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from collegium.checks import listed
    from collegium.data.schema_column import DATE, NUMBER, WHOLE, plain
    from collegium.plain_text import among_others

    table = Table(title="What is publicly known", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("column", "kind", "values", "known"):
        table.add_column(heading)
    for name, column in schema.items():
        values = listed([among_others(one) for one in column.categories], most=6) or "–"
        if column.kind in (NUMBER, WHOLE, DATE):
            values = f"{column.write(column.lower)} to {column.write(column.upper)}"
            values += f", step {plain(column.step)}" if column.step else ""
            values += f", {len(column.keys):,} bins" if column.bins else ""
        known = [
            f"{what} {plain(value)}"
            for what, value in (("mean", column.mean), ("sd", column.sd))
            if value is not None
        ]
        known += ["shares"] * bool(column.shares) + ["never missing"] * (not column.missing)
        if column.readable is not None:
            known.append(f"{100 * column.readable:.0f} % readable")
        table.add_row(name, column.kind, values, ", ".join(known) or "–")
    return table
