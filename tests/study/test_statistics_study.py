"""Studies that ask: a file of questions, charged durably, answered once, and published with what was paid."""

import contextlib
import json
import signal
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator, ValidationError

from collegium import Ledger, Statistics
from collegium.accounting import Neighbours
from collegium.errors import ConfigError, InputError, StudyMismatchError
from collegium.study.checkpoint import StudyInterrupted
from collegium.study.config import read_config
from collegium.study.folder import StudyFolder
from collegium.study.json_schema import study_schema
from collegium.study.kept_draws import NumberedDraws
from collegium.study.runner import plan_study, run_study
from collegium.study.statement_json import statement_of
from collegium.study.terms import read_terms
from collegium.study.verifying import examine

SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 90]
[columns.income]
kind = "number"
bounds = [0, 1000]
step = 10
[columns.sex]
kind = "category"
categories = ["F", "M"]
"""
QUESTIONS = ["count", "mean income by sex where age >= 40", "median income", "count by sex"]
STUDY = """
[data]
private = "people.csv"
owner = "person"
[privacy]
levels = {{ high = 1.0, low = 3.0 }}
column = "level"
[method]
kind = "statistics"
[statistics]
schema = "schema.toml"
questions = {questions}
{more}
"""
pytestmark = pytest.mark.filterwarnings("ignore:δ is large")


class Killed(BaseException):
    """A power failure: nothing after it is run, nothing before it is undone."""


@pytest.fixture
def study(tmp_path):
    """Write a study of 400 people; returns what reads its settings."""
    generator = np.random.default_rng(1)
    people = pd.DataFrame(
        {
            "person": [f"p{number}" for number in range(400)],
            "age": generator.integers(18, 90, 400),
            "income": generator.integers(0, 1000, 400),
            "sex": generator.choice(["F", "M"], 400),
            "level": generator.choice(["high", "low"], 400),
        }
    )
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)

    def write(more="", questions=QUESTIONS, text=STUDY):
        path = tmp_path / "study.toml"
        path.write_text(text.format(questions=json.dumps(questions), more=more), encoding="utf-8")
        return read_config(path)

    return write


def released(out, name):
    return json.loads((out / "release" / name).read_text(encoding="utf-8"))


def test_questions_are_answered_published_and_paid_for(study, tmp_path):
    out = tmp_path / "out"
    result = run_study(study(), out)
    assert [one["question"] for one in result.answers] == QUESTIONS
    assert result.answers[0]["cells"][0]["value"] == 400 and not result.lost
    people = pd.read_csv(tmp_path / "people.csv")
    truth = people[people.age >= 40].groupby("sex").income.mean()
    for cell in result.answers[1]["cells"]:  # 6 standard errors: 1 in 500 million
        assert abs(cell["value"] - truth[cell["sex"]]) < 6 * cell["standard_error"]
    for row in result.privacy.groups:
        assert 0.2 * row.budget.epsilon < row.epsilon_spent <= row.budget.epsilon
    table = pd.read_csv(out / "release" / "answers.csv")
    assert len(table) == 6 and table["keys"].tolist()[1] == "sex = F"
    answers = released(out, "answers.json")["answers"]
    assert answers[1]["cells"] == result.answers[1]["cells"]
    assert {row["group"]: row["epsilon"] for row in answers[1]["paid"]}["low"] > 0
    told = released(out, "privacy.json")
    assert told["questions"] == 4 and told["config"]["statistics"]["questions"] == QUESTIONS
    assert "/" not in told["config"]["data"]["private"]
    assert not [one for one in examine(StudyFolder(out)) if one.trouble]
    card = (out / "release" / "README.md").read_text(encoding="utf-8")
    assert "# Statistics of people.csv" in card and "| F | " in card and "Count by sex" in card
    for sentence in result.privacy.sentences():
        assert sentence[:40].split("(")[0] in card.replace("\\", "")
    statement = statement_of(out)
    schema = Path(__file__).parents[2] / "docs" / "statement.schema.json"
    Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(statement)
    # Three questions have Laplace noise, whose sum of ε keeps no budget's μ.
    assert not statement["guarantee"]["gaussian"] and not result.privacy.gaussian
    assert "mu" not in statement["groups"][0]["promised"]
    spent = {row["group"]: row["spent"]["epsilon"] for row in statement["groups"]}
    for row in result.privacy.groups:
        assert spent[row.group] == pytest.approx(row.epsilon_spent, rel=1e-9)


def test_ctrl_c_stops_between_two_questions_and_nothing_is_lost(study, tmp_path, monkeypatch):
    out, keep = tmp_path / "out", NumberedDraws.keep

    def pressed(memory, number, answer):
        signal.raise_signal(signal.SIGINT)
        return keep(memory, number, answer)

    with monkeypatch.context() as patched:
        patched.setattr(NumberedDraws, "keep", pressed)
        with pytest.raises(StudyInterrupted):
            run_study(study(), out)
    assert read_terms(out)[1].steps == 1
    assert not list((out / "vault").glob(".*.room"))
    assert not run_study(study(), out).lost


@pytest.mark.parametrize("where", ["charge", "keep"])
def test_what_is_cut_off_is_charged_once_and_never_drawn_twice(study, tmp_path, monkeypatch, where):
    """Cut off before the charge of the second question is durable, and after its noise was drawn."""
    config = study("")
    out, whole = tmp_path / "out", getattr(NumberedDraws, where)

    def kill(memory, number, *more):
        if number == 2:
            raise Killed
        return whole(memory, number, *more)

    with monkeypatch.context() as patched:
        patched.setattr(NumberedDraws, where, kill)
        with pytest.raises(Killed):
            run_study(config, out)
    terms, journal = read_terms(out)
    charged = journal.steps
    assert charged == (1 if where == "charge" else 2)
    kept = json.loads((out / "vault" / "answers.json").read_text(encoding="utf-8"))["answers"]
    drawn = []
    sums, quantile = Statistics._sums, Statistics._quantile
    for name, way in (("_sums", sums), ("_quantile", quantile)):

        def listened(self, question, *rest, _way=way):
            drawn.append(str(question.asked))
            return _way(self, question, *rest)

        monkeypatch.setattr(Statistics, name, listened)
    result = run_study(config, out)
    lost = ["median income"] if where == "keep" else []
    assert list(result.lost) == lost
    assert drawn == [one for one in QUESTIONS[2:] if one not in lost]
    answered = {one["question"]: one for one in result.answers}
    assert answered[QUESTIONS[1]] == kept[0]
    # What is lost is paid for: all are charged, as in a run that nothing cut off.
    for row in result.privacy.groups:
        assert row.epsilon_spent == pytest.approx(terms.spent_on(3).epsilon[row.group], rel=1e-9)
    assert released(out, "answers.json")["lost"] == lost


@pytest.mark.parametrize("stop", [None, 2])
def test_who_looked_at_a_folder_before_another_began_it_changes_nothing(
    study, tmp_path, monkeypatch, stop
):
    """Both read what the ledger has left; the other one begins, and ends or is killed, first."""
    place, out, opened = tmp_path / "private.ledger", tmp_path / "out", StudyFolder.open
    Ledger.create(place, neighbours=Neighbours.ADD_OR_REMOVE)
    config, keep = study(f'spend = 0.3\n[ledger]\nurl = "{place}"'), NumberedDraws.keep

    def other_first(folder):
        monkeypatch.setattr(StudyFolder, "open", opened)

        def kill(memory, number, answer):
            if number == stop:
                raise Killed
            return keep(memory, number, answer)

        with monkeypatch.context() as patched:
            patched.setattr(NumberedDraws, "keep", kill)
            with contextlib.suppress(Killed):
                run_study(config, out)
        opened(folder)

    monkeypatch.setattr(StudyFolder, "open", other_first)
    with pytest.raises(StudyMismatchError, match="another process has begun"):
        run_study(config, out)
    assert len(Ledger(place).contents().releases) == 1
    result = run_study(config, out)
    assert len(result.lost) == (0 if stop is None else 1)
    (release,) = Ledger(place).contents().releases.values()
    assert release.is_settled


def test_parquet_that_was_begun_on_a_ledger_goes_on_with_it_only(study, tmp_path, monkeypatch):
    """Without a ledger the file would be read in batches, where nobody is looked up by name."""
    place, out = tmp_path / "private.ledger", tmp_path / "out"
    Ledger.create(place, neighbours=Neighbours.ADD_OR_REMOVE)
    study()
    pd.read_csv(tmp_path / "people.csv").to_parquet(tmp_path / "people.parquet")
    text = STUDY.replace("people.csv", "people.parquet")
    begun = study(f'[ledger]\nurl = "{place}"', text=text)
    keep = NumberedDraws.keep

    def kill(memory, number, answer):
        if number == 2:
            raise Killed
        return keep(memory, number, answer)

    with monkeypatch.context() as patched:
        patched.setattr(NumberedDraws, "keep", kill)
        with pytest.raises(Killed):
            run_study(begun, out)
    with pytest.raises(InputError, match="goes on with it only"):
        run_study(study('[ledger]\nurl = "none"', text=text), out)
    first = run_study(begun, out)
    # All is settled: what was published is shown again, whatever ledger is named.
    again = run_study(study('[ledger]\nurl = "none"', text=text), out)
    assert again.answers == first.answers


def test_where_all_answers_are_lost_the_table_is_empty_and_can_be_read(
    study, tmp_path, monkeypatch
):
    config, out = study(questions=["mean age"]), tmp_path / "out"

    def kill(memory, number, answer):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(NumberedDraws, "keep", kill)
        with pytest.raises(Killed):
            run_study(config, out)
    assert run_study(config, out).lost == ("mean age",)
    table = pd.read_csv(out / "release" / "answers.csv")
    assert table.empty and "standard_error" in table.columns


def test_other_questions_prices_or_people_are_another_study(study, tmp_path):
    out = tmp_path / "out"
    run_study(study(), out)
    for config in (study("spend = 0.5"), study(questions=[*QUESTIONS, "mean age"])):
        with pytest.raises(StudyMismatchError, match="holds another study"):
            run_study(config, out)


def test_calibrated_questions_hear_everybody_alike_and_show_what_each_group_says(
    study, tmp_path, monkeypatch
):
    """Kept, charged again and published like any other, at the price of all of a staircase's steps."""
    questions = ["mean income", "mean age", "median age", "count by sex"]
    more = 'calibrated = ["mean  income", "count by sex"]\nnoise = "gaussian"\nnoise_seed = 1'
    config, out = study(more, questions), tmp_path / "out"
    keep = NumberedDraws.keep

    def kill(memory, number, answer):
        if number == 3:
            raise Killed
        return keep(memory, number, answer)

    with monkeypatch.context() as patched:
        patched.setattr(NumberedDraws, "keep", kill)
        with pytest.raises(Killed):
            run_study(config, out)
    terms, _ = read_terms(out)
    assert [len(uses["low"]) > len(uses["high"]) for uses in terms.uses] == [
        True,
        False,
        False,
        True,
    ]
    result = run_study(config, out)
    for row in result.privacy.groups:
        assert row.epsilon_spent == pytest.approx(terms.spent_on(4).epsilon[row.group], rel=1e-9)
    whole = run_study(config, tmp_path / "whole")
    assert [one for one in whole.answers if one["question"] != "median age"] == list(result.answers)
    mean, plain, counts = released(out, "answers.json")["answers"]
    people = pd.read_csv(tmp_path / "people.csv")
    truth = people.groupby("level")["income"].mean()
    for row in mean["groups"]:  # 6 standard errors, and the coarse noise of a seed
        assert abs(row["per_person"] - truth[row["group"]]) < 6 * row["standard_error"]
    weights = {row["group"]: row["weight"] / row["share"] for row in mean["represented"]}
    assert weights == pytest.approx({"high": 1.0, "low": 1.0}) and 0 < mean["p_same"] <= 1
    assert any("each group by itself: high" in note for note in mean["notes"])
    assert "groups" not in plain and "groups" not in counts
    assert "each group by itself" in (out / "release" / "report.html").read_text(encoding="utf-8")
    assert [plan.rule for plan in _plans(config)] == [
        "uniform",
        "saturating",
        "saturating",
        "uniform",
    ]
    with pytest.raises(StudyMismatchError, match="holds another study"):
        run_study(study('noise = "gaussian"\nnoise_seed = 1', questions), out)


