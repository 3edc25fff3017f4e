"""What a recommendation says of itself: settings and reasons, what to expect, what consent is worth."""

from __future__ import annotations

from collegium.planner.recommend import Recommendation
from collegium.toml_files import toml_text


def chosen_from(found: Recommendation) -> str:
    """Say what was chosen."""
    return f"Chosen from public facts alone: {found.method}"


def settings(found: Recommendation) -> list[tuple[str, str, str]]:
    """List keys, values and reasons."""
    return [
        (f"{section}.{key}", toml_text(value), found.reasons.get(f"{section}.{key}", ""))
        for section, keys in found.sections.items()
        for key, value in keys.items()
    ]


def expectations(found: Recommendation) -> list[str]:
    """Say which score is expected, and what less of the budgets would buy."""
    lines = [f"Expected: {found.expected.in_words()}."]
    if found.share is not None and found.share.buys:
        bought = ", ".join(f"{part:.0%} {score:.3f}" for part, score in found.share.buys.items())
        lines.append(f"What a share of what people have left would buy, rehearsed: {bought}.")
    return lines


def verdict(found: Recommendation) -> list[str]:
    """Say that the model would be no better than one answer, if it would not."""
    said = found.verdict
    return [f"{said[:1].upper()}{said[1:]}."] if said else []


def figures(found: Recommendation) -> list[str]:
    """Say how long it takes, how others did, and what more consent is worth."""
    lines = []
    if found.answers is not None:
        lines.append(f"Answers: {found.answers:,}, one about every public record.")
    lines.append(
        f"A run takes about {found.minutes:.1f} minutes and {found.gigabytes:.1f} GB here."
    )
    if len(found.alternatives) > 1:
        tried = ", ".join(f"{name} {one.score:.3f}" for name, one in found.alternatives.items())
        lines.append(f"Rehearsed on the same stand-ins, to compare: {tried}.")
    for row in found.consent[:3]:
        gain = "" if row.gain is None else f", worth {100 * row.gain:+.1f} points"
        lines.append(
            f"If {row.group} ({row.people:,} people) granted ε = {row.instead:g} instead of {row.epsilon:g}: "
            f"{100 * (row.signal - 1):+.0f} % signal{gain}."
        )
    return lines


def notes(found: Recommendation) -> list[str]:
    """Say what should be known before anything is spent, but for the verdict."""
    return [f"Note: {line}" for line in found.notes if line != found.verdict]
