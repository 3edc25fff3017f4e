"""Three hospitals on Adult: together through files, as one pooled table with the same noise, and each alone.

    python -m benchmarks.parties [--seeds 1 2 3] [--quick]

People of ε = 1, 2, 3 (54, 37, 9 %; δ = 1e-5) are dealt out to three parties at random, each in a thread of
its own, with a folder that they share. **Together**: what all of them get. **Pooled**: one table, with noise
as large as the parties' (√(3/2) of what was asked for: each knows its own share). **Alone**: three releases
with three noises, put together: counts add up, means are weighted by people, synthetic rows of all are taken,
and models' probabilities are averaged. Settings are defaults; test rows are looked at for this table.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import collegium as cg
from benchmarks.synthetic_data import Tables, found_data_dir, tables
from benchmarks.synthetic_scores import scores
from collegium.data.cells import Cells
from collegium.noise.sources import SecureNoise
from collegium.noise.sums import Integers, Noise
from collegium.parties.quorum import Quorum
from collegium.parties.waiting import Patience

PARTIES = 3
EXCESS = Quorum(PARTIES).excess(PARTIES)
Figures = Mapping[str, float]


class SameNoise(SecureNoise):
    """As large as that of the parties."""

    @property
    def excess(self) -> float:
        """As theirs."""
        return EXCESS

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        """Draw it."""
        larger = Noise(noise.kind, noise.scale * EXCESS)
        return super().noised(sensitive_sum, larger, query=query, purpose=purpose)


@contextmanager
def same_noise() -> Iterator[None]:
    """Let sessions, tables and steps draw it."""
    homes = (
        "collegium.statistics.session",
        "collegium.synthesis.synthesizer",
        "collegium.dpsgd.run",
    )
    with (
        patch(f"{homes[0]}.noise_from", lambda seed: SameNoise()),
        patch(f"{homes[1]}.noise_from", lambda seed: SameNoise()),
        patch(f"{homes[2]}.noise_from", lambda seed: SameNoise()),
    ):
        yield


class Company:
    """The parties, and what each has."""

    def __init__(self, table: Tables, seed: int, folder: Path) -> None:
        rng = np.random.default_rng(seed)
        self.table, self.folder = table, folder
        self.public = table.train.iloc[:2000].reset_index(drop=True)
        self.private = table.train.iloc[2000:].reset_index(drop=True)
        n = len(self.private)
        self.epsilon = rng.choice([1.0, 2.0, 3.0], n, p=[0.54, 0.37, 0.09])
        self.place = rng.integers(0, PARTIES, n)
        self.keys = [cg.IdentityKey.fresh() for _ in range(PARTIES)]
        names = [f"Hospital {name}" for name in "ABC"]
        pairs = zip(self.keys, names, strict=True)
        self.collective = cg.Collective([key.member(name) for key, name in pairs])
        (folder / "shared").mkdir()

    def party(self, number: int) -> cg.Party:
        shared, memory = self.folder / "shared", self.folder / str(number)
        patience = Patience(poll_s=0.02)
        return cg.Party(self.collective, self.keys[number], shared, memory, patience)

    def of(self, number: int | None) -> tuple[pd.DataFrame, Any]:
        """Rows and budgets of a party, or of all."""
        its = np.full(len(self.place), True) if number is None else self.place == number
        return self.private[its].reset_index(drop=True), self.epsilon[its]

    def together(self, does: Callable[[int | None, cg.Party | None], Any]) -> list[Any]:
        with ThreadPoolExecutor(PARTIES) as threads:
            return list(threads.map(lambda one: does(one, self.party(one)), range(PARTIES)))


def asked(company: Company) -> dict[str, Figures]:
    """A count and a mean: how far off they are."""
    schema = company.table.schema

    def ask(number: int | None, party: cg.Party | None) -> tuple[float, float]:
        frame, epsilon = company.of(number)
        options: dict[str, Any] = {"schema": schema, "questions": 2, "noise": "gaussian"}
        if party is not None:
            options = {**options, "parties": party, "noise": "auto"}
        with cg.Statistics(frame, epsilon, **options) as session:
            count = session.count("age >= 50", weights="uniform")
            mean = session.mean("age", weights="uniform")
        return count.value, mean.value

    found: dict[str, tuple[float, float]] = {"together": company.together(ask)[0]}
    with same_noise():
        found["pooled"] = ask(None, None)
    each = [ask(number, None) for number in range(PARTIES)]
    sizes = np.bincount(company.place, minlength=PARTIES)
    of_means = float(np.average([mean for _, mean in each], weights=sizes))
    found["alone"] = (sum(count for count, _ in each), of_means)
    age = company.private.age
    return {
        how: {"count, error": count - float((age >= 50).sum()), "mean, error": mean - age.mean()}
        for how, (count, mean) in found.items()
    }


def synthesised(company: Company) -> dict[str, Figures]:
    """A synthetic table: areas under the curve on test rows, total variation of pairs."""
    table, cells = company.table, Cells(company.table.schema)
    train, test = cells.codes(company.private), cells.codes(table.test)

    def fit(number: int | None, party: cg.Party | None) -> np.ndarray:
        frame, epsilon = company.of(number)
        made = cg.Synthesizer(table.schema, target=table.target, random_state=0)
        made.fit(frame, epsilon, parties=party)
        n = len(company.private) if party is not None else len(frame)
        return cells.codes(made.sample(n))

    def figures(codes: np.ndarray) -> Figures:
        all_of_them = scores(codes, train, test, cells, table.target, None).as_dict()
        return {name: all_of_them[name] for name in ("logistic", "boosting", "tv2")}

    found = {"together": figures(company.together(fit)[0])}
    with same_noise():
        found["pooled"] = figures(fit(None, None))
    found["alone"] = figures(np.concatenate([fit(number, None) for number in range(PARTIES)]))
    return found


def trained(company: Company) -> dict[str, Figures]:
    """Direct training: the area under the curve on test rows."""
    target = company.table.target
    classes = sorted(set(company.public[target]))

    def train(number: int | None, party: cg.Party | None) -> np.ndarray:
        frame, epsilon = company.of(number)
        model = cg.DPSGDClassifier(classes=classes, random_state=0)
        X_public = company.public.drop(columns=target)
        model.fit(
            frame.drop(columns=target),
            frame[target],
            budgets=epsilon,
            X_public=X_public,
            parties=party,
        )
        return np.asarray(model.predict_proba(company.table.test.drop(columns=target))[:, 1])

    def figures(shown: np.ndarray) -> Figures:
        return {"direct": roc_auc_score(company.table.test[target] == classes[1], shown)}

    found = {"together": figures(company.together(train)[0])}
    with same_noise():
        found["pooled"] = figures(train(None, None))
    found["alone"] = figures(np.mean([train(number, None) for number in range(PARTIES)], axis=0))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--quick", action="store_true", help="questions alone, one seed")
    parser.add_argument("--data-dir", type=Path)
    given = parser.parse_args(arguments)
    table = tables("adult", found_data_dir(given.data_dir))
    runs: list[dict[str, Any]] = []
    for seed in given.seeds[:1] if given.quick else given.seeds:
        for does in (asked,) if given.quick else (asked, synthesised, trained):
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that people are asked several times
                company = Company(table, seed, Path(folder))
                began = time.perf_counter()
                for how, figures in does(company).items():
                    runs += [
                        {"how": how, "figure": name, "seed": seed, "value": value}
                        for name, value in figures.items()
                    ]
                print(f"seed {seed}: {does.__name__} in {time.perf_counter() - began:.0f} s")
    shown = pd.DataFrame(runs).pivot_table(
        index="figure",
        columns="how",
        values="value",
        aggfunc=lambda of: " ".join(f"{one:.4g}" for one in of),
    )
    print(shown[["together", "pooled", "alone"]].to_string())


if __name__ == "__main__":
    main()
