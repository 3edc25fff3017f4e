"""A sum of many numbers over several parties: ``python benchmarks/secure_sum.py``.

Plays all parties in one process and prints, for each number of parties and of drop-outs, the seconds that one
party's work takes on average (drawing noise, masking, signing, reading and checking everybody's files,
unmasking), the seconds of all together, and the bytes that each party posts.
"""

import argparse
import time

import numpy as np

from collegium.noise.sums import Noise
from collegium.parties.secure_sum import secure_sum

CASES = ((3, 0), (5, 1), (10, 0), (10, 2), (20, 4))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coordinates", type=int, default=100_000)
    parser.add_argument("--sigma", type=float, default=40.0 * 2**20, help="grid steps")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    print(f"{arguments.coordinates:,} coordinates")
    print("parties  away  seconds in all  seconds a party  bytes a party  error / sigma  expected")
    for parties, away in CASES:
        vectors = [
            rng.integers(-(2**40), 2**40, arguments.coordinates) if place >= away else None
            for place in range(parties)
        ]
        noise = Noise("gaussian", arguments.sigma)
        start = time.perf_counter()
        result = secure_sum(vectors, noise, drop_outs=away)
        seconds = time.perf_counter() - start
        error = result.total - sum(vector for vector in vectors if vector is not None)
        posted = max(result.bytes_posted)
        print(
            f"{parties:7}{away:6}{seconds:16.2f}{seconds / (parties - away):17.2f}{posted:15,}"
            f"{np.std(error) / arguments.sigma:15.4f}{result.noise.scale / arguments.sigma:10.4f}"
        )


if __name__ == "__main__":
    main()
