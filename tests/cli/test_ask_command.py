"""Questions from the command line: what is printed, kept and entered, and what is refused."""

import json
import re

import numpy as np
import pandas as pd
import pytest

SCHEMA = """
[columns.age]
kind = "whole"
bounds = [17, 90]
bins = [17, 40, 65, 90]
[columns.sex]
kind = "category"
categories = ["F", "M"]
[columns.income]
kind = "number"
bounds = [0, 100_000]
missing = true
[columns.remark]
kind = "text"
"""
LEVELS = ["--privacy", "level", "--levels", "high=1,low=3"]
N = 900


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asked")
    random = np.random.default_rng(1)
    people = pd.DataFrame(
        {
            "id": [f"p{number % 600}" for number in range(N)],
            "age": random.integers(10, 95, N),
            "sex": random.choice(["F", "M", "secret-word"], N, p=[0.5, 0.4, 0.1]),
            "income": random.normal(40_000, 10_000, N).round(2),
            "remark": "private-remark",
            "level": ["high" if number % 600 < 300 else "low" for number in range(N)],
        }
    )
    people["epsilon"] = people["level"].map({"high": 1.0, "low": 3.0})
    people.to_csv(folder / "people.csv", index=False)
    people.to_parquet(folder / "people.parquet", index=False)
    comma = people.assign(income=[f"{value:.2f}".replace(".", ",") for value in people["income"]])
    comma.to_csv(folder / "comma.csv", index=False, sep=";")
    (folder / "schema.toml").write_text(SCHEMA)
    return folder


@pytest.fixture
def ask(collegium, folder):
    def call(*arguments, table="people.csv", levels=LEVELS, code=0):
        given = ["ask", folder / table, "--schema", folder / "schema.toml", *levels, *arguments]
        found, printed, errors = collegium(*given)
        assert found == code, (printed, errors)
        assert not any(word in printed + errors for word in ("secret-word", "private-remark"))
        return printed, errors

    return call


@pytest.fixture
def answers(ask):
    def call(*arguments, **how):
        return json.loads(ask(*arguments, "--json", **how)[0])

    return call


def test_answers_are_printed_with_who_is_heard_and_what_was_paid(ask):
    printed, _ = ask(
        "mean income by sex where age >= 40", "median(age)", "mean(income) where age>39.0 by sex"
    )
    lines = printed.splitlines()
    assert lines[0] == "mean income by sex where age >= 40:"
    assert re.match(r"  F: [\d,.-]+ ± [\d,.]+ \(95%: .* to .*\)", lines[1])
    assert sum("median age:" in line for line in lines) == 1
    assert printed.count("mean income by sex") == 1  # asked twice, answered once
    row = next(line.split() for line in lines if line.split()[:1] == ["high"])
    assert row[1:4] == ["600", "66.7", "%"]
    assert row[-2:] == ["100.0", "%"]  # all is used


def test_the_whole_share_is_used_and_no_more(answers):
    asked = ["count", "mean income", "median age", "--spend", 0.25, "--noise", "laplace"]
    found = answers(*asked)["privacy"]["groups"]
    spent = {row["group"]: row["epsilon_spent"] for row in found}
    assert spent["high"] == pytest.approx(0.25, rel=1e-6)
    assert spent["low"] <= 0.75 * (1 + 1e-9)


def test_a_record_answers_again_for_free_and_without_the_table(ask, answers, folder, tmp_path):
    record = tmp_path / "record.json"
    first = answers("mean income", "--record", record)
    (kept,) = json.loads(record.read_text())["answers"]
    assert kept["question"] == "mean income"
    again = answers("mean(income)", "--record", record, levels=[])  # nothing granted is even read
    assert again["privacy"] is None
    assert again["answers"][0]["cells"] == first["answers"][0]["cells"]
    assert [one["from_record"] for one in (*first["answers"], *again["answers"])] == [False, True]
    printed, _ = ask("mean income", "count where age >= 40", "--record", record)
    assert "answered before, and free" in printed
    assert "neighbours: one record is there or left blank" in " ".join(printed.split())
    assert len(json.loads(record.read_text())["answers"]) == 2
    uniform = answers("mean income", "--record", record, "--weights", "uniform")
    assert uniform["answers"][0]["from_record"] is False
    seeded = answers("mean income", "--record", record, "--noise-seed", 1)
    assert seeded["answers"][0]["from_record"] is False  # an answer without privacy is another one
    before = record.read_bytes()
    _, errors = ask("mean income", "--record", record, table="people.parquet", code=2)
    assert "holds answers about 'people.csv'" in errors
    other = tmp_path / "schema.toml"
    other.write_text(SCHEMA.replace("100_000", "90_000"))
    _, errors = ask("mean income", "--record", record, "--schema", other, code=2)
    assert "answers under another schema" in errors
    assert record.read_bytes() == before
    record.write_text("{")
    assert "is damaged" in ask("mean income", "--record", record, code=2)[1]


def test_every_kind_of_file_and_of_budgets_says_the_same(answers):
    seeded = ["mean income by sex where age >= 40", "--noise-seed", 7]
    expected = answers(*seeded)["answers"][0]["cells"]
    epsilons = ["--privacy", "epsilon"]
    for table, levels in (
        ("people.parquet", LEVELS),
        ("people.csv", epsilons),
        ("people.parquet", epsilons),
    ):
        assert answers(*seeded, table=table, levels=levels)["answers"][0]["cells"] == expected
    comma = answers(*seeded, "--decimal", ",", table="comma.csv")
    assert comma["answers"][0]["cells"] == expected
    assert comma["privacy"]["private_noise"] is False


