"""A session: budgets are kept, refusals change nothing, charges come first, bad input is told in a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from collegium import Budget, Policy, PrivacyWarning, Schema, Statistics
from collegium.accounting import BoundedRange
from collegium.errors import BudgetExceededError, InputError
from collegium.mechanisms import SeededNoise
from collegium.statistics.quantiles import range_for

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [17, 90], "bins": [17, 40, 65, 90], "missing": False},
        "income": {"kind": "number", "bounds": [0, 100], "step": 1, "missing": False},
        "sex": {"kind": "category", "categories": ["F", "M", "X"]},
        "smokes": {"kind": "flag", "missing": False},
        "name": {"kind": "text"},
    }
)
N = 900


def people(n: int = N, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(17, 91, n),
            "income": rng.gamma(4, 8, n).clip(0, 100),
            "sex": rng.choice(["F", "M"], n),
            "smokes": rng.random(n) < 0.3,
            "secret": "x",
        }
    )


def budgets(n: int = N) -> np.ndarray:
    return np.repeat([1.0, 2.0, 3.0], [n * 5 // 10, n * 4 // 10, n // 10])


def session(**how: Any) -> Statistics:
    return Statistics(people(), budgets(), schema=SCHEMA, **{"noise_seed": 3, **how})


QUESTIONS = (
    "count where age >= 40",
    "count by sex",
    "mean income",
    "mean income by sex where smokes",
    "sum income",
    "sum income where sex = 'F'",
    "var income",
    "std age by sex",
    "median age",
    "median income by sex where smokes",
    "quantile(0.9) income",
    "histogram age",
    "crosstab sex, smokes",
    "cov age, income",
    "corr age, income where smokes",
    "ridge income on age, smokes",
)


@pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_many_questions_stay_within_everybodys_budget(noise: str, neighbours: str) -> None:
    ask = session(noise=noise, neighbours=neighbours, questions=len(QUESTIONS))
    for question in QUESTIONS:
        answer = ask.ask(question)
        few = noise == "laplace" and (
            "by" in question or "where" in question
        )  # too few people to say
        assert answer.cells["value"].notna().any() or few, question
        # Each takes its part, whoever is heard most: in μ², or in ε.
        assert answer.paid["share"].max() == pytest.approx(1 / len(QUESTIONS), rel=1e-3), question
        assert (answer.paid["share"] <= (1 + 1e-12) / len(QUESTIONS)).all()
        assert (
            answer.represented["weight"].sum(),
            answer.represented["share"].sum(),
        ) == pytest.approx((1, 1))
        assert 1 <= answer.effective <= N * (1 + 1e-9)
        assert str(answer) and answer._repr_html_() and len(answer.to_frame()) == len(answer.cells)
        assert answer.to_dict()["question"] == str(answer.question)
    spent = ask.privacy_.by_group()
    assert (spent["epsilon_spent"] <= [1, 2, 3]).all()
    assert ask.left()["share_left"].max() == pytest.approx(0, abs=1e-9)
    before = ask.privacy_.to_dict()
    with pytest.raises(BudgetExceededError, match="nothing was asked or spent"):
        ask.mean("age")
    assert ask.privacy_.to_dict() == before
    assert len(ask.answers) == len(QUESTIONS)


def test_the_same_question_is_answered_from_the_record() -> None:
    ask = session(questions=1)
    first = ask.mean("income", where="age >= 40 and sex == 'F'")
    spent = ask.privacy_.to_dict()
    assert ask.ask("mean income where (sex = 'F') and (age >= 40)").question
    assert ask.mean("income", "age >= 40 and sex == 'F'") is first
    assert ask.privacy_.to_dict() == spent


def test_how_many_people_there_are_is_known_and_free() -> None:
    ask = session()
    assert (ask.count().value, ask.count().standard_error) == (N, 0.0)
    assert ask.left()["share_left"].eq(1).all()


def test_a_share_of_what_is_left() -> None:
    ask = session(spend=0.5)
    ask.mean("age", spend=0.5)
    assert ask.left()["share_left"].iloc[0] == pytest.approx(0.5)
    ask.mean("income", spend=1.0)
    assert (
        ask.answers[0].paid["share"].max(),
        ask.answers[1].paid["share"].max(),
    ) == pytest.approx((0.25, 0.25), rel=1e-5)
    with pytest.raises(BudgetExceededError):
        ask.median("age", spend=1.0)


def test_plans_spend_nothing_and_say_what_is_paid() -> None:
    ask = session()
    plan = ask.plan("mean income where age >= 40")
    assert not ask.answers and ask.left()["share_left"].eq(1).all()
    assert set(plan.predicted) == {"saturating", "proportional", "uniform"}
    assert plan.predicted["saturating"] <= min(plan.predicted.values()) * (1 + 1e-9)
    assert "chosen" in str(plan)
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("mean income where age >= 40", {}),
        ("mean income", {"calibrated": True}),
        ("median age by sex", {"weights": "uniform"}),
    )
    for question, how in asked:
        plan = ask.plan(question, **how)
        answer = ask.ask(question, **how)
        assert answer.paid["epsilon"].to_dict() == pytest.approx(dict(plan.epsilon), rel=1e-9)


class Watched(SeededNoise):
    """Noise that looks at the account whenever something is drawn."""

    __slots__ = ("ask", "seen")

    def __init__(self) -> None:
        super().__init__(1)
        self.seen: list[float] = []
        self.ask: Statistics | None = None

    def _look(self) -> None:
        assert self.ask is not None
        self.seen.append(float(self.ask._account.mu_squared.max()))

    def noised(self, *given: Any, **named: Any) -> Any:
        self._look()
        raise OSError("no randomness left")

    def words(self, *given: Any, **named: Any) -> Any:
        return self.noised()


@pytest.mark.parametrize(
    "question", ["mean income", "median income", "histogram age", "cov age, income"]
)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_what_is_drawn_was_charged_before(question: str, noise: str) -> None:
    ask = session(noise=noise)
    watched = Watched()
    watched.ask = ask
    ask._noise = watched
    with pytest.raises(OSError, match="randomness"):
        ask.ask(question)
    assert watched.seen and watched.seen[0] > 0
    assert ask.left()["share_left"].max() == pytest.approx(0.9)


def test_a_refusal_draws_nothing() -> None:
    ask = session(questions=1)
    ask.mean("age")
    watched = Watched()
    watched.ask = ask
    ask._noise = watched
    with pytest.raises(BudgetExceededError):
        ask.mean("income")
    assert not watched.seen


def bad(**how: Any) -> Statistics:
    return Statistics(**{"frame": people(), "budgets": budgets(), "schema": SCHEMA, **how})


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"schema": None}, "collegium schema init"),
        ({"schema": {"age": 1}}, "schema must be a collegium.Schema"),
        ({"budgets": [1.0, 2.0]}, "900"),
        ({"spend": 0.0}, "spend"),
        ({"spend": 1.5}, "spend"),
        ({"questions": 0}, "questions"),
        ({"noise": "none"}, "auto, gaussian, laplace"),
        ({"weights": "sample"}, "saturating, proportional, uniform"),
        ({"neighbours": "removed"}, "zero-out, replace-one"),
        ({"confidence": 1.0}, "confidence"),
        ({"frame": [1, 2]}, "give a DataFrame"),
        ({"ledger": "people.ledger"}, "Ledger"),
        ({"budgets": [0.0] * N}, "granted"),
    ],
)
def test_a_session_that_cannot_be(how: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        bad(**how)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "given", "named", "said"),
    [
        ("mean", ("incme",), {}, "income"),
        ("mean", ("secret",), {}, "no column 'secret'"),
        ("mean", ("sex",), {}, "sex"),
        ("mean", ("name",), {}, "name"),
        ("count", ("wealth > 3",), {}, "wealth"),
        ("count", ("age >",), {}, "age >"),
        ("count", ("sex = 'Q'",), {}, "Q"),
        ("quantile", ("age", 1.5), {}, "1.5"),
        ("histogram", ("name",), {}, "name"),
        ("ask", ("SELECT AVG(income) FROM people",), {}, "SQL"),
        ("ask", ("maximum income",), {}, "quantile"),
        ("mean", ("income",), {"spent": 0.1}, "no option"),
        ("mean", ("income",), {"spend": 2}, "spend"),
        ("mean", ("income",), {"weights": "best"}, "saturating"),
        ("median", ("income",), {"calibrated": True}, "calibrated"),
        ("mean", ("income",), {"by": "income"}, "bins"),
        ("cov", (["age", "sex"],), {}, "sex"),
        ("ridge", ("income", []), {}, "ridge"),
    ],
)
def test_questions_that_cannot_be_asked(
    method: str, given: tuple[Any, ...], named: Any, said: str
) -> None:
    ask = session()
    with pytest.raises(InputError, match=said) as caught:
        getattr(ask, method)(*given, **named)
    assert "\n" not in str(caught.value)
    assert ask.left()["share_left"].eq(1).all() and not ask.answers


def test_groups_without_public_keys_are_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match="bins"):
        session().groupby("income").mean("age")
    with pytest.raises(AttributeError, match="not 'cov'"):
        session().groupby("sex").cov(["age", "income"])


def test_a_closed_session_remembers_and_asks_no_more() -> None:
    with session() as ask:
        value = ask.mean("age").value
    assert ask.mean("age").value == value
    with pytest.raises(InputError, match="closed"):
        ask.mean("income")


def test_nobody_can_afford_it() -> None:
    with pytest.raises(InputError, match="spend more on fewer questions"):
        Statistics(people(), [1e-9] * N, schema=SCHEMA, noise="laplace").mean("age")


def test_odd_values_count_as_the_schema_says_and_nobody_is_told() -> None:
    frame = people().astype(object)
    frame.loc[:3, "income"] = [float("nan"), 1e300, -1e300, "n/a"]
    frame.loc[:1, "sex"] = ["unheard of", None]
    ask = Statistics(
        frame, [2.0**30] * N, schema=SCHEMA, noise="laplace", noise_seed=1, questions=9
    )
    clean = pd.to_numeric(frame["income"], errors="coerce").clip(0, 100)
    assert ask.sum("income", where="age >= 17").value == pytest.approx(clean.sum(), abs=0.1)
    found = ask.histogram("sex").value
    assert found.to_dict() == pytest.approx(
        {"X": 0, **frame["sex"].value_counts()[["F", "M"]]}, abs=0.01
    )
    means = ask.groupby("sex").mean("income")
    assert np.isnan(means.value["X"])  # nobody
    assert "too few people to say" in str(means)


def test_answers_without_noise_to_speak_of_are_right() -> None:
    frame = people()
    ask = Statistics(
        frame, [2.0**30] * N, schema=SCHEMA, noise="laplace", noise_seed=1, questions=20
    )
    some = frame[frame["smokes"]]
    close = {"rel": 2e-3, "abs": 2e-2}
    assert ask.mean("income").value == pytest.approx(frame["income"].mean(), **close)
    assert ask.mean("income", "smokes").value == pytest.approx(some["income"].mean(), **close)
    assert ask.var("income").value == pytest.approx(frame["income"].var(ddof=0), **close)
    assert ask.std("age", "smokes").value == pytest.approx(some["age"].std(ddof=0), **close)
    assert ask.median("age").value == pytest.approx(frame["age"].median(), abs=1)
    assert ask.quantile("age", 0.9).value == pytest.approx(frame["age"].quantile(0.9), abs=1)
    by = ask.groupby("sex").median("age").value
    assert by[["F", "M"]].to_dict() == pytest.approx(
        frame.groupby("sex")["age"].median().to_dict(), abs=1
    )
    table = ask.crosstab("sex", "smokes").value
    assert table["F", "yes"] == pytest.approx(
        ((frame["sex"] == "F") & frame["smokes"]).sum(), abs=0.1
    )
    found = ask.cov(["age", "income"]).value
    expected = np.cov(frame["age"], frame["income"], ddof=0)
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=0.05)
    slope = ask.ridge("income", ["age"], penalty=1e-3).value["value"]["age"]
    assert slope == pytest.approx(expected[0, 1] / expected[0, 0], abs=2e-3)


def test_weights_in_proportion_are_warned_of_where_they_lose() -> None:
    ask = session()
    with pytest.warns(PrivacyWarning, match="times the error of uniform"):
        answer = ask.mean("income", weights="proportional")
    assert any("leave weights out" in note for note in answer.notes)


def test_calibrated_answers_are_unbiased_where_budgets_go_with_the_data() -> None:
    frame = people(3000)
    eps = np.repeat([1.0, 3.0], 1500)
    frame.loc[1500:, "income"] = 90.0  # the generous are rich
    schema = Schema(
        {
            "income": {
                "kind": "number",
                "bounds": [0, 100],
                "mean": frame["income"].mean(),
                "missing": False,
            }
        }
    )
    ask = Statistics(frame, eps, schema=schema, noise_seed=4)
    with pytest.warns(PrivacyWarning, match="uniform"):
        weighted = ask.mean("income", weights="proportional")
    honest = ask.mean("income", calibrated=True)
    truth = frame["income"].mean()
    assert abs(weighted.value - truth) > 3 * weighted.standard_error
    assert abs(honest.value - truth) < 4 * honest.standard_error
    assert honest.groups is not None and honest.groups.attrs["p_same"] < 1e-6
    assert honest.groups["per_person"].to_list() == pytest.approx(
        [frame["income"][:1500].mean(), 90.0], abs=4 * float(honest.groups["standard_error"].max())
    )
    assert weighted.facts is not None and abs(weighted.facts["z"].iloc[0]) > 5
    assert any("calibrated=True" in note for note in weighted.notes)


def test_facts_from_few_public_records_have_an_error_of_their_own() -> None:
    """Public means of 100 records differ from those of others by their own chance, too: |z| < 4."""
    rng = np.random.default_rng(0)

    def drawn(n: int) -> pd.DataFrame:
        x, g = rng.normal(50, 10, n).clip(0, 100), rng.choice(["a", "b", "c"], n)
        return pd.DataFrame({"x": x, "f": rng.random(n) < 0.2, "g": g})

    drafted = Schema.from_public(drawn(100))
    whole = {name: {**drafted[name].said(), "missing": False} for name in drafted}
    schema = Schema(whole)  # of a sum, a fact is known only where nothing is missing
    exact = {
        name: {k: v for k, v in schema[name].said().items() if k != "known_from"} for name in schema
    }
    far: dict[bool, list[float]] = {}
    people = drawn(20_000)
    for known, one in ((True, schema), (False, Schema(exact))):
        ask = Statistics(people, 2.0, schema=one, noise_seed=1, questions=5)
        answers = [
            ask.mean("x"), ask.std("x"), ask.sum("x"), ask.histogram("f"), ask.histogram("g"),
        ]  # fmt: skip
        assert all(answer.facts is not None for answer in answers)
        far[known] = [
            float(answer.facts["z"].abs().max()) for answer in answers if answer.facts is not None
        ]
    assert max(far[True]) < 4 and max(far[False]) > 5
    assert all(own < other for own, other in zip(far[True], far[False], strict=True))


def test_who_granted_nothing_is_left_out_and_infinite_budgets_count_as_the_most_generous() -> None:
    frame = people()
    eps = budgets()
    eps[:100], eps[100:200] = 0.0, np.inf
    ask = Statistics(frame, eps, schema=SCHEMA, noise_seed=1)
    assert ask.count().value == N - 100
    answer = ask.mean("income")
    weights = (answer.represented["weight"] / answer.represented["share"]).to_dict()
    largest = max(weights.values())
    assert [name for name in weights if weights[name] == largest][-1:] and len(weights) == 4


def test_policies_and_columns() -> None:
    policy = Policy({"low": 1.0, "high": 3.0})
    frame = people()
    frame["level"] = np.where(budgets() > 1, "high", "low")
    one = Statistics(frame, policy, privacy="level", schema=SCHEMA, noise_seed=1).mean("age")
    two = Statistics(frame, policy.assign(frame["level"]), schema=SCHEMA, noise_seed=1).mean("age")
    assert one.value == two.value
    with pytest.raises(InputError, match="privacy"):
        Statistics(frame, policy, schema=SCHEMA)


def test_one_budget_for_all() -> None:
    answer = Statistics(people(), Budget(1.0), schema=SCHEMA, noise_seed=1).mean("age")
    assert answer.effective == pytest.approx(N)


def test_few_questions_have_laplace_noise_and_many_have_gaussian() -> None:
    kinds = [Statistics(people(), 1.0, schema=SCHEMA, questions=k).noise for k in (1, 4, 8, 100)]
    assert kinds == ["laplace", "laplace", "gaussian", "gaussian"]


def test_an_interval_for_others_like_these_is_wider() -> None:
    ask = session()
    one = ask.mean("income")
    (low, high), (lower, upper) = one.interval, one.population_interval
    assert lower < low < one.value < high < upper
    table = ask.groupby("sex").count()
    assert (table.population_interval["upper"] >= table.interval["upper"]).all()


def test_quantiles_are_within_their_intervals_often_enough() -> None:
    frame, hits = people(300), 0
    true = float(frame["age"].median())
    rng = np.random.default_rng(0)
    for seed in range(120):
        eps = rng.permutation(np.repeat([1.0, 2.0, 3.0], [160, 110, 30]))
        low, high = Statistics(frame, eps, schema=SCHEMA, noise_seed=seed).median("age").interval
        hits += low <= true <= high
    assert hits >= 106  # of 120: with 95 % fewer are found in one of 1,000 such tests


def test_what_is_expected_to_be_rare_is_heard_nearer_to_the_budgets():
    frame = pd.DataFrame({"ill": np.arange(1000) < 10})
    schema = Schema({"ill": {"kind": "flag", "missing": False}})
    budgets = np.repeat([0.01, 0.2, 1.0], [540, 370, 90])

    def weights(**how):
        ask = Statistics(frame, budgets, schema=schema, questions=1, noise_seed=0)
        return ask.count("ill", **how).represented["weight"].to_numpy()

    unknown, rare = weights(), weights(expected=0.01)
    assert rare[2] > 1.5 * unknown[2]
    assert np.allclose(weights(expected=0.5), unknown)
    schema = Schema(
        {"ill": {"kind": "flag", "mean": 0.01, "missing": False}}
    )  # what public records say
    assert np.allclose(weights(), rare)
    with pytest.raises(InputError, match="expected must be"):
        weights(expected=2)


@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
def test_people_who_grant_everything_are_answered_nearly_exactly() -> None:
    frame = people()
    ask = Statistics(frame, np.inf, schema=SCHEMA, noise="gaussian", noise_seed=1, questions=5)
    assert ask.median("age").value == pytest.approx(frame["age"].median(), abs=1)
    assert ask.mean("income").value == pytest.approx(frame["income"].mean(), abs=0.01)


@pytest.mark.parametrize("price", [1e-6, 0.01, 0.5, 3.0, 20.0])
def test_the_range_that_a_price_buys_costs_no_more(price: float) -> None:
    eta = range_for(np.array([price]), laplace=False)
    cost = float(BoundedRange(eta).mu_squared[0]) ** 0.5
    assert price * (1 - 1e-6) < cost <= price


def test_noise_is_not_taken_for_an_answer():
    frame = pd.DataFrame({"age": [30, 40, 50, 60, 70], "sex": ["F", "M", "F", "M", "F"]})
    schema = Schema(
        {
            "age": {"kind": "whole", "bounds": [18, 90], "missing": False},
            "sex": {"kind": "category", "categories": ["F", "M"]},
        }
    )
    few = Statistics(frame, 0.1, schema=schema, noise_seed=3)
    for answer in (few.mean("age"), few.std("age"), few.median("age"), few.count("sex == 'F'")):
        nothing = np.isnan(answer.value) or "this value tells nothing" in " ".join(answer.notes)
        assert nothing, answer
        assert "nothing:" in str(answer) or "too few" in str(answer)
    assert "2 of 2 values tell nothing" in " ".join(few.histogram("sex").notes)
    many = pd.concat([frame] * 2000, ignore_index=True)
    assert not Statistics(many, 1.0, schema=schema, noise_seed=3).mean("age").notes


def test_how_many_rows_people_have_is_not_taken_from_how_many_people_there_are() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(5, 1, 1600).round(2), "g": rng.choice(["a", "b"], 1600)})
    columns: dict[str, dict[str, Any]] = {
        "x": {"kind": "number", "bounds": [0, 10], "mean": 5.0, "sd": 1.0, "missing": False},
        "g": {"kind": "category", "categories": ["a", "b"], "shares": {"a": 0.5, "b": 0.5}},
    }
    for most, owners, compared in ((4, np.arange(1600) // 4, False), (1, np.arange(1600), True)):
        schema = Schema(columns, rows_per_owner=most)
        given = rows.assign(who=owners, level="all")
        policy = Policy({"all": 1.0}, delta=1e-5)
        ask = Statistics(given, policy, privacy="level", owner="who", schema=schema, noise_seed=1)
        assert ask.mean("x").facts is not None
        assert (ask.sum("x").facts is not None) is compared
        assert (ask.histogram("g").facts is not None) is compared


def test_a_column_of_too_many_steps_is_named() -> None:
    schema = Schema(
        {"cost": {"kind": "number", "bounds": [0, 20000], "step": 0.01, "missing": False}}
    )
    ask = Statistics(pd.DataFrame({"cost": np.ones(50)}), 1.0, schema=schema)
    with pytest.raises(InputError, match=r"^column 'cost' has 2,000,001 steps"):
        ask.median("cost")
    assert ask.left()["share_left"].eq(1).all()


def test_a_plan_says_what_is_free():
    people = pd.DataFrame({"age": [30, 40, 50, 60] * 50})
    ask = Statistics(people, [1.0, 2.0] * 100, schema=SCHEMA)
    assert str(ask.plan("count")) == "count: public, so it is free"
    assert "of each person's budget at most" in str(ask.plan("mean age"))
    ask.mean("age")
    again = ask.plan("mean age")
    assert str(again) == "mean age: answered before, so it is free"
    assert again.epsilon == {"ε=1": 0.0, "ε=2": 0.0}
    assert ask.plan("mean age", weights="uniform").free == ""
