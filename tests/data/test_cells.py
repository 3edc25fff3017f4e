"""Cells of every kind of column: codes become values, a table, text and the same codes again."""

import io
import math
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from collegium import Schema
from collegium.data.cells import MOST_CELLS, Cells
from collegium.errors import InputError

STEPS = [None, 0.1, 0.01, 0.125, 0.25, 0.3, 1.0, 5.0, 1 / 3]
LOWER = [0.0, -1.5, 0.2, 1e6, -273.15, 17.0]
CATEGORIES = ["a", "b", "missing", "01", "1.0", "größer", "a, b", 'say "yes"', "x y", "True", "-"]


@st.composite
def numbers(draw):
    lower, step = draw(st.sampled_from(LOWER)), draw(st.sampled_from(STEPS))
    width = draw(st.sampled_from([1.0, 7.3, 40.0, 1000.0]))
    assume(step is None or step <= width)
    column = {"kind": "number", "bounds": [lower, lower + width]}
    if step is not None:
        column["step"] = step
    if draw(st.booleans()):  # edges that need not lie on the grid, and reach beyond the bounds
        inner = draw(st.sets(st.integers(1, 99), max_size=6))
        beyond = draw(st.sampled_from([0.0, 0.5]))
        column["bins"] = [
            lower - beyond,
            *(round(lower + width * part / 100, 4) for part in sorted(inner)),
            lower + width + beyond,
        ]
    if draw(st.booleans()) and step is not None:
        column["written"] = draw(st.sampled_from(["1.234,5 €", "12,5 %", "1,234.5"]))
    return column


@st.composite
def wholes(draw):
    lower = draw(st.sampled_from([0, -5, 17, 10**9]))
    width = draw(st.sampled_from([1, 9, 49, 50, 73, 5000, 10**6]))
    column = {"kind": "whole", "bounds": [lower, lower + width]}
    if draw(st.booleans()) and width >= 9:
        column["step"] = draw(st.sampled_from([2, 5]))
    elif draw(st.booleans()):
        inner = draw(st.sets(st.integers(1, width), max_size=5)) - {width}
        beyond = draw(st.sampled_from([0, 3]))
        edges = [lower - beyond, *(lower + one for one in sorted(inner)), lower + width + beyond]
        column["bins"] = edges
    return column


@st.composite
def dates(draw):
    first = date(1990, 1, 1) + timedelta(days=draw(st.integers(0, 9000)))
    last = first + timedelta(days=draw(st.sampled_from([1, 30, 400, 9000])))
    column = {"kind": "date", "bounds": [first.isoformat(), last.isoformat()]}
    if draw(st.booleans()):
        column["written"] = draw(st.sampled_from(["31.12.2024", "12/31/2024", "2024-12-31"]))
    return column


@st.composite
def categories(draw):
    names = draw(st.lists(st.sampled_from(CATEGORIES), min_size=1, max_size=8, unique=True))
    return {"kind": "category", "categories": names}


@st.composite
def columns(draw):
    column = draw(st.one_of(numbers(), wholes(), dates(), categories(), st.just({"kind": "flag"})))
    return {**column, "missing": draw(st.booleans())}


def cells_of(column, seed=0, public=False):
    """Cells of one column, with edges that follow public records or the schema alone."""
    schema = Schema({"x": column})
    if not public:
        return Cells(schema)
    one, rng = Cells(schema).columns[0], np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.3, 400) - 1, one.size - 1)
    values = one.values(codes, rng.random(400))
    if values.dtype.kind == "f" and not one.column.grid:
        values = np.where(rng.random(400) < 0.3, np.nanmin(values), values)  # an atom
    frame = Cells(schema).frame({"x": values})
    return Cells.with_edges(schema, Cells(Cells(schema).plain_schema, frame).edges)


def readable(one):
    """Cells that hold any value: a bin that lies between two steps of a grid, or out of bounds, has none."""
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(one.size), 3)
    return np.unique(codes[one.codes(one.values(codes, rng.random(len(codes)))) == codes])


@given(columns(), st.integers(0, 2**32 - 1), st.booleans())
@example({"kind": "number", "bounds": [0, 1], "step": 0.1, "missing": False}, 1, True)
@example({"kind": "number", "bounds": [0, 2], "step": 0.125, "missing": True}, 1, False)
def test_codes_come_back_through_values_a_table_and_text(column, seed, public):
    cells = cells_of(column, seed, public)
    one = cells.columns[0]
    rng = np.random.default_rng(seed)
    codes = rng.choice(readable(one), (300, 1))
    arrays = cells.arrays(codes, rng)
    assert (cells.codes_of(arrays) == codes).all()
    frame = cells.frame(arrays)
    plain = Cells.with_edges(cells.plain_schema, cells.edges)
    assert (plain.codes(frame) == codes).all()
    text = frame.to_csv(index=False)
    again = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, na_values=[""])
    assert (plain.codes(again) == codes).all()
    inferred = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])
    if (
        one.column.kind != "category"
    ):  # whose names a reader takes for numbers: the schema refuses these
        assert (plain.codes(inferred) == codes).all()


