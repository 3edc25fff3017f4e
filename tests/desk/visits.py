"""A private table of visits, and a public one of the same kind: made here, of nobody."""

import numpy as np
import pandas as pd

N_PEOPLE, N_VISITS = 1_000, 3_000
LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
FIXED = """
[method]
kind = "dpsgd"

[preprocessing]
kind = "binned"

[dpsgd]
steps = 20
"""


def name_of(number):
    return f"patient-{number:04d}"


def visits(folder, n_people=N_PEOPLE, n_visits=N_VISITS):
    """Write ``visits.csv`` and ``others.csv``; returns the level that each person chose on paper."""
    rng = np.random.default_rng(28)
    person = np.concatenate([np.arange(n_people), rng.integers(0, n_people, n_visits - n_people)])
    people = pd.DataFrame(
        {
            "patient": [name_of(number) for number in range(n_people)],
            "age": rng.integers(20, 90, n_people),
            "sex": rng.choice(["F", "M"], n_people),
            "consent": rng.choice(list(LEVELS), n_people),
        }
    )
    _with_visits(people.loc[person].reset_index(drop=True), rng).to_csv(
        folder / "visits.csv", index=False
    )
    others = pd.DataFrame({"age": rng.integers(20, 90, 600), "sex": rng.choice(["F", "M"], 600)})
    _with_visits(others, rng).to_csv(folder / "others.csv", index=False)
    return dict(zip(people["patient"], people["consent"], strict=True))


def _with_visits(rows, rng):
    stay = rng.gamma(2, 2.5, len(rows)).round(1)
    risk = (stay - 5) / 2 + (rows["age"] - 55) / 15
    again = np.where(rng.random(len(rows)) < 1 / (1 + np.exp(-risk)), "yes", "no")
    return rows.assign(stay=stay, readmitted=again)
