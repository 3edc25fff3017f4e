"""A public schema: what it refuses, that it comes back from its file, and that it says nothing of a row."""

import warnings
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import Schema
from collegium.data.schema import Column
from collegium.data.schema_arrays import n_rows, series_of, take_frame_rows
from collegium.errors import ConfigError, InputError

AGE = {"kind": "whole", "bounds": [17, 90]}
SEX = {"kind": "category", "categories": ["F", "M"], "shares": {"F": 0.4}}
SCHEMA = Schema(
    {
        "age": {**AGE, "mean": 38.5, "sd": 13.6, "bins": [17, 40, 90]},
        "pay per hour": {"kind": "number", "bounds": [0, 99.5], "step": 0.5, "missing": True},
        "sex": SEX,
        "smoker": {"kind": "flag", "mean": 0.2},
        "remark": {"kind": "text"},
    },
    rows_per_owner=3,
)
FRAME = pd.DataFrame(
    {
        "age": [39, 1000, -5, None],
        "pay per hour": ["7.5", "n/a", "1e9", "inf"],
        "sex": ["M", "m", None, "F"],
        "smoker": [True, "YES", 0, "perhaps"],
        "remark": ["a", "b", "c", "d"],
    }
)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({}, "columns must be a table with at least one column"),
        ({"age": 3}, "columns.age must be a section with keys"),
        ({"age": {}}, "columns.age.kind is missing"),
        ({"age": {"kind": "numbr"}}, "columns.age.kind must be one of"),
        (
            {"age": {**AGE, "bound": [1, 2]}},
            "unknown key columns.age.bound: did you mean 'bounds'?",
        ),
        ({"age": {"kind": "whole"}}, "columns.age.bounds must be the lowest and the highest value"),
        ({"age": {**AGE, "bounds": [90, 17]}}, "columns.age.bounds must be the lower one"),
        ({"age": {**AGE, "bounds": [0, np.inf]}}, "columns.age.bounds"),
        (
            {"age": {**AGE, "bounds": [0, 1.5]}},
            "columns.age.bounds of a column of kind whole must be",
        ),
        ({"age": {**AGE, "bounds": ["a", "b"]}}, "columns.age.bounds must be numbers, got"),
        ({"age": {**AGE, "step": 100}}, "columns.age.step must be at most 73"),
        ({"age": {**AGE, "mean": 3}}, "columns.age.mean must lie between 17"),
        ({"age": {**AGE, "sd": 40}}, "columns.age.sd"),
        ({"age": {**AGE, "bins": [17, 40]}}, "columns.age.bins must cover the bounds"),
        ({"age": {**AGE, "bins": [17, 17, 90]}}, "columns.age.bins must be 2 to"),
        (
            {"age": {**AGE, "categories": ["F"]}},
            "columns.age.categories is for columns of kind category",
        ),
        ({"age": {**AGE, "missing": 1}}, "columns.age.missing must be true or false"),
        ({"sex": {"kind": "category"}}, "columns.sex.categories must be a list of 1 to"),
        ({"sex": {**SEX, "categories": ["F", "F"]}}, "columns.sex.categories must be different"),
        (
            {"sex": {**SEX, "shares": {"f": 1.0}}},
            "columns.sex.shares mentions 'f', which is not a category",
        ),
        ({"sex": {**SEX, "shares": {"F": 0.7, "M": 0.7}}}, "columns.sex.shares must add up"),
        ({"smoker": {"kind": "flag", "mean": 2}}, "columns.smoker.mean must lie between 0 and 1"),
    ],
)
def test_what_contradicts_itself_is_refused_in_one_line_that_names_the_key(columns, says):
    with pytest.raises(InputError) as caught:
        Schema(columns)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_a_schema_comes_back_from_its_file(tmp_path):
    SCHEMA.write(tmp_path / "schema.toml")
    again = Schema.read(tmp_path / "schema.toml")
    assert again == SCHEMA
    assert again.digest == SCHEMA.digest
    assert hash(again) == hash(SCHEMA)
    assert again["pay per hour"].missing
    assert again.rows_per_owner == 3


