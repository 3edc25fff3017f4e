"""A question as a frozen value, checked against the public schema."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from collegium.checks import check_number, listed, nearest, shown
from collegium.data.schema import Column, Schema
from collegium.data.schema_column import DATE, FLAG, LEAST_READABLE, MOST_STEPS, TEXT, plain
from collegium.errors import InputError
from collegium.statistics.conditions import EVERYBODY, Where, name_text

COUNTS = ("count", "histogram", "crosstab")
ONE_NUMBER = ("sum", "mean", "var", "std", "quantile")
NUMBERS = ("cov", "corr", "ridge")
KINDS = ("count", *ONE_NUMBER, "histogram", "crosstab", *NUMBERS)
STEPS = 1024
"""Equal steps between the bounds that quantiles are drawn from, where the schema has no step of its own."""
MOST_PLACES = 1 << 24
"""Steps of a quantile's column, in all groups together."""
GROUPED = ("count", *ONE_NUMBER, "histogram", "crosstab")
"""What can be asked by group."""
_MEANT = {
    "avg": "mean", "average": "mean", "variance": "var", "sd": "std", "stddev": "std", "stdev": "std",
    "correlation": "corr", "covariance": "cov", "percentile": "quantile", "hist": "histogram",
}  # fmt: skip
_EXTREMES = {"min": "0.01", "minimum": "0.01", "max": "0.99", "maximum": "0.99"}


@dataclass(frozen=True)
class Query:
    """What is asked, in canonical form: equal questions are equal, and have one text.

    ``kind``: one of :data:`KINDS`. A median is a quantile at level 0.5.
    ``columns``: whose values; of ``ridge``, the first is what is explained.
    ``level``: of a quantile.
    ``by``: columns with public keys, for an answer in each group.
    ``where``: whose rows.
    """

    kind: str
    columns: tuple[str, ...] = ()
    level: float | None = None
    by: tuple[str, ...] = ()
    where: Where = EVERYBODY

    @property
    def needs(self) -> tuple[str, ...]:
        """All columns that are looked at, sorted."""
        return tuple(sorted({*self.columns, *self.by, *self.where.columns}))

    @property
    def counts(self) -> bool:
        """Whether all that matters of a row is in which cell it is."""
        return self.kind in COUNTS

    @property
    def counts_people(self) -> bool:
        """Whether it asks how many rows there are: where each is one person's, that is public."""
        return self.kind == "count" and self.where.is_everybody and not self.by

    def __str__(self) -> str:
        names = [name_text(name) for name in self.columns]
        if self.kind == "quantile":
            head = "median" if self.level == 0.5 else f"quantile({plain(self.level or 0)})"
        else:
            head = self.kind
        columns = ", ".join(names)
        if self.kind == "ridge":
            columns = f"{names[0]} on {', '.join(names[1:])}"
        parts = [f"{head} {columns}".strip()]
        if self.by:
            parts.append(f"by {', '.join(map(name_text, self.by))}")
        if not self.where.is_everybody:
            parts.append(f"where {self.where}")
        return " ".join(parts)


def refuse_unknown_kind(kind: str) -> None:
    """Refuse what is no question, and say which was probably meant."""
    word = kind.casefold()
    if word in _EXTREMES:
        raise InputError(
            f"{word} is the value of one person, which no noise can hide: ask "
            f"quantile({_EXTREMES[word]})"
        )
    if word in _MEANT:
        raise InputError(f"there is no question {shown(kind)}: did you mean {_MEANT[word]!r}?")
    if word not in (*KINDS, "median"):
        raise InputError(f"there is no question {shown(kind)}: {nearest(word, (*KINDS, 'median'))}")


