"""Answers beside public facts: where budgets go with the data, weighted answers lean to one side."""

from __future__ import annotations

import math

import pandas as pd

from collegium.data.schema import Schema
from collegium.data.schema_column import FLAG, FLAG_KEYS
from collegium.statistics.query import Query

_FAR = 3.0  # standard errors: by chance, one answer in 370


def known_of(asked: Query, schema: Schema, n: int | None) -> dict[str, tuple[float, float]]:
    """What the schema says about a question to everybody, by key ("" for a single number), with its variance.

    ``n``: rows; None where an owner may have several, and nothing public says how many there are.
    """
    if not asked.where.is_everybody or asked.by or len(asked.columns) != 1 or asked.levels:
        return {}
    column = schema[asked.columns[0]]
    records = column.known_from or math.inf

    def share(known: float) -> tuple[float, float]:
        people = float(n or 0)
        return people * known, people**2 * known * (1 - known) / records

    if asked.kind == "std" and column.sd is not None:
        return {"": (column.sd, 2 * column.sd**2 / records)}  # of values as skewed as waiting times
    if asked.kind in ("mean", "sum") and column.mean is not None:
        spread = column.mean * (1 - column.mean) if column.kind == FLAG else column.width**2 / 4
        spread = spread if column.sd is None else column.sd**2
        if asked.kind == "mean":
            return {"": (column.mean, spread / records)}
        if n is not None and not column.missing:
            return {"": (column.mean * n, n * n * spread / records)}
    if n is None or asked.kind != "histogram":
        return {}
    if column.kind == FLAG and column.mean is not None:
        return dict(zip(FLAG_KEYS, (share(1 - column.mean), share(column.mean)), strict=True))
    return {key: share(known) for key, known in column.shares.items()}


def beside_facts(cells: pd.DataFrame, known: dict[str, tuple[float, float]]) -> pd.DataFrame | None:
    """Compare an answer's cells with what is known: *known*, *value*, and *z*, the errors between them."""
    rows = []
    for key, (fact, variance) in known.items():
        cell = cells.iloc[0] if key == "" else cells.loc[key]
        error = math.sqrt(float(cell["population_error"]) ** 2 + variance)
        if error > 0 and not math.isnan(error):
            rows.append((key, fact, float(cell["value"]), (float(cell["value"]) - fact) / error))
    if not rows:
        return None
    return pd.DataFrame(rows, columns=["key", "known", "value", "z"]).set_index("key")


def in_words(facts: pd.DataFrame, calibrated: bool) -> str:
    """Say how far the answer is from what is known."""
    key = facts["z"].abs().idxmax()
    row = facts.loc[key]
    # By chance the largest of several is larger.
    far = abs(row["z"]) > _FAR + math.log10(len(facts))
    about = f" of {key!r}" if key else ""
    said = (
        f"the publicly known value{about}, {row['known']:,.6g}, is {abs(row['z']):.1f} standard errors "
        "away"
    )
    if far and calibrated:
        said += ": it seems to be known of other people than these"
    elif far:
        said += (
            ": budgets seem to depend on the data, or the value is known of other people than these; "
            "calibrated=True (--calibrated) counts everybody equally"
        )
    return said
