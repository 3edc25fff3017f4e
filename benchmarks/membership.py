"""Membership inference by shadow runs on what four methods release, by people of three levels.

600 people (ε = 1, 2 and 3 for 54, 37 and 9 %), about half of whom are in each of 64 runs with noise of their
own; each run is attacked with all others as its shadows (:mod:`collegium.attacks.shadow_runs`). Group sizes
are declared: the same in all runs. Each method has a control with next to no noise (ε = 1,000,000), judged
against the bound of the private release: there the attack must see far more than the bound.

- *direct*: a model of digits by private steps in the full batch; how sure it is of each person's class. One
  person in three has a wrong class, as outliers are found first.
- *student*: of PATE, of the same digits; how sure it is of each person's class. (Its control has six
  teachers: among twenty, one person hides even without noise. :mod:`benchmarks.membership_student` is an
  attack that sees more.)
- *answers*: two crosstabs of a made-up table, many of whose cells hold one person or two; the cells of each.
- *table*: a synthetic table of the same; how much more frequent a person's pairs are than in reference rows.

    python -m benchmarks.membership             # 64 runs each
    python -m benchmarks.membership --only direct --runs 32
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from collegium import (
    DPSGDClassifier,
    GNMax,
    PATEClassifier,
    Policy,
    Schema,
    Statistics,
    Synthesizer,
)
from collegium.accounting import gdp_mu
from collegium.attacks.conjugate import KINDS
from collegium.attacks.marginals import Cliques, scores_of_rows
from collegium.attacks.membership import MembershipFinding, judge_membership
from collegium.attacks.shadow_runs import Release, model_signal, run_shadows

Floats = NDArray[np.float64]
LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
SIZES = {"high": 324, "average": 222, "low": 54}
N, WITHOUT_NOISE = sum(SIZES.values()), 1e6
_NAMES = (
    *("release", "level", "μ", "in / out", "AUC ≤ bound", "% at 0.1 %", "% at 1 %"),
    *("worst person", "verdict"),
)
HEAD = f"| {' | '.join(_NAMES)} |\n" + "|---" * len(_NAMES) + "|"
LEVEL = np.random.default_rng(5).permutation(np.repeat(list(SIZES), list(SIZES.values())))


def policy(is_private: bool) -> Policy:
    """Budgets, or as good as none."""
    return Policy(LEVELS if is_private else dict.fromkeys(LEVELS, WITHOUT_NOISE), delta=1e-5)


def digits() -> tuple[Floats, NDArray[np.int64], Floats]:
    """Records and classes of people, one in three of them wrong, and public records."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(3)
    order = rng.permutation(len(X))
    own, public = order[:N], order[N:]
    classes = y[own].copy()
    wrong = np.arange(N) % 3 == 0
    classes[wrong] = (classes[wrong] + rng.integers(1, 10, int(wrong.sum()))) % 10
    return X[own], classes, X[public]


def direct(is_private: bool) -> Release:
    """Direct training."""
    X, y, public = digits()

    def release(is_in: NDArray[np.bool_], run: int) -> Floats:
        model = DPSGDClassifier(
            classes=range(10), preprocessing=None, noise_seed=run, random_state=0
        )
        granted = policy(is_private).assign(LEVEL[is_in], sizes=SIZES)
        model.fit(X[is_in], y[is_in], budgets=granted, X_public=public)
        return model_signal(model, X, y)

    return release


def student(is_private: bool) -> Release:
    """Votes, and a student of public records."""
    X, y, public = digits()

    def release(is_in: NDArray[np.bool_], run: int) -> Floats:
        model = PATEClassifier(
            n_teachers=20 if is_private else 6,
            aggregator=GNMax(sigma=4.0 if is_private else 0.01),
            classes=range(10),
            noise_seed=run,
            random_state=0,
        )
        granted = policy(is_private).assign(LEVEL[is_in], sizes=SIZES)
        model.fit(X[is_in], y[is_in], budgets=granted, X_public=public[:300])
        return model_signal(model, X, y)

    return release


TOWNS, TRADES = [f"t{i}" for i in range(30)], [f"b{i}" for i in range(20)]
SCHEMA = Schema(
    {
        "town": {"kind": "category", "categories": TOWNS},
        "trade": {"kind": "category", "categories": TRADES},
        "ill": {"kind": "category", "categories": TRADES[:10]},
    }
)


