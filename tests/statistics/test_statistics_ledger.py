"""Sessions on a ledger: each is one release, and nobody pays more than was granted over all of them."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import collegium as cg
from collegium import Ledger, PrivacyWarning, Statistics
from collegium.accounting import Neighbours
from collegium.errors import BudgetExceededError, InputError, LedgerError
from collegium.weighted_sums.tables import InMemory

POLICY = cg.Policy({"high": 1.0, "low": 3.0})
N = 300
RNG = np.random.default_rng(1)
FRAME = pd.DataFrame({"age": RNG.integers(17, 91, N), "sex": RNG.choice(["F", "M"], N)})
LEVELS = np.where(np.arange(N) % 3 == 0, "high", "low")
BUDGETS = POLICY.assign(LEVELS, owners=[f"p{number}" for number in range(N)])
SCHEMA = cg.Schema(
    {
        "age": {"kind": "whole", "bounds": [17, 90]},
        "sex": {"kind": "category", "categories": ["F", "M"]},
    }
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "people.ledger")


def session(ledger: Ledger, **how: Any) -> Statistics:
    return Statistics(FRAME, BUDGETS, schema=SCHEMA, ledger=ledger, **{"spend": 1.0, **how})


def spent(ledger: Ledger) -> dict[str, float]:
    return {one.level: float(one.epsilon_spent) for one in ledger.standings()}


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_what_was_not_used_is_given_back(ledger: Ledger, noise: str) -> None:
    with session(ledger, noise=noise) as ask:
        ask.mean("age")
        ask.groupby("sex").median("age")
        reserved = spent(ledger)
    entered = spent(ledger)
    assert reserved["high"] == pytest.approx(1.0, rel=1e-3)
    for row, level in zip(ask.privacy_.by_group().itertuples(), entered, strict=True):
        assert 0 < entered[level] < reserved[level]
        assert row.epsilon_spent == pytest.approx(entered[level], rel=1e-6)


@pytest.mark.parametrize(("promise", "noise"), [("gaussian", "laplace"), ("pure", "auto")])
def test_all_of_a_session_may_be_asked_with_laplace_noise(
    tmp_path: Path, promise: str, noise: str
) -> None:
    """Shares of what the ledger promises, in whatever it counts: the filter refuses none of them."""
    ledger = Ledger.create(tmp_path / "people.ledger", promise=promise)
    with session(ledger, noise=noise, questions=3, spend=0.5) as ask:
        assert ask.noise == "laplace"
        ask.mean("age")  # measures the spread beside
        ask.groupby("sex").median("age")
        ask.histogram("age", calibrated=True)
        assert ask.left()["share_left"].tolist() == pytest.approx([0.0, 0.0], abs=1e-9)
    for one in ledger.standings():
        assert 0.2 < 1 - one.share_left <= 0.5 + 1e-9
    assert ask.privacy_.gaussian == (promise == "gaussian")
    assert ask.privacy_.right_of_100(ask.privacy_.groups[0]) == (74 if promise == "pure" else 56)


def test_gaussian_noise_is_refused_where_pure_epsilon_is_promised(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "pure.ledger", promise="pure")
    with pytest.raises(InputError, match=r"promises pure ε .* use Laplace noise"):
        session(ledger, noise="gaussian")
    people = [cg.ledger.Cost(0.01), cg.ledger.Cost(0.0)]
    with pytest.raises(BudgetExceededError, match="refused: the ledger promises pure ε"):
        ledger.reserve("a", "a count", BUDGETS, people, [0] * N, neighbours=Neighbours.ANY_CHANGE)
    assert len(ledger.history()) == 1


def test_nothing_asked_is_nothing_paid(ledger: Ledger) -> None:
    with session(ledger):
        pass
    assert all(value == 0 for value in spent(ledger).values())


def test_two_sessions_together_cost_nobody_more_than_was_granted(ledger: Ledger) -> None:
    # Uniform weights, so that the generous have something left for certain.
    with session(ledger, spend=0.5, questions=1, weights="uniform") as first:
        first.mean("age")
    assert 0.5 < spent(ledger)["high"] < 0.75  # half of μ²
    with session(ledger, questions=2, name="later", weights="uniform") as second:
        second.mean("age")
        second.histogram("sex")
    assert all(
        value <= granted for value, granted in zip(spent(ledger).values(), (1, 3), strict=True)
    )
    assert spent(ledger)["high"] > 0.95
    assert "What a group grants here is at most" in str(second.privacy_)
    with pytest.warns(PrivacyWarning, match="100 of 300 people take no part"):
        session(ledger, name="the generous alone")  # and it never ends
    before = spent(ledger)
    with pytest.raises(BudgetExceededError, match="no budget is left in the ledger"):
        session(ledger, name="too late")
    assert spent(ledger) == before


def test_a_session_that_never_ends_has_cost_all_that_it_reserved(ledger: Ledger) -> None:
    session(ledger, spend=0.3)  # the program dies here
    assert spent(ledger)["high"] > 0.45
    with session(ledger, questions=1, name="later") as ask:
        ask.mean("age")
    assert spent(ledger)["high"] <= 1


def test_an_error_in_the_middle_pays_for_what_was_drawn(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), session(ledger) as ask:
        ask.mean("age")
        raise ZeroDivisionError
    paid = ask.answers[0].paid["epsilon"].max()
    assert max(spent(ledger).values()) == pytest.approx(paid, rel=1e-6)


def test_people_who_are_new_for_the_most_part_are_let_in_where_the_ledger_is_opened_so(
    ledger: Ledger, tmp_path: Path
) -> None:
    others = POLICY.assign(LEVELS, owners=[f"other {number}" for number in range(N)])
    how: dict[str, Any] = {"schema": SCHEMA, "questions": 1}
    with session(ledger):
        pass  # everybody is known now
    with pytest.raises(LedgerError, match="knows 300 people, but only 0 of these 300"):
        Statistics(FRAME, others, ledger=ledger, **how)
    opened = Ledger(tmp_path / "people.ledger", allow_new_people=True)
    with Statistics(FRAME, others, ledger=opened, **how) as ask:
        ask.mean("age")
    assert sum(one.owners for one in ledger.standings()) == 2 * N
    with pytest.raises(InputError, match="allow_new_people must be true or false"):
        Ledger(tmp_path / "people.ledger", allow_new_people="yes")  # type: ignore[arg-type]


def test_there_are_at_most_sixteen_parameters() -> None:
    assert len(inspect.signature(Statistics).parameters) <= 16


def test_who_has_nothing_left_takes_no_part(ledger: Ledger) -> None:
    with session(ledger):
        pass  # everybody is known now
    some = np.arange(N) < 100
    budgets = POLICY.assign(LEVELS[some], owners=[f"p{number}" for number in range(100)])
    with Statistics(
        FRAME[some],
        budgets,
        schema=SCHEMA,
        ledger=ledger,
        questions=1,
        spend=1.0,
        name="some",
        weights="uniform",
    ) as first:
        first.mean("age")
    # Of these, the strict paid all; the generous were heard no more than they.
    with pytest.warns(PrivacyWarning, match="34 of 300"), session(ledger, name="later") as ask:
        assert ask.count().value == 266


def test_neighbours_are_what_the_ledger_promises(tmp_path: Path) -> None:
    strict = Ledger.create(tmp_path / "strict.ledger", neighbours=Neighbours.ANY_CHANGE)
    with session(strict) as ask:
        assert "replaced" in str(ask.privacy_)
    with pytest.raises(InputError, match="less"):
        session(strict, neighbours="zero-out", name="two")
    with pytest.raises(InputError, match="seed"):
        session(strict, noise_seed=1, name="three")


def test_questions_from_several_threads_share_what_was_reserved(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = InMemory.batches

    def batches(own: InMemory, names: Any) -> Any:
        time.sleep(0.05)
        yield from slow(own, names)

    monkeypatch.setattr(InMemory, "batches", batches)
    with session(ledger, spend=0.1, questions=1) as ask, ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask.count, f"age > {age}") for age in (20, 30, 40, 50)]
        refused = [isinstance(one.exception(), BudgetExceededError) for one in asked]
        assert sum(refused) == 3
        assert len(ask.answers) == 1
        assert (ask._account.mu_squared <= ask._most()).all()


def test_a_session_is_not_copied(ledger: Ledger) -> None:
    with session(ledger, spend=0.1, questions=1) as ask:
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(InputError, match="spent twice"):
                copied(ask)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_forked_process_asks_nothing() -> None:
    ask = Statistics(FRAME, BUDGETS, schema=SCHEMA, questions=1)
    child = os.fork()
    if not child:
        try:
            ask.mean("age")
        except InputError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_left_beyond_the_reservation_is_never_entered_as_less(ledger: Ledger) -> None:
    ask = session(ledger, spend=0.1, questions=1)
    ask.mean("age")
    ask._left = 1.0  # as if something had gone wrong
    ask.mean("age", where="sex == 'F'")
    with pytest.raises(LedgerError, match="more than was reserved"):
        ask.close()


def test_where_nobody_says_how_much_half_is_spent_and_without_a_ledger_all(ledger: Ledger) -> None:
    for share_left in (0.5, 0.2):  # half of what is left, which is rounded down to tenths
        with Statistics(FRAME, BUDGETS, schema=SCHEMA, ledger=ledger, questions=1) as ask:
            ask.mean("age", weights="proportional")
        assert all(
            one.share_left == pytest.approx(share_left, abs=0.06) for one in ledger.standings()
        )
    alone = Statistics(FRAME, BUDGETS, schema=SCHEMA, questions=1)
    alone.mean("age", weights="proportional")
    for row in alone.privacy_.groups:
        assert row.epsilon_spent == pytest.approx(row.budget.epsilon, rel=1e-3)
