"""Private records given as public ones, or scaled where the public ones are not, are noticed and refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, vstack
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PowerTransformer, StandardScaler

from collegium import Budget, GNMax, PATEClassifier, PrivacyWarning
from collegium.data.overlap_checks import (
    HANDFUL,
    Likeness,
    RowsSeen,
    refuse_other_scale,
    refuse_overlap,
)
from collegium.errors import InputError


def people(n, seed, coarse=False):
    generator = np.random.default_rng(seed)
    if coarse:
        return pd.DataFrame(
            {"sex": generator.integers(0, 2, n), "ward": generator.integers(0, 5, n)}
        )
    return pd.DataFrame(
        {
            "age": generator.integers(18, 90, n),
            "weight": generator.normal(70, 12, n).round(1),
            "town": generator.choice(["Aarhus", "Bergen", "Cork"], n),
            "seen": generator.choice([True, False], n),
            "income": generator.normal(3e4, 1e4, n).round(),
        }
    )


def test_equal_values_are_equal_however_they_are_typed():
    table = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "y"], "c": [0.0, np.nan, 2.5]})
    other = table.astype({"a": float, "b": "category"}).iloc[::-1]
    other["c"] = -other["c"] * -1.0
    likeness = Likeness(table)
    assert (likeness.public == likeness.hashes(other)[::-1]).all()
    numbers = np.arange(24).reshape(4, 3, 2)
    assert (Likeness(numbers).public == Likeness(numbers).hashes(numbers.astype(np.float32))).all()
    assert len(set(Likeness(numbers).public.tolist())) == 4
    sparse = np.eye(5) * [1, 2, 3, 4, 5]
    likeness = Likeness(csr_matrix(sparse))
    assert (likeness.public == likeness.hashes(csr_matrix(sparse[::-1]))[::-1]).all()
    assert len(set(likeness.public.tolist())) == 5


def noisy(X):
    return X * (1 + 1e-9 * np.random.default_rng(0).normal(size=X.shape)) + 1e-9


@pytest.mark.parametrize(
    "changed", [lambda X: X.astype(np.float32), noisy], ids=["float32", "1e-9"]
)
@pytest.mark.parametrize("kind", ["table", "array", "images", "dates", "zeros", "sparse"])
def test_what_went_through_another_type_or_is_off_by_a_hair_is_found(kind, changed):
    generator = np.random.default_rng(0)
    X = {
        "table": generator.normal([70, 3e4, 0, 1e-3], [12, 1e4, 1, 1e-4], (900, 4)),
        "array": generator.lognormal(0, 3, (900, 9)),
        "images": (generator.integers(0, 256, (900, 8, 8)) * (np.indices((8, 8))[0] > 1)) / 255,
        "dates": generator.normal([1.7e9, 40], [1e5, 10], (900, 2)),
        "zeros": generator.normal(size=(900, 9)) * (generator.random((900, 9)) < 0.45),
        "sparse": csr_matrix(generator.normal(size=(900, 9)) * (generator.random((900, 9)) < 0.5)),
    }[kind]
    private, others, copies = X[:600], X[600:], X[:20]
    if kind == "sparse":
        copies, join = copies.astype(np.float32), vstack
    else:
        copies, join = changed(copies), np.concatenate
    if kind == "table":
        private, others, copies = map(pd.DataFrame, (private, others, copies))
        join = pd.concat
    refuse_overlap(private, others)
    with pytest.raises(InputError, match="records are also among the private ones"):
        refuse_overlap(private, join([others, copies]))


@pytest.mark.parametrize(
    "columns", [["age", "weight", "income"], ["weight", "seen", "town", "income"]]
)
def test_more_than_a_handful_is_refused_and_counted(columns):
    private, public = people(2000, 0)[columns], people(400, 1)[columns]
    public["income"] += 0.5  # none is equal by chance
    refuse_overlap(private, public)
    few = pd.concat([public, private.iloc[:HANDFUL]])
    refuse_overlap(private, few)
    many = pd.concat([public, private.iloc[: HANDFUL + 1]])
    with pytest.raises(InputError, match="6 of 406 public records are also among the private ones"):
        refuse_overlap(private, many)
    with pytest.raises(InputError, match="6 of 406 test records"):
        refuse_overlap(private, many, "test")


def test_the_same_table_is_refused_in_any_order_and_of_few_values():
    private = people(500, 0, coarse=True)
    with pytest.raises(InputError, match="are the private ones"):
        refuse_overlap(private, private.sample(frac=1, random_state=0))


def test_tables_of_few_values_overlap_by_chance():
    for seed in range(20):
        refuse_overlap(people(2000, seed, coarse=True), people(500, 100 + seed, coarse=True))
        refuse_overlap(people(30, seed, coarse=True), people(500, 100 + seed, coarse=True))
    # A digit's worth of detail: some rows are equal by chance, a copied half is not.
    private, public = (people(5000, seed)[["age", "weight"]].round() for seed in (1, 2))
    refuse_overlap(private, public.iloc[:1000])


def test_pieces_find_what_the_whole_finds():
    likeness = Likeness(people(3000, 0).iloc[:90])
    private, public = likeness.hashes(people(3000, 0)), likeness.public
    whole = RowsSeen.of(private, public, 3000)
    pieces = RowsSeen.together(
        [RowsSeen.of(private[start : start + 1000], public, 3000) for start in (0, 1000, 2000)]
    )
    assert (whole.found == pieces.found).all() and (whole.sampled == pieces.sampled).all()
    with pytest.raises(InputError, match="90 of 90"):
        pieces.check(public, "public", "a key")


def split(load):
    X, _ = load(return_X_y=True)
    X = X[np.random.default_rng(0).permutation(len(X))]
    return X[: 2 * len(X) // 3], X[2 * len(X) // 3 :]


TABLES = [load_digits, load_iris, load_wine, load_breast_cancer]
SCALERS = [
    StandardScaler(),
    StandardScaler(with_std=False),
    MinMaxScaler(),
    MaxAbsScaler(),
    PowerTransformer(),
    PCA(2),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
@pytest.mark.parametrize("load", TABLES, ids=lambda load: load.__name__)
def test_private_records_scaled_on_their_own_are_refused(load, scaler):
    private, public = split(load)
    refuse_other_scale(private, public)
    if isinstance(scaler, PCA):  # as if somebody had cut the public ones to as many columns
        public, private = public[:, :2] + 1, scaler.fit_transform(private)
    else:
        private = scaler.fit_transform(private)
    with pytest.raises(InputError, match=r"another scale .* `preprocessing`"):
        refuse_other_scale(private, public)


@pytest.mark.parametrize("load", TABLES, ids=lambda load: load.__name__)
def test_a_scaler_fitted_to_all_private_records_is_warned_of(load):
    private, public = split(load)
    scaler = StandardScaler().fit(private)
    with pytest.warns(PrivacyWarning, match="mean 0"):
        refuse_other_scale(scaler.transform(private), scaler.transform(public))
    scaler = StandardScaler().fit(public)  # the right way
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refuse_other_scale(scaler.transform(private), scaler.transform(public))


def test_another_town_is_not_another_scale():
    generator = np.random.default_rng(0)
    private, public = generator.normal([50, 7, 0], [10, 1, 3], (2, 300, 3))
    refuse_other_scale(private * [1, 2, 0.5] + [5, 0, 1], public)
    refuse_other_scale(private[:10], public * 100)  # too few to tell
    with pytest.raises(InputError, match="3 of 3"):
        refuse_other_scale(pd.DataFrame(private), pd.DataFrame(public * 1000))
    refuse_other_scale(pd.DataFrame({"town": ["a"] * 30}), pd.DataFrame({"town": ["b"] * 30}))
    refuse_other_scale(np.zeros((30, 2)), np.ones((30, 2)))
    empty = pd.DataFrame({"a": [np.nan] * 30, "b": range(30)})
    refuse_other_scale(empty, empty)


HEAVY = np.random.default_rng(0).lognormal([0, 5, 1], [1, 2, 0.1], (2, 400, 3))


@pytest.mark.parametrize("factor", [1 / 1000, 12, 100])
def test_one_column_in_another_unit_is_refused_and_named(factor):
    private, public = (pd.DataFrame(side, columns=["a", "b", "c"]) for side in HEAVY)
    refuse_other_scale(private, public)
    for name in private:
        other = private.assign(**{name: private[name] * factor})
        with pytest.raises(InputError, match=rf"1 of 3 .*column {name}\).*scales_may_differ"):
            refuse_other_scale(other, public)
    with pytest.raises(InputError, match=r"1 of 3 .*column c\)"):
        refuse_other_scale(private.assign(c=private["c"] + 273), public)


def test_a_pipeline_around_the_classifier_is_refused():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(StandardScaler(), PATEClassifier(n_teachers=10, noise_seed=0))
    with pytest.raises(
        InputError, match="StandardScaler in this Pipeline is fitted to all private"
    ):
        model.fit(X[:900], y[:900], pateclassifier__budgets=8.0, pateclassifier__X_public=X[900:])
    with pytest.raises(InputError, match="earlier step of a Pipeline"):  # that was run by hand
        model[-1].fit(model[0].fit_transform(X[:900]), y[:900], budgets=8.0, X_public=X[900:])


def test_what_was_allowed_in_python_is_said_in_the_statement():
    X, y = load_iris(return_X_y=True)
    model = PATEClassifier(n_teachers=3, aggregator=GNMax(sigma=9), noise_seed=1)
    with pytest.raises(InputError, match=r"the public records are the private ones.*in fit"):
        model.fit(X, y, budgets=3, X_public=X)
    allowed = model.fit(X, y, budgets=3, X_public=X, public_may_overlap=True).privacy_
    assert sum("may equal private ones" in line for line in allowed.sentences()) == 1


@pytest.mark.parametrize(
    "everybody", [3, 3.0, np.float32(3), np.int64(3), np.array(3.0), Budget(3.0, 1e-5)], ids=repr
)
def test_one_number_is_everybodys_budget(everybody):
    X, y = load_iris(return_X_y=True)
    model = PATEClassifier(n_teachers=3, aggregator=GNMax(sigma=9), noise_seed=1)
    model.fit(X[::2], y[::2], budgets=everybody, X_public=X[1::2])
    assert model.privacy_.by_group()["owners"].to_dict() == {"ε=3": 75}


@pytest.mark.parametrize("wrong", [True, "3.0", -1.0, 0, float("nan"), "1e400", 10**400, None])
def test_what_is_no_budget_is_nobodys(wrong):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError) as refusal:
        PATEClassifier(n_teachers=3).fit(X[::2], y[::2], budgets=wrong, X_public=X[1::2])
    assert "\n" not in str(refusal.value)
