"""Data sets by name: the shapes, labels and owners that their sources published."""

import dataclasses
import gzip
import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from collegium import load_dataset
from collegium.data.datasets import dataset_names, default_data_dir, named
from collegium.data.datasets.download import RawFile
from collegium.data.datasets.openml import OpenMLMnist
from collegium.errors import InputError


def check_consistent(dataset):
    assert len(dataset.X) == len(dataset.y)
    assert dataset.y.ndim == 1
    assert set(dataset.y.tolist()) == set(dataset.classes)
    assert dataset.owners is None or dataset.owners.shape == dataset.y.shape
    assert all((dataset.description, dataset.source, dataset.licence))


class TestEmbedded:
    def test_digits(self):
        digits = load_dataset("digits", download=False)
        check_consistent(digits)
        assert digits.X.shape == (1797, 64)
        assert digits.classes == tuple(range(10))
        assert digits.owners is None

    def test_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            load_dataset("digits").name = "other"


class TestPublished:
    """Needs the published files."""

    def test_mnist(self, data_dir):
        mnist = load_dataset("mnist", data_dir, download=False)
        check_consistent(mnist)
        assert mnist.X.shape == (70_000, 28, 28)
        assert mnist.X.dtype == np.uint8
        assert mnist.y[:5].tolist() == [5, 0, 4, 1, 9]
        assert mnist.y[60_000:60_005].tolist() == [7, 2, 1, 0, 4]

    def test_mnist_from_its_table_gives_the_published_files(self, data_dir, tmp_path):
        mnist = load_dataset("mnist", data_dir, download=False)
        table = mnist.X.reshape(70_000, -1), mnist.y.astype(str).astype(object)
        names = [file.name for file in named.MNIST_FILES]
        contents = OpenMLMnist(fetch_table=lambda: table)(names)
        for file in named.MNIST_FILES:
            assert hashlib.sha256(contents[file.name]).hexdigest() == file.sha256

    def test_adult(self, data_dir):
        adult = load_dataset("adult", data_dir, download=False)
        check_consistent(adult)
        assert adult.X.shape == (48_842, 14)
        assert tuple(adult.X.columns) == named.ADULT_COLUMNS
        assert adult.classes == ("<=50K", ">50K")
        assert Counter(adult.y.tolist()) == {"<=50K": 37_155, ">50K": 11_687}
        assert adult.X.iloc[0].tolist()[:4] == [39, "State-gov", 77516, "Bachelors"]
        assert adult.X["age"].iloc[32_561] == 25  # the first of adult.test
        numbers = adult.X.select_dtypes("number").columns.tolist()
        assert numbers == [
            *("age", "fnlwgt", "education-num"),
            *("capital-gain", "capital-loss", "hours-per-week"),
        ]
        texts = adult.X.drop(columns=numbers)
        assert not texts.isna().any(axis=None)
        assert all((texts[column] == texts[column].str.strip()).all() for column in texts)
        assert (texts == "?").any(axis=1).sum() == 3_620

    def test_adult_without_missing(self, data_dir):
        adult = load_dataset("adult", data_dir, download=False, drop_missing=True)
        check_consistent(adult)
        assert adult.X.shape == (45_222, 14)
        assert adult.X.index.tolist() == list(range(45_222))
        assert not (adult.X == "?").any(axis=None)
        assert Counter(adult.y.tolist()) == {"<=50K": 34_014, ">50K": 11_208}

    def test_diabetes(self, data_dir):
        diabetes = load_dataset("diabetes130", data_dir, download=False)
        check_consistent(diabetes)
        assert diabetes.X.shape == (101_766, 47)
        assert diabetes.classes == ("NO", ">30", "<30")
        assert len(np.unique(diabetes.owners)) == 71_518
        assert Counter(diabetes.y.tolist()) == {"NO": 54_864, ">30": 35_545, "<30": 11_357}
        assert not {"encounter_id", "patient_nbr", "readmitted"} & set(diabetes.X.columns)
        assert (diabetes.X["weight"] == "?").sum() == 98_569
        assert (diabetes.X["max_glu_serum"] == "None").sum() == 96_420
        assert not diabetes.X.isna().any(axis=None)

    def test_whether_patients_come_back(self, data_dir):
        stays = load_dataset("diabetes130", data_dir, download=False)
        readmitted = load_dataset("diabetes130-readmitted", data_dir, download=False)
        check_consistent(readmitted)
        assert readmitted.classes == ("no", "yes")
        assert ((readmitted.y == "no") == (stays.y == "NO")).all()
        assert (readmitted.owners == stays.owners).all() and readmitted.X.equals(stays.X)

    def test_plain_files_do_as_well(self, data_dir, tmp_path):
        (tmp_path / "adult").mkdir()
        for name in ("adult.data", "adult.test"):
            packed = data_dir / "adult" / f"{name}.gz"
            plain = data_dir / "adult" / name
            content = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
            (tmp_path / "adult" / name).write_bytes(content)
        assert len(load_dataset("adult", tmp_path, download=False).X) == 48_842


class TestDownloaded:
    def test_adult_from_a_source(self, tmp_path, monkeypatch):
        row = "39, Private, 1, HS-grad, 9, Divorced, Sales, Wife, White, Male, 0, 0, 40, {}, {}\n"
        contents = {
            "adult.data": (row.format("Peru", "<=50K") + row.format("?", ">50K") + "\n").encode(),
            "adult.test": ("|1x3 Cross validator\n" + row.format("Peru", ">50K.") + "\n").encode(),
        }
        files = tuple(
            RawFile(f"adult/{name}", hashlib.sha256(content).hexdigest())
            for name, content in contents.items()
        )
        monkeypatch.setattr(named, "ADULT_FILES", files)
        monkeypatch.setattr(named, "ADULT_SOURCE", lambda names: contents)
        adult = load_dataset("adult", tmp_path)
        assert adult.y.tolist() == ["<=50K", ">50K", ">50K"]
        assert adult.X["native-country"].tolist() == ["Peru", "?", "Peru"]
        monkeypatch.setattr(named, "ADULT_SOURCE", None)
        assert len(load_dataset("adult", tmp_path, drop_missing=True).X) == 2


class TestRefusals:
    def test_unknown_name(self):
        with pytest.raises(InputError, match=r"'iris'.*digits, adult, mnist, diabetes130"):
            load_dataset("iris")

    def test_drop_missing_elsewhere(self):
        with pytest.raises(InputError, match="'adult' only"):
            load_dataset("digits", drop_missing=True)

    @pytest.mark.parametrize("name", ["mnist", "adult", "diabetes130", "diabetes130-readmitted"])
    def test_missing_files(self, tmp_path, name):
        with pytest.raises(InputError, match=r"downloading is off.*--data-dir") as caught:
            load_dataset(name, tmp_path, download=False)
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []


class TestFolder:
    def test_names(self):
        assert dataset_names()[:4] == ("digits", "adult", "mnist", "diabetes130")
        assert dataset_names()[4:] == ("diabetes130-readmitted",)

    def test_where(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path / "here"))
        assert default_data_dir() == tmp_path / "here"
        monkeypatch.setenv("COLLEGIUM_DATA", "")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert default_data_dir() == tmp_path / "collegium"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert default_data_dir() == Path.home() / ".cache" / "collegium"

    def test_environment_is_used(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path))
        with pytest.raises(InputError, match=str(tmp_path)):
            load_dataset("adult", download=False)
