"""The same release fitted by Collegium and by mbi (extra ``pgm``): figures of ``docs/results/synthesis.md``.

One release of each seed, ε = 1 for everybody; each fit of it is judged as in
:mod:`benchmarks.synthesis`. Seconds are of the fit alone, with the compiling that JAX does anew for each
structure, and of this process's processors.

    python -m benchmarks.synthesis_mbi                          # Adult, 3 seeds
    python -m benchmarks.synthesis_mbi --data credit
    python -m benchmarks.synthesis_mbi --data credit --seeds 1 --pairs-of BILL    # more than a tree holds
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations

import pandas as pd

import collegium as cg
from benchmarks.synthetic_data import Tables, tables
from benchmarks.synthetic_scores import scores
from collegium.data.cells import Cells
from collegium.synthesis.pgm import refit

FIGURES = ("logistic", "boosting", "tv1", "tv2", "tv3", "overall", "seconds", "processor")
FITS: dict[str, Callable[[cg.Synthesizer], cg.Synthesizer]] = {
    "mbi, by default": refit,
    "mbi, mixture of 100": lambda made: refit(made, components=100),
    "mbi, mixture of 300": lambda made: refit(made, components=300),
}


def run(known: Tables, seed: int, beginnings: Sequence[str]) -> dict[str, dict[str, float]]:
    """Release once, fit in each way, and judge.

    ``beginnings``: all pairs of columns whose names begin so are measured; without any, chosen pairs.
    """
    cells = Cells(known.schema)
    codes, test = cells.codes(known.train), cells.codes(known.test)

    def judged(fitted: Callable[[], cg.Synthesizer]) -> dict[str, float]:
        start, spent = time.perf_counter(), time.process_time()
        made = fitted()
        took = {
            "seconds": time.perf_counter() - start,
            "processor": time.process_time() - spent,
        }
        rows = cells.codes(made.sample(len(codes), random_state=seed))
        return scores(rows, codes, test, cells, known.target).as_dict() | took

    looping = [name for name in cells.names if name.startswith(tuple(beginnings))]
    pairs = list(combinations(looping, 2)) if beginnings else None
    made = cg.Synthesizer(known.schema, known.target, structure=pairs, noise_seed=seed)
    # Ours measures, too; the fit is most of it.
    found = {"Collegium": judged(lambda: made.fit(known.train, 1.0))}
    print(f"{len(made._model.followed)} of {len(made.measured_)} marginals in our fit", flush=True)
    for name, fit in FITS.items():
        found[name] = judged(lambda fit=fit: fit(made))  # type: ignore[misc]
    return found


def main(arguments: list[str]) -> None:
    """Print a line for each way to fit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--data", default="adult", choices=("adult", "credit"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pairs-of", nargs="+", default=(), metavar="BEGINNING")
    given = parser.parse_args(arguments)
    known = tables(given.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [run(known, seed, given.pairs_of) for seed in range(given.seeds)]
    for name in found[0]:
        each = pd.DataFrame([one[name] for one in found])[list(FIGURES)]
        mean, sd = each.mean(), each.std(ddof=0)
        print(name, *(f"{one} {mean[one]:.4f} ± {sd[one]:.4f}" for one in FIGURES), sep="  ")


if __name__ == "__main__":
    main(sys.argv[1:])
