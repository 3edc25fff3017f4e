"""Files as spreadsheets and registries save them: read where that is unambiguous, or refused with the key."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

from collegium.data.column_types import ColumnTypes, read_as_described
from collegium.data.date_format import day_of
from collegium.data.schema import Schema
from collegium.errors import InputError
from collegium.study.config import read_config
from collegium.study.runner import plan_study

STUDY = """
[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
target = "sick"
owner = "patient"
classes = ["no", "yes"]
[privacy]
column = "privacy"
levels = { high = 9.0, low = 18.0 }
delta = 1e-6
[teachers]
n_teachers = 12
[aggregation]
aggregator = "gnmax"
sigma = 5
"""
FEATURES = ("age", "weight")


def people(n, seed):
    rng = np.random.default_rng(seed)
    sick = rng.integers(0, 2, n)
    return [
        {
            "patient": f"p{number}",
            "age": str(rng.integers(18, 90)),
            "weight": f"{70 + 20 * sick[number] + rng.normal():.2f}",
            "sick": ("no", "yes")[sick[number]],
            "privacy": ("high", "low")[number % 2],
        }
        for number in range(n)
    ]


@pytest.fixture
def study(tmp_path):
    """Write a study; what is given changes rows, keys of [data], or how all files are written."""

    def written(data="", change=None, mark=",", write=str, columns=FEATURES, rest=""):
        files = {"private": people(120, 0), "public": people(60, 1), "test": people(40, 2)}
        if change is not None:
            change(files)
        for role, rows in files.items():
            names = {
                "private": ["patient", *columns, "sick", "privacy"],
                "public": [*columns],
                "test": [*columns, "sick"],
            }[role]
            with (tmp_path / f"{role}.csv").open("w", newline="", encoding="utf-8") as stream:
                out = csv.writer(stream, delimiter=mark)
                out.writerow(names)
                out.writerows([[write(row[name]) for name in names] for row in rows])
        path = tmp_path / "study.toml"
        path.write_text(STUDY.replace("[data]", f"[data]\n{data}") + rest, encoding="utf-8")
        return path

    return written


@pytest.fixture
def refused(collegium):
    """Plan and run a study that can never be run: both say so, in the same line."""

    def both(path):
        lines = []
        for command in ("plan", "run"):
            code, _, errors = collegium(command, path)
            found = [line for line in errors.splitlines() if not line.startswith("warning: ")]
            assert code == 2 and len(found) == 1, errors
            lines += found
        assert lines[0] == lines[1]
        return lines[0]

    return both


def features(path):
    records = plan_study(read_config(path), on_ledger=False).plan.run.records
    return [X.to_numpy().tolist() for X in (records.X, records.X_public, records.X_test)]


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_separators_and_decimal_commas_are_read_where_they_are_plain(study, mark):
    expected = features(study())
    german = {"mark": mark, "write": lambda cell: cell.replace(".", ",")}
    assert features(study(**german)) == expected
    assert (
        features(study(f'separator = "{mark}"\ndecimal = ","'.replace("\t", "\\t"), **german))
        == expected
    )


def test_a_comma_that_may_separate_thousands_is_refused_until_it_is_said_what_it_is(study, refused):
    def thousands(files):
        for rows in files.values():
            for row in rows:
                row["weight"] = f"{row['weight'][0]},{row['weight'][:3].replace('.', '0')}"

    line = refused(study(change=thousands, mark=";"))
    assert "column 'weight' of the public records holds" in line and "data.decimal = ','" in line
    decimals = features(study('decimal = ","', thousands, ";"))
    assert all(1 <= row[1] < 10 for row in decimals[0])


@pytest.mark.parametrize(
    ("cells", "decimal", "numbers"),
    [(["42,345.67", "950"], None, [42345.67, 950]), (["1,234,567"], None, [1234567]),
     (["42.345,67", "7,5"], None, [42345.67, 7.5]), (["1,234", "7"], ".", [1234, 7]),
     (["1.234", "7,5"], ",", [1234, 7.5]), (["-12\u202f345,5"], None, [-12345.5]),
     (["12,50 €", "1.250,00 €"], None, [12.5, 1250]), (["1.008", "990"], ",", [1008, 990])],
)  # fmt: skip
def test_separated_thousands_and_units_are_read_as_public_records_show_them(
    cells, decimal, numbers
):
    table = pd.DataFrame({"income": cells * 5})
    types = ColumnTypes.of(table, decimal=decimal, characters=True)
    assert types.applied(table, "public")["income"].tolist() == numbers * 5
    private = types.applied(pd.DataFrame({"income": [*cells, "12-3", "n/a"] * 9}), tell=False)
    assert private["income"][: len(cells)].tolist() == numbers
    assert private["income"][len(cells) : len(cells) + 2].isna().all()
    inputs = {"columns": [["income", "numbers"]], **types.reading()}
    assert read_as_described(table, inputs, "new.csv")["income"].tolist() == numbers * 5
    kept = ColumnTypes.of(table, decimal=decimal, characters=True, declared={"income": "text"})
    assert (kept.kinds, kept.formats) == ({"income": "text"}, {})


@pytest.mark.parametrize("cells", [["1.008", "990"], ["1,234", "7"]])
def test_a_mark_that_may_stand_before_decimals_or_between_thousands_is_refused(cells):
    table = pd.DataFrame({"income": cells * 5})
    with pytest.raises(InputError, match="may mark decimals or separate thousands"):
        ColumnTypes.of(table, characters=True)
    with pytest.raises(InputError, match="may mark decimals or separate thousands"):
        Schema.from_public(table)


def test_thousands_among_words_that_are_no_numbers_are_no_text():
    table = pd.DataFrame({"income": ["1'234.5", "n/a", "7"] * 5})
    with pytest.raises(
        InputError, match=r"'income' of the public records holds .* write thousands"
    ):
        ColumnTypes.of(table, characters=True)


@pytest.mark.parametrize(
    "cell", ["0{:02d} 123 456", "192.168.0.{}", "1.{}.2020", "a,{}", "A{}", "2020-0{}-11"]
)
def test_what_is_written_like_no_number_stays_text(cell):
    table = pd.DataFrame({"x": [cell.format(number % 7) for number in range(40)]})
    assert ColumnTypes.of(table, characters=True).kinds == {"x": "text"}


def test_a_plan_says_what_is_text_and_warns_where_all_of_it_is_different(study, collegium):
    def dated(files):
        for rows in files.values():
            for number, row in enumerate(rows):
                row["ward"], row["seen"] = "AB"[number % 2], f"2020-{number % 12}-{number % 25}"

    path = study(change=dated, columns=("age", "weight", "ward", "seen"))
    code, output, errors = collegium("plan", path)
    assert code == 0 and "Read as numbers: age, weight; as text: ward, seen." in output
    (line,) = [line for line in errors.splitlines() if line.startswith("warning")]
    assert "column 'seen' is text with 60 different values in 60 public records" in line


def test_two_separators_in_a_header_are_named_with_the_key(study, refused):
    columns = ("age;years", "weight")

    def renamed(files):
        for rows in files.values():
            for row in rows:
                row["age;years"] = row["age"]

    line = refused(study(change=renamed, mark="|", columns=columns))
    assert "';' and '|'" in line and "data.separator" in line
    assert features(study('separator = "|"', renamed, "|", columns=columns)) == features(study())


def test_a_level_that_is_almost_right_is_guessed_and_counted_as_in_the_file(study, refused):
    def misspelt(files):
        files["private"][2]["age"] = "?"  # left out, and counted all the same
        files["private"][7]["privacy"] = "High"

    line = refused(study('missing = "?"', misspelt))
    assert "first record 8 (row 9 of a file with a header): allowed are high, low;" in line
    assert "High" not in line and line.endswith("did you mean 'high'?")


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [("sick", "", "without a label, first record 8 (row 9"), ("sick", "perhaps", "first record 8 (row 9"),
     ("patient", "", "without an owner, first record 8 (row 9"),
     ("patient", "p1", "two budgets, first record 2 (row 3 of a file with a header) and record 9")],
)  # fmt: skip
def test_records_are_counted_as_in_the_file_and_private_values_are_not_shown(
    study, refused, column, value, says
):
    def spoilt(files):
        files["private"][2]["age"] = "?"
        files["private"][8 if value == "p1" else 7][column] = value

    line = refused(study('missing = "?"', spoilt))
    assert says in line and "perhaps" not in line and "p1" not in line


def test_text_columns_are_coded_where_nothing_is_said(study, collegium, tmp_path):
    def wards(files):
        for rows in files.values():
            for number, row in enumerate(rows):
                row["ward"] = "AB"[number % 2]

    path = study(change=wards, columns=("age", "weight", "ward"))
    assert collegium("plan", path)[0] == 0
    code, output, errors = collegium("run", path, "--json")
    assert code == 0, errors
    assert json.loads(output)["student_accuracy"] > 0.8
    manifest = json.loads((tmp_path / "study" / "vault" / "manifest.json").read_text("utf-8"))
    assert manifest["config"]["preprocessing"]["kind"] == "tabular"
    assert collegium("run", path)[0] == 0  # goes on


def test_a_private_cell_that_is_no_number_is_told_and_missing_even_without_preprocessing(
    study, collegium, tmp_path
):
    def gaps(files):
        for number, value in ((3, "n/a"), (50, "secret"), (60, "")):
            files["private"][number]["age"] = value

    path = study(change=gaps)
    code, _, errors = collegium("run", path)
    assert code == 0, errors
    assert "column 'age' holds numbers in the public records" in errors
    told = "but 2 private record(s) hold something else there"
    assert f"{told}, the first of them record 4 (row 5" in errors
    assert "secret" not in errors
    released = b"".join(file.read_bytes() for file in (tmp_path / "study" / "release").iterdir())
    assert b"secret" not in released and b"something else there" not in released


def test_a_word_for_a_missing_number_leaves_a_column_a_number_and_is_named(study, collegium):
    def gap(files):
        files["public"][5]["age"] = files["private"][7]["age"] = "k.A."

    code, output, errors = collegium("plan", study(change=gap))
    assert code == 0 and "'age'" not in errors
    assert "Missing: 'k.A.' in age" in " ".join(output.split())
    records = plan_study(read_config(study(change=gap)), on_ledger=False).plan.run.records
    others = [float(row["age"]) for number, row in enumerate(people(60, 1)) if number != 5]
    assert records.X["age"][7] == records.X_public["age"][5] == np.median(others)
    assert records.X["age"].drop(7).tolist() == [
        float(row["age"]) for number, row in enumerate(people(120, 0)) if number != 7
    ]


def test_a_public_column_that_is_almost_numbers_is_told_with_the_key(study, collegium):
    def gap(files):
        for row in files["public"][:20]:
            row["age"] = "n/a"

    code, _, errors = collegium("plan", study(change=gap))
    assert code == 0
    assert (
        "20 of 60 public values are not numbers, the first of them 'n/a' in record 1 (row 2"
        in errors
    )
    assert 'data.types = { age = "number" }' in errors
    types = plan_study(
        read_config(study('types = { age = "number" }', gap)), on_ledger=False
    ).plan.run.records.X.dtypes
    assert types["age"] == np.float64
    text = plan_study(
        read_config(study('types = { age = "text" }')), on_ledger=False
    ).plan.run.records.X
    assert text["age"].tolist() == [row["age"] for row in people(120, 0)]


def dated(write, gap="k.A."):
    """Give ages as dates of birth, a private one of which is missing."""

    def change(files):
        for row in [row for rows in files.values() for row in rows]:
            age, number = int(row["age"]), len(row["patient"])
            row["age"] = write(2024 - age, 1 + age % 12, 13 + number % 10)
        files["private"][7]["age"] = files["public"][5]["age"] = gap

    return change


def year_of(days):
    return int(day_of(days)[:4])


def german(year, month, day):
    return f"{day}.{month:02}.{year}"


def american(year, month, day):
    return f"{month}/{day}/{year} 07:30"


def doubtful(year, month, day):
    return f"{month:02}/{1 + day % 12:02}/{year}"


@pytest.mark.parametrize("write", [german, american])
def test_dates_are_read_as_public_records_write_them_each_cell_by_itself(study, collegium, write):
    path = study(change=dated(write))
    code, output, errors = collegium("plan", path)
    assert code == 0 and "'age'" not in errors
    assert "as numbers: age" in output and "'k.A.' in age" in " ".join(output.split())
    private = plan_study(read_config(path), on_ledger=False).plan.run.records.X["age"]
    for number, row in enumerate(people(120, 0)):
        year = 2024 - int(row["age"])
        assert number == 7 or year_of(private[number]) == year
    assert (
        private[7]
        == plan_study(read_config(path), on_ledger=False).plan.run.records.X_public["age"].median()
    )


def test_a_day_that_may_be_a_month_is_refused_until_an_example_says_which(study, refused):
    said = refused(study(change=dated(doubtful, "")))
    assert (
        "column 'age' of the public records holds" in said
        and "'31/12/2024' or '12/31/2024'" in said
    )
    path = study('types = { age = "12/31/2024" }', dated(doubtful, ""))
    private = plan_study(read_config(path), on_ledger=False).plan.run.records.X["age"]
    age = int(people(120, 0)[0]["age"])
    assert year_of(private[0]) == 2024 - age
    assert day_of(private[0])[5:7] == f"{1 + age % 12:02}"


def test_a_student_of_dates_reads_others_dates_as_the_study_did(study, collegium, tmp_path):
    code, _, errors = collegium("run", study(change=dated(german)))
    assert code == 0, errors
    new = tmp_path / "new.csv"
    new.write_text("age,weight\n3.4.1990,75\n,80\n", encoding="utf-8")
    code, _, errors = collegium("predict", tmp_path / "study", new)
    assert code == 0, errors
    new.write_text("age,weight\n1990-04-03,75\n1991-04-03,80\n", encoding="utf-8")
    code, _, errors = collegium("predict", tmp_path / "study", new)
    assert code == 2 and "age" in errors


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (
            'types = { heigth = "number" }',
            "data.types names column 'heigth', which is not a feature",
        ),
        ('types = { age = "float" }', "column 'age' must be number, text, or a date that shows"),
        ('separator = "::"', "data.separator must be one character"),
        ('decimal = ";"', "data.decimal must be one of"),
    ],
)
def test_keys_about_tables_are_checked(study, refused, data, says):
    assert says in refused(study(data))
