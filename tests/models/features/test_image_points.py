"""Patches of images, and images as points: each by itself, seeded, of any shape, mirrored where in colour."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from collegium.errors import InputError
from collegium.features import (
    ImagePoints,
    KernelComponents,
    PatchFeatures,
    PublicComponents,
    ScatteringTransform,
)
from collegium.models.catalogue import build_preprocessing
from collegium.models.features import image_points, in_parts
from collegium.models.features.in_parts import transformed
from collegium.runs.views import fitted_view


def smooth(n: int, *shape: int, seed: int = 0) -> Any:
    """Images in which neighbours agree."""
    noise = np.random.default_rng(seed).normal(size=(n, *shape))
    made = gaussian_filter(noise, (0, 1.5, 1.5, *[0] * (len(shape) - 2)))
    return (128 + 100 * made / np.abs(made).max()).astype(np.uint8)


GREY, COLOUR = smooth(90, 18, 17), smooth(90, 20, 20, 3)


@pytest.mark.parametrize(
    "made",
    [
        PatchFeatures(20).fit(GREY),
        PatchFeatures(20, mirrored=True).fit(COLOUR),
        ImagePoints(8, n_patches=20).fit(GREY),
        make_pipeline(ImagePoints(8, n_patches=20), KernelComponents(6)).fit(COLOUR),
    ],
    ids=["patches of grey", "patches of colour", "points of grey", "components of colour"],
)
@settings(max_examples=15, deadline=None)
@given(rows=st.lists(st.integers(0, 89), min_size=1, max_size=70))
def test_no_bit_of_an_image_depends_on_the_others(made: Any, rows: list[int]) -> None:
    images = GREY if getattr(made, "image_shape_", None) == (18, 17, 1) else COLOUR
    assert (made.transform(images[rows]) == made.transform(images)[rows]).all()


def test_what_is_drawn_follows_the_seed_and_not_the_threads() -> None:
    one, two = ImagePoints(8, n_patches=20, n_jobs=1), ImagePoints(8, n_patches=20, n_jobs=2)
    first = one.fit(COLOUR).transform(COLOUR)
    assert (two.fit(COLOUR).transform(COLOUR) == first).all()
    assert one.cache_key() == two.cache_key()
    other = clone(one).set_params(random_state=1).fit(COLOUR)
    assert not np.allclose(other.transform(COLOUR), first, atol=1e-2)
    assert other.cache_key() != one.cache_key()


@pytest.mark.parametrize("most", [30, 6000], ids=["of some learnt", "of all"])
@pytest.mark.parametrize("images", [GREY, COLOUR], ids=["grey", "colour"])
def test_what_is_shown_while_fitting_is_what_is_shown_after(
    images: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_points, "_LEARNT_FROM", most)
    points = ImagePoints(8, n_patches=20)
    made = clone(points).fit_transform(images)
    assert made.tobytes() == points.fit(images).transform(images).tobytes()


@pytest.mark.parametrize(
    "made",
    [
        make_pipeline(ScatteringTransform(J=1, batch_size=8), PublicComponents(6)),
        make_pipeline(ImagePoints(8, n_patches=20), KernelComponents(6)),
        ImagePoints(8, n_patches=20),
    ],
    ids=["scattering", "kernel", "points"],
)
def test_a_view_shows_what_it_saw_as_it_will_show_it(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_parts, "_IMAGES", 20)
    view = fitted_view(made, GREY, "")
    assert view.shown is not None
    assert view.of(GREY).tobytes() == view.of(GREY.copy()).tobytes()


def test_a_view_looks_at_the_images_that_it_is_fitted_to_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    see = ImagePoints._parts

    def counted(points: ImagePoints, images: Any) -> Any:
        looked.append(len(images))
        return see(points, images)

    monkeypatch.setattr(ImagePoints, "_parts", counted)
    view = fitted_view(make_pipeline(ImagePoints(8, n_patches=20), KernelComponents(6)), COLOUR, "")
    seen = view.of(COLOUR)
    assert sum(looked) == len(COLOUR)
    assert (view.of(COLOUR.copy()) == seen).all()
    assert sum(looked) == 2 * len(COLOUR)
    assert pickle.loads(pickle.dumps(view)).shown is None


@pytest.mark.parametrize(
    ("images", "points"),
    [
        (smooth(40, 28, 28), (40, 5)),
        (smooth(40, 17, 33), (40, 5)),
        (smooth(40, 8, 8), (40, 5)),  # thumbnails
        (smooth(40, 9, 12, 3), (40, 2, 5)),
        (smooth(40, 130, 70, 3), (40, 2, 5)),  # shrunk
        (smooth(40, 32, 32, 4), (40, 2, 5)),
    ],
    ids=lambda one: str(getattr(one, "shape", one)),
)
def test_images_of_any_shape_become_points(images: Any, points: tuple[int, ...]) -> None:
    transform = ImagePoints(5, n_patches=10).fit(images)
    made = transform.transform(images)
    assert made.shape == points
    assert np.isfinite(made).all()
    assert (transform.patches_ is None) == (min(images.shape[1:3]) < 16)
    flat = ImagePoints(5, n_patches=10, shape=images.shape[1:]).fit(images.reshape(40, -1))
    assert (flat.transform(images.reshape(40, -1)) == made).all()


def test_features_of_mirrored_images_are_known() -> None:
    patches = PatchFeatures(20, mirrored=True).fit(COLOUR)
    turned = np.ascontiguousarray(COLOUR[:, :, ::-1])
    known = patches.mirror(patches.transform(COLOUR))
    assert np.allclose(known, patches.transform(turned), atol=1e-3)
    assert not np.allclose(known, patches.transform(COLOUR), atol=1e-1)
    assert (patches.mirror(known) == patches.transform(COLOUR)).all()


def test_an_image_and_its_mirror_image_are_nearly_the_same_to_the_model() -> None:
    view = make_pipeline(ImagePoints(20, n_patches=40), KernelComponents(10)).fit(COLOUR)
    made = view.transform(COLOUR)
    turned = view.transform(np.ascontiguousarray(COLOUR[:, :, ::-1]))
    others = np.roll(made, 1, axis=0)
    assert np.linalg.norm(made - turned) < 0.5 * np.linalg.norm(made - others)
    points = view[0].transform(COLOUR)
    assert (view[-1].transform(points[:, ::-1]) == made).all()


def test_patches_do_not_see_brightness_or_contrast() -> None:
    images = GREY.astype(float)
    patches = PatchFeatures(20).fit(images)
    brighter = PatchFeatures(20).fit(3 * images + 1000)
    seen = patches.transform(images)
    assert np.allclose(brighter.transform(3 * images + 1000), seen, atol=0.02)
    assert np.abs(seen).max() > 0.5


@pytest.mark.parametrize(
    ("transform", "images", "words"),
    [
        (ImagePoints(), np.full((9, 20, 20), 7), "all public images are blank"),
        (ImagePoints(), np.full((9, 20, 20), np.nan), "missing, infinite or too large"),
        (ImagePoints(), np.zeros((9, 20, 20), dtype=complex), "allowed are numbers"),
        (ImagePoints(), np.zeros((9, 33)), "not flattened squares"),
        (ImagePoints(shape=(3, 3)), np.zeros((9, 33)), "give the shape of one image"),
        (ImagePoints(0), GREY, "n_components"),
        (PatchFeatures(7, mirrored=True), COLOUR, "give an even number"),
        (PatchFeatures(patch_size=18), GREY, "are too small for patch_size=18"),
        (PatchFeatures(threshold=-1), GREY, "threshold"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_what_cannot_be_used_is_refused(transform: Any, images: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        transform.fit(images)


def test_other_shapes_than_those_of_fit_are_refused() -> None:
    points = ImagePoints(5, n_patches=10).fit(COLOUR)
    with pytest.raises(InputError, match="20 × 20 pixels of 3 channel"):
        points.transform(GREY)
    components = KernelComponents(5).fit(points.transform(COLOUR))
    with pytest.raises(InputError, match="shape"):
        components.transform(points.transform(COLOUR)[:, :1])


def test_the_default_view_of_images_is_made_of_them() -> None:
    view = build_preprocessing("kernel", categorical="ordinal", components=7, random_state=0)
    many = np.concatenate([GREY] * 30)
    assert (transformed(view.fit(GREY), many)[:90] == view.transform(GREY)).all()