def people(n: int, seed: int) -> pd.DataFrame:
    """Rows of a made-up table."""
    rng = np.random.default_rng(seed)
    town, trade = rng.integers(0, 30, n), rng.integers(0, 20, n)
    ill = np.where(rng.random(n) < 0.5, trade % 10, rng.integers(0, 10, n))
    named = {"town": np.array(TOWNS)[town], "trade": np.array(TRADES)[trade]}
    return pd.DataFrame(named | {"ill": np.array(TRADES)[ill]})


def codes_of(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Places of categories."""
    places = [[*TOWNS], [*TRADES], TRADES[:10]]
    return np.stack(
        [
            pd.Index(names).get_indexer(frame[column])
            for column, names in zip(frame, places, strict=True)
        ],
        axis=1,
    ).astype(np.int64)


def answers(is_private: bool) -> Release:
    """Two crosstabs."""
    table = people(N, 1)

    def release(is_in: NDArray[np.bool_], run: int) -> Floats:
        granted = policy(is_private).assign(LEVEL[is_in], sizes=SIZES)
        ask = Statistics(
            table[is_in], granted, schema=SCHEMA, questions=2, noise="gaussian", noise_seed=run
        )
        seen = np.zeros(N)
        for columns in (("town", "trade"), ("trade", "ill")):
            cells = ask.crosstab(*columns).cells["value"]
            seen += cells.reindex(pd.MultiIndex.from_frame(table[list(columns)])).to_numpy()
        return seen

    return release


def table(is_private: bool) -> Release:
    """Synthetic rows, as many as people."""
    frame, reference = people(N, 1), codes_of(people(20_000, 2))
    codes = codes_of(frame)
    cliques = Cliques([(0, 1), (0, 2), (1, 2)], [30, 20, 10])

    def release(is_in: NDArray[np.bool_], run: int) -> Floats:
        granted = policy(is_private).assign(LEVEL[is_in], sizes=SIZES)
        made = Synthesizer(
            SCHEMA, "trade", structure=[["town", "ill"]], noise_seed=run, random_state=run
        )
        rows = made.fit(frame[is_in], granted).sample(N).dropna()  # as many as are complete
        return scores_of_rows(cliques, codes, codes_of(rows[list(frame)]), reference)

    return release


CASES: dict[str, Callable[[bool], Release]] = {
    "direct": direct,
    "student": student,
    "answers": answers,
    "table": table,
}


def line(name: str, one: MembershipFinding) -> str:
    """Write a row."""
    written = [name, one.group, f"{one.mu:.3f}", f"{one.n_in:,} / {one.n_out:,}"]
    written.append(
        f"{one.auc.value:.3f} [{one.auc.low:.3f}, {one.auc.high:.3f}] ≤ {one.most_auc:.3f}"
    )
    for rate in (0.001, 0.01):
        at = next((found for found in one.rates if found.alarms == rate), None)
        shares = (
            []
            if at is None
            else [100 * value for value in (at.found.value, at.found.low, at.found.high)]
        )
        written.append(
            "–"
            if at is None
            else "{:.2f} [{:.2f}, {:.2f}]".format(*shares) + f" ≤ {100 * at.most:.2f}"
        )
    worst = "–" if one.worst is None else one.worst.cell()
    return f"| {' | '.join([*written, worst, one.verdict])} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each method, and for its control."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", choices=["", *CASES])
    parser.add_argument("--runs", type=int, default=64)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    mus = {name: gdp_mu(epsilon, 1e-5) for name, epsilon in LEVELS.items()}
    print(HEAD)
    for name in [given.only] if given.only else CASES:
        for is_private in (True, False):
            began = time.perf_counter()
            attack = run_shadows(CASES[name](is_private), N, runs=given.runs)
            told = name if is_private else f"{name}, control"
            for one in attack.judged(mus, list(LEVEL)):
                print(line(told, one), flush=True)
            areas = {
                kind: judge_membership(attack.scores(kind), attack.is_in, mus, list(LEVEL))[
                    1
                ].auc.value
                for kind in KINDS
            }
            seconds = time.perf_counter() - began
            print(f"<!-- {told}: AUC of average by score: {areas}; {seconds:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
