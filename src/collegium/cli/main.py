"""The command line: every command says in one line what is wrong, and loses nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import typer
from typer.main import get_command

from collegium.cli import (
    account,
    ask,
    audit,
    desk,
    forget,
    init,
    ledger,
    party,
    policy,
    predict,
    receipt,
    schema,
    statement,
    studies,
    synthesize,
    verify,
)
from collegium.cli import label as votes
from collegium.cli.console import err, hush, say, show_warnings
from collegium.cli.encoding import show_what_can_be_shown
from collegium.cli.interrupts import INTERRUPTED, Interrupts, said, say_if_interrupted
from collegium.errors import CollegiumError
from collegium.passwords import refuse_passwords

# The base of everything that can be wrong with options, which typer does not export.
_USAGE_ERROR: type[Any] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="collegium",
    help="Machine learning with individual privacy budgets.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

_START, _STUDY = "Start", "A study, from its TOML file to its release"
_OWN, _PEOPLE = "Votes and numbers of your own", "People, and what they were promised"
_CHECK = "Check and attack"
_ASK = "Questions to a table"
_SYNTHETIC = "Synthetic tables"
_TOGETHER = "Together with others"

_PANELS: dict[str, dict[str, Callable[..., None]]] = {
    _START: {"demo": studies.demo, "init": init.init},
    _STUDY: {
        "plan": studies.plan,
        "run": studies.run,
        "report": studies.report,
        "predict": predict.predict,
        "onnx": predict.onnx,
    },
    _ASK: {"ask": ask.ask},
    _SYNTHETIC: {"synthesize": synthesize.synthesize, "sample": synthesize.sample},
    _OWN: {"label": votes.label, "account": account.account},
    _PEOPLE: {
        "statement": statement.statement,
        "receipt": receipt.receipt,
        "forget": forget.forget,
        "desk": desk.desk,
    },
    _CHECK: {"verify": verify.verify, "audit": audit.audit},
}
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
app.add_typer(schema.app, name="schema", rich_help_panel=_ASK)
app.add_typer(policy.app, name="policy", rich_help_panel=_PEOPLE)
app.add_typer(ledger.app, name="ledger", rich_help_panel=_PEOPLE)
app.add_typer(party.app, name="party", rich_help_panel=_TOGETHER)


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
    run(app)


def script() -> None:
    """Run the command line as a process of its own: Ctrl-C while it ends disturbs nothing."""
    run(app, ends_process=True)


def run(commands: typer.Typer, ends_process: bool = False) -> NoReturn:
    """Run some commands, and end as :func:`main` says.

    ``ends_process``: whether the process ends with them.
    """
    show_what_can_be_shown()
    show_warnings()
    hush(False)
    say_if_interrupted(None)
    with Interrupts(ends_process) as interrupts:
        try:
            _run(commands, interrupts)
        except KeyboardInterrupt:  # it came while something else was dealt with
            _end_interrupted(interrupts)


def _run(commands: typer.Typer, interrupts: Interrupts) -> NoReturn:
    try:
        refuse_passwords(sys.argv[1:])
        code = _built(commands)(standalone_mode=False)
    except CollegiumError as error:
        _fail(str(error))
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        _fail(f"{error.strerror or error}{place}: nothing that was paid for is lost; run it again")
    except _USAGE_ERROR as error:
        wrong = error.format_message().strip()
        if not wrong:  # no command at all: the help has been shown
            sys.exit(2)
        _fail(f"{wrong} `collegium --help` and `collegium COMMAND --help` tell what is allowed")
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:
        _end_interrupted(interrupts)
    sys.exit(code or 0)


@cache
def _built(commands: typer.Typer) -> Any:
    """Build commands of their functions, once in a process that runs several."""
    return get_command(commands)


def _end_interrupted(interrupts: Interrupts) -> NoReturn:
    interrupts.ended()
    err.insist(said(), soft_wrap=True)
    # Python ends itself by the signal, whatever the exit status, where it came within `exec` of a text (as
    # dataclasses are made); another `exec` makes it forget.
    exec("")
    sys.exit(INTERRUPTED)


def _fail(message: str) -> NoReturn:
    say("error:", "red", message)
    sys.exit(2)