@given(columns(), st.integers(0, 2**32 - 1), st.booleans())
def test_cells_cover_the_column_and_every_one_has_a_name(column, seed, public):
    cells = cells_of(column, seed, public)
    one = cells.columns[0]
    assert len(one.labels) == one.size == len(set(one.labels)) or column["kind"] == "category"
    assert one.has_missing == column["missing"]
    if one.edges is not None:
        assert (np.diff(one.edges) > 0).all()
        assert one.edges[0] <= one.column.lower and one.edges[-1] >= one.column.upper
    numbers = one.numbers()
    assert numbers.shape == (one.size,) and (math.isnan(numbers[-1]) == one.has_missing)
    # What is drawn is within the bounds, and on the grid.
    if one.column.kind in ("number", "whole", "date"):
        rng = np.random.default_rng(seed)
        drawn = one.values(rng.integers(0, one.n_values, 500), rng.random(500))
        assert one.column.lower <= drawn.min() and drawn.max() <= one.column.upper
        if one.column.grid:
            steps = (drawn - one.column.lower) / one.column.grid
            off = np.abs(steps - np.rint(steps)) > 1e-6
            assert (drawn[off] == one.column.upper).all()  # a bound need not lie on the grid
        extremes = np.array([one.column.lower, one.column.upper])
        assert (one.codes(extremes) == [one.codes(drawn).min(), one.codes(drawn).max()]).all() or (
            one.n_values > 20
        )


@given(columns())
def test_drawn_values_have_every_value_of_their_cell_alike(column):
    """Uniformly: with evenly spaced uniforms each value of a grid comes equally often, up to one."""
    one = Cells(Schema({"x": column})).columns[0]
    assume(one.column.grid and one.column.kind in ("number", "whole", "date"))
    n = 6_000
    for cell in range(min(one.n_values, 4)):
        drawn = one.values(np.full(n, cell), (np.arange(n) + 0.5) / n)
        every = one.on_grid(np.arange(one.column.n_steps, dtype=float))
        inside = every[one.codes(every) == cell]
        if len(inside) > 1_000 or not len(inside):
            continue
        values, counts = np.unique(drawn, return_counts=True)
        assert values == pytest.approx(inside, abs=1e-9)
        assert counts.max() - counts.min() <= 1


def test_declared_bins_beyond_the_bounds_pile_nothing_up_on_them():
    schema = Schema({"age": {"kind": "whole", "bounds": [0, 99], "bins": [-100, 18, 200]}})
    one = Cells(schema).columns[0]
    drawn = one.values(np.zeros(1800, dtype=int), (np.arange(1800) + 0.5) / 1800)
    assert np.unique(drawn, return_counts=True)[1].tolist() == [100] * 18
    upper = one.values(np.ones(8200, dtype=int), (np.arange(8200) + 0.5) / 8200)
    assert np.unique(upper, return_counts=True)[1].tolist() == [100] * 82


def test_what_a_schema_does_not_foresee_counts_as_missing_or_as_the_nearest():
    schema = Schema(
        {
            "age": {"kind": "whole", "bounds": [0, 99], "bins": [0, 18, 65, 99]},
            "ward": {"kind": "category", "categories": ["a", "b"]},
            "sure": {"kind": "whole", "bounds": [0, 9], "missing": False},
            "sick": {"kind": "flag", "missing": False},
        }
    )
    frame = pd.DataFrame(
        {
            "age": [-5, 1e9, float("inf"), None, "x"],
            "ward": ["a", "private-only", None, "", "b"],
            "sure": [3, None, -1, 100, "?"],
            "sick": ["yes", "no", None, "perhaps", "ja"],
        },
        dtype=object,
    )
    found = Cells(schema).codes(frame)
    assert found[:, 0].tolist() == [0, 2, 3, 3, 3]
    assert found[:, 1].tolist() == [0, 2, 2, 2, 1]
    assert found[:, 2].tolist() == [3, 4, 0, 9, 4]  # the middle of the bounds
    assert found[:, 3].tolist() == [1, 0, 0, 0, 1]


def test_edges_follow_public_records_and_never_private_ones():
    schema = Schema({"pay": {"kind": "number", "bounds": [0, 100_000], "step": 1}})
    rng = np.random.default_rng(0)
    pay = np.where(rng.random(2_000) < 0.4, 0, np.rint(rng.lognormal(9, 0.6, 2_000)))
    public = pd.DataFrame({"pay": pay})
    one = Cells(schema, public).columns[0]
    assert one.edges[:3].tolist() == [0, 1, one.edges[2]]  # zero is a value of its own
    counts = np.bincount(one.codes(pay), minlength=one.size)[1 : one.n_values]
    assert (
        counts >= counts.max() - 1
    ).sum() >= 12  # as many in each between the outermost quantiles
    widths = np.diff(one.edges)[
        -4:
    ]  # and beyond them each is at most about twice as wide as the last
    assert (widths[1:-1] < 2.1 * widths[:-2]).all()
    before = Cells(schema).edges
    Cells(schema).codes(public)
    assert Cells(schema).edges == before != Cells(schema, public).edges
    few = Cells(schema, public.head(49))  # too few to say where edges should be
    assert few.edges == before


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"name": {"kind": "text"}}, "no column with cells"),
        (
            {"id": {"kind": "category", "categories": [f"c{n}" for n in range(MOST_CELLS + 1)]}},
            "5,001 categories",
        ),
    ],
)
def test_what_has_no_cells_is_refused(columns, said):
    with pytest.raises(InputError) as error:
        Cells(Schema(columns))
    assert said in str(error.value) and "\n" not in str(error.value)


def test_free_text_that_is_asked_for_is_refused_and_left_out_otherwise():
    schema = Schema({"name": {"kind": "text"}, "sick": {"kind": "flag"}})
    assert Cells(schema).names == ("sick",)
    with pytest.raises(InputError, match="'name' is free text, which has no cells"):
        Cells(schema, names=["name"])


def test_a_column_of_one_cell_is_one():
    cells = Cells(Schema({"x": {"kind": "category", "categories": ["only"], "missing": False}}))
    assert cells.sizes == (1,)
    assert cells.codes(pd.DataFrame({"x": ["only", "other", None]})).tolist() == [[0]] * 3
