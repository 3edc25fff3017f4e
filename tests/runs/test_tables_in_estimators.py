"""Plain tables of any library in estimators: nothing to encode, and nothing read off private records."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import collegium as cg
from collegium.data.frames import as_pandas
from collegium.errors import InputError

pl = pytest.importorskip("polars")
pytestmark = pytest.mark.filterwarnings("ignore::collegium.PrivacyWarning")
TOWNS = ["Bonn", "Köln", "Ulm"]


@cache
def people(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Whole numbers, text, gaps, truth values, categories and dates, all of which tell something."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "town": rng.choice(TOWNS, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(4, 8, n)),
            "smokes": rng.random(n) < 0.3,
            "kind": pd.Categorical(rng.choice(["a", "b"], n)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    score = (table["age"] > 50) * 2 + table["smokes"] + (table["town"] == "Ulm")
    late = table["since"] > pd.Timestamp("2021-03-01")
    truth = np.where(score + 2 * late + (table["kind"] == "a") > 3, "yes", "no")
    table.loc[rng.random(n) < 0.05, "town"] = None
    table.loc[rng.random(n) < 0.05, "since"] = pd.NaT
    return table, truth


(X, Y), (X_PUBLIC, _), (X_TEST, Y_TEST) = people(900, 1), people(300, 2), people(400, 3)
Y_OF = {"yes": 1.0, "no": 0.0}


def made(kind: str, **settings: Any) -> Any:
    if kind == "dpsgd":
        return cg.DPSGDClassifier(steps=20, classes=["no", "yes"], noise_seed=1, **settings)
    if kind == "regressor":
        return cg.DPSGDRegressor(steps=20, bounds=(0, 1), noise_seed=1, **settings)
    return cg.PATEClassifier(classes=["no", "yes"], noise_seed=1, random_state=1, **settings)


def fitted(
    kind: str, frame: Any = X, public: Any = X_PUBLIC, budgets: Any = 20.0, **how: Any
) -> Any:
    y = np.vectorize(Y_OF.get)(Y) if kind == "regressor" else Y
    return made(kind, **how).fit(frame, y, budgets=budgets, X_public=public)


def bits(kind: str, model: Any) -> bytes:
    model = model.student_ if kind == "pate" else model.model_[-1]
    return pickle.dumps([getattr(step, "coef_", None) for step in getattr(model, "steps", [model])])


LIBRARIES = {
    "pandas": lambda table: table,
    "Polars": pl.from_pandas,
    "Arrow": pa.Table.from_pandas,
    "a batch of Arrow": lambda table: pa.RecordBatch.from_pandas(table),
}
KINDS = ["dpsgd", "regressor", "pate"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_any_library_is_taken_as_it_is(kind: str) -> None:
    usual = fitted(kind)
    expected = usual.predict(X_TEST)
    truth = np.vectorize(Y_OF.get)(Y_TEST) if kind == "regressor" else Y_TEST
    assert usual.score(X_TEST, truth) > (0.3 if kind == "regressor" else 0.75)
    for name, convert in LIBRARIES.items():
        model = fitted(kind, convert(X), convert(X_PUBLIC))
        assert list(model.feature_names_in_) == list(X.columns), name
        assert (model.predict(convert(X_TEST)) == expected).all(), name
        assert model.score(convert(X_TEST), truth) == usual.score(X_TEST, truth), name


def test_columns_of_labels_and_budgets_may_be_of_another_library_too() -> None:
    model = made("dpsgd").fit(
        pl.from_pandas(X),
        pl.Series(Y),
        budgets=pl.Series(np.where(np.arange(len(X)) < 50, 0.0, 20.0)),  # some granted nothing
        X_public=pl.from_pandas(X_PUBLIC),
    )
    usual = made("dpsgd").fit(X[50:], Y[50:], budgets=20.0, X_public=X_PUBLIC)
    assert (model.predict(pl.from_pandas(X_TEST)) == usual.predict(X_TEST)).all()
    arrow = made("dpsgd").fit(
        pa.table({"age": X["age"]}),
        pa.array(Y.tolist()),
        budgets=pa.array(np.full(len(X), 20.0)),
        X_public=pa.table({"age": X_PUBLIC["age"]}),
    )
    assert arrow.score(pa.table({"age": X_TEST["age"]}), pa.array(Y_TEST.tolist())) > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_no_category_of_private_records_is_learnt(kind: str) -> None:
    """What public records lack counts alike, whatever it is called, and is nowhere in what is published."""
    models = []
    for name in ("Atlantis", "Zzyzx"):
        private = X.copy()
        private.loc[private["town"] == "Bonn", "town"] = name
        model = fitted(kind, private)
        assert name.encode() not in pickle.dumps(model)
        models.append(bits(kind, model))
    assert models[0] == models[1]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_go_by_name(kind: str) -> None:
    model = fitted(kind)
    turned = X_TEST[X_TEST.columns[::-1]]
    assert (model.predict(turned) == model.predict(X_TEST)).all()
    for change, said in (
        (lambda t: t.drop(columns="town"), "X lacks town"),
        (lambda t: t.assign(more=1), "X also has more"),
        (lambda t: t.rename(columns={"age": "Age"}), "X lacks age and also has Age"),
    ):
        with pytest.raises(InputError, match=f"feature names should match.*{said}$"):
            model.predict(change(X_TEST))
    with pytest.warns(UserWarning, match="does not have valid feature names, but"):
        unnamed = model.predict(X_TEST.to_numpy(dtype=object))
    assert (unnamed == model.predict(X_TEST)).all()


def test_a_table_for_a_model_of_arrays_is_taken_by_position() -> None:
    numbers = X[["age"]].to_numpy(float)
    model = made("dpsgd").fit(numbers, Y, budgets=20.0, X_public=X_PUBLIC[["age"]].to_numpy(float))
    with pytest.warns(
        UserWarning, match="X has feature names, but DPSGDClassifier was fitted without"
    ):
        named = model.predict(X_TEST[["age"]])
    assert (named == model.predict(X_TEST[["age"]].to_numpy(float))).all()


@pytest.mark.parametrize("kind", ["dpsgd", "regressor"])
def test_without_public_records_text_is_refused_by_name(kind: str) -> None:
    with pytest.raises(InputError, match=r"column town, kind, since .* give X_public") as refusal:
        fitted(kind, pl.from_pandas(X), None)
    assert "\n" not in str(refusal.value)
    numbers = X[["age", "income", "smokes"]]
    fitted(kind, pl.from_pandas(numbers), None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "give", [lambda t: t.to_numpy(dtype=object), lambda t: t.to_numpy().tolist()]
)
def test_text_in_an_array_names_the_way_out(kind: str, give: Any) -> None:
    texts = ["town", "kind"]
    with pytest.raises(InputError, match="give text as a column of a DataFrame"):
        fitted(kind, give(X[texts]), give(X_PUBLIC[texts]))


def test_few_records_of_a_plain_table_have_teachers_too() -> None:
    """Where nothing is chosen by rule, text and gaps are encoded by public records all the same."""
    account = cg.Account("data-dependent")
    model = fitted("pate", account=account, n_teachers=20, budgets=1e4)
    assert model.recipe_ is None and model.score(X_TEST, Y_TEST) > 0.6


class Broken:
    """A table of some library that stumbles over a private cell."""

    columns = ("a",)

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        raise ValueError("cannot read 'a secret'")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pl.LazyFrame({"a": [1]}), "give X.collect()"),
        (pl.DataFrame({"a": [1], "b": [[1, 2]]}), "column b holds lists"),
        (pa.table({"a": [{"x": 1}]}), "column a holds lists"),
        (pa.table({"a": [b"x"]}), "column a holds lists"),
        (pl.DataFrame({"a": [5]}).cast(pl.Time), "times of day"),
        (pl.DataFrame({"a": pl.Series([object()])}), "column a holds lists"),
        (Broken(), "cannot be read as Arrow"),
    ],
)
def test_what_no_table_of_cells_is_is_refused_in_one_line(table: Any, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(").replace(")", r"\)")):
        as_pandas(table)
    with pytest.raises(InputError) as refusal:
        as_pandas(table)
    assert "secret" not in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("cell", [[1], (1,), {}, b"x", np.zeros(2)], ids=type)
def test_cells_that_are_no_cells_are_refused_by_column(cell: Any) -> None:
    private, public = X.assign(odd=None), X_PUBLIC.assign(odd=None)
    for one in (private, public):
        given = one.copy()
        given.at[5, "odd"] = cell
        with pytest.raises(InputError, match="column odd holds lists") as refusal:
            fitted("dpsgd", *((given, public) if one is private else (private, given)))
        assert "\n" not in str(refusal.value)


def test_dates_are_days_and_teach_something() -> None:
    """A model of the date alone is better than the most frequent class, in every time zone and unit."""
    dates, public, test = ({"since": t["since"].dropna()} for t in (X, X_PUBLIC, X_TEST))
    y = np.where(dates["since"] > pd.Timestamp("2021-03-01"), "yes", "no")
    y_test = np.where(test["since"] > pd.Timestamp("2021-03-01"), "yes", "no")
    predicted = []
    for change in (lambda s: s, lambda s: s.dt.tz_localize("UTC"), lambda s: s.dt.as_unit("ms")):
        frames = [pd.DataFrame({"since": change(t["since"])}) for t in (dates, public, test)]
        model = made("dpsgd").fit(frames[0], y, budgets=20.0, X_public=frames[1])
        predicted.append(model.predict(frames[2]))
    assert (predicted[0] == y_test).mean() > 0.95
    assert (predicted[0] == predicted[1]).all() and (predicted[0] == predicted[2]).all()


SPARSE = [
    sparse.csr_matrix,
    sparse.csr_array,
    sparse.coo_array,
    sparse.csc_matrix,
    sparse.dok_array,
]


@pytest.mark.parametrize("to_sparse", SPARSE, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_arrays_work_or_get_one_line(kind: str, to_sparse: Any) -> None:
    dense = [t[["age", "smokes"]].to_numpy(float) for t in (X, X_PUBLIC, X_TEST)]
    private, public, test = map(to_sparse, dense)
    with pytest.raises(InputError, match=r"sparse; .*X\.toarray\(\)") as refusal:
        fitted(kind, private, public)
    assert "\n" not in str(refusal.value)
    if kind != "pate":
        usual, other = fitted(kind, dense[0], None), fitted(kind, private, None)
        seen, told = usual.predict(dense[2]), other.predict(test)
        # Numbers may differ in the last bit, since sparse products are added up in another order.
        assert np.allclose(seen, told, rtol=1e-12) if seen.dtype == float else (seen == told).all()
    with pytest.raises(InputError, match=r"a sparse array has none: give pandas\.DataFrame"):
        cg.Statistics(
            private,
            cg.Policy({"all": 1.0}).assign(["all"] * len(X)),
            schema=cg.Schema({"age": {"kind": "whole", "bounds": [17, 90]}}),
        ).mean("age")


def test_sparse_records_are_remembered_as_others_are() -> None:
    """Without a seed every fit is told of: hashes of sparse rows do not depend on how they are stored."""
    from collegium.runs.repeated_fits import _hashes_of_sparse

    rows = np.array([[0, 2.0, 0], [1.0, 0, 3.0], [0, 0, 0], [0, 2.0, 0]])
    one = sparse.csr_matrix(rows)
    places = ([0, 2, 1, 1, 3], [1, 1, 2, 0, 1])  # one of them holds a 0
    other = sparse.coo_array(([2.0, 0.0, 3.0, 1.0, 2.0], places), shape=(4, 3)).tocsr()
    hashes = _hashes_of_sparse(one)
    assert (hashes == _hashes_of_sparse(other)).all()
    assert hashes[0] == hashes[3] and len(set(hashes.tolist())) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cg.DPSGDClassifier(steps=2, classes=[0, 1]).fit(one, [0, 1, 0, 1], budgets=1.0)
