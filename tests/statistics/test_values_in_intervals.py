"""No value is shown outside its own interval, and each says what it counts, whatever is asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Ledger, Policy, Schema, Statistics

SCHEMA = {
    "x": {"kind": "number", "bounds": [0, 10]},
    "y": {"kind": "number", "bounds": [-2, 5], "missing": False},
    "z": {"kind": "whole", "bounds": [3, 9], "missing": False},
    "f": {"kind": "flag"},
    "g": {"kind": "category", "categories": ["a", "b", "c"]},
}
COLUMNS_XY = {name: SCHEMA[name] for name in "xy"}
QUESTIONS = [
    f"{kind}{by}{where}"
    for kind in (
        "count",
        *(f"{kind} {x}" for kind in ("sum", "mean", "var", "std", "median") for x in "xyz"),
    )
    for by in ("", " by g")
    for where in ("", " where f")
] + ["histogram g", "crosstab g, f", "cov x, y", "corr x, y, z", "ridge x on y, z"]
QUESTIONS += [
    *("share where f by g", "share of g", "share of g by f where y > 0", "count people by g"),
    *("top 2 of g", "quantiles(0.1, 0.5, 0.9) of x by g", "difference of mean x by f"),
    *("difference of count by f", "difference of share where y > 0 by f", "count people where f"),
]


@given(
    st.sampled_from(QUESTIONS),
    st.integers(1, 60),
    st.floats(0.001, 20),
    st.sampled_from(["gaussian", "laplace"]),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 10_000),
)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_a_value_lies_in_its_interval(
    question: str, n: int, epsilon: float, noise: str, rows: int, named: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.2, np.nan, rng.choice([0.0, 10.0, 20.0], n)),
            "y": rng.choice([-2.0, 5.0], n),
            "z": rng.choice([3, 9], n),
            "f": rng.random(n) < 0.3,
            "g": rng.choice(["a", "b", "other"], n),
            "level": "one",
            "who": rng.integers(0, max(1, n // 2), n).astype(str),
        }
    )
    ask = Statistics(
        frame,
        Policy({"one": epsilon}),
        schema=Schema(SCHEMA, rows_per_owner=rows),
        privacy="level",
        owner="who" if named else None,
        noise=noise,
        noise_seed=seed,
    )
    answer = ask.ask(question)
    cells = answer.cells.dropna(subset=["value", "lower"])
    assert (cells["lower"] <= cells["value"]).all() and (cells["value"] <= cells["upper"]).all()
    if "readable" in cells:
        assert cells["readable"].between(0, rows * n).all()
    text = str(answer)
    if answer.counted:
        counted = f"rows, at most {rows} per person" if named and rows > 1 else "people"
        assert answer.counted.startswith(counted)
        assert ("in equal parts" in answer.counted) == (named and rows == 1 and question != "count")
        assert answer.counted in text
    assert not answer.sentence[0].islower() and answer.to_dict()["sentence"] == answer.sentence
    assert "±" not in text.splitlines()[0].replace("(± standard error", "")


@pytest.mark.parametrize("lack", [0.0, 0.4])
def test_sums_and_answers_by_groups_say_how_many_rows_could_be_read(lack: float) -> None:
    """With hardly any noise: 2,000 people, ε = 200."""
    rng = np.random.default_rng(1)
    n = 2000
    frame = pd.DataFrame({"x": rng.random(n) * 10, "g": rng.choice(["a", "b"], n)})
    frame.loc[rng.random(n) < lack, "x"] = np.nan
    ask = Statistics(frame, [200.0] * n, schema=Schema({k: SCHEMA[k] for k in "xg"}), noise_seed=1)
    there = frame.dropna()
    for question in ("sum x", "mean x", "std x"):
        answer = ask.ask(question)
        assert answer.cells["readable"].iloc[0] == pytest.approx(len(there), abs=10)
        assert "rows that could be read" in str(answer)
    both = Statistics(frame.assign(y=1.0), [200.0] * n, schema=Schema(COLUMNS_XY), noise_seed=1)
    (told,) = [note for note in both.ask("corr x, y").notes if "could be read" in note]
    assert float(told.split(" rows")[0].replace(",", "")) == pytest.approx(len(there), abs=20)
    assert ask.ask("sum x").value == pytest.approx(there["x"].sum(), rel=0.01)
    for question in ("sum x by g", "mean x by g"):
        found = ask.ask(question).cells["readable"]
        assert found.loc["a"] == pytest.approx((there["g"] == "a").sum(), abs=10)


def test_an_answer_says_who_has_nothing_left_and_costs_what_the_ledger_counts(tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "people.ledger")
    policy = Policy({"high": 0.5, "low": 2.0})
    levels = np.repeat(["high", "low"], 200)
    granted = policy.assign(levels, owners=[f"p{i}" for i in range(400)])
    frame = pd.DataFrame({"f": np.arange(400) % 4 == 0})
    schema = Schema({"f": {"kind": "flag", "missing": False}})
    first = granted[np.arange(200)]
    with Statistics(
        frame[:200], first, schema=schema, ledger=ledger, spend=1.0, questions=1
    ) as ask:
        ask.mean("f")
    for share in (0.5, 1.0):  # of what is left each time
        before = ledger.left(granted).share[200:].min()
        with Statistics(
            frame,
            granted,
            schema=schema,
            ledger=ledger,
            spend=share,
            questions=1,
            weights="proportional",
        ) as ask:
            answer = ask.count("f")
            after_price = answer.paid["share"].max()
        assert before - ledger.left(granted).share[200:].min() == pytest.approx(
            after_price, abs=1e-6
        )
        assert answer.silent == {"high": 200} and answer.to_dict()["silent"] == {"high": 200}
        assert "(" in str(answer) and str(answer).endswith(
            "of the 200 people who still take part; 200 have nothing left (high: 200))"
        )
