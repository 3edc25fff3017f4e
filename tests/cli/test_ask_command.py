"""Questions from the command line: what is printed, kept and entered, and what is refused."""

import errno
import json
import re
import signal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from collegium import Ledger, Schema, Statistics
from collegium.cli import answer_record
from collegium.cli.query_session import SessionProgress
from collegium.errors import InputError
from collegium.ledger.places import Place

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
    assert lines[0] == "mean income by sex where age >= 40 (± standard error; 95 % interval):"
    assert re.match(
        r"  F: [\d,.-]+ ± [\d,.]+ \([\d,.]+ to [\d,.]+; of [\d,.]+ ± [\d,.]+ rows that could be read\)",
        lines[1],
    )
    assert sum("median age:" in line for line in lines) == 1
    assert printed.count("mean income by sex") == 1  # asked twice, answered once
    row = next(line.split() for line in lines if line.split()[:1] == ["high"])
    assert row[1:4] == ["600", "66.7", "%"]
    assert row[-2:] == ["100", "%"]  # all is used
    # Each answer says what it costs, in shares that add up to that.
    prices = [
        float(found[1])
        for found in re.finditer(r"price: ([\d.]+) % of the budget of each person of high", printed)
    ]
    assert sum(prices) == pytest.approx(100, abs=1)


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
    assert "answered before, so it is free" in printed
    assert "Protected: everything in one row. Not hidden: who took part" in " ".join(
        printed.split()
    )
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
    assert "saturating" in printed and "(chosen)" in printed and "of low at most" in printed
    (plan,) = answers("mean income", "--plan")["plans"]
    assert set(plan["predicted"]) == {"saturating", "proportional", "uniform"}
    ask("mean income", "--plan", "--owner", "id")
    assert not (folder / "people.ledger").exists()


def test_a_ledger_remembers_and_the_next_question_has_what_is_left(
    ask, answers, collegium, folder, tmp_path
):
    place = tmp_path / "people.ledger"
    on_it = ["--owner", "id", "--ledger", place]
    assert "--spend is missing" in ask("mean income", *on_it, code=2)[1]
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
    assert "300 of 600 people take no part" in errors
    assert "of the 300 people who still take part; 300 have nothing left (high: 300)" in printed
    assert not [line for line in printed.splitlines() if line.split()[:1] == ["high"]]
    others = pd.read_csv(folder / "people.csv")
    others.assign(id="q" + others["id"]).to_csv(tmp_path / "others.csv", index=False)
    asked = ["mean income", *on_it, "--spend", 0.5]
    _, errors = ask(*asked, table=tmp_path / "others.csv", code=2)
    assert "(--allow-new-people)" in errors and "allow_new_people" not in errors
    ask(*asked, "--allow-new-people", table=tmp_path / "others.csv")
    _, errors = ask("mean income", "--ledger", place, "--spend", 0.5, code=2)
    assert "cannot remember this one: nobody is named" in errors


def test_a_ledger_knows_a_question_again_and_a_record_keeps_it_from_being_charged(
    ask, answers, collegium, tmp_path
):
    place, record = tmp_path / "people.ledger", tmp_path / "record.json"
    collegium("ledger", "init", place)
    on_it = ["--owner", "id", "--ledger", place, "--spend", 0.1]
    printed, errors = ask("mean income", *on_it)
    assert "with --record FILE" in printed and "already" not in errors
    _, errors = ask("median age", *on_it, "--record", record)
    assert "already" not in errors
    printed, errors = ask("mean(income)", *on_it)
    assert "has 1 release(s) of this name already (people.csv: mean income)" in errors
    _, errors = ask("mean income", *on_it, "--plan")
    assert "has 2 release(s) of this name already" in errors
    before = collegium("ledger", "show", place, "--json")[1]
    printed, errors = ask("median age", *on_it, "--record", record)
    assert "answered before, so it is free" in printed and "charged again" not in printed + errors
    assert collegium("ledger", "show", place, "--json")[1] == before
    assert "people.csv: mean income" in collegium("receipt", "p1", "--ledger", place)[1]


