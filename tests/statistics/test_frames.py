"""Tables of any library, owners with several rows, and Parquet in batches: the same answers, bit for bit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collegium import CollegiumError, Policy, Schema, Statistics
from collegium.errors import InputError
from collegium.weighted_sums import streamed, tables

POLICY = Policy({"low": 1.0, "mid": 2.0, "high": 3.0})
COLUMNS: dict[str, Any] = {
    "age": {"kind": "whole", "bounds": [17, 90], "bins": [17, 40, 90]},
    "income": {"kind": "number", "bounds": [0, 100], "step": 1, "missing": True},
    "sex": {"kind": "category", "categories": ["F", "M"]},
    "smokes": {"kind": "flag"},
}
SCHEMA = Schema(COLUMNS)
QUESTIONS = (
    "mean age",
    "mean income by sex",
    "median income by sex",
    "histogram age",
    "count where smokes",
    "cov age, income",
)


def table(n: int = 1200, several: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    owner = np.sort(rng.integers(0, n // 3, n)) if several else np.arange(n)
    owner = rng.permutation(owner)
    return pd.DataFrame(
        {
            "id": [f"p{number}" for number in owner],
            "level": np.array(["low", "mid", "high"])[owner % 3],
            "age": rng.integers(10, 95, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(4, 8, n)),
            "sex": rng.choice(["F", "M", "unheard of"], n),
            "smokes": rng.random(n) < 0.3,
        }
    )


def answers(
    frame: Any, schema: Schema = SCHEMA, owner: str | None = None, **how: Any
) -> list[dict[str, Any]]:
    ask = Statistics(
        frame, POLICY, privacy="level", owner=owner, schema=schema, noise_seed=5, **how
    )
    return [ask.ask(question).to_dict() for question in QUESTIONS]


def to_polars(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("polars").from_pandas(frame)


class Foreign:
    """A frame of another library: it knows its height, and speaks Arrow's C interface."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._table, self.height = pa.Table.from_pandas(frame), len(frame)

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested)

    def __len__(self) -> int:
        return self.height


@pytest.mark.parametrize("made", [pa.Table.from_pandas, to_polars, Foreign])
def test_polars_and_arrow_give_what_pandas_gives(made: Any) -> None:
    frame = table()
    assert answers(made(frame)) == answers(frame)


def test_files_of_one_table_have_the_same_columns_and_no_cell_of_another_type_is_told_of(
    tmp_path: Path,
) -> None:
    frame = table(60)
    text = frame[30:].assign(income=["secret", *(str(one) for one in frame["income"][31:])])
    frame[:30].assign(income=7).to_parquet(tmp_path / "a.parquet")
    for other, message in (
        (frame[30:].drop(columns="income"), "has other or repeated columns"),
        (text, "is not readable Parquet"),
    ):
        other.to_parquet(tmp_path / "b.parquet")
        files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
        with pytest.raises(InputError, match=message) as told:
            Statistics(files, POLICY, privacy="level", schema=SCHEMA).mean("income")
        assert "secret" not in str(told.value)


