"""Direct training, a student on top, and PATE, on the same splits and at the same budgets.

Worst case, δ = 1e-5, seeded noise: these are experiments. Images: private are the 60,000 training images of
MNIST or Fashion-MNIST; each seed splits the 10,000 test images into 9,000 public ones, whose labels nobody
sees, and 1,000 test ones. Every step size and number of features follows from public numbers by the rules
of ``collegium.dpsgd``. Those rules were found on parts of the training images; test records measure only.

    python -m reproduction.benchmarks.direct_training images --dataset mnist --data-dir DATA --out CSV
    python -m reproduction.benchmarks.direct_training tables --data-dir DATA --out CSV
    python -m reproduction.benchmarks.direct_training individual --data-dir DATA --out CSV
    python -m reproduction.benchmarks.direct_training show --out CSV

What stands in the file already is not computed again; ``--cache`` keeps features.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from collegium import DPSGDClassifier, load_dataset
from collegium.accounting import gdp_mu
from collegium.distillation.gaussian_process import GaussianProcessStudent
from collegium.distillation.regression import RegressionStudent
from collegium.features import BinnedTable, KernelComponents, PublicComponents, ScatteringTransform
from collegium.models.closed_form.ridge import RidgeTeachers
from collegium.models.closed_form.tabular import TabularTeachers
from collegium.models.preprocessing import PrincipalTable
from collegium.pate.voting.targets import class_posterior

Floats = NDArray[np.floating[Any]]
DELTA, N_TEACHERS = 1e-5, 250
EPSILONS = (0.03, 0.1, 0.3, math.log(2), 1.0, 3.0)
MIXED = {1.0: 0.54, 2.0: 0.37, 3.0: 0.09}
FIELDS = ("dataset", "seed", "epsilon", "neighbours", "method", "test", "public", "auc", "note")


class Table:
    """Measured rows in a CSV file, each once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = list(csv.DictReader(file))

    def has(self, *key: Any) -> bool:
        """Whether dataset, seed, epsilon, neighbours, method are there."""
        wanted = tuple(map(str, key))
        return any(tuple(row[f] for f in FIELDS[: len(wanted)]) == wanted for row in self.rows)

    def add(self, *values: Any) -> None:
        """Write a row, and print it."""
        row = dict(zip(FIELDS, (_short(v) for v in values), strict=False))
        self.rows.append(row)
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, restval="")
            if new:
                writer.writeheader()
            writer.writerow(row)
        print(", ".join(row.values()), flush=True)


@dataclass(frozen=True, eq=False)
class Images:
    """One split: components, kernel components, points of the student; truth."""

    linear: Floats  # (n_records, 400): whitened by ¾
    kernel: Floats  # (n_records, 800), not of unit length
    sides: Floats  # (n_records, 200), whitened by a quarter: what PATE's teachers see
    points: Floats  # (public and test, 400): what the student sees
    codes: NDArray[np.intp]
    private: NDArray[np.intp]
    public: NDArray[np.intp]
    test: NDArray[np.intp]


