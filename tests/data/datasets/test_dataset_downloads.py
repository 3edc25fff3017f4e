"""Fetching: only what has the published content reaches the folder, and whole or not at all."""

import gzip
import hashlib
import http.server
import io
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from collegium.data.datasets import download, named, openml
from collegium.data.datasets.array_files import parse_idx
from collegium.data.datasets.download import RawFile, ZipArchive, obtain, unpack_zip
from collegium.errors import InputError

CONTENT = b"39, State-gov\n"
FILE = RawFile("adult/adult.data", hashlib.sha256(CONTENT).hexdigest())


def zipped(members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        if self.path == "/moved.zip":
            self.send_response(302)
            self.send_header("Location", "/good.zip")
            self.end_headers()
            return
        if self.path not in self.server.pages:
            self.send_error(404)
            return
        content = self.server.pages[self.path]
        self.send_response(200)
        if self.path != "/undeclared.zip":
            extra = 5 if self.path in ("/cut.zip", "/silent.zip") else 0
            self.send_header("Content-Length", str(len(content) + extra))
        self.end_headers()
        self.wfile.write(content)
        if self.path == "/silent.zip":
            self.wfile.flush()
            self.server.released.wait(1200)  # until the test ends

    def log_message(self, *arguments):
        pass


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server():
    good = zipped({"Index": b"", "adult.data": CONTENT})  # its data starts at byte 77
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        web.requests, web.released = [], threading.Event()
        web.url = f"http://127.0.0.1:{web.server_address[1]}"
        web.pages = {
            "/good.zip": good,
            "/undeclared.zip": good,
            "/cut.zip": good[:-30],
            "/silent.zip": good[:10],
            "/text.zip": b"<html>sorry</html>",
            "/other.zip": zipped({"adult.data": CONTENT + b"!"}),
            "/lacking.zip": zipped({"adult.names": b"x"}),
            "/damaged.zip": good[:80] + bytes([good[80] ^ 255]) + good[81:],
        }
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield web
        web.released.set()
        web.shutdown()
        thread.join()


def one_line(call):
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestObtain:
    @pytest.mark.parametrize("page", ["/good.zip", "/undeclared.zip", "/moved.zip"])
    def test_fetches_once_then_finds(self, server, tmp_path, page):
        source = ZipArchive(server.url + page)
        for _ in range(2):
            assert obtain([FILE], tmp_path, source, download=True) == {FILE.path: CONTENT}
        assert server.requests.count(page) == 1
        assert [path.name for path in tmp_path.rglob("*.*")] == ["adult.data.gz"]
        assert gzip.decompress((tmp_path / "adult/adult.data.gz").read_bytes()) == CONTENT

    @pytest.mark.parametrize(
        ("page", "words"),
        [
            ("/none.zip", "HTTP 404"),
            ("/cut.zip", "cut short"),
            ("/text.zip", "not a whole zip file"),
            ("/damaged.zip", "not a whole zip file"),
            ("/other.zip", "sha256 expected " + FILE.sha256[:12]),
            ("/lacking.zip", "is not in what"),
        ],
    )
    def test_failure_leaves_nothing(self, server, tmp_path, page, words):
        url = server.url + page
        message = one_line(lambda: obtain([FILE], tmp_path, ZipArchive(url), download=True))
        for word in (words, "adult.data", url, f"put the files under {str(tmp_path)!r}"):
            assert word in message
        assert "--data-dir" in message
        assert list(tmp_path.rglob("*")) == []

    def test_silent_server(self, server, tmp_path):
        source = ZipArchive(server.url + "/silent.zip", seconds_without_data=0.2)
        assert "timed out" in one_line(lambda: obtain([FILE], tmp_path, source, download=True))

    def test_time_in_total(self, server, tmp_path):
        source = ZipArchive(server.url + "/good.zip", seconds_in_total=0)
        assert "0 seconds" in one_line(lambda: obtain([FILE], tmp_path, source, download=True))

    def test_too_large(self, server, tmp_path, monkeypatch):
        monkeypatch.setattr(download, "LARGEST_DOWNLOAD_BYTES", 20)
        source = ZipArchive(server.url + "/good.zip")
        assert "far larger" in one_line(lambda: obtain([FILE], tmp_path, source, download=True))

    def test_nobody_listens_or_other_scheme(self, tmp_path):
        for url in ("http://127.0.0.1:9/x.zip", "file:///x.zip", "http://[bad/x.zip"):
            message = one_line(lambda u=url: obtain([FILE], tmp_path, ZipArchive(u), download=True))
            assert "could not be fetched" in message

    def test_one_wrong_file_stores_none(self, tmp_path):
        other = RawFile("adult/adult.test", "0" * 64)

        def fetch(names):
            return {"adult.data": CONTENT, "adult.test": b"wrong"}

        one_line(lambda: obtain([FILE, other], tmp_path, fetch, download=True))
        assert list(tmp_path.rglob("*")) == []

    def test_only_missing_files_are_fetched(self, tmp_path):
        other = RawFile("adult/adult.test", hashlib.sha256(b"test").hexdigest())
        (tmp_path / "adult").mkdir()
        (tmp_path / "adult/adult.data").write_bytes(CONTENT)
        asked = []

        def fetch(names):
            asked.extend(names)
            return {"adult.test": b"test"}

        got = obtain([FILE, other], tmp_path, fetch, download=True)
        assert got == {FILE.path: CONTENT, other.path: b"test"}
        assert asked == ["adult.test"]

    def test_local_file_with_other_content(self, tmp_path):
        path = tmp_path / "adult/adult.data"
        path.parent.mkdir()
        path.write_bytes(b"changed")
        message = one_line(lambda: obtain([FILE], tmp_path, dict, download=True))
        got = hashlib.sha256(b"changed").hexdigest()[:12]
        for word in (str(path), FILE.sha256[:12], got, "delete or replace the file"):
            assert word in message
        assert path.read_bytes() == b"changed"

    def test_local_gzip_cut_short(self, tmp_path):
        path = tmp_path / "adult/adult.data.gz"
        path.parent.mkdir()
        path.write_bytes(gzip.compress(CONTENT)[:-4])
        assert str(path) in one_line(lambda: obtain([FILE], tmp_path, dict, download=True))

    def test_no_download(self, tmp_path):
        message = one_line(lambda: obtain([FILE], tmp_path, dict, download=False))
        assert "downloading is off" in message
        assert "--data-dir" in message

    def test_folder_that_cannot_be_written(self, tmp_path):
        (tmp_path / "adult").write_text("a file where the folder should be")
        fetch = {"adult.data": CONTENT}
        message = one_line(lambda: obtain([FILE], tmp_path, lambda names: fetch, download=True))
        assert "cannot be written" in message

    def test_interrupted_writing_leaves_nothing(self, tmp_path, monkeypatch):
        def full(*arguments, **options):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "replace", full)
        fetch = {"adult.data": CONTENT}
        message = one_line(lambda: obtain([FILE], tmp_path, lambda names: fetch, download=True))
        assert "No space left" in message
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


