"""One person's records leave a file, and nothing else in it changes."""

import gzip
import io
from functools import partial

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from collegium.data.datasets.remove_owner import without_person
from collegium.errors import InputError


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"who,x\nann,1\nbob,2\nann,3", b"who,x\nbob,2\n"),
        (b"\r\nwho,x\r\n\r\nann,1\r\n\r\nbob,2\r\n", b"\r\nwho,x\r\n\r\n\r\nbob,2\r\n"),
        (b'\xef\xbb\xbf"who";x\n"ann";"1\n2"\n"bob";"\n""ann"""\n',
         b'\xef\xbb\xbf"who";x\n"bob";"\n""ann"""\n'),
        (b"x\twho\rann\tbob\r1\tann\r2\tann \r3\tAnn", b"x\twho\rann\tbob\r2\tann \r3\tAnn"),
        ("x,who\nä,ann\nß,bob\n".encode(), "x,who\nß,bob\n".encode()),
    ],
)  # fmt: skip
def test_bytes_of_all_others_stay(tmp_path, before, after):
    for name, pack in (("a.csv", bytes), ("a.csv.gz", partial(gzip.compress, mtime=0))):
        (tmp_path / name).write_bytes(pack(before))
        content, gone = without_person(tmp_path / name, "who", "ann")
        assert (gzip.decompress(content) if name.endswith("gz") else content) == after
        assert gone == before.count(b"ann") - after.count(b"ann")
        assert (tmp_path / name).read_bytes() == pack(before)


@pytest.mark.parametrize("owner", ["ann", 7])
def test_a_parquet_file_keeps_schema_order_and_compression(tmp_path, owner):
    names = ["ann", "bob", "cid"] if owner == "ann" else [7, 8, 9]
    kind = pd.Categorical(["v", "planted", None, "u"], ["u", "planted", "v"], ordered=True)
    table = pd.DataFrame(
        {"who": [names[1], owner, names[2], names[1]], "kind": kind, "x": [1.0, np.nan, 3.0, 4.0]}
    )
    table.to_parquet(tmp_path / "a.parquet", compression="zstd", row_group_size=2)
    content, gone = without_person(tmp_path / "a.parquet", "who", str(owner))
    written = pq.ParquetFile(io.BytesIO(content))
    assert gone == 1 and b"planted" not in content
    assert written.schema_arrow.equals(pq.read_schema(tmp_path / "a.parquet"), check_metadata=True)
    assert written.metadata.row_group(0).column(0).compression == "ZSTD"
    assert written.metadata.num_row_groups == 2
    expected = table[table["who"] != owner].reset_index(drop=True)
    expected["kind"] = expected["kind"].cat.remove_unused_categories()
    pd.testing.assert_frame_equal(written.read().to_pandas(), expected)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("who,x\nann\n")
    with pytest.raises(InputError, match="not a rectangular"):
        without_person(tmp_path / "a.csv", "who", "ann")
