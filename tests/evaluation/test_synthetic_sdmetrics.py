"""SDMetrics' scores: of a good table, of one that teaches nothing, and where it is not installed."""

import sys

import numpy as np
import pandas as pd
import pytest

from collegium import Schema
from collegium.errors import InputError
from collegium.evaluation.synthetic_sdmetrics import sdmetrics_report

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [18, 90]},
        "city": {"kind": "category", "categories": ["Ulm", "Bonn", "Kiel"]},
        "smokes": {"kind": "flag"},
        "since": {"kind": "date", "bounds": ["2020-01-01", "2024-12-31"]},
        "name": {"kind": "text"},
    }
)


def people(n, seed):
    rng = np.random.default_rng(seed)
    smokes = rng.random(n) < 0.4
    age = rng.integers(18, 60, n) + 30 * smokes
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(20 * age, unit="D")
    return pd.DataFrame(
        {
            "age": age.astype(float),
            "city": np.where(smokes, "Ulm", rng.choice(["Bonn", "Kiel"], n)),
            "smokes": smokes,
            "since": days.strftime("%Y-%m-%d"),
            "name": "x",
        }
    )


def test_a_good_table_is_above_columns_without_relation_and_shuffled_ones_are_not():
    pytest.importorskip("sdmetrics", reason="SDMetrics is not installed (it needs pandas 2)")
    held_out = people(1_000, 0)
    held_out.loc[:50, "age"] = None
    good = sdmetrics_report(people(1_000, 1), held_out, schema=SCHEMA)
    assert good.overall > good.overall_without_relations + 0.1
    assert good.pairs > good.pairs_without_relations + 0.1
    assert good.columns > 0.9
    rng = np.random.default_rng(2)
    shuffled = people(1_000, 1).apply(lambda column: rng.permutation(column.to_numpy()))
    found = sdmetrics_report(shuffled, held_out, schema=SCHEMA)
    assert found.overall < found.overall_without_relations + 0.02
    assert found.columns > 0.9


def test_without_it_there_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "sdmetrics.reports", None)
    with pytest.raises(InputError, match=r"pip install 'collegium\[sdmetrics\]'"):
        sdmetrics_report(people(50, 0), people(50, 1), schema=SCHEMA)


def test_empty_tables_are_refused_first():
    with pytest.raises(InputError, match="the synthetic table has no rows"):
        sdmetrics_report(people(0, 0), people(50, 1), schema=SCHEMA)
