"""Headers: what a file says of its records, without a look at any."""

import gzip

import numpy as np
import pandas as pd
import pytest

from collegium.data.datasets import read_any
from collegium.data.datasets.array_files import idx_bytes
from collegium.data.headers import Header, header_of
from collegium.errors import InputError

CSV = {
    "plain": b"age,work\n1,sea\n",
    "semicolons": b"age;work\n1;sea\n",
    "mark of byte order": b"\xef\xbb\xbfage,work\n1,sea\n",
    "blank lines": b"\n\r\nage,work\r\n1,sea\r\n",
    "old ends of lines": b"age,work\r1,sea\r",
    "quotes": b'"age, in\nyears","wo""rk"\n1,sea\n',
    "without a name": b",work\n1,sea\n",
}


@pytest.mark.parametrize("name", CSV)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_columns_are_called_as_a_reader_of_the_whole_file_calls_them(tmp_path, name, pack):
    path = tmp_path / "people.csv"
    path.write_bytes(pack(CSV[name]))
    assert header_of(path).columns == tuple(read_any(path).columns)


def test_what_stands_below_the_names_is_not_decoded(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"age,work\n\xff\xfe,\0")
    assert header_of(path) == Header(("age", "work"), marks=(",",), separator=",")


def test_a_header_that_can_be_split_in_two_ways_says_so(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"age;weight, kg\n1;2\n")
    assert header_of(path).marks == (",", ";")
    assert header_of(path, ";").columns == ("age", "weight, kg")


def test_parquet_says_types_and_length_and_has_no_column_of_its_index(tmp_path):
    table = pd.DataFrame(
        {"age": [1.5, 2], "work": ["sea", None]}, index=pd.Index(["a", "b"], name="id")
    )
    table.to_parquet(tmp_path / "people.parquet")
    found = header_of(tmp_path / "people.parquet")
    assert found == Header(("age", "work"), kinds={"age": "number", "work": "text"}, n_records=2)
    (tmp_path / "year=1").mkdir()
    (tmp_path / "people.parquet").rename(tmp_path / "year=1" / "part.parquet")
    assert (
        header_of(tmp_path).columns == tuple(read_any(tmp_path).columns) == ("age", "work", "year")
    )


def test_arrays_say_the_shape_of_a_record(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 8, 8), np.uint8))
    (tmp_path / "a-ubyte").write_bytes(
        idx_bytes(np.zeros((3, 8, 8), np.uint8))[:20]
    )  # no record left
    for name in ("a.npy", "a-ubyte"):
        found = header_of(tmp_path / name)
        assert (found.columns, found.shape, found.n_records) == (None, (8, 8), 3)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\n", "is empty"),
        ("a.csv", b"age,age\n", "has the same name for columns 1 and 2"),
        ("a.csv", b"gr\xf6\xdfe,age\n", "is not UTF-8"),
        ("a.npy", b"\x93NUMPY\x01\x00", "is not one whole .npy array"),
        ("a-ubyte", b"\0\0\x08\x03\0", "is truncated within its IDX header"),
        ("a.idx", b"\0\0\x08\x01\0\0\0\0", "holds no record"),
        ("a.parquet", b"PAR1", "is not readable Parquet"),
        ("a.txt", b"hello", "unknown format"),
        ("a.csv.gz", b"\x1f\x8b", "cannot be read"),
    ],
)
def test_what_has_no_header_is_refused(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says):
        header_of(tmp_path / name)


def test_python_objects_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        header_of(tmp_path / "a.npy")
