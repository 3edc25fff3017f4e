"""Tables about a synthetic table: what is learnt from it, how far it is off, for whom, and who is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collegium.attacks.membership import MembershipFinding
from collegium.evaluation.synthetic_learning import Estimate
from collegium.evaluation.synthetic_quality import (
    AREA,
    CONSTANT,
    PUBLIC,
    REAL,
    SYNTHETIC,
    ColumnShares,
    GroupTable,
    SyntheticQuality,
)
from collegium.report.numbers import count, share
from collegium.report.sections import Column, Table

_MOST_PAIRS = 8
NAMES = {
    SYNTHETIC: "Synthetic table",
    REAL: "Real records",
    PUBLIC: "Public rows alone",
    CONSTANT: "Constant",
}
_DASH = "—"
_ALARMS = (0.001, 0.01)


def distance_table(quality: SyntheticQuality) -> Table:
    """Tabulate how far marginals are off."""
    ways = quality.synthetic.distances
    names = {1: "Single columns", 2: "Pairs", 3: "Triples"}
    columns = [
        Column("Compared with held-out records", is_number=False),
        *(Column(names[one.ways]) for one in ways),
        Column("Association of pairs off by"),
    ]
    rows = [
        (
            NAMES[table.name],
            *(_with_largest(one.mean, one.largest) for one in table.distances),
            _DASH
            if table.association_mean is None
            else _with_largest(table.association_mean, table.association_largest),
        )
        for table in quality.tables
    ]
    floor = [
        _DASH
        if one.sampling_mean is None
        else _with_largest(one.sampling_mean, one.sampling_largest)
        for one in ways
    ]
    rows.insert(1, ("Sampling alone", *floor, _DASH))
    return Table(
        columns,
        rows,
        "Total variation: the largest difference in the probability of anything one could ask about these "
        "columns; mean over all (and the largest). Sampling alone: what as many real records would have, as "
        "no two samples are alike; less is not to be had. Constant: as many rows of the held-out records' "
        "columns, drawn each by itself, so that they have nothing to do with one another. Association: "
        "Cramér's V, from 0 to 1.",
        "How far the marginals are off",
    )


def group_table(quality: SyntheticQuality) -> Table:
    """Tabulate shares, scores, calibration and distances of each group."""
    tells = any(group.synthetic_share is not None for group in quality.groups)
    with_gap = quality.positive is not None
    columns = [
        Column(str(quality.by), is_number=False),
        Column("Held out"),
        *([Column("Share, synthetic")] if tells else []),
    ]
    for model in quality.models:
        columns.append(Column(f"{quality.measure}, {model}"))
        if with_gap:
            columns.append(Column(f"“{quality.positive}” too often by, {model}"))
    pairs = min(2, len(quality.synthetic.distances))
    columns += [
        Column("Pairs off by" if pairs == 2 else "Columns off by"),
        Column("Sampling alone"),
    ]
    rows = []
    for group in quality.groups:
        own = group.tables[0]
        row = [group.name, f"{share(group.share.value)} ({count(group.n)})"]
        if tells:
            row.append(share(group.synthetic_share))
        for score, gap in zip(own.scores, own.calibration_gaps, strict=True):
            row.append(_with_interval(score))
            if with_gap:
                row.append(_DASH if gap is None else f"{100 * gap:+.1f} %")
        rows.append((*row, *_distance_cells(own)))
    what = (
        "between a group's synthetic rows and its held-out records"
        if tells
        else "between the whole synthetic table and a group's held-out records: the table follows those to "
        "whom it is nearest"
    )
    gap_words = (
        f" “{quality.positive}” too often: the mean probability of it, less how often it is so, in the group."
        if with_gap
        else ""
    )
    return Table(
        columns,
        rows,
        f"Models learnt from the whole synthetic table and were tested on each group.{gap_words} Distances "
        f"are total variation, {what}. {_DASH}: too few records.",
        f"By {quality.by}",
    )


def membership_table(membership: Mapping[str, Sequence[MembershipFinding]]) -> Table:
    """Tabulate what attacks found, beside what the account allows."""
    columns = [Column("Attack, and level", is_number=False), Column("AUC"), Column("AUC allowed")]
    for alarms in _ALARMS:
        columns += [
            Column(f"Found at {100 * alarms:g} % false alarms"),
            Column(f"allowed at {100 * alarms:g} %"),
        ]
    columns.append(Column("Result"))
    rows = []
    for attack, findings in membership.items():
        for one in findings:
            row = [f"{attack}: {one.group}", _with_interval(one.auc), three_digits(one.most_auc)]
            found = {at.alarms: at for at in one.rates}
            for alarms in _ALARMS:
                at = found.get(alarms)
                row += [_DASH, _DASH] if at is None else [_found(at.found), share(at.most)]
            rows.append((*row, one.verdict))
    people = {(one.n_in, one.n_out) for findings in membership.values() for one in findings}
    least = min(people, key=sum)
    return Table(
        columns,
        rows,
        "Of those who took part, how many are found on average while so many of the others are accused, with "
        "95 % intervals, and what the account allows the best test there is. People asked about: at least "
        f"{count(least[0])} in and {count(least[1])} out in each row. {_DASH}: too few of them.",
        "Membership inference",
    )


def learnt_tables(quality: SyntheticQuality) -> list[Table]:
    """Tabulate scores of models by what they were trained on; nothing without a target."""
    if not quality.target:
        return []
    columns = [Column("Trained on", is_number=False), Column("Rows")]
    for model in quality.models:
        columns.append(Column(f"{quality.measure}, {model}"))
        if quality.measure == AREA:
            columns += [Column(f"Accuracy, {model}"), Column(f"Log loss saved, {model}")]
    saved_words = (
        " Log loss saved: of what always saying how frequent each class is would lose; below 0, "
        "probabilities mislead."
        if quality.measure == AREA
        else ""
    )
    rows = []
    for table in quality.tables:
        row = [NAMES[table.name], count(table.n)]
        for one in table.learnt:
            exact = table.name == CONSTANT
            row.append(three_digits(one.score.value) if exact else _with_interval(one.score))
            if quality.measure == AREA:
                row.append(share(None if one.accuracy is None else one.accuracy.value))
                saved = None if one.loss_saved is None else one.loss_saved.value
                row.append(share(0.0 if exact else saved))
        rows.append(tuple(row))
    return [
        Table(
            columns,
            rows,
            f"Tested on {count(quality.n_held_out)} held-out records; 95 % intervals are of these being a "
            f"sample. Models that learnt nothing stay below {three_digits(quality.chance)} 39 times in 40."
            f"{saved_words}",
            f"What is learnt about {quality.target}",
        )
    ]


def shares_table(columns: Sequence[ColumnShares]) -> Table:
    """Write the shares that a picture shows."""
    rows = [
        (f"{column.name}: {label}", share(held_out), share(synthetic))
        for column in columns
        for label, held_out, synthetic in zip(
            column.labels, column.held_out, column.synthetic, strict=True
        )
        if held_out or synthetic
    ]
    return Table(
        [Column("Cell", is_number=False), Column("Held out"), Column("Synthetic")],
        rows,
        "Cells that nobody is in are left out.",
        "Shares",
    )


def pairs_table(quality: SyntheticQuality) -> Table:
    """Name the pairs whose association differs most."""
    found = quality.associations
    pairs = []
    for row in range(len(found.names)):
        for column in range(row):
            real, made = found.held_out[row][column], found.synthetic[row][column]
            if real is not None:
                pairs.append((abs(real - (made or 0.0)), row, column, real, made))
    pairs.sort(key=lambda pair: (-pair[0], pair[1:3]))
    rows = [
        (
            f"{found.names[column]} and {found.names[row]}",
            three_digits(real),
            _DASH if made is None else three_digits(made),
        )
        for _, row, column, real, made in pairs[:_MOST_PAIRS]
    ]
    return Table(
        [Column("Pair", is_number=False), Column("Held out"), Column("Synthetic")],
        rows,
        f"Cramér's V. {_DASH}: one of the columns is one value throughout.",
        "Furthest off",
    )


def _distance_cells(table: GroupTable) -> tuple[str, str]:
    if not table.distances:
        return _DASH, _DASH
    far = table.distances[-1]
    return three_digits(far.mean), three_digits(far.sampling_mean)


def _found(one: Estimate) -> str:
    return f"{share(one.value)} ({100 * one.low:.1f} to {100 * one.high:.1f} %)"


def _with_largest(mean: float | None, largest: float | None) -> str:
    return f"{three_digits(mean)} (at most {three_digits(largest)})"


def _with_interval(one: Estimate | None) -> str:
    if one is None:
        return _DASH
    return f"{three_digits(one.value)} ({three_digits(one.low)} to {three_digits(one.high)})"


def three_digits(value: float | None) -> str:
    """Write a measure; a dash where there is none."""
    return _DASH if value is None else f"{value:.3f}"
