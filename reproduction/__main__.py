"""``python -m reproduction``: the published tables and figures, run again."""

from __future__ import annotations

import typer

from collegium.cli.main import run
from reproduction.command import reproduce_command


def main() -> None:
    """Run the command line; exit with 2 and one line on bad input, with 130 after Ctrl-C."""
    commands = typer.Typer(
        name="reproduction",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    commands.command("reproduction")(reproduce_command)
    run(commands)


if __name__ == "__main__":
    main()
