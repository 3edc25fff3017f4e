"""Record and replay: on a neighbouring table no noised value moves further than was charged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from collegium import Policy, Schema, Statistics
from collegium.noise.grid import GRID
from collegium.statistics import quantile_intervals, quantiles
from collegium.weighted_sums import sums
from collegium.weighted_sums.weighing import Weighing

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
MORE = (
    "share where age >= 40 by sex",
    "share of sex where age >= 40",
    "top 1 of sex",
    "difference of mean income by sex",
    "count people where age >= 40",
    "count people by sex",
    "quantiles(0.2, 0.8) of income by sex",
)
OWNERS = ("p0", "p1", "p2", "p35")  # of each level; p0 to p2 have three rows
POLICY = Policy({"strict": 1.0, "middle": 2.0, "open": 4.0})
N = 60


def table(people: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    owner = np.concatenate([np.arange(people), np.arange(people // 2), np.arange(5)])
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


def with_extremes(frame: pd.DataFrame) -> pd.DataFrame:
    """Those who are looked at are as far from everybody else as can be."""
    frame = frame.copy()
    frame.loc[frame["owner"].isin(OWNERS), ["age", "income", "sex"]] = [90.0, 10.0, "F"]
    return frame


class Tape:
    """What was noised, and with which outcome; forced again when it is replayed."""

    def __init__(self, forced: list[Any] | None = None) -> None:
        self.seen: list[tuple[str, Any, float]] = []
        self.outcomes: list[Any] = []
        self.during: list[str] = []
        self.question = ""
        self._forced: Iterator[Any] | None = None if forced is None else iter(forced)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        noised = sums.noised

        def noisy(steps: np.ndarray, weighing: Weighing, *given: Any) -> Any:
            kind = "laplace" if weighing.laplace else "gaussian"
            self.seen.append((kind, steps * GRID, weighing.scale))
            return self._outcome(lambda: noised(steps, weighing, *given))

        def drawing(drawn: Any) -> Any:
            def draw(scores: Any, **named: Any) -> Any:
                self.seen.append(("choice", np.atleast_2d(scores) * named["unit"], 1.0))
                return self._outcome(lambda: drawn(scores, **named))

            return draw

        for module in (sums, quantile_intervals):
            patch.setattr(module, "noised", noisy)
        for name in ("choose", "choose_by_coins"):
            patch.setattr(quantiles, name, drawing(getattr(quantiles, name)))

    def _outcome(self, drawn: Any) -> Any:
        self.during.append(self.question)
        self.outcomes.append(drawn() if self._forced is None else next(self._forced))
        return self.outcomes[-1]


def asked(
    frame: pd.DataFrame,
    tape: Tape,
    noise: str,
    neighbours: str,
    questions: tuple[str, ...] = QUESTIONS,
) -> tuple[Statistics, dict[str, np.ndarray]]:
    """A session, and what each question cost the groups, in μ² or ε."""
    costs: dict[str, np.ndarray] = {}
    with pytest.MonkeyPatch.context() as patch:
        tape.install(patch)
        budgets = POLICY.assign(frame["level"], owners=frame["owner"])
        ask = Statistics(
            frame.drop(columns=["owner", "level"]),
            budgets,
            schema=SCHEMA,
            questions=len(questions),
            noise=noise,
            neighbours=neighbours,
            noise_seed=1,
        )
        for question in questions:
            tape.question = question
            before = len(ask._charged)
            ask.ask(question)
            events = ask._charged[before:]
            pure = noise == "laplace"
            costs[question] = sum(
                (one.pure_epsilon if pure else one.mu_squared for one in events), np.zeros(3)
            )
    return ask, costs


def without(frame: pd.DataFrame, owner: str) -> pd.DataFrame:
    found = frame.astype({"sex": object}).copy()
    found.loc[found["owner"] == owner, ["age", "income", "sex"]] = [np.nan, np.nan, None]
    return found


def others(frame: pd.DataFrame, owner: str) -> pd.DataFrame:
    """Other rows of this owner, and another number of them."""
    kept = frame[frame["owner"] != owner]
    level = frame.loc[frame["owner"] == owner, "level"].iloc[0]
    new = pd.DataFrame(
        {"owner": [owner] * 7, "level": level, "age": 17.0, "income": -5.0, "sex": "M"}
    )
    return pd.concat([new, kept], ignore_index=True)


@pytest.mark.parametrize(
    ("noise", "people", "questions"),
    [
        ("gaussian", N, QUESTIONS),
        ("laplace", N, QUESTIONS),
        ("gaussian", 2000, QUESTIONS),
        ("gaussian", N, MORE),
        ("laplace", N, MORE),
    ],
)
@pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])
def test_no_noised_value_moves_further_than_was_charged(
    noise: str, people: int, neighbours: str, questions: tuple[str, ...]
) -> None:
    frame = with_extremes(table(people))
    first = Tape()
    one, costs = asked(frame, first, noise, neighbours, questions)
    rounds = [question for question in questions if first.during.count(question) == 2]
    if people > N:  # enough that the spread decides on weights, and has to be learnt
        assert {"count where age >= 40", "mean income", "histogram age"} <= set(rounds)
    reached: dict[str, float] = {}
    for owner in OWNERS:
        changed = without(frame, owner) if neighbours == "zero-out" else others(frame, owner)
        second = Tape(first.outcomes)
        two, _ = asked(changed, second, noise, neighbours, questions)
        # All that is not noised is the same: what is charged, what is asked next, what is answered.
        assert [kind for kind, *_ in first.seen] == [kind for kind, *_ in second.seen]
        assert [scale for *_, scale in first.seen] == [scale for *_, scale in second.seen]
        assert one._charged == two._charged
        assert [str(answer) for answer in one.answers] == [str(answer) for answer in two.answers]
        level = frame.loc[frame["owner"] == owner, "level"].iloc[0]
        group = list(one._table.groups).index(str(level))
        lost = dict.fromkeys(first.during, 0.0)
        pairs = zip(first.during, first.seen, second.seen, strict=True)
        for question, (kind, value, scale), (_, other, _) in pairs:
            moved = value - other
            if kind == "gaussian":
                lost[question] += float(np.sum(moved**2)) / scale**2
            elif kind == "laplace":
                lost[question] += float(np.abs(moved).sum()) / scale
            else:  # the log-odds of two candidates, over all cells
                event = quantiles.BoundedRange(np.array([sum(np.ptp(row) for row in moved)]))
                cost = event.pure_epsilon if noise == "laplace" else event.mu_squared
                lost[question] += float(cost[0])
        assert list(lost) == list(costs)
        for (question, amount), cost in zip(lost.items(), costs.values(), strict=True):
            assert amount <= cost[group] * (1 + 1e-9), question
            reached[question] = max(reached.get(question, 0.0), amount / cost[group])
    # The bounds are reached where one row can reach them.
    if questions == MORE:
        assert reached["count people where age >= 40"] > 0.999
        assert reached["quantiles(0.2, 0.8) of income by sex"] > 0.3
        return
    if neighbours == "zero-out":
        assert min(reached["count where age >= 40"], reached["mean income"]) > 0.999
    assert reached["median income by sex"] > 0.3
