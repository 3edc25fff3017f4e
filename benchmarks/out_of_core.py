"""Private records larger than memory: a whole study from Parquet files, its time and its memory.

Makes a data set of 20 columns (12 numbers, 5 categories, owner, privacy level, class; owners have three
records on average, anywhere in the files), then runs a study on it: two passes over the private files, one
teacher per shard, votes on public records, labels, student, report. Memory is the sum of the proportional
set sizes (PSS) of this process and all below it, sampled five times a second. Everything is written
below a temporary folder, which is removed at the end.

    python benchmarks/out_of_core.py            # 10,000,000 rows, 5,000 teachers
    python benchmarks/out_of_core.py --quick    # 200,000 rows, 100 teachers
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUMBERS, CATEGORIES = 12, 5
LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
SHARES = (0.54, 0.37, 0.09)
TOML = """
[study]
name = "Larger than memory"
[data]
private = "private"
public = "public.parquet"
test = "test.parquet"
target = "ill"
owner = "patient"
classes = ["no", "yes"]
[privacy]
levels = {{ high = 1.0, average = 2.0, low = 3.0 }}
delta = 1e-8
column = "privacy"
[preprocessing]
kind = "tabular"
categorical = "onehot"
[teachers]
model = "{model}"
n_teachers = {teachers}
{params}
[aggregation]
max_labels = 2000
[student]
model = "logistic-regression"
[run]
streaming = true
n_jobs = {jobs}
"""


def records(generator: np.random.Generator, rows: int, n_owners: int | None = None) -> pa.Table:
    """Make some records; private ones have an owner and the owner's level."""
    numbers = generator.normal(size=(rows, NUMBERS))
    categories = generator.integers(0, 6, size=(rows, CATEGORIES))
    score = numbers[:, :4].sum(axis=1) + 1.5 * (categories[:, 0] == 2) - categories[:, 1] / 3
    ill = score + generator.logistic(size=rows) > 0
    columns = {f"lab_{i}": pa.array(numbers[:, i]) for i in range(NUMBERS)}
    for i in range(CATEGORIES):
        words = pa.array([f"kind {i}-{code}" for code in range(6)])
        columns[f"kind_{i}"] = words.take(pa.array(categories[:, i]))
    columns["ill"] = pa.array(["no", "yes"]).take(pa.array(ill.astype(np.int8)))
    if n_owners is not None:
        owner = generator.integers(0, n_owners, rows)
        names = np.char.add("patient ", np.char.zfill(owner.astype(str), 9))
        chosen = np.searchsorted(np.cumsum(SHARES), (owner * 0.6180339887) % 1.0)
        columns["patient"] = pa.array(names)
        columns["privacy"] = pa.array(list(LEVELS)).take(pa.array(np.minimum(chosen, 2)))
    return pa.table(columns)


