"""A question as a frozen value, checked against the public schema."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from collegium.checks import check_number, check_whole, listed, nearest, shown
from collegium.conditions.conditions import EVERYBODY, Where, name_text, quoted
from collegium.data.schema import Column, Schema
from collegium.data.schema_column import DATE, FLAG, LEAST_READABLE, MOST_STEPS, TEXT, plain
from collegium.errors import InputError
from collegium.statistics.phrasings import nearest_question

COUNTS = ("count", "people", "histogram", "crosstab", "top")
ONE_NUMBER = ("sum", "mean", "var", "std", "quantile")
NUMBERS = ("cov", "corr", "ridge")
KINDS = (*COUNTS, "share", *ONE_NUMBER, *NUMBERS)
"""Of questions. ``people`` is asked as "count people", several levels of ``quantile`` as "quantiles"."""
WORDS = (*(kind for kind in KINDS if kind != "people"), "median", "quantiles", "difference")
"""With which a question begins."""
STEPS = 1024
"""Equal steps between the bounds that quantiles are drawn from, where the schema has no step of its own."""
MOST_PLACES = 1 << 24
"""Steps of a quantile's column, in all groups together."""
GROUPED = ("count", "people", "share", *ONE_NUMBER, "histogram", "crosstab")
"""What can be asked by group."""
COMPARED = ("count", "people", "share", *ONE_NUMBER)
"""What two groups can differ in."""
MOST_LEVELS = 20
_YES = Column(FLAG, missing=False)
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
    ``levels``: of several quantiles, rising; the first is ``level``.
    ``holds``: of a share: what holds for those who are counted.
    ``apart``: two groups, of which the difference is asked for.
    ``most``: of ``top``, how many.
    """

    kind: str
    columns: tuple[str, ...] = ()
    level: float | None = None
    by: tuple[str, ...] = ()
    where: Where = EVERYBODY
    levels: tuple[float, ...] = ()
    holds: Where | None = None
    apart: tuple[str, ...] = ()
    most: int = 0

    @property
    def needs(self) -> tuple[str, ...]:
        """All columns that are looked at, sorted."""
        holds = self.holds.columns if self.holds else ()
        return tuple(sorted({*self.columns, *self.by, *self.where.columns, *holds}))

    @property
    def counts(self) -> bool:
        """Whether all that matters of a row is in which cell it is."""
        return self.kind in COUNTS or self.shares_out

    @property
    def shares_out(self) -> bool:
        """Whether it asks for the shares of all categories of a column."""
        return self.kind == "share" and self.holds is None

    @property
    def is_mean(self) -> bool:
        """Whether it is a mean of something: a share is one of yes and no."""
        return self.kind == "mean" or self.holds is not None

    def about(self, schema: Schema) -> list[Column]:
        """The columns whose values it is about."""
        return [_YES] if self.holds else [schema[name] for name in self.columns]

    def is_public(self, one_row_each: bool) -> bool:
        """Whether it asks how many people there are. ``one_row_each``: whether a row is a person's count."""
        everybody = self.where.is_everybody and not self.by
        return everybody and (self.kind == "people" or (self.kind == "count" and one_row_each))

    @property
    def each_level(self) -> list[Query]:
        """A quantile at each of its levels."""
        levels = self.levels or ((self.level,) if self.level is not None else ())
        return [replace(self, level=level, levels=()) for level in levels]

    def __str__(self) -> str:
        names = [name_text(name) for name in self.columns]
        head = "count people" if self.kind == "people" else self.kind
        if self.levels:
            head = f"quantiles({', '.join(map(plain, self.levels))}) of"
        elif self.kind == "quantile":
            head = "median" if self.level == 0.5 else f"quantile({plain(self.level or 0)})"
        elif self.kind == "top":
            head = f"top {self.most} of"
        elif self.shares_out:
            head = "share of"
        if self.apart:
            head = f"difference of {head}"
        columns = ", ".join(names)
        if self.kind == "ridge":
            columns = f"{names[0]} on {', '.join(names[1:])}"
        parts = [f"{head} {columns}".strip()]
        if self.holds:
            parts.append(f"where {self.holds}")
        if self.by:
            parts.append(f"by {', '.join(map(name_text, self.by))}")
        if self.apart:
            parts.append(f"between {' and '.join(map(quoted, self.apart))}")
        if not self.where.is_everybody:
            parts.append(f"{'among' if self.holds else 'where'} {self.where}")
        return " ".join(parts)


def refuse_unknown_kind(kind: str, text: str = "") -> None:
    """Refuse what is no question, and say which was probably meant. ``text``: all that was asked."""
    word = kind.casefold()
    if word in _EXTREMES:
        raise InputError(
            f"{word} is the value of one person, which no noise can hide: ask "
            f"quantile({_EXTREMES[word]})"
        )
    if word in _MEANT:
        raise InputError(f"there is no question {shown(kind)}: did you mean {_MEANT[word]!r}?")
    if word in ("people", *WORDS):
        return
    if meant := nearest_question(text or kind):
        raise InputError(f"there is no question {shown(kind)}: the nearest is {meant}")
    raise InputError(f"there is no question {shown(kind)}: {nearest(word, WORDS)}")


