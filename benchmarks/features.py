"""Public features and closed-form teachers on MNIST: ``python benchmarks/features.py --data-dir DATA``.

Prints the time of the scattering transform for all 70,000 images, and time and accuracy of 250 teachers
on 240 images each that vote on 9,000 public ones, beside a prototype's figures (52 s; 7 s, mean teacher
94.3 %, plurality of all 97 %). Wall-clock time, and the processor time of all threads together: the
latter hardly depends on what else the machine does. ``--quick``: a seventh of the images and 30 teachers.
``--kymatio``: 480 images through kymatio's torch transform and ours, in turns, where kymatio is installed.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.datasets import load_dataset
from collegium.models.closed_form.kernels import KernelTeachers
from collegium.models.closed_form.logistic import LogisticTeachers
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.models.features import PublicComponents, ScatteringTransform

N_PUBLIC, SHARD, CLASSES = 9_000, 240, 10


@contextmanager
def timed(took: list[str]) -> Iterator[None]:
    """Append wall-clock and processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    took.append(f"{time.perf_counter() - wall:7.1f} {time.process_time() - cpu:7.1f}")


def accuracies(votes: NDArray[Any], truth: NDArray[Any]) -> tuple[float, float, float]:
    """Mean and standard deviation over teachers, and the plurality's accuracy, in per cent."""
    single = 100 * (votes == truth).mean(axis=1)
    counts = np.stack([(votes == label).sum(axis=0) for label in range(CLASSES)])
    return single.mean(), single.std(), 100 * float((counts.argmax(axis=0) == truth).mean())


def compare_with_kymatio(images: NDArray[Any]) -> None:
    """Print the times of both transforms, taken in turns, with all threads that either likes to use."""
    import scipy.special

    if not hasattr(scipy.special, "sph_harm"):
        scipy.special.sph_harm = None  # kymatio imports it, and needs it in three dimensions only
    import torch
    from kymatio.torch import Scattering2D

    theirs = Scattering2D(2, images.shape[1:])
    ours = ScatteringTransform().fit(images)
    pixels = images.astype(np.float32)
    for _ in range(2):
        took: list[str] = []
        with timed(took):
            for first in range(0, len(images), 100):
                theirs(torch.from_numpy(pixels[first : first + 100]))
        with timed(took):
            ours.transform(images)
        print(f"{len(images):,} images: kymatio wall, cpu s {took[0]}   ours {took[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", help="folder with mnist/")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kymatio", action="store_true", help="time kymatio's transform as well")
    parser.add_argument("--seed", type=int, default=0, help="which images are public or taught")
    given = parser.parse_args()
    data = load_dataset("mnist", given.data_dir)
    n_images, n_teachers = (10_000, 30) if given.quick else (70_000, 250)
    rows = np.random.default_rng(given.seed).permutation(70_000)[:n_images]
    n_public = min(N_PUBLIC, n_images - n_teachers * SHARD)
    y = np.asarray(data.y)[rows].astype(int)
    truth = y[:n_public]

    took: list[str] = []
    if given.kymatio:
        compare_with_kymatio(data.X[rows[:480]])
    with timed(took):
        features = ScatteringTransform(root=True).fit_transform(data.X[rows])
    print(f"{'':44} {'wall s':>7} {'cpu s':>7}")
    print(f"{f'scattering of {n_images:,} images':44} {took[-1]}")
    with timed(took):
        components = PublicComponents(200, whiten=0.25).fit(features[:n_public])
        reduced = components.transform(features)
    print(f"{f'200 components of {n_public:,} public images':44} {took[-1]}\n")

    raw = np.asarray(data.X[rows], dtype=np.float32).reshape(n_images, -1) / 255
    inputs = {"pixels": raw, "scattering": features, "200 components": reduced}
    settings: list[tuple[str, str, Callable[[], KernelTeachers]]] = [
        ("pixels", "ridge rbf", lambda: RidgeTeachers(kernel="rbf")),
        ("scattering", "ridge", RidgeTeachers),
        ("200 components", "ridge", RidgeTeachers),
        ("200 components", "ridge rbf", lambda: RidgeTeachers(kernel="rbf")),
        ("200 components", "ridge rbf 0.01", lambda: RidgeTeachers(0.01, kernel="rbf")),
        ("200 components", "logistic", lambda: LogisticTeachers(1e-3)),
    ]
    print(f"{n_teachers} teachers of {SHARD} images, {n_public:,} public images\n")
    print(
        f"{'features':15} {'teachers':15} {'train: wall cpu':>15} {'votes: wall cpu':>15} "
        f"{'mean %':>7} {'sd %':>5} {'all %':>6}"
    )
    first = n_images - n_teachers * SHARD
    shards = [slice(first + SHARD * i, first + SHARD * (i + 1)) for i in range(n_teachers)]
    for name, teachers, make in settings:
        X, estimator = inputs[name], make()
        with timed(took):
            models = estimator.fit_shards([(X[s], y[s]) for s in shards], [0] * n_teachers, CLASSES)
        with timed(took):
            votes = np.stack(estimator.predict_shards(models, X[:n_public]))
        mean, spread, together = accuracies(votes, truth)
        print(
            f"{name:15} {teachers:15} {took[-2]} {took[-1]} {mean:7.2f} {spread:5.2f} {together:6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
