"""How numbers are written: found from public cells, and applied to each private cell by itself."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collegium.data.column_types import ColumnTypes
from collegium.data.number_format import NumberFormat, format_of
from collegium.data.schema import Schema
from collegium.errors import InputError
from collegium.statistics.session import Statistics

WRITERS = {
    "1.234,5": lambda v: f"{v:,.2f}".translate(str.maketrans(",.", ".,")),
    "1,234.5": lambda v: f"{v:,.2f}",
    "1'234.5": lambda v: f"{v:,.2f}".replace(",", "'"),
    "1\u202f234,5 €": lambda v: f"{v:,.2f} €".translate(str.maketrans(",.", "\u202f,")),
    "$ 1,234.5": lambda v: f"$ {v:,.2f}",
    "12,5 %": lambda v: f"{v % 100:.2f} %".replace(".", ","),
    "12.5": lambda v: f"{v:.2f}",
}


@pytest.mark.parametrize("example", WRITERS)
@given(values=st.lists(st.floats(1000, 1e7), min_size=3, max_size=30))
def test_what_is_written_in_a_format_is_found_and_read_again(example, values):
    cells = [WRITERS[example](value) for value in [*values, 2345.67, 7.25]]
    found = format_of(cells, "x")
    assert str(found) == example and NumberFormat.of(example) == found
    expected = [value % 100 if "%" in example else value for value in [*values, 2345.67, 7.25]]
    assert np.allclose(found.read(cells), expected, rtol=0, atol=0.00501)


@given(st.text(max_size=12))
def test_no_cell_is_an_error(cell):
    for example in WRITERS:
        assert len(NumberFormat.of(example).read([cell, None, 3])) == 3


@pytest.mark.parametrize("example", ["x", "12", "1.234", "1,234", "12.5.2x", "a1b2,5"])
def test_an_example_that_leaves_something_open_is_refused(example):
    with pytest.raises(InputError, match="written must be an example with decimals"):
        Schema({"x": {"kind": "number", "bounds": [0, 1], "written": example}})


def test_incomes_that_could_not_be_read_no_longer_pull_the_mean_to_the_middle():
    """Every third income stands as "n/a": the answer was sure of what the middle of the bounds made of it."""
    rng = np.random.default_rng(0)
    incomes = rng.lognormal(8, 0.4, 6000)
    cells = [WRITERS["1.234,5"](v) if n % 3 else "n/a" for n, v in enumerate(incomes)]
    truth = incomes[np.arange(6000) % 3 > 0].mean()
    said = {"kind": "number", "bounds": [0, 20000], "written": "1.234,5"}
    frame = pd.DataFrame({"income": cells})

    def asked(**more):
        schema = Schema({"income": {**said, **more}})
        return Statistics(frame, 1.0, schema=schema, noise_seed=1).mean("income")

    answer = asked()
    (lower, upper), value = answer.interval, answer.value
    assert lower <= truth <= upper and abs(value - truth) < 100
    assert abs(answer.cells["readable"].iloc[0] - 4000) < 100 and "rows that could be read" in str(
        answer
    )
    before = asked(
        missing=False
    )  # what a schema may still say, of a table in which nothing is missing
    assert before.value > truth + 1000


def test_a_draft_keeps_how_public_numbers_are_written_and_private_cells_are_read_so():
    rng = np.random.default_rng(1)
    ages = ["k.A.", *map(str, rng.integers(18, 91, 200))]
    public = pd.DataFrame(
        {"age": ages, "cost": [WRITERS["1.234,5"](v * 40.37) for v in range(201)]}
    )
    public["smoker"] = ["ja", "nein", "nein"] * 67
    schema = Schema.from_public(public)
    assert [schema[name].kind for name in schema] == ["whole", "number", "flag"]
    assert schema["cost"].written == "1.234,5" and schema["age"].written is None
    assert "'k.A.', and whatever else is no number, count as missing" in schema.toml()
    rows = schema.arrays(
        pd.DataFrame({"age": ["30", "?"], "cost": ["1.040,25", "12-3"], "smoker": ["Ja", "?"]})
    )
    assert (
        rows["age"][0] == 30 and rows["cost"][0] == 1040.25 and rows["smoker"].tolist() == [1, -1]
    )
    assert np.isnan([rows["age"][1], rows["cost"][1]]).all()


def test_a_column_that_a_reader_typed_is_refused_where_its_points_separate_thousands():
    """pandas reads "1.008" and "990" as 1.008 and 990, unless one other cell is no number."""
    schema = Schema({"cost": {"kind": "number", "bounds": [0, 9000], "written": "1.234,5"}})
    with pytest.raises(InputError, match=r"read it as text \(in pandas: dtype="):
        schema.arrays(pd.DataFrame({"cost": [1.008, 990.0]}))


def test_a_unit_may_be_singular_or_plural_and_makes_a_number_of_few_values(tmp_path):
    stays = [f"{days} {'Tag' if days == 1 else 'Tage'}" for days in (1, 2, 3, 5) * 20] + ["k.A."]
    written = format_of(stays, "stay")
    assert written.read(stays)[:4].tolist() == [1, 2, 3, 5] and np.isnan(written.read(stays)[-1])
    assert np.isnan(written.read(["5 Tische", "Tage", "5 Tagen zu viel"])).all()
    public = pd.DataFrame({"stay": stays})
    assert ColumnTypes.of(public, characters=True).kinds == {"stay": "number"}
    assert Schema.from_public(public)["stay"].kind == "whole"
