"""What cannot be used is refused in one line before anybody pays; what is only odd gives a table."""

import numpy as np
import pandas as pd
import pytest

from collegium import Ledger, Policy, Schema, Synthesizer
from collegium.accounting.accountants import GaussianAccountant
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import as_budgets
from collegium.data.cells import Cells
from collegium.errors import CollegiumError, InputError, PrivacyWarning
from collegium.synthesis.run import Synthesis
from collegium.synthesis.settings import SynthesisSettings
from collegium.synthesis.stages import WEAK
from collegium.weighted_sums.tables import InMemory

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [0, 99], "bins": [0, 18, 65, 99]},
        "sex": {"kind": "category", "categories": ["F", "M"], "missing": False},
        "ward": {"kind": "category", "categories": ["a", "b", "c"]},
        "sick": {"kind": "flag", "missing": False},
    }
)
N = 400


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, n)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["F", "M"], n),
            "ward": rng.choice(["a", "b", "c"], n),
            "sick": age + rng.normal(0, 20, n) > 60,
        }
    )


def with_column(column, values="x", **more):
    return Schema({**SCHEMA.columns, "more": column}), people().assign(more=values, **more)


ONE = {"kind": "category", "categories": ["x"]}
IN_FIT = {
    "no row": (lambda: Synthesizer(SCHEMA).fit(people(0), []), "has no rows"),
    "no table": (lambda: Synthesizer(SCHEMA).fit(None, 1.0), "a table is needed"),
    "an array": (lambda: Synthesizer(SCHEMA).fit(people().to_numpy(), 1.0), "a table is needed"),
    "no file": (lambda: Synthesizer(SCHEMA).fit("nope.parquet", 1.0), "there is no file"),
    "two columns of one name": (
        lambda: Synthesizer(SCHEMA).fit(pd.concat([people(), people()[["age"]]], axis=1), 1.0),
        "two columns of the same name",
    ),
    "a column of the schema is not there": (
        lambda: Synthesizer(SCHEMA).fit(people().drop(columns="sex"), 1.0),
        "no column 'sex'",
    ),
    "a column of public records is not there": (
        lambda: Synthesizer(SCHEMA).fit(people(), 1.0, public=people()[["age"]]),
        "no column 'sex'",
    ),
    "private records as public": (
        lambda: Synthesizer(SCHEMA).fit(people(), 1.0, public=people()),
        "public_may_overlap=True",
    ),
    "free text alone": (
        lambda: Synthesizer(Schema({"name": {"kind": "text"}})).fit(people(), 1.0),
        "no column with cells",
    ),
    "target of free text": (
        lambda: Synthesizer(with_column({"kind": "text"})[0], "more").fit(
            with_column({"kind": "text"})[1], 1.0
        ),
        "'more' is no column with cells",
    ),
    "target of one class": (
        lambda: Synthesizer(with_column(ONE)[0], "more").fit(with_column(ONE)[1], 1.0),
        "'more' has one value only in the schema",
    ),
    "unknown target": (lambda: Synthesizer(SCHEMA, "sik").fit(people(), 1.0), "sick"),
    "goal without a target": (
        lambda: Synthesizer(SCHEMA, goal="both").fit(people(), 1.0),
        "needs a target",
    ),
    "contradiction": (
        lambda: Synthesizer(SCHEMA, constraints=["age > 50", "age < 20"]).fit(people(), 1.0),
        "leave no value for 'age'",
    ),
    "structure of one": (
        lambda: Synthesizer(SCHEMA, structure=[["age"]]).fit(people(), 1.0),
        "at least two different columns",
    ),
    "structure of unknown columns": (
        lambda: Synthesizer(SCHEMA, structure=[("age", "height")]).fit(people(), 1.0),
        "structure names 'height'",
    ),
    "nobody grants anything": (
        lambda: Synthesizer(SCHEMA).fit(people(), 0.0),
        "everybody granted nothing",
    ),
    "a budget that is no number": (
        lambda: Synthesizer(SCHEMA).fit(people(), [1.0] * (N - 1) + [float("nan")]),
        "not a number of at least 0",
    ),
    "a negative budget": (
        lambda: Synthesizer(SCHEMA).fit(people(), -1.0),
        "not a number of at least 0",
    ),
    "too few budgets": (lambda: Synthesizer(SCHEMA).fit(people(), [1.0]), "400 rows, but 1"),
    "no budgets": (lambda: Synthesizer(SCHEMA).fit(people(), None), "budgets are missing"),
    "δ of 0": (lambda: Synthesizer(SCHEMA).fit(people(), 1.0, delta=0), "delta must lie"),
    "a policy without levels": (
        lambda: Synthesizer(SCHEMA).fit(people(), Policy({"low": 1.0})),
        "privacy='COLUMN'",
    ),
    "a share without a ledger": (
        lambda: Synthesizer(SCHEMA).fit(people(), 1.0, spend=0.5),
        "ledger",
    ),
}
IN_CONSTRUCTOR = {
    "no schema": (lambda: Synthesizer(None), "Schema.from_public(frame)"),
    "a dictionary as schema": (lambda: Synthesizer({"age": "whole"}), "collegium.Schema"),
    "unknown goal": (lambda: Synthesizer(SCHEMA, goal="best"), "auto, target, fidelity, both"),
    "unknown weights": (lambda: Synthesizer(SCHEMA, weights="big"), "saturating"),
    "unknown neighbours": (lambda: Synthesizer(SCHEMA, neighbours="near"), "zero-out"),
    "constraints as text": (lambda: Synthesizer(SCHEMA, constraints="age > 3"), "in brackets"),
    "constraints that are none": (lambda: Synthesizer(SCHEMA, constraints=[None]), "[None]"),
    "structure as text": (lambda: Synthesizer(SCHEMA, structure="age, sex"), "in brackets"),
    "structure of numbers": (lambda: Synthesizer(SCHEMA, structure=[1]), "in brackets"),
    "a negative seed": (lambda: Synthesizer(SCHEMA, random_state=-1), "at least 0"),
    "a seed of text": (lambda: Synthesizer(SCHEMA, noise_seed="a"), "noise_seed"),
}