def test_a_plan_spends_nothing_and_says_what_each_rule_would_give(ask, answers, folder):
    printed, _ = ask("mean income where age >= 40", "--plan")
    assert (
        "saturating" in printed and "(chosen)" in printed and "each person pays at most" in printed
    )
    (plan,) = answers("mean income", "--plan")["plans"]
    assert set(plan["predicted"]) == {"saturating", "proportional", "uniform"}
    ask("mean income", "--plan", "--owner", "id")
    assert not (folder / "people.ledger").exists()


def test_a_ledger_remembers_and_the_next_question_has_what_is_left(
    ask, answers, collegium, folder, tmp_path
):
    place = tmp_path / "people.ledger"
    on_it = ["--owner", "id", "--ledger", place]
    assert "say with --spend" in ask("mean income", *on_it, code=2)[1]
    assert not place.exists()
    collegium("ledger", "init", place)
    fresh = answers("mean income", *on_it, "--plan")["plans"][0]["epsilon"]
    assert fresh["high"] == pytest.approx(1.0, abs=0.02)
    printed, _ = ask("mean income", *on_it, "--spend", 0.5)
    assert "Entered in the ledger" in printed
    high = next(line for line in printed.splitlines() if line.split()[:1] == ["high"])
    assert high.split()[1] == "300"  # people, not rows
    _, shown, _ = collegium("ledger", "show", place, "--json")
    assert json.loads(shown)["reservations"] == []
    before = json.loads(shown)["standings"]
    left = answers("mean income", *on_it, "--plan")["plans"][0]["epsilon"]
    assert 0 < max(left.values()) < 0.8 * max(fresh.values())
    ask("mean incme", *on_it, "--spend", 0.5, code=2)
    assert json.loads(collegium("ledger", "show", place, "--json")[1])["standings"] == before
    ask("median age", *on_it, "--spend", 1.0, table="people.parquet")
    printed, errors = ask("median age", *on_it, "--spend", 1.0)
    assert "300 of 600 owners have nothing left in the ledger" in errors
    assert not [line for line in printed.splitlines() if line.split()[:1] == ["high"]]
    others = pd.read_csv(folder / "people.csv")
    others.assign(id="q" + others["id"]).to_csv(tmp_path / "others.csv", index=False)
    asked = ["mean income", *on_it, "--spend", 0.5]
    _, errors = ask(*asked, table=tmp_path / "others.csv", code=2)
    assert "let them join first" in errors
    ask(*asked, "--newcomers", table=tmp_path / "others.csv")
    _, errors = ask("mean income", "--ledger", place, "--spend", 0.5, code=2)
    assert "no ledger can remember this: nobody is named" in errors


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["SELECT AVG(income) FROM people WHERE age > 39"],
            "ask instead: mean income where age >= 40",
        ),
        (["mean incme"], "did you mean 'income'?"),
        (["count where sex == 'X'"], "no category 'X' in the schema: allowed are F, M"),
        (["mean age by income"], "groups must be public"),
        (["count where remark == 'x'"], "is text in the schema"),
        (
            ["count", "--privacy", "levle"],
            "has no column 'levle', which --privacy names: did you mean 'level'?",
        ),
        (["count", "--owner", "name"], "which --owner names"),
        (["count", "--epsilon", "1"], "--epsilon is everybody's"),
        (["count", "--policy", "policy.toml"], "give one of them"),
        (["mean age", "--spend", "2"], "spend must"),
        (["mean age", "--weights", "equal"], "weights must be one of"),
        (["mean age", "--noise", "uniform"], "noise must be one of"),
        (["mean age", "--levels", "high=1"], "privacy level that the policy does not know"),
        (
            ["mean age", "--privacy", "level", "--levels", "numbers"],
            "have text in 'level', where ε is expected",
        ),
        (["mean age", "--decimal", ";"], "decimal must be one of"),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_is_spent(ask, tmp_path, arguments, says):
    printed, errors = ask(*arguments, "--record", tmp_path / "record.json", code=2)
    assert not printed
    (line,) = [line for line in errors.splitlines() if not line.startswith("warning: ")]
    assert line.startswith("error: ") and says in line
    assert not (tmp_path / "record.json").exists()


def test_what_people_granted_must_be_said_and_schemas_and_tables_be_there(ask, collegium, folder):
    assert "it is not said what people granted" in ask("mean age", levels=[], code=2)[1]
    printed, _ = ask("mean age", "--epsilon", 2, levels=[])
    assert " 2 " in printed
    assert "does not exist" in ask("mean age", table="none.csv", code=2)[1]
    _, _, errors = collegium(
        "ask", folder / "people.csv", "mean age", "--schema", folder / "none.toml"
    )
    assert "collegium schema init PUBLIC.csv --out" in errors


def test_answers_are_written_where_nothing_is(ask, tmp_path):
    path = tmp_path / "answers.json"
    ask("mean age", "--out", path, "-q")
    content = json.loads(path.read_text())
    assert content["answers"][0]["question"] == "mean age"
    assert content["privacy"]["groups"][0]["group"] == "high"
    assert "exists already" in ask("mean age", "--out", path, code=2)[1]
    printed, _ = ask("mean age", "--quiet")
    assert len(printed.splitlines()) == 1
