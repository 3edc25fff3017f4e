"""What the runner does for every method: guards that none of them has to bring along."""

import numpy as np
import pandas as pd
import pytest

from collegium.budgets import Policy
from collegium.errors import InputError, LedgerError
from collegium.ledger.allowance import Allowance, Spending
from collegium.ledger.limits import Cost
from collegium.study import statistics_data, study_data
from collegium.study.config import config_from
from collegium.study.methods import METHODS, method_of
from collegium.study.runner import plan_study, run_study

LEVELS = {"high": 1.0, "low": 3.0}
SCHEMA = """
rows_per_owner = 1
[columns.age]
kind = "whole"
bounds = [0, 99]
"""
OWN = {
    "pate": {
        "teachers": {"n_teachers": 10},
        "aggregation": {"aggregator": "gnmax", "sigma": 40.0},
    },
    "dpsgd": {"dpsgd": {"steps": 5}},
    "statistics": {"statistics": {"schema": "schema.toml", "questions": ["mean age"]}},
}


def write(folder, seed=0):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    for name, n in (("private", 400), ("public", 120)):
        age = rng.integers(18, 90, n)
        rows = {
            "who": [f"{name}{i}" for i in range(n)],
            "age": age,
            "y": np.where(age > 50, "a", "b"),
        }
        rows["level"] = rng.choice(list(LEVELS), n)
        table = pd.DataFrame(rows)
        (table if name == "private" else table[["age", "y"]]).to_csv(
            folder / f"{name}.csv", index=False
        )
    (folder / "schema.toml").write_text(SCHEMA)


def study(folder, kind, seed=0):
    write(folder, seed)
    data = {"private": "private.csv", "owner": "who"}
    if kind != "statistics":
        data |= {"public": "public.csv", "target": "y", "classes": ["a", "b"]}
    given = {
        "data": data,
        "privacy": {"column": "level", "levels": LEVELS},
        "method": {"kind": kind},
        "ledger": {"url": "none"},
        **OWN[kind],
    }
    return config_from(given, folder)


@pytest.mark.parametrize("kind", METHODS)
def test_a_table_that_is_changed_while_it_is_read_is_not_asked(tmp_path, monkeypatch, kind):
    """The digest would be of the new rows, and after an interruption these would be asked."""
    config = study(tmp_path, kind)
    assert method_of(config).name == kind
    plan_study(config)  # as the files are, nothing is wrong
    where = statistics_data if kind == "statistics" else study_data
    digest = where.fingerprint_of

    def changed(path, *more):
        write(tmp_path, seed=1)
        return digest(path, *more)

    monkeypatch.setattr(where, "fingerprint_of", changed)
    with pytest.raises(InputError, match="changed while it was read: nothing was asked"):
        run_study(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_group_that_an_account_does_not_know_is_no_group_that_costs_nothing():
    people = Policy({**LEVELS, "nobody": 2.0}).assign(["high", "low", "low"])
    spending = Spending(people, Allowance.everything(people))
    paid = {"high": Cost(0.1), "low": Cost(0.2)}
    assert spending.of_each_group(paid, Cost(0.0)) == [Cost(0.1), Cost(0.2), Cost(0.0)]
    del paid["low"]
    with pytest.raises(LedgerError, match="2 people of 'low'"):
        spending.of_each_group(paid, Cost(0.0))
