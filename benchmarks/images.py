"""Direct training of images by default: accuracy on test images, minutes, and memory.

δ = 1e-5, records are blanked, noise is seeded: these are experiments. Everybody grants ε; of A-B-C 54, 37 and
9 % of the people grant the first, second and third. Private are all training images; each split deals the
10,000 test images to 9,000 public ones, whose labels nobody sees, and 1,000 test ones. With ``--held-out``,
test images are not looked at: 9,000 training images are public, and judged; for choosing settings.

    python -m benchmarks.images --data-dir DATA --dataset mnist
    python -m benchmarks.images --data-dir DATA --dataset mnist --epsilon 0.1 1 1-2-3 --keep-points
    python -m benchmarks.images --data-dir DATA --dataset mnist --held-out --epsilon 0.1 1 --keep-points
    python -m benchmarks.images --train TRAIN.npz --test TEST.npz

The .npz files hold ``X`` (n, height, width, channels) and ``y``. ``--keep-points`` computes the points of a
split's images once for all ε: minutes and memory are then not those of a user.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from collegium import DPSGDClassifier
from collegium.dpsgd.footprint import GIGABYTE, peak_bytes
from collegium.features import ImagePoints
from reproduction.benchmarks.direct_training import image_files

Images = NDArray[Any]
SHARES = (0.54, 0.37, 0.09)


def read(options: argparse.Namespace) -> tuple[Images, Images, Images, Images]:
    """Read training and test images, and their classes; no test images where training ones are held out."""
    if options.train:
        parts = [np.load(path) for path in (options.train, options.test)]
        X, y, rest, rest_y = parts[0]["X"], parts[0]["y"], parts[1]["X"], parts[1]["y"]
    else:
        images, codes = image_files(options.dataset, options.data_dir)
        X, y, rest, rest_y = images[:60_000], codes[:60_000], images[60_000:], codes[60_000:]
    return (X, y, X[:0], y[:0]) if options.held_out else (X, y, rest, rest_y)


def dealt(parts: tuple[Images, ...], split: int, n_public: int, held_out: bool) -> dict[str, Any]:
    """Deal images to private, public and test ones."""
    X, y, rest, rest_y = parts
    if held_out:
        order = np.random.default_rng([split, 77]).permutation(len(X))
        public, private = order[:n_public], order[n_public:]
        made = {"private": (X[private], y[private]), "public": (X[public], y[public])}
        return {**made, "test": made["public"]}
    order = np.random.default_rng([split, 0]).permutation(len(rest))
    public, test = order[:n_public], order[n_public:]
    return {
        "private": (X, y),
        "public": (rest[public], rest_y[public]),
        "test": (rest[test], rest_y[test]),
    }


@contextmanager
def keep_points() -> Iterator[None]:
    """Compute the points of an image once."""
    learn, show = ImagePoints.fit, ImagePoints.transform
    kept: dict[bytes, NDArray[np.float32]] = {}
    learnt: list[ImagePoints] = []

    def fit(self: ImagePoints, X: Images, y: object = None) -> ImagePoints:
        if not learnt:
            learnt.append(learn(self, X))
        vars(self).update(vars(learnt[0]))
        return self

    def transform(self: ImagePoints, X: Images) -> NDArray[np.float32]:
        names = [np.ascontiguousarray(one).tobytes() for one in X]
        new = [place for place, name in enumerate(names) if name not in kept]
        if new:
            kept.update(zip([names[place] for place in new], show(self, X[new]), strict=True))
        return np.stack([kept[name] for name in names])

    with (
        mock.patch.object(ImagePoints, "fit", fit),
        mock.patch.object(ImagePoints, "transform", transform),
    ):
        yield


def granted(said: str, n: int, seed: int) -> Any:
    """Give everybody one ε, or each one of three."""
    each = [float(one) for one in said.split("-")]
    if len(each) == 1:
        return each[0]
    return np.random.default_rng([seed, 3]).choice(each, n, p=SHARES)


def measure(options: argparse.Namespace, split: int, said: str, of: dict[str, Any]) -> None:
    """Fit once, and print how right the model is, its student, and what is published."""
    X, y = of["private"]
    start, busy = time.perf_counter(), time.process_time()
    model = DPSGDClassifier(
        classes=np.unique(y),
        student="auto" if options.student == "auto" else None,
        noise_seed=1_000 + split,
        random_state=split,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, budgets=granted(said, len(X), split), X_public=of["public"][0])
    minutes = (time.perf_counter() - start) / 60
    of_cores = (time.process_time() - busy) / 60
    width = model.preprocessing_[-1].projection_.shape[1]

    def right(one: Any) -> str:
        found = {name: one.predict(of[name][0]) == of[name][1] for name in ("test", "public")}
        return (
            f"test {100 * found['test'].mean():.2f} %, public {100 * found['public'].mean():.2f} %"
        )

    line = f"split {split}, ε = {said}: {right(model)}, {width} components"
    if model.choice_ is not None:
        choice = model.choice_
        line += f"; the model itself: {right(model.direct_)}"
        if choice.student and not choice.alone:
            last = model.model_[-1].student
            named = last.predict(model.preprocessing_.transform(of["public"][0]))
            line += f"; the student: public {100 * np.mean(named == of['public'][1]):.2f} %"
        line += f"; D / D₀ {choice.differ:.4f} / {choice.by_noise:.4f}, reach {choice.reach:.2f}"
    line += f"; {minutes:.1f} min to fit ({of_cores:.1f} of a core)"
    print(f"{line}, peak {peak_bytes() / GIGABYTE:.2f} GB", flush=True)


def main() -> None:
    """Measure all splits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--train", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--epsilon", nargs="*", default=["1"])
    parser.add_argument("--splits", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--n-public", type=int, default=9_000)
    parser.add_argument("--student", choices=("auto", "none"), default="auto")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--keep-points", action="store_true")
    options = parser.parse_args()
    parts = read(options)
    for split in options.splits:
        of = dealt(parts, split, options.n_public, options.held_out)
        with ExitStack() as kept:
            if options.keep_points:
                kept.enter_context(keep_points())
            for said in options.epsilon:
                measure(options, split, said, of)


if __name__ == "__main__":
    main()
