"""A reader of tables types a column as a whole: one person's odd cell must not change how others' are read.

pandas.read_csv makes 7 of everybody's "007", unless one cell of the column is no number. Played as a game:
two files that differ in one person's cell; how far do the others' contributions to a sum move?
"""

import io

import numpy as np
import pandas as pd
import pytest

import collegium as cg
from collegium import Schema
from collegium.errors import InputError
from collegium.runs.fit_inputs import given_records

OTHERS = 12


def read(cells, **how):
    """Read a file in which these cells are the column "code", as pandas does."""
    text = "code\n" + "".join(f"{cell}\n" for cell in cells)
    return pd.read_csv(io.StringIO(text), **how)


def caps_moved(categories, cell, odd, **how):
    """Play: the others have ``cell``, and somebody it or ``odd``. How many caps do the others move by?"""
    schema = Schema({"code": {"kind": "category", "categories": categories}})
    counted = [
        schema.arrays(read([somebody, *[cell] * OTHERS], **how))["code"][1:] >= 0
        for somebody in (cell, odd)
    ]
    return int(np.abs(counted[0].astype(int) - counted[1]).sum())


@pytest.mark.parametrize("odd", ["x", "7x", "n/a?"])
@pytest.mark.parametrize(
    ("categories", "cell"),
    [
        (["007", "008"], "007"),
        (["7", "x"], "07"),
        (["7.0", "8.0"], "7.0"),
        (["true", "false"], "true"),
        (["TRUE", "other"], "TRUE"),
    ],
)
def test_a_typed_column_of_names_is_refused_and_read_as_text_nobody_moves(categories, cell, odd):
    with pytest.raises(InputError, match=r"holds (numbers|truth values).*dtype=\{'code': str\}"):
        caps_moved(categories, cell, odd)
    assert caps_moved(categories, cell, odd, dtype=str) == 0


@pytest.mark.parametrize(
    ("categories", "cell"),
    [(["7", "8"], "007"), (["7", "8"], "7.0"), (["-7", "0"], "-7"), (["True", "False"], "TRUE")],
)
def test_categories_that_a_reader_types_are_read_alike_typed_or_not(categories, cell):
    assert caps_moved(categories, cell, "x") == 0
    column = {"code": {"kind": "category", "categories": categories}}
    assert (Schema(column).arrays(read([cell, "x"]))["code"] >= 0).tolist() == [True, False]


@pytest.mark.parametrize("cell", ["01", "1.00", "TRUE", "1"])
def test_flags_are_read_alike_too(cell):
    schema = Schema({"code": {"kind": "flag"}})
    for odd in (cell, "x"):
        assert schema.arrays(read([odd, *[cell] * OTHERS]))["code"][1:].tolist() == [1] * OTHERS


def test_what_is_typed_some_thousand_rows_at_a_time_is_refused_too():
    """As pandas does with long files: numbers above, text below."""
    mixed = pd.DataFrame({"code": pd.Series([7] * OTHERS + ["x"], dtype=object)})
    schema = Schema({"code": {"kind": "category", "categories": ["007"]}})
    with pytest.raises(InputError, match="holds numbers"):
        schema.arrays(mixed)
    by_file = pd.Categorical([7] * OTHERS)
    with pytest.raises(InputError, match="holds numbers"):
        schema.arrays(pd.DataFrame({"code": by_file}))
    assert schema.arrays(pd.DataFrame({"code": [None, np.nan]}))["code"].tolist() == [-1, -1]


def test_nothing_is_charged_where_a_column_is_refused():
    schema = Schema({"code": {"kind": "category", "categories": ["007", "008"]}})
    ask = cg.Statistics(read(["007"] * OTHERS), 1.0, schema=schema, noise_seed=1)
    with pytest.raises(InputError, match="holds numbers"):
        ask.histogram("code")
    assert (ask.left()["share_left"] == 1).all()


def records(private, public):
    """What an estimator makes of records."""
    encode = lambda y: (np.array([0, 1]), np.asarray(y))  # noqa: E731
    about = {"private_classes": False, "public_may_overlap": True, "scales_may_differ": True}
    y = np.zeros(len(private), dtype=int)
    return given_records(private, y, 1.0, public, encode=encode, delta=1e-5, **about).records


@pytest.mark.parametrize(
    "private",
    [
        read(["007"] * OTHERS),
        read(["007"] * OTHERS).astype("category"),
        pd.DataFrame({"code": pd.Series([7] * (OTHERS - 1) + ["x"], dtype=object)}),
        pd.DataFrame({"code": pd.Series([True] * (OTHERS - 1) + [None], dtype=object)}),
    ],
    ids=["a column", "categories", "a part of it", "truth values"],
)
def test_estimators_refuse_typed_cells_where_public_records_have_text(private):
    """What is text, and its categories, are the public records' to say."""
    public = read(["007", "008", "x9", "TRUE"] * 5)
    with pytest.raises(InputError, match=r"column 'code' holds text in the public records, but"):
        records(private, public)


def test_where_public_cells_are_typed_as_well_both_are_read_alike():
    categories = read(["7", "8"] * 5).astype("category")
    odd = pd.DataFrame({"code": pd.Categorical(["7"] * OTHERS + ["x"])})
    for private in (read(["7"] * OTHERS).astype("category"), odd):
        seen = records(private, categories)
        assert seen.X["code"].tolist()[:OTHERS] == ["7"] * OTHERS
        assert sorted(set(seen.X_public["code"])) == ["7", "8"]
    truths = pd.DataFrame({"code": pd.Series([True, None, False] * 5, dtype=object)})
    for private in (read(["TRUE"] * OTHERS), read(["TRUE"] * OTHERS + ["x"])):
        assert records(private, truths).X["code"].tolist()[:OTHERS] == [1.0] * OTHERS
