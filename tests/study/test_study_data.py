"""A study's records: read from any format, split by owner, tied to budgets, checked."""

import gzip
import re
import struct
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collegium import PrivacyWarning
from collegium.errors import ConfigError, InputError
from collegium.study.config import config_from
from collegium.study.streaming import load_streamed_data
from collegium.study.study_data import load_study_data

CLASSES = ["no", "maybe", "yes"]


def people(n_records=90, seed=0):
    """Records of which several may belong to one person, who has one level."""
    generator = np.random.default_rng(seed)
    owner = np.sort(generator.integers(0, max(1, n_records // 2), n_records))
    return pd.DataFrame(
        {
            "patient": [f"p{number}" for number in owner],
            "age": generator.integers(20, 90, n_records),
            "weight": generator.normal(70.0, 5.0, n_records),
            "work": generator.choice(["office", "farm"], n_records),
            "privacy": np.array(["high", "average", "low"])[owner % 3],
            "outcome": generator.choice(CLASSES, n_records),
        }
    )


def load(folder, *, data=None, privacy=None, seed=0):
    base = {"private": "private.csv", "public": "public.csv", "target": "outcome",
            "owner": "patient", "classes": CLASSES}  # fmt: skip
    levels = {"levels": {"high": 1.0, "average": 2.0, "low": 3.0}, "column": "privacy"}
    given_data = {k: v for k, v in {**base, **(data or {})}.items() if v is not None}
    given_privacy = {k: v for k, v in {**levels, **(privacy or {})}.items() if v is not None}
    config = config_from(
        {"study": {"seed": seed}, "data": given_data, "privacy": given_privacy}, Path(folder)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return load_study_data(config)


def tables(folder, private=None, public=None, test=None):
    folder = Path(folder)
    private = people() if private is None else private
    features = people(40, seed=1).drop(columns=["patient", "privacy", "outcome"])
    private.to_csv(folder / "private.csv", index=False)
    (features if public is None else public).to_csv(folder / "public.csv", index=False)
    if test is not None:
        test.to_csv(folder / "test.csv", index=False)
    return private


def levels_of(data):
    return data.budgets.record_groups().tolist()


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "folder of parquet"])
def test_tables_of_every_format_give_the_same_study(tmp_path, kind):
    private, public = people(), people(40, seed=1).drop(columns=["patient", "privacy"])
    test = people(30, seed=2).drop(columns=["patient", "privacy"])
    names = {}
    for role, table in {"private": private, "public": public, "test": test}.items():
        names[role] = f"{role}.{kind}" if " " not in kind else role
        path = tmp_path / names[role]
        if kind == "parquet":
            table.to_parquet(path)
        elif " " in kind:
            path.mkdir()
            table[: len(table) // 2].to_parquet(path / "1.parquet")
            table[len(table) // 2 :].to_parquet(path / "2.parquet")
        else:
            table.to_csv(path, index=False)
    data = load(tmp_path, data=names)
    assert list(data.X.columns) == ["age", "weight", "work"] == list(data.X_public.columns)
    assert data.X["age"].tolist() == private["age"].tolist()
    assert data.X_test["weight"].tolist() == pytest.approx(test["weight"].tolist(), abs=0)
    assert data.classes[data.codes].tolist() == private["outcome"].tolist()
    assert data.y_public.tolist() == public["outcome"].tolist()
    assert data.y_test.tolist() == test["outcome"].tolist()
    assert levels_of(data) == private["privacy"].tolist()
    owners = data.budgets.owners[data.budgets.record_owner]
    assert owners.tolist() == private["patient"].tolist()
    assert set(data.fingerprints) == {"private", "public", "test"}


def write_idx(path, array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    content = header + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)


@pytest.mark.parametrize("ending", [".npy", "-ubyte", "-ubyte.gz"])
def test_arrays_of_every_format_with_labels_in_files(tmp_path, ending):
    generator = np.random.default_rng(0)
    arrays = {}
    for role, n in {"private": 30, "public": 12, "test": 9}.items():
        arrays[role] = generator.integers(0, 256, (n, 4, 4), dtype=np.uint8)
        arrays[f"{role}_labels"] = generator.integers(0, 3, n, dtype=np.uint8)
    for name, array in arrays.items():
        path = tmp_path / (name + ending)
        np.save(path, array) if ending == ".npy" else write_idx(path, array)
    np.save(tmp_path / "privacy.npy", np.repeat([0.5, 2.0], 15))
    files = {name: name + ending for name in arrays}
    data = load(
        tmp_path,
        data={**files, "target": None, "owner": None, "classes": [0, 1, 2]},
        privacy={"column": None, "levels": None, "file": "privacy.npy"},
    )
    assert np.array_equal(data.X, arrays["private"])
    assert np.array_equal(data.X_public, arrays["public"])
    assert np.array_equal(data.codes, arrays["private_labels"])
    assert np.array_equal(data.y_public, arrays["public_labels"])
    assert np.array_equal(data.y_test, arrays["test_labels"])
    assert data.budgets.group_sizes() == {"ε=0.5": 15, "ε=2": 15}
    assert {"private labels", "public labels", "test labels", "privacy"} < set(data.fingerprints)


def test_an_owner_column_cannot_be_believed_in_where_there_are_no_columns(tmp_path):
    for name, shape in {"private": (6, 2), "public": (3, 2)}.items():
        np.save(tmp_path / f"{name}.npy", np.zeros(shape))
    np.save(tmp_path / "labels.npy", [0, 1] * 3)
    arrays = {"private": "private.npy", "public": "public.npy", "private_labels": "labels.npy"}
    with pytest.raises(ConfigError, match=r"data.owner names a column, but"):
        load(tmp_path, data={**arrays, "target": None, "owner": "patient", "classes": [0, 1]})


SPLIT = {"public": None, "private_records": 50, "public_records": 20, "test_records": 15}


def owners_by_side(table, data):
    """The owners of each side, found again by the records' weight, which is unique."""
    owner = dict(zip(table["weight"], table["patient"], strict=True))
    sides = (data.X, data.X_public, data.X_test)
    return [{owner[weight] for weight in side["weight"]} for side in sides]


@given(seed=st.integers(0, 50), table_seed=st.integers(0, 50), n=st.integers(95, 130))
@settings(max_examples=25)
def test_an_owner_is_on_one_side_of_a_split_only(tmp_path_factory, seed, table_seed, n):
    folder = tmp_path_factory.mktemp("split")
    table = people(n, seed=table_seed)
    table.to_csv(folder / "private.csv", index=False)
    public = {**SPLIT, "exclude": []}
    data = load(folder, data=public, seed=seed)
    sides = owners_by_side(table, data)
    assert sum(map(len, sides)) == len(set.union(*sides))
    most = table["patient"].value_counts().max()
    for side, size in zip((data.X, data.X_public, data.X_test), (50, 20, 15), strict=True):
        assert len(side) < size + most


def test_a_split_takes_exactly_as_many_records_as_asked_where_everybody_has_one(tmp_path):
    table = people().assign(patient=range(90))
    table.to_csv(tmp_path / "private.csv", index=False)
    data = load(tmp_path, data=SPLIT)
    assert (len(data.X), len(data.X_public), len(data.X_test)) == (50, 20, 15)
    assert data.y_public.tolist() == table["outcome"][data.public_rows].tolist()
    assert data.X_public["weight"].tolist() == table["weight"][data.public_rows].tolist()


def test_the_same_seed_gives_the_same_split_and_another_seed_another(tmp_path):
    people().to_csv(tmp_path / "private.csv", index=False)
    first, again, other = (load(tmp_path, data=SPLIT, seed=seed) for seed in (3, 3, 4))
    assert first.X.equals(again.X) and first.public_rows.tolist() == again.public_rows.tolist()
    assert first.public_rows.tolist() != other.public_rows.tolist()


@pytest.mark.parametrize("asked", [(80, 20, 0), (91, 1, 0), (50, 30, 11)])
def test_a_split_of_more_than_there_is_is_refused(tmp_path, asked):
    people().to_csv(tmp_path / "private.csv", index=False)
    sizes = dict(zip(("private_records", "public_records", "test_records"), asked, strict=True))
    sizes = {name: size or None for name, size in sizes.items()}
    with pytest.raises(InputError, match="but there are only 90"):
        load(tmp_path, data={"public": None, **sizes})


def test_one_owner_of_everything_leaves_no_public_records(tmp_path):
    people().assign(patient="p", privacy="low").to_csv(tmp_path / "private.csv", index=False)
    with pytest.raises(InputError, match="leaves a side without records"):
        load(tmp_path, data=SPLIT)


@given(
    n=st.integers(10, 300),
    cuts=st.tuples(st.floats(0.05, 0.45), st.floats(0.5, 0.95)),
    seed=st.integers(0, 9),
)
@settings(max_examples=25)
def test_shares_are_exact_and_given_to_owners(tmp_path_factory, n, cuts, seed):
    folder = tmp_path_factory.mktemp("shares")
    table = tables(folder, people(n))
    shares = {"high": cuts[0], "average": cuts[1] - cuts[0], "low": 1 - cuts[1]}
    data = load(folder, privacy={"column": None, "shares": shares}, data={"exclude": ["privacy"]},
                seed=seed)  # fmt: skip
    n_people = table["patient"].nunique()
    sizes = data.budgets.group_sizes()
    assert sum(sizes.values()) == n_people
    for name, share in shares.items():
        assert abs(sizes[name] - share * n_people) <= 1
    given_levels = pd.Series(levels_of(data)).groupby(table["patient"]).nunique()
    assert (given_levels == 1).all()


def test_shares_of_a_whole_number_of_people_are_met_to_the_person(tmp_path):
    table = people(100).assign(patient=range(100)).drop(columns="privacy")
    tables(tmp_path, table)
    shares = {"high": 0.54, "average": 0.37, "low": 0.09}
    sizes = load(tmp_path, privacy={"column": None, "shares": shares}).budgets.group_sizes()
    assert sizes == {"high": 54, "average": 37, "low": 9}


def test_levels_as_numbers_come_from_a_column(tmp_path):
    table = people()
    epsilon = table["privacy"].map({"high": 0.5, "average": 1.25, "low": np.inf})
    tables(tmp_path, table.assign(privacy=epsilon))
    data = load(tmp_path, privacy={"levels": None})
    assert set(levels_of(data)) == {"ε=0.5", "ε=1.25", "ε=inf"}
    assert data.budgets.groups["ε=inf"].is_unlimited


def test_levels_come_from_a_file_row_by_row_even_if_records_are_dropped(tmp_path):
    table = people()
    table.loc[::4, "work"] = "?"
    tables(tmp_path, table.drop(columns="privacy"))
    table[["privacy"]].to_csv(tmp_path / "levels.csv", index=False)
    data = load(tmp_path, data={"missing": "?"}, privacy={"column": None, "file": "levels.csv"})
    kept = table[table["work"] != "?"]
    assert levels_of(data) == kept["privacy"].tolist()
    assert len(data.X) == len(kept) < len(table)


@pytest.mark.parametrize("n_rows", [89, 91, 1])
def test_a_file_of_levels_with_too_few_or_too_many_rows_is_refused(tmp_path, n_rows):
    tables(tmp_path, people().drop(columns="privacy"))
    pd.DataFrame({"level": ["high"] * n_rows}).to_csv(tmp_path / "levels.csv", index=False)
    with pytest.raises(
        InputError, match=rf"privacy.file \(.*\) has {n_rows} levels, .* 90 records"
    ):
        load(tmp_path, privacy={"column": None, "file": "levels.csv"})


def test_a_blank_line_among_levels_is_no_level_and_shifts_nobody(tmp_path):
    tables(tmp_path, people().drop(columns="privacy"))
    levels = people()["privacy"].tolist()
    for lines in ([*levels[:40], "", *levels[40:]], [*levels[:40], "", *levels[41:]]):
        (tmp_path / "levels.csv").write_text("\n".join(["level", *lines, "", ""]))
        with pytest.raises(
            InputError, match=r"levels\.csv' has a blank line, line 42: give a value"
        ):
            load(tmp_path, privacy={"column": None, "file": "levels.csv"})
    (tmp_path / "levels.csv").write_text("\n".join(["level", *levels, "", ""]))
    assert levels_of(load(tmp_path, privacy={"column": None, "file": "levels.csv"})) == levels


def test_a_file_of_levels_has_one_column(tmp_path):
    tables(tmp_path, people().drop(columns="privacy"))
    people()[["patient", "privacy"]].to_csv(tmp_path / "levels.csv", index=False)
    with pytest.raises(InputError, match=r"privacy.file must be one column"):
        load(tmp_path, privacy={"column": None, "file": "levels.csv"})


def test_records_with_the_missing_marker_are_dropped_everywhere(tmp_path):
    private, public = people(), people(40, seed=1).drop(columns=["patient", "privacy", "outcome"])
    private.loc[[3, 5], "work"] = "?"
    public.loc[[0, 7], "work"] = "?"
    tables(tmp_path, private, public)
    assert len(load(tmp_path).X) == 90
    data = load(tmp_path, data={"missing": "?"})
    assert (len(data.X), len(data.X_public)) == (88, 38)
    assert "?" not in {*data.X["work"], *data.X_public["work"]}
    assert data.public_rows.tolist() == [row for row in range(40) if row not in (0, 7)]
    owners = data.budgets.owners[data.budgets.record_owner].tolist()
    assert owners == private["patient"].drop([3, 5]).tolist()


def test_a_table_of_nothing_but_missing_values_is_refused(tmp_path):
    tables(tmp_path, people().assign(work="?"))
    with pytest.raises(InputError, match="every record contains '\\?'"):
        load(tmp_path, data={"missing": "?"})


def test_excluded_columns_are_no_features_whether_public_records_have_them_or_not(tmp_path):
    public = people(40, seed=1).drop(columns=["patient", "privacy", "outcome", "weight"])
    tables(tmp_path, public=public)
    data = load(tmp_path, data={"exclude": ["weight"]})
    assert list(data.X.columns) == ["age", "work"] == list(data.X_public.columns)
    with pytest.raises(InputError, match=r"data.exclude names column 'height'"):
        load(tmp_path, data={"exclude": ["height", "weight"]})
    tables(tmp_path, people().drop(columns="weight"), people(40, seed=1)[["age", "work", "weight"]])
    data = load(tmp_path, data={"exclude": ["weight"]})
    assert list(data.X.columns) == ["age", "work"] == list(data.X_public.columns)
    with pytest.raises(InputError, match=r"data.exclude names column 'height'"):
        load(tmp_path, data={"exclude": ["height", "weight"]})


def test_streamed_records_may_lack_an_excluded_column_that_public_ones_have(tmp_path):
    people().drop(columns="weight").to_parquet(tmp_path / "private.parquet")
    people(40, seed=1)[["age", "work", "weight"]].to_parquet(tmp_path / "public.parquet")
    data = {"target": "outcome", "owner": "patient", "classes": CLASSES}
    data |= {role: f"{role}.parquet" for role in ("private", "public")}
    given = {
        "data": {**data, "exclude": ["weight"]},
        "privacy": {"levels": {"high": 1.0, "average": 2.0, "low": 3.0}, "column": "privacy"},
        "run": {"streaming": True, "n_jobs": 1},
    }
    streamed = load_streamed_data(config_from(given, tmp_path))
    assert list(streamed.X_public.columns) == ["age", "work"]
    given["data"]["exclude"] = ["height", "weight"]
    with pytest.raises(InputError, match="exclude 'height' names column 'height'"):
        load_streamed_data(config_from(given, tmp_path))


def test_the_class_list_is_public_and_may_have_classes_that_nobody_has(tmp_path):
    tables(tmp_path, people().replace({"outcome": {"maybe": "no"}}))
    assert load(tmp_path).classes.tolist() == CLASSES
    with pytest.raises(InputError, match="label that is not among the classes"):
        load(tmp_path, data={"classes": ["yes", "maybe"]})


def test_without_a_class_list_the_classes_of_the_private_records_are_published_with_a_warning(
    tmp_path,
):
    tables(tmp_path)
    config = config_from(
        {
            "data": {"private": "private.csv", "public": "public.csv", "target": "outcome",
                     "owner": "patient"},
            "privacy": {"levels": {"high": 1.0, "average": 2.0, "low": 3.0}, "column": "privacy",
                        "delta": 1e-6},
        },
        tmp_path,
    )  # fmt: skip
    with pytest.warns(PrivacyWarning, match="which no budget pays for"):
        assert load_study_data(config).classes.tolist() == sorted(CLASSES)


def test_public_labels_are_taken_where_they_are_and_not_missed_where_not(tmp_path):
    public = people(40, seed=1).drop(columns=["patient", "privacy"])
    tables(tmp_path, public=public)
    assert load(tmp_path).y_public.tolist() == public["outcome"].tolist()
    tables(tmp_path, public=public.drop(columns="outcome"))
    assert load(tmp_path).y_public is None


def test_public_columns_may_stand_in_another_order(tmp_path):
    public = people(40, seed=1)[["work", "weight", "age"]]
    tables(tmp_path, public=public)
    data = load(tmp_path)
    assert list(data.X_public.columns) == list(data.X.columns)
    assert data.X_public["age"].tolist() == public["age"].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="age"), "other columns than the private ones: they lack age"),
        (lambda t: t.assign(height=1), "also have height"),
        (lambda t: t.rename(columns={"age": "Age"}), "lack age and also have Age"),
        (lambda t: t.rename(columns={"age": " age"}), "also have ' age'; .*without blanks around"),
        (lambda t: t.rename_axis("").reset_index(), "column without a name .*index=False"),
        (
            lambda t: pd.concat([t, pd.DataFrame(index=range(2), columns=t.columns)]),
            r"2 public record\(s\) are blank rows, first record 41 \(row 42",
        ),
        (lambda t: t.assign(age="old"), "column 'age' holds text in the public records"),
        (lambda t: t[:0], "public.csv holds no public records: give a file with some"),
    ],
)
def test_public_records_that_are_not_like_private_ones_are_refused(tmp_path, change, message):
    public = people(40, seed=1).drop(columns=["patient", "privacy", "outcome"])
    tables(tmp_path, public=change(public))
    with pytest.raises(InputError, match=message):
        load(tmp_path)


