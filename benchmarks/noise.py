"""Speed of the exact noise against numpy's: ``python benchmarks/noise.py``.

Prints draws per second for calls of 10 values and of a million, the ratio of numpy's time to ours
in the same run, and the share of draws that needed arbitrary precision (predicted share beside it).
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from collegium.noise import exact_sampling
from collegium.noise.grid import GRID
from collegium.noise.sources import SecureNoise

SCALES = (1.0, 40.0, 150.0, 1e4, 1e7)
DISTRIBUTIONS = {"gaussian": exact_sampling.GAUSSIAN, "laplace": exact_sampling.LAPLACE}


def draws_per_second(draw: Callable[[int], object], size: int, seconds: float) -> float:
    """Rate over at least ``seconds``, after one call to warm up."""
    draw(size)
    drawn = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        draw(size)
        drawn += size
    return drawn / elapsed


def refined_share(distribution: str, scale: float, size: int) -> float:
    """Share of draws for which the first 63 bits and the float margin do not settle the integer."""
    settled = []
    original = exact_sampling._settle

    def counting(*arguments: object) -> int:
        settled.append(1)
        return original(*arguments)  # type: ignore[arg-type]

    exact_sampling._settle = counting
    try:
        exact_sampling.draw_rounded(
            DISTRIBUTIONS[distribution],
            scale / GRID,
            size,
            exact_sampling.operating_system_words,
        )
    finally:
        exact_sampling._settle = original
    return len(settled) / size


def predicted_share(distribution: str, scale: float) -> float:
    """Mean width of the margin in grid steps: an upper bound on the share while it is small."""
    mean_magnitude = {"gaussian": np.sqrt(2 / np.pi), "laplace": 1.0}[distribution]
    return float(2 * exact_sampling.FLOAT_ERROR * (1 + mean_magnitude) * scale / GRID)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each measurement")
    seconds = parser.parse_args().seconds
    secure = SecureNoise()
    generator = np.random.default_rng()
    print("draws per second (numpy's rate / ours)\n")
    print(
        f"{'distribution':>12} {'scale':>9} {'size 10':>19} {'size 1,000,000':>20} "
        f"{'refined':>9} {'predicted':>9}"
    )
    for distribution in DISTRIBUTIONS:
        for scale in SCALES:

            def ours(
                size: int, name: str = distribution, scale: float = scale
            ) -> NDArray[np.float64]:
                return getattr(secure, name)(scale, size, query=0, purpose="answer")

            def numpys(
                size: int, name: str = distribution, scale: float = scale
            ) -> NDArray[np.float64]:
                return getattr(generator, "normal" if name == "gaussian" else name)(0, scale, size)

            cells = []
            for size in (10, 1_000_000):
                our_rate = draws_per_second(ours, size, seconds)
                ratio = draws_per_second(numpys, size, seconds) / our_rate
                cells.append(f"{our_rate:12,.0f} ({ratio:4.1f})")
            print(
                f"{distribution:>12} {scale:>9g} {cells[0]:>19} {cells[1]:>20} "
                f"{refined_share(distribution, scale, 1_000_000):>9.1e} "
                f"{predicted_share(distribution, scale):>9.1e}"
            )


if __name__ == "__main__":
    main()
