"""What a list of events costs, by every composition theorem: shown, never spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.table import Table

from collegium.accounting.comparison import ComparedBound, compare
from collegium.accounting.event_words import event_of_words
from collegium.accounting.events import Composition, Event
from collegium.accounting.export import from_json
from collegium.cli.console import out, print_json
from collegium.errors import InputError


class _Owners(NamedTuple):
    """What was done to the owners of one group."""

    event: Event
    adjacency: str


def show_comparison(given: list[str], delta: float, group: int, as_json: bool) -> None:
    """Print all bounds on what events cost an owner together.

    ``given``: events in words; or one file of ``--export``: then for an owner of each of its groups.
    ``group``: how many people are protected together.
    """
    owners = _owners(given)
    bounds = {name: compare(one.event, delta, group=group) for name, one in owners.items()}
    if as_json:
        print_json(
            {
                "delta": delta,
                "group": group,
                "owners": {
                    name: {
                        "adjacency": owners[name].adjacency,
                        "bounds": [b.to_json() for b in rows],
                    }
                    for name, rows in bounds.items()
                },
            }
        )
        return
    for name, rows in bounds.items():
        out.print(_table(name if len(bounds) > 1 else "", rows))
        for one in rows:
            if one.epsilon is None:
                out.print(f"{one.name}: does not apply, {one.why_not}.", soft_wrap=True)
    whom = "person" if group == 1 else f"group of {group:,} people"
    adjacency = next(iter(owners.values())).adjacency
    out.print(
        f"ε per {whom} at δ = {delta:g}, of everything together; neighbouring data sets: {adjacency}. "
        "Adaptive: what may depend on earlier answers (fully: amounts, too). *: the tightest. →: what "
        "Collegium's own accounts charge, which hold whatever was chosen on the way. Nothing was spent.",
        soft_wrap=True,
    )


def _table(name: str, rows: tuple[ComparedBound, ...]) -> Table:
    table = Table(title=name or None, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("", "bound", "ε", "adaptive", "theorem"):
        table.add_column(column, justify="right" if column == "ε" else "left")
    for one in rows:
        if one.epsilon is not None:
            marks = "*" * one.tightest + "→" * one.relied_on
            table.add_row(marks, one.name, f"{one.epsilon:.6f}", one.adaptive, one.theorem)
    return table


def _owners(given: list[str]) -> dict[str, _Owners]:
    files = [one for one in given if one.lower().endswith(".json")]
    if not given or (files and len(given) > 1):
        raise InputError(
            "--compare needs events, such as '100 x laplace(0.1)' 'gaussian(40)', or one JSON file of "
            "`collegium account --export`"
        )
    if files:
        return _exported(Path(files[0]))
    events = Composition([event_of_words(one) for one in given])
    return {"everybody": _Owners(events, "those for which the noise is stated")}


def _exported(path: Path) -> dict[str, _Owners]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(
            f"{path} is no JSON: give what `collegium account --export` wrote"
        ) from None
    uses = {name: [one for one in some if one.count] for name, some in from_json(content).items()}
    paid = {name: some for name, some in uses.items() if some}
    if not paid:
        raise InputError(f"{path}: nothing was charged yet, so there is nothing to compare")
    return {
        name: _Owners(
            Composition([one.event for one in some], [one.count for one in some]),
            str(content["adjacency"]),
        )
        for name, some in paid.items()
    }