@pytest.mark.parametrize("owner", [None, "id"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_parquet_in_batches_gives_what_a_table_in_memory_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str | None, noise: str
) -> None:
    frame = table(several=owner is not None)
    monkeypatch.setattr(streamed, "ROWS", 100)
    pq.write_table(pa.Table.from_pandas(frame[:700]), tmp_path / "a.parquet", row_group_size=150)
    pq.write_table(pa.Table.from_pandas(frame[700:]), tmp_path / "b.parquet")
    schema = Schema(COLUMNS, rows_per_owner=2)
    one = answers(frame, schema, owner, noise=noise)
    assert (
        answers([tmp_path / "a.parquet", tmp_path / "b.parquet"], schema, owner, noise=noise) == one
    )


def test_in_memory_rows_are_looked_at_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answers(table(several=True), owner="id")
    monkeypatch.setattr(tables, "ROWS", 77)
    assert answers(table(several=True), owner="id") == whole


def test_who_granted_nothing_is_left_out_of_any_frame() -> None:
    frame, eps = table(), np.where(np.arange(1200) % 4 == 0, 0.0, 1.0)
    found = [
        Statistics(made(frame), eps, schema=SCHEMA, noise_seed=1).mean("age").value
        for made in (pd.DataFrame, Foreign, pa.Table.from_pandas)
    ]
    assert len(set(found)) == 1


def test_an_owner_with_many_rows_counts_as_few() -> None:
    frame = pd.DataFrame(
        {"id": ["a"] * 997 + ["b", "c", "d"], "level": "low", "age": [90] * 997 + [17] * 3}
    )
    policy = Policy({"low": 2.0**25})
    for most, expected in ((1, 17 + 73 / 4), (3, 17 + 73 * 3 / 6)):
        schema = Schema({"age": {"kind": "whole", "bounds": [17, 90]}}, rows_per_owner=most)
        how: dict[str, Any] = {"noise": "laplace", "noise_seed": 1, "questions": 2}
        ask = Statistics(frame, policy, privacy="level", owner="id", schema=schema, **how)
        assert ask.mean("age").value == pytest.approx(expected, abs=0.05)
        assert ask.count("age = 90").value == pytest.approx(most, abs=0.05)
        assert any("counts as" in note for note in ask.answers[0].notes)


def test_one_cell_changes_nothing_but_its_own_row() -> None:
    """A word among numbers changes the type of a column as pandas reads it, and no other row's value."""
    frame = table().astype({"age": object, "smokes": object})
    odd = frame.copy()
    odd.loc[3, "age"], odd.loc[3, "smokes"] = "n/a", "perhaps"
    for name, column in SCHEMA.arrays(frame).items():
        other = SCHEMA.arrays(odd)[name]
        keep = np.arange(len(frame)) != 3
        np.testing.assert_array_equal(column[keep], other[keep])
        assert column.dtype == other.dtype


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"privacy": "lvl"}, "level"),
        ({"privacy": "level", "owner": "person"}, "person"),
        ({}, "privacy"),
    ],
)
def test_files_that_do_not_say_who_granted_what(
    tmp_path: Path, how: dict[str, str], said: str
) -> None:
    table().to_parquet(tmp_path / "a.parquet")
    with pytest.raises(CollegiumError, match=said):
        Statistics(tmp_path / "a.parquet", POLICY, schema=SCHEMA, **how)


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(InputError, match="Parquet"):
        Statistics(tmp_path / "a.csv", POLICY, privacy="level", schema=SCHEMA)
    (tmp_path / "b.parquet").write_text("nothing")
    with pytest.raises(InputError, match="Parquet"):
        Statistics(tmp_path / "b.parquet", POLICY, privacy="level", schema=SCHEMA)


def test_levels_that_are_unknown_and_owners_with_two(tmp_path: Path) -> None:
    frame = table(several=True)
    frame.loc[0, "level"] = "other"
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(CollegiumError, match="policy does not know, first record 1 ") as refusal:
        Statistics(tmp_path / "a.parquet", POLICY, privacy="level", schema=SCHEMA)
    assert "other" not in str(refusal.value)  # what a record holds is private
    frame["level"] = np.where(np.arange(len(frame)) % 2, "low", "high")
    frame.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(CollegiumError, match="level"):
        Statistics(tmp_path / "b.parquet", POLICY, privacy="level", owner="id", schema=SCHEMA)


def test_files_that_change_during_a_session_are_asked_no_more(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    table().to_parquet(file)
    ask = Statistics(
        file, POLICY, schema=SCHEMA, privacy="level", owner="id", noise_seed=1, questions=2
    )
    ask.mean("age")
    before = ask.left()
    table().assign(id="p0", level="low").to_parquet(file)  # one person's rows, each with all weight
    with pytest.raises(InputError, match="changed since the session was opened"):
        ask.mean("income")
    assert ask.left().equals(before)


@pytest.mark.parametrize("whole", [pd.DataFrame, pa.table, pytest.importorskip("polars").DataFrame])
def test_a_table_of_nothing_is_refused_at_once(whole: Any) -> None:
    frame = whole({"age": [30, 40]})
    none = frame[[]] if hasattr(frame, "columns") and not hasattr(frame, "num_rows") else None
    nothing = [frame.select([]) if none is None else none, frame[:0]]
    for empty in nothing:
        with pytest.raises(InputError, match=r"the table has no (rows|columns): give"):
            Statistics(empty, [1.0, 2.0], schema=SCHEMA)


def test_people_whose_records_are_public_are_in_no_answer_in_memory_either(tmp_path):
    """They have no budget: in files, in databases and in memory alike nothing is asked of them."""
    people = pd.DataFrame({"level": ["strict", "gift", "open"] * 400, "x": [0.0, 1.0, 0.0] * 400})
    path = tmp_path / "people.parquet"
    people.to_parquet(path)
    policy = Policy({"strict": 50.0, "open": 60.0, "gift": math.inf}, public=["gift"])
    schema = Schema({"x": {"kind": "number", "bounds": [0, 1], "missing": False}})
    found = [
        Statistics(frame, policy, privacy="level", schema=schema, noise_seed=1)
        for frame in (people, str(path))
    ]
    means = [one.mean("x").value for one in found]
    assert means[0] == means[1] and abs(means[0]) < 0.01
    assert [one.count("x > 0.5").value for one in found] == pytest.approx([0, 0], abs=5)