@pytest.mark.parametrize("what", [*IN_CONSTRUCTOR, *IN_FIT])
def test_what_cannot_be_used_is_refused_in_one_line_and_nobody_pays(what, monkeypatch):
    charged = []
    monkeypatch.setattr(GaussianAccountant, "charge", lambda self, event: charged.append(event))
    do, said = {**IN_CONSTRUCTOR, **IN_FIT}[what]
    with pytest.raises(CollegiumError) as error:
        do()
    assert said in str(error.value) and "\n" not in str(error.value)
    assert not charged


@pytest.fixture(scope="module")
def fitted():
    return Synthesizer(SCHEMA, "sick", noise_seed=0, random_state=1).fit(people(), 4.0)


@pytest.mark.parametrize("n", [0, -1, 2.5, 3.0, "3", True, 10**9, 10**13, float("nan"), [5]])
def test_numbers_of_rows_that_cannot_be_drawn_are_refused(fitted, n):
    with pytest.raises(CollegiumError) as error:
        fitted.sample(n)
    assert "\n" not in str(error.value)
    assert ("to='synthetic.parquet'" in str(error.value)) == (n == 10**9)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("age > 200", "nobody can be"),
        ("age >= 65 and age < 18", "at once"),
        ("height > 3", "'height'"),
        ("sex == 'X'", "allowed are F, M"),
        (3, "must be text"),
        (["age > 3"], "must be text"),
    ],
)
def test_conditions_that_nothing_satisfies_are_refused(fitted, where, said):
    with pytest.raises(CollegiumError) as error:
        fitted.sample(10, where)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_condition_that_contradicts_what_is_known_is_refused():
    """Each alone can hold; with what is known of every row, none does."""
    table = Synthesizer(SCHEMA, constraints=["sex == 'F' or not sick"], noise_seed=0)
    table.fit(people(), 4.0)
    assert len(table.sample(50, "sick")) == 50
    with pytest.raises(CollegiumError) as error:
        table.sample(50, "sick and sex == 'M'")
    assert "no row satisfies" in str(error.value) and "\n" not in str(error.value)