def checked(
    kind: str,
    columns: Sequence[str],
    level: float | None,
    by: Sequence[str],
    where: Where,
    schema: Schema,
    *,
    levels: Sequence[float] = (),
    holds: Where | None = None,
    apart: Sequence[str] | None = None,
    most: int = 0,
) -> Query:
    """Make a question, if the schema allows it; raises InputError if not.

    ``apart``: two groups that are compared; empty: the two that there are.
    """
    refuse_unknown_kind(kind)
    if kind == "quantiles":
        kind, level, levels = _levels(levels)
    if kind == "median":
        kind, level = "quantile", 0.5 if level is None else level
    found = {name: _asked_about(schema, name) for name in (*columns, *by)}
    _check_number_of_columns(kind, columns, holds is not None)
    for name in columns:
        _refuse_dates(kind, name, found[name])
        if kind in (*ONE_NUMBER, *NUMBERS) and not found[name].is_number:
            raise InputError(
                f"{kind} needs numbers, but column {name!r} is a {found[name].kind} in the schema: ask "
                f"histogram {name_text(name)}, or share of {name_text(name)}"
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
    if kind == "top":
        check_whole("how many are asked for", most, most=len(found[columns[0]].keys))
    compared: tuple[str, ...] = ()
    if apart is not None:
        if any(found[name].kind == DATE for name in columns):
            raise InputError(
                "a difference is one of numbers: ask for dates by groups, or for an age, or a year"
            )
        compared = _compared(kind, by, [found[name] for name in by], apart, levels)
    return Query(
        kind,
        tuple(columns),
        None if level is None else float(level),
        tuple(by),
        where,
        tuple(levels),
        holds,
        compared,
        most,
    )


def _levels(levels: Sequence[float]) -> tuple[str, float | None, tuple[float, ...]]:
    """Kind, first level, and all levels, if there are several, of quantiles."""
    for one in levels:
        _check_level("quantile", one)
    found = tuple(sorted({float(one) for one in levels}))
    if not 1 <= len(found) <= MOST_LEVELS:
        raise InputError(
            f"quantiles need 1 to {MOST_LEVELS} levels, such as quantiles(0.1, 0.5, 0.9), got {len(found)}"
        )
    return "quantile", found[0], found if len(found) > 1 else ()


def _compared(
    kind: str,
    by: Sequence[str],
    groups: Sequence[Column],
    apart: Sequence[str],
    levels: Sequence[float],
) -> tuple[str, ...]:
    """Two groups whose difference is asked for."""
    if kind not in COMPARED or levels:
        raise InputError(f"a difference is one of {listed(COMPARED)}: ask {kind} by groups")
    if len(by) != 1:
        raise InputError(
            "a difference is between two groups of one column, as in: difference of mean income by sex "
            "between 'F' and 'M'"
        )
    keys = groups[0].keys
    if not apart and len(keys) == 2:
        return tuple(keys)
    if len(set(apart)) != 2:
        raise InputError(
            f"say which two groups of {by[0]!r} are compared, as in: between {quoted(keys[0])} and "
            f"{quoted(keys[-1])}"
        )
    places = [groups[0].place_of(one) for one in apart]
    for one, place in zip(apart, places, strict=True):
        if place < 0:
            raise InputError(f"{by[0]!r} has no group {shown(one)}: {nearest(one, list(keys))}")
    return tuple(keys[place] for place in places)


def _parts_of(name: str) -> str:
    its = name_text(name)
    return f"by year({its}), month({its}) or weekday({its})"


def _refuse_dates(kind: str, name: str, column: Column) -> None:
    if column.kind != DATE:
        return
    if kind in ("histogram", "crosstab", "share", "top"):
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


def _check_number_of_columns(kind: str, columns: Sequence[str], holds: bool) -> None:
    if kind == "share" and holds == bool(columns):
        raise InputError(
            "a share is of the categories of a column (share of ward by sex), or of the rows for which "
            "something holds (share where smoker by sex)"
        )
    if len(set(columns)) < len(columns):
        raise InputError(f"{kind} names a column twice: {listed(columns)}")
    if kind in ("count", "people") and columns:
        raise InputError(
            "count counts rows and takes no column: write which rows after 'where', or ask histogram, "
            "sum or mean of a column"
        )
    if kind == "share" and len(columns) > 1:
        raise InputError(
            "share needs one column: write groups after 'by', as in share of ward by sex"
        )
    if kind in (*ONE_NUMBER, "histogram", "top") and len(columns) != 1:
        raise InputError(
            f"{kind} needs one column, got {len(columns)}: ask once for each, or write groups after "
            "'by'"
        )
    if kind in ("crosstab", *NUMBERS) and len(columns) < 2:
        usage = "ridge income on age" if kind == "ridge" else f"{kind} age, income"
        raise InputError(f"{kind} needs at least two columns, got {len(columns)}, as in: {usage}")
