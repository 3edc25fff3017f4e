"""Direct training: seconds of a private step beside a plain one, and of training larger than memory.

    python benchmarks/dpsgd.py              # softmax, 60,000 records × 400 features × 10 classes, 60 steps
    python benchmarks/dpsgd.py --streamed   # 10,000,000 rows × 20 columns from Parquet, logistic, 60 steps
    python benchmarks/dpsgd.py --quick      # less of it

A plain step is the same arithmetic on the same records and threads, without norms, clipping, rounding and
noise: scores, errors, and the sum of features times errors.

The streamed table is that of ``out_of_core.py``: 12 numbers, 5 categories, owner (three records on average,
anywhere in the files), privacy level and class. Memory is the resident set of this process and of all below
it together, sampled ten times a second: what they share, and what they map of files, counts each time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info


def softmax(rows: int, columns: int, classes: int, steps: int) -> None:
    """Take private and plain steps in turn."""
    from collegium.budgets import Budgets
    from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
    from collegium.dpsgd.settings import DPSGDSettings
    from collegium.models.threads import in_threads
    from collegium.runs.records import Records

    random = np.random.default_rng(0)
    X = random.normal(size=(rows, columns))
    y = (X @ random.normal(size=(columns, classes))).argmax(axis=1)
    budgets = Budgets.from_epsilons(np.resize([0.5, 1.0, 2.0], rows), delta=1e-6)
    records = Records(X, y, budgets, np.arange(classes), None)
    begun = time.perf_counter()
    run = DPSGDRun(DPSGDRecipe(DPSGDSettings(steps=steps)), records)
    summands = run.summands()
    prepared = time.perf_counter() - begun
    features = [block.features for block in summands.blocks]
    targets = [block.targets for block in summands.blocks]

    def plain(parameters: np.ndarray) -> np.ndarray:
        def of_block(number: int) -> np.ndarray:
            units = features[number].astype(np.float64)
            return units.T @ run.loss.errors(units @ parameters, targets[number])

        return sum(in_threads(of_block, range(len(features))))

    class Timed:
        def __init__(self) -> None:
            self.private, self.plain = [], []

        def clipped_sum(self, parameters, sample):
            start = time.perf_counter()
            plain(parameters * 2.0**-15)
            between = time.perf_counter()
            total = summands.clipped_sum(parameters, sample)
            self.plain.append(between - start)
            self.private.append(time.perf_counter() - between)
            return total

    timed = Timed()
    begun = time.perf_counter()
    run.descend(timed, columns + 1)
    whole = time.perf_counter() - begun
    threads = max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
    alone = prepared + whole - sum(timed.plain)
    ratio = statistics.median(
        private / plain for private, plain in zip(timed.private, timed.plain, strict=True)
    )
    print(
        f"softmax, {rows:,} × {columns} × {classes}, {steps} steps on {threads} thread(s), load "
        f"{os.getloadavg()[0]:.1f}: {alone:.1f} s in all ({prepared:.1f} s to prepare); a private sum takes "
        f"{1000 * statistics.median(timed.private):.0f} ms, a plain one "
        f"{1000 * statistics.median(timed.plain):.0f} ms, ratio {ratio:.3f} (median of step by step); steps "
        f"with noise {alone - prepared:.1f} s, plain sums {sum(timed.plain):.1f} s"
    )


class Resident(threading.Thread):
    """Samples the resident memory of all processes together."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: dict[str, float] = {}
        self.stage = ""
        self.over = threading.Event()

    def run(self) -> None:
        from out_of_core import tree_of

        while not self.over.wait(0.1):
            total = 0
            for process in tree_of(os.getpid()):
                try:
                    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
                except (OSError, IndexError):
                    continue  # it ended meanwhile
                total += pages * os.sysconf("SC_PAGE_SIZE")
            self.most[self.stage] = max(self.most.get(self.stage, 0), total / 1e9)


def processor() -> float:
    """Processor seconds of this process and of those below it that ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def streamed(rows: int, steps: int, jobs: int, where: Path | None) -> None:
    """Train on Parquet files, larger than what is held in memory."""
    import pandas as pd
    from joblib.externals.loky import get_reusable_executor
    from sklearn.metrics import roc_auc_score

    from collegium.budgets import Policy
    from collegium.data.sharding import Granted, ParquetSource, Roles, scan
    from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
    from collegium.dpsgd.settings import DPSGDSettings
    from collegium.dpsgd.streamed import Stream, summands_from_parquet
    from collegium.models.preprocessing import TabularEncoder
    from collegium.runs.records import Records
    from out_of_core import LEVELS, disk_of, generate

    folder = Path(tempfile.mkdtemp(prefix="collegium-dpsgd-", dir=where))
    watch = Resident()
    try:
        generate(folder, rows, 10_000)
        print(f"{rows:,} rows × 20 columns, {disk_of(folder) / 1e9:.2f} GB of Parquet", flush=True)
        watch.start()
        times: list[tuple[str, float, float]] = []

        def begin(stage: str) -> None:
            get_reusable_executor().shutdown(wait=True)  # so that its processor time counts
            watch.stage = stage
            times.append((stage, time.perf_counter(), processor()))

        begin("check and count")
        key = b"public randomness"
        source, roles = ParquetSource(folder / "private"), Roles("ill", "privacy", "patient")
        policy = Policy(LEVELS, delta=1e-8)
        found = scan(source, roles, Granted(policy), key, ["no", "yes"], jobs)
        public = pd.read_parquet(folder / "public.parquet").drop(columns="ill")
        records = Records(None, found.sensitive_seen, found.budgets, found.classes, public)
        recipe = DPSGDRecipe(DPSGDSettings(steps=steps), TabularEncoder(categorical="onehot"))
        run = DPSGDRun(recipe, records)
        n_features = run.X_seen.shape[1] + 1
        stream = Stream(source, roles, found, run.view)
        begin("shards of features")
        with summands_from_parquet(stream, run, folder / "shards", n_jobs=jobs) as summands:
            begin("steps")
            size = disk_of(folder / "shards") / 1e9
            learnt = run.descend(summands, n_features)
        begin("end")
        for (stage, start, used), (_, end, used_then) in pairwise(times):
            print(
                f"{stage:<20} {end - start:6.1f} s, processor {used_then - used:6.1f} s, at most "
                f"{watch.most[stage]:.2f} GB"
            )
        test = pd.read_parquet(folder / "test.parquet")
        scores = run.model(learnt).predict_proba(run.view.of(test.drop(columns="ill")))[:, 1]
        print(
            f"together {times[-1][1] - times[0][1]:.1f} s, at most {max(watch.most.values()):.2f} GB, load "
            f"{os.getloadavg()[0]:.1f}; {n_features} features, {size:.2f} GB of shards; AUC "
            f"{roc_auc_score(test['ill'] == 'yes', scores):.4f} for {run.plan.epsilon()}"
        )
    finally:
        watch.over.set()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streamed", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="Where to work; default: the temporary folder.")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.streamed:
        rows = 200_000 if options.quick else options.rows
        streamed(rows, 60, options.jobs, options.folder)
        return
    softmax(6_000 if options.quick else 60_000, 400, 10, 60)


if __name__ == "__main__":
    main()
