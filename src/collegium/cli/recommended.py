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
    from collegium.dpsgd.footprint import GIGABYTE, peak_bytes
    from collegium.toml_files import toml_text

    out.print(f"Chosen from public facts alone: {found.method}", style="bold", soft_wrap=True)
    for section, keys in found.sections.items():
        for key, value in keys.items():
            why = found.reasons.get(f"{section}.{key}", "")
            out.print(
                f"  {section}.{key} = {toml_text(value)}" + (f"  ({why})" if why else ""),
                soft_wrap=True,
                highlight=False,
            )
    out.print(f"Expected: {found.expected.in_words()}.", soft_wrap=True)
    if found.share is not None and found.share.buys:
        bought = ", ".join(f"{part:.0%} {score:.3f}" for part, score in found.share.buys.items())
        out.print(
            f"What a share of what people have left would buy, rehearsed: {bought}.", soft_wrap=True
        )
    verdict = found.verdict
    if verdict:
        out.print(f"{verdict[:1].upper()}{verdict[1:]}.", style="bold yellow", soft_wrap=True)
    if found.answers is not None:
        out.print(f"Answers: {found.answers:,}, one about every public record.")
    # Reading the same files has taken memory, as it will in a run.
    size = max(found.gigabytes, peak_bytes() / GIGABYTE)
    out.print(f"A run takes about {found.minutes:.1f} minutes and {size:.1f} GB here.")
    if len(found.alternatives) > 1:
        tried = ", ".join(f"{name} {one.score:.3f}" for name, one in found.alternatives.items())
        out.print(f"Rehearsed on the same stand-ins, to compare: {tried}.", soft_wrap=True)
    for row in found.consent[:3]:
        gain = "" if row.gain is None else f", worth {100 * row.gain:+.1f} points"
        out.print(
            f"If {row.group} ({row.people:,} people) granted ε = {row.instead:g} instead of {row.epsilon:g}: "
            f"{100 * (row.signal - 1):+.0f} % signal{gain}.",
            soft_wrap=True,
        )
    for line in found.notes:
        if line == verdict:
            continue
        err.print(f"Note: {line}", soft_wrap=True)
    out.print()


def show_what_if(levels: Mapping[str, float], now: Expected, then: Expected) -> None:
    """Print what other levels would give."""
    said = ", ".join(f"{name} = {epsilon:g}" for name, epsilon in levels.items())
    out.print(f"With {said}: {then.in_words()}.", soft_wrap=True)
    out.print(f"As it is: {now.in_words()}.", soft_wrap=True)
    chance = (now.high - now.low) / 4
    if abs(now.middle - then.middle) < chance:
        out.print(
            f"Between two rehearsals {100 * chance:.1f} points are chance: this says no more."
        )
    out.print()


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
