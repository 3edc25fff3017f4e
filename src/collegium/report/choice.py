"""What a recommendation says of itself: settings and reasons, what to expect, what consent is worth."""

from __future__ import annotations

from collections.abc import Mapping

from collegium.planner.expected import score_in_words
from collegium.planner.recommend import Recommendation
from collegium.toml_files import toml_text

_WORTH_SAYING = 0.0005  # rounds to a tenth of a point


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
        lines.append(
            "Rehearsed with a share of what people have left: "
            f"{'; '.join(_bought(found.share.buys, found.expected.measure))}."
        )
    return lines


def _bought(buys: Mapping[float, float], measure: str) -> list[str]:
    """Say what each share buys; shares in a row that buy the same are said at once."""
    runs: list[tuple[list[float], str]] = []
    for part, score in buys.items():
        shown = score_in_words(score, measure)
        if runs and runs[-1][1] == shown:
            runs[-1][0].append(part)
        else:
            runs.append(([part], shown))
    return [
        f"{' to '.join(f'{100 * part:.0f} %' for part in dict.fromkeys((parts[0], parts[-1])))}: {shown}"
        for parts, shown in runs
    ]


def verdict(found: Recommendation) -> list[str]:
    """Say that the model would be no better than one answer, if it would not."""
    said = found.verdict
    return [f"{said[:1].upper()}{said[1:]}."] if said else []


def figures(found: Recommendation, gigabytes: float | None = None) -> list[str]:
    """Say how long it takes, how others did, and what more consent is worth.

    ``gigabytes``: that a run takes, where more is known than was predicted.
    """
    gigabytes = found.gigabytes if gigabytes is None else gigabytes
    lines = []
    if found.answers is not None:
        lines.append(f"Answers: {found.answers:,}, one about every public record.")
    takes = (
        f"{60 * found.minutes:.0f} seconds" if found.minutes < 1 else f"{found.minutes:.0f} minutes"
    )
    lines.append(f"A run takes about {takes} and {gigabytes:.1f} GB here.")
    if len(found.alternatives) > 1:
        measure = found.expected.measure
        tried = ", ".join(
            f"{name} {score_in_words(one.score, measure)}"
            for name, one in found.alternatives.items()
        )
        where = (
            " on clusters in place of classes, which says nothing of yours"
            if found.of_clusters
            else ""
        )
        lines.append(f"Ways to learn, rehearsed alike{where}: {tried}.")
    worth = [row for row in found.consent[:3] if row.gain is None or row.gain >= _WORTH_SAYING]
    if found.consent and not worth:
        lines.append("As far as a rehearsal can tell, larger budgets of one level would not help.")
    for row in worth:
        gain = "" if row.gain is None else f", worth {100 * row.gain:+.1f} points"
        lines.append(
            f"If {row.group} ({row.people:,} people) granted ε = {row.instead:.3g} instead of "
            f"{row.epsilon:.3g}: {100 * (row.signal - 1):+.0f} % signal{gain}."
        )
    return lines


def notes(found: Recommendation) -> list[str]:
    """Say what should be known before anything is spent, but for the verdict."""
    return [f"Note: {line}" for line in found.notes if line != found.verdict]