def test_blank_rows_are_refused_of_every_role_until_missing_ones_are_left_out(tmp_path):
    table, others = people(), people(40, seed=1).drop(columns=["patient", "privacy"])
    files = {"private": table, "public": others, "test": others}
    for role, file in files.items():
        blank = pd.concat([file, pd.DataFrame(index=range(1), columns=file.columns)])
        tables(tmp_path, **{**files, role: blank})
        with pytest.raises(InputError, match=f"1 {role} record.* blank"):
            load(tmp_path, data={"test": "test.csv"})
        load(tmp_path, data={"test": "test.csv", "missing": "", "public_may_overlap": True})


def test_test_records_that_are_not_like_private_ones_are_refused(tmp_path):
    tables(tmp_path, test=people(30, seed=2).drop(columns=["patient", "privacy", "age"]))
    with pytest.raises(InputError, match=r"test records have other columns .* lack age"):
        load(tmp_path, data={"test": "test.csv"})


@pytest.mark.parametrize("labels", [{}, {"target": None, "private_labels": "y.npy", "owner": None}])
def test_a_private_table_without_a_header_is_refused_and_no_cell_is_shown(tmp_path, labels):
    tables(tmp_path)
    first, *rest = people().astype(str).to_dict("records")
    (tmp_path / "private.csv").write_text(
        "\n".join(",".join(row.values()) for row in [first, *rest]), encoding="utf-8"
    )
    np.save(tmp_path / "y.npy", np.array(["no", "yes"])[np.arange(len(rest)) % 2])
    privacy = {"column": first["privacy"]} if labels else {}
    with pytest.raises(InputError, match=r"record|header") as told:
        load(tmp_path, data=labels, privacy=privacy)
    shown = re.findall(r"[\w.-]+", str(told.value))
    assert not set(shown) & {cell for name, cell in first.items() if name != "privacy"}


