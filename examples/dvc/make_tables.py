"""Make the tables of the example, all invented: `python make_tables.py FOLDER`.

FOLDER gets patients.csv, which is private, public.csv, and new.csv: patients of whom nobody knows yet.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

SHARES = {"strict": 0.3, "usual": 0.5, "generous": 0.2}


def people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Invent people of whom the old, and those who stayed long, come back more often."""
    age = np.clip(np.round(rng.normal(62, 16, n)), 18, 100).astype(int)
    days = np.clip(np.round(rng.gamma(2.0, 2 + age / 40)), 1, 30).astype(int)
    sex = rng.choice(["F", "M"], n)
    score = (age - 62) / 12 + (days - 7) / 4
    back = rng.random(n) < 1 / (1 + np.exp(-score))
    return pd.DataFrame({"age": age, "sex": sex, "days": days, "readmitted": back})


def write_tables(folder: Path) -> None:
    """Write the three tables."""
    rng = np.random.default_rng(2026)
    patients = people(2000, rng)
    patients.insert(0, "patient", [f"P{number:05d}" for number in range(len(patients))])
    patients.insert(1, "level", rng.choice(list(SHARES), len(patients), p=list(SHARES.values())))
    patients.to_csv(folder / "patients.csv", index=False)
    people(300, rng).to_csv(folder / "public.csv", index=False)
    people(50, rng).drop(columns="readmitted").to_csv(folder / "new.csv", index=False)


if __name__ == "__main__":
    write_tables(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