def test_rows_are_drawn_that_satisfy_a_rare_condition(fitted):
    rows = fitted.sample(500, "age == 99 and sex == 'F' and ward is missing")
    assert (rows.age == 99).all() and (rows.sex == "F").all() and rows.ward.isna().all()


def test_nothing_is_fitted_yet(fitted):
    for ask in (lambda one: one.sample(3), lambda one: one.save("x.json")):
        with pytest.raises(CollegiumError, match="call fit"):
            ask(Synthesizer(SCHEMA))


def test_a_place_that_cannot_be_written_is_told(fitted, tmp_path):
    for write in (
        lambda: fitted.save(tmp_path / "no" / "model.json"),
        lambda: fitted.sample(3, to=tmp_path / "no" / "rows.csv"),
        lambda: fitted.sample(3, to=tmp_path / "rows.xlsx"),
    ):
        with pytest.raises(CollegiumError) as error:
            write()
        assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


# ------------------------------------------------------------------- odd, and possible


def test_categories_that_only_private_rows_have_count_as_missing_and_nobody_is_told():
    private = people()
    private.loc[::2, "ward"] = "only-here"
    table = Synthesizer(SCHEMA, noise_seed=0, random_state=0).fit(private, 4.0)
    rows = table.sample(1_000)
    assert set(rows.ward.dropna()) <= {"a", "b", "c"} and 0.4 < rows.ward.isna().mean() < 0.6
    said = " ".join([*table.notes_, *table.privacy_.sentences(), str(table.marginals_)])
    assert "only-here" not in said


def test_a_target_of_one_class_in_the_data_is_learnt_as_such():
    table = Synthesizer(SCHEMA, "sick", noise_seed=0, random_state=0)
    rows = table.fit(people().assign(sick=True), 4.0).sample(500)
    assert rows.sick.mean() > 0.95


def test_a_constant_column_and_one_of_one_cell_come_back():
    schema, table = with_column({**ONE, "missing": False}, age=5)
    rows = Synthesizer(schema, noise_seed=0, random_state=0).fit(table, 8.0).sample(500)
    assert (rows.more == "x").all() and (rows.age < 18).mean() > 0.95


@pytest.mark.parametrize("columns", [["sick"], ["sex", "sick"]])
def test_few_columns_are_a_table(columns):
    schema = Schema({name: SCHEMA[name] for name in columns})
    rows = Synthesizer(schema, "sick", noise_seed=0).fit(people(), 4.0).sample(20)
    assert rows.shape == (20, len(columns))


@pytest.mark.parametrize("n", [1, 2])
def test_one_row_is_a_table_of_noise(n):
    table = Synthesizer(SCHEMA, noise_seed=0).fit(people(n), 1.0)
    assert table.sample().shape == (n, 4) and table.sample(100).shape == (100, 4)


