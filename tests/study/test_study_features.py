"""Studies on public features: images through scattering, embeddings from a file, and their cache."""

import stat
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from collegium import PrivacyWarning, load_student
from collegium.errors import InputError
from collegium.models.features import ScatteringTransform
from collegium.study.config import read_config
from collegium.study.runner import run_study

TOML = """
[data]
private = "private.npy"
private_labels = "private-labels.npy"
public = "public.npy"
test = "test.npy"
test_labels = "test-labels.npy"
classes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
[privacy]
levels = {{ high = 20.0, low = 40.0 }}
shares = {{ high = 0.5, low = 0.5 }}
[preprocessing]
{preprocessing}
[teachers]
model = "ridge"
params = {{ kernel = "rbf" }}
n_teachers = 20
[aggregation]
aggregator = "gnmax"
sigma = 3
[student]
model = "svm"
[run]
n_jobs = 1
"""


def write_study(folder, preprocessing, change=lambda records: records):
    X, y = load_digits(return_X_y=True)
    images = change(X.reshape(-1, 8, 8))
    for name, part in {
        "private": slice(1200),
        "public": slice(1200, 1500),
        "test": slice(1500, None),
    }.items():
        np.save(folder / f"{name}.npy", images[part])
        np.save(folder / f"{name}-labels.npy", y[part])
    (folder / "study.toml").write_text(TOML.format(preprocessing=preprocessing))
    return read_config(folder / "study.toml")


def run(config, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return run_study(config, folder)


def test_scattering_of_images_is_kept_in_the_vault_and_used_again(tmp_path, monkeypatch):
    config = write_study(tmp_path, 'kind = "scattering"\ncomponents = 40')
    folder = tmp_path / "study"
    asked = []
    original = ScatteringTransform.transform

    def counting(self, X):
        asked.append(len(X))
        return original(self, X)

    monkeypatch.setattr(ScatteringTransform, "transform", counting)
    result = run(config, folder)
    assert result.student_accuracy > 0.6  # 0.826 ± 0.015, as noise is not seeded
    assert 1200 in asked
    cache = folder / "vault" / "features"
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert cache.is_dir() and all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in cache.iterdir())
    assert not list((folder / "release").rglob("*.features"))
    asked.clear()
    (folder / "vault" / "votes.npy").unlink()
    (folder / "vault" / "teachers" / "000003.joblib").unlink()
    again = run(config, folder)
    assert 1200 not in asked
    assert again.labels.labels.tolist() == result.labels.labels.tolist()
    for damaged in cache.iterdir():
        damaged.write_bytes(damaged.read_bytes()[:-10])
    (folder / "vault" / "votes.npy").unlink()
    (folder / "vault" / "teachers" / "000003.joblib").unlink()
    run(config, folder)
    assert 1200 in asked


def test_the_published_student_takes_images_and_knows_no_folder(tmp_path):
    config = write_study(tmp_path, 'kind = "scattering"\ncomponents = 20')
    run(config, tmp_path / "study")
    released = tmp_path / "study" / "release" / "student.skops"
    student = load_student(released)
    assert student.predict(np.load(tmp_path / "test.npy")).shape == (297,)
    assert str(tmp_path).encode() not in released.read_bytes()


@pytest.mark.parametrize("normalise", ["length", "public", "none"])
def test_embeddings_from_files(tmp_path, normalise):
    def embed(images):
        return images.reshape(len(images), -1) @ np.random.default_rng(0).normal(size=(64, 30))

    config = write_study(tmp_path, f'kind = "embeddings"\nnormalise = "{normalise}"', embed)
    result = run(config, tmp_path / "study")
    # Ten classes; 0.685 ± 0.031 or more, as noise is not seeded.
    assert result.student_accuracy > 0.4


def test_embeddings_with_missing_values_are_refused_before_anything_is_spent(tmp_path):
    def embed(images):
        flat = images.reshape(len(images), -1).copy()
        flat[1300, 3] = np.nan  # a public one
        return flat

    config = write_study(tmp_path, 'kind = "embeddings"', embed)
    with pytest.raises(InputError, match="missing, infinite"):
        run(config, tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_images_too_small_for_scattering(tmp_path):
    config = write_study(tmp_path, 'kind = "scattering"', lambda images: images[:, :3, :3])
    with pytest.raises(InputError, match="3 × 3 pixels are too small"):
        run(config, tmp_path / "study")


def test_more_components_than_public_images_allow(tmp_path):
    config = write_study(tmp_path, 'kind = "scattering"\ncomponents = 400')
    with pytest.raises(InputError, match="n_components=400 was given"):
        run(config, tmp_path / "study")
