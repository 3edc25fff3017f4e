"""A handful of people: the tables on which direct training, questions and every command are recorded.

Nothing in here knows the package.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

KINDS = ["cat", "dog", "owl"]
MEASURED = ["a", "b", "c"]
LEVELS = {"high": 2.0, "low": 6.0}
ASKED_LEVELS = {"high": 1.0, "low": 3.0}
SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 90]
missing = false
bins = [18, 40, 65, 90]
[columns.income]
kind = "number"
bounds = [0, 1000]
missing = false
step = 10
[columns.sex]
kind = "category"
categories = ["F", "M"]
[columns.smokes]
kind = "flag"
missing = false
"""


def animals(n: int, seed: int) -> pd.DataFrame:
    """Make records of three kinds, which lie apart in one of three numbers."""
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 3, n)
    numbers = generator.normal(size=(n, 3))
    numbers[:, 0] += 2 * kind
    return pd.DataFrame(numbers.round(3), columns=MEASURED).assign(kind=np.array(KINDS)[kind])


def private_animals(n: int = 240) -> pd.DataFrame:
    """Give two records to each owner, and one owner in four the level of strict privacy."""
    who = np.arange(n) // 2
    return animals(n, 1).assign(
        who=[f"p{one}" for one in who], level=np.where(who % 4 == 0, "high", "low")
    )


def public_animals() -> pd.DataFrame:
    """Make public records, whose kinds are known."""
    return animals(90, 2)


def test_animals() -> pd.DataFrame:
    """Make the records by which a model is judged."""
    return animals(60, 3).assign(level=["high", "low"] * 30)


def people(n: int = 400, rows: int = 1) -> pd.DataFrame:
    """Make the table that is asked; ``rows``: of each person."""
    generator = np.random.default_rng(4)
    who = np.arange(n) // rows
    return pd.DataFrame(
        {
            "person": [f"p{one}" for one in who],
            "age": generator.integers(18, 91, n),
            "income": generator.integers(0, 1001, n),
            "sex": generator.choice(["F", "M"], n),
            "smokes": generator.random(n) < 0.3,
            "level": np.where(who % 3 == 0, "high", "low"),
        }
    )


def write_animals(folder: Path) -> None:
    """Write the records to learn from."""
    folder.mkdir(parents=True, exist_ok=True)
    private_animals().to_csv(folder / "private.csv", index=False)
    public_animals().to_csv(folder / "public.csv", index=False)
    test_animals().to_csv(folder / "test.csv", index=False)
    private = private_animals()
    private.to_parquet(folder / "private.parquet", row_group_size=50)


def write_people(folder: Path) -> None:
    """Write the table that is asked, and what is public about it."""
    folder.mkdir(parents=True, exist_ok=True)
    people().to_csv(folder / "people.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
