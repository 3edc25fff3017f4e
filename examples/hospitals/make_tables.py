"""Make the tables of three hospitals, all invented: `python make_tables.py FOLDER`.

FOLDER/hospital-a, -b and -c each get patients.csv, and public.csv, which all of them have.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

SIZES = {"hospital-a": 2400, "hospital-b": 1300, "hospital-c": 500}
N_PUBLIC = 300
SHARES = {"strict": 0.3, "usual": 0.5, "generous": 0.2}


def people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Invent people of whom the old, and those who stayed long, come back more often."""
    age = np.clip(np.round(rng.normal(62, 16, n)), 18, 100).astype(int)
    smoker = rng.random(n) < 0.25
    days = np.clip(np.round(rng.gamma(2.0, 2 + age / 40)), 1, 30).astype(int)
    score = (age - 62) / 12 + (days - 7) / 4 + smoker - 1
    back = rng.random(n) < 1 / (1 + np.exp(-score))
    sex = rng.choice(["F", "M"], n)
    columns = {"age": age, "sex": sex, "smoker": smoker, "days": days, "readmitted": back}
    return pd.DataFrame(columns)


def write_tables(folder: Path) -> pd.DataFrame:
    """Write all tables; returns those of the three hospitals as one, which nobody has outside an example."""
    rng = np.random.default_rng(2026)
    public, tables = people(N_PUBLIC, rng), []
    for name, n in SIZES.items():
        table = people(n, rng)
        table.insert(0, "patient", [f"{name[-1].upper()}{number:05d}" for number in range(n)])
        table.insert(1, "level", rng.choice(list(SHARES), n, p=list(SHARES.values())))
        (folder / name).mkdir(parents=True, exist_ok=True)
        table.to_csv(folder / name / "patients.csv", index=False)
        public.to_csv(folder / name / "public.csv", index=False)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


if __name__ == "__main__":
    write_tables(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
