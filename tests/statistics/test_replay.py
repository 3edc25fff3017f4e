"""Record and replay: on a neighbouring table no noised value moves further than was charged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from collegium import Schema
from collegium.budgets import Policy
from collegium.noise.grid import GRID
from collegium.statistics import quantiles
from collegium.statistics.session import Statistics
from collegium.statistics.sums import Sums

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [17, 90], "bins": [17, 40, 90], "missing": True},
        "income": {"kind": "number", "bounds": [-5, 10], "step": 0.25},
        "sex": {"kind": "category", "categories": ["F", "M"]},
    },
    rows_per_owner=2,
)
QUESTIONS = (
    "count where age >= 40",
    "count",
    "mean income",
    "mean income by sex where age >= 40",
    "sum income",
    "var age by sex",
    "median income by sex",
    "quantile(0.8) age",
    "histogram age",
    "cov age, income",
)
POLICY = Policy({"strict": 1.0, "middle": 2.0, "open": 4.0})
N = 60


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    owner = np.concatenate([np.arange(N), np.arange(N // 2), np.arange(5)])
    n = len(owner)
    return pd.DataFrame(
        {
            "owner": [f"p{number}" for number in owner],
            "level": np.array(["strict", "middle", "open"])[owner % 3],
            "age": rng.integers(17, 91, n).astype(float),
            "income": rng.uniform(-5, 10, n),
            "sex": rng.choice(["F", "M"], n),
        }
    )


class Tape:
    """What was noised, and with which outcome; forced again when it is replayed."""

    def __init__(self, forced: list[Any] | None = None) -> None:
        self.seen: list[tuple[str, Any, float]] = []
        self.outcomes: list[Any] = []
        self._forced: Iterator[Any] | None = None if forced is None else iter(forced)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        noisy, choose = Sums.noisy, quantiles.choose

        def sums(own: Sums, *given: Any) -> Any:
            kind = "laplace" if own.weighing.laplace else "gaussian"
            self.seen.append((kind, own.sensitive_steps * GRID, own.weighing.scale))
            return self._outcome(lambda: noisy(own, *given))

        def draw(scores: Any, **named: Any) -> Any:
            self.seen.append(("choice", np.atleast_2d(scores) * named["unit"], 1.0))
            return self._outcome(lambda: choose(scores, **named))

        patch.setattr(Sums, "noisy", sums)
        patch.setattr(quantiles, "choose", draw)

    def _outcome(self, drawn: Any) -> Any:
        self.outcomes.append(drawn() if self._forced is None else next(self._forced))
        return self.outcomes[-1]


def asked(frame: pd.DataFrame, tape: Tape, noise: str, neighbours: str) -> Statistics:
    with pytest.MonkeyPatch.context() as patch:
        tape.install(patch)
        budgets = POLICY.assign(frame["level"], owners=frame["owner"])
        ask = Statistics(
            frame.drop(columns=["owner", "level"]),
            budgets,
            schema=SCHEMA,
            questions=len(QUESTIONS),
            noise=noise,
            neighbours=neighbours,
            noise_seed=1,
        )
        for question in QUESTIONS:
            ask.ask(question)
    return ask


def without(frame: pd.DataFrame, owner: str) -> pd.DataFrame:
    found = frame.astype({"sex": object}).copy()
    found.loc[found["owner"] == owner, ["age", "income", "sex"]] = [np.nan, np.nan, None]
    return found


def others(frame: pd.DataFrame, owner: str) -> pd.DataFrame:
    """Other rows of this owner, and another number of them."""
    kept = frame[frame["owner"] != owner]
    level = frame.loc[frame["owner"] == owner, "level"].iloc[0]
    new = pd.DataFrame(
        {
            "owner": owner,
            "level": level,
            "age": [90.0, 17.0, 90.0],
            "income": [10.0, 10.0, -5.0],
            "sex": "F",
        }
    )
    return pd.concat([new, kept], ignore_index=True)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("neighbours", ["blanked", "replaced"])
def test_no_noised_value_moves_further_than_was_charged(noise: str, neighbours: str) -> None:
    frame = table()
    first = Tape()
    one = asked(frame, first, noise, neighbours)
    reached = []
    for owner in ("p0", "p1", "p2", "p35"):  # of each level; p0 to p2 have three rows
        changed = without(frame, owner) if neighbours == "blanked" else others(frame, owner)
        second = Tape(first.outcomes)
        two = asked(changed, second, noise, neighbours)
        # All that is not noised is the same: what is charged, what is asked next, what is answered.
        assert [kind for kind, *_ in first.seen] == [kind for kind, *_ in second.seen]
        assert [scale for *_, scale in first.seen] == [scale for *_, scale in second.seen]
        assert one._charged == two._charged
        assert [str(answer) for answer in one.answers] == [str(answer) for answer in two.answers]
        level = frame.loc[frame["owner"] == owner, "level"].iloc[0]
        group = list(one._table.groups).index(str(level))
        lost = 0.0
        for (kind, value, scale), (_, other, _) in zip(first.seen, second.seen, strict=True):
            moved = value - other
            if kind == "gaussian":
                lost += float(np.sum(moved**2)) / scale**2
            elif kind == "laplace":
                lost += float(np.abs(moved).sum()) / scale
            else:
                eta = float(sum(np.ptp(row) for row in moved))
                # Of η-bounded range: the μ of (η/2, 0)-DP, or η itself.
                event = quantiles.BoundedRange(np.array([eta]))
                lost += float(event.pure_epsilon[0] if noise == "laplace" else event.mu_squared[0])
        account = one._account
        charged = account.pure_epsilon if noise == "laplace" else account.mu_squared
        assert 0 < lost <= charged[group] * (1 + 1e-9)
        reached.append(lost / charged[group])
    assert max(reached) > 0.05  # the bound is not idle: few rows reach it in all questions at once
