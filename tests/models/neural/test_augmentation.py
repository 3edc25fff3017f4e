"""Images move by at most what was asked for, each by its own amount."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy import ndimage  # noqa: E402

from collegium.errors import InputError  # noqa: E402
from collegium.models.neural.augmentation import Augmentation, move_images  # noqa: E402


def smooth_image(height=24, width=24, seed=0):
    noise = np.random.default_rng(seed).normal(size=(height, width))
    image = ndimage.gaussian_filter(noise, 2.5)
    image[:5] = image[-5:] = image[:, :5] = image[:, -5:] = 0
    return torch.from_numpy(image / np.abs(image).max()).float()


@pytest.mark.parametrize("degrees", [-30.0, 7.5, 90.0])
def test_rotation_agrees_with_scipy(degrees):
    image = smooth_image()
    movement = torch.tensor([[math.radians(degrees), 0.0, 0.0]])
    ours = move_images(image[None, None], movement)[0, 0]
    theirs = ndimage.rotate(image.numpy(), -degrees, reshape=False, order=1, mode="constant")
    inside = (slice(4, -4), slice(4, -4))
    assert np.abs(ours.numpy() - theirs)[inside].max() < 1e-3


@pytest.mark.parametrize(("across", "down"), [(0.25, 0.0), (0.0, -0.125), (0.125, 0.25)])
def test_shift_agrees_with_slices_also_after_a_rotation(across, down):
    image = smooth_image()
    columns, rows = round(24 * across), round(24 * down)
    for angle in (0.0, 0.3):
        turned = move_images(image[None, None], torch.tensor([[angle, 0.0, 0.0]]))
        both = move_images(image[None, None], torch.tensor([[angle, across, down]]))
        shifted = torch.roll(turned, (rows, columns), dims=(2, 3))
        kept = (slice(max(rows, 0), 24 + min(rows, 0)), slice(max(columns, 0), 24))
        assert (both - shifted)[0, 0][kept].abs().max() < 1e-4


def test_images_that_are_not_square_are_turned_without_distortion():
    image = torch.zeros(21, 41)
    image[8:13, 18:23] = 1.0  # a square block about the centre stays one after a quarter turn
    turned = move_images(image[None, None], torch.tensor([[math.pi / 2, 0.0, 0.0]]))[0, 0]
    assert (turned - image).abs().max() < 1e-3


def test_movements_fill_their_ranges():
    generator = torch.Generator().manual_seed(0)
    drawn = Augmentation(rotation=10, shift=0.2).draw(4000, generator)
    limits = torch.tensor([math.radians(10), 0.2, 0.2])
    assert (drawn.abs() <= limits).all()
    assert (drawn.abs().amax(dim=0) > 0.99 * limits).all()
    # A fixed seed; with 5 standard errors a fresh one would fail once in a million.
    assert (drawn.mean(dim=0).abs() < 5 * limits / math.sqrt(3 * 4000)).all()
    assert np.abs(np.corrcoef(drawn.T.numpy()) - np.eye(3)).max() < 5 / math.sqrt(4000)


def test_each_image_moves_by_itself():
    images = smooth_image()[None, None].expand(8, 1, 24, 24)
    moved = Augmentation()(images, torch.Generator().manual_seed(1))
    different = (moved[:, None] - moved[None]).flatten(2).abs().amax(dim=2)
    assert (different + torch.eye(8) > 1e-3).all()
    again = Augmentation()(images, torch.Generator().manual_seed(1))
    assert torch.equal(moved, again)


def test_several_teachers_images_are_moved_as_if_alone():
    images = torch.rand(6, 2, 12, 15)
    augmentation = Augmentation()
    first, second = (torch.Generator().manual_seed(seed) for seed in (1, 2))
    movements = torch.cat([augmentation.draw(4, first), augmentation.draw(2, second)])
    together = move_images(images, movements)
    alone = [
        augmentation(images[part], torch.Generator().manual_seed(seed))
        for part, seed in ((slice(0, 4), 1), (slice(4, 6), 2))
    ]
    assert torch.allclose(together, torch.cat(alone), atol=1e-6)


@pytest.mark.parametrize(
    "options", [{"rotation": -1}, {"rotation": 181}, {"shift": 1.5}, {"shift": "x"}]
)
def test_ranges_that_cannot_be(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Augmentation(**options)


@pytest.mark.parametrize("options", [{"rotation": 0, "shift": 0}, {"rotation": 180, "shift": 1}])
def test_ranges_end_with_what_they_name(options):
    Augmentation(**options)
