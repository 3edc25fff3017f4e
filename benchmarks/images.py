"""Direct training of images by default: accuracy on test images, minutes, and memory.

Everybody grants ε (1), δ = 1e-5, records are blanked, noise is seeded: these are experiments. Private are all
training images; each split deals the 10,000 test images to 9,000 public ones, whose labels nobody sees, and
1,000 test ones.

    python -m benchmarks.images --data-dir DATA --dataset mnist
    python -m benchmarks.images --data-dir DATA --dataset fashion_mnist --student none
    python -m benchmarks.images --train TRAIN.npz --test TEST.npz --student none

The .npz files hold ``X`` (n, height, width, channels) and ``y``. ``--keep-wavelets`` computes what does not
depend on a split once, 16 images at a time: several times faster for three splits, but minutes and memory are
then not those of a user.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from collegium import DPSGDClassifier
from collegium.dpsgd.footprint import GIGABYTE, peak_bytes
from collegium.features import ImagePoints, ScatteringTransform
from reproduction.benchmarks.direct_training import image_files

Images = NDArray[Any]


def read(options: argparse.Namespace) -> tuple[Images, Images, Images, Images]:
    """Read training and test images, and their classes."""
    if options.train:
        parts = [np.load(path) for path in (options.train, options.test)]
        return parts[0]["X"], parts[0]["y"], parts[1]["X"], parts[1]["y"]
    images, codes = image_files(options.dataset, options.data_dir)
    return images[:60_000], codes[:60_000], images[60_000:], codes[60_000:]


def keep_wavelets(*parts: Images) -> Any:
    """Compute the wavelets of all images, and look them up from then on."""
    kept: dict[bytes, NDArray[np.float32]] = {}
    points = ImagePoints()
    for images in parts:
        points.image_shape_ = (*images.shape[1:], 1)[:3]
        for first in range(0, len(images), 1024):
            some = images[first : first + 1024].reshape(-1, *points.image_shape_)
            grey = points._grey(some)
            made = ScatteringTransform(root=True).fit_transform(grey)
            kept.update((one.tobytes(), its) for one, its in zip(grey, made, strict=True))

    def look_up(self: ScatteringTransform, X: Images) -> NDArray[np.float32]:
        return np.stack([kept[one.tobytes()] for one in X])

    return mock.patch.object(ScatteringTransform, "transform", look_up)


def measure(options: argparse.Namespace, split: int, parts: tuple[Images, ...]) -> None:
    """Fit once, and print how right the model is, and its student."""
    X, y, rest, rest_y = parts
    order = np.random.default_rng([split, 0]).permutation(len(rest))
    public, test = order[: options.n_public], order[options.n_public :]
    start, busy = time.perf_counter(), time.process_time()
    model = DPSGDClassifier(
        classes=np.unique(y),
        student="auto" if options.student == "auto" else None,
        noise_seed=1_000 + split,
        random_state=split,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, budgets=options.epsilon, X_public=rest[public])
    minutes = (time.perf_counter() - start) / 60
    of_cores = (time.process_time() - busy) / 60
    width = model.preprocessing_[-1].projection_.shape[1]

    def right(rows: NDArray[np.intp]) -> str:
        return f"{100 * np.mean(model.predict(rest[rows]) == rest_y[rows]):.2f}"

    line = f"split {split}: test {right(test)} %, public {right(public)} %, {width} components"
    if model.choice_ is not None:
        direct = 100 * np.mean(model.direct_.predict(rest[test]) == rest_y[test])
        line += f"; the model itself: test {direct:.2f} %; {model.choice_.in_words}"
    line += f"; {minutes:.1f} min to fit ({of_cores:.1f} of a core)"
    print(f"{line}, peak {peak_bytes() / GIGABYTE:.2f} GB", flush=True)


def main() -> None:
    """Measure all splits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--train", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--splits", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--n-public", type=int, default=9_000)
    parser.add_argument("--student", choices=("auto", "none"), default="auto")
    parser.add_argument("--keep-wavelets", action="store_true")
    options = parser.parse_args()
    parts = read(options)
    if not options.keep_wavelets:
        for split in options.splits:
            measure(options, split, parts)
        return
    with keep_wavelets(parts[0], parts[2]):
        for split in options.splits:
            measure(options, split, parts)


if __name__ == "__main__":
    main()
