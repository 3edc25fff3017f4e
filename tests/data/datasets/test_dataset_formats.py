"""Files that users bring: read as they are, or refused in one line."""

import gzip
import io
import struct

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from collegium.data.datasets import read_any, read_array, read_table, sha256_of
from collegium.data.datasets.array_files import idx_bytes, parse_idx
from collegium.errors import InputError

FORMATS = (".csv", ".csv.gz", ".parquet", ".npy", "IDX")


def refused(call, path, *words):
    with pytest.raises(InputError) as caught:
        call(path)
    message = str(caught.value)
    assert "\n" not in message
    for word in (path.name, *words):
        assert word in message, message


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestCsv:
    def test_cells_are_taken_literally(self, tmp_path):
        path = write(tmp_path / "t.csv", "n,text,gap\n1,?,\n2,None,0.5\n3,NA,NaN\n")
        table = read_table(path)
        assert table["text"].tolist() == ["?", "None", "NA"]
        assert table["n"].dtype == np.int64
        assert table["gap"].isna().tolist() == [True, False, True]

    def test_as_text_keeps_the_characters_of_every_cell(self, tmp_path):
        path = write(tmp_path / "t.csv", "id,n\n007,7.0\nx1,\n")
        table = read_table(path, as_text=True)
        assert table["id"].tolist() == ["007", "x1"]
        assert table["n"].iloc[0] == "7.0" and table["n"].isna().tolist() == [False, True]

    @given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
    def test_numbers_are_exact(self, tmp_path_factory, numbers):
        path = tmp_path_factory.mktemp("csv") / "t.csv"
        write(path, "x\n" + "\n".join(map(repr, numbers)))
        assert read_table(path)["x"].tolist() == numbers

    def test_gzip_by_content_not_by_name(self, tmp_path):
        text = b"a,b\n1,2\n"
        expected = pd.DataFrame({"a": [1], "b": [2]})
        for name, content in (
            ("x.csv.gz", gzip.compress(text)),
            ("y.csv", gzip.compress(text)),
            ("z.csv.gz", text),
        ):
            pd.testing.assert_frame_equal(read_table(write(tmp_path / name, content)), expected)

    def test_byte_order_mark_quotes_and_line_breaks_in_cells(self, tmp_path):
        path = write(tmp_path / "t.csv", b'\xef\xbb\xbfa,b\r\n"x,\ny",2\r\n')
        table = read_table(path)
        assert table.columns.tolist() == ["a", "b"]
        assert table["a"].tolist() == ["x,\ny"]

    @pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
    def test_the_only_character_that_separates_the_header_separates_the_cells(self, tmp_path, mark):
        path = write(tmp_path / "t.csv", f'a{mark}"b"\n1{mark}"x{mark};,|"\n')
        assert read_table(path)["b"].tolist() == [f"x{mark};,|"]
        assert read_table(path, separator=mark).columns.tolist() == ["a", "b"]

    def test_a_header_that_two_characters_separate_is_split_at_commas_or_as_is_said(self, tmp_path):
        path = write(tmp_path / "t.csv", "a;b|c\n1;2|3\n")
        refused(read_table, path, "';' and '|'", "data.separator")
        assert read_table(path, separator="|").columns.tolist() == ["a;b", "c"]
        path = write(tmp_path / "t.csv", "a;b,c\n1;2,3\n")
        assert read_table(path).columns.tolist() == ["a;b", "c"]

    def test_a_separator_that_is_given_is_kept_to(self, tmp_path):
        path = write(tmp_path / "t.csv", "a;b\n1;2\n")
        refused(lambda given: read_table(given, separator=","), path, "';'", "separator")
        with pytest.raises(InputError, match="one character"):
            read_table(path, separator="::")

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("", ["is empty"]),
            ("\n\n", ["is empty"]),
            ("a,b\n1,2\n1,2,3\n", ["line 3", "3 cells", "header 2"]),
            ("a,b\n1,2,3\n", ["line 2"]),
            ("a,b\n1\n", ["line 2", "1 cells"]),
            ("a,b,a\n1,2,3\n", ["the same name for columns 1 and 3"]),
            ('a,b\n1,"2\n', ["not a readable CSV"]),
            (b"a,b\n\xff\xfe,2\n", ["UTF-8"]),
            (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12], ["CSV"]),
            (b"\x1f\x8b\x08nonsense", ["CSV"]),
        ],
    )
    def test_malformed(self, tmp_path, content, words):
        refused(read_table, write(tmp_path / "t.csv", content), *words)

    def test_message_shows_no_cell(self, tmp_path):
        path = write(tmp_path / "t.csv", "a,b\n1,2\nsecret,2,3\n")
        with pytest.raises(InputError) as caught:
            read_table(path)
        assert "secret" not in str(caught.value)


