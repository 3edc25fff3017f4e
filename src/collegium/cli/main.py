"""The command line: every command says in one line what is wrong, and loses nothing."""

from __future__ import annotations

import sys

import typer

from collegium.cli import account, studies, votes
from collegium.cli.console import err, show_warnings
from collegium.errors import CollegiumError

app = typer.Typer(
    name="collegium",
    help="Machine learning with individual privacy budgets.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

app.command("demo")(studies.demo)
app.command("init")(studies.init)
app.command("plan")(studies.plan)
app.command("run")(studies.run)
app.command("report")(studies.report)
app.command("label")(votes.label)
app.command("account")(account.account)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """Machine learning with individual privacy budgets."""
    if show:
        from collegium import __version__

        typer.echo(f"collegium {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; exit with 2 and one line on bad input, with 130 after Ctrl-C."""
    show_warnings()
    try:
        app()
    except CollegiumError as error:
        err.print(f"[red]error:[/red] {_one_line(error)}", soft_wrap=True, markup=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print(
            "interrupted: nothing that was paid for is lost; the same command goes on from here"
        )
        sys.exit(130)


def _one_line(error: Exception) -> str:
    from rich.markup import escape

    return escape(" ".join(str(error).split()))
