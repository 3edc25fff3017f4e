"""Studies of ten lines, as ``collegium init --from`` writes them: what was predicted, and what came out.

Each data set becomes files as a stranger would bring them: private records with their class and a privacy
level, public records of which some classes are known (the other cells are blank), test records. The study's
file is what ``init`` writes about them; what it asks is answered, and counted. Planner and run follow, as
``collegium run`` calls them, in a process of their own, whose time and memory are taken. ε = 1, 2, 3 for 54,
37 and 9 % of the owners at random, δ = 1e-5, worst case, secure noise, no ledger. Seeds deal records to
private, public and test ones; images keep their training records private (those in colour come as
``cifar10/train.npz`` and ``test.npz`` with ``X`` (n, 32, 32, 3) and ``y``). *Without privacy*:
scikit-learn's logistic regression on ``BinnedTable`` of the private records (tables only).

    python -m benchmarks.ten_lines --data-dir DATA --out CSV [--seeds 1 2 3] [--only adult credit ...]
    python -m benchmarks.ten_lines --out CSV --show

What stands in the file already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression

from benchmarks.imbalance import DRAWN, drawn_people
from collegium.datasets import load_dataset
from collegium.dpsgd.linear_model import as_rows
from collegium.errors import InputError
from collegium.evaluation.quality import measure_quality
from collegium.models.preprocessing import BinnedTable
from collegium.runs.observer import Observer
from collegium.study.config import read_config
from collegium.study.first_steps.arrays import study_of_arrays
from collegium.study.first_steps.look import Files, first_look
from collegium.study.first_steps.prompts import Answers, Draft, Question
from collegium.study.first_steps.tables import study_of_tables
from collegium.study.planned_settings import recommended, with_sections
from collegium.study.runner import run_study

LEVELS, SHARES = {"strict": 1.0, "middle": 2.0, "open": 3.0}, (0.54, 0.37, 0.09)
KNOWN, KNOWN_IMAGES = 400, 500
"""Public records whose class is known, at most; of small data sets two thirds of the public ones."""
FIELDS = (
    "study", "seed", "method", "measure", "low", "middle", "high", "outcome", "floor", "accuracy", "balanced",
    "auc", "better", "plain_accuracy", "plain_balanced", "plain_auc", "predicted_answers", "answers",
    "predicted_minutes", "minutes", "plan_seconds", "predicted_gigabytes", "gigabytes", "questions", "lines",
    "verdict",
)  # fmt: skip
_IDX = {"train": "train-{}-ubyte.gz", "t10k": "t10k-{}-ubyte.gz"}


@dataclass(frozen=True, eq=False)
class Records:
    """All records of a data set.

    ``X``: a table, or images.
    ``y``: a class each.
    ``owners``: whose each is; None: everybody has one.
    ``always_private``: the first so many are private in every split.
    """

    X: Any
    y: NDArray[Any]
    owners: NDArray[Any] | None = None
    always_private: int = 0


@dataclass(frozen=True)
class Case:
    """A study.

    ``load``: its records, from the data folder and the seed.
    ``n_public``, ``n_test``: owners of public and test records.
    ``goal``: a line of its own in the file, if it is not accuracy.
    ``known``: public records with a known class, at most.
    """

    load: Callable[[Path, int], Records]
    n_public: int
    n_test: int
    goal: str = "accuracy"
    known: int = KNOWN
    owner: str | None = field(default=None)


def _images(folder: str) -> Callable[[Path, int], Records]:
    def load(data_dir: Path, seed: int) -> Records:
        X, y = [], []
        for part in ("train", "t10k"):
            for kind, into, skip in (("images-idx3", X, 16), ("labels-idx1", y, 8)):
                path = data_dir / folder / f"{part}-{kind}-ubyte.gz"
                with gzip.open(path) as stream:
                    into.append(np.frombuffer(stream.read(), np.uint8, offset=skip))
        return Records(
            np.concatenate(X).reshape(-1, 28, 28), np.concatenate(y).astype(int), None, 60_000
        )

    return load


def _colour(data_dir: Path, seed: int) -> Records:
    X, y = [], []
    for part in ("train", "test"):
        with np.load(data_dir / f"cifar10/{part}.npz") as given:
            X.append(given["X"])
            y.append(given["y"])
    return Records(np.concatenate(X), np.concatenate(y), None, len(y[0]))


def _adult(data_dir: Path, seed: int) -> Records:
    data = load_dataset("adult", data_dir, drop_missing=True)
    return Records(data.X, data.y)


def _credit(data_dir: Path, seed: int) -> Records:
    X = pd.read_csv(data_dir / "credit_default" / "credit_default.csv.gz")
    y = X.pop("default.payment.next.month").to_numpy()
    return Records(X.drop(columns="ID"), y, X["ID"].to_numpy())


def _readmission(data_dir: Path, seed: int) -> Records:
    data = load_dataset("diabetes130-readmitted", data_dir)
    return Records(data.X, data.y, data.owners)


def _drawn(data_dir: Path, seed: int) -> Records:
    X, y, _ = drawn_people(DRAWN, seed)
    return Records(X, np.where(y == 1, "yes", "no"))


def _digits(data_dir: Path, seed: int) -> Records:
    data = load_dataset("digits")
    return Records(np.asarray(data.X), data.y)


def _small(load: Callable[..., Any]) -> Callable[[Path, int], Records]:
    def read(data_dir: Path, seed: int) -> Records:
        found = load(as_frame=True)
        return Records(found.data, np.asarray(found.target_names)[found.target])

    return read


CASES = {
    "adult": Case(_adult, 7_000, 5_000),
    "adult, no public class": Case(_adult, 7_000, 5_000, known=0),
    "adult, labels": Case(_adult, 7_000, 5_000, "labels"),
    "credit": Case(_credit, 5_000, 4_000, owner="ID"),
    "readmission": Case(_readmission, 7_000, 7_000, owner="patient_nbr"),
    "drawn": Case(_drawn, 6_000, 10_000, "balanced"),
    "digits": Case(_digits, 719, 359),
    "breast cancer": Case(_small(load_breast_cancer), 228, 142),
    "wine": Case(_small(load_wine), 71, 45),
    "mnist": Case(_images("mnist"), 9_000, 1_000, known=KNOWN_IMAGES),
    "mnist, no public class": Case(_images("mnist"), 9_000, 1_000, known=0),
    "fashion-mnist": Case(_images("fashion_mnist"), 9_000, 1_000, known=KNOWN_IMAGES),
    "cifar-10": Case(_colour, 9_000, 1_000, known=KNOWN_IMAGES),
}


class Answering:
    """Answers what ``init`` asks, as somebody would who knows these files; counts the questions."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers, self.asked = answers, 0

    def tell(self, sentence: str) -> None:
        """Hear it."""

    def ask(self, question: Question) -> Any:
        """Answer by the option that the question names."""
        self.asked += 1
        for flag, answer in self.answers.items():
            if question.option.startswith(flag):
                return question.read(answer)
        raise InputError(f"nobody thought of this question: {question.text}")

    def require_answers(self) -> None:
        """Go on."""


