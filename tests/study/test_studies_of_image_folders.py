"""Images as people keep them: a folder with one subfolder per class, an unlabelled one, and .npz files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from collegium import load_student
from collegium.data.datasets import read_any
from collegium.data.datasets.image_files import image_paths, read_images, read_npz
from collegium.data.datasets.table_files import read_table
from collegium.data.headers import header_of
from collegium.errors import InputError
from collegium.study.config import read_config
from collegium.study.onnx_file import onnx_bytes
from collegium.study.others_records import read_records
from collegium.study.runner import run_study
from collegium.study.student_file import published_student
from collegium.study.study_data import load_study_data

SIDE = 18
CLASSES = ("meadow", "sea")
TOML = """
[data]
private = "{private}"
public = "{public}"
test = "{test}"
classes = ["meadow", "sea"]
[privacy]
levels = {{ high = 8.0, low = 16.0 }}
shares = {{ high = 0.5, low = 0.5 }}
[preprocessing]
kind = "kernel"
[ledger]
url = "none"
[method]
kind = "dpsgd"
"""


def landscapes(n: int, seed: int) -> tuple[Any, Any]:
    """Green things with upright blades, and blue ones with waves, in noise."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(2, size=n)
    waves = np.sin(np.arange(SIDE)[None] * 1.4 + rng.uniform(0, 6, (n, 1)))
    bands = np.where(codes[:, None, None], waves[:, :, None], waves[:, None, :])
    images = np.repeat(120 + 60 * bands[..., None], 3, axis=3)
    images[np.arange(n), ..., np.where(codes, 2, 1)] += 30
    images += rng.normal(0, 40, images.shape)
    return np.clip(images, 0, 255).astype(np.uint8), np.array(CLASSES, dtype=object)[codes]


def save(folder: Path, images: Any, classes: Any = None) -> None:
    for place, image in enumerate(images):
        into = folder if classes is None else folder / str(classes[place])
        into.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(into / f"{place:04d}.png")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "private", *landscapes(200, 1))
    save(tmp_path / "public", landscapes(80, 2)[0])
    save(tmp_path / "test", *landscapes(60, 3))
    return tmp_path


def config_of(folder: Path, **roles: str) -> Any:
    names = {"private": "private", "public": "public", "test": "test", **roles}
    (folder / "study.toml").write_text(TOML.format(**names), encoding="utf-8")
    return read_config(folder / "study.toml")


def test_a_study_of_folders_of_images_in_colour_is_published(folder: Path, collegium: Any) -> None:
    config = config_of(folder)
    assert run_study(config, folder / "out") is not None
    student = load_student(folder / "out")
    images, classes = landscapes(100, 4)
    assert (student.predict(images) == classes).mean() > 0.8
    others = read_records(folder / "public", folder / "out")
    assert (student.predict(others) == student.predict(landscapes(80, 2)[0])).all()
    written = folder / "answers.csv"
    code, _, said = collegium("predict", folder / "out", folder / "test", "--out", written)
    assert code == 0, said
    told = pd.read_csv(written)
    files, truth = image_paths(folder / "test")
    assert told["file"].tolist() == [one.relative_to(folder / "test").as_posix() for one in files]
    assert (told["label"] == truth).mean() > 0.8
    pytest.importorskip("onnxruntime")
    assert onnx_bytes(published_student(folder / "out"), images)[1] == 0


def test_arrays_say_the_same_as_folders(folder: Path) -> None:
    for role in ("private", "public", "test"):
        images, classes = read_images(folder / role)
        arrays = {"X": images} if classes is None else {"X": images, "y": classes.astype(str)}
        np.savez(folder / f"{role}.npz", **arrays)
    of_arrays = {role: f"{role}.npz" for role in ("private", "public", "test")}
    found, same = (
        load_study_data(config_of(folder)),
        load_study_data(config_of(folder, **of_arrays)),
    )
    for name in ("X", "codes", "X_public", "X_test", "y_test"):
        assert (getattr(found, name) == getattr(same, name)).all()
    assert found.y_public is None
    header = header_of(folder / "private")
    assert header.n_records == header_of(folder / "private.npz").n_records == 200
    assert (read_any(folder / "private") == read_any(folder / "private.npz")).all()


