"""What a question will cost, and how far off its answer will be under each rule: public numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collegium.conditions.conditions import Among
from collegium.data.schema import Schema
from collegium.statistics.answer_words import price_in_words
from collegium.statistics.features import Features
from collegium.statistics.query import NUMBERS, Query
from collegium.weighted_sums.weights import RULES, Errors, errors_of, weights_of

Floats = NDArray[np.float64]
OF_SHARES = " %"
"""Unit of a share, which is predicted as a number from 0 to 1, and written in per cent."""
_SOME = 0.5  # share of the rows that a condition is taken to hold for


@dataclass(frozen=True)
class Trade:
    """What decides on weights: noise at weight 1, spread between people, and the unit of both.

    ``noise``: variance per (price)⁻². ``spread``: variance between people. ``unit``: of their roots, in the
    answer's own. ``known``: whether the spread is that of a public number, and not the largest possible.
    """

    noise: float
    spread: float
    unit: float
    known: bool = False

    def weights(self, rule: str, prices: Floats, sizes: NDArray[np.int64]) -> Floats:
        """Weights, in units of prices."""
        return weights_of(rule, prices, sizes, self.noise, self.spread)

    def errors(self, weights: Floats, sizes: NDArray[np.int64]) -> Errors:
        """Predicted errors, in the answer's unit."""
        one, squared = errors_of(weights, sizes, self.noise, self.spread), self.unit**2
        return Errors(squared * one.noise, squared * one.people, squared * one.sample)


def trade_of(
    asked: Query,
    schema: Schema,
    features: Features,
    n: int,
    diameter: float,
    laplace: bool,
    expected: float | None = None,
    drawn: float = 1.0,
) -> Trade:
    """Say what is public of a question's noise and spread.

    The spread is that of a public standard deviation or share, or the largest between the bounds; a condition
    is taken to hold for the expected share of the rows, or that of its categories in public, or half of
    them; keys share them out evenly. ``drawn``: part of the price that the draw of a quantile takes.
    """
    most = 1 if asked.kind == "people" else schema.rows_per_owner
    one = (diameter * most) ** 2 * (2.0 if laplace else 1.0)
    expected = _public_share(asked, schema) if expected is None else expected
    share = 1.0 if asked.where.is_everybody else expected or _SOME
    for name in asked.by:
        share /= len(schema[name].keys)
    if asked.counts:
        unit = 1 / share if asked.shares_out else float(n)
        for name in asked.columns:
            share /= len(schema[name].keys)
        spread = share * (1 - share) if share < 1 else 0.0
        if asked.kind in ("count", "people") and not asked.by and expected is None:
            spread = 0.25  # of a share that nobody knows
        return Trade(one, spread * most**2, unit, expected is not None)
    if asked.kind == "quantile":
        level = float(asked.level or 0.5)
        largest = max(level, 1 - level)
        # A Laplace-like rank error of scale 2·largest/η/W, and that of a sample's quantile. What costs μ has
        # the η of about 4φ(0)μ.
        own = 8 * largest**2 / drawn**2 if laplace else math.pi * largest**2 / drawn
        return Trade(own * (diameter * most) ** 2 / share**2, level * (1 - level) / share, 1.0)
    column = asked.about(schema)[0]
    # What measures the spread, or counts rows, is missing here.
    kept = ((1 - features.spread) * (1 - features.presence)) ** (2 if laplace else 1)
    if asked.is_mean or asked.kind == "sum":
        known = None if column.sd is None else (column.sd / column.width) ** 2
        if features.everybody:
            unit = column.width * (n if asked.kind == "sum" else 1)
            return Trade(one / 4 / kept, 0.25 if known is None else known, unit, known is not None)
        if asked.kind == "sum":
            largest = max(abs(column.lower), abs(column.upper)) * n
            return Trade(one / kept, share * most**2 / 4, largest)
        return Trade(
            one / 2 / kept / share**2,
            (0.25 if known is None else known) / share,
            column.width,
            known is not None,
        )
    if asked.kind in ("var", "std"):
        return Trade(2 * one / share**2, 1 / 16 / share, column.width**2)
    size = len(asked.columns) + 1
    norm = size**2 if laplace else size  # moments are this much smaller than what is noised
    return Trade(one * norm**2 / share**2, 1.0 / share, 1.0)


