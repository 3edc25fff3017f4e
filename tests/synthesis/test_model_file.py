"""A fitted table as a file, and rows in files: the same again, damage told in one line, nothing run."""

import json
import pickle

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from collegium import Policy, Schema, Synthesizer
from collegium.errors import CollegiumError, InputError
from collegium.synthesis import rows_in_files
from collegium.synthesis.model_file import FORMAT, model_bytes, read_model
from collegium.weighted_sums import streamed, tables

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [0, 99]},
        "pay": {"kind": "number", "bounds": [0, 10], "step": 0.1},
        "ward": {"kind": "category", "categories": [f"w{n}" for n in range(40)]},
        "day": {"kind": "date", "bounds": ["2024-01-01", "2024-12-31"], "written": "31.12.2024"},
        "sick": {"kind": "flag"},
    }
)
LEVELS = {"low": 2.0, "high": 6.0}


def people(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, n)
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "pay": (age / 10 + rng.normal(0, 1, n)).round(1),
            "ward": [f"w{n}" for n in np.minimum(rng.geometric(0.3, n), 39)],
            "day": [f"{d:02d}.{m:02d}.2024" for d, m in rng.integers(1, 13, (n, 2))],
            "sick": rng.choice(["yes", "no", ""], n),
            "level": rng.choice(list(LEVELS), n),
        }
    )


@pytest.fixture(scope="module")
def fitted():
    table = Synthesizer(
        SCHEMA,
        "sick",
        "both",
        constraints=["age >= 18 or sick is missing or not sick"],
        noise_seed=0,
        random_state=3,
    )
    return table.fit(people(), Policy(LEVELS), privacy="level")


@pytest.fixture(scope="module")
def content(fitted):
    return model_bytes(fitted._model, "sick")


def test_what_was_saved_draws_the_same_rows(fitted, tmp_path):
    fitted.save(tmp_path / "model.json")
    again = Synthesizer.load(tmp_path / "model.json")
    assert again.sample(700, random_state=5).equals(fitted.sample(700, random_state=5))
    where = "age >= 60 and sick"
    assert again.sample(300, where, random_state=1).equals(
        fitted.sample(300, where, random_state=1)
    )
    assert again.measured_ == fitted.measured_ and again.n_rows_ == 2_000
    assert again.marginals_.round(9).equals(fitted.marginals_.round(9))
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


def damages(content, n):
    """Bytes that are changed, cut, doubled or swapped, and values of the JSON that are others."""
    rng = np.random.default_rng(0)
    odd = [
        None,
        -1,
        0,
        10**9,
        1e308,
        "x",
        [],
        {},
        [[]],
        True,
        "nan",
        "inf",
        "-inf",
        -0.5,
        [-1],
        [99],
    ]
    for number in range(n):
        if number % 4 == 0:
            place = int(rng.integers(len(content)))
            yield content[:place] + bytes([int(rng.integers(256))]) + content[place + 1 :]
        elif number % 4 == 1:
            start, length = int(rng.integers(len(content))), int(rng.integers(1, 400))
            yield content[:start] + content[start + length :] * int(rng.integers(0, 3))
        else:
            said = json.loads(content)
            at, keys = said, []
            while isinstance(at, dict | list) and at and (len(keys) < 2 or rng.random() < 0.8):
                key = rng.integers(len(at)) if isinstance(at, list) else rng.choice(list(at))
                keys.append((at, int(key) if isinstance(at, list) else str(key)))
                at = at[keys[-1][1]]
            holder, key = keys[-1]
            if rng.random() < 0.2:
                del holder[key]
            else:
                holder[key] = odd[int(rng.integers(len(odd)))]
            yield json.dumps(said).encode()


def test_damage_is_told_in_one_line_or_does_not_matter(content, tmp_path):
    """400 damaged files: each is refused, or reads as a table from which rows can be drawn."""
    path, refused = tmp_path / "model.json", 0
    for number, damaged in enumerate(damages(content, 400)):
        path.write_bytes(damaged)
        try:
            Synthesizer.load(path).sample(20, random_state=0)
        except CollegiumError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 600, (number, str(error))
    assert 200 < refused < 400  # digits of a number may be others: that is what digests are for


def test_numbers_out_of_all_proportion_are_refused_and_not_counted_up_to(content, tmp_path):
    """A coarse cell of number 10⁹, edges at infinity: neither a list of as many, nor a date of the year ∞."""
    for change in (
        lambda said: said["coarse"][2]["place"].__setitem__(0, 10**9),
        lambda said: said["coarse"][2]["within"].__setitem__(0, float("inf")),
        lambda said: said["edges"]["day"].__setitem__(-1, float("inf")),
        lambda said: said["edges"].__setitem__("ward", [0, 1]),
        lambda said: said["edges"].__setitem__("day", None),
        lambda said: said["factors"][0].__setitem__("columns", [0, 10**9]),
        lambda said: said["factors"][0]["theta"].__setitem__(0, float("nan")),
        lambda said: said.__setitem__("rows_per_owner", 10**30),
        lambda said: said.__setitem__("hidden", 10**30),
        lambda said: said.__setitem__("hidden", -1),
        lambda said: said.__setitem__("hidden", True),
    ):
        said = json.loads(content)
        change(said)
        (tmp_path / "model.json").write_text(json.dumps(said))
        with pytest.raises(InputError) as error:
            Synthesizer.load(tmp_path / "model.json")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": "' + FORMAT.encode() + b'"}',
        pickle.dumps({"format": FORMAT}),
    ],
)
def test_what_is_no_table_is_refused(damaged, tmp_path):
    (tmp_path / "model.json").write_bytes(damaged)
    with pytest.raises(InputError) as error:
        read_model(tmp_path / "model.json")
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


