"""`predict` reads a table as the study did: separators, decimals, text, and cells that are no numbers."""

import csv

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from collegium.distillation.supervised import NamedClasses
from collegium.models.preprocessing.columns import numbers_of
from collegium.study.others_records import records_like
from collegium.study.student_file import STUDENT_FILE, student_bytes

TABLE = pd.DataFrame({"age": [1.5, 2.5, 7.5, 8.5], "dose": [0.0, 1.0, 0.0, 1.0]})
INPUTS = {"columns": [["age", "numbers"], ["dose", "numbers"]]}
YOUNG = "0,no\n1,yes\n"


@pytest.fixture
def predict(tmp_path, collegium):
    """Ask a student who is yes from 5 on: exit code, what is printed, what is said."""

    def call(text, *options, imputes=False, classes=("no", "yes"), **inputs):
        model = LogisticRegression(C=1e6)
        model = make_pipeline(SimpleImputer(), model) if imputes else model
        student = model.fit(TABLE, [classes[0]] * 2 + [classes[1]] * 2)
        (tmp_path / STUDENT_FILE).write_bytes(student_bytes(student, {**INPUTS, **inputs}))
        (tmp_path / "table.csv").write_text(text, encoding="utf-8")
        return collegium("predict", tmp_path, tmp_path / "table.csv", *options)

    return call


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("age,dose\n1.5,0\n9.5,1\n", {}),
        ("name;dose;age\nx;0;1,5\ny;1;9,5\n", {}),
        ("dose\tage\n0\t1.5\n1\t9.5\n", {"decimal": ","}),
        ("age,dose\n1.5,0\n9.5,1\n", {"separator": ";", "decimal": ","}),
        ("a,b;age;dose\nx;1,125;0\ny;9,125;1\n", {"separator": ";", "decimal": ","}),
    ],
)
def test_however_it_is_saved(predict, text, inputs):
    code, printed, said = predict(text, **inputs)
    assert (code, said) == (0, "") and printed.endswith(YOUNG)


def test_a_class_is_answered_from_a_threshold_on(predict):
    text = "age,dose\n1.5,0\n3.5,0\n9.5,1\n"
    assert predict(text)[1].endswith("0,no\n1,no\n2,yes\n")  # 3.5 is yes with 0.25
    assert predict(text, "--threshold", "yes=0.05")[1].endswith("0,no\n1,yes\n2,yes\n")
    assert predict(text, "--threshold", "no=0.05")[1].endswith("0,no\n1,no\n2,yes\n")
    for wrong in ("maybe=0.5", "yes", "yes=0", "yes=1.1", "yes=nan", "yes=x"):
        code, _, said = predict(text, "--threshold", wrong)
        assert code == 2 and "classes of" not in said and "yes=0.2" in said


@pytest.mark.parametrize("piped", [False, True])
def test_a_class_that_answers_never_named_has_no_threshold_and_a_reason(tmp_path, collegium, piped):
    known = LogisticRegression().fit(TABLE, [0, 0, 1, 1])
    student = NamedClasses(known, np.array(["no", "yes", "rare"]))
    student = make_pipeline(StandardScaler().fit(TABLE), student) if piped else student
    (tmp_path / STUDENT_FILE).write_bytes(student_bytes(student, INPUTS))
    (tmp_path / "table.csv").write_text("age,dose\n1.5,0\n", encoding="utf-8")
    asked = ("predict", tmp_path, tmp_path / "table.csv", "--threshold")
    assert collegium(*asked, "yes=0.2")[0] == 0
    code, _, said = collegium(*asked, "rare=0.2")
    assert code == 2 and "never named 'rare', so that it has no probability" in said
    assert "Traceback" not in said and "CLASS=PROBABILITY" in collegium(*asked, "other=0.2")[2]


