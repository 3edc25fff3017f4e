"""Studies that publish a synthetic table: charged durably, drawn once, and the same as in Python."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from jsonschema import Draft202012Validator

from collegium import Ledger, Policy, Schema, Synthesizer
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.neighbours import Neighbours
from collegium.errors import BudgetExceededError, ConfigError, InputError, StudyMismatchError
from collegium.report.receipt import receipt_of
from collegium.study.config import read_config
from collegium.study.folder import StudyFolder
from collegium.study.kept_draws import NumberedDraws
from collegium.study.methods.synthesis.release import published_table
from collegium.study.runner import plan_study, run_study
from collegium.study.statement_json import statement_of
from collegium.study.terms import read_terms
from collegium.study.verifying import examine
from collegium.synthesis.model_file import model_bytes
from collegium.synthesis.run import Synthesis

N = 1_500
LEVELS = {"high": 2.0, "low": 6.0}
SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 90]
bins = [18, 30, 50, 65, 90]
[columns.income]
kind = "number"
bounds = [0, 1000]
step = 10
[columns.ward]
kind = "category"
categories = ["a", "b", "c"]
[columns.seen]
kind = "date"
bounds = ["2024-01-01", "2024-12-31"]
missing = false
[columns.sick]
kind = "flag"
missing = false
[columns.remark]
kind = "text"
"""
STUDY = """
[study]
seed = 4
[data]
private = "{private}"
target = "sick"
{data}
[privacy]
levels = {{ high = 2.0, low = 6.0 }}
column = "level"
{privacy}
[method]
kind = "synthesis"
[synthesis]
schema = "schema.toml"
goal = "both"
{own}
{more}
"""


pytestmark = pytest.mark.filterwarnings("ignore:.*different values of 'income'")


class Killed(BaseException):
    """A power failure: nothing after it is run, nothing before it is undone."""