class TestParquet:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})

    def test_file_and_folder(self, tmp_path):
        self.frame.to_parquet(tmp_path / "part2.parquet")
        pd.testing.assert_frame_equal(read_table(tmp_path / "part2.parquet"), self.frame)
        self.frame.assign(a=[8, 9]).to_parquet(tmp_path / "part1.parquet")
        write(tmp_path / "README", "not a table")
        table = read_table(tmp_path)
        assert table["a"].tolist() == [8, 9, 1, 2]

    def test_hive_folders_become_columns(self, tmp_path):
        for site in ("north", "south"):
            (tmp_path / f"site={site}").mkdir()
            self.frame.to_parquet(tmp_path / f"site={site}" / "part.parquet")
        assert read_any(tmp_path)["site"].tolist() == ["north", "north", "south", "south"]

    def test_column_all_missing_in_one_file(self, tmp_path):
        self.frame.assign(b=None).to_parquet(tmp_path / "a.parquet")
        self.frame.to_parquet(tmp_path / "b.parquet")
        assert read_table(tmp_path)["b"].isna().tolist() == [True, True, False, True]

    def test_files_that_disagree(self, tmp_path):
        self.frame.to_parquet(tmp_path / "a.parquet")
        self.frame.drop(columns="b").to_parquet(tmp_path / "b.parquet")
        refused(read_table, tmp_path, "columns", "'b.parquet'")
        self.frame.assign(b=[1, 2]).to_parquet(tmp_path / "b.parquet")
        refused(read_table, tmp_path, "not readable Parquet")

    def test_damaged_and_empty(self, tmp_path):
        refused(read_table, tmp_path, "without images or .parquet files")
        refused(read_table, write(tmp_path / "t.parquet", b"PAR1 no"), "not readable Parquet")
        self.frame.to_parquet(tmp_path / "t.parquet")
        content = (tmp_path / "t.parquet").read_bytes()
        refused(read_table, write(tmp_path / "t.parquet", content[:-20]), "not readable Parquet")


