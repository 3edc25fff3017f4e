"""Two rounds: what they may cost, that adding them up loses nothing, and that answers are as good as said."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium import Schema, Statistics
from collegium.accounting import gdp_epsilon, gdp_mu
from collegium.noise.sums import NoisySum
from collegium.statistics.answering import Question
from collegium.statistics.estimates import Estimate, Heard
from collegium.statistics.language import parse_question
from collegium.statistics.rounds import FIRST, SPREAD_IN_FIRST, Rounds
from collegium.weighted_sums.sums import Sums
from collegium.weighted_sums.weighing import Weighing
from collegium.weighted_sums.weights import errors_of, weights_of

WORST = 0.25
GROUPS = st.integers(2, 5).flatmap(
    lambda k: st.tuples(
        st.lists(st.floats(0.02, 8.0), min_size=k, max_size=k),
        st.lists(st.integers(1, 3000), min_size=k, max_size=k),
        st.floats(1e-4, WORST),
        st.sampled_from([0.0, SPREAD_IN_FIRST]),
        st.sampled_from([(1.0, 1.0), (math.sqrt(2), 1.0), (2.0, 2.0)]),
    )
)
Case = tuple[list[float], list[int], float, float, tuple[float, float]]


def planned(case: Case) -> tuple[Rounds | None, np.ndarray, np.ndarray]:
    bounds, sizes, _, spread, diameters = case
    b, n = np.array(bounds), np.array(sizes)
    return Rounds.of(b, n, 1.0, WORST, diameters, spread), b, n


def found(case: Case, rounds: Rounds, spread_variance: float) -> Estimate:
    """What a first round says that is right: noise as it is there, and this spread."""
    n = np.array(case[1])
    noise = 1 / (rounds.gain[0] * float(n @ rounds.first) ** 2)
    return Estimate(0.5, noise, 0.0, spread_variance / n.sum(), 0.0, 1.0)


@given(GROUPS)
def test_nobody_pays_more_than_their_price(case: Case) -> None:
    rounds, b, n = planned(case)
    if rounds is None:
        return
    most = rounds.paid_first**2 + rounds.paid_second**2
    assert (most <= b * b * (1 + 1e-12)).all()
    for spread in (1e-9, case[2], WORST):
        paid = rounds.second(n, [found(case, rounds, spread)], math.inf)
        assert (paid >= 0).all() and (paid <= rounds.paid_second * (1 + 1e-12)).all()
    nothing = rounds.second(n, [], math.inf)  # nobody says anything: weights as for noise alone
    close = rounds.first == b
    np.testing.assert_allclose(nothing[close], rounds.paid_second[close], rtol=1e-9)


@given(GROUPS)
def test_both_rounds_together_are_one_with_the_best_weights(case: Case) -> None:
    """All min(b, τ) are reached, with the noise of one round at the whole price of both."""
    rounds, b, n = planned(case)
    if rounds is None:
        return
    *_, spread, share, diameters = case
    paid = rounds.paid_first, rounds.second(n, [found(case, rounds, spread)], math.inf)
    weighings = [
        Weighing(np.rint(one * 2**40).astype(np.int64), d * 2.0**20, False, 1)
        for one, d in zip(paid, diameters, strict=True)  # on a fine grid
    ]
    heard = Heard.of(weighings[0], n, 0.95, share), Heard.of(weighings[1], n, 0.95)
    nothing = np.zeros((1, 1)), np.zeros((1, 1))
    weights = weighings[0].weights, weighings[1].weights
    whole, own, _ = rounds.together(n, heard, weights, nothing)
    gain = FIRST * (1 - share) / diameters[0] ** 2 + (1 - FIRST) / diameters[1] ** 2
    assert sum(rounds.gain) == pytest.approx(gain)
    best = weights_of("saturating", b, n, 1 / gain, spread)
    assert whole.noise == 1.0 and whole.total == pytest.approx(float(n @ own))
    one = errors_of(np.maximum(own, 1e-300), n, 1.0, spread)
    least = errors_of(best, n, 1 / gain, spread)
    # Exactly, but for those with b > c, who weigh at most b - β·(b - c).
    reached = np.minimum(best, b - rounds.share * (b - rounds.first))
    np.testing.assert_allclose(own / math.sqrt(gain), reached, rtol=1e-6)
    assert one.table < (1 + 1e-6 if (reached == best).all() else 1.15) * least.table


def test_the_price_of_measuring_is_little() -> None:
    b, n = np.array([0.3, 2.0]), np.array([500, 500])
    with_spread = Rounds.of(b, n, 1.0, WORST, (1.0, 1.0), SPREAD_IN_FIRST)
    without = Rounds.of(b, n, 1.0, WORST, (1.0, 1.0), 0.0)
    assert with_spread is not None and without is not None
    assert sum(without.gain) == pytest.approx(1.0)
    assert sum(with_spread.gain) > 0.97 - 1e-12  # of the noise 1.5 %


N = 1000
pytestmark = pytest.mark.filterwarnings("ignore:weights in proportion")
SIZES = [540, 370, 90]
SCHEMA = Schema(
    {
        "x": {"kind": "number", "bounds": [0, 1], "missing": False},
        "known": {"kind": "number", "bounds": [0, 1], "sd": 0.1, "missing": False},
        "rare": {"kind": "flag", "missing": False},
        "g": {"kind": "category", "categories": ["a", "b"]},
    }
)


def session(levels: tuple[float, ...], times: int = 1, **how: object) -> Statistics:
    """1,000 people, of whom 10 are rare, each question at the price of these ε."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.beta(1, 8, N), "rare": np.arange(N) < 10})
    frame["known"], frame["g"] = frame["x"], rng.choice(["a", "b"], N)
    prices = [float(gdp_epsilon(gdp_mu(one, 1e-5) * times**0.5, 1e-5)) for one in levels]
    budgets = np.repeat(prices, SIZES)
    settings = {"noise": "gaussian", "questions": times, "noise_seed": 1, **how}
    return Statistics(frame, budgets, schema=SCHEMA, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "settings", "options", "rounds"),
    [
        ("mean x", {}, {}, 2),
        ("sum x where rare", {}, {}, 2),
        ("count where rare", {}, {}, 2),
        ("histogram g", {}, {}, 2),
        ("mean known", {}, {}, 1),  # its spread is public
        ("count where rare", {}, {"expected": 0.01}, 1),
        ("mean x", {"weights": "uniform"}, {}, 1),
        ("mean x", {"noise": "laplace"}, {}, 1),
        ("mean x", {}, {"calibrated": True}, 3),  # the stairs of three levels
        ("var x", {}, {}, 2),
        ("cov x, known", {}, {}, 1),
    ],
)
def test_where_there_are_two_rounds(
    question: str, settings: dict[str, object], options: dict[str, object], rounds: int
) -> None:
    ask = session((1, 2, 3), **settings)
    plan = ask.plan(question, **options)
    answer = ask.ask(question, **options)
    events = [one for event in ask._charged for one in getattr(event, "events", [event])]
    assert len(events) == rounds
    for group, row in answer.paid.iterrows():  # what it cost is at most what was said before
        assert row["epsilon"] <= plan.epsilon[str(group)] * (1 + 1e-9)
    if question == "mean x" and rounds == 2:
        # The spread is small, so that weights are nearly proportional: an answer of one round, at a quarter
        # as the largest possible spread, hears them much more evenly.
        people = answer.represented["weight"] / answer.represented["people"]
        evenly = weights_of("saturating", ask._prices(1.0), SIZES, 1 / 4, 1 / 4)
        assert people.max() / people.min() > 1.2 * evenly.max() / evenly.min()