def test_a_bare_count_is_free_and_takes_no_part_of_what_others_pay(ask, answers, tmp_path):
    planned = answers("count", "mean income", "--plan")["plans"]
    assert [one["free"] for one in planned] == ["public", ""]
    assert planned[1]["epsilon"]["high"] == pytest.approx(1.0, rel=1e-6)
    assert not any(planned[0]["epsilon"].values())
    assert "count: public, so it is free" in ask("count", "--plan")[0].splitlines()
    place = tmp_path / "people.ledger"
    printed, _ = ask("count", "--owner", "id", "--ledger", place)  # no --spend: none is needed
    assert (
        "count: 600 people (public, and exact)" in printed
        and "paid" not in printed
        and not place.exists()
    )
    record = ["--record", tmp_path / "record.json"]
    ask("count", "mean income", *record)
    printed, _ = ask("mean income", "median age", "--plan", *record)
    assert "mean income: answered before, so it is free" in printed.splitlines()
    assert "median age: laplace noise" in printed  # alone: Laplace noise is smaller
    assert answers("count", "--plan", *record) == {"plans": [], "from_record": ["count"]}


@pytest.mark.parametrize("on_ledger", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_ctrl_c_says_what_is_paid_for_and_what_is_kept(
    collegium, folder, tmp_path, monkeypatch, on_ledger, recorded
):
    place, record = tmp_path / "people.ledger", tmp_path / "record.json"
    collegium("ledger", "init", place)
    owned = ["--owner", "id", "--spend", 0.5, "--ledger", place if on_ledger else "none"]
    call = ["ask", folder / "people.csv", "--schema", folder / "schema.toml", *LEVELS, *owned]
    call += ["mean age", "mean income"] + ["--record", record] * recorded
    whole = Statistics.ask

    def said_at(which):
        def pressed(session, question, **how):
            if str(question) == which:
                signal.raise_signal(signal.SIGINT)
            return whole(session, question, **how)

        with monkeypatch.context() as patch:
            patch.setattr(Statistics, "ask", pressed)
            code, printed, errors = collegium(*call)
        lines = [line for line in errors.splitlines() if line.startswith("interrupted: ")]
        assert code == 130 and len(lines) == 1
        assert ("mean age: " in printed) == (which != "mean age") and "mean income" not in printed
        return lines[0].removeprefix("interrupted: ")

    assert said_at("mean age") == "nothing was paid for; the same command begins anew"
    said = said_at("mean income")
    ledger = f"what was asked is charged in the ledger {place}, and nothing more; "
    nobody = "what was asked is paid for, and nobody remembers it; "
    assert said.startswith(ledger if on_ledger else nobody)
    kept = f"1 answer(s) are in {record}: the same command gives them for free, and is charged for the rest"
    lost = "the answers above are all that came, and not kept: the same command asks, and is charged for, "
    assert said.endswith(kept if recorded else f"{lost}everything anew")
    if on_ledger:
        releases = Ledger(place).contents().releases.values()
        assert [one.is_settled for one in releases] == [True, True]
        assert [any(cost.mu_squared for cost in one.costs) for one in releases] == [False, True]


def test_ctrl_c_twice_counts_all_that_was_set_aside_as_spent(tmp_path):
    place = Place(str(tmp_path / "people.ledger"))
    session = SimpleNamespace(left=lambda: pd.DataFrame({"share_left": [1.0]}), answers=[])
    standing = SessionProgress(None, place, begins=True, session=session)
    assert "nothing was paid for" in standing.in_words(in_order=True)
    for said in (
        standing.in_words(in_order=False),
        SessionProgress(None, place, True).in_words(True),
    ):
        assert f"may count as spent in the ledger {place}" in said


def test_what_is_paid_for_is_shown_where_it_cannot_be_kept(ask, tmp_path, monkeypatch):
    for option in ("--record", "--out"):
        _, errors = ask("mean age", option, tmp_path / "none" / "file.json", code=2)
        assert "there is no folder" in errors
    written = []

    def full(*_):
        written.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(answer_record, "write_durably", full)
    record = ["--record", tmp_path / "record.json"]
    printed, errors = ask("mean age", "mean income", *record, code=2)
    assert "mean age: " in printed and "mean income" not in printed and len(written) == 1
    assert "No space left on device" in errors and "copy the answer from here" in errors


def test_what_cannot_be_asked_is_refused_before_others_are_charged(ask, tmp_path, monkeypatch):
    record = ["--record", tmp_path / "record.json"]
    _, errors = ask("mean age", "median age", "--calibrated", *record, code=2)
    assert (
        "calibrated goes with count, sum, mean" in errors
        and not (tmp_path / "record.json").exists()
    )
    _, errors = ask("mean", "age", "where", "sex", "==", "F", code=2)
    assert (
        """put the question in quotes, so that it is read as one: "mean age where sex == 'F'\""""
        in errors
    )
    whole = Statistics.ask

    def broken(session, question, **how):
        if str(question) == "mean income":
            raise InputError("the files have changed")
        return whole(session, question, **how)

    monkeypatch.setattr(Statistics, "ask", broken)
    printed, errors = ask("mean age", "mean income", "median age", code=2)
    assert "mean age: " in printed and "median age" not in printed
    assert "the files have changed; the answers above are paid for, and nothing" in errors


def test_names_with_commas_are_quoted_where_they_stand_among_others(collegium, tmp_path):
    towns = ["Paris, France", "London", "a: b"]
    people = pd.DataFrame({"town": towns * 200, "sex": ["F", "M"] * 300, "level": ["h, i"] * 600})
    people.to_csv(tmp_path / "people.csv", index=False)
    Schema.from_public(people.drop(columns="level")).write(tmp_path / "schema.toml")
    (tmp_path / "policy.toml").write_text('[privacy]\nlevels = { "h, i" = 1.0, low = 2.0 }\n')
    call = ["ask", tmp_path / "people.csv", "--schema", tmp_path / "schema.toml"]
    call += ["--privacy", "level", "--policy", tmp_path / "policy.toml", "crosstab town, sex"]
    printed = collegium(*call)[1]
    for name in ("London, F: ", "'Paris, France', F: ", "'a: b', M: "):
        assert f"\n  {name}" in printed
    assert "price: 100 % of each person's budget at most" in collegium(*call, "--plan")[1]
    _, _, errors = collegium(*call, "count where town == 'Rome'")
    assert "allowed are 'Paris, France', London, 'a: b'" in errors or "allowed are London" in errors
    assert "'Paris, France'" in collegium("schema", "show", tmp_path / "schema.toml")[1]


@pytest.mark.parametrize("width", [72, 80, 120])
def test_names_of_groups_stand_in_one_line_of_a_table(
    collegium, folder, tmp_path, monkeypatch, width
):
    place = tmp_path / "people.ledger"
    collegium("ledger", "init", place)
    people = pd.read_csv(folder / "people.csv")
    people["level"] = people["level"].map({"high": "average risk", "low": "very low risk"})
    people.to_csv(tmp_path / "people.csv", index=False)
    call = [
        "ask",
        tmp_path / "people.csv",
        "--schema",
        folder / "schema.toml",
        "--privacy",
        "level",
    ]
    call += ["--levels", "average risk=1,very low risk=3", "--owner", "id", "--ledger", place]
    call += ["--spend", 0.1, "count where age >= 40", "mean income"]
    collegium(*call)
    monkeypatch.setenv("COLUMNS", str(width))
    table = collegium(*call)[1].split("How much each group counts")[1].splitlines()
    assert sum("average risk, 9/10 left" in line for line in table) == 1
    cut = [line for line in table if line.strip() in ("average risk,", "9/10 left", "left")]
    assert not cut


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
        (
            ["count where sex == 'F' and sex == 'M'"],
            "nobody can meet sex == 'F' and sex == 'M' at once",
        ),
        *(
            (["mean age", "--epsilon", epsilon], "must be a number, such as 1 (0 grants")
            for epsilon in ("nan", "-1", "1e400", "one")
        ),
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
    pd.read_csv(folder / "people.csv").head(0).to_csv(folder / "header.csv", index=False)
    for levels in (LEVELS, ["--epsilon", 1]):
        errors = ask("mean age", table="header.csv", levels=levels, code=2)[1]
        assert "error: the table has no row: give one with the people" in errors
    _, errors = ask("mean age", "--epsilon", "inf", "--owner", "id", "--ledger", "none", levels=[])
    assert errors.count("NO PRIVACY") == 1
    assert "count: 900 " in ask("count", "--epsilon", 1, levels=[])[0]  # not a column is read
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


def test_what_a_ledger_beside_the_table_cannot_remember_is_refused(
    ask, collegium, folder, tmp_path, monkeypatch
):
    monkeypatch.delenv("COLLEGIUM_LEDGER", raising=False)
    for name in ("people.csv", "schema.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    printed, errors = ask("mean income", table=tmp_path / "people.csv")
    assert "nobody remembers what is spent here" in errors  # there is no ledger yet
    collegium("ledger", "init", tmp_path / "people.ledger")
    for how, why in (((), "--owner COLUMN"), (("--owner", "id", "--noise-seed", 1), "is seeded")):
        _, errors = ask("mean income", *how, table=tmp_path / "people.csv", code=2)
        assert why in errors and "--ledger none" in errors and errors.count("\n") == 1
    printed, _ = ask("mean income", "--ledger", "none", table=tmp_path / "people.csv")
    assert printed.startswith("mean income: ")