def test_grey_files_beside_colours_and_hidden_ones(tmp_path: Path) -> None:
    images, _ = landscapes(3, 1)
    save(tmp_path, images)
    Image.fromarray(images[0, :, :, 0]).save(tmp_path / "9.png")
    (tmp_path / ".thumbs").write_bytes(b"not shown")
    made, classes = read_images(tmp_path)
    assert made.shape == (4, SIDE, SIDE, 3)
    assert classes is None
    assert (made[:3] == images).all()
    assert (made[3] == images[0, :, :, :1]).all()
    for one in list(tmp_path.glob("0*.png")):
        one.unlink()
    assert read_images(tmp_path)[0].shape == (1, SIDE, SIDE)


def test_grey_of_16_bits_keeps_its_values(tmp_path: Path) -> None:
    deep = np.random.default_rng(0).integers(0, 65_536, (SIDE, SIDE)).astype(np.uint16)
    plain = (deep >> 8).astype(np.uint8)
    for name, values in (("1.png", deep), ("2.tiff", deep), ("3.png", plain)):
        Image.fromarray(values).save(tmp_path / name)
    made, _ = read_images(tmp_path)
    assert made.dtype == np.uint16
    assert (made[0] == deep).all() and (made[1] == deep).all()
    assert (made[2] == plain.astype(np.uint16) * 257).all()
    Image.fromarray(deep.astype(np.int32)).save(tmp_path / "4.tiff")
    with pytest.raises(InputError, match=r"4\.tiff' holds numbers of 32 bits"):
        read_images(tmp_path)


def test_what_is_no_image_is_refused_by_name(folder: Path) -> None:
    public = folder / "public"
    (public / "notes.png").write_bytes(b"these are no pixels")
    with pytest.raises(InputError, match=r"notes\.png' is no image that can be read"):
        read_images(public)
    (public / "notes.png").unlink()
    Image.new("RGB", (SIDE + 1, SIDE)).save(public / "wide.png")
    with pytest.raises(InputError, match=r"wide\.png' has 19 × 18 pixels, and the first image"):
        read_images(public)
    (public / "wide.png").unlink()
    whole = (public / "0000.png").read_bytes()
    (public / "0000.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"0000\.png' is no image"):
        read_images(public)


def test_folders_that_say_two_things_are_refused(folder: Path) -> None:
    shutil.copy(folder / "public" / "0000.png", folder / "private" / "stray.png")
    with pytest.raises(InputError, match=r"stray\.png' lies beside folders of classes"):
        read_images(folder / "private")
    (folder / "test" / "sea" / "deep").mkdir()
    with pytest.raises(InputError, match=r"deep' is a folder in a class's folder"):
        read_images(folder / "test")


def test_empty_folders_are_named(folder: Path) -> None:
    (folder / "private" / "cloud").mkdir()
    with pytest.raises(InputError, match=r"cloud' is a class's folder without images: put some"):
        read_images(folder / "private")
    with pytest.raises(InputError, match=r"cloud' is a folder without images or \.parquet files"):
        read_table(folder / "private" / "cloud")


def test_arrays_of_other_content_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", a=np.zeros(3), b=np.zeros(3))
    with pytest.raises(InputError, match="none of them 'X'"):
        read_npz(tmp_path / "two.npz")
    np.savez(tmp_path / "objects.npz", X=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="without Python objects"):
        read_npz(tmp_path / "objects.npz")
    (tmp_path / "torn.npz").write_bytes(b"PK\3\4 torn")
    with pytest.raises(InputError, match="whole"):
        read_npz(tmp_path / "torn.npz")
    np.savez(tmp_path / "one.npz", pixels=np.ones((2, 4)))
    assert read_npz(tmp_path / "one.npz")[0].shape == (2, 4)