def generate(folder: Path, rows: int, public: int, per_file: int = 500_000) -> None:
    """Write the private data set in files of 500,000 rows, and public and test records."""
    (folder / "private").mkdir()
    for number, first in enumerate(range(0, rows, per_file)):
        part = records(np.random.default_rng([7, number]), min(per_file, rows - first), rows // 3)
        pq.write_table(part, folder / "private" / f"{number:04d}.parquet", row_group_size=125_000)
    pq.write_table(records(np.random.default_rng(8), public), folder / "public.parquet")
    pq.write_table(records(np.random.default_rng(9), 10_000), folder / "test.parquet")


def tree_of(process: int) -> list[int]:
    """List a process and all below it."""
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue  # a thread that ended while it was looked at
        for child in children:
            found += tree_of(int(child))
    return found


def memory_of(process: int) -> int:
    """Read the proportional set size of one process, in bytes."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return 1024 * int(line.split()[1])
    return 0


def processor_of(process: int) -> float:
    """Read the processor seconds that one process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watch(threading.Thread):
    """Samples all processes together: memory, processor time and disk, stage by stage."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.stage, self.peaks, self.times, self.busy = "", {}, {}, {}
        self._used: dict[int, float] = {}
        self._used_before = 0.0
        self.most_disk = 0
        self._begun = time.monotonic()
        self._over = threading.Event()

    def begin(self, stage: str) -> None:
        now, used = time.monotonic(), self.processor()
        if self.stage:
            self.busy[self.stage] = self.busy.get(self.stage, 0.0) + used - self._used_before
            self.times[self.stage] = self.times.get(self.stage, 0.0) + now - self._begun
        self.stage, self._begun, self._used_before = stage, now, used

    def processor(self) -> float:
        """Add up processor seconds; a process that ended counts with what was last seen of it."""
        for process in tree_of(os.getpid()):
            try:
                self._used[process] = processor_of(process)
            except OSError:
                continue
        return sum(list(self._used.values()))

    def run(self) -> None:
        count = 0
        while not self._over.wait(0.2):
            total = 0
            try:
                for process in tree_of(os.getpid()):
                    total += memory_of(process)
            except OSError:
                continue  # a process ended while it was looked at
            self.peaks[self.stage] = max(self.peaks.get(self.stage, 0), total)
            self.processor()
            count += 1
            if count % 25 == 0:
                self.most_disk = max(self.most_disk, disk_of(self.folder))

    def end(self) -> None:
        self.begin("")
        self._over.set()
        self.join()


def disk_of(folder: Path) -> int:
    """Add up the sizes of all files."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(root) / name).stat().st_size
            except OSError:
                continue
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--teachers", type=int, default=5_000)
    parser.add_argument("--public", type=int, default=10_000)
    parser.add_argument(
        "--model", choices=("logistic-regression", "tree"), default="logistic-regression"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="Where to work; default: the temporary folder.")
    parser.add_argument(
        "--quick", action="store_true", help="200,000 rows, 100 teachers, 2,000 public."
    )
    options = parser.parse_args()
    if options.quick:
        options.rows, options.teachers, options.public = 200_000, 100, 2_000
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from collegium.runs.observer import Observer
    from collegium.study.config import read_config
    from collegium.study.runner import run_study

    folder = Path(tempfile.mkdtemp(prefix="collegium-out-of-core-", dir=options.folder))
    try:
        start = time.monotonic()
        generate(folder, options.rows, options.public)
        size = disk_of(folder)
        print(
            f"{options.rows:,} rows × 20 columns in {size / 1e9:.2f} GB of Parquet, made in "
            f"{time.monotonic() - start:.0f} s (not counted)",
            flush=True,
        )
        tree = options.model == "tree"
        model = "sklearn.tree.DecisionTreeClassifier" if tree else "logistic-regression"
        params = "params = { max_depth = 6 }" if tree else ""
        study = folder / "study.toml"
        study.write_text(
            TOML.format(model=model, teachers=options.teachers, params=params, jobs=options.jobs)
        )
        watch = Watch(folder)

        class Told(Observer):
            def stage(self, name: str, total: int | None = None) -> None:
                watch.begin(name)

        watch.begin("check and count")  # and reading the public records
        watch.start()
        result = run_study(read_config(study), folder / "study", Told())
        watch.end()
        print(f"{'stage':<16} {'seconds':>8} {'processor':>10} {'peak memory':>12}")
        for stage, seconds in watch.times.items():
            peak = watch.peaks.get(stage, 0) / 1e9
            print(f"{stage:<16} {seconds:8.1f} {watch.busy[stage]:10.1f} {peak:9.2f} GB")
        together = sum(watch.times.values()), sum(watch.busy.values())
        peak = max(watch.peaks.values()) / 1e9
        print(f"{'together':<16} {together[0]:8.1f} {together[1]:10.1f} {peak:9.2f} GB")
        load = os.getloadavg()[2]
        print(
            f"load of the machine over the last 15 minutes: {load:.1f} on {os.cpu_count()} processors"
        )
        print(f"most on disk: {(watch.most_disk - size) / 1e9:.2f} GB besides the data set")
        print(
            f"{result.plan.n_teachers:,} teachers, {len(result.labels.labels):,} labels of "
            f"{result.labels.n_asked:,} queries; student {result.student_accuracy:.1%} right"
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
