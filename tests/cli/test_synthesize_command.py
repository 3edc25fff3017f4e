"""`collegium synthesize` and `collegium sample`: what they write, print, go on with, and refuse."""

import json

import numpy as np
import pandas as pd
import pytest

from collegium import Ledger
from collegium.accounting.neighbours import Neighbours
from collegium.study.kept_draws import NumberedDraws
from collegium.synthesis import rows_in_files

SCHEMA = """
[columns.age]
kind = "whole"
bounds = [18, 90]
[columns.ward]
kind = "category"
categories = ["a", "b", "c"]
missing = false
[columns.sick]
kind = "flag"
missing = false
[columns.remark]
kind = "text"
"""
WHO = ["--privacy", "level", "--levels", "high=2,low=6", "--ledger", "none"]
N = 800


class Killed(BaseException):
    """A power failure."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    age = rng.integers(18, 91, N)
    table = pd.DataFrame(
        {
            "person": [f"p{number}" for number in range(N)],
            "age": age,
            "ward": rng.choice(["a", "b", "c"], N),
            "sick": np.where(age + rng.normal(0, 10, N) > 60, "yes", "no"),
            "remark": "private-remark",
            "level": rng.choice(["high", "low"], N),
        }
    )
    table.to_csv("people.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def lines_of(text):
    return [line for line in text.splitlines() if line.strip()]


def test_a_table_is_made_and_more_rows_are_drawn(folder, collegium):
    code, said, wrong = collegium("synthesize", "people.csv", *WHO, "--target", "sick")
    assert code == 0, wrong
    out = folder / "people-synthetic"
    rows = pd.read_csv(out / "release" / "synthetic.csv")
    assert len(rows) == N and list(rows) == ["age", "ward", "sick"]
    assert "800" in said and "collegium sample" in said and "private-remark" not in said
    before = (out / "release" / "synthetic.csv").read_bytes()
    assert collegium("synthesize", "people.csv", *WHO, "--target", "sick")[0] == 0  # shown again
    assert (out / "release" / "synthetic.csv").read_bytes() == before
    for where in (out, out / "release", out / "release" / "model.json"):
        target = folder / f"more-{where.name}.parquet"
        code, said, wrong = collegium(
            "sample", where, "--rows", 300, "--where", "age >= 65 and sick", "--out", target
        )
        assert code == 0 and "300 rows" in said, wrong
        more = pd.read_parquet(target)
        assert len(more) == 300 and (more.age >= 65).all() and more.sick.all()
    for name in ("one", "two"):
        assert collegium("sample", out, "--seed", 5, "--out", f"{name}.csv")[0] == 0
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()
    assert len(pd.read_csv("one.csv")) == N


def test_a_plan_spends_and_writes_nothing_but_the_studys_file(folder, collegium):
    place = folder / "people.ledger"
    Ledger.create(place, neighbours=Neighbours.ADD_OR_REMOVE)
    who = [*WHO[:-1], place, "--owner", "person", "--spend", "0.5"]
    code, said, wrong = collegium("synthesize", "people.csv", *who, "--plan", "--json")
    assert code == 0, wrong
    told = json.loads(said)
    assert not Ledger(place).standings() and not (folder / "people-synthetic").exists()
    text = json.dumps(told)
    assert '"draws"' in text and '"share_of_weight"' in text and "private-remark" not in text
    code, said, wrong = collegium("synthesize", "people.csv", *who, "--plan")
    assert code == 0 and "Who is heard" in said, wrong
    code, said, wrong = collegium("synthesize", "people.csv", *who)
    assert code == 0, wrong
    assert all(one.spent.mu_squared > 0 for one in Ledger(place).standings())


def test_few_people_with_small_budgets_are_told_that_little_is_measured(folder, collegium):
    who = ["--privacy", "level", "--levels", "high=0.01,low=0.02", "--ledger", "none"]
    code, said, wrong = collegium("synthesize", "people.csv", *who, "--target", "sick", "--plan")
    assert code == 0, wrong
    assert "Nothing is measured of how other columns go together" in " ".join(said.split())
    code, said, wrong = collegium("synthesize", "people.csv", *who, "--target", "sick")
    assert code == 0, wrong
    card = (folder / "people-synthetic" / "release" / "README.md").read_text(encoding="utf-8")
    assert "Nothing is measured of how other columns go together" in " ".join(card.split())


@pytest.mark.parametrize("number", [1, 2, 3])
def test_what_is_interrupted_goes_on_with_the_same_command(folder, collegium, monkeypatch, number):
    keep = NumberedDraws.keep

    def kill(memory, its, found):
        if its == number:
            raise Killed
        return keep(memory, its, found)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(NumberedDraws, "keep", kill)
        collegium("synthesize", "people.csv", *WHO)
    code, said, wrong = collegium("synthesize", "people.csv", *WHO)
    assert code == 0 and "lost in a crash" in " ".join(said.split()), wrong
    assert collegium("verify", "people-synthetic")[0] == 0


def test_another_command_takes_over_a_studys_file_only_while_nothing_was_begun(folder, collegium):
    """A slip of the pen may be mended; a study that has begun, and a file of others, may not be lost."""
    file = folder / "people-synthetic.toml"
    assert collegium("synthesize", "people.csv", *WHO, "--goal", "fidelity", "--plan")[0] == 0
    assert collegium("synthesize", "people.csv", *WHO, "--plan")[0] == 0
    before = file.read_bytes()
    assert b"goal" not in before
    (folder / "people-synthetic").mkdir()
    code, _, wrong = collegium("synthesize", "people.csv", *WHO, "--goal", "fidelity", "--plan")
    assert code == 2 and "says something else" in wrong and "--out" in wrong
    assert file.read_bytes() == before
    (folder / "people-synthetic").rmdir()
    file.write_text("[data]\n# somebody's own\n")
    assert collegium("synthesize", "people.csv", *WHO, "--plan")[0] == 2
    assert file.read_text() == "[data]\n# somebody's own\n"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--schema", "none.toml"], "none.toml"),
        (["--target", "remark"], "no column with cells"),
        (["--target", "height"], "height"),
        (["--goal", "best"], "auto, target, fidelity, both"),
        (["--goal", "target"], "target"),
        (["--constraint", "age > 50", "--constraint", "age < 20"], "leave no value for 'age'"),
        (["--constraint", "age >"], "age >"),
        (["--constraint", "height > 3"], "height"),
        (["--neighbours", "near"], "zero-out"),
        (["--rows", "0"], "--rows"),
        (["--out", "study.txt"], ".toml"),
        (["--out", "no/where.toml"], "no"),
        (["--public", "people.csv"], "private"),
        (["--test", "people.csv"], "private"),
        (["--owner", "nobody"], "nobody"),
        (["--levels", "high=2"], "low"),
        (["--levels", "high=x,low=1"], "high"),
        (["--delta", "2"], "delta"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line_and_nothing_is_drawn(
    folder, collegium, more, said
):
    code, printed, wrong = collegium("synthesize", "people.csv", *WHO, *more)
    assert code == 2 and said in " ".join((printed + wrong).split()), (printed, wrong)
    assert not (folder / "people-synthetic" / "release").exists()
    assert not (folder / "people-synthetic" / "vault").exists()
    if "--rows" not in more:  # whose usage is printed by the library that reads options
        assert len(lines_of(wrong)) <= 2, wrong


def test_categories_that_only_private_rows_have_are_told_to_nobody(folder, collegium):
    table = pd.read_csv("people.csv")
    table.loc[::3, "ward"] = "only-in-private"
    table.to_csv("people.csv", index=False)
    (folder / "schema.toml").write_text(
        SCHEMA.replace('["a", "b", "c"]\nmissing = false', '["a", "b", "c"]')
    )
    code, said, wrong = collegium("synthesize", "people.csv", *WHO)
    assert code == 0 and "only-in-private" not in said + wrong
    for path in (folder / "people-synthetic" / "release").iterdir():
        assert b"only-in-private" not in path.read_bytes()
    rows = pd.read_csv(folder / "people-synthetic" / "release" / "synthetic.csv")
    assert 0.2 < rows.ward.isna().mean() < 0.47


@pytest.fixture
def published(folder, collegium):
    assert collegium("synthesize", "people.csv", *WHO, "--target", "sick")[0] == 0
    return folder / "people-synthetic"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--rows", "0"], "--rows"),
        (["--rows", "-3"], "--rows"),
        (["--rows", "many"], "--rows"),
        (["--where", "age > 200"], "nobody can be"),
        (["--where", "height > 3"], "height"),
        (["--where", "age >="], "age >="),
        (["--out", "rows.xlsx"], ".parquet"),
        (["--out", "people.csv"], "people.csv"),
        (["--out", "no/rows.csv"], "no"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_rows_that_cannot_be_drawn_are_refused(published, collegium, more, said):
    out = [] if "--out" in more else ["--out", "rows.csv"]
    private = (published.parent / "people.csv").read_bytes()
    code, printed, wrong = collegium("sample", published, *out, *more)
    assert code == 2 and said in " ".join((printed + wrong).split()), (printed, wrong)
    assert not (published.parent / "rows.csv").exists()
    assert (published.parent / "people.csv").read_bytes() == private


def test_there_is_nothing_to_sample_where_nothing_was_published(folder, collegium):
    for where in ("nowhere", ".", "people.csv", "schema.toml"):
        code, _, wrong = collegium("sample", where, "--out", "rows.csv")
        assert code == 2 and len(lines_of(wrong)) <= 2 and not (folder / "rows.csv").exists()


def test_very_many_rows_are_written_a_part_at_a_time(published, collegium, monkeypatch):
    monkeypatch.setattr(rows_in_files, "ROWS", 100_000)
    code, said, wrong = collegium(
        "sample", published, "--rows", 450_000, "--out", "many.parquet", "--seed", 1
    )
    assert code == 0 and "450,000 rows" in said, wrong
    assert len(pd.read_parquet("many.parquet")) == 450_000


def test_a_changed_model_is_not_sampled_from(published, collegium):
    path = published / "release" / "model.json"
    kept = path.read_bytes()
    path.write_bytes(kept.replace(b'"rows": 800', b'"rows": 801'))
    assert path.read_bytes() != kept
    code, _, wrong = collegium("sample", published, "--out", "rows.csv")
    assert code == 2 and "model.json" in wrong and len(lines_of(wrong)) <= 2
    assert collegium("verify", published)[0] == 1