def test_the_digest_is_of_what_is_said_however_it_is_written():
    assert Schema({"age": {**AGE, "bounds": (17.0, 90.0)}}) == Schema({"age": AGE})
    assert Schema({"age": Column("whole", bounds=[17, 90])}) == Schema({"age": AGE})
    assert Schema({"sex": SEX, "age": AGE}) == Schema({"age": AGE, "sex": SEX})
    assert Schema({"age": AGE}, rows_per_owner=2) != Schema({"age": AGE})
    assert Schema({"age": {**AGE, "bounds": [17, 91]}}) != Schema({"age": AGE})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[columns.age", "is not valid TOML"),
        ("row_per_owner = 2", "unknown key row_per_owner: did you mean 'rows_per_owner'?"),
        ("rows_per_owner = 2", "it describes no column"),
        ('rows_per_owner = 0\n[columns.a]\nkind = "flag"', "rows_per_owner must be a whole number"),
        ('[columns.age]\nkind = "whole"\nbounds = [0]', "columns.age.bounds"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_key(tmp_path, text, says):
    file = tmp_path / "schema.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Schema.read(file)
    assert str(caught.value).startswith(str(file))
    assert says in str(caught.value)
    with pytest.raises(ConfigError, match="collegium schema init"):
        Schema.read(tmp_path / "none.toml")


def test_each_cell_is_read_by_itself_and_no_value_is_told_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = SCHEMA.arrays(FRAME)
    np.testing.assert_array_equal(rows["age"], [39, 90, 17, np.nan])
    np.testing.assert_array_equal(rows["pay per hour"], [7.5, np.nan, 99.5, np.nan])
    np.testing.assert_array_equal(rows["sex"], [1, -1, -1, 0])
    np.testing.assert_array_equal(rows["smoker"], [1, 1, 0, -1])
    assert "remark" not in rows
    for row in range(len(FRAME)):  # whatever others hold, and however a reader typed the column
        alone = SCHEMA.arrays(FRAME.iloc[[row]].infer_objects())
        for name, values in rows.items():
            np.testing.assert_array_equal(alone[name], values[[row]])


def test_every_kind_of_table_is_read_alike():
    typed = pd.DataFrame(
        {
            "age": [39, 1000, -5],
            "pay per hour": [7.5, np.nan, 1e9],
            "sex": pd.Categorical(["M", "x", "F"]),
            "smoker": [True, False, True],
        }
    )

    class Foreign:
        """A table of another library: all that is known of it is Arrow's interface."""

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.Table.from_pandas(typed).__arrow_c_stream__(requested_schema)

    names = [name for name in SCHEMA if name != "remark"]
    tables = [typed, pa.Table.from_pandas(typed), Foreign(), typed.astype({"sex": str, "age": str})]
    arrays = [SCHEMA.arrays(table, names) for table in tables]
    for others in arrays[1:]:
        for name in names:
            np.testing.assert_array_equal(others[name], arrays[0][name])
            assert others[name].dtype == arrays[0][name].dtype


def test_what_is_public_about_a_table_may_be_refused():
    with pytest.raises(
        InputError, match=r"no column 'age', which is needed here: did you mean 'agee'"
    ):
        SCHEMA.arrays(FRAME.rename(columns={"age": "agee"}), ["age"])
    with pytest.raises(
        InputError, match="there is no column 'agee' in the schema: did you mean 'age'"
    ):
        SCHEMA.arrays(FRAME, ["agee"])
    with pytest.raises(InputError, match="holds dates"):
        SCHEMA.arrays(pd.DataFrame({"age": pd.to_datetime(["2020-01-01"])}), ["age"])
    with pytest.raises(InputError, match="a table is needed"):
        SCHEMA.arrays([[1]], ["age"])


ODD = [
    [1],
    {"a": 1},
    b"x",
    Decimal("3.5"),
    Decimal("sNaN"),
    1j,
    10**400,
    -(10**5000),
    "\ud800",
    "1e400",
]
ODD += [np.array([1, 2]), np.float32(1e30), pd.NaT, pd.NA, pd.Timestamp("2020-01-01"), object()]
CELLS = st.one_of(
    st.none(), st.text(max_size=3), st.floats(), st.integers(-300, 300), st.sampled_from(ODD)
)


@given(st.lists(CELLS))
@settings(max_examples=40, deadline=None)
def test_no_private_value_raises_and_all_numbers_are_within_bounds(cells):
    column = pd.Series([None] * len(cells), dtype=object)
    for place, cell in enumerate(cells):
        column.iat[place] = cell
    frame = pd.DataFrame(dict.fromkeys(["age", "pay per hour", "smoker"], column))
    frame["sex"] = column.where([not isinstance(cell, Number) for cell in column], None)
    codes = Schema({"smoker": {"kind": "category", "categories": ["0", "1"]}}).arrays(frame)
    assert set(codes["smoker"]) <= {-1, 0, 1}
    rows = SCHEMA.arrays(frame, list(frame.columns))
    for name in ("age", "pay per hour"):
        known = rows[name][~np.isnan(rows[name])]
        assert ((known >= SCHEMA[name].lower) & (known <= SCHEMA[name].upper)).all()
    for name in ("sex", "smoker"):
        assert set(rows[name]) <= {-1, 0, 1}
    assert set(SCHEMA["age"].codes(rows["age"])) <= {-1, 0, 1}


def test_numbers_fall_into_bins_and_the_last_holds_its_edge():
    column = SCHEMA["age"]
    assert column.has_keys
    assert column.keys == ("[17, 40)", "[40, 90]")
    assert column.codes(np.array([17.0, 39, 40, 90, np.nan])).tolist() == [0, 0, 1, 1, -1]
    few = Column("whole", bounds=(0, 3))
    assert few.has_keys
    assert not Column("whole", bounds=(0, 99)).has_keys
    assert few.keys == ("0", "1", "2", "3")
    assert few.codes(np.array([0.0, 3, np.nan])).tolist() == [0, 3, -1]
    assert len(Column("number", bounds=(0, 3)).keys) == 10
    assert SCHEMA["smoker"].numbers(np.array([0, 1, -1]))[:2].tolist() == [0.0, 1.0]


def test_blanks_are_no_category_and_others_that_look_alike_are_told(tmp_path):
    import duckdb

    cells = ["Chirurgie", "Chirurgie ", "chirurgie", "Innere", "", "   ", None] * 3
    frame = pd.DataFrame({"ward": cells, "age": ["40", " ", "50", "", "60", None, "70"] * 3})
    with duckdb.connect(str(tmp_path / "house.duckdb")) as connection:
        connection.register("given", frame)
        connection.execute("CREATE TABLE others AS SELECT * FROM given")
    frame.to_csv(tmp_path / "others.csv", index=False)
    files = [frame, tmp_path / "others.csv", f"duckdb:///{tmp_path}/house.duckdb#others"]
    drafts = [Schema.from_public(records) for records in files]
    for draft in drafts:
        assert draft["ward"].categories == ("Chirurgie", "Chirurgie ", "Innere", "chirurgie")
        assert draft["ward"].known_from == 12
        assert "# 3 of them are others of them but for blanks around them" in draft.toml()
        assert draft["age"].kind == "whole" and "count as missing" not in draft.toml()
    frame["ward"] = frame["ward"].str.strip().str.capitalize()
    assert "others of them" not in Schema.from_public(frame).toml()


def test_a_draft_of_public_records_describes_them(tmp_path):
    public = pd.DataFrame(
        {
            "age": [17, 38, 90],
            "pay": ["7.5", "", "1234.5"],
            "sex": ["M", "F", "F"],
            "smoker": ["no", "yes", "no"],
            "born": pd.to_datetime(["2000-01-01"] * 3),
            "empty": [None] * 3,
        }
    )
    public.to_csv(tmp_path / "public.csv", index=False)
    draft = Schema.from_public(tmp_path / "public.csv")
    assert draft["age"].said() == {
        "kind": "whole", "bounds": [17, 90], "mean": 48.33, "sd": 30.68, "known_from": 3,
    }  # fmt: skip
    assert [draft[name].known_from for name in ("pay", "sex", "smoker")] == [2, 3, 3]
    assert draft["pay"].lower == 0
    assert draft["pay"].upper == 1300
    assert (draft["pay"].step, draft["pay"].missing) == (0.1, True)
    assert draft["sex"].shares == {"F": 0.6667, "M": 0.3333}
    assert draft["smoker"].kind == "flag"
    assert draft["empty"].kind == "text"
    for records in (public, tmp_path / "public.csv"):
        born = Schema.from_public(records)["born"]
        assert (born.kind, born.bounds) == ("date", ("2000-01-01", "2000-12-31"))
    draft.write(tmp_path / "schema.toml")
    assert Schema.read(tmp_path / "schema.toml") == draft
    assert "# public records go from 17 to 90" in (tmp_path / "schema.toml").read_text()
    public.assign(pay=["7,5", "", "1234,5"]).to_csv(tmp_path / "comma.csv", index=False, sep=";")
    found = Schema.from_public(tmp_path / "comma.csv")
    assert found == Schema.from_public(tmp_path / "comma.csv", decimal=",")
    assert found["pay"].said() == {**draft["pay"].said(), "written": "12,5"}
    assert all(found[name] == draft[name] for name in draft if name != "pay")
    many = Schema.from_public(pd.DataFrame({"name": [f"n{row}" for row in range(200)]}))
    assert many["name"].kind == "text"
    with pytest.raises(InputError, match="no row"):
        Schema.from_public(pd.DataFrame({"a": []}))


@pytest.mark.parametrize("cell", [None, 1j, "n/a", 2**53 + 1, 0.5])
def test_one_cell_changes_the_type_of_a_column_and_nobody_elses_value(cell: Any) -> None:
    one = Schema(
        {
            "number": {"kind": "number", "bounds": [0, 5]},
            "code": {"kind": "category", "categories": ["1", "2"]},
        }
    )
    cells = [1, 2, 2**53, 2**53 + 1]
    for name in one:
        before = one.arrays(pd.DataFrame({name: [3, *cells]}), [name])[name]
        after = one.arrays(pd.DataFrame({name: [cell, *cells]}), [name])[name]
        assert before[1:].tolist() == after[1:].tolist()


def test_bounds_whose_squares_are_no_floats_are_refused_before_anything_is_asked():
    with pytest.raises(InputError, match="bounds must"):
        Schema({"x": {"kind": "number", "bounds": [0, 1e300]}})
    assert Schema({"x": {"kind": "number", "bounds": [0, 1e60]}})["x"].upper == 1e60


@pytest.mark.parametrize("made", [pd.DataFrame, pa.table, pytest.importorskip("polars").DataFrame])
@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 1, 0], [1], []])
def test_rows_are_taken_of_every_table_in_the_order_given(made: Any, rows: list[int]) -> None:
    frame = made({"age": [30, 40, 50], "sex": ["F", "M", "F"], "who": [b"a", b"b", b"a"]})
    taken = take_frame_rows(frame, np.array(rows, dtype=np.intp))
    assert n_rows(taken) == len(rows)
    assert series_of(taken, "age").tolist() == [[30, 40, 50][row] for row in rows]
    assert series_of(taken, "sex").tolist() == [["F", "M", "F"][row] for row in rows]
    assert series_of(taken, "who").tolist() == [[b"a", b"b", b"a"][row] for row in rows]