def _public_share(asked: Query, schema: Schema) -> float | None:
    """For which share of all rows a condition holds, where the schema knows that of its categories."""
    where = asked.where
    if not isinstance(where, Among):
        return None
    column = schema[where.column]
    if where.is_flag and column.mean is not None:
        share = column.mean if where.codes == (1,) else 1 - column.mean
    elif column.shares and all(name in column.shares for name in where.names):
        share = sum(column.shares[name] for name in where.names)
        share = 1 - share if where.excluded else share
    else:
        return None
    return min(max(share, 1e-4), 1.0)


@dataclass(frozen=True, eq=False)
class Plan:
    """What a question would cost, and its predicted error under each rule; nothing was spent.

    Attributes
    ----------
    question : str
        In words.
    rule : str
        The rule that would be used.
    predicted : dict of str to float
        Root mean squared error towards the table's own value, for each rule, in the answer's unit, or what
        ``unit`` says: of a quantile, in ranks (0.01: one in a hundred); of covariances, correlations and
        regressions, of each of the moments that they are made of.
    heard : dict of str to float
        The number of people that, counted equally, would give the same precision, for each rule.
    epsilon : dict of str to float
        What each person of each group would pay at most: ε at the group's δ, by itself.
    of_people : int
        How many there are.
    noise : str
        Kind of the noise.
    free : str
        Why it costs nothing: it is ``"public"`` how many people there are, or it was ``"answered before"``;
        otherwise empty. What is free is predicted to be off by nothing more, and to cost nobody anything.
    unit : str
        Of ``predicted``, in words; empty: the answer's own.
    share : dict of str to float
        What each person of each group would pay at most, as a share of the budget, as a ledger counts it.
    """

    question: str
    rule: str
    predicted: Mapping[str, float]
    heard: Mapping[str, float]
    epsilon: Mapping[str, float]
    of_people: int
    noise: str
    free: str = ""
    unit: str = ""
    share: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.free:
            return f"{self.question}: {self.free}, so it is free"
        lines = [f"{self.question}: {self.noise} noise; nothing is spent yet"]
        best = min(self.predicted, key=lambda rule: self.predicted[rule])
        for rule in RULES:
            if rule not in self.predicted:
                continue
            marks = " (chosen)" if rule == self.rule else ""
            marks += " (smallest error)" if rule == best and rule != self.rule else ""
            times = 100 if self.unit == OF_SHARES else 1
            off = f"{times * self.predicted[rule]:.4g}{self.unit}"
            lines.append(
                f"  {rule:<13} off by about {off}; precision: as if {self.heard[rule]:,.0f} of "
                f"{self.of_people:,} people had been counted equally{marks}"
            )
        lines.append(f"  {price_in_words(self.share)} at most")
        return "\n".join(lines)


def unit_of(asked: Query) -> str:
    """Say in what predicted errors are, where that is not the answer's own unit."""
    if asked.kind == "share":
        return OF_SHARES
    if asked.kind == "quantile":
        return " of all ranks"
    return " in moments of values from -1 to 1" if asked.kind in NUMBERS else ""


def wasted(trade: Trade, rule: str, prices: Floats, sizes: NDArray[np.int64]) -> float:
    """How much larger the error of a rule is than with uniform weights: below 1 where it is smaller."""
    own = trade.errors(trade.weights(rule, prices, sizes), sizes).table
    uniform = trade.errors(trade.weights("uniform", prices, sizes), sizes).table
    return own / uniform if uniform else math.inf
