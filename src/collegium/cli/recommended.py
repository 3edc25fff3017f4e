"""What `collegium plan` shows of a choice: settings and reasons, what to expect, what consent is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from collegium.cli.console import err, out
from collegium.errors import InputError

if TYPE_CHECKING:
    from collegium.planner.expected import Expected
    from collegium.planner.recommend import Recommendation


def show_choice(found: Recommendation) -> None:
    """Print what was chosen, why, and what to expect."""
    from collegium.report.choice import chosen_from, expectations, figures, notes, settings, verdict

    out.print(chosen_from(found), style="bold", soft_wrap=True)
    for key, value, why in settings(found):
        out.print(
            f"  {key} = {value}" + (f"  ({why})" if why else ""), soft_wrap=True, highlight=False
        )
    for line in expectations(found):
        out.print(line, soft_wrap=True)
    for line in verdict(found):
        out.print(line, style="bold yellow", soft_wrap=True)
    for line in figures(found, takes_here(found)):
        out.print(line, soft_wrap=True)
    for line in notes(found):
        err.print(line, soft_wrap=True)
    out.print()


def takes_here(found: Recommendation) -> float:
    """How many GB a run takes: reading the same files has taken memory, as it will then."""
    from collegium.dpsgd.footprint import GIGABYTE, peak_bytes

    return max(found.gigabytes, peak_bytes() / GIGABYTE)


def show_what_if(levels: Mapping[str, float], now: Expected, then: Expected) -> None:
    """Print what other levels would give."""
    for line in what_if_lines(levels, now, then):
        out.print(line, soft_wrap=True)
    out.print()


def what_if_lines(levels: Mapping[str, float], now: Expected, then: Expected) -> list[str]:
    """Say what other levels would give."""
    said = ", ".join(f"{name} = {epsilon:g}" for name, epsilon in levels.items())
    lines = [f"With {said}: {then.in_words()}.", f"As it is: {now.in_words()}."]
    chance = (now.high - now.low) / 4
    if abs(now.middle - then.middle) < chance:
        lines.append(
            f"Between two rehearsals {100 * chance:.1f} points are chance: this says no more."
        )
    return lines


def parse_what_if(given: list[str]) -> dict[str, float]:
    """Read LEVEL=EPSILON pairs."""
    levels: dict[str, float] = {}
    for pair in given:
        name, found, number = pair.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            found = ""
        if not found or not name.strip() or not value > 0:
            raise InputError(
                f"--what-if takes LEVEL=EPSILON with a positive number, such as high=1.5; got {pair!r}"
            )
        levels[name.strip()] = value
    return levels