def test_people_who_grant_nothing_are_left_out_and_those_who_grant_all_weigh_as_the_most_generous():
    """Rows of ε = 0 are as different as can be: none of them is heard, whatever they say."""
    private = people().assign(sex="F")
    private.loc[: N // 2 - 1, "sex"] = "M"
    budgets = np.repeat([0.0, 8.0], N // 2)
    with pytest.warns(PrivacyWarning, match="200 owner"):
        table = Synthesizer(SCHEMA, noise_seed=0, random_state=0).fit(private, budgets)
    assert table.n_rows_ == N // 2 and (table.sample(500).sex == "F").mean() > 0.95
    with pytest.warns(PrivacyWarning, match="NO PRIVACY"):
        table = Synthesizer(SCHEMA, noise_seed=0).fit(private, np.repeat([np.inf, 8.0], N // 2))
    weights = table.heard_["share_of_weight"].to_numpy()
    assert weights == pytest.approx([0.5, 0.5], abs=1e-5)


@pytest.mark.parametrize("budget", [1e-9, 1e-4, 0.01])
def test_budgets_too_small_for_anything_give_a_table_that_says_so(budget):
    """Only the target is measured, "auto" chose so, and the notes say what that means."""
    table = Synthesizer(SCHEMA, "sick", noise_seed=0).fit(people(), budget)
    assert table.goal_ == "target" and {"sick"} <= set.intersection(*map(set, table.measured_))
    assert any(
        "Nothing is measured of how other columns go together" in one for one in table.notes_
    )
    assert table.sample(50).shape == (50, 4)
    assert all(row.epsilon_spent <= budget for row in table.privacy_.groups)


def test_where_no_pair_is_worth_its_noise_only_the_target_is_measured_and_that_is_said():
    """Columns that have nothing to do with each other, so that no score is above its noise by far."""
    rng = np.random.default_rng(3)
    private = people().assign(age=rng.integers(0, 100, N), sick=rng.random(N) < 0.5)
    found = set()
    for seed in range(12):
        table = Synthesizer(SCHEMA, "sick", "both", noise_seed=seed).fit(private, 0.5)
        others = [pair for pair in table.measured_ if "sick" not in pair]
        said = any("No other pair was worth its noise" in one for one in table.notes_)
        assert said == (not others)
        found.add(said)
    assert True in found


def test_a_plan_says_before_anything_is_drawn_that_little_can_be_said():
    def planned(budget):
        table = InMemory(people(), as_budgets(budget, 1e-5, N), SCHEMA)
        settings = SynthesisSettings(), Neighbours.ADD_OR_REMOVE
        run = Synthesis(table, Cells(SCHEMA), None, *settings)
        assert (run.stages.signal < WEAK) == bool(run.notes())
        return run.notes()

    assert "no pair is worth its noise" in planned(0.01)[0] and not planned(20.0)


def test_on_a_ledger_nobody_pays_for_a_table_that_lacks_a_column(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger", neighbours=Neighbours.ADD_OR_REMOVE)
    table = people().drop(columns="ward")
    owners = [f"p{number}" for number in range(N)]
    budgets = Policy({"all": 2.0}).assign(["all"] * N, owners=owners)
    with pytest.raises(CollegiumError, match="no column 'ward'"):
        Synthesizer(SCHEMA).fit(table, budgets, ledger=ledger)
    assert not ledger.reservations() and not ledger.standings()
    Synthesizer(SCHEMA).fit(people(), budgets, ledger=ledger)
    assert all(one.spent.mu_squared > 0 for one in ledger.standings())


def test_names_with_commas_and_quotation_marks_are_names():
    """In what is measured together, in constraints and in conditions, in Python and as text."""
    names = {"age": "age, in years", "sex": 'the "sex"', "ward": "größe", "sick": "sick"}
    schema = Schema({names[name]: column for name, column in SCHEMA.items()})
    table = people().rename(columns=names)
    for structure in ([("age, in years", "größe")], ['"age, in years", größe']):
        one = Synthesizer(
            schema,
            structure=structure,
            constraints=['"age, in years" >= 18 or not sick'],
            noise_seed=0,
        )
        one.fit(table, 4.0)
        assert ("age, in years", "größe") in one.measured_
        rows = one.sample(200, '"the ""sex""" == \'F\' and sick')
        assert (rows['the "sex"'] == "F").all() and (rows["age, in years"].dropna() >= 18).all()


def test_whose_a_row_is_is_no_column_of_a_synthetic_table() -> None:
    schema = Schema(
        {
            "who": {"kind": "category", "categories": ["a", "b"]},
            "age": {"kind": "whole", "bounds": [0, 9]},
        }
    )
    frame = pd.DataFrame({"who": ["a", "b"] * 20, "age": 5, "level": "all"})
    with pytest.raises(InputError, match="describes 'who', which says whose each row is"):
        Synthesizer(schema).fit(frame, Policy({"all": 1.0}), privacy="level", owner="who")