@pytest.mark.parametrize(
    ("data", "privacy", "message"),
    [
        ({"target": "nothing"}, {}, "data.target in the private records names column 'nothing'"),
        ({"owner": "nobody"}, {}, "data.owner names column 'nobody', which is not there"),
        ({}, {"column": "none"}, "privacy.column names column 'none', which is not there"),
        ({"private": "absent.csv"}, {}, "absent.csv' does not exist"),
        ({"target": None}, {}, "private records have no labels"),
        ({"target": None, "private_labels": "two.npy"}, {}, "90 private records, but 2 labels"),
    ],
)
def test_columns_and_files_that_are_missing_are_named(tmp_path, data, privacy, message):
    tables(tmp_path)
    np.save(tmp_path / "two.npy", ["yes", "no"])
    with pytest.raises(InputError, match=message):
        load(tmp_path, data=data, privacy=privacy)


def test_an_owner_with_two_levels_is_refused(tmp_path):
    tables(tmp_path, people().assign(privacy=["high", "low"] * 45))
    with pytest.raises(InputError, match="owner\\(s\\) with two budgets"):
        load(tmp_path)


def test_a_fingerprint_changes_with_a_single_cell(tmp_path):
    table = tables(tmp_path)
    before = load(tmp_path).fingerprints
    table.loc[4, "age"] += 1
    tables(tmp_path, table)
    after = load(tmp_path).fingerprints
    assert before["private"] != after["private"] and before["public"] == after["public"]
