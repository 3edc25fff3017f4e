"""Whatever is asked: blanking or replacing one owner moves each sum by no more than its event says."""

import zlib

import numpy as np
import pandas as pd
import pytest

from collegium import Budget, Budgets, Schema, Statistics
from collegium.noise.grid import GRID
from collegium.statistics import quantile_intervals
from collegium.weighted_sums import sums

SCHEMA = {
    "age": {"kind": "whole", "bounds": [-5, 90], "bins": [-5, 30, 91]},
    "pay": {"kind": "number", "bounds": [-10, 50]},
    "won": {"kind": "number", "bounds": [0, 9]},
    "ward": {"kind": "category", "categories": ["a", "b", "c"]},
    "sick": {"kind": "flag"},
    "day": {"kind": "date", "bounds": ["2020-01-01", "2022-12-31"]},
}
CELLS = {
    "age": (-5, 90, -100, 200, None, 30),
    "pay": (-10, 50, 20, None, 1e9),
    "won": (0, 9, 3, None),
    "ward": ("a", "b", "c", None, "zz"),
    "sick": (True, False, None),
    "day": ("2020-01-01", "2022-12-31", "2021-06-15", None, "1999-01-01"),
}
QUESTIONS = (
    "count where sick",
    "count where sick is missing",
    "count people where sick",
    "count people by year(day)",
    "share of ward by sick",
    "share where sick",
    "share where not sick",
    "share where sick is missing",
    "share where sick among ward is missing",
    "share where sick and age > 3 by ward",
    "difference of share where sick by ward between 'a' and 'c'",
    "difference of sum won by ward between 'a' and 'b'",
    "top 2 of ward",
    "sum won",
    "sum pay where sick is missing",
    "mean pay",
    "mean age(day, 2024-12-31) by ward",
    "var won by ward",
    "corr won, pay",
    "crosstab ward, sick",
)


def row_of(rng):
    return {name: cells[rng.integers(len(cells))] for name, cells in CELLS.items()}


def sums_of(monkeypatch, question, rows, owners, budgets, settings):
    """What is summed, before noise, and the sensitivity that each group is charged for."""
    seen, events = [], []

    def forced(steps, weighing, noise, query, purpose):
        seen.append(np.array(steps, dtype=np.float64) * GRID)
        return np.random.default_rng(zlib.crc32(purpose.encode())).uniform(0, 20, np.shape(steps))

    for module in (sums, quantile_intervals):
        monkeypatch.setattr(module, "noised", forced)
    session = Statistics(
        pd.DataFrame(rows, dtype=object),
        budgets,
        schema=Schema(SCHEMA, **settings[0]),
        **settings[1],
    )
    charge = type(session)._charge

    def charged(self, these, share):
        events.extend(these)
        return charge(self, these, share)

    monkeypatch.setattr(type(session), "_charge", charged)
    session.ask(question)
    monkeypatch.undo()
    return seen, [np.asarray(one.sensitivity) for one in events]


@pytest.mark.parametrize(
    ("noise", "neighbours", "rows_per_owner"),
    [
        ("gaussian", "zero-out", 1),
        ("gaussian", "replace-one", 3),
        ("laplace", "zero-out", 3),
        ("laplace", "replace-one", 1),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_one_owner_moves_each_sum_by_no_more_than_is_charged(
    monkeypatch, noise, neighbours, rows_per_owner
):
    rng = np.random.default_rng([len(noise), len(neighbours), rows_per_owner])
    owners = [f"o{one}" for one in range(6) for _ in range(rng.integers(1, 5))]
    groups = [int(name[1:]) % 3 for name in owners]
    budgets = Budgets({"x": Budget(0.5), "y": Budget(1.5), "z": Budget(4.0)}, groups, owners)
    ways = {"noise": noise, "neighbours": neighbours, "noise_seed": 1, "questions": 3}
    settings = ({"rows_per_owner": rows_per_owner}, ways)
    nearest = {}
    for question in QUESTIONS:
        for owner in rng.choice(6, 3, replace=False):
            rows = [row_of(rng) for _ in owners]
            blank = dict.fromkeys(CELLS)
            others = [
                (blank if neighbours == "zero-out" else row_of(rng)) if name == f"o{owner}" else row
                for name, row in zip(owners, rows, strict=True)
            ]
            before, claimed = sums_of(monkeypatch, question, rows, owners, budgets, settings)
            after, again = sums_of(monkeypatch, question, others, owners, budgets, settings)
            assert len(before) == len(after) == len(claimed) == len(again)
            for one, other, claim in zip(before, after, claimed, strict=True):
                moved = np.abs(other - one)
                far = moved.sum() if noise == "laplace" else np.sqrt((moved**2).sum())
                assert far <= claim[owner % 3] * (1 + 1e-9), question
                nearest[question] = max(nearest.get(question, 0), far / claim[owner % 3])
    assert max(nearest.values()) > 0.99  # what is claimed is reached