class TestIdx:
    @given(
        hnp.arrays(
            st.sampled_from([">u1", ">i1", ">i2", ">i4", ">f4", ">f8"]),
            hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4),
        )
    )
    def test_every_type_and_shape(self, array):
        code = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}[array.dtype.str[1:]]
        header = struct.pack(f">4B{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
        got = parse_idx(io.BytesIO(header + array.tobytes()), "x.idx")
        np.testing.assert_array_equal(got, array)
        assert got.dtype == array.dtype.newbyteorder("=")
        assert got.dtype.isnative

    @pytest.mark.parametrize("name", ["a.idx", "a.idx.gz", "a-idx3-ubyte", "a.idx3-ubyte.gz"])
    def test_names(self, tmp_path, name):
        array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
        content = idx_bytes(array)
        path = write(tmp_path / name, gzip.compress(content) if ".gz" in name else content)
        np.testing.assert_array_equal(read_array(path), array)

    @pytest.mark.parametrize("cut", [1, 3, 4, 7, 15, 16, 20, 39])
    def test_truncated(self, tmp_path, cut):
        content = idx_bytes(np.zeros((2, 3, 4), dtype=np.uint8))
        refused(read_array, write(tmp_path / "a.idx", content[:cut]))

    def test_trailing_bytes_wrong_magic_and_lies(self, tmp_path):
        content = idx_bytes(np.zeros((2, 3), dtype=np.uint8))
        refused(read_array, write(tmp_path / "a.idx", content + b"x"), "trailing")
        refused(read_array, write(tmp_path / "a.idx", b"\1" + content[1:]), "01000802")
        refused(read_array, write(tmp_path / "a.idx", b"\0\0\x0a" + content[3:]))
        huge = struct.pack(">4B4I", 0, 0, 8, 4, *[2**32 - 1] * 4)
        refused(read_array, write(tmp_path / "a.idx", huge), "truncated")

    def test_damaged_gzip(self, tmp_path):
        packed = gzip.compress(idx_bytes(np.arange(200, dtype=np.uint8)))
        refused(read_array, write(tmp_path / "a.idx.gz", packed[:-20]), "cannot be read")
        damaged = packed[:60] + bytes([packed[60] ^ 255]) + packed[61:]
        refused(read_array, write(tmp_path / "a.idx.gz", damaged), "cannot be read")


class TestNpy:
    def test_round_trip(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3, dtype=np.float32))
        got = read_array(tmp_path / "a.npy")
        np.testing.assert_array_equal(got, np.eye(3, dtype=np.float32))

    def test_no_pickles(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
        refused(read_array, tmp_path / "a.npy", "Python objects")

    def test_damaged(self, tmp_path):
        np.save(tmp_path / "a.npy", np.eye(3))
        content = (tmp_path / "a.npy").read_bytes()
        refused(read_array, write(tmp_path / "a.npy", content + b"x"), "trailing")
        for cut in (4, 9, 40, 130, len(content) - 1):
            refused(read_array, write(tmp_path / "a.npy", content[:cut]))

    @given(st.binary(min_size=1, max_size=120))
    def test_damaged_header_never_escapes(self, noise):
        from collegium.data.datasets.array_files import parse_npy

        with pytest.raises(InputError):
            parse_npy(io.BytesIO(b"\x93NUMPY\x01\x00v\x00" + noise), "a.npy")


class TestAny:
    def test_by_name_and_by_first_bytes(self, tmp_path):
        array = np.arange(6, dtype=np.uint8).reshape(2, 3)
        np.save(tmp_path / "a.npy", array)
        (tmp_path / "a.npy").rename(tmp_path / "renamed")
        np.testing.assert_array_equal(read_any(tmp_path / "renamed"), array)
        np.testing.assert_array_equal(read_any(write(tmp_path / "i.bin", idx_bytes(array))), array)
        pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "p.pq")
        assert read_any(tmp_path / "p.pq")["a"].tolist() == [1]
        assert read_any(write(tmp_path / "T.CSV", "a\n1\n"))["a"].tolist() == [1]

    def test_refusals(self, tmp_path):
        refused(read_any, tmp_path / "none.csv", "does not exist")
        refused(read_any, tmp_path / "none.npy", "does not exist")
        refused(read_any, tmp_path / "none", "does not exist")
        refused(read_any, write(tmp_path / "x.xlsx", b"PK\3\4"), "unknown format", *FORMATS)
        refused(read_any, write(tmp_path / "e.idx", b""), "is empty")
        refused(read_table, write(tmp_path / "x.npy", b"x"), "give a table", *FORMATS)
        refused(read_array, write(tmp_path / "x.csv", b"x"), "give an array", *FORMATS)
        refused(read_array, tmp_path, "not a file")

    def test_line_break_in_a_name(self, tmp_path):
        with pytest.raises(InputError) as caught:
            read_any(tmp_path / "a\nb.csv")
        assert "\n" not in str(caught.value)


class TestChecksum:
    def test_packed_and_unpacked(self, tmp_path):
        plain = write(tmp_path / "a", b"abc" * 10**6)
        packed = write(tmp_path / "a.gz", gzip.compress(b"abc" * 10**6))
        assert sha256_of(plain) == sha256_of(packed, decompressed=True) != sha256_of(packed)

    def test_missing_or_damaged(self, tmp_path):
        for path in (tmp_path / "none", write(tmp_path / "a.gz", gzip.compress(b"abc")[:-3])):
            with pytest.raises(InputError, match=path.name):
                sha256_of(path, decompressed=True)