def split(case: Case, records: Records, seed: int) -> tuple[NDArray[np.intp], ...]:
    """Deal owners: rows of private, public and test records, in random order."""
    n = len(records.y)
    owners = np.arange(n) if records.owners is None else records.owners
    random = np.random.default_rng([seed, 1])
    who = random.permutation(pd.unique(owners[records.always_private :]))
    public, test = who[: case.n_public], who[case.n_public : case.n_public + case.n_test]
    parts = [np.isin(owners, public), np.isin(owners, test)]
    parts.insert(0, ~(parts[0] | parts[1]))
    found = tuple(random.permutation(np.flatnonzero(part)) for part in parts)
    if (
        records.owners is not None
    ):  # one record each of those who are judged by, or learnt from in the open
        first = [rows[~pd.Series(owners[rows]).duplicated().to_numpy()] for rows in found[1:]]
        found = (found[0], *(random.permutation(rows) for rows in first))  # who has many came first
    return found


def write_files(folder: Path, case: Case, records: Records, seed: int) -> Files:
    """Write private, public and test files as a stranger would bring them."""
    private, public, test = split(case, records, seed)
    random = np.random.default_rng([seed, 2])
    owners = np.arange(len(records.y)) if records.owners is None else records.owners
    of_owner, place = np.unique(owners[private], return_inverse=True)
    levels = random.choice(list(LEVELS), len(of_owner), p=SHARES)[place]
    known = np.zeros(len(public), dtype=bool)
    known[: min(case.known, 2 * len(public) // 3)] = True
    labels = pd.Series(records.y[public]).astype(object).where(known)
    if isinstance(records.X, pd.DataFrame):
        own = {case.owner: owners[private]} if case.owner else {}
        table = records.X.iloc[private].assign(**own, outcome=records.y[private], privacy=levels)
        table.to_csv(folder / "private.csv", index=False)
        table = records.X.iloc[public]
        if known.any():
            table = table.assign(outcome=labels.to_numpy())
        table.to_csv(folder / "public.csv", index=False)
        records.X.iloc[test].assign(outcome=records.y[test]).to_csv(
            folder / "test.csv", index=False
        )
        return Files(*(folder / f"{role}.csv" for role in ("private", "public", "test")))
    beside: dict[str, Path] = {}
    for role, rows in (("private", private), ("public", public), ("test", test)):
        np.save(folder / f"{role}.npy", records.X[rows])
        truth = labels if role == "public" else pd.Series(records.y[rows])
        if truth.notna().any():
            beside[role] = folder / f"{role}_outcome.csv"
            truth.rename("outcome").to_csv(beside[role], index=False)
    pd.Series(levels, name="privacy").to_csv(folder / "levels.csv", index=False)
    return Files(
        *(folder / f"{role}.npy" for role in ("private", "public", "test")),
        beside,
        folder / "levels.csv",
    )


def write_study(folder: Path, case: Case, files: Files) -> tuple[Path, int]:
    """Write the study's file as ``init`` does; return it, and how many questions were asked."""
    answers = {
        "--levels": ",".join(f"{name}={epsilon:g}" for name, epsilon in LEVELS.items()),
        "--owner": case.owner or "none",
        "--target": "outcome",
        "--classes": "",
        "--title": "Ten lines",
    }
    prompts = Answering(answers)
    draft = Draft(first_look(files), Answers(), prompts, folder)
    study = study_of_tables(draft) if draft.files.is_table else study_of_arrays(draft)
    text = study.as_toml()
    if case.goal == "balanced":
        text += '\n[student]\ngoal = "balanced"\n'
    path = folder / "study.toml"
    path.write_text(text + '\n[ledger]\nurl = "none"\n', encoding="utf-8")
    return path, prompts.asked


def peak_gigabytes() -> float | None:
    """Tell this process's peak; ``getrusage`` would count the parent's, too."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 2**20


def run(path: Path, goal: str) -> dict[str, Any]:
    """Plan and run, as ``collegium run`` does; what was predicted and what came out."""
    warnings.simplefilter("ignore")
    begun = time.perf_counter()
    config = read_config(path)
    found = recommended(config, Observer(), "labels" if goal == "labels" else None)
    planned = time.perf_counter() - begun
    config = with_sections(config, found.sections)
    begun = time.perf_counter()
    result: Any = run_study(config, path.with_suffix(""))
    took = time.perf_counter() - begun
    quality, expected = result.quality, found.expected
    outcome = {
        "balanced accuracy": quality.balanced_accuracy, "ROC AUC": quality.auc
    }.get(expected.measure, quality.accuracy)  # fmt: skip
    lines = [line for line in path.read_text("utf-8").splitlines() if line and line[0] not in "#"]
    return {
        "method": found.method,
        "measure": expected.measure,
        "low": expected.low,
        "middle": expected.middle,
        "high": expected.high,
        "outcome": outcome,
        "floor": expected.floor,
        "accuracy": quality.accuracy,
        "balanced": quality.balanced_accuracy,
        "auc": quality.auc,
        "better": quality.better,
        "predicted_answers": found.answers,
        "answers": None if config.kind.name == "dpsgd" else len(result.labels.labels),
        "predicted_minutes": found.minutes,
        "minutes": took / 60,
        "plan_seconds": planned,
        "predicted_gigabytes": found.gigabytes,
        "gigabytes": peak_gigabytes(),
        "lines": len(lines),
        "verdict": quality.verdict,
    }


def without_privacy(case: Case, records: Records, seed: int) -> dict[str, Any]:
    """Judge logistic regression on every private record, without noise."""
    if not isinstance(records.X, pd.DataFrame):
        return {}
    private, public, test = split(case, records, seed)
    names, codes = np.unique(records.y, return_inverse=True)
    view = BinnedTable().fit(records.X.iloc[public])
    seen, asked = (as_rows(view.transform(records.X.iloc[r]), "records") for r in (private, test))
    strength = 1e4 if len(private) > 5_000 else 1.0
    model = LogisticRegression(C=strength, max_iter=300).fit(seen, codes[private])
    beliefs = model.predict_proba(asked)
    told = beliefs / (model.predict_proba(seen).mean(axis=0) if case.goal == "balanced" else 1.0)
    found = measure_quality(np.arange(len(names)), codes[test], told.argmax(axis=1), beliefs)
    assert found is not None
    return {
        "plain_accuracy": found.accuracy,
        "plain_balanced": found.balanced_accuracy,
        "plain_auc": found.auc,
    }


def measured(name: str, seed: int, data_dir: Path) -> dict[str, Any]:
    """Make the files of a study, run it in a process of its own, and put everything in a row."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        records = case.load(data_dir, seed)
        study, asked = write_study(folder, case, write_files(folder, case, records, seed))
        command = [sys.executable, "-m", "benchmarks.ten_lines", "--run", str(study), case.goal]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name}, seed {seed}: {done.stderr[-3000:]}")
        told = json.loads(done.stdout.splitlines()[-1])
        plain = without_privacy(case, records, seed)
    return {"study": name, "seed": seed, **told, "questions": asked, **plain}


def show(rows: list[dict[str, str]]) -> None:
    """Print tables: one row for each study, and each prediction beside what came of it."""
    table = pd.DataFrame(rows)
    numbers = [
        name for name in FIELDS if name not in ("study", "method", "measure", "verdict", "better")
    ]
    table[numbers] = table[numbers].apply(pd.to_numeric, errors="coerce")
    table["inside"] = (table.low <= table.outcome) & (table.outcome <= table.high)
    print(
        "| study | method | accuracy % | balanced % | AUC | without privacy: accuracy %, AUC | better "
        "| minutes |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for name, group in table.groupby("study", sort=False):
        plain = f"{_cell(100 * group.plain_accuracy, 1)}, {_cell(group.plain_auc, 3)}"
        better = f"{(group.better == 'True').sum()} of {len(group)}"
        cells = [
            _cell(100 * group.accuracy, 1),
            _cell(100 * group.balanced, 1),
            _cell(group.auc, 3),
        ]
        took = f"{(group.minutes + group.plan_seconds / 60).mean():.1f}"
        method = " / ".join(group.method.unique())
        print(f"| {name} | {method} | {' | '.join(cells)} | {plain} | {better} | {took} |")
    print(
        "\n| study | seed | measure | predicted | came out | inside | minutes: predicted, took "
        "| GB: predicted, peak |"
    )
    print("|---|--:|---|--:|--:|---|--:|--:|")
    for _, row in table.iterrows():
        foretold = f"{row.middle:.3f} ({row.low:.3f} to {row.high:.3f})"
        print(
            f"| {row.study} | {row.seed} | {row.measure} | {foretold} | {row.outcome:.3f} | "
            f"{'yes' if row.inside else '**no**'} | {row.predicted_minutes:.1f}, {row.minutes:.1f} | "
            f"{row.predicted_gigabytes:.1f}, {row.gigabytes:.1f} |"
        )
    print(f"\ninside: {table.inside.sum()} of {len(table)}")


def _cell(values: pd.Series[float], digits: int) -> str:
    if values.isna().all():
        return "—"
    spread = f" ± {values.std():.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def main() -> None:
    """Run what the file does not hold yet, or show what it holds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="NAME")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        print(json.dumps(run(Path(asked.run[0]), asked.run[1]), default=str))
        return
    if asked.out is None:
        parser.error("--out CSV is missing")
    rows: list[dict[str, str]] = []
    if asked.out.exists():
        with asked.out.open(newline="") as file:
            rows = list(csv.DictReader(file))
    if asked.show:
        show(rows)
        return
    if asked.data_dir is None:
        parser.error("--data-dir DATA is missing")
    there = {(row["study"], row["seed"]) for row in rows}
    for seed in asked.seeds:
        for name in asked.only:
            if (name, str(seed)) in there:
                continue
            row = measured(name, seed, asked.data_dir)
            new = not asked.out.exists()
            with asked.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                if new:
                    writer.writeheader()
                writer.writerow(
                    {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()}
                )
            print(row, flush=True)


if __name__ == "__main__":
    main()