def people(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(15, 95, n)
    return pd.DataFrame(
        {
            "person": [f"p{number}" for number in range(n)],
            "age": age,
            "income": (age * 8 + rng.normal(0, 100, n)).round(),
            "ward": rng.choice(["a", "b", "c", "private-ward"], n, p=[0.5, 0.2, 0.2, 0.1]),
            "seen": [f"2024-{month:02d}-11" for month in rng.integers(1, 13, n)],
            "sick": np.where(age + rng.normal(0, 10, n) > 60, "yes", "no"),
            "remark": "private-remark",
            "level": rng.choice(list(LEVELS), n),
        }
    )


@pytest.fixture
def study(tmp_path):
    """Write a study; returns what reads its settings."""
    table = people(N, 1)
    table.to_csv(tmp_path / "people.csv", index=False)
    table.to_parquet(tmp_path / "people.parquet", index=False)
    for name, n in (("public", 450), ("test", 300)):
        people(n, len(name)).drop(columns=["person", "level"]).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    (tmp_path / "schema.toml").write_text(SCHEMA)

    def write(own="", *, private="people.csv", data="", privacy="", more="", name="study"):
        path = tmp_path / f"{name}.toml"
        said = STUDY.format(private=private, data=data, privacy=privacy, own=own, more=more)
        path.write_text(said, encoding="utf-8")
        return read_config(path)

    return write


def released(out, name):
    return json.loads((out / "release" / name).read_text(encoding="utf-8"))


def trouble(out):
    return [one for one in examine(StudyFolder(out)) if one.trouble]


@pytest.fixture
def few_trees(monkeypatch):
    """Judge by models that learn in no time: how good they are is not what is tested here."""
    for name in ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"):
        monkeypatch.setattr(
            sklearn.ensemble, name, partial(getattr(sklearn.ensemble, name), max_iter=2)
        )


def test_a_table_is_planned_made_published_and_paid_for(study, tmp_path, few_trees):
    config = study(data='public = "public.csv"\ntest = "test.csv"')
    numbers = plan_study(config).plan.numbers()
    assert [one["what"] for one in numbers["draws"]] == ["first", "scores", "pairs"]
    assert sum(one["share"] for one in numbers["draws"]) == pytest.approx(1)
    assert numbers["prediction"]["judged_by"] == 225
    assert not (tmp_path / "out").exists()
    out = tmp_path / "out"
    result = run_study(config, out)
    rows = pd.read_csv(out / "release" / "synthetic.csv")
    assert len(rows) == N and list(rows) == ["age", "income", "ward", "seen", "sick"]
    assert set(rows.ward.dropna()) == {"a", "b", "c"} and rows.age.dropna().between(18, 90).all()
    assert rows[rows.age > 75].sick.mean() > rows[rows.age < 45].sick.mean() + 0.3
    for path in (out / "release").iterdir():
        assert b"private-" not in path.read_bytes(), path  # no remark, and no ward of private rows
    for row in result.privacy.groups:
        assert 0.2 * row.budget.epsilon < row.epsilon_spent <= row.budget.epsilon
    assert result.quality is not None and released(out, "quality.json") == json.loads(
        json.dumps(result.quality.to_dict())
    )
    assert not trouble(out)
    told = released(out, "privacy.json")
    assert told["config"]["synthesis"]["goal"] == "both" and told["goal"] == "both"
    statement = statement_of(out)
    schema = Path(__file__).parents[2] / "docs" / "statement.schema.json"
    Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(statement)
    spent = {row["group"]: row["spent"]["epsilon"] for row in statement["groups"]}
    for row in result.privacy.groups:
        assert spent[row.group] == pytest.approx(row.epsilon_spent, rel=1e-9)
    card = (out / "release" / "README.md").read_text(encoding="utf-8")
    assert "# Synthetic table of people.csv" in card
    # More rows, which cost nobody anything: the released schema reads them.
    more = published_table(out).sample(50, "age >= 70", random_state=1)
    assert (more.age >= 70).all()
    Schema.read(out / "release" / "schema.toml").arrays(more, list(more))
    # Run once more it is shown, and nothing is drawn or written.
    before = {path: path.read_bytes() for path in (out / "release").iterdir()}
    run_study(config, out)
    assert before == {path: path.read_bytes() for path in (out / "release").iterdir()}


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("where", ["charge", "keep"])
def test_what_a_crash_takes_is_paid_for_once_and_the_table_is_made_without(
    study, tmp_path, monkeypatch, number, where
):
    """Cut off before a charge is durable: it is drawn later; after its noise was drawn: it is lost."""
    config, out, whole = study(), tmp_path / "out", getattr(NumberedDraws, where)

    def kill(memory, its, *more):
        if its == number:
            raise Killed
        return whole(memory, its, *more)

    with monkeypatch.context() as patched:
        patched.setattr(NumberedDraws, where, kill)
        with pytest.raises(Killed):
            run_study(config, out)
    assert read_terms(out)[1].steps == number - (where == "charge")
    drawn = []
    draw = Synthesis.draw

    def listened(self, its, *more):
        drawn.append(its)
        return draw(self, its, *more)

    monkeypatch.setattr(Synthesis, "draw", listened)
    result = run_study(config, out)
    lost = where == "keep"
    assert drawn == [its for its in (1, 2, 3) if its > number or (its == number and not lost)]
    told = released(out, "privacy.json")
    assert (told["draws"], told["draws_lost"]) == (3, int(lost))
    rows = pd.read_csv(out / "release" / "synthetic.csv")
    assert len(rows) == N and not trouble(out)
    page = (out / "release" / "README.md").read_text(encoding="utf-8")
    name = ("first", "scores", "pairs")[number - 1]
    assert (f"lost in a crash: {name}" in page.replace("\\", "")) == lost
    # Everybody has paid for all three, as in a run that nothing cut off.
    whole_run = run_study(config, tmp_path / "whole")
    for row, other in zip(result.privacy.groups, whole_run.privacy.groups, strict=True):
        assert row.epsilon_spent == other.epsilon_spent


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("own", ["", "calibrated = true\nneighbours = 'replace-one'"])
def test_a_study_has_the_bits_of_the_python_face_in_memory_and_from_files(
    study, tmp_path, public, own
):
    data = 'public = "public.csv"' if public else ""
    made = []
    for number, private in enumerate(("people.csv", "people.parquet")):
        config = study(f"noise_seed = 7\n{own}", private=private, data=data)
        run_study(config, tmp_path / f"out{number}")
        made.append((tmp_path / f"out{number}" / "release" / "model.json").read_bytes())
    assert made[0] == made[1]
    schema = Schema.read(tmp_path / "schema.toml")
    more = {"calibrated": True, "neighbours": "replace-one"} if own else {}
    read = {"dtype": str, "keep_default_na": False, "na_values": [""]}
    its = pd.read_csv(tmp_path / "public.csv", **read) if public else None
    for frame in (pd.read_csv(tmp_path / "people.csv", **read), tmp_path / "people.parquet"):
        table = Synthesizer(schema, "sick", "both", noise_seed=7, **more)
        table.fit(frame, Policy(LEVELS), privacy="level", public=its)
        assert model_bytes(table._model, "sick") == made[0]
    marginals = (tmp_path / "out0" / "release" / "marginals.csv").read_text(encoding="utf-8")
    assert marginals == table.marginals_.to_csv(index=False)


def test_two_studies_of_one_seed_differ_as_noise_is_fresh(study, tmp_path):
    config = study()
    for name in ("one", "two"):
        run_study(config, tmp_path / name)
    one, two = (
        (tmp_path / name / "release" / "model.json").read_bytes() for name in ("one", "two")
    )
    assert one != two
    cards = [(tmp_path / "one" / "release" / "README.md").read_text(encoding="utf-8")]
    run_study(study("noise_seed = 1"), tmp_path / "seeded")
    cards.append((tmp_path / "seeded" / "release" / "README.md").read_text(encoding="utf-8"))
    assert ["not private" in card.lower() for card in cards] == [False, True]


def test_settings_that_change_are_another_study(study, tmp_path):
    run_study(study(), tmp_path / "out")
    with pytest.raises(StudyMismatchError):
        run_study(study("calibrated = true"), tmp_path / "out")


def test_everybody_has_one_account_over_two_tables(study, tmp_path):
    """The second table has what the first one left; receipts and sums agree with both statements."""
    place = tmp_path / "people.ledger"
    Ledger.create(place, neighbours=Neighbours.ADD_OR_REMOVE)
    at = f'[ledger]\nurl = "{place}"'
    results = []
    for name in ("one", "two"):
        config = study(data='owner = "person"', privacy="spend = 0.5", more=at, name=name)
        results.append(run_study(config, tmp_path / name))
        assert not trouble(tmp_path / name)
    assert Ledger(place).verify()
    table = people(N, 1)
    for level in LEVELS:
        name = table.person[table.level == level].iloc[0]
        paid = Ledger(place).account_of(name).standing.spent.mu_squared
        first, second = (
            next(row for row in result.privacy.groups if level in row.group) for result in results
        )
        left = [gdp_mu(row.epsilon_spent, row.budget.delta) ** 2 for row in (first, second)]
        assert paid == pytest.approx(sum(left), rel=1e-3)  # ε is rounded up in statements
        most = gdp_mu(LEVELS[level], 1e-5) ** 2
        assert left[0] <= most / 2 and left[1] <= most / 4 and 0.5 * most < paid <= most


def test_a_ledger_of_replaced_records_makes_counts_pay_for_that(study, tmp_path):
    place = tmp_path / "people.ledger"
    Ledger.create(place, neighbours=Neighbours.ANY_CHANGE)
    at = f'[ledger]\nurl = "{place}"'
    config = study(data='owner = "person"', privacy="spend = 0.5", more=at)
    run_study(config, tmp_path / "out")
    assert read_terms(tmp_path / "out")[0].neighbours is Neighbours.ANY_CHANGE
    weaker = study(
        "neighbours = 'zero-out'", data='owner = "person"', privacy="spend = 0.5", more=at, name="b"
    )
    with pytest.raises(InputError):
        plan_study(weaker)


@pytest.mark.parametrize("role", ["public", "test"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_private_rows_are_not_taken_for_public_ones(study, tmp_path, role, kind):
    table = people(N, 1)
    write = (
        (lambda frame, path: frame.to_csv(path, index=False))
        if kind == "csv"
        else (lambda frame, path: frame.to_parquet(path, index=False))
    )
    private = f"people.{kind}"
    same = study(private=private, data=f'{role} = "{private}"')
    with pytest.raises((InputError, ConfigError)) as error:
        plan_study(same)
    assert "\n" not in str(error.value) and "private" in str(error.value)
    mostly = pd.concat([table.head(200), people(50, 9)]).sample(frac=1, random_state=0)
    write(mostly.drop(columns=["person", "level"]), tmp_path / f"mixed.{kind}")
    mixed = study(private=private, data=f'{role} = "mixed.{kind}"')
    with pytest.raises(InputError) as error:
        plan_study(mixed)
    assert "\n" not in str(error.value) and "public_may_overlap" in str(error.value)
    if role == "public":
        allowed = study(private=private, data=f'{role} = "mixed.{kind}"\npublic_may_overlap = true')
        plan_study(allowed)


def test_one_changed_byte_of_what_was_released_is_noticed(study, tmp_path, collegium):
    out = tmp_path / "out"
    run_study(study(), out)
    assert collegium("verify", out)[0] == 0
    for name in ("synthetic.csv", "model.json", "marginals.csv", "schema.toml"):
        path = out / "release" / name
        kept = path.read_bytes()
        place = kept.index(b"1")
        path.write_bytes(kept[:place] + b"2" + kept[place + 1 :])
        code, said, wrong = collegium("verify", out)
        assert code == 1 and name in said + wrong
        if name == "model.json":
            code, _, wrong = collegium("sample", out, "--out", tmp_path / "more.csv")
            assert code == 2 and wrong.count("\n") <= 2 and not (tmp_path / "more.csv").exists()
        path.write_bytes(kept)
    assert collegium("verify", out)[0] == 0


def test_one_cell_of_the_file_changes_nobody_else(study, tmp_path):
    """Trap 17, through a file: cells, charges and noise stay, and counts move by that person alone."""
    table = people(N, 1).astype(object)
    before = plan_study(study(data='owner = "person"'))
    for column, place, value in (
        ("age", 0, "n/a"),
        ("income", N - 1, "1e300"),
        ("ward", 5, "another-ward"),
        ("seen", 0, "31.12.2024"),
        ("sick", 3, "perhaps"),
        ("person", 0, 7.5),
    ):
        changed = table.copy()
        changed.loc[place, column] = value
        changed.to_csv(tmp_path / "people.csv", index=False)
        after = plan_study(study(data='owner = "person"'))
        one, other = before.plan.run, after.plan.run
        assert one.cells.edges == other.cells.edges and one.events == other.events
        others = np.arange(N) != place
        for kept, new in zip(*(rows_of(run) for run in (one, other)), strict=True):
            assert (kept[others] == new[others]).all(), column


def rows_of(run):
    """The cell of every row in every column, and who it counts for."""
    for column in run.cells.columns:
        batches = list(run.table.batches(run.cells.names))
        yield np.concatenate([column.codes(batch.arrays[column.name]) for batch in batches])
    yield np.concatenate([batch.group for batch in batches])
    yield np.concatenate([batch.rows for batch in batches])


def test_receipts_say_what_a_table_took_and_a_crash_gives_nothing_back(
    study, tmp_path, monkeypatch
):
    """The second draw is lost: everybody has paid for all three, and each one's receipt says so."""
    place, out, keep = tmp_path / "people.ledger", tmp_path / "out", NumberedDraws.keep
    Ledger.create(place, neighbours=Neighbours.ADD_OR_REMOVE)
    config = study(
        data='owner = "person"', privacy="spend = 0.5", more=f'[ledger]\nurl = "{place}"'
    )

    def kill(memory, number, found):
        if number == 2:
            raise Killed
        return keep(memory, number, found)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(NumberedDraws, "keep", kill)
        run_study(config, out)
    reserved = {name: Ledger(place).account_of(name).standing.spent for name in ("p0", "p7")}
    result = run_study(config, out)
    ledger, table = Ledger(place), people(N, 1)
    assert not ledger.reservations()
    for name in ("p0", "p7"):
        account = ledger.account_of(name)
        level = table.level[int(name[1:])]
        mine = next(row for row in result.privacy.groups if level in row.group)
        paid = account.standing.spent.mu_squared
        assert paid == pytest.approx(gdp_mu(mine.epsilon_spent, mine.budget.delta) ** 2, rel=1e-3)
        assert paid <= reserved[name].mu_squared * (1 + 1e-9)  # what was reserved before any draw
        text = receipt_of(name, account, ledger.neighbours).as_text()
        assert "Synthetic table of people.csv" in text


def test_python_and_a_study_share_one_account(study, tmp_path):
    """What the Python face leaves is what a study on the same ledger can still take."""
    place = tmp_path / "people.ledger"
    ledger = Ledger.create(place, neighbours=Neighbours.ADD_OR_REMOVE)
    frame, schema = people(N, 1), Schema.read(tmp_path / "schema.toml")
    table = Synthesizer(schema, "sick", weights="proportional")
    table.fit(frame, Policy(LEVELS), privacy="level", owner="person", ledger=ledger, spend=1.0)
    spent = ledger.account_of("p0").standing.spent.mu_squared
    assert spent > 0.98 * gdp_mu(LEVELS[frame.level[0]], 1e-5) ** 2
    config = study(data='owner = "person"', more=f'[ledger]\nurl = "{place}"')
    with pytest.raises(BudgetExceededError) as error:
        run_study(config, tmp_path / "out")
    assert "\n" not in str(error.value)
    assert Ledger(place).account_of("p0").standing.spent.mu_squared == spent