@pytest.mark.parametrize("given", [{"imputes": True}, {"medians": {"age": 1.0, "dose": 0.0}}])
def test_a_cell_that_is_no_number_is_missing_there_alone(predict, given):
    code, printed, said = predict("age;dose\n1,5;n/a\n9,5;1\n", **given)
    assert code == 0 and printed.endswith(YOUNG)
    assert "column 'dose'" in said and "record 1 (row 2 of" in said and "n/a" not in said
    code, printed, said = predict("age;dose\n1,5;\n9,5;1\n", **given)
    assert (code, said) == (0, "") and printed.endswith(YOUNG)


@pytest.mark.parametrize("text", ["age;dose\n1,125;0\n9,125;1\n", "age;dose\none;0\ntwo;1\n"])
def test_what_may_mean_two_things_is_refused(predict, text):
    code, _, said = predict(text)
    assert code == 2 and len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("is_file", [True, False])
def test_no_class_is_a_formula_or_steers_a_terminal(tmp_path, predict, collegium, is_file):
    code, printed, _ = predict(
        "age,dose\n1.5,0\n9.5,1\n", classes=['=HYPERLINK("x")', "\x1b[2Jyes"]
    )
    if is_file:
        out = tmp_path / "predictions.csv"
        given = ("--out", out, "--proba")
        assert collegium("predict", tmp_path, tmp_path / "table.csv", *given)[0] == 0
        printed = out.read_text(encoding="utf-8")
    rows = list(csv.DictReader(printed.splitlines()))
    assert code == 0 and [row["label"] for row in rows] == ['\'=HYPERLINK("x")', " [2Jyes"]
    assert "\x1b" not in printed


@pytest.mark.parametrize("command", ["predict", "onnx"])
@pytest.mark.parametrize("name", ["table.csv", "vault/key", "release/new.csv"])
def test_what_is_there_is_not_written_over(tmp_path, predict, collegium, command, name):
    predict("age,dose\n1,0\n")
    for folder in ("vault", "release"):
        (tmp_path / folder).mkdir()
    for file in ("vault/journal.jsonl", "vault/key"):
        (tmp_path / file).write_text("as it is")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code, _, said = collegium(command, tmp_path, tmp_path / "table.csv", "--out", tmp_path / name)
    assert code == 2 and "left as" in said
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", [["run", "study.toml"], ["audit", "mechanism"]])
def test_no_folder_of_another_command_is_made_among_a_studys_files(tmp_path, collegium, command):
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/journal.jsonl").touch()
    (tmp_path / "study.toml").write_text(
        '[data]\ndataset = "digits"\nprivate_records = 400\npublic_records = 100\n'
        "[privacy]\nlevels = { all = 8.0 }\nshares = { all = 1.0 }"
    )
    name, what = command
    path = tmp_path / what if what.endswith(".toml") else what
    code, _, said = collegium(name, path, "--out", tmp_path / "vault" / "new")
    assert code == 2 and "among the files of the study" in said
    assert not (tmp_path / "vault" / "new").exists()


def test_dates_of_a_file_are_those_that_a_student_learnt(tmp_path):
    """Students of dates (of Parquet, a database) take those of Parquet and CSV files, with a time or not."""
    visits = pd.Series(pd.to_datetime(["2024-02-29", "2024-03-01 12:00", None], format="ISO8601"))
    (tmp_path / "new.csv").write_text("visit,x\n2024-02-29,1\n2024-03-01 12:00,2\nsoon,3\n")
    visits.to_frame("visit").to_parquet(tmp_path / "times.parquet")
    days = visits.dt.date.where(visits.notna(), None)
    days.to_frame("visit").to_parquet(tmp_path / "days.parquet")
    read = {
        file: numbers_of(
            records_like(tmp_path / file, {"columns": [["visit", "dates"]]}), ["visit"]
        )
        for file in ("new.csv", "times.parquet", "days.parquet")
    }
    for file, day in (("new.csv", 19783.5), ("times.parquet", 19783.5), ("days.parquet", 19783)):
        np.testing.assert_array_equal(read[file][:, 0], [19782, day, np.nan])