def checked(
    kind: str,
    columns: Sequence[str],
    level: float | None,
    by: Sequence[str],
    where: Where,
    schema: Schema,
) -> Query:
    """Make a question, if the schema allows it; raises InputError if not."""
    refuse_unknown_kind(kind)
    if kind == "median":
        kind, level = "quantile", 0.5 if level is None else level
    found = {name: _asked_about(schema, name) for name in (*columns, *by)}
    _check_number_of_columns(kind, columns)
    for name in columns:
        _refuse_dates(kind, name, found[name])
        if kind in (*ONE_NUMBER, *NUMBERS) and not found[name].is_number:
            raise InputError(
                f"{kind} needs numbers, but column {name!r} is a {found[name].kind} in the schema: ask "
                f"histogram {name_text(name)}, or a share: count where {name_text(name)} == …"
            )
        if kind == "quantile" and found[name].kind == FLAG:
            raise InputError(
                f"column {name!r} is yes or no: ask mean {name_text(name)}, which is the "
                "share of yes"
            )
    _check_level(kind, level)
    if by and kind not in GROUPED:
        raise InputError(
            f"'by' goes with {listed(GROUPED)}, not with {kind}: for counts by two columns ask "
            "crosstab; for anything else ask once for each group, with where"
        )
    for name in by:
        if found[name].kind == DATE:
            raise InputError(f"groups must be few: ask {_parts_of(name)}")
        if not found[name].has_keys:
            raise InputError(
                f"groups must be public, but column {name!r} has none: give it bins in the schema, for "
                f"instance bins = [{plain(found[name].lower)}, …, {plain(found[name].upper)}]"
            )
    if len(set(by)) < len(by):
        raise InputError(f"a column is named twice after 'by': {listed(by)}")
    if kind == "quantile":
        _check_steps(columns[0], found[columns[0]], [found[name] for name in by])
    return Query(kind, tuple(columns), None if level is None else float(level), tuple(by), where)


def _parts_of(name: str) -> str:
    its = name_text(name)
    return f"by year({its}), month({its}) or weekday({its})"


def _refuse_dates(kind: str, name: str, column: Column) -> None:
    if column.kind != DATE:
        return
    if kind in ("histogram", "crosstab"):
        raise InputError(f"column {name!r} holds dates: ask count {_parts_of(name)}")
    if kind == "sum":
        raise InputError(
            f"dates have no sum: ask mean {name_text(name)}, or count {_parts_of(name)}"
        )


def _check_level(kind: str, level: float | None) -> None:
    if kind != "quantile":
        if level is not None:
            raise InputError(f"only quantile has a level, and this is {kind}: leave the level out")
    elif level is None:
        raise InputError("quantile needs a level, such as quantile(0.9)")
    else:
        check_number("the level of a quantile", level, above=0, below=1)


def _check_steps(name: str, column: Column, by: Sequence[Column]) -> None:
    """Refuse more candidates than quantiles are drawn from: before other questions are charged."""
    steps, groups = column.n_steps or STEPS + 1, math.prod(len(one.keys) for one in by)
    if steps > MOST_STEPS:
        raise InputError(
            f"column {name!r} has {steps:,} steps between its bounds, but at most {MOST_STEPS:,} can "
            "be told apart: give it a larger step in the schema"
        )
    if steps * groups > MOST_PLACES:
        raise InputError(
            f"{groups:,} groups of {steps:,} steps each are too many: give column {name!r} a larger step in "
            "the schema, or ask for fewer groups"
        )


def _asked_about(schema: Schema, name: str) -> Column:
    column = schema[name]
    if column.kind == TEXT:
        raise InputError(
            f"column {name!r} is text in the schema, and text cannot be asked about: declare its "
            "categories"
        )
    source = schema[schema.sources([name])[0]]
    if source.readable is not None and source.readable < LEAST_READABLE:
        raise InputError(
            f"column {name!r} could be read in only {100 * source.readable:.0f} % of the public records, so "
            "its answers would be about few people: mend its cells, or say how they are written (written in "
            "the schema); if private rows have more, remove readable from the schema"
        )
    return column


def _check_number_of_columns(kind: str, columns: Sequence[str]) -> None:
    if len(set(columns)) < len(columns):
        raise InputError(f"{kind} names a column twice: {listed(columns)}")
    if kind == "count" and columns:
        raise InputError(
            "count counts rows and takes no column: write which rows after 'where', or ask histogram, "
            "sum or mean of a column"
        )
    if (kind in ONE_NUMBER or kind == "histogram") and len(columns) != 1:
        raise InputError(
            f"{kind} needs one column, got {len(columns)}: ask once for each, or write groups after "
            "'by'"
        )
    if kind in ("crosstab", *NUMBERS) and len(columns) < 2:
        usage = "ridge income on age" if kind == "ridge" else f"{kind} age, income"
        raise InputError(f"{kind} needs at least two columns, got {len(columns)}, as in: {usage}")