def image_files(dataset: str, data_dir: Path) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Read the four IDX files of MNIST or Fashion-MNIST: training records first."""

    def read(name: str, header: int) -> NDArray[np.uint8]:
        path = data_dir / dataset / name
        raw = (
            path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
        )
        return np.frombuffer(raw, np.uint8, offset=header)

    parts = ("train", "t10k")
    images = np.concatenate([read(f"{p}-images-idx3-ubyte", 16) for p in parts]).reshape(-1, 28, 28)
    labels = np.concatenate([read(f"{p}-labels-idx1-ubyte", 8) for p in parts])
    return images, labels.astype(np.intp)


def kept(path: Path | None, make: Callable[[], Floats]) -> Floats:
    """Load an array, or make and store it."""
    if path is None:
        return make()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, make())
    return np.asarray(np.load(path))


def split_images(dataset: str, data_dir: Path, cache: Path | None, seed: int) -> Images:
    """Deal the test images to public and test records, and fit features to the public ones."""
    images, codes = image_files(dataset, data_dir)
    generator = np.random.default_rng([seed, 0])
    rest = 60_000 + generator.permutation(10_000)
    private = generator.permutation(60_000)
    public, test = rest[:9_000], rest[9_000:]

    def stored(name: str) -> Path | None:
        return cache / f"{dataset}-{name}.npy" if cache else None

    made: list[Floats] = []

    def make(which: int) -> Floats:
        if not made:
            made.extend(image_features(images, public, rest, stored("scat")))
        return made[which]

    names = ("linear", "kernel", "sides", "points")
    parts = [kept(stored(f"{name}-{seed}"), partial(make, i)) for i, name in enumerate(names)]
    return Images(parts[0], parts[1], parts[2], parts[3], codes, private, public, test)


def image_features(
    images: NDArray[np.uint8], public: NDArray[np.intp], rest: NDArray[np.intp], stored: Path | None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Describe images, as fitted to the public ones: see :class:`Images`."""
    raw = kept(stored, lambda: ScatteringTransform().fit_transform(images))
    strengths = np.square(raw[public]).reshape(len(public), 81, -1).mean(axis=(0, 2)) ** 0.375
    even = raw[rest] / np.repeat(strengths, raw.shape[1] // 81).astype(np.float32)
    points = normalize(PublicComponents(400, whiten=0.25).fit(even[: len(public)]).transform(even))
    rooted = np.sign(raw) * np.sqrt(np.abs(raw))
    del raw, even
    half = PublicComponents(400, whiten=0.5).fit(rooted[public]).transform(rooted)
    deviation = half[public].std(axis=0)  # what half a whitening leaves: the square root
    linear = half / np.sqrt(deviation)
    sides = half[:, :200] * np.sqrt(deviation[:200])
    kernel = KernelComponents(800).fit(half[public]).transform(half)
    return linear, kernel, sides, points


def fit_direct(
    X: Floats,
    y: NDArray[np.intp],
    budgets: Any,
    seed: int,
    relation: str,
    n_classes: int,
    X_public: Floats,
) -> Any:
    """Fit the estimator of the package to rows whose components are in order of their variance."""
    model = DPSGDClassifier(
        preprocessing=None,
        classes=range(n_classes),
        noise_seed=1_000 + seed,
        random_state=seed,
        neighbours=relation,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, budgets=budgets, X_public=X_public)


def n_components(signal: float, n_classes: int, most: int) -> int:
    """How many components there is signal for."""
    return max(1, min(most, round(math.sqrt(signal * n_classes))))


def signal_of(epsilons: Floats, relation: str) -> float:
    """Σ μ over owners; against replacement half of it."""
    levels, counts = np.unique(epsilons, return_counts=True)
    total = sum(n * gdp_mu(float(e), DELTA) for e, n in zip(levels, counts, strict=True))
    return float(total) / (2 if relation == "replace-one" else 1)


def supported(student: Floats, direct: Floats, logits: Floats, noise: float) -> tuple[float, float]:
    """How often two models differ on public records, and how often noise alone changes the direct one."""
    named = direct.argmax(axis=1)
    generator = np.random.default_rng(0)
    moved = [
        ((logits + generator.normal(0, noise, logits.shape)).argmax(axis=1) != named).mean()
        for _ in range(8)
    ]
    return float((student.argmax(axis=1) != named).mean()), float(np.mean(moved))


BLANKED, REPLACED = "zero-out", "replace-one"
# ε (0: groups of 1, 2 and 3) and relation, the most telling ones first, each round for all splits.
ROUNDS: tuple[tuple[tuple[float, str], ...], ...] = (
    ((0.1, BLANKED), (1.0, BLANKED), (0.03, BLANKED)),
    ((0.0, BLANKED), (0.1, REPLACED), (1.0, REPLACED), (0.3, BLANKED)),
    ((0.03, REPLACED), (0.3, REPLACED), (3.0, BLANKED), (math.log(2), BLANKED)),
    ((math.log(2), REPLACED), (3.0, REPLACED), (0.0, REPLACED)),
)


def run_images(
    table: Table, dataset: str, data_dir: Path, cache: Path | None, seeds: int, rounds: int
) -> None:
    """Measure everything on one data set of images."""
    for cells in ROUNDS[:rounds]:
        for seed in range(1, seeds + 1):
            world: Images | None = None
            for epsilon, relation in cells:
                if not table.has(dataset, seed, _short(epsilon), relation, "chosen"):
                    world = world or split_images(dataset, data_dir, cache, seed)
                    levels = np.full(60_000, epsilon) if epsilon else dealt(60_000, MIXED, seed)
                    measure_direct(table, dataset, world, levels, epsilon, relation, seed)
    for seed in range(1, seeds + 1):
        world = None
        for epsilon in (*EPSILONS, 0.0):
            if not table.has(dataset, seed, _short(epsilon), "both", "PATE"):
                world = world or split_images(dataset, data_dir, cache, seed)
                measure_pate(table, dataset, world, epsilon, seed, cache)


def dealt(n: int, shares: dict[float, float], seed: int) -> Floats:
    """Deal levels to people at random."""
    edges = (np.cumsum(list(shares.values())) * n).round().astype(int)
    groups = np.searchsorted(edges, np.arange(n), side="right")
    levels = np.array(list(shares))[np.minimum(groups, len(shares) - 1)]
    return np.random.default_rng([seed, 5]).permutation(levels)


def measure_direct(
    table: Table,
    dataset: str,
    world: Images,
    levels: Floats,
    epsilon: float,
    relation: str,
    seed: int,
) -> None:
    """Fit the direct model on both kinds of features, the student, and choose."""
    y, private = world.codes, world.private
    signal = signal_of(levels, relation)
    asked = np.concatenate([world.public, world.test])

    def write(method: str, beliefs: Floats, note: str = "") -> None:
        right = beliefs.argmax(axis=1) == y[asked]
        public, test = right[: len(world.public)].mean(), right[len(world.public) :].mean()
        key = (dataset, seed, epsilon, relation, method)
        if not table.has(*map(_short, key)):
            table.add(*key, 100 * test, 100 * public, "", note)

    seen = [("components", world.linear)] if epsilon in (0.1, 1.0) and relation == BLANKED else []
    for method, features in (*seen, ("direct", world.kernel)):
        k = n_components(signal, 10, features.shape[1])
        rows = normalize(features[:, :k])
        model = fit_direct(
            rows[private], y[private], levels, seed, relation, 10, rows[world.public]
        )
        direct = model.predict_proba(rows[asked])
        write(method, direct, f"{k} components")
    logits = np.log(np.maximum(direct, 1e-300))
    published = slice(0, len(world.public))
    student = GaussianProcessStudent(n_components=None, random_state=seed)
    student = student.fit_released(
        world.points[published], np.arange(len(world.public)), direct[published].astype(np.float64)
    )
    beliefs = np.concatenate([student.beliefs_, student.predict_proba(world.points[9_000:])])
    write("student", beliefs)
    write("mean", (beliefs + direct) / 2)
    noise = model.noise_
    differ, by_noise = supported(beliefs[published], direct[published], logits[published], noise)
    chosen = beliefs if differ <= by_noise else direct
    name = "student" if differ <= by_noise else "direct"
    write("chosen", chosen, f"{name}: {differ:.4f} differ, {by_noise:.4f} by noise of {noise:.2f}")


def measure_pate(
    table: Table, dataset: str, world: Images, epsilon: float, seed: int, cache: Path | None
) -> None:
    """Measure PATE: 250 kernel ridge teachers, a noisy histogram for each public image, the same student."""
    teacher: Any = RidgeTeachers(kernel="rbf")
    n_public = len(world.public)

    def ask() -> Floats:
        shards = np.array_split(world.private, N_TEACHERS)
        counts = np.zeros((n_public, 10))
        for first in range(0, N_TEACHERS, teacher.teachers_at_once):
            some = shards[first : first + teacher.teachers_at_once]
            pairs = [(world.sides[part], world.codes[part]) for part in some]
            models = teacher.fit_shards(pairs, range(first, first + len(some)), 10)
            for answers in teacher.predict_shards(models, world.sides[world.public]):
                counts[np.arange(n_public), answers] += 1
        return counts

    counts = kept(cache / f"{dataset}-counts-{seed}.npy" if cache else None, ask)
    mu = gdp_mu(epsilon, DELTA) if epsilon else sum(s * gdp_mu(e, DELTA) for e, s in MIXED.items())
    sigma = math.sqrt(2 * n_public) / mu
    noisy = counts + np.random.default_rng([seed, 1]).normal(0, sigma, counts.shape)
    even = np.full(10, 0.1)
    targets = class_posterior(noisy, sigma, N_TEACHERS, "mixture", prior=even)
    student = GaussianProcessStudent(n_components=None, random_state=seed)
    student = student.fit_released(world.points[:n_public], np.arange(n_public), targets)
    test = (student.predict(world.points[n_public:]) == world.codes[world.test]).mean()
    public = (student.beliefs_.argmax(axis=1) == world.codes[world.public]).mean()
    table.add(dataset, seed, epsilon, "both", "PATE", 100 * test, 100 * public)


@dataclass(frozen=True, eq=False)
class People:
    """One split of a table, and how many records are public and test ones."""

    X: Any
    codes: NDArray[np.intp]
    private: NDArray[np.intp]
    public: NDArray[np.intp]
    test: NDArray[np.intp]


SIZES = {
    "adult": (7_000, 972),
    "credit": (5_000, 4_000),
    "readmitted": (7_000, 10_000),
    "digits": (400, 400),
}


def split_table(dataset: str, data_dir: Path, seed: int) -> People:
    """Read a table and split it; one stay of each patient, drawn at random."""
    if dataset == "credit":
        target = "default.payment.next.month"
        X = pd.read_csv(data_dir / "credit_default" / "credit_default.csv.gz")
        codes = X[target].to_numpy(np.intp)
        codings = dict.fromkeys(("SEX", "EDUCATION", "MARRIAGE"), str)
        X = X.drop(columns=["ID", target]).astype(codings)
    else:
        name = {"readmitted": "diabetes130-readmitted"}.get(dataset, dataset)
        data = load_dataset(name, data_dir, drop_missing=dataset == "adult")
        X, codes = data.X, np.unique(data.y, return_inverse=True)[1].astype(np.intp)
        if data.owners is not None and isinstance(X, pd.DataFrame):
            order = np.random.default_rng([seed, 6]).permutation(len(codes))
            one = order[np.unique(np.asarray(data.owners)[order], return_index=True)[1]]
            X, codes = X.iloc[one].reset_index(drop=True), codes[one]
    order = np.random.default_rng([seed, 0]).permutation(len(codes))
    n_public, n_test = SIZES[dataset]
    n_private = len(codes) - n_public - n_test
    parts = np.split(order, [n_private, n_private + n_public])
    return People(X, codes, parts[0], parts[1], parts[2])


def table_rows(people: People) -> Floats:
    """Describe records by what public ones show."""
    if isinstance(people.X, pd.DataFrame):
        described = BinnedTable().fit(people.X.iloc[people.public]).transform(people.X)
        return np.asarray(described)
    pixels = np.asarray(people.X, dtype=np.float32)
    half = PublicComponents(60, whiten=0.5).fit(pixels[people.public]).transform(pixels)
    return KernelComponents(300).fit(half[people.public]).transform(half)


def run_tables(table: Table, data_dir: Path, seeds: int, rounds: int) -> None:
    """Measure direct training, and PATE, on tables."""
    for dataset in ("adult", "credit", "readmitted", "digits"):
        for seed in range(1, seeds + 1):
            people, features = None, None
            for epsilon, relation in (cell for cells in ROUNDS[:rounds] for cell in cells):
                if epsilon == 0 or table.has(dataset, seed, _short(epsilon), relation, "direct"):
                    continue
                if people is None or features is None:
                    people = split_table(dataset, data_dir, seed)
                    features = table_rows(people)
                levels = np.full(len(people.private), epsilon)
                scores = direct_scores(people, features, levels, relation, seed)
                judge(table, people, (dataset, seed, epsilon, relation, "direct"), scores)
            if people is not None and features is not None:
                without_privacy(table, people, features, dataset, seed)
            if dataset == "digits":
                continue
            for epsilon in EPSILONS if rounds == len(ROUNDS) else (0.1, 1.0):
                if not table.has(dataset, seed, _short(epsilon), "both", "PATE"):
                    people = people or split_table(dataset, data_dir, seed)
                    table_pate(table, people, dataset, epsilon, seed)


def direct_scores(
    people: People, features: Floats, levels: Floats, relation: str, seed: int
) -> Floats:
    """Fit to the private records of one split; beliefs about its test records."""
    n_classes = int(people.codes.max()) + 1
    k = n_components(signal_of(levels, relation), n_classes, features.shape[1])
    rows = normalize(features[:, :k])
    model = fit_direct(
        rows[people.private],
        people.codes[people.private],
        levels,
        seed,
        relation,
        n_classes,
        rows[people.public],
    )
    return np.asarray(model.predict_proba(rows[people.test]))


def without_privacy(
    table: Table, people: People, features: Floats, dataset: str, seed: int
) -> None:
    """Fit scikit-learn's logistic regression to the same rows."""
    if table.has(dataset, seed, "inf", "none", "logistic"):
        return
    rows = normalize(features)
    model = LogisticRegression(C=10, max_iter=300).fit(
        rows[people.private], people.codes[people.private]
    )
    judge(
        table,
        people,
        (dataset, seed, math.inf, "none", "logistic"),
        model.predict_proba(rows[people.test]),
    )


def judge(table: Table, people: People, key: tuple[Any, ...], beliefs: Floats) -> None:
    """Measure on test records."""
    truth = people.codes[people.test]
    auc = roc_auc_score(truth, beliefs[:, 1]) if beliefs.shape[1] == 2 else math.nan
    table.add(*key, 100 * float((beliefs.argmax(axis=1) == truth).mean()), "", float(auc))


def table_pate(table: Table, people: People, dataset: str, epsilon: float, seed: int) -> None:
    """Measure PATE as its docs recommend for tables: tabular teachers, histograms, regressed evidence."""
    encoder = PrincipalTable().fit(people.X.iloc[people.public])
    rows = np.asarray(encoder.transform(people.X), dtype=np.float64)
    teacher: Any = TabularTeachers()
    n_public = len(people.public)
    counts: Any = _COUNTS.get((dataset, seed))
    if counts is None:
        counts = np.zeros((n_public, 2))
        shards = np.array_split(people.private, N_TEACHERS)
        for first in range(0, N_TEACHERS, teacher.teachers_at_once):
            some = shards[first : first + teacher.teachers_at_once]
            pairs = [(rows[part], people.codes[part]) for part in some]
            models = teacher.fit_shards(pairs, range(first, first + len(some)), 2)
            for answers in teacher.predict_shards(models, rows[people.public]):
                counts[np.arange(n_public), answers] += 1
        _COUNTS[dataset, seed] = counts
    sigma = math.sqrt(2 * n_public) / gdp_mu(epsilon, DELTA)
    noisy = counts + np.random.default_rng([seed, 1]).normal(0, sigma, counts.shape)
    targets = class_posterior(noisy, sigma, N_TEACHERS, "mixture", prior=np.full(2, 0.5))
    student = RegressionStudent(random_state=seed)
    student = student.fit_released(rows[people.public], np.arange(n_public), targets)
    judge(
        table,
        people,
        (dataset, seed, epsilon, "both", "PATE"),
        student.predict_proba(rows[people.test]),
    )


_COUNTS: dict[tuple[str, int], Floats] = {}

SHARES = (0.54, 0.37, 0.09)
LOWEST = (0.1, 0.01, 0.003, 0.03, 0.3)


def run_individual(table: Table, data_dir: Path, cache: Path | None, seeds: int) -> None:
    """Compare individual budgets of ε, 2ε and 3ε with ε for everybody, on MNIST features and Adult."""
    for seed in range(1, seeds + 1):
        for dataset in ("adult", "mnist"):
            people, features = None, None
            for lowest in LOWEST:
                key = (dataset, seed, lowest, "zero-out")
                if table.has(*map(_short, (*key, "individual"))):
                    continue
                if people is None or features is None:
                    if dataset == "adult":
                        people = split_table(dataset, data_dir, seed)
                        features = table_rows(people)
                    else:
                        world = split_images(dataset, data_dir, cache, seed)
                        people = People(None, world.codes, world.private, world.public, world.test)
                        features = world.kernel
                n = len(people.private)
                shares = {(i + 1) * lowest: share for i, share in enumerate(SHARES)}
                for method, levels in (
                    ("strictest", np.full(n, lowest)),
                    ("individual", dealt(n, shares, seed)),
                ):
                    scores = direct_scores(people, features, levels, "zero-out", seed)
                    judge(table, people, (*key, method), scores)


def show(table: Table) -> None:
    """Print mean ± sd over splits, as Markdown."""
    groups: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in table.rows:
        groups[row["dataset"], row["neighbours"], row["epsilon"], row["method"]].append(row)
    print("| data | neighbours | ε | method | test % | public % | AUC | splits | |")
    print("|---|---|--:|---|--:|--:|--:|--:|---|")
    for key in sorted(groups, key=lambda k: (k[0], k[1], float(k[2]), k[3])):
        rows = groups[key]
        cells_of = [_spread([row[name] for row in rows]) for name in ("test", "public", "auc")]
        notes = ", ".join(sorted({row["note"].split(":")[0] for row in rows}))
        print(f"| {' | '.join(key)} | {' | '.join(cells_of)} | {len(rows)} | {notes} |")


def _spread(values: list[str]) -> str:
    numbers = np.array([float(v) for v in values if v not in ("", "nan")])
    if not len(numbers):
        return ""
    digits = 4 if abs(numbers).max() <= 1 else 2
    spread = numbers.std(ddof=1) if len(numbers) > 1 else math.nan
    return f"{numbers.mean():.{digits}f} ± {spread:.{digits}f}"


def _short(value: Any) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("part", choices=("images", "tables", "individual", "show"))
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=len(ROUNDS), help="how many of them")
    given = parser.parse_args()
    table = Table(given.out)
    if given.part == "images":
        run_images(table, given.dataset, given.data_dir, given.cache, given.seeds, given.rounds)
    elif given.part == "tables":
        run_tables(table, given.data_dir, given.seeds, given.rounds)
    elif given.part == "individual":
        run_individual(table, given.data_dir, given.cache, given.seeds)
    else:
        show(table)


if __name__ == "__main__":
    main()