def test_answers_are_better_than_with_either_other_rule_and_intervals_hold() -> None:
    """200 answers to each: a coverage is off by 6.2 points, four standard errors, once in 16,000.

    Errors are found to 5 %. That weights are the best there are is computed, not drawn, above; here a
    mistake in putting two rounds together shows, which costs far more.
    """
    times = 200
    for question, truth, worse in (("mean x", None, 1.0), ("count where rare", 10.0, 1.2)):
        errors = {}
        for rule in ("saturating", "proportional", "uniform"):
            ask = session((1, 2, 3), times, weights=rule)
            table = ask._table
            exact = float(table._frame["x"].mean()) if truth is None else truth  # type: ignore[attr-defined]
            rng, within, squares = np.random.default_rng(0), 0, []
            for _ in range(times):
                table._group = rng.permutation(table._group)  # type: ignore[attr-defined]
                ask._record.clear()
                row = ask.ask(question).cells.iloc[0]
                within += row["lower"] <= exact <= row["upper"]
                squares.append((row["value"] - exact) ** 2)
            errors[rule] = math.sqrt(np.mean(squares))
            if rule == "saturating":
                assert within / times > 0.95 - 0.062
        assert errors["saturating"] < min(errors["proportional"], errors["uniform"]) * 1.03, (
            question
        )
        assert errors["uniform"] > worse * errors["saturating"]