class TestUnpackZip:
    def test_folder_and_nested_zip(self):
        inner = zipped({"deep/diabetic_data.csv": b"x"})
        for content in (
            zipped({"diabetes/diabetic_data.csv": b"x", "diabetes/IDs_mapping.csv": b"y"}),
            zipped({"dataset_diabetes.zip": inner}),
        ):
            assert unpack_zip(content, ["diabetic_data.csv"]) == {"diabetic_data.csv": b"x"}

    def test_nearer_wins_and_depth_ends(self):
        inner = zipped({"a": b"inner", "b": b"inner"})
        outer = zipped({"a.zip": inner, "a": b"outer"})
        assert unpack_zip(outer, ["a", "b"]) == {"a": b"outer", "b": b"inner"}
        assert unpack_zip(zipped({"o.zip": outer}), ["b"]) == {}


class TestOpenML:
    def table(self):
        rng = np.random.default_rng(0)
        pixels = rng.integers(0, 256, (7, 784)).astype(float)
        return pixels, np.array([str(digit) for digit in rng.integers(0, 10, 7)], dtype=object)

    def source(self, table):
        return openml.OpenMLMnist(fetch_table=lambda: table, n_train=5)

    def test_conversion(self):
        pixels, labels = self.table()
        names = [openml.TRAIN_IMAGES, openml.TEST_IMAGES, openml.TEST_LABELS]
        got = self.source((pixels, labels))(names)
        assert list(got) == names
        images = [parse_idx(io.BytesIO(got[name]), name) for name in names[:2]]
        assert [image.shape for image in images] == [(5, 28, 28), (2, 28, 28)]
        np.testing.assert_array_equal(np.concatenate(images).reshape(7, 784), pixels)
        test_labels = parse_idx(io.BytesIO(got[openml.TEST_LABELS]), "labels")
        assert test_labels.tolist() == [int(label) for label in labels[5:]]

    @pytest.mark.parametrize("change", [0.5, -1.0, 256.0, np.nan])
    def test_not_bytes(self, tmp_path, change):
        pixels, labels = self.table()
        pixels[3, 5] += change if change == 0.5 else change - pixels[3, 5]
        message = one_line(
            lambda: obtain(
                named.MNIST_FILES, tmp_path, self.source((pixels, labels)), download=True
            )
        )
        assert "0 to 255" in message
        assert "OpenML" in message

    def test_other_shape_or_no_network(self, tmp_path):
        pixels, labels = self.table()
        with pytest.raises(ValueError, match="labels"):
            self.source((pixels, labels[:-1]))([])

        def offline():
            raise OSError("no route to host")

        source = openml.OpenMLMnist(fetch_table=offline)
        message = one_line(lambda: obtain(named.MNIST_FILES, tmp_path, source, download=True))
        assert "no route to host" in message
        assert "--data-dir" in message

    def test_other_content_is_refused(self, tmp_path):
        source = self.source(self.table())
        message = one_line(lambda: obtain(named.MNIST_FILES, tmp_path, source, download=True))
        assert "sha256 expected ba891046e650" in message
        assert list(tmp_path.rglob("*")) == []

    def test_time_limit_is_put_back(self, monkeypatch):
        import socket

        import sklearn.datasets

        seen = []

        def fetch(*arguments, **options):
            seen.append(socket.getdefaulttimeout())
            raise OSError("offline")

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
        before = socket.getdefaulttimeout()
        with pytest.raises(OSError, match="offline"):
            openml.fetch_mnist_table(7)
        assert seen == [7]
        assert socket.getdefaulttimeout() == before