def test_nothing_that_a_file_says_is_run(content, tmp_path, monkeypatch):
    """Text that is a program, wherever text may stand, is text."""
    ran = []
    monkeypatch.setattr("builtins.exec", lambda *given: ran.append(given))
    monkeypatch.setattr("builtins.eval", lambda *given: ran.append(given))
    monkeypatch.setattr(pickle, "loads", lambda *given, **more: ran.append(given))
    program = "__import__('os').system('touch ran')"
    for key in ("constraints", "format", "target"):
        said = json.loads(content)
        said[key] = [program] if key == "constraints" else program
        (tmp_path / "model.json").write_text(json.dumps(said))
        try:
            Synthesizer.load(tmp_path / "model.json").sample(3)
        except CollegiumError as error:
            assert "\n" not in str(error)
        else:
            assert key == "target"
    assert not ran and not (tmp_path / "ran").exists()


# ------------------------------------------------------------------- rows in files


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_rows_in_a_file_are_those_of_its_parts(fitted, tmp_path, monkeypatch, ending):
    """A few rows at a time; a column that is full in the first part and not in the next has one type."""
    monkeypatch.setattr(rows_in_files, "ROWS", 400)
    path, told = tmp_path / f"rows{ending}", []
    rows_in_files.write_rows(fitted._model, 1_000, np.random.default_rng(4), (), path, told.append)
    rng = np.random.default_rng(4)
    parts = [fitted._model.sample(n, rng) for n in (400, 400, 200)]
    whole = pd.concat(parts, ignore_index=True)
    assert told == [400, 800, 1_000]
    if ending == ".parquet":
        found = pd.read_parquet(path)
        assert pq.ParquetFile(path).metadata.num_rows == 1_000
    else:
        found = pd.read_csv(path)
    for name in whole:
        a, b = found[name], whole[name]
        assert a.isna().to_numpy().tolist() == b.isna().to_numpy().tolist()
        assert a.dropna().astype(str).str.replace(".0", "").tolist() == (
            b.dropna().astype(str).str.replace(".0", "").tolist()
        )
    plain = fitted._model.cells.plain_schema
    kept, new = plain.arrays(found, list(plain)), plain.arrays(whole, list(plain))
    for name in plain:
        assert np.array_equal(kept[name], new[name], equal_nan=new[name].dtype.kind == "f"), name


def test_many_rows_do_not_all_stand_in_memory(fitted, tmp_path, monkeypatch):
    """Never more than a part is drawn at once, however many are asked for."""
    drawn, sample = [], type(fitted._model).sample

    def listened(self, n, *more):
        drawn.append(n)
        return sample(self, n, *more)

    monkeypatch.setattr(type(fitted._model), "sample", listened)
    monkeypatch.setattr(rows_in_files, "ROWS", 50_000)
    fitted.sample(320_000, to=tmp_path / "rows.parquet")
    assert drawn == [50_000] * 6 + [20_000]
    assert pq.ParquetFile(tmp_path / "rows.parquet").metadata.num_rows == 320_000


def test_what_is_cut_off_leaves_no_half_file(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(rows_in_files, "ROWS", 100)
    sample, calls = type(fitted._model).sample, []

    def stops(self, n, *more):
        calls.append(n)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return sample(self, n, *more)

    monkeypatch.setattr(type(fitted._model), "sample", stops)
    with pytest.raises(KeyboardInterrupt):
        fitted.sample(1_000, to=tmp_path / "rows.parquet")
    assert not list(tmp_path.glob("*.parquet"))


@pytest.mark.parametrize("rows_per_owner", [1, 2])
@pytest.mark.parametrize("more", [{}, {"calibrated": True, "neighbours": "replace-one"}])
def test_streamed_files_give_the_table_of_memory_to_the_bit(
    tmp_path, monkeypatch, rows_per_owner, more
):
    """Batches of 300 rows, several files, owners with rows in each of them."""
    schema = Schema(dict(SCHEMA.columns), rows_per_owner)
    frame = people()
    frame["person"] = [f"p{number % 900}" for number in range(len(frame))]
    frame["level"] = [list(LEVELS)[number % 900 % 2] for number in range(len(frame))]
    for number in range(3):
        part = frame.iloc[number * 700 : (number + 1) * 700]
        part.to_parquet(tmp_path / f"part{number}.parquet", index=False, row_group_size=300)
    monkeypatch.setattr(tables, "ROWS", 300)
    monkeypatch.setattr(streamed, "ROWS", 300)
    made = []
    for table in (frame, sorted(tmp_path.glob("*.parquet"))):
        one = Synthesizer(schema, "sick", "both", noise_seed=2, **more)
        one.fit(table, Policy(LEVELS), privacy="level", owner="person")
        made.append((model_bytes(one._model, "sick"), one.privacy_.sentences()))
    assert made[0] == made[1]