@pytest.mark.parametrize(
    ("question", "mu", "sizes", "ones", "times"),
    [
        ("count where f", (0.019, 0.084, 4.013), (2, 42, 14), 3, 500),
        ("mean f", (0.1026, 1.4704), (109, 50), 2, 300),
        ("mean x", (0.0339, 2.1513, 2.6317), (655, 5, 38), 7, 300),
        ("mean x", (0.0067, 0.0207, 0.1966, 4.0132), (8, 23, 292, 714), 1, 300),
    ],
)
def test_intervals_hold_where_few_decide_and_the_first_round_hears_of_little(
    question: str, mu: tuple[float, ...], sizes: tuple[int, ...], ones: int, times: int
) -> None:
    """Of 500 or 300 answers 97 % or more hold: fewer than 92 % are then found once in 10⁷ or 50,000 times.

    Weights follow a spread that is found to be small where the ones are not heard, and then an interval that
    takes the same spread for granted holds the truth in 89, 84, 77 and 73 %: that goes unnoticed once in 90,
    once in 70,000, and practically never.
    """
    n = sum(sizes)
    f = np.arange(n) < ones
    prices = [float(gdp_epsilon(one * times**0.5, 1e-5)) for one in mu]
    schema = Schema(
        {
            "f": {"kind": "flag", "missing": False},
            "x": {"kind": "number", "bounds": [0, 1], "missing": False},
        }
    )
    frame = pd.DataFrame({"f": f, "x": f.astype(float)})
    ask = Statistics(
        frame,
        np.repeat(prices, sizes),
        schema=schema,
        noise="gaussian",
        questions=times,
        noise_seed=1,
    )
    rng, within, truth = np.random.default_rng(1), 0, ones if "count" in question else ones / n
    for _ in range(times):
        ask._table._group = rng.permutation(ask._table._group)  # type: ignore[attr-defined]
        ask._record.clear()
        answer = ask.ask(question)
        within += answer.interval[0] <= truth <= answer.interval[1]
    assert "two rounds" in answer.how
    assert within / times > 0.92


def test_who_is_not_heard_beside_the_most_generous_is_in_one_round() -> None:
    # Of a spread as large as what is noised lets be, a second round that leaves out who is heard enough
    # already would be of nobody: after the first one was paid for.
    b, n = np.array([1e-4, 2000.0]), np.array([300_000, 1])
    assert Rounds.of(b, n, 4.0, 0.5, (1.0, 1.0), SPREAD_IN_FIRST) is None
    b[1] = 50.0
    rounds = Rounds.of(b, n, 4.0, 0.5, (1.0, 1.0), SPREAD_IN_FIRST)
    assert rounds is not None
    second = rounds.second(n, [Estimate(0.5, 1e-9, 0.0, 1.0, 0.0, 1.0)], math.inf)
    assert second[0] > 0 and second[1] == 0


def test_a_question_interrupted_between_rounds_pays_for_what_was_drawn_and_noise_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask, drawn, noisy = session((1, 2, 3), 3), [], Sums.noisy

    def interrupted(self: Sums, noise: NoisySum, query: int, purpose: str) -> np.ndarray:
        drawn.append((query, purpose))
        if len(drawn) == 1:
            monkeypatch.setattr(Rounds, "second", stop)
        return noisy(self, noise, query, purpose)

    def stop(*_: object) -> np.ndarray:
        raise KeyboardInterrupt

    second = Rounds.second
    monkeypatch.setattr(Sums, "noisy", interrupted)
    first = ask._events(Question(parse_question("mean x", SCHEMA), "saturating"), 1 / 3)[0]
    with pytest.raises(KeyboardInterrupt):
        ask.mean("x")
    np.testing.assert_allclose(ask._account.mu_squared, first.mu_squared, rtol=1e-12)
    assert ask.left()["share_left"].tolist() == pytest.approx([2 / 3] * 3)
    monkeypatch.setattr(Rounds, "second", second)
    ask.mean("x")
    ask.count("rare")
    assert len(drawn) == len(set(drawn)) == 5
    assert "3 questions" in ask.privacy_.released