def _plans(config):
    planned = plan_study(config).plan
    return [planned.session.plan(str(one), **planned.data.how(one)) for one in planned.data.asked]


@pytest.mark.parametrize(
    ("calibrated", "message"),
    [
        ("mean age", "mean age, which is not asked: did you mean|mean age, which is not asked"),
        ("median income", "median income, and calibrated answers are for count, sum, mean"),
        ("count", "count, which is public"),
        ("mean height", "height"),
    ],
)
def test_calibrated_names_questions_that_can_be(study, tmp_path, calibrated, message):
    with pytest.raises(InputError, match=message):
        run_study(study(f'calibrated = ["{calibrated}"]'), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_plan_spends_nothing_and_says_what_is_free(study, tmp_path):
    planned = plan_study(study()).plan
    assert [str(one) for one in planned.data.charged] == QUESTIONS[1:]
    assert planned.session.left()["share_left"].tolist() == [1.0, 1.0]
    assert not (tmp_path / "private.ledger").exists()


def test_parquet_files_are_asked_in_batches_and_answer_alike(study, tmp_path):
    seeded = "noise_seed = 3"
    first = run_study(study(seeded), tmp_path / "csv")
    pd.read_csv(tmp_path / "people.csv").to_parquet(tmp_path / "people.parquet")
    text = STUDY.replace("people.csv", "people.parquet")
    again = run_study(study(seeded, text=text), tmp_path / "parquet")
    assert not again.privacy.noise_is_private
    for one, other in zip(first.answers, again.answers, strict=True):
        assert one["cells"] == other["cells"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ('kind = "statistics"', 'kind = "statistics"\n[teachers]\nn_teachers = 5'),
            r"\[teachers\] means",
        ),
        (("[privacy]", 'public = "x.csv"\n[privacy]'), "data.public means nothing to method.kind"),
        (
            ('schema = "schema.toml"', ""),
            "needs statistics.schema: a file that",
        ),
        (('column = "level"', ""), "needs privacy.column"),
        (("[method]", "[run]\nstreaming = true\n[method]"), "run.streaming means nothing"),
        (
            ('kind = "statistics"', 'kind = "dpsgd"'),
            r"\[statistics\] means nothing to method.kind = 'dpsgd'",
        ),
    ],
)
def test_keys_of_other_methods_and_missing_ones_are_refused(study, change, message):
    with pytest.raises(ConfigError, match=message):
        study(text=STUDY.replace(*change))


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([], "statistics.questions is empty"),
        (["mean age", "mean age where sex == 'F'", "mean  age"], "asks mean age more than once"),
        (["mean height"], "height"),
        (["SELECT AVG(age) FROM people"], "SQL"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_before_anything_is_spent(
    study, tmp_path, questions, message
):
    with pytest.raises(InputError, match=message):
        run_study(study(questions=questions), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_section_of_questions_alone_says_how(study, tmp_path):
    text = STUDY.replace("[method]\n", "").replace('kind = "statistics"\n', "")
    assert study(text=text).kind.name == "statistics"
    validator = Draft202012Validator(study_schema())
    for one in (STUDY, text):
        settings = tomllib.loads(one.format(questions=json.dumps(QUESTIONS), more=""))
        validator.validate(settings)
    with pytest.raises(ValidationError):
        validator.validate(
            {**settings, "method": {"kind": "statistics"}, "teachers": {"n_teachers": 5}}
        )


def test_commands_show_answers_and_refuse_what_has_no_meaning(study, tmp_path, collegium):
    study()
    path, out = tmp_path / "study.toml", tmp_path / "study"
    code, said, _ = collegium("plan", path)
    assert code == 0 and "off by about" in said and "count: public, so it is free" in said
    assert not out.exists()
    code, said, _ = collegium("run", path)
    assert code == 0 and "mean income by sex where age >= 40 (±" in said and "Report:" in said
    for command in (("report", out), ("statement", out), ("verify", out)):
        code, said, errors = collegium(*command)
        assert code == 0, errors
    code, said, _ = collegium("account", "--remaining", out)
    assert code == 0 and "3 of 3 questions are charged" in said
    code, said, _ = collegium("account", "--export", out)
    assert code == 0 and len(json.loads(said)["cohorts" if "cohorts" in said else "groups"]) == 2
    code, said, _ = collegium("statement", out, "--format", "registry")
    record = json.loads(said)["deployment"]
    assert code == 0 and record["basic"]["data_product_type"] == "Summary statistics"
    assert record["privacy_loss"]["privacy_unit"] == "one person (all their records)"
    assert len(record["privacy_loss"]["individual_budgets"]["groups"]) == 2
    for word in ("votes", "teacher", "label", "student", "gradient"):
        assert word not in json.dumps({**record, "administrative": None})
    for command, message in (
        (("predict", out, tmp_path / "people.csv"), "no model that could predict"),
        (("forget", "p1", path), "with --remove-records"),
    ):
        code, _, errors = collegium(*command)
        assert code == 2 and message in " ".join(errors.split()), errors
