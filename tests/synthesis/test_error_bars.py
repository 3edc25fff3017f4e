"""Intervals cover, groups that are alike are found to be so, and calibrated counts are of all alike."""

import numpy as np
import pandas as pd
import pytest

from collegium import Policy, Schema, Synthesizer
from collegium.data.cells import Cells

SCHEMA = Schema(
    {
        "a": {"kind": "category", "categories": list("01234567")},
        "b": {"kind": "whole", "bounds": [0, 99], "bins": [0, 10, 20, 40, 70, 99]},
        "c": {"kind": "flag", "missing": False},
        "d": {"kind": "category", "categories": list("xyz"), "missing": False},
    }
)
CELLS = Cells(SCHEMA)
N = 1_500
pytestmark = pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")


def people(seed=0, shares=(0.8, 0.15, 0.05)):
    rng = np.random.default_rng(seed)
    a = np.minimum(rng.geometric(0.4, N) - 1, 7)
    b = np.clip(a * 10 + rng.normal(20, 20, N), 0, 99).round()
    return pd.DataFrame(
        {
            "a": a.astype(str),
            "b": b,
            "c": b + rng.normal(0, 20, N) > 40,
            "d": rng.choice(list("xyz"), N, p=shares),
        }
    )


def shares_of(frame):
    codes = CELLS.codes(frame)
    return np.concatenate(
        [
            np.bincount(codes[:, j], minlength=size) / len(codes)
            for j, size in enumerate(CELLS.sizes)
        ]
    )


@pytest.mark.parametrize(
    ("more", "budget"),
    [
        ({}, 1.0),
        ({"target": "c", "goal": "both"}, 2.0),
        ({"calibrated": True}, np.resize([1.0, 4.0], N)),
    ],
)
def test_intervals_of_95_in_100_hold_the_tables_own_shares(more, budget):
    """21 cells of 30 tables.

    Even if all cells of a table went together, the share of hits had a standard
    error of 4 in 100; as they hardly do, .89 is much further away than one of these.
    """
    frame, hits = people(), []
    real = shares_of(frame)
    for seed in range(30):
        found = Synthesizer(SCHEMA, noise_seed=seed, **more).fit(frame, budget).marginals_
        hits.append((found["lower"] - 1e-12 <= real) & (real <= found["upper"] + 1e-12))
        assert (found["standard_error"] > 0).all()
        for column, part in found.groupby("column"):
            assert part["share"].sum() == pytest.approx(1, abs=1e-9), column
    assert np.mean(hits) > 0.89
    # And they say something: an interval is not half of everything.
    assert (found["upper"] - found["lower"]).mean() < 0.06


def bias_of(frame, seed, budgets=None):
    table = Synthesizer(SCHEMA, calibrated=True, noise_seed=seed)
    return table.fit(frame, np.resize([1.0, 4.0], N) if budgets is None else budgets)


def test_groups_that_are_alike_are_seldom_found_to_differ():
    """Budgets are dealt out at random: nothing but noise and that tells the groups apart, and p is uniform.

    Two groups of one size have one p-value. 160 of them, 4 columns of 40 tables: more than 14 in 100 below
    .05 have a probability below 1e-4, the mean's bounds are 6 standard errors away.
    """
    frame, each = people(), np.resize([1.0, 4.0], N)
    dealt = [np.random.default_rng(seed).permutation(each) for seed in range(40)]
    tables = [bias_of(frame, seed, budgets).bias_ for seed, budgets in enumerate(dealt)]
    p_values = np.concatenate([one.drop_duplicates("column")["p_same"] for one in tables])
    assert len(p_values) == 160 and (p_values < 0.05).mean() < 0.14
    assert abs(p_values.mean() - 0.5) < 6 * np.sqrt(1 / 12 / 160)
    # What both make of it on average is said, and is what they make.
    ratio = np.mean([one["apart"] for one in tables]) / np.mean(
        [one["explained"] for one in tables]
    )
    assert ratio == pytest.approx(1, abs=0.1)


def test_groups_that_differ_are_found_and_calibrated_tables_are_of_all_people_alike():
    """Who grants more has another d: total variation .6 between the groups, and .3 of each from all."""
    frame = people()
    generous = np.resize([False, True], N)
    other = people(0, (0.2, 0.75, 0.05))
    frame.loc[generous, "d"] = other.loc[generous, "d"]
    real = frame["d"].value_counts(normalize=True)
    apart, off, plain_off = [], [], []
    for seed in range(10):
        table = bias_of(frame, seed)
        found = table.bias_.set_index("column")
        assert (found.loc["d", "p_same"] < 1e-6).all()
        apart.append(found.loc["d", "apart"].to_numpy())
        plain = Synthesizer(SCHEMA, noise_seed=seed).fit(frame, np.resize([1.0, 4.0], N))
        for one, kept in ((table, off), (plain, plain_off)):
            shares = one.marginals_.query("column == 'd'").set_index("cell")["share"]
            kept.append(float(shares["y"] - real["y"]))
    assert np.mean(apart) == pytest.approx(0.3, abs=0.03)
    assert abs(np.mean(off)) < 0.02  # 10 tables with errors of about .02 each
    assert np.mean(plain_off) > 0.05  # leans towards those who weigh more


@pytest.mark.parametrize("more", [{}, {"target": "c", "goal": "both"}, {"calibrated": True}])
def test_people_with_several_rows_count_as_the_schema_says(more):
    """Rows of who has more than two share two: shares are weighted ones, and how many count is not public.

    With ε = 50 for all noise moves a share by less than .002: .01 is five standard deviations.
    """
    rng = np.random.default_rng(4)
    rows = rng.choice([1, 2, 3, 6], 700)
    owner = np.repeat(np.arange(700), rows)
    frame = people().iloc[np.resize(np.arange(N), len(owner))].reset_index(drop=True)
    many = rows[owner] == 6
    frame.loc[many, "d"] = "y"  # who has many rows is like nobody else
    weights = np.minimum(1, 2 / rows[owner])
    codes = CELLS.codes(frame)
    real = np.concatenate(
        [
            np.bincount(codes[:, j], weights, minlength=size) / weights.sum()
            for j, size in enumerate(CELLS.sizes)
        ]
    )
    table = Synthesizer(Schema(dict(SCHEMA.columns), rows_per_owner=2), noise_seed=0, **more)
    policy = Policy({"all": 50.0})
    table.fit(frame, policy.assign(["all"] * len(owner), owners=[f"p{one}" for one in owner]))
    assert table.marginals_["share"].to_numpy() == pytest.approx(real, abs=0.01)
    plain = shares_of(frame)
    assert np.abs(plain - real).max() > 0.1  # counting every row is far from that
